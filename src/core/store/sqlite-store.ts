import { setImmediate as nextTurn } from 'node:timers/promises';
import { asFailure, Failure } from '../../contract/failure.ts';
import { QUOTA, TOMBSTONE_TTL } from '../../contract/limits.ts';
import type { KeyState, StoreStatus } from '../../contract/status.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { DiskReserve, FreeSpace } from '../file/disk-space.ts';
import { Disk } from '../file/disk.ts';
import type { Clock } from '../time/clock.ts';
import { StoredClock } from '../time/stored-clock.ts';
import { FileUpkeep } from '../upkeep/upkeep.ts';
import { CommitQueue } from './commit-queue.ts';
import type { Connection, EntryRow } from './connection.ts';
import { correctDates } from './correct-dates.ts';
import { EntryReader } from './entry-reader.ts';
import { EntryWriter } from './entry-writer.ts';
import { isUnchanged } from './entry.ts';
import { ChangeNotifier, EntryEvents } from './events.ts';
import { type ForgetJob, Forgetting, namespaceOf, needsKey, type ForgetProgress, FORGET_START } from './forgetting.ts';
import { OverviewReader } from './overview.ts';
import { SealedRows } from './sealed-rows.ts';
import { KIND_BY_NUMBER } from './statements.ts';
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
  RevertOutcome,
  Selection,
  Space,
  SpaceKind,
  SweepResult,
} from './store.ts';
import { Sweeper } from './sweeper.ts';
import { SqliteVault } from './vault.ts';

/** Entries swept in a commit that others wait for too: few enough that they do not notice. */
const SWEPT_BESIDE = 8;
/** Log pages after which a forget moves them into the file, so that nobody waits for all of them at its end. */
const LOG_PAGES = 200;
/** What expired while nobody was here is seen by nobody, and the first answer should not have to wait for its removal. */
const FIRST_SWEEP_MS = 500;
/** While the clock is in doubt, it is looked at again this often. */
const REVIEW_MS = 3_600_000;
const AT_ONCE = 0;
/** Notes that wait in RAM for the key or for disk space. When there are more, the oldest is dropped. */
const UNRECORDED = 1000;

export interface SqliteParts {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly clock: Clock;
  /** Absent, with the next two and the lock, for a memory in RAM. */
  readonly folder?: string;
  readonly reserve?: DiskReserve;
  /** Absent where nobody counts. */
  readonly quota?: Quota;
  readonly room?: FreeSpace;
  /** Held for as long as the store is open. */
  readonly lock?: Disposable;
}

/** The memory in one SQLite file, sealed. */
export class SqliteStore implements MemoryStore {
  readonly upkeep: FileUpkeep | undefined;
  readonly vault: SqliteVault;
  readonly #parts: SqliteParts;
  readonly #connection: Connection;
  readonly #keys: KeyKeeper;
  readonly #rows: SealedRows;
  readonly #queue: CommitQueue;
  readonly #disk: Disk;
  readonly #time: StoredClock;
  readonly #sweeper: Sweeper;
  readonly #forgetting: Forgetting;
  readonly #reader: EntryReader;
  readonly #writer: EntryWriter;
  readonly #overviews: OverviewReader;
  readonly #changes = new ChangeNotifier();
  readonly #journal = new EntryEvents();
  /** A sweep goes on whose bytes are not cleared yet. */
  #unpurged = false;
  /** Notes of actions whose rows could not be written yet, oldest first. */
  readonly #unrecorded: { readonly subject: string; readonly note: ActivityNote; readonly at: number }[] = [];
  #closed = false;

