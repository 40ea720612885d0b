import type { Database, Statement } from 'better-sqlite3';
import type { KeyRecord } from '../crypto/find-keys.ts';
import type { KeyTables } from '../crypto/key-keeper.ts';
import { DatabaseFile } from '../file/database-file.ts';
import { errorCodeOf } from '../file/files.ts';
import { CategoryCounters } from './category-counters.ts';
import { connect, PAGE_BYTES, damaged } from './database.ts';
import { EntryEvents } from './events.ts';
import { migrations } from './migrations/index.ts';
import { UsageCounters } from './quota.ts';
import { requireSchema } from './schema.ts';
import { type KindStatements, prepare, prepareKind, type Statements } from './statements.ts';
import type { Kind, Namespace } from './store.ts';

/** A row of the `entry` table. Only a valid `sealed` column proves that the other columns are genuine. */
export interface EntryRow {
  row: number;
  key_hash: Buffer;
  category: string;
  created_at: number;
  updated_at: number;
  expires_at: number;
  sealed: Buffer;
}

/** Lower bound of `expires_at` for queries that also return expired entries. */
export const INCLUDE_EXPIRED = -Number.MAX_SAFE_INTEGER;

export interface NamespaceRow extends Required<Namespace> {
  id: number;
}

/**
 * Number of pages in the write-ahead log at which a commit starts a checkpoint. With 1,000 pages, checkpoints take 60 % more of the
 * time of a store. With 4,000 pages, they take no less, but each stops the other requests for twice as long.
 */
const LOG_FRAMES = 2000;
/** Bytes by which the file grows at once. Growth makes the next flush slow, so the file grows rarely and in large steps. */
const PREALLOCATED_BYTES = 128 * PAGE_BYTES;
/** Number of changed pages that starts a scrub, because changed pages can contain deleted bytes. */
const CHANGED_PAGES = 4000;

/**
 * The only connection to the file, with its prepared statements, transactions and entry events. After a disk error, `reopen`
 * replaces the SQLite connection, because the old connection can have cached pages that never reached the disk.
 */
export class Connection implements KeyTables {
  /** Events of entries. `commit` publishes them and `rollback` discards them. */
  readonly events = new EntryEvents();
  /** Called when a transaction or a savepoint is rolled back. */
  onRollback: (() => void) | undefined;
  readonly #path: string | undefined;
  readonly #file: DatabaseFile | undefined;
  #db: Database;
  #sql: Statements;
  readonly #kinds = new Map<Kind, KindStatements>();
  #ids = new Map<string, number>();
  #usageCounters: UsageCounters | undefined;
  #categoryCounters: CategoryCounters | undefined;
  #countsUsage = false;
  #generation = 0;
  #logLimit = LOG_FRAMES;
  /** Last known length of the file in bytes; 0 if unknown. */
  #fileBytes = 0;
  #preallocatedBytes = PREALLOCATED_BYTES;
  /** SQLite's schema counter at the time of the last successful schema check. */
  #schemaVersion: number | undefined;

  /** If `path` is undefined, the database is in RAM, and the methods that work on its file do nothing. */
  constructor(path: string | undefined, db: Database) {
    this.#path = path;
    this.#db = db;
    this.#sql = statementsFor(db);
    this.#file = path === undefined ? undefined : new DatabaseFile(path);
  }

  get db(): Database {
    return this.#db;
  }

  get sql(): Statements {
    return this.#sql;
  }

