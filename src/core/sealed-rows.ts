import { BrokenSeal, open, type Place, seal } from './cipher.ts';
import { type Connection, EVER, type Row } from './connection.ts';
import type { Journal } from './journal.ts';
import type { KeyKeeper } from './key-keeper.ts';
import { KINDS } from './statements.ts';
import type { Entry, Kind, Namespace } from './store.ts';

/** Entries in, rows out, and back. Everything here is one synchronous step of a transaction or of a read. */
export class SealedRows {
  readonly #connection: Connection;
  readonly #keys: KeyKeeper;
  /** Rows whose seal was found broken. They are left out of every answer and stay where they are, as evidence. */
  readonly #broken = new Set<number>();

  readonly #journal: Journal | undefined;

  /** Without a journal nobody hears of what is written. */
  constructor(connection: Connection, keys: KeyKeeper, journal?: Journal) {
    this.#connection = connection;
    this.#keys = keys;
    this.#journal = journal;
  }

  get broken(): number {
    return this.#broken.size;
  }

  /** The row under a key, expired or not; during a rotation it may still stand under the old key's hash. */
  find(namespace: Namespace, kind: Kind, key: string): Row | undefined {
    const id = this.#connection.namespaceId(namespace);
    if (id === undefined) return undefined;
    for (const hash of this.#keys.ring.hashes(namespace, key)) {
      const row = this.#connection.of(kind).find.get(id, hash) as Row | undefined;
      if (row) return row;
    }
    return undefined;
  }

  /** Undefined, and counted, when the seal does not fit the row. */
  open(namespace: Namespace, kind: Kind, row: Row): Entry | undefined {
    try {
      const { key, value, tags, author } = open(this.#keys.ring, placeOf(namespace, kind, row), row.sealed);
      if (this.#broken.size > 0) this.#broken.delete(row.row);
      const { category, created_at: createdAt, updated_at: updatedAt, expires_at: expiresAt } = row;
      return { key, value, category, tags, author, createdAt, updatedAt, expiresAt };
    } catch (error) {
      if (!(error instanceof BrokenSeal)) throw error;
      this.#broken.add(row.row);
      return undefined;
    }
  }

  insert(namespace: Namespace, kind: Kind, entry: Entry): void {
    const id = this.#connection.keepNamespace(namespace);
    const { hash, sealed } = this.#seal(namespace, kind, entry);
    const { category, createdAt, updatedAt, expiresAt } = entry;
    const { insert } = this.#connection.sql;
    const { lastInsertRowid } = insert.run(id, KINDS[kind], hash, category, createdAt, updatedAt, expiresAt, sealed);
    this.#journal?.note({ what: 'kept', namespace, kind, row: Number(lastInsertRowid), entry });
  }

  replace(namespace: Namespace, kind: Kind, row: Row, entry: Entry): void {
    this.reseal(namespace, kind, row, entry);
    this.#journal?.note({ what: 'kept', namespace, kind, row: row.row, entry });
  }

  /** The same entry under the present key: nothing that anybody would have to hear of. */
  reseal(namespace: Namespace, kind: Kind, row: Row, entry: Entry): void {
    const { hash, sealed } = this.#seal(namespace, kind, entry);
    this.#connection.sql.update.run(hash, entry.category, entry.updatedAt, entry.expiresAt, sealed, row.row);
    if (kind === 'fact' && !hash.equals(row.key_hash)) this.#bringVersions(namespace, entry.key, row.key_hash);
  }

  /** With a fact go its versions. */
  delete(namespaceId: number, kind: Kind, row: Pick<Row, 'row' | 'key_hash'>): void {
    this.remove(row);
    if (kind === 'fact') this.#connection.sql.deleteVersions.run(namespaceId, row.key_hash);
  }

  /** This row alone. */
  remove({ row }: Pick<Row, 'row'>): void {
    this.#connection.sql.deleteRow.run(row);
    this.#broken.delete(row);
    this.#journal?.note({ what: 'gone', row });
  }

  /** A fact and its versions always stand under one hash, so that what finds the one finds the others without a key. */
  #bringVersions(namespace: Namespace, key: string, from: Buffer): void {
    const id = this.#connection.namespaceId(namespace);
    for (const row of this.#connection.sql.versions.all(id, from, EVER) as Row[]) {
      const entry = this.open(namespace, 'history', row);
      if (entry?.key === key) this.reseal(namespace, 'history', row, entry);
    }
  }

  #seal(namespace: Namespace, kind: Kind, entry: Entry): { hash: Buffer; sealed: Buffer } {
    const key = this.#keys.sealing();
    const hash = key.hash(namespace, entry.key);
    const { category, createdAt, updatedAt, expiresAt } = entry;
    return { hash, sealed: seal(key, { namespace, kind, keyHash: hash, category, createdAt, updatedAt, expiresAt }, entry) };
  }
}

const placeOf = (namespace: Namespace, kind: Kind, row: Row): Place => ({
  namespace,
  kind,
  keyHash: row.key_hash,
  category: row.category,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  expiresAt: row.expires_at,
});
