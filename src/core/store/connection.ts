import type { Database, Statement } from 'better-sqlite3';
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

/** A row of the file. Only an opened seal proves that the other columns are genuine. */
export interface EntryRow {
  row: number;
  key_hash: Buffer;
  category: string;
  created_at: number;
  updated_at: number;
  expires_at: number;
  sealed: Buffer;
}

/** A query for entries that expire after this time returns expired ones too. */
export const INCLUDE_EXPIRED = -Number.MAX_SAFE_INTEGER;

export interface NamespaceRow extends Required<Namespace> {
  id: number;
}

/** A write-ahead log of this many pages is moved into the file after the commit. */
const LOG_FRAMES = 1000;
/** A file that grows makes the next flush slow, so it grows seldom and by a lot. */
const PREALLOCATED_BYTES = 128 * PAGE_BYTES;
/** When this many pages may hold deleted bytes, they are scrubbed at once. */
const CHANGED_PAGES = 4000;

/**
 * The one connection to the file, with its statements, its transactions and the events of its entries. After a disk error `reopen`
 * replaces the SQLite connection, because the old one may hold pages that never reached the disk.
 */
export class Connection {
  /** Published by `commit`, dropped by `rollback`. */
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
  #logLimit = LOG_FRAMES;
  /** The known length of the file. */
  #fileBytes = 0;
  #preallocatedBytes = PREALLOCATED_BYTES;
  /** The schema version that was last compared with the migrations. */
  #schemaVersion: number | undefined;

  /** Without a path the database is in RAM, and the methods for its file do nothing. */
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

  /** Created on first use, which reads the whole file. */
  get usageCounters(): UsageCounters {
    this.#countsUsage = true;
    return (this.#usageCounters ??= new UsageCounters(this.#db));
  }

  /** Do not create them in a transaction, because a rollback would delete their tables. */
  get categoryCounters(): CategoryCounters {
    return (this.#categoryCounters ??= new CategoryCounters(this.#db));
  }

  /** From now on every transaction has usage counters. */
  countUsage(): void {
    this.#countsUsage = true;
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

  /** Forgets which pages may hold deleted bytes. `scanForRemnants` finds them again. */
  reopen(): void {
    if (this.#path === undefined) return this.rollback();
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

  /** Runs a step in its own transaction: commits it, or rolls it back if it throws. */
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
    // Counters created inside a transaction would be lost by its rollback.
    if (this.#countsUsage) this.#usageCounters ??= new UsageCounters(this.#db);
    this.#sql.begin.run();
    // A trigger of another program could keep each row that is deleted. From here on no program can add one.
    this.#requireSchema();
  }

  /** SQLite counts every change of the schema, so this is cheap. */
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

  /** Works also after SQLite itself has rolled back. */
  rollback(): void {
    this.onRollback?.();
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
    this.events.rollbackToSavepoint();
    this.#ids.clear();
    this.#sql.rollbackTo.run();
    this.#sql.release.run();
  }

  /**
   * Moves every page of the log into the file, truncates the log, and scrubs the unused parts of the changed pages. False while
   * another connection reads the log.
   */
  truncateLog(): boolean {
    if (!this.#file) return true;
    this.#file.recordChangedPages(this.#logFrames());
    if (this.#checkpoint(this.#sql.truncateLog).busy !== 0) return false;
    this.#logLimit = LOG_FRAMES;
    return this.#scrub();
  }

  /** After a checkpoint, whatever its result, SQLite may restart the log and shorten the file. */
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

  /** Holds the write lock, and does nothing if there was a commit since the log was truncated. */
  #scrub(): boolean {
    this.#sql.begin.run();
    let scrubbed = false;
    try {
      if (!this.#file?.logIsEmpty()) return false;
      scrubbed = this.#file.scrub();
    } finally {
      this.#sql.rollback.run();
      // SQLite would write its cached pages back over the scrubbed ones.
      if (scrubbed) this.#sql.dropPageCache.run();
    }
    return true;
  }

  /** Pages that changed since they were last scrubbed. */
  get changedPages(): number {
    return this.#file?.changedPages ?? 0;
  }

  /** True if an earlier run left deleted bytes in the file. */
  scanForRemnants(): Promise<boolean> {
    return this.#file?.scanForRemnants() ?? Promise.resolve(false);
  }

  /**
   * A commit needs disk space in the log only, and the file grows later, when the log is moved. On a disk that is full by then
   * nothing could be purged. So the file grows now, and a commit that finds no space is refused.
   */
  #preallocate(): void {
    if (!this.#file) return;
    const needed = (this.#sql.pageCount.get() as number) * PAGE_BYTES;
    if (needed > this.#fileBytes) this.#fileBytes = this.#file.preallocate(needed, this.#preallocatedBytes);
  }

  /** On a full disk, a commit in this step takes no more space than it needs. */
  withoutPreallocation<T>(step: () => T): T {
    this.#preallocatedBytes = 0;
    try {
      return step();
    } finally {
      this.#preallocatedBytes = PREALLOCATED_BYTES;
    }
  }

  /**
   * Moves a long log into the file. Runs after the commit, so that no response waits for it. True if enough pages have changed
   * to scrub them at once, in a separate step.
   */
  checkpointLongLog(): boolean {
    const frames = this.#logFrames();
    if (!this.#file || frames < this.#logLimit) return false;
    this.#file.recordChangedPages(frames);
    const { checkpointed } = this.#checkpoint(this.#sql.checkpoint);
    // Another connection reads the log, so the next attempt waits until it has grown by as much again.
    this.#logLimit = checkpointed === frames ? LOG_FRAMES : frames + LOG_FRAMES;
    return this.#file.changedPages >= CHANGED_PAGES;
  }

  /** Moves a log of at least this many pages into the file. If true, the log can be truncated, in a separate step. */
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

  /** Undefined if nothing was ever stored there. */
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

  /** Deletes the names of sessions that hold no entries. */
  deleteEmptySessions(): void {
    if (this.#sql.deleteEmptySessions.run().changes > 0) this.#ids.clear();
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
}

function statementsFor(db: Database): Statements {
  try {
    return requireTables(() => prepare(db));
  } catch (error) {
    db.close();
    throw error;
  }
}

/** A statement that SQLite cannot prepare means that the file has other tables. */
function requireTables<T>(prepareAll: () => T): T {
  try {
    return prepareAll();
  } catch (error) {
    if (errorCodeOf(error) === 'SQLITE_ERROR') throw damaged('its tables are not those of a memory', error);
    throw error;
  }
}
