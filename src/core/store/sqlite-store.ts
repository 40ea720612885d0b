import { setImmediate as nextTurn } from 'node:timers/promises';
import { asFailure, Failure } from '../../contract/failure.ts';
import { QUOTA } from '../../contract/limits.ts';
import type { KeyState, StoreStatus } from '../../contract/status.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { DiskReserve, FreeSpace } from '../file/disk-space.ts';
import { Disk } from '../file/disk.ts';
import type { Clock } from '../time/clock.ts';
import { StoredClock } from '../time/stored-clock.ts';
import { FileUpkeep } from '../upkeep/upkeep.ts';
import { CommitQueue } from './commit-queue.ts';
import type { Connection } from './connection.ts';
import { EntryReader } from './entry-reader.ts';
import { EntryWriter } from './entry-writer.ts';
import { isUnchanged } from './entry.ts';
import { ChangeNotifier } from './events.ts';
import { FairEviction } from './fair-eviction.ts';
import {
  type ForgetJob,
  Forgetting,
  namespaceOf,
  needsKey,
  type ForgetProgress,
  FORGET_START,
  isRecordDue,
} from './forgetting.ts';
import { OverviewReader } from './overview.ts';
import { SealedRows } from './sealed-rows.ts';
import { SqliteVectors } from './sqlite-vectors.ts';
import type { StoreContext } from './store-context.ts';
import type {
  Author,
  YieldTurn,
  SpaceChange,
  EntryEvent,
  ForgetResult,
  MemoryStore,
  Namespace,
  ActivityNote,
  Quota,
  RevertResult,
  Selection,
  Space,
  SpaceKind,
  SweepResult,
} from './store.ts';
import { Sweeper } from './sweeper.ts';
import { SqliteVault } from './vault.ts';

/**
 * Pages in the write-ahead log at which a forget starts a checkpoint. Otherwise the end of the forget would move all pages at
 * once.
 */
const LOG_PAGES = 200;
/** Milliseconds from startup to the first sweep, so that the sweep does not delay the first requests. */
const FIRST_SWEEP_MS = 500;
const IMMEDIATELY = 0;
/** Maximum activity notes that wait in RAM for the key or for disk space. When another note is added, the oldest is dropped. */
const MAX_UNRECORDED = 1000;

export interface SqliteParts {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly clock: Clock;
  /** `folder`, `reserve`, `freeSpace` and `lock` are absent for a memory in RAM. */
  readonly folder?: string;
  readonly reserve?: DiskReserve;
  readonly freeSpace?: FreeSpace;
  /** Absent if storage is unlimited. */
  readonly quota?: Quota;
  readonly lock?: Disposable;
}

/** A memory in one SQLite database, with encrypted entries. */
export class SqliteStore implements MemoryStore {
  readonly upkeep: FileUpkeep | undefined;
  readonly vault: SqliteVault;
  readonly vectors: SqliteVectors;
  readonly #parts: SqliteParts;
  readonly #context: StoreContext & { readonly sweeper: Sweeper };
  readonly #forgetting: Forgetting;
  readonly #reader: EntryReader;
  readonly #writer: EntryWriter;
  readonly #overviews: OverviewReader;
  readonly #unrecorded: { readonly subject: string; readonly note: ActivityNote; readonly at: number }[] = [];
  #closed = false;