  /** Counters of the storage used. The first call creates them, which reads the whole file. */
  get usageCounters(): UsageCounters {
    this.#countsUsage = true;
    return (this.#usageCounters ??= new UsageCounters(this.#db));
  }

  /**
   * Counters of rows per category. The first call creates them and must not be inside a transaction, because a rollback would
   * delete their tables.
   */
  get categoryCounters(): CategoryCounters {
    return (this.#categoryCounters ??= new CategoryCounters(this.#db));
  }

  /** Makes every later transaction maintain the usage counters. */
  countUsage(): void {
    this.#countsUsage = true;
  }

  /**
   * A number that increases whenever the numbers of namespaces and authors in a cache may be wrong: after a rollback, when the
   * SQLite connection is replaced, and when sessions are deleted.
   */
  get generation(): number {
    return this.#generation;
  }

  get hasUsageCounters(): boolean {
    return this.#usageCounters !== undefined;
  }

  statementsOf(kind: Kind): KindStatements {
    const known = this.#kinds.get(kind);
    if (known) return known;
    const prepared = requireTables(() => prepareKind(this.#db, kind));
    this.#kinds.set(kind, prepared);
    return prepared;
  }

  /**
   * Replaces the SQLite connection. Closing the old connection can change pages without recording them, so call
   * `scanForRemnants` afterwards.
   */
  reopen(): void {
    if (this.#path === undefined) return this.rollback();
    this.#generation += 1;
    this.#ids.clear();
    this.#usageCounters = undefined;
    this.#categoryCounters = undefined;
    this.#kinds.clear();
    this.#db.close();
    this.#logMoved();
    this.#logLimit = LOG_FRAMES;
    this.#db = connect(this.#path);
    this.#sql = statementsFor(this.#db);
  }

  close(): void {
    this.#db.close();
    this.#file?.close();
  }

  transaction<T>(step: () => T): T {
    try {
      this.begin();
      const result = step();
      this.commit();
      return result;
    } catch (error) {
      this.rollback();
      throw error;
    }
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }

  begin(): void {
    // Create the counters before the transaction begins, because a rollback would delete their tables.
    if (this.#countsUsage) this.#usageCounters ??= new UsageCounters(this.#db);
    this.#sql.begin.run();
    // A trigger that another program added could insert deleted rows again. During the transaction, no other program can add a
    // trigger.
    this.#requireSchema();
  }

  /**
   * Throws if the schema was changed outside Helmdeck Memory. The check is cheap, because SQLite keeps a counter of schema changes.
   */
  #requireSchema(): void {
    const version = this.#sql.schemaVersion.get() as number;
    if (version === this.#schemaVersion) return;
    requireSchema(this.#db, migrations, 'exact');
    this.#schemaVersion = version;
  }

  commit(): void {
    this.#preallocate();
    this.#sql.commit.run();
    this.events.publish();
  }

  /** Rolls back the transaction. Does nothing to the database if SQLite already rolled back. */
  rollback(): void {
    this.onRollback?.();
    this.#generation += 1;
    this.events.rollback();
    this.#ids.clear();
    if (this.#db.inTransaction) this.#sql.rollback.run();
  }

  savepoint(): void {
    this.events.savepoint();
    this.#sql.savepoint.run();
  }

  releaseSavepoint(): void {
    this.#sql.release.run();
  }

  rollbackToSavepoint(): void {
    this.onRollback?.();
    this.#generation += 1;
    this.events.rollbackToSavepoint();
    this.#ids.clear();
    this.#sql.rollbackTo.run();
    this.#sql.release.run();
  }

  /**
   * Moves every page of the log into the file, truncates the log, and scrubs the unused parts of the changed pages. Returns false
   * while another connection reads the log.
   */
  truncateLog(): boolean {
    if (!this.#file) return true;
    this.#file.recordChangedPages(this.#logFrames());
    if (this.#checkpoint(this.#sql.truncateLog).busy !== 0) return false;
    this.#logLimit = LOG_FRAMES;
    return this.#scrub();
  }

  /**
   * Runs a checkpoint statement. Afterwards, whatever the result, SQLite can restart the log or shorten the file, so cached sizes
   * are discarded.
   */
  #checkpoint(statement: Statement): { busy: number; checkpointed: number } {
    try {
      return statement.get() as { busy: number; checkpointed: number };
    } finally {
      this.#logMoved();
    }
  }

  #logMoved(): void {
    this.#file?.logRestarted();
    this.#fileBytes = 0;
  }

  /**
   * Scrubs the changed pages while holding the write lock. Returns false, without scrubbing, if there was a commit after the log
   * was truncated.
   */
  #scrub(): boolean {
    this.#sql.begin.run();
    let scrubbed = false;
    try {
      if (!this.#file?.logIsEmpty()) return false;
      scrubbed = this.#file.scrub();
    } finally {
      this.#sql.rollback.run();
      // Drop SQLite's cached pages, because SQLite would otherwise write them over the scrubbed pages.
      if (scrubbed) this.#sql.dropPageCache.run();
    }
    return true;
  }

  get changedPages(): number {
    return this.#file?.changedPages ?? 0;
  }

  /** Returns true if an earlier run left deleted bytes in the file. */
  scanForRemnants(): Promise<boolean> {
    return this.#file?.scanForRemnants() ?? Promise.resolve(false);
  }

  /**
   * Grows the file before the commit, so that a commit without enough disk space fails. Otherwise the commit would need space only
   * in the log. The file would grow later, at the checkpoint, and on a full disk nothing could be purged.
   */
  #preallocate(): void {
    if (!this.#file) return;
    const needed = (this.#sql.pageCount.get() as number) * PAGE_BYTES;
    if (needed > this.#fileBytes) this.#fileBytes = this.#file.preallocate(needed, this.#preallocatedBytes);
  }

  /** Runs `step` with the minimum growth of the file, so that its commit can succeed on a nearly full disk. */
  withoutPreallocation<T>(step: () => T): T {
    this.#preallocatedBytes = 0;
    try {
      return step();
    } finally {
      this.#preallocatedBytes = PREALLOCATED_BYTES;
    }
  }

  /**
   * Moves a long log into the file. Called after a commit, so that no response waits for it. Returns true if the changed pages
   * should then be scrubbed, in a separate step.
   */
  checkpointLongLog(): boolean {
    const frames = this.#logFrames();
    if (!this.#file || frames < this.#logLimit) return false;
    this.#file.recordChangedPages(frames);
    const { checkpointed } = this.#checkpoint(this.#sql.checkpoint);
    // If another connection reads the log, the next attempt waits until the log has grown by `LOG_FRAMES` again.
    this.#logLimit = checkpointed === frames ? LOG_FRAMES : frames + LOG_FRAMES;
    return this.#file.changedPages >= CHANGED_PAGES;
  }

  /**
   * Moves the log into the file if it has at least `frames` pages. Returns true if the log can then be truncated, in a separate
   * step.
   */
  checkpointLogFrom(frames: number): boolean {
    const length = this.#logFrames();
    if (!this.#file || length < frames) return false;
    this.#file.recordChangedPages(length);
    const { checkpointed } = this.#checkpoint(this.#sql.checkpoint);
    return checkpointed === length;
  }

  #logFrames(): number {
    return Math.max(0, (this.#sql.logSize.get() as { log: number }).log);
  }

  /** Returns the id of a namespace, or undefined if the database does not contain it. */
  namespaceId({ subject, session = '' }: Namespace): number | undefined {
    const name = `${subject.length}:${subject}${session}`;
    const known = this.#ids.get(name);
    if (known !== undefined) return known;
    const found = this.#sql.namespaceId.get(subject, session) as number | undefined;
    if (found !== undefined) this.#ids.set(name, found);
    return found;
  }

  ensureNamespace(namespace: Namespace): number {
    const found = this.namespaceId(namespace);
    if (found !== undefined) return found;
    return Number(this.#sql.insertNamespace.run(namespace.subject, namespace.session ?? '').lastInsertRowid);
  }

  /** Deletes sessions without entries, with their authors, because another session can get the same number. */
  deleteEmptySessions(): void {
    if (this.#sql.deleteEmptySessions.run().changes === 0) return;
    this.#sql.deleteAuthorsOfSessions.run();
    this.#generation += 1;
    this.#ids.clear();
  }

  namespaces(): NamespaceRow[] {
    return this.#sql.namespaces.all() as NamespaceRow[];
  }

  meta(name: string): unknown {
    return this.#sql.meta.get(name);
  }

  deleteMeta(name: string): void {
    this.#sql.deleteMeta.run(name);
  }

  setMeta(name: string, value: number | Buffer | string): void {
    this.#sql.setMeta.run(name, value);
  }

  secretNames(): string[] {
    return this.#sql.metaBlobs.all() as string[];
  }

  keyRecords(): (KeyRecord & { segment: number })[] {
    return this.#sql.keyRecords.all() as (KeyRecord & { segment: number })[];
  }

  insertKeyRecord({ id, role, proof, source }: KeyRecord): void {
    this.#sql.insertKeyRecord.run(id, role, proof, source);
  }

  setSegment(keyId: Buffer, segment: number): void {
    this.#sql.updateSegment.run(segment, keyId);
  }

  retireKey(): void {
    this.#sql.retireKey.run();
  }

  deleteRetiredKey(): void {
    this.#sql.deleteRetiredKey.run();
  }
}

function statementsFor(db: Database): Statements {
  try {
    return requireTables(() => prepare(db));
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Prepares statements. If SQLite rejects a statement, the file does not have the tables of a memory. */
function requireTables<T>(prepareAll: () => T): T {
  try {
    return prepareAll();
  } catch (error) {
    if (errorCodeOf(error) === 'SQLITE_ERROR') throw damaged('it does not have the tables of a memory', error);
    throw error;
  }
}
