import type { Database } from 'better-sqlite3';
import type { Transactions } from './commit-queue.ts';
import { connect } from './database.ts';
import { PageScrubber } from './page-scrubber.ts';
import { type KindStatements, prepare, prepareKinds, type Statements } from './statements.ts';
import type { Kind, Namespace } from './store.ts';

/** A row as it stands in the file; the open columns are claims until the seal has been opened. */
export interface Row {
  row: number;
  key_hash: Buffer;
  category: string;
  created_at: number;
  updated_at: number;
  expires_at: number;
  sealed: Buffer;
}

export interface NamespaceRow extends Required<Namespace> {
  id: number;
}

/** A longer log is moved into the file after the commit that made it so. */
const LOG_FRAMES = 1000;

/**
 * The one connection to the file, with its statements. After a disk error it is replaced by a new one that reads the
 * file's state afresh: what an old one still has in memory may never have reached the disk.
 */
export class Connection implements Transactions {
  readonly #file: string;
  readonly #scrubber: PageScrubber;
  #db: Database;
  #sql: Statements;
  #kinds: Record<Kind, KindStatements>;
  #ids = new Map<string, number>();
  #logLimit = LOG_FRAMES;

  constructor(file: string, db: Database) {
    this.#file = file;
    this.#db = db;
    this.#sql = prepare(db);
    this.#kinds = prepareKinds(db);
    this.#scrubber = new PageScrubber(file);
  }

  get db(): Database {
    return this.#db;
  }

  get sql(): Statements {
    return this.#sql;
  }

  of(kind: Kind): KindStatements {
    return this.#kinds[kind];
  }

  reopen(): void {
    this.#ids.clear();
    this.#db.close();
    this.#db = connect(this.#file);
    this.#sql = prepare(this.#db);
    this.#kinds = prepareKinds(this.#db);
  }

  close(): void {
    this.#db.close();
    this.#scrubber.close();
  }

  get open(): boolean {
    return this.#db.inTransaction;
  }

  begin(): void {
    this.#sql.begin.run();
  }

  commit(): void {
    this.#sql.commit.run();
    try {
      this.#keepLogShort();
    } catch {
      // What was committed is on the disk; whatever is wrong with it meets the next one who writes.
    }
  }

  rollback(): void {
    this.#ids.clear();
    if (this.#db.inTransaction) this.#sql.rollback.run();
  }

  savepoint(): void {
    this.#sql.savepoint.run();
  }

  release(): void {
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
  emptyLog(): boolean {
    this.#scrubber.note(this.#logFrames());
    if ((this.#sql.truncateLog.get() as { busy: number }).busy !== 0) return false;
    this.#scrubber.logMoved();
    this.#logLimit = LOG_FRAMES;
    // Pages that SQLite holds in memory would bring back what was cleared.
    if (this.#scrubber.scrub()) this.#sql.dropPages.run();
    return true;
  }

  /** True when an earlier run left something to clear. */
  survey(): Promise<boolean> {
    return this.#scrubber.survey();
  }

  #keepLogShort(): void {
    const frames = this.#logFrames();
    if (frames < this.#logLimit) return;
    this.#scrubber.note(frames);
    const { checkpointed } = this.#sql.checkpoint.get() as { checkpointed: number };
    if (checkpointed === frames) this.#scrubber.logMoved();
    // Somebody reads it: try again when it has grown by as much once more.
    this.#logLimit = checkpointed === frames ? LOG_FRAMES : frames + LOG_FRAMES;
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

  keepNamespace(namespace: Namespace): number {
    const found = this.namespaceId(namespace);
    if (found !== undefined) return found;
    return Number(this.#sql.insertNamespace.run(namespace.subject, namespace.session ?? '').lastInsertRowid);
  }

  /** A session that holds nothing any more leaves no name behind. */
  dropEmptySessions(): void {
    if (this.#sql.deleteEmptySessions.run().changes > 0) this.#ids.clear();
  }

  namespaces(): NamespaceRow[] {
    return this.#sql.namespaces.all() as NamespaceRow[];
  }

  meta(name: string): unknown {
    return this.#sql.meta.get(name);
  }

  dropMeta(name: string): void {
    this.#sql.dropMeta.run(name);
  }

  keepMeta(name: string, value: number | Buffer | string): void {
    this.#sql.keepMeta.run(name, value);
  }
}