  constructor(parts: SqliteParts) {
    const { connection, keys, clock, folder, quota, freeSpace } = parts;
    this.#parts = parts;
    const rows = new SealedRows(connection, keys, connection.events);
    const disk = new Disk(parts);
    const queue = new CommitQueue(connection, disk);
    const changes = new ChangeNotifier();
    const time = new StoredClock({ connection, keys, queue, clock, corrected: () => sweeper.scheduleAt(IMMEDIATELY) });
    const sweeper = new Sweeper({ connection, keys, rows, time, disk, queue, changes, clock });
    this.#context = { connection, keys, rows, time, disk, queue, sweeper, changes, quota, freeSpace };
    this.#forgetting = new Forgetting(this.#context);
    this.#reader = new EntryReader(this.#context);
    this.#overviews = new OverviewReader(this.#context);
    const fairEviction = new FairEviction(connection, rows, this.#reader);
    this.#writer = new EntryWriter(this.#context, { reader: this.#reader, forgetting: this.#forgetting, fairEviction });
    this.vault = new SqliteVault(this.#context, {
      write: (job) => this.#write(job),
      writeUnopened: (job) => this.#writeUnopened(job),
      read: (query) => this.#read(query),
      readUnopened: (query) => this.#readUnopened(query),
    });
    this.vectors = new SqliteVectors(this.#context, {
      read: (query) => this.#read(query),
      write: (job) => this.#writeInBackground(job),
      writeUnopened: async (job) => {
        this.#beginCall();
        return queue.runInBackground(job);
      },
    });
    if (folder === undefined) return;
    const now = (): number => time.now();
    this.upkeep = new FileUpkeep({ connection, keys, rows, queue, folder, now, isClockInDoubt: () => time.inDoubt });
    sweeper.scheduleAt(now() + FIRST_SWEEP_MS);
    this.#keyAvailable();
  }

  space(namespace: Namespace, kind: SpaceKind): Space {
    const [reader, writer] = [this.#reader, this.#writer];
    const write = <T>(author: Author, note: ActivityNote | undefined, job: () => T): Promise<T> =>
      this.#writeAndNotify({ namespace, kind }, { author, note }, job);
    return {
      kind,
      put: (draft, note, expected) => write(draft.author, note, () => writer.put(namespace, kind, draft, { note, expected })),
      change: (key, change, note) => write(change.author, note, () => writer.change(namespace, kind, key, change, note)),
      get: (key) => this.#read(() => reader.findLiving(namespace, kind, key)?.entry),
      page: (query) => this.#read(() => reader.page(namespace, kind, query)),
      count: (category) => this.#readUnopened(() => reader.count(namespace, kind, category)),
      countExpiringBefore: (before) => this.#readUnopened(() => reader.countEnding(namespace, kind, before)),
      history: (key) => this.#read(() => (kind === 'fact' ? reader.history(namespace, key) : [])),
      overview: (most) => this.#read(() => this.#overviews.overview(namespace, kind, most)),
      withHistory: (key) => this.#read(() => reader.withHistory(namespace, key)),
      restoreForgotten: (fact, note) => write(note.author, note, () => writer.restoreForgotten(namespace, fact, note)),
      revert: (key, range, note) => {
        const revert = (): RevertResult => writer.revert(namespace, kind, key, range, note);
        return note ? write(note.author, note, revert) : this.#read(revert);
      },
    };
  }

  namespaces(kind: SpaceKind = 'fact'): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]> {
    return this.#readUnopened(() =>
      this.#context.connection
        .namespaces()
        .map((row) => ({ namespace: namespaceOf(row), count: this.#reader.count(namespaceOf(row), kind) }))
        .filter(({ count }) => count > 0),
    );
  }

  async forget(
    subject: string,
    selection: Selection,
    note?: ActivityNote,
    yieldTurn: YieldTurn = nextTurn,
  ): Promise<ForgetResult> {
    const { connection, disk, keys, changes } = this.#context;
    this.#beginCall();
    if (needsKey(selection) && !keys.heldKeys) await this.#retryUnlock();
    // Read the namespaces before the forget, because the forget deletes the namespaces of sessions that it empties.
    const namespaces = disk
      .attempt(() => connection.namespaces().map(namespaceOf))
      .filter((namespace) => namespace.subject === subject);
    const job = disk.attempt(() => this.#forgetting.begin(subject, selection));
    const clearsRecord = selection.kinds.includes('activity');
    let progress = FORGET_START;
    try {
      while (!progress.done) {
        if (progress !== FORGET_START) await yieldTurn();
        this.#beginCall();
        progress = await this.#forgetSlice(job, progress, { subject, note, clearsRecord });
        await disk.shortenLog(LOG_PAGES, yieldTurn);
      }
    } catch (error) {
      // The slices before the error are committed, so the bytes that they deleted must be purged.
      disk.purgeSoon();
      throw error;
    } finally {
      if (isRecordDue(progress, clearsRecord)) {
        this.#notifyForgotten(namespaces, selection);
        if (note) changes.notify({ namespace: { subject }, kind: 'activity' });
        if (note && !progress.recorded) this.#recordLater(subject, note);
      }
    }
    const olderBackups = this.upkeep?.backups().length ?? 0;
    return { deleted: progress.entries, purged: await disk.purge(progress.rows > 0), olderBackups };
  }

  /**
   * Runs one slice of a forget in a commit shared with other writers. On a full disk, uses a separate commit and the disk space
   * of the reserve.
   */
  async #forgetSlice(
    job: ForgetJob,
    from: ForgetProgress,
    { subject, note, clearsRecord }: { subject: string; note: ActivityNote | undefined; clearsRecord: boolean },
  ): Promise<ForgetProgress> {
    const { disk, keys, queue, time } = this.#context;
    const slice = (): ForgetProgress => {
      const to = job.delete(from);
      if (!note || to.recorded || !isRecordDue(to, clearsRecord) || !keys.heldKeys) return to;
      this.#writer.recordActivity({ subject }, note);
      time.saveIfDue();
      return { ...to, recorded: true };
    };
    try {
      return await queue.run(slice, subject);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
    try {
      return disk.commitInReserve(slice);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      // The forget must succeed even if there is no space to record it.
      return disk.commitInReserve(() => job.delete(from));
    }
  }

  async recordActivity(subject: string, note: ActivityNote): Promise<void> {
    this.#beginCall();
    this.#recordLater(subject, note);
    if (!this.#context.keys.heldKeys) await this.#retryUnlock();
    await this.#recordPending();
  }

  #recordLater(subject: string, note: ActivityNote): void {
    this.#unrecorded.push({ subject, note, at: this.now() });
    if (this.#unrecorded.length > MAX_UNRECORDED) this.#unrecorded.shift();
  }

  /** Writes the pending notes if the key is available. If writing fails, the notes stay pending. */
  async #recordPending(): Promise<void> {
    const { disk, keys, queue, changes } = this.#context;
    if (!keys.heldKeys || this.#unrecorded.length === 0) return;
    const pending = this.#unrecorded.splice(0);
    const record = (): void => {
      for (const { subject, note, at } of pending) this.#writer.recordActivity({ subject }, note, { at });
    };
    try {
      await queue.run(record).catch((error: unknown) => {
        if (!isDiskFull(error)) throw error;
        disk.commitInReserve(record);
      });
    } catch (error) {
      this.#unrecorded.unshift(...pending);
      throw error;
    }
    for (const { subject } of pending) changes.notify({ namespace: { subject }, kind: 'activity' });
  }

  async countMatching(subject: string, selection: Selection, yieldTurn: YieldTurn = nextTurn): Promise<number> {
    const step = <T>(read: () => T): Promise<T> => (needsKey(selection) ? this.#read(read) : this.#readUnopened(read));
    const job = await step(() => this.#forgetting.beginCount(subject, selection));
    let progress = await step(() => job.count(FORGET_START));
    while (!progress.done) {
      await yieldTurn();
      const from = progress;
      progress = await step(() => job.count(from));
    }
    return progress.entries;
  }

  async sweep(limit: number): Promise<SweepResult> {
    this.#requireOpen();
    return this.#context.sweeper.sweep(limit);
  }

  usage(subject: string): Promise<{ readonly used: Quota; readonly most: Quota }> {
    const most = this.#context.quota ?? QUOTA;
    return this.#readUnopened(() => ({ used: this.#writer.usage(subject), most }));
  }

  status(): StoreStatus {
    const { disk, keys, rows, time } = this.#context;
    return {
      kept: 'file',
      key: keys.state,
      file: disk.state,
      quarantined: rows.brokenCount + keys.brokenSecretCount,
      clock: time.state,
      rotation: keys.rotation,
    };
  }

  lock(why?: string): void {
    this.#context.keys.lock(why);
    this.#dropOpened();
  }

  #dropOpened(): void {
    this.#overviews.clear();
    this.#context.connection.events.publishReset();
  }

  onEntryEvent(listener: (event: EntryEvent) => void): Disposable {
    return this.#context.connection.events.subscribe(listener);
  }

  onChange(listener: (changed: SpaceChange) => void): Disposable {
    return this.#context.changes.subscribe(listener);
  }

  onKeyChange(listener: () => void): Disposable {
    return this.#context.keys.onChange(listener);
  }

  async unlock(): Promise<KeyState> {
    const { disk, keys } = this.#context;
    this.#beginCall();
    const state = await keys.unlock().catch((error: unknown) => {
      throw disk.explain(error).failure;
    });
    this.#beginCall();
    // The key was removed from its source while the memory was open. As after a lock, decrypted entries must not stay in RAM.
    if (!keys.heldKeys) this.#dropOpened();
    this.#keyAvailable();
    return state;
  }

  now(): number {
    return this.#context.time.now();
  }

  async trustClock(): Promise<void> {
    const { connection, sweeper, time, changes } = this.#context;
    await this.#write(() => time.trustWall());
    for (const row of connection.namespaces()) changes.notify({ namespace: namespaceOf(row), kind: 'fact' });
    sweeper.scheduleAt(IMMEDIATELY);
  }

  countExpiredFacts(): Promise<number> {
    const { connection } = this.#context;
    const now = this.#parts.clock.now();
    return this.#readUnopened(() => {
      const { countExpired } = connection.statementsOf('fact');
      return connection.namespaces().reduce((sum, { id }) => sum + (countExpired.get({ id, now }) as number), 0);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { disk, keys, queue, sweeper, time } = this.#context;
    sweeper.stop();
    await this.upkeep?.stop();
    await queue.whenIdle();
    // Without a key, nothing was written, so the file must stay unchanged.
    if (keys.heldKeys) {
      // A short-lived process has no sweep that would review the clock, so review it here.
      await time.review();
      await queue.run(() => time.save()).catch(() => undefined);
      await this.#recordPending().catch(() => undefined);
    }
    await disk.close();
    this.#parts.lock?.[Symbol.dispose]();
  }

  #notifyForgotten(namespaces: readonly Namespace[], { kinds, session }: Selection): void {
    for (const namespace of namespaces) {
      if (session !== undefined && (namespace.session ?? '') !== session) continue;
      for (const kind of kinds) if (kind !== 'history') this.#context.changes.notify({ namespace, kind });
    }
  }

  async #writeAndNotify<T>(
    changed: SpaceChange,
    { author, note }: { author: Author; note: ActivityNote | undefined },
    job: () => T,
  ): Promise<T> {
    const { namespace } = changed;
    const result = await this.#write(job, `${namespace.subject} ${author.token} ${author.client}`);
    if (isUnchanged(result)) return result;
    this.#context.changes.notify(changed);
    if (note) this.#context.changes.notify({ namespace, kind: 'activity' });
    return result;
  }

  async #write<T>(job: () => T, lane?: string): Promise<T> {
    const { disk, keys, queue, time } = this.#context;
    this.#beginCall();
    if (!keys.heldKeys) await this.#retryUnlock();
    time.saveWhenDue();
    disk.refillReserve();
    return queue.run(() => {
      const result = job();
      time.saveIfDue();
      return result;
    }, lane);
  }

  /** Runs a write that no caller waits for. */
  async #writeInBackground<T>(job: () => T): Promise<T> {
    const { keys, queue } = this.#context;
    this.#beginCall();
    if (!keys.heldKeys) await this.#retryUnlock();
    return queue.runInBackground(job);
  }

  async #read<T>(query: () => T): Promise<T> {
    const { disk, keys, time } = this.#context;
    this.#beginCall();
    if (!keys.heldKeys) await this.#retryUnlock();
    time.saveWhenDue();
    keys.requireKeys();
    return disk.attempt(query);
  }

  async #writeUnopened<T>(job: () => T): Promise<T> {
    this.#beginCall();
    return this.#context.queue.run(job);
  }

  /** Reads columns that are not encrypted. Works in every key state. */
  async #readUnopened<T>(query: () => T): Promise<T> {
    this.#beginCall();
    return this.#context.disk.attempt(query);
  }

  /** Reads the key sources again if no key is held, because the owner may have unlocked the keychain. */
  async #retryUnlock(): Promise<void> {
    const { disk, keys } = this.#context;
    await keys.retryUnlock().catch((error: unknown) => {
      throw disk.explain(error).failure;
    });
    this.#keyAvailable();
  }

  #keyAvailable(): void {
    const { disk, keys, sweeper, time } = this.#context;
    if (!keys.heldKeys) return;
    disk.attempt(() => time.load());
    // A memory in RAM has no pending work here, because it is never locked and is empty at startup.
    if (!this.upkeep) return;
    void this.#recordPending().catch(() => undefined);
    this.upkeep.resume();
    // Sweep only now, because the stored time of the last run, loaded above, is needed to know which entries have expired.
    sweeper.scheduleAt(this.now() + FIRST_SWEEP_MS);
  }

  #beginCall(): void {
    this.#requireOpen();
    this.#context.sweeper.catchUp();
  }

  #requireOpen(): void {
    if (this.#closed) throw new Failure('store_unavailable', 'The memory has been closed; start Helmdeck Memory again.');
    this.#context.disk.require();
  }
}

const isDiskFull = (error: unknown): boolean => asFailure(error).code === 'disk_full';
