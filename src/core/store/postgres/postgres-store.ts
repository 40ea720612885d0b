import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../../contract/failure.ts';
import { QUOTA } from '../../../contract/limits.ts';
import type { KeyState, StoreStatus } from '../../../contract/status.ts';
import { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { Clock } from '../../time/clock.ts';
import { StoredClock } from '../../time/stored-clock.ts';
import { EntryWriter } from '../entry-writer.ts';
import { isUnchanged } from '../entry.ts';
import { ChangeNotifier } from '../events.ts';
import { FairEviction } from '../fair-eviction.ts';
import { isRecordDue, needsKey } from '../forgetting.ts';
import type { KeySources } from '../open-store.ts';
import type {
  ActivityNote,
  Author,
  EntryEvent,
  ForgetResult,
  MemoryStore,
  Namespace,
  Quota,
  RevertOutcome,
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
import { ServerRows } from './rows.ts';
import { prepareSchema } from './schema.ts';
import { ServerForgetting } from './server-forgetting.ts';
import { ServerQueue } from './server-queue.ts';
import { ServerReader } from './server-reader.ts';
import { ServerSweeper } from './server-sweeper.ts';
import { ServerVault } from './server-vault.ts';
import { ServerWriteReader } from './server-write-reader.ts';
import { WorkingSet } from './working-set.ts';

/** Milliseconds from startup to the first sweep, so that the sweep does not delay the first requests. */
const FIRST_SWEEP_MS = 500;
const IMMEDIATELY = 0;
/** Maximum activity notes that wait in RAM for the key. When another note is added, the oldest is dropped. */
const MAX_UNRECORDED = 1000;
/** Name of the number of locks so far. A process that reads a higher number than before locks its memory too. */
const LOCKS = 'locks';

export interface ServerOptions {
  readonly database: DatabaseOptions;
  /** A clock that follows the clock of the database, or a clock that a test sets. */
  readonly clock: Clock & { observe?(now: number): void };
  readonly sources: KeySources;
  /** Quota of each subject. If absent, storage is unlimited. */
  readonly quota?: Quota;
}

/** A memory in a PostgreSQL database, with encrypted entries. Several processes can share it. */
export class PostgresStore implements MemoryStore {
  readonly upkeep = undefined;
  readonly vault: ServerVault;
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
  readonly #unrecorded: { readonly subject: string; readonly note: ActivityNote; readonly at: number }[] = [];
  #locks: number;
  /** How often another process has changed secrets or revocations. */
  #vaultRevision = 0;
  #closed = false;

  /** Opens the database. Creates its tables if needed, after all checks have passed. */
  static async open(options: ServerOptions): Promise<PostgresStore> {
    const database = new Database(options.database);
    try {
      await database.patiently(async () => {
        const client = await database.writer();
        await prepareSchema(client, database.on(client).run, database.schema);
      });
      const mirror = new Mirror();
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

  private constructor(database: Database, mirror: Mirror, { clock, sources, quota }: ServerOptions) {
    this.#database = database;
    this.#mirror = mirror;
    this.#clock = clock;
    this.#quota = quota;
    const set = (this.#set = new WorkingSet(mirror));
    const keys = (this.#keys = new KeyKeeper(set, clock, sources(database.schema)));
    const rows = (this.#rows = new ServerRows(set, keys));
    const { events } = set;
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
    const queue = (this.#queue = new ServerQueue(database, set, rows, this.#feed));
    set.commit = (step) => queue.run(step);
    this.#time = new StoredClock({ connection: set, keys, queue, clock, corrected: () => this.#sweeper.scheduleAt(IMMEDIATELY) });
    const time = this.#time;
    this.#sweeper = new ServerSweeper({ database, set, rows, keys, time, clock, queue, changes: this.#changes });
    this.#forgetting = new ServerForgetting({ database, set, mirror, rows, keys, time });
    this.#reader = new ServerReader(database, rows, keys, time);
    const writeReader = new ServerWriteReader(set, rows, time);
    const connection = {
      events,
      namespaceId: (namespace: Namespace) => set.namespaceId(namespace),
      ensureNamespace: (namespace: Namespace) => set.ensureNamespace(namespace),
      countUsage: () => undefined,
      usageCounters: {
        rows: (id: number, kind: SpaceKind | 'history') => set.rowCount(id, kind),
        usage: (subject: string, kind: 'fact' | 'pack') => set.usage(subject, kind),
        expired: (subject: string, kind: 'fact' | 'pack', now: number) => set.expired(subject, kind, now),
      },
    };
    // Vacuuming does not erase the bytes of deleted rows, so there is nothing to purge.
    const disk = { purgeSoon: () => undefined, purgeLater: () => undefined };
    this.#writer = new EntryWriter(
      { connection, keys, rows, time, disk, sweeper: this.#sweeper, quota, freeSpace: undefined, sharesDatabase: true },
      { reader: writeReader, forgetting: this.#forgetting, fairEviction: new FairEviction(connection, rows, writeReader) },
    );
    this.vault = new ServerVault(
      { database, set, keys, time },
      {
        write: (job) => this.#write(job),
        writeUnopened: (job) => this.#writeUnopened(job),
        read: (query) => this.#readMirror(query),
        readUnopened: (query) => this.#readUnopened(query),
        revision: () => this.#readUnopened(() => this.#vaultRevision),
      },
    );
    this.#locks = 0;
  }

  async #start(): Promise<void> {
    this.#database.onNotification = () => void this.#feed.refresh().catch(() => undefined);
    await this.#feed.start();
    this.#locks = this.#lockCount();
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
      put: (draft, note) => write(draft.key, draft.author, note, () => writer.put(namespace, kind, draft, note)),
      change: (key, change, note) => write(key, change.author, note, () => writer.change(namespace, kind, key, change, note)),
      get: (key) => this.#read(() => reader.get(namespace, kind, key)),
      page: (query) => this.#read(() => reader.page(namespace, kind, query)),
      count: (category) => this.#readUnopened(() => reader.count(namespace, kind, category)),
      countExpiringBefore: (before) => this.#readUnopened(() => reader.countEnding(namespace, kind, before)),
      history: (key) => this.#read(() => (kind === 'fact' ? reader.history(namespace, key) : Promise.resolve([]))),
      overview: (most) => this.#read(() => reader.overview(namespace, kind, most)),
      withHistory: (key) => this.#read(() => reader.withHistory(namespace, key)),
      restoreForgotten: (fact, note) =>
        write(fact.entry.key, note.author, note, () => writer.restoreForgotten(namespace, fact, note)),
      revert: (key, range, note) => {
        const revert = (): RevertOutcome => writer.revert(namespace, kind, key, range, note);
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
    const namespaces = [...this.#mirror.namespaces.values()].filter((row) => row.subject === subject).map(namespaceAt);
    const job = await this.#forgetting.begin(subject, selection);
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
      if (rows > 0) await this.#sweeper.deleteEmptySessions(this.now());
    } finally {
      if (isRecordDue({ entries, done }, clearsRecord)) {
        this.#notifyForgotten(namespaces, selection);
        if (note) this.#changes.notify({ namespace: { subject }, kind: 'activity' });
        if (note && !recorded) this.#recordLater(subject, note);
      }
    }
    // The server keeps deleted rows in its pages, its log and its copies.
    return { deleted: entries, purged: rows === 0, olderBackups: 0 };
  }

  async recordActivity(subject: string, note: ActivityNote): Promise<void> {
    await this.#beginCall();
    this.#recordLater(subject, note);
    if (!this.#keys.heldKeys) await this.#retryUnlock();
    await this.#recordPending();
  }

  #recordLater(subject: string, note: ActivityNote): void {
    this.#unrecorded.push({ subject, note, at: this.now() });
    if (this.#unrecorded.length > MAX_UNRECORDED) this.#unrecorded.shift();
  }

  /** Writes the pending notes if the key is available. If writing fails, the notes stay pending. */
  async #recordPending(): Promise<void> {
    if (!this.#keys.heldKeys || this.#unrecorded.length === 0) return;
    const pending = this.#unrecorded.splice(0);
    try {
      await this.#queue.run(() => {
        for (const { subject, note, at } of pending) this.#writer.recordActivity({ subject }, note, { at });
      });
    } catch (error) {
      this.#unrecorded.unshift(...pending);
      throw error;
    }
    for (const { subject } of pending) this.#changes.notify({ namespace: { subject }, kind: 'activity' });
  }

  async countMatching(subject: string, selection: Selection, yieldTurn: YieldTurn = nextTurn): Promise<number> {
    await this.#beginCall();
    if (needsKey(selection) && !this.#keys.heldKeys) await this.#retryUnlock();
    const job = await this.#forgetting.begin(subject, selection);
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
      kept: 'file',
      key: this.#keys.state,
      file: { at: 'open' },
      quarantined: this.#rows.brokenCount + this.#keys.brokenSecretCount,
      clock: this.#time.state,
      rotation: this.#keys.rotation,
    };
  }

  /** Locks this process at once, and all others as soon as the database has told them. */
  lock(why?: string): void {
    this.#lockHere(why);
    this.#locks += 1;
    void this.#queue.run(() => this.#set.setMeta(LOCKS, this.#lockCount() + 1)).catch(() => undefined);
  }

  #lockHere(why?: string): void {
    this.#keys.lock(why);
    this.#set.events.publishReset();
  }

  #lockCount(): number {
    return Number(this.#set.meta(LOCKS) ?? 0);
  }

  async refresh(): Promise<void> {
    this.#requireOpen();
    await this.#feed.refresh();
  }

  /** Follows another process that locked the memory or changed its keys. */
  #reread(topics: ReadonlySet<string>): void {
    if (topics.has('meta') || topics.has('revocations')) this.#vaultRevision += 1;
    if (!topics.has('meta')) return;
    const locks = this.#lockCount();
    if (locks > this.#locks) this.#lockHere('the owner locked it');
    this.#locks = Math.max(locks, this.#locks);
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
    if (!this.#keys.heldKeys) this.#set.events.publishReset();
    this.#keyAvailable();
    return state;
  }

  now(): number {
    return this.#time.now();
  }

  async trustClock(): Promise<void> {
    await this.#write(() => this.#time.trustWall());
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
    this.#sweeper.stop();
    await this.whenIdle();
    if (this.#keys.heldKeys) {
      await this.#time.review();
      await this.#queue.run(() => this.#time.save()).catch(() => undefined);
      await this.#recordPending().catch(() => undefined);
    }
    await this.#database.close();
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

  /**
   * Reads rows from the database. The change number is read at the same time, because it only tells whether the memory was locked
   * meanwhile.
   */
  async #read<T>(query: () => Promise<T>): Promise<T> {
    this.#requireOpen();
    this.#sweeper.catchUp();
    const refreshed = this.#feed.refresh();
    if (!this.#keys.heldKeys) {
      await refreshed;
      await this.#retryUnlock();
    }
    this.#time.saveWhenDue();
    this.#keys.requireKeys();
    const [result] = await Promise.all([query(), refreshed]);
    this.#keys.requireKeys();
    return result;
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
    this.#sweeper.scheduleAt(this.now() + FIRST_SWEEP_MS);
  }

  async #beginCall(): Promise<void> {
    this.#requireOpen();
    this.#sweeper.catchUp();
    await this.#feed.refresh();
  }

  #requireOpen(): void {
    if (this.#closed) throw new Failure('store_unavailable', 'The memory has been closed; start Helmdeck Memory again.');
  }
}
