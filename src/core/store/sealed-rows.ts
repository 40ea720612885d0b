import { Failure } from '../../contract/failure.ts';
import { BrokenSeal, openEntry, type SealContext, sealEntry, keyIdOf } from '../crypto/cipher.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import { type Connection, INCLUDE_EXPIRED, type EntryRow } from './connection.ts';
import type { EntryEvents } from './events.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { Entry, Kind, Namespace } from './store.ts';

/** Rows that stay opened, and how long one of them may be: a page or two for everybody who asks, and no more than 16 MiB, sealed and opened. */
const KEPT = 1024;
const KEPT_BYTES = 4096;

/** An entry beside everything that its seal vouches for. */
interface Opened {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly row: EntryRow;
  readonly entry: Entry;
}

/** Entries in, rows out, and back. Everything here is one synchronous step of a transaction or of a read. */
export class SealedRows {
  readonly #connection: Connection;
  readonly #keys: KeyKeeper;
  /** Rows whose seal was found broken. They are left out of every answer and stay where they are, as evidence. */
  readonly #broken = new Set<number>();
  /** What was opened last, the longest ago first. */
  readonly #opened = new Map<number, Opened>();
  /** The rows of these, by what they are asked for. */
  readonly #places = new Map<string, number>();
  #changes = 0;
  readonly #journal: EntryEvents | undefined;

  /** Without a journal nobody hears of what is written. */
  constructor(connection: Connection, keys: KeyKeeper, journal?: EntryEvents) {
    this.#connection = connection;
    this.#keys = keys;
    this.#journal = journal;
    // What is gone is not kept, and nothing is when the memory is locked.
    journal?.subscribe((change) => {
      this.#changes += 1;
      if (change.what === 'doubt') this.#closeAll();
      else this.#close(change.row);
    });
  }

  /** Another number after every change that was committed, and whenever it is in doubt what there is. */
  get revision(): number {
    return this.#changes;
  }

  get brokenCount(): number {
    return this.#broken.size;
  }

  /** The row under a key, expired or not; during a rotation it may still stand under the old key's hash. */
  find(namespace: Namespace, kind: Kind, key: string): EntryRow | undefined {
    const id = this.#connection.namespaceId(namespace);
    if (id === undefined) return undefined;
    const { find } = this.#connection.statementsOf(kind);
    // The hash of what was opened before is known; making it anew takes as long as finding the row.
    const known = this.#opened.get(this.#places.get(spell(namespace, kind, key)) ?? NaN);
    const again = known && (find.get(id, known.row.key_hash) as EntryRow | undefined);
    if (again) return again;
    for (const hash of this.#keys.ring.hashes(namespace, key)) {
      const row = find.get(id, hash) as EntryRow | undefined;
      if (row) return row;
    }
    return undefined;
  }

  /** Undefined, and counted, when the seal does not fit the row. */
  open(namespace: Namespace, kind: Kind, row: EntryRow): Entry | undefined {
    try {
      const { key, value, tags, author } = openEntry(this.#keys.ring, placeOf(namespace, kind, row), row.sealed);
      if (this.#broken.size > 0) this.#broken.delete(row.row);
      const { category, created_at: createdAt, updated_at: updatedAt, expires_at: expiresAt } = row;
      return { key, value, category, tags, author, createdAt, updatedAt, expiresAt };
    } catch (error) {
      if (!(error instanceof BrokenSeal)) throw error;
      this.#broken.add(row.row);
      return undefined;
    }
  }

  /**
   * The same for what is asked for again and again. A row that stands in the file as it stood when its seal was opened, byte
   * by byte and while its key is at hand, would open to the same again.
   */
  openCached(namespace: Namespace, kind: Kind, row: EntryRow): Entry | undefined {
    const known = this.#opened.get(row.row);
    if (known?.kind === kind && isSame(known.namespace, namespace) && unchanged(known.row, row) && this.#holdsKeyOf(row)) {
      return known.entry;
    }
    const entry = this.open(namespace, kind, row);
    this.#close(row.row);
    if (!entry || row.sealed.length > KEPT_BYTES) return entry;
    const [oldest] = this.#opened.size >= KEPT ? this.#opened.keys() : [];
    if (oldest !== undefined) this.#close(oldest);
    this.#opened.set(row.row, { namespace, kind, row, entry });
    this.#places.set(spell(namespace, kind, entry.key), row.row);
    return entry;
  }

  #close(row: number): void {
    const known = this.#opened.get(row);
    if (!known) return;
    this.#opened.delete(row);
    this.#places.delete(spell(known.namespace, known.kind, known.entry.key));
  }

  #closeAll(): void {
    this.#opened.clear();
    this.#places.clear();
  }