  constructor(parts: SqliteParts) {
    const { connection, keys, clock, folder } = parts;
    this.#parts = parts;
    this.#connection = connection;
    this.#keys = keys;
    this.#rows = new SealedRows(connection, keys, this.#journal);
    this.#disk = new Disk({ ...parts, takenBack: () => keys.abandonSegment(), journal: this.#journal });
    this.#queue = new CommitQueue(this.#disk.transactions(), (error) => this.#disk.explain(error));
    this.#time = new StoredClock({
      connection,
      keys,
      queue: this.#queue,
      clock,
      corrected: () => this.#sweeper.scheduleAt(AT_ONCE),
    });
    this.#sweeper = new Sweeper({ sweep: (limit) => this.sweep(limit), now: () => this.#time.now(), clock });
    this.#forgetting = new Forgetting({
      connection,
      keys,
      rows: this.#rows,
      now: () => this.now(),
      trusted: () => this.#time.trusted(),
    });
    const deps = { connection, keys, rows: this.#rows, now: () => this.now() };
    this.#reader = new EntryReader(deps);
    this.#overviews = new OverviewReader(deps);
    this.#writer = new EntryWriter({
      ...deps,
      reader: this.#reader,
      forgetting: this.#forgetting,
      events: this.#journal,
      quota: parts.quota,
      room: parts.room,
      inDoubt: () => this.#time.inDoubt,
      trusted: () => this.#time.trusted(),
      purgeSoon: () => this.#disk.purgeSoon(),
      ends: (moment) => this.#sweeper.scheduleAt(moment),
    });
    this.vault = new SqliteVault({
      ...deps,
      write: (job) => this.#write(job),
      writeUnopened: (job) => this.#writeUnopened(job),
      read: (query) => this.#read(query),
      readUnopened: (query) => this.#readUnopened(query),
      now: () => Math.min(this.now(), this.#time.trusted()),
    });
    if (folder === undefined) return;
    this.upkeep = new FileUpkeep({
      ...parts,
      folder,
      rows: this.#rows,
      queue: this.#queue,
      now: () => this.now(),
      doubtful: () => this.#time.inDoubt,
    });
    this.#sweeper.scheduleAt(this.now() + FIRST_SWEEP_MS);
    this.#keyed();
  }

  space(namespace: Namespace, kind: SpaceKind): Space {
    const [reader, writer] = [this.#reader, this.#writer];
    const write = <T>(author: Author | undefined, note: ActivityNote | undefined, job: () => T): Promise<T> =>
      this.#writeAndTell({ namespace, kind }, { author, note }, job);
    return {
      kind,
      put: (draft, note) => write(draft.author, note, () => writer.put(namespace, kind, draft, note)),
      change: (key, change, note) => write(change.author, note, () => writer.change(namespace, kind, key, change, note)),
      get: (key) => this.#read(() => reader.findLiving(namespace, kind, key)?.entry),
      page: (query) => this.#read(() => reader.page(namespace, kind, query)),
      count: (category) => this.#readUnopened(() => reader.count(namespace, kind, category)),
      countExpiringBefore: (before) => this.#readUnopened(() => reader.countEnding(namespace, kind, before)),
      history: (key) => this.#read(() => (kind === 'fact' ? reader.history(namespace, key) : [])),
      overview: (most) => this.#read(() => this.#overviews.overview(namespace, kind, most)),
      withHistory: (key) => this.#read(() => reader.withHistory(namespace, key)),
      restoreForgotten: (fact, note) => write(note.author, note, () => writer.restoreForgotten(namespace, fact, note)),
      revert: (key, unwanted, note) => {
        const revert = (): RevertOutcome => writer.revert(namespace, kind, key, unwanted, note);
        return note ? write(note.author, note, revert) : this.#read(revert);
      },
    };
  }

  namespaces(kind: SpaceKind = 'fact'): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]> {
    return this.#readUnopened(() =>
      this.#connection
        .namespaces()
        .map((row) => ({ namespace: namespaceOf(row), count: this.#reader.count(namespaceOf(row), kind) }))
        .filter(({ count }) => count > 0),
    );
  }

  async forget(subject: string, selection: Selection, note?: ActivityNote, between: YieldTurn = nextTurn): Promise<ForgetResult> {
    this.#requireOpen();
    if (needsKey(selection)) await this.#awake();
    // Afterwards a session that is left empty has no name any more.
    const theirs = this.#disk
      .attempt(() => this.#connection.namespaces().map(namespaceOf))
      .filter((each) => each.subject === subject);
    const job = this.#disk.attempt(() => this.#forgetting.begin(subject, selection));
    const clearsRecord = selection.kinds.includes('activity');
    let progress = FORGET_START;
    try {
      while (!progress.done) {
        if (progress !== FORGET_START) await between();
        this.#requireOpen();
        progress = await this.#forgetSlice(job, progress, { subject, note, clearsRecord });
        await this.#disk.shortenLog(LOG_PAGES, between);
      }
    } catch (error) {
      // What is deleted stays deleted, and its bytes are purged.
      this.#disk.purgeSoon();
      throw error;
    } finally {
      if (isRecordDue(progress, clearsRecord)) {
        this.#tellOfForgetting(theirs, selection);
        if (note) this.#changes.notify({ namespace: { subject }, kind: 'activity' });
        if (note && !progress.recorded) this.#addUnrecorded(subject, note);
      }
    }
    // Copies made before are outside the live files, and their owner must know of them.
    return {
      deleted: progress.entries,
      purged: await this.#disk.purge(progress.rows > 0),
      olderBackups: this.upkeep?.backups().length ?? 0,
    };
  }

  /** One commit, shared with other writers. On a full disk it is a commit of its own, with the reserve for its log. */
  async #forgetSlice(
    job: ForgetJob,
    from: ForgetProgress,
    { subject, note, clearsRecord }: { subject: string; note: ActivityNote | undefined; clearsRecord: boolean },
  ): Promise<ForgetProgress> {
    const slice = (): ForgetProgress => {
      const to = job.delete(from);
      if (!note || to.recorded || !isRecordDue(to, clearsRecord) || !this.#keys.heldKeys) return to;
      this.#writer.recordActivity({ subject }, note);
      this.#time.saveIfDue();
      return { ...to, recorded: true };
    };
    try {
      return await this.#queue.run(slice, subject);
    } catch (error) {
      if (asFailure(error).code !== 'disk_full') throw error;
    }
    try {
      return this.#disk.commitInReserve(slice);
    } catch (error) {
      if (asFailure(error).code !== 'disk_full') throw error;
      // Forgetting matters more than its row.
      return this.#disk.commitInReserve(() => job.delete(from));
    }
  }

  async recordActivity(subject: string, note: ActivityNote): Promise<void> {
    this.#requireOpen();
    this.#addUnrecorded(subject, note);
    if (!this.#keys.heldKeys) await this.#awake();
    await this.#recordPending();
  }

  #addUnrecorded(subject: string, note: ActivityNote): void {
    this.#unrecorded.push({ subject, note, at: this.now() });
    if (this.#unrecorded.length > UNRECORDED) this.#unrecorded.shift();
  }

  /** Writes the rows of actions that could not be recorded when they were done: the memory was locked, or the disk full. */
  async #recordPending(): Promise<void> {
    if (!this.#keys.heldKeys || this.#unrecorded.length === 0) return;
    const pending = this.#unrecorded.splice(0);
    const record = (): void => {
      for (const { subject, note, at } of pending) this.#writer.recordActivity({ subject }, note, { at });
    };
    try {
      const lane = pending.at(-1);
      await this.#queue
        .run(record, lane && `${lane.subject} ${lane.note.author.token} ${lane.note.author.client}`)
        .catch((error: unknown) => {
          if (asFailure(error).code !== 'disk_full') throw error;
          this.#disk.commitInReserve(record);
        });
    } catch (error) {
      this.#unrecorded.unshift(...pending);
      throw error;
    }
    for (const { subject } of pending) this.#changes.notify({ namespace: { subject }, kind: 'activity' });
  }

  async countMatching(subject: string, selection: Selection, between: YieldTurn = nextTurn): Promise<number> {
    const step = <T>(read: () => T): Promise<T> => (needsKey(selection) ? this.#read(read) : this.#readUnopened(read));
    const job = await step(() => this.#forgetting.beginCount(subject, selection));
    let progress = await step(() => job.count(FORGET_START));
    while (!progress.done) {
      await between();
      const from = progress;
      progress = await step(() => job.count(from));
    }
    return progress.entries;
  }

  async sweep(limit: number): Promise<SweepResult> {
    this.#requireOpen();
    await this.#time.review();
    this.#time.saveWhenDue();
    try {
      await this.#correctDates();
      const sweep = (alone: boolean) => this.#sweep(alone ? limit : Math.min(limit, SWEPT_BESIDE));
      const { changed, ...swept } = await this.#queue.runInBackground(sweep);
      for (const each of changed) this.#changes.notify(each);
      this.#unpurged ||= swept.removed > 0;
      const more = swept.removed > 0 && swept.next !== undefined && swept.next <= this.now();
      // Clearing pages is dear, and serves all slices of a sweep that come before it.
      if (!more) this.#purgeSwept();
      this.#disk.refillReserve();
      return swept;
    } catch (error) {
      this.#purgeSwept();
      throw error;
    }
  }

  usage(subject: string): Promise<{ readonly used: Quota; readonly most: Quota }> {
    const most = this.#parts.quota ?? QUOTA;
    return this.#readUnopened(() => ({ used: this.#writer.usage(subject), most }));
  }

  status(): StoreStatus {
    return {
      kept: 'file',
      key: this.#keys.state,
      file: this.#disk.state,
      quarantined: this.#rows.brokenCount + this.#keys.brokenSecretCount,
      clock: this.#time.state,
      rotation: this.upkeep?.rotating ?? { at: 'none' },
    };
  }

  lock(why?: string): void {
    this.#keys.lock(why);
    this.#dropOpened();
  }

  #dropOpened(): void {
    this.#overviews.clear();
    this.#journal.publishReset();
  }

  onEntryEvent(hear: (change: EntryEvent) => void): Disposable {
    return this.#journal.subscribe(hear);
  }

  onChange(hear: (changed: SpaceChange) => void): Disposable {
    return this.#changes.subscribe(hear);
  }

  onKeyChange(listener: () => void): Disposable {
    return this.#keys.onChange(listener);
  }

  async unlock(): Promise<KeyState> {
    this.#requireOpen();
    const state = await this.#keys.unlock().catch((error: unknown) => {
      throw this.#disk.explain(error).told;
    });
    this.#requireOpen();
    // The key was taken away while the memory was open: nothing that it had opened stays, as after a lock.
    if (!this.#keys.heldKeys) this.#dropOpened();
    this.#keyed();
    return state;
  }

  now(): number {
    const now = this.#time.now();
    this.#sweeper.catchUp(now);
    return now;
  }

  async trustClock(): Promise<void> {
    await this.#write(() => this.#time.trustWall());
    for (const row of this.#connection.namespaces()) this.#changes.notify({ namespace: namespaceOf(row), kind: 'fact' });
    this.#sweeper.scheduleAt(AT_ONCE);
  }

  countExpiredFacts(): Promise<number> {
    const now = this.#parts.clock.now();
    return this.#readUnopened(() => {
      const { countExpired } = this.#connection.statementsOf('fact');
      return this.#connection.namespaces().reduce((sum, { id }) => sum + (countExpired.get(id, now) as number), 0);
    });
  }

  /** Waits for the end of a rotation, because a fact and its versions must stay under the same key. */
  async #correctDates(): Promise<void> {
    const { heldKeys: custody } = this.#keys;
    if (!this.#time.hasUntrustedDates || !custody) return;
    if (custody.ring.retiring) return this.#sweeper.scheduleAt(this.#time.now() + REVIEW_MS);
    const changed = await correctDates({
      connection: this.#connection,
      rows: this.#rows,
      now: () => this.#time.now(),
      commit: (job) => this.#queue.runInBackground(job),
      read: (query) => this.#read(query),
    });
    await this.#queue.run(() => this.#time.clearUntrustedDates());
    for (const each of changed) this.#changes.notify(each);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#sweeper.stop();
    await this.upkeep?.stop();
    await this.#queue.whenIdle();
    // Without a key nothing has been written, and the file stays as it was found.
    if (this.#keys.heldKeys) {
      // A program that runs for a moment only has no sweep that would do it.
      await this.#time.review();
      await this.#queue.run(() => this.#time.save()).catch(() => undefined);
      await this.#recordPending().catch(() => undefined);
    }
    await this.#disk.close();
    this.#parts.lock?.[Symbol.dispose]();
  }

  #sweep(limit: number): SweepResult & { changed: readonly SpaceChange[] } {
    const { connection, now, rows } = { connection: this.#connection, now: this.now(), rows: this.#rows };
    if (this.#time.inDoubt) return { removed: 0, next: now + (this.#time.reviewIn || REVIEW_MS), changed: [] };
    const namespaces = new Map(connection.namespaces().map((row) => [row.id, namespaceOf(row)]));
    const changed = new Map<string, SpaceChange>();
    const expired = connection.sql.expired.all(now, limit) as (Pick<EntryRow, 'row' | 'key_hash'> & {
      namespace: number;
      kind: number;
    })[];
    for (const row of expired) {
      const [namespace, kind] = [namespaces.get(row.namespace), KIND_BY_NUMBER.get(row.kind)];
      if (!namespace || !kind) continue;
      rows.deleteWithVersions(row.namespace, kind, row);
      if (kind !== 'history') changed.set(`${row.namespace} ${kind}`, { namespace, kind });
    }
    const removed = expired.length;
    // There may be more of them.
    if (removed === limit) return { removed, next: now, changed: [...changed.values()] };
    connection.deleteEmptySessions();
    connection.sql.deleteOldTombstones.run(now - TOMBSTONE_TTL * 1000);
    const next = connection.sql.nextExpiry.get() as number | null;
    return { removed, changed: [...changed.values()], ...(next !== null && { next }) };
  }

  #purgeSwept(): void {
    if (this.#unpurged) this.#disk.purgeSoon();
    this.#unpurged = false;
  }

  #tellOfForgetting(namespaces: readonly Namespace[], { kinds, session }: Selection): void {
    for (const namespace of namespaces) {
      if (session !== undefined && (namespace.session ?? '') !== session) continue;
      for (const kind of kinds) if (kind !== 'history') this.#changes.notify({ namespace, kind });
    }
  }

  async #writeAndTell<T>(
    changed: SpaceChange,
    { author, note }: { author: Author | undefined; note: ActivityNote | undefined },
    job: () => T,
  ): Promise<T> {
    const { subject } = changed.namespace;
    const result = await this.#write(job, author ? `${subject} ${author.token} ${author.client}` : subject);
    if (isUnchanged(result)) return result;
    this.#changes.notify(changed);
    if (note) this.#changes.notify({ namespace: changed.namespace, kind: 'activity' });
    return result;
  }

  async #write<T>(job: () => T, lane?: string): Promise<T> {
    this.#requireOpen();
    if (!this.#keys.heldKeys) await this.#awake();
    this.#time.saveWhenDue();
    this.#disk.refillReserve();
    return this.#queue.run(() => {
      const result = job();
      this.#time.saveIfDue();
      return result;
    }, lane);
  }

  async #read<T>(query: () => T): Promise<T> {
    this.#requireOpen();
    if (!this.#keys.heldKeys) await this.#awake();
    this.#time.saveWhenDue();
    void this.#keys.ring;
    return this.#disk.attempt(query);
  }

  async #writeUnopened<T>(job: () => T): Promise<T> {
    this.#requireOpen();
    return this.#queue.run(job);
  }

  /** For what stands beside the seals: it is told in every key state. */
  async #readUnopened<T>(query: () => T): Promise<T> {
    this.#requireOpen();
    return this.#disk.attempt(query);
  }

  /** The key's place may have been opened since. */
  async #awake(): Promise<void> {
    if (this.#keys.heldKeys) return;
    await this.#keys.retryUnlock().catch((error: unknown) => {
      throw this.#disk.explain(error).told;
    });
    this.#keyed();
  }

  /** What waited for the key goes on. */
  #keyed(): void {
    if (!this.#keys.heldKeys) return;
    this.#disk.attempt(() => this.#time.load());
    // A memory in RAM is new: nothing in it can have expired yet.
    if (!this.upkeep) return;
    void this.#recordPending().catch(() => undefined);
    this.upkeep.resume();
    // The time of the last run is known now, and with it what may go.
    this.#sweeper.scheduleAt(this.now() + FIRST_SWEEP_MS);
  }

  #requireOpen(): void {
    if (this.#closed) throw new Failure('store_unavailable', 'The memory has been closed; start Helmdeck Memory again.');
    this.#disk.require();
  }
}

/** Whoever clears the record must be named in it, even when nothing else was left to forget. */
const isRecordDue = ({ entries, done }: ForgetProgress, clearsRecord: boolean): boolean => entries > 0 || (clearsRecord && done);
