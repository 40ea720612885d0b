import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { Connection } from '../store/connection.ts';
import { storedCategory } from '../store/entry.ts';
import { SealedRows } from '../store/sealed-rows.ts';
import { KIND_BY_NUMBER } from '../store/statements.ts';
import type { Entry, Namespace } from '../store/store.ts';
import type { CopiedRow, CopyTarget, NumberedTombstone, SmallTables } from './copy-memory.ts';
import { MOVED, MOVING } from './moved.ts';
import type { RowWithPlace } from './rotation.ts';

const TOMBSTONES = 'SELECT rowid AS number, at, trusted, hash, subject, session, kind, category FROM tombstone ORDER BY rowid';
/** Deletes the row that has the key of a copied row under another number. */
const DELETE_SAME_KEY = `DELETE FROM entry WHERE namespace = ? AND kind = ? AND kind <> 2 AND kind <> 6
  AND substr(key_hash, 1, 8) = substr(?, 1, 8)`;

/** A memory in a file, as the source or the target of a copy. */
export class FileCopy implements CopyTarget {
  readonly #connection: Connection;
  readonly #keys: KeyKeeper;
  readonly #rows: SealedRows;

  constructor(connection: Connection, keys: KeyKeeper) {
    this.#connection = connection;
    this.#keys = keys;
    this.#rows = new SealedRows(connection, keys);
  }

  async readSmall(): Promise<SmallTables> {
    const { sql, db } = this.#connection;
    const meta = db.prepare('SELECT name, value FROM meta').all() as { name: string; value: unknown }[];
    return {
      meta: new Map(meta.map(({ name, value }) => [name, Buffer.isBuffer(value) ? value : String(value)])),
      keys: this.#connection.keyRecords(),
      namespaces: this.#connection.namespaces(),
      tombstones: db.prepare(TOMBSTONES).all() as NumberedTombstone[],
      revocations: sql.revocations.all() as { id: string; expires_at: number }[],
    };
  }

  async rowsAfter(place: number, limit: number): Promise<readonly RowWithPlace[]> {
    return this.#connection.sql.rowsAfter.all(place, limit) as RowWithPlace[];
  }

  open(namespace: Namespace, row: RowWithPlace): Entry | undefined {
    // Without the key, rows are compared by their bytes.
    if (!this.#keys.heldKeys) return undefined;
    return this.#rows.open(namespace, KIND_BY_NUMBER.get(row.kind) ?? 'fact', row);
  }

  async writeSmall(tables: SmallTables): Promise<void> {
    const connection = this.#connection;
    const { db } = connection;
    connection.transaction(() => {
      db.prepare('DELETE FROM meta WHERE name NOT IN (?, ?)').run(MOVING, MOVED);
      for (const [name, value] of tables.meta) connection.setMeta(name, value);
      const segments = new Map(connection.keyRecords().map(({ id, segment }) => [id.toString('hex'), segment]));
      db.exec('DELETE FROM master_key; DELETE FROM namespace; DELETE FROM tombstone; DELETE FROM revoked_token');
      for (const record of tables.keys) {
        connection.insertKeyRecord(record);
        connection.setSegment(record.id, Math.max(record.segment, segments.get(record.id.toString('hex')) ?? 0));
      }
      const namespace = db.prepare('INSERT INTO namespace (id, subject, session) VALUES (?, ?, ?)');
      for (const { id, subject, session } of tables.namespaces) namespace.run(id, subject, session);
      const tombstone = db.prepare(
        'INSERT INTO tombstone (rowid, at, trusted, hash, subject, session, kind, category) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      );
      for (const one of tables.tombstones)
        tombstone.run(one.number, one.at, one.trusted, one.hash, one.subject, one.session, one.kind, one.category);
      for (const { id, expires_at: end } of tables.revocations) connection.sql.insertRevocation.run(id, end);
    });
  }

  /** Copies the sealed bytes. Rows of a database server contain their authors, as rows of older files do. */
  async writeRows(deleted: readonly number[], stored: readonly CopiedRow[]): Promise<void> {
    const { sql, db } = this.#connection;
    this.#connection.transaction(() => {
      for (const number of deleted) sql.deleteRow.run(number);
      const deleteSameKey = db.prepare(DELETE_SAME_KEY);
      for (const { row } of stored) {
        deleteSameKey.run(row.namespace, row.kind, row.key_hash);
        const created = row.created_at === row.updated_at ? 0 : row.created_at;
        const times = [created, row.updated_at, row.expires_at];
        sql.insert.run(row.row, row.namespace, row.kind, row.key_hash, storedCategory(row.category), ...times, row.sealed);
      }
    });
    this.#connection.checkpointLongLog();
  }
}
