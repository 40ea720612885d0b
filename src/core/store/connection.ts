import type { Database, Statement } from 'better-sqlite3';
import { DatabaseFile } from '../file/database-file.ts';
import { errorCodeOf } from '../file/files.ts';
import type { Transactions } from './commit-queue.ts';
import { connect, PAGE_BYTES, damaged } from './database.ts';
import { migrations } from './migrations/index.ts';
import { CategoryCounters } from './overview.ts';
import { UsageCounters } from './quota.ts';
import { requireSchema } from './schema.ts';
import { type KindStatements, prepare, prepareKind, type Statements } from './statements.ts';
import type { Kind, Namespace } from './store.ts';

/** A row as it stands in the file; the open columns are claims until the seal has been opened. */
export interface EntryRow {
  row: number;
  key_hash: Buffer;
  category: string;
  created_at: number;
  updated_at: number;
  expires_at: number;
  sealed: Buffer;
}

/** Asked for what expires after it, a query leaves nothing out. */
export const INCLUDE_EXPIRED = -Number.MAX_SAFE_INTEGER;

export interface NamespaceRow extends Required<Namespace> {
  id: number;
}

/** A longer log is moved into the file soon after the commit that made it so. */
const LOG_FRAMES = 1000;
/** A file that grows makes the next flush of the log dear, so it grows seldom and by much. */
const AHEAD_BYTES = 128 * PAGE_BYTES;
/** More pages that may have to be cleared are not left for later. */
const CHANGED_PAGES = 4000;

/**
 * The one connection to the file, with its statements. After a disk error it is replaced by a new one that reads the
 * file's state afresh: what an old one still has in memory may never have reached the disk.
 */
export class Connection implements Transactions {
  readonly #path: string | undefined;
  readonly #file: DatabaseFile | undefined;
  #db: Database;
  #sql: Statements;
  readonly #kinds = new Map<Kind, KindStatements>();
  #ids = new Map<string, number>();
  #tally: UsageCounters | undefined;
  #categories: CategoryCounters | undefined;
  #counting = false;
  #logLimit = LOG_FRAMES;
  /** How long the file is, as far as that is known. */
  #room = 0;
  #ahead = AHEAD_BYTES;
  /** The one that was last compared with ours. */
  #schemaVersion: number | undefined;

  /** Without a path the database is in RAM, and everything that concerns its file does nothing. */
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