  insert(namespace: Namespace, kind: Kind, entry: Entry): void {
    const id = this.#connection.ensureNamespace(namespace);
    const { hash, sealed } = this.#seal(namespace, kind, entry);
    const { category, createdAt, updatedAt, expiresAt } = entry;
    const { insert } = this.#connection.sql;
    const { lastInsertRowid } = insert.run(id, KIND_NUMBERS[kind], hash, category, createdAt, updatedAt, expiresAt, sealed);
    this.#journal?.record({ what: 'kept', namespace, kind, row: Number(lastInsertRowid), entry });
  }

  replace(namespace: Namespace, kind: Kind, row: EntryRow, entry: Entry): void {
    this.reseal(namespace, kind, row, entry);
    this.#journal?.record({ what: 'kept', namespace, kind, row: row.row, entry });
  }

  /** The same entry under the present key: nothing that anybody would have to hear of. */
  reseal(namespace: Namespace, kind: Kind, row: EntryRow, entry: Entry): void {
    const { hash, sealed } = this.#seal(namespace, kind, entry);
    const { category, createdAt, updatedAt, expiresAt } = entry;
    this.#connection.sql.update.run(hash, category, createdAt, updatedAt, expiresAt, sealed, row.row);
    if (kind === 'fact' && !hash.equals(row.key_hash)) this.#bringVersions(namespace, entry.key, row.key_hash);
  }

  /** With a fact go its versions. */
  deleteWithVersions(namespaceId: number, kind: Kind, row: Pick<EntryRow, 'row' | 'key_hash'>): void {
    this.deleteRow(row);
    if (kind === 'fact') this.#connection.sql.deleteVersions.run(namespaceId, row.key_hash);
  }

  /** The oldest of a kind that has no versions. */
  deleteOldest(namespaceId: number, kind: Kind, count: number): void {
    for (const row of this.#connection.statementsOf(kind).trim.all(namespaceId, count) as number[]) this.#gone(row);
  }

  /** This row alone. */
  deleteRow({ row }: Pick<EntryRow, 'row'>): void {
    // Only a changed schema or a damaged file can keep a row that was just read.
    if (this.#connection.sql.deleteRow.run(row).changes !== 1) {
      throw new Failure(
        'store_unavailable',
        'A row of this memory could not be deleted. Check the memory with: helmdeck-memory verify',
      );
    }
    this.#gone(row);
  }

  #gone(row: number): void {
    this.#broken.delete(row);
    this.#journal?.record({ what: 'gone', row });
  }

  /** A fact and its versions always stand under one hash, so that what finds the one finds the others without a key. */
  #bringVersions(namespace: Namespace, key: string, from: Buffer): void {
    const id = this.#connection.namespaceId(namespace);
    for (const row of this.#connection.sql.versions.all(id, from, INCLUDE_EXPIRED) as EntryRow[]) {
      const entry = this.open(namespace, 'history', row);
      if (entry?.key === key) this.reseal(namespace, 'history', row, entry);
    }
  }

  #holdsKeyOf({ sealed }: EntryRow): boolean {
    return this.#keys.ring.find(keyIdOf(sealed)) !== undefined;
  }

  #seal(namespace: Namespace, kind: Kind, entry: Entry): { hash: Buffer; sealed: Buffer } {
    const key = this.#keys.sealingKey();
    const hash = key.hash(namespace, entry.key);
    const { category, createdAt, updatedAt, expiresAt } = entry;
    return { hash, sealed: sealEntry(key, { namespace, kind, keyHash: hash, category, createdAt, updatedAt, expiresAt }, entry) };
  }
}

const placeOf = (namespace: Namespace, kind: Kind, row: EntryRow): SealContext => ({
  namespace,
  kind,
  keyHash: row.key_hash,
  category: row.category,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  expiresAt: row.expires_at,
});

/** Different for every place: the lengths tell where each part ends. */
const spell = ({ subject, session = '' }: Namespace, kind: Kind, key: string): string =>
  `${kind} ${subject.length} ${session.length} ${subject}${session}${key}`;

const isSame = (one: Namespace, other: Namespace): boolean => one.subject === other.subject && one.session === other.session;

const unchanged = (one: EntryRow, other: EntryRow): boolean =>
  one.updated_at === other.updated_at &&
  one.expires_at === other.expires_at &&
  one.created_at === other.created_at &&
  one.category === other.category &&
  one.key_hash.equals(other.key_hash) &&
  one.sealed.equals(other.sealed);
