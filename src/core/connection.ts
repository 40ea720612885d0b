import type { Database, Statement } from 'better-sqlite3';
import type { Transactions } from './commit-queue.ts';
import { connect } from './database.ts';
import { PageScrubber } from './page-scrubber.ts';
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

/** How kinds are written in the file. Numbers that have shipped never change their meaning. */
export const KINDS = { fact: 1, history: 2, audit: 3, cache: 4, pack: 5, activity: 6 } as const satisfies Record<Kind, number>;
export const ALL_KINDS = Object.keys(KINDS) as readonly Kind[];

export interface NamespaceRow extends Required<Namespace> {
  id: number;
}

/**
 * The one connection to the file, with its statements. After a disk error it is replaced by a new one that reads the
 * file's state afresh: what an old one still has in memory may never have reached the disk.
 */
export class Connection implements Transactions {
  readonly #file: string;
  readonly #scrubber: PageScrubber;
  #db: Database;
  #sql: Statements;
  #ids = new Map<string, number>();
  #logLimit = LOG_FRAMES;

  constructor(file: string, db: Database) {
    this.#file = file;
    this.#db = db;
    this.#sql = prepare(db);
    this.#scrubber = new PageScrubber(file);
  }

  get db(): Database {
    return this.#db;
  }

  get sql(): Statements {
    return this.#sql;
  }

  reopen(): void {
    this.#ids.clear();
    this.#db.close();
    this.#db = connect(this.#file);
    this.#sql = prepare(this.#db);
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

  keepMeta(name: string, value: number | Buffer | string): void {
    this.#sql.keepMeta.run(name, value);
  }
}

const COLUMNS = 'rowid AS row, key_hash, category, created_at, updated_at, expires_at, sealed';

/** A longer log is moved into the file after the commit that made it so. */
const LOG_FRAMES = 1000;

/** `kind <> 2` repeats the condition of the partial indexes, word for word: without it SQLite does not use them. */
const HERE = 'namespace = ? AND kind = ? AND kind <> 2';

/** Both ends of a page are places in an index, so the last page costs what the first does. */
const NEWEST_FIRST = 'AND updated_at <= ? AND (updated_at < ? OR rowid < ?) ORDER BY updated_at DESC, rowid DESC';
const SOONEST_FIRST = 'AND expires_at >= ? AND (expires_at > ? OR rowid > ?) ORDER BY expires_at, rowid';

export type Statements = Record<keyof ReturnType<typeof prepare>, Statement>;

function prepare(db: Database) {
  const page = (where: string, after: string): Statement =>
    db.prepare(`SELECT ${COLUMNS} FROM entry WHERE ${HERE} AND expires_at > ? AND expires_at < ? ${where} ${after} LIMIT ?`);
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    rollback: db.prepare('ROLLBACK'),
    savepoint: db.prepare('SAVEPOINT job'),
    release: db.prepare('RELEASE job'),
    rollbackTo: db.prepare('ROLLBACK TO job'),

    // Asks how long the log is, and does nothing.
    logSize: db.prepare('PRAGMA wal_checkpoint(NOOP)'),
    checkpoint: db.prepare('PRAGMA wal_checkpoint(PASSIVE)'),
    truncateLog: db.prepare('PRAGMA wal_checkpoint(TRUNCATE)'),
    dropPages: db.prepare('PRAGMA shrink_memory'),

    meta: db.prepare('SELECT value FROM meta WHERE name = ?').pluck(),
    keepMeta: db.prepare('INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value'),

    namespaceId: db.prepare('SELECT id FROM namespace WHERE subject = ? AND session = ?').pluck(),
    insertNamespace: db.prepare('INSERT INTO namespace (subject, session) VALUES (?, ?)'),
    namespaces: db.prepare('SELECT id, subject, session FROM namespace'),
    deleteEmptySessions: db.prepare(
      "DELETE FROM namespace WHERE session <> '' AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.namespace = namespace.id)",
    ),

    find: db.prepare(`SELECT ${COLUMNS} FROM entry WHERE ${HERE} AND key_hash = ?`),
    insert: db.prepare(
      'INSERT INTO entry (namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
    ),
    update: db.prepare('UPDATE entry SET key_hash = ?, category = ?, updated_at = ?, expires_at = ?, sealed = ? WHERE rowid = ?'),
    deleteRow: db.prepare('DELETE FROM entry WHERE rowid = ?'),

    versions: db.prepare(
      `SELECT ${COLUMNS} FROM entry WHERE namespace = ? AND kind = 2 AND key_hash = ? AND expires_at > ? ORDER BY updated_at DESC`,
    ),
    trimVersions: db.prepare(
      `DELETE FROM entry WHERE rowid IN (
         SELECT rowid FROM entry WHERE namespace = ? AND kind = 2 AND key_hash = ? ORDER BY updated_at DESC LIMIT -1 OFFSET ?)`,
    ),
    deleteVersions: db.prepare('DELETE FROM entry WHERE namespace = ? AND kind = 2 AND key_hash = ?'),

    newest: page('', NEWEST_FIRST),
    newestInCategory: page('AND category = ?', NEWEST_FIRST),
    soonest: page('', SOONEST_FIRST),
    soonestInCategory: page('AND category = ?', SOONEST_FIRST),
    count: db.prepare(`SELECT count(*) FROM entry WHERE ${HERE} AND expires_at > ?`).pluck(),
    countInCategory: db.prepare(`SELECT count(*) FROM entry WHERE ${HERE} AND expires_at > ? AND category = ?`).pluck(),

    all: db.prepare(`SELECT ${COLUMNS} FROM entry WHERE namespace = ? AND kind = ?`),

    expired: db.prepare('SELECT rowid AS row, key_hash FROM entry WHERE namespace = ? AND kind = ? AND expires_at <= ? LIMIT ?'),
    nextExpiry: db.prepare('SELECT min(expires_at) FROM entry WHERE namespace = ? AND kind = ?').pluck(),

    keyRecords: db.prepare('SELECT id, role, proof, source, segment FROM master_key'),
    keepKeyRecord: db.prepare('INSERT INTO master_key (id, role, proof, source, segment) VALUES (?, ?, ?, ?, 0)'),
    keepSegment: db.prepare('UPDATE master_key SET segment = ? WHERE id = ?'),
    retireKey: db.prepare("UPDATE master_key SET role = 'retiring' WHERE role = 'current'"),
    dropRetired: db.prepare("DELETE FROM master_key WHERE role = 'retiring'"),
    keepKeySource: db.prepare("UPDATE master_key SET source = ? WHERE role = 'current'"),

    walk: db.prepare(`SELECT ${COLUMNS}, kind, namespace FROM entry WHERE rowid > ? ORDER BY rowid LIMIT ?`),
    countRows: db.prepare('SELECT count(*) FROM entry').pluck(),

    keepHashTombstone: db.prepare('INSERT INTO tombstone (at, hash) VALUES (?, ?)'),
    keepScopeTombstone: db.prepare('INSERT INTO tombstone (at, subject, session, kind, category) VALUES (?, ?, ?, ?, ?)'),
    tombstones: db.prepare('SELECT at, hash, subject, session, kind, category FROM tombstone'),
    dropOldTombstones: db.prepare('DELETE FROM tombstone WHERE at <= ?'),
  };
}