  /** Counted when first asked for, because that reads the whole file, and kept from then on. */
  get usageCounters(): UsageCounters {
    this.#counting = true;
    return (this.#tally ??= new UsageCounters(this.#db));
  }

  /** The same of categories. Not inside a transaction, which could take it back. */
  get categoryCounters(): CategoryCounters {
    return (this.#categories ??= new CategoryCounters(this.#db));
  }

  /** From now on the counters are there inside every transaction. */
  startCounting(): void {
    this.#counting = true;
  }

  /** Whether it was counted already; asking for the counters would begin it. */
  get hasUsageCounters(): boolean {
    return this.#tally !== undefined;
  }

  statementsOf(kind: Kind): KindStatements {
    const known = this.#kinds.get(kind);
    if (known) return known;
    const prepared = fitting(() => prepareKind(this.#db, kind));
    this.#kinds.set(kind, prepared);
    return prepared;
  }

  /** What changed in the meantime is not known: `survey` has to look for it. */
  reopen(): void {
    if (this.#path === undefined) return this.rollback();
    this.#ids.clear();
    this.#tally = undefined;
    this.#categories = undefined;
    this.#kinds.clear();
    this.#db.close();
    this.#logMoved();
    this.#logLimit = LOG_FRAMES;
    this.#db = connect(this.#path);
    this.#sql = statementsFor(this.#db);
  }

  /** Throws when another program has changed the schema of the open file. SQLite counts every change, so this is cheap. */
  requireOwnSchema(): void {
    const version = this.#sql.schemaVersion.get() as number;
    if (version === this.#schemaVersion) return;
    requireSchema(this.#db, migrations, 'exact');
    this.#schemaVersion = version;
  }

  close(): void {
    this.#db.close();
    this.#file?.close();
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }

  begin(): void {
    // Made inside, the counters would be taken back with a transaction that fails.
    if (this.#counting) void this.usageCounters;
    this.#sql.begin.run();
  }

  commit(): void {
    this.#makeRoom();
    this.#sql.commit.run();
  }

  rollback(): void {
    this.#ids.clear();
    if (this.#db.inTransaction) this.#sql.rollback.run();
  }

  savepoint(): void {
    this.#sql.savepoint.run();
  }

  releaseSavepoint(): void {
    this.#sql.release.run();
  }

  rollbackToSavepoint(): void {
    this.#ids.clear();
    this.#sql.rollbackTo.run();
    this.#sql.release.run();
  }

  /**
   * Moves every page of the log into the file, cuts the log to nothing and clears what the changed pages still hold of
   * rows that are gone. False while somebody still reads the log.
   */
  truncateLog(): boolean {
    if (!this.#file) return true;
    this.#file.recordChangedPages(this.#logFrames());
    if (this.#checkpoint(this.#sql.truncateLog).busy !== 0) return false;
    this.#logLimit = LOG_FRAMES;
    return this.#scrub();
  }

  /**
   * Whatever it answers, SQLite may have moved all of the log and begin it anew with the next commit, and may have cut
   * the file to what it holds: nothing that was known of either is known any more.
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
    this.#room = 0;
  }

  /** As the only one who may write, and only if nobody has written since the log was emptied. */
  #scrub(): boolean {
    this.#sql.begin.run();
    let scrubbed = false;
    try {
      if (!this.#file?.logIsEmpty()) return false;
      scrubbed = this.#file.scrub();
    } finally {
      this.#sql.rollback.run();
      // Pages that SQLite holds in memory would bring back what was cleared.
      if (scrubbed) this.#sql.dropPageCache.run();
    }
    return true;
  }

  /** Pages that changed since they were last cleared. */
  get changedPages(): number {
    return this.#file?.changedPages ?? 0;
  }

  /** True when an earlier run left something to clear. */
  scanForRemnants(): Promise<boolean> {
    return this.#file?.scanForRemnants() ?? Promise.resolve(false);
  }

  /**
   * A commit needs room in the log only; that the file has to grow shows when the log is moved. On a disk that is full by
   * then nothing could be purged any more, so the room is taken now, and a commit that finds none is refused.
   */
  #makeRoom(): void {
    if (!this.#file) return;
    const needed = (this.#sql.pageCount.get() as number) * PAGE_BYTES;
    if (needed > this.#room) this.#room = this.#file.preallocate(needed, this.#ahead);
  }

  /** Where every byte counts, no commit takes more room than it needs. */
  withoutPreallocation<T>(step: () => T): T {
    this.#ahead = 0;
    try {
      return step();
    } finally {
      this.#ahead = AHEAD_BYTES;
    }
  }

  /**
   * Moves a long log into the file. Not part of the commit: nobody's answer has to wait for it. True when so many pages
   * have changed that they should be cleared before they become more, in a step of its own.
   */
  checkpointLongLog(): boolean {
    const frames = this.#logFrames();
    if (!this.#file || frames < this.#logLimit) return false;
    this.#file.recordChangedPages(frames);
    const { checkpointed } = this.#checkpoint(this.#sql.checkpoint);
    // Somebody reads it: try again when it has grown by as much once more.
    this.#logLimit = checkpointed === frames ? LOG_FRAMES : frames + LOG_FRAMES;
    return this.#file.changedPages >= CHANGED_PAGES;
  }

  /** Moves a log of at least so many pages into the file. True when it did: then the log can be emptied, in a step of its own. */
  checkpointLogFrom(frames: number): boolean {
    const long = this.#logFrames();
    if (!this.#file || long < frames) return false;
    this.#file.recordChangedPages(long);
    const { checkpointed } = this.#checkpoint(this.#sql.checkpoint);
    return checkpointed === long;
  }

  #logFrames(): number {
    return Math.max(0, (this.#sql.logSize.get() as { log: number }).log);
  }

  /** Undefined when nothing was ever kept there. */
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

  /** A session that holds nothing any more leaves no name behind. */
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
    return fitting(() => prepare(db));
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Whatever statements do not fit is not the schema that this program made. */
function fitting<T>(prepared: () => T): T {
  try {
    return prepared();
  } catch (error) {
    if (errorCodeOf(error) === 'SQLITE_ERROR') throw damaged('its tables are not those of a memory', error);
    throw error;
  }
}
