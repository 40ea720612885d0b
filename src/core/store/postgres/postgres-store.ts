import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../../contract/failure.ts';
import { QUOTA } from '../../../contract/limits.ts';
import type { FileState, KeyState, StoreStatus } from '../../../contract/status.ts';
import { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { KeySources } from '../../crypto/keys/key-source.ts';
import type { Clock } from '../../time/clock.ts';
import { StoredClock } from '../../time/stored-clock.ts';
import type { EntryWriter } from '../entry-writer.ts';
import { isUnchanged } from '../entry.ts';
import { ChangeNotifier } from '../events.ts';
import { isRecordDue, needsKey } from '../forgetting.ts';
import type {
  ActivityNote,
  Author,
  EntryEvent,
  ForgetResult,
  MemoryStore,
  Namespace,
  Quota,
  RevertResult,
  Selection,
  Space,
  SpaceChange,
  SpaceKind,
  SweepResult,
  YieldTurn,
} from '../store.ts';
import { ChangeFeed, EVERYTHING } from './change-feed.ts';
import type { Reads } from './change-set.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { Mirror, namespaceAt } from './mirror.ts';
import { PendingNotes } from './pending-notes.ts';
import { ServerRows } from './rows.ts';
import { prepareSchema } from './schema.ts';
import { createWriter } from './server-entry-writer.ts';
import { ServerForgetting } from './server-forgetting.ts';
import { ServerQueue } from './server-queue.ts';
import { ServerReader } from './server-reader.ts';
import { ServerSweeper } from './server-sweeper.ts';
import { ServerUpkeep } from './server-upkeep.ts';
import { ServerVault } from './server-vault.ts';
import { ServerVectors } from './server-vectors.ts';
import { SharedSignals } from './shared-signals.ts';
import { WorkingSet } from './working-set.ts';

/** Milliseconds from startup to the first sweep, so that the sweep does not delay the first requests. */
const FIRST_SWEEP_MS = 500;
const IMMEDIATELY = 0;

export interface ServerOptions {
  readonly database: DatabaseOptions;
  /** A clock that follows the clock of the database, or a clock that a test sets. */
  readonly clock: Clock & { observe?(now: number): void };
  readonly sources: KeySources;
  /** Quota of each subject. If absent, storage is unlimited. */
  readonly quota?: Quota;
  /** The data folder, for backups. If absent, the store makes no backups. */
  readonly folder?: string;
  /** The lock of the data folder, which is released when the store is closed. */
  readonly lock?: Disposable;
}

const UNREACHABLE: FileState = {
  at: 'failed',
  why: 'the database cannot be reached',
  remedy: 'Start it, or check HELMDECK_DATABASE_URL.',
};

/** A memory in a PostgreSQL database, with encrypted entries. Several processes can share it. */
export class PostgresStore implements MemoryStore {
  readonly upkeep: ServerUpkeep;
  readonly vault: ServerVault;
  readonly vectors: ServerVectors;
  readonly wall = (): number => this.#clock.now();
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #quota: Quota | undefined;
  readonly #keys: KeyKeeper;
  readonly #mirror: Mirror;
  readonly #rows: ServerRows;
  readonly #set: WorkingSet;
  readonly #feed: ChangeFeed;
  readonly #queue: ServerQueue;
  readonly #changes = new ChangeNotifier();
  readonly #time: StoredClock;
  readonly #sweeper: ServerSweeper;
  readonly #forgetting: ServerForgetting;
  readonly #reader: ServerReader;
  readonly #writer: EntryWriter;
  readonly #notes = new PendingNotes();
  readonly #lock: Disposable | undefined;
  readonly #signals: SharedSignals;
  #closed = false;

  /** Opens the database. Creates its tables if needed, after all checks have passed. */
  static async open(options: ServerOptions): Promise<PostgresStore> {
    const database = new Database(options.database);
    try {
      await database.retryWhileLost(async () => {
        const client = await database.writer();
        await prepareSchema(client, database.on(client).run, database.schema);
      });
      database.isPrepared = true;
      const mirror = new Mirror();
      const [state] = await database.read<{ now: number }>(
        'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
      );
      // The first reading must not be a reading of this machine's clock.
      if (state) options.clock.observe?.(state.now);
      // The clock looks for a stored time when it is created.
      await mirror.read((text, values) => database.read(text, values), EVERYTHING);
      const store = new PostgresStore(database, mirror, options);
      await store.#start();
      return store;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  private constructor(database: Database, mirror: Mirror, { clock, sources, quota, lock, folder }: ServerOptions) {
    this.#database = database;
    this.#mirror = mirror;
    this.#clock = clock;
    this.#quota = quota;
    this.#lock = lock;
    const set = (this.#set = new WorkingSet(mirror));
    const keys = (this.#keys = new KeyKeeper(set.secrets, clock, sources(String(set.secrets.meta('memory')))));
    const rows = (this.#rows = new ServerRows(set, keys));
    const { events } = set;
    // Decrypted entries must not stay in RAM without a key, whatever took it away.
    keys.onChange(() => keys.heldKeys ?? events.publishReset());
    this.#feed = new ChangeFeed({
      database,
      mirror,
      events,
      rows,
      keys,
      changes: this.#changes,
      reread: (topics) => this.#reread(topics),
      observeClock: (now) => clock.observe?.(now),
    });
    const signals = (this.#signals = new SharedSignals({ set, keys, time: () => this.#time }));
    const queue = (this.#queue = new ServerQueue({ database, set, rows, keys, signals, feed: this.#feed }));
    set.secrets.commit = (step) => queue.run(step);
    this.#time = new StoredClock({
      connection: set.secrets,
      keys,
      queue,
      clock,
      corrected: () => this.#sweeper.scheduleAt(IMMEDIATELY),
    });
    const time = this.#time;
    this.#sweeper = new ServerSweeper({ database, set, rows, keys, time, clock, queue, changes: this.#changes });
    const vectors = (this.vectors = new ServerVectors({ database, set, rows, keys, time, queue }, (query) => this.#read(query)));
    this.upkeep = new ServerUpkeep({ database, set, rows, vectors, keys, queue, feed: this.#feed, clock, time, folder });
    this.#forgetting = new ServerForgetting({ database, set, mirror, rows, keys, time });
    this.#reader = new ServerReader({ database, feed: this.#feed, rows, keys, time });
    this.#writer = createWriter({ set, rows, keys, time, sweeper: this.#sweeper, forgetting: this.#forgetting, quota });
    this.vault = new ServerVault(
      { database, set, keys, time },
      {
        write: (job) => this.#write(job),
        writeUnopened: (job) => this.#writeUnopened(job),
        read: (query) => this.#readMirror(query),
        readUnopened: (query) => this.#readUnopened(query),
        revision: () => this.#readUnopened(() => this.#signals.vaultRevision),
        onForeignChange: (listener) => this.#signals.onVaultChange(listener),
      },
    );
  }

  async #start(): Promise<void> {
    this.#database.onNotification = () => void this.#feed.refresh().catch(() => undefined);
    await this.#feed.start();
    this.#signals.start(() => this.#feed.refresh());
    this.#signals.requireHere({ namesPlace: true });
    await this.#keys.unlock();
    await this.#database.listen();
    this.#sweeper.scheduleAt(this.now() + FIRST_SWEEP_MS);
    this.#keyAvailable();
  }

  space(namespace: Namespace, kind: SpaceKind): Space {
    const [reader, writer] = [this.#reader, this.#writer];
    const write = <T>(key: string, author: Author, note: ActivityNote | undefined, job: () => T): Promise<T> =>
      this.#writeAndNotify({ namespace, kind }, { key, author, note }, job);
    return {
      kind,
      put: (draft, note, expected) =>
        write(draft.key, draft.author, note, () => writer.put(namespace, kind, draft, { note, expected })),
      change: (key, change, note) => write(key, change.author, note, () => writer.change(namespace, kind, key, change, note)),
      get: (key) => this.#read(() => reader.get(namespace, kind, key)),
      page: (query) => this.#read(() => reader.page(namespace, kind, query)),
      count: (category) => this.#readUnopened(() => reader.count(namespace, kind, category)),
      countExpiringBefore: (before) => this.#readUnopened(() => reader.countEnding(namespace, kind, before)),
      history: (key) =>
        this.#read(() => (kind === 'fact' ? reader.history(namespace, key) : this.#feed.refresh().then(() => []))),
      overview: (most) => this.#read(() => reader.overview(namespace, kind, most)),
      withHistory: (key) => this.#read(() => reader.withHistory(namespace, key)),
      restoreForgotten: (fact, note) =>
        write(fact.entry.key, note.author, note, () => writer.restoreForgotten(namespace, fact, note)),
      revert: (key, range, note) => {
        const revert = (): RevertResult => writer.revert(namespace, kind, key, range, note);
        // Without a note, nothing changes, so the transaction is rolled back.
        return note ? write(key, note.author, note, revert) : this.#write(revert, '', { target: { namespace, kind, key } });
      },
    };
  }

  namespaces(kind: SpaceKind = 'fact'): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]> {
    return this.#readUnopened(() => this.#reader.namespaces(kind));
  }

  async forget(
    subject: string,
    selection: Selection,
    note?: ActivityNote,
    yieldTurn: YieldTurn = nextTurn,
  ): Promise<ForgetResult> {
    await this.#beginCall();
    if (needsKey(selection) && !this.#keys.heldKeys) await this.#retryUnlock();
    // Read the namespaces before the forget, because the forget deletes the namespaces of sessions that it empties.
    const namespaces = this.#mirror.of(subject).map(namespaceAt);
    const job = await this.#withPresentKeys(() => this.#forgetting.begin(subject, selection), selection.key !== undefined);
    const clearsRecord = selection.kinds.includes('activity');
    const slices = Math.max(1, job.slices);
    let [entries, rows, recorded] = [0, 0, false];
    let done = false;
    try {
      for (let index = 0; index < slices; index += 1) {
        if (index > 0) await yieldTurn();
        const slice = (): { entries: number; rows: number; recorded: boolean } => {
          const deleted = job.delete(index);
          const due = isRecordDue({ entries: entries + deleted.entries, done: index + 1 === slices }, clearsRecord);
          if (!note || recorded || !due || !this.#keys.heldKeys) return { ...deleted, recorded };
          this.#writer.recordActivity({ subject }, note);
          this.#time.saveIfDue();
          return { ...deleted, recorded: true };
        };
        const result = await this.#queue.run(slice, subject, { load: (run) => job.load(run, index) });
        entries += result.entries;
        rows += result.rows;
        recorded = result.recorded;
      }
      done = true;
      await this.#sweeper.deleteEmptySessions([...job.namespaces]);
    } finally {
      if (isRecordDue({ entries, done }, clearsRecord)) {
        this.#notifyForgotten(namespaces, selection);
        if (note) this.#changes.notify({ namespace: { subject }, kind: 'activity' });
        if (note && !recorded) this.#recordLater(subject, note);
      }
    }
    // Also if this call found nothing, because an earlier one may have deleted the entries.
    return { deleted: entries, purged: false, reason: 'database_copies', olderBackups: this.upkeep.backups().length };
  }

  async recordActivity(subject: string, note: ActivityNote): Promise<void> {
    await this.#beginCall();
    this.#recordLater(subject, note);
    if (!this.#keys.heldKeys) await this.#retryUnlock();
    await this.#recordPending();
  }

  #recordLater(subject: string, note: ActivityNote): void {
    this.#notes.add({ subject, note, at: this.now() });
  }

  /** Writes the pending notes if the key is available. */
  async #recordPending(): Promise<void> {
    if (!this.#keys.heldKeys) return;
    const subjects = await this.#notes.write({
      mayBeCommitted: (commit) => this.#queue.mayBeCommitted(commit),
      record: (notes) =>
        this.#queue.run(() => {
          for (const { subject, note, at } of notes) this.#writer.recordActivity({ subject }, note, { at });
        }),
    });
    for (const subject of subjects) this.#changes.notify({ namespace: { subject }, kind: 'activity' });
  }

  async countMatching(subject: string, selection: Selection, yieldTurn: YieldTurn = nextTurn): Promise<number> {
    await this.#beginCall();
    if (needsKey(selection) && !this.#keys.heldKeys) await this.#retryUnlock();
    const job = await this.#withPresentKeys(() => this.#forgetting.begin(subject, selection), selection.key !== undefined);
    let count = 0;
    for (let index = 0; index < job.slices; index += 1) {
      if (index > 0) await yieldTurn();
      count += await job.count(index);
    }
    return count;
  }

  async sweep(limit: number): Promise<SweepResult> {
    this.#requireOpen();
    return this.#sweeper.sweep(limit);
  }

  async usage(subject: string): Promise<{ readonly used: Quota; readonly most: Quota }> {
    const most = this.#quota ?? QUOTA;
    return this.#writeUnopened(() => ({ used: this.#writer.usage(subject), most }));
  }

  status(): StoreStatus {
    return {
      kept: 'database',
      key: this.#keys.state,
      file: this.#database.isReachable ? { at: 'open' } : UNREACHABLE,
      quarantined: this.#rows.brokenCount + this.vectors.brokenCount + this.#keys.brokenSecretCount,
      clock: this.#time.state,
      rotation: this.#keys.rotation,
    };
  }

  /** Locks this process at once. A lock by the owner, which has no other reason, soon locks all processes. */
  lock(why?: string): void {
    this.#keys.lock(why);
    if (why === undefined) void this.#signals.lockAll((step) => this.#queue.run(step));
  }

  async refresh(): Promise<void> {
    this.#requireOpen();
    await this.#feed.refresh();
  }

  /** Follows another process that locked the memory or changed its keys. */
  #reread(topics: ReadonlySet<string>): void {
    this.#signals.follow(topics);
    if (topics.has('keys')) this.upkeep.resumeLater();
  }

  onEntryEvent(listener: (event: EntryEvent) => void): Disposable {
    return this.#set.events.subscribe(listener);
  }

  onChange(listener: (changed: SpaceChange) => void): Disposable {
    return this.#changes.subscribe(listener);
  }

  onKeyChange(listener: () => void): Disposable {
    return this.#keys.onChange(listener);
  }

  async unlock(): Promise<KeyState> {
    await this.#beginCall();
    const state = await this.#keys.unlock();
    this.#keyAvailable();
    return state;
  }

  now(): number {
    return this.#time.now();
  }

  async trustClock(): Promise<void> {
    await this.#write(() => {
      this.#time.trustWall();
      this.#signals.tellConfirmation();
    });
    this.#signals.confirmed();
    for (const row of this.#mirror.namespaces.values()) this.#changes.notify({ namespace: namespaceAt(row), kind: 'fact' });
    this.#sweeper.scheduleAt(IMMEDIATELY);
  }

  countExpiredFacts(): Promise<number> {
    return this.#readUnopened(() => this.#reader.countExpired(this.#clock.now()));
  }

  /** Resolves when no sweep and no write is running. */
  async whenIdle(): Promise<void> {
    await this.#sweeper.whenIdle();
    await this.#queue.whenIdle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#signals.stop();
    this.#sweeper.stop();
    await this.upkeep.stop();
    await this.whenIdle();
    if (this.#keys.heldKeys) {
      await this.#time.review();
      // A process that only reads changes nothing. Its reads save the time every hour.
      if (this.#queue.hasCommitted) await this.#queue.run(() => this.#time.save()).catch(() => undefined);
      await this.#recordPending().catch(() => undefined);
    }
    await this.#database.close();
    this.#lock?.[Symbol.dispose]();
  }

  #notifyForgotten(namespaces: readonly Namespace[], { kinds, session }: Selection): void {
    for (const namespace of namespaces) {
      if (session !== undefined && (namespace.session ?? '') !== session) continue;
      for (const kind of kinds) if (kind !== 'history') this.#changes.notify({ namespace, kind });
    }
  }

  async #writeAndNotify<T>(
    changed: SpaceChange,
    { key, author, note }: { key: string; author: Author; note: ActivityNote | undefined },
    job: () => T,
  ): Promise<T> {
    const { namespace, kind } = changed;
    const lane = `${namespace.subject} ${author.token} ${author.client}`;
    const result = await this.#write(job, lane, { target: { namespace, kind, key } });
    if (isUnchanged(result)) return result;
    this.#changes.notify(changed);
    if (note) this.#changes.notify({ namespace, kind: 'activity' });
    return result;
  }

  async #write<T>(job: () => T, lane?: string, reads?: Reads): Promise<T> {
    this.#requireOpen();
    this.#sweeper.catchUp();
    if (!this.#keys.heldKeys) await this.#retryUnlock();
    this.#time.saveWhenDue();
    const write = (): T => {
      const result = job();
      this.#time.saveIfDue();
      return result;
    };
    return this.#queue.run(write, lane, reads);
  }

  /** Reads rows from the database. The query also reads the change number, so this process is up to date before the answer. */
  async #read<T>(query: () => Promise<T>): Promise<T> {
    this.#requireOpen();
    this.#sweeper.catchUp();
    if (!this.#keys.heldKeys) {
      await this.#feed.refresh();
      await this.#retryUnlock();
    }
    this.#time.saveWhenDue();
    const result = await this.#withPresentKeys(() => {
      this.#keys.requireKeys();
      return query();
    });
    this.#keys.requireKeys();
    return result;
  }

  /**
   * Runs a query again if the keys or the confirmed time have changed meanwhile. If another process begins a rotation, a query with the old key does not find
   * the entries that are already encrypted with the new key.
   */
  async #withPresentKeys<T>(query: () => Promise<T>, findsByKey = false): Promise<T> {
    for (;;) {
      const [held, unknown, confirmed] = [this.#keys.heldKeys, this.#rows.unknownKeyCount, this.#signals.confirmations];
      const result = await query();
      this.#signals.requireHere();
      if (findsByKey || this.#rows.unknownKeyCount !== unknown) await this.#feed.refresh();
      if (!held || (this.#keys.heldKeys === held && this.#signals.confirmations === confirmed)) return result;
    }
  }

  /** Reads what other processes can change from RAM, after it was compared with the database. */
  async #readMirror<T>(query: () => T): Promise<T> {
    await this.#beginCall();
    if (!this.#keys.heldKeys) await this.#retryUnlock();
    this.#keys.requireKeys();
    return query();
  }

  async #writeUnopened<T>(job: () => T): Promise<T> {
    this.#requireOpen();
    return this.#queue.run(job);
  }

  /** Reads columns that are not encrypted. Works in every key state. */
  async #readUnopened<T>(query: () => T | Promise<T>): Promise<T> {
    await this.#beginCall();
    return query();
  }

  async #retryUnlock(): Promise<void> {
    await this.#keys.retryUnlock();
    this.#keyAvailable();
  }

  #keyAvailable(): void {
    if (!this.#keys.heldKeys) return;
    this.#time.load();
    void this.#recordPending().catch(() => undefined);
    this.upkeep.resume();
    this.#sweeper.scheduleAt(this.now() + FIRST_SWEEP_MS);
  }

  async #beginCall(): Promise<void> {
    this.#requireOpen();
    this.#sweeper.catchUp();
    await this.#feed.refresh();
    this.#signals.requireHere();
  }

  #requireOpen(): void {
    if (this.#closed) throw new Failure('store_unavailable', 'The memory has been closed; start Helmdeck Memory again.');
  }
}
