import { randomInt } from 'node:crypto';
import { Failure } from '../../contract/failure.ts';
import {
  AUTHOR_NUMBERS,
  BrokenSeal,
  keyIdOf,
  openAuthor,
  openEntry,
  sealAuthor,
  type SealContext,
  sealEntry,
  unreadableAuthor,
} from '../crypto/cipher.ts';
import type { KeyKeeper } from '../crypto/key-keeper.ts';
import { type Connection, INCLUDE_EXPIRED, type EntryRow } from './connection.ts';
import { storedCategory } from './entry.ts';
import type { EntryEvents } from './events.ts';
import { isSame, OpenedRows } from './opened-rows.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { Author, Entry, Kind, Namespace } from './store.ts';
import { VectorRows } from './vector-rows.ts';

/** Milliseconds for which an author's row outlives its entries, so that not every new entry must change it. */
const MARGIN_MS = 86_400_000;
/** The key hash of an activity row. These rows are found only by time. */
const NO_HASH = Buffer.alloc(0);

/** Encrypts entries into rows and decrypts rows. Call the methods in a transaction or in one synchronous read. */
export class SealedRows {
  readonly authors: Authors;
  readonly vectors: VectorRows;
  readonly #connection: Connection;
  readonly #keys: KeyKeeper;
  /** Row numbers of rows with a broken seal. These rows are omitted from every result and stay in the file as evidence. */
  readonly #broken = new Set<number>();
  readonly #opened = new OpenedRows();
  #revision = 0;
  readonly #events: EntryEvents | undefined;

  /** If `events` is undefined, changes are not published. */
  constructor(connection: Connection, keys: KeyKeeper, events?: EntryEvents) {
    this.#connection = connection;
    this.#keys = keys;
    this.#events = events;
    this.authors = new Authors(connection, keys);
    this.vectors = new VectorRows(connection, keys);
    // Remove changed and deleted entries from the cache, and all entries after a lock.
    events?.subscribe((event) => {
      this.#revision += 1;
      if (event.what === 'reset') this.#clearCache();
      else this.#opened.delete(event.row);
    });
  }

  /** A number that increases with every committed change and every reset. */
  get revision(): number {
    return this.#revision;
  }

  get brokenCount(): number {
    return this.#broken.size + this.authors.brokenCount + this.vectors.brokenCount;
  }

  /**
   * Finds the row with this key, even if expired. During a key rotation, the row may still have a hash made with the old master
   * key.
   */
  find(namespace: Namespace, kind: Kind, key: string): EntryRow | undefined {
    const id = this.#connection.namespaceId(namespace);
    if (id === undefined) return undefined;
    const { find } = this.#connection.statementsOf(kind);
    const known = this.#opened.hashOf(namespace, kind, key);
    const again = known && (find.get(id, known, known) as EntryRow | undefined);
    if (again) return again;
    for (const hash of this.#keys.ring.hashes(namespace, key)) {
      const row = find.get(id, hash, hash) as EntryRow | undefined;
      if (row) return row;
    }
    return undefined;
  }

  /** Decrypts a row. If the seal is broken, adds the row to `brokenCount` and returns undefined. */
  open(namespace: Namespace, kind: Kind, row: EntryRow): Entry | undefined {
    try {
      const { key, value, tags, author, formerKeys } = openEntry(
        this.#keys.ring,
        sealContextOf(namespace, kind, row),
        row.sealed,
        (number) => this.authors.find(namespace, number),
      );
      if (this.#broken.size > 0) this.#broken.delete(row.row);
      const { category, created_at: createdAt, updated_at: updatedAt, expires_at: expiresAt } = row;
      const entry = { key, value, category, tags, author, createdAt, updatedAt, expiresAt };
      return formerKeys ? { ...entry, formerKeys } : entry;
    } catch (error) {
      if (!(error instanceof BrokenSeal)) throw error;
      this.#broken.add(row.row);
      return undefined;
    }
  }

  /**
   * Decrypts a row like `open`, with a cache. A cached entry is used only if its row is unchanged and the master key of the row
   * is still held.
   */
  openCached(namespace: Namespace, kind: Kind, row: EntryRow): Entry | undefined {
    const known = this.#opened.find(namespace, kind, row);
    if (known && this.#holdsKeyOf(row)) return known;
    const entry = this.open(namespace, kind, row);
    if (entry) this.#opened.add(namespace, kind, row, entry);
    else this.#opened.delete(row.row);
    return entry;
  }

  #clearCache(): void {
    this.#opened.clear();
    this.authors.clear();
  }

  /** Inserts an entry, with the row number `row` if that number is free. */
  insert(namespace: Namespace, kind: Kind, entry: Entry, row?: number): void {
    const id = this.#connection.ensureNamespace(namespace);
    const { hash, sealed } = this.#seal(namespace, kind, entry);
    const { insert, rowExists } = this.#connection.sql;
    const free = row !== undefined && rowExists.get(row) === undefined ? row : null;
    const { lastInsertRowid } = insert.run(free, id, KIND_NUMBERS[kind], hash, ...columnsOf(entry), sealed);
    this.#events?.record({ what: 'stored', namespace, kind, row: Number(lastInsertRowid), entry });
  }

  replace(namespace: Namespace, kind: Kind, row: EntryRow, entry: Entry): void {
    this.reseal(namespace, kind, row, entry);
    this.#events?.record({ what: 'stored', namespace, kind, row: row.row, entry });
  }

  /** Encrypts the same entry again with the current key. Publishes no event. */
  reseal(namespace: Namespace, kind: Kind, row: EntryRow, entry: Entry): void {
    const { hash, sealed } = this.#seal(namespace, kind, entry);
    // The seal of a vector contains the hash of its fact.
    const isMoved = kind === 'fact' && !hash.equals(row.key_hash);
    if (isMoved) this.vectors.reseal(namespace, row.row, hash);
    this.#connection.sql.update.run(hash, ...columnsOf(entry), sealed, row.row);
    if (isMoved) this.#resealVersions(namespace, entry.key, row.key_hash);
  }

  /** Deletes a row. If the row is a fact, also deletes its earlier versions. */
  deleteWithVersions(namespaceId: number, kind: Kind, row: Pick<EntryRow, 'row' | 'key_hash'>): void {
    this.deleteRow(row);
    if (kind === 'fact') this.#connection.sql.deleteVersions.run(namespaceId, row.key_hash);
  }

  /** Deletes the `count` oldest rows. Only for kinds without versions. */
  deleteOldest(namespaceId: number, kind: Kind, count: number): void {
    for (const row of this.#connection.statementsOf(kind).trim.all(namespaceId, count) as number[]) this.#gone(row);
  }

  /** Deletes the rows that belong to the namespace and the kind. Returns their numbers. Only for kinds without versions. */
  deleteRows(namespace: Namespace, kind: Kind, rows: readonly number[]): readonly number[] {
    const id = this.#connection.namespaceId(namespace);
    const deleted = this.#connection.statementsOf(kind).deleteThese.all(id, JSON.stringify(rows)) as number[];
    for (const row of deleted) this.#gone(row);
    return deleted;
  }

  /** Deletes one row, without versions. */
  deleteRow({ row }: Pick<EntryRow, 'row'>): void {
    // Deleting a row that was just read fails only if the schema was changed or the file is damaged.
    if (this.#connection.sql.deleteRow.run(row).changes !== 1) {
      throw new Failure(
        'store_unavailable',
        'A row of this memory could not be deleted. Check the memory with: helmdeck-memory verify',
      );
    }
    this.#gone(row);
  }

  /** Returns the versions of a fact that expire after a time, newest first. */
  versions(namespaceId: number, hash: Buffer, expiringAfter: number): EntryRow[] {
    return this.#connection.sql.versions.all(namespaceId, hash, expiringAfter) as EntryRow[];
  }

  countVersions(namespaceId: number, hash: Buffer): number {
    return this.#connection.sql.countVersions.get(namespaceId, hash) as number;
  }

  /** Deletes the tombstones of one key whose row numbers are greater than `last`. */
  deleteTombstonesAfter(hash: Buffer, last: number): void {
    this.#connection.sql.deleteTombstonesAfter.run(hash, last);
  }

  #gone(row: number): void {
    this.#broken.delete(row);
    this.#events?.record({ what: 'deleted', row });
  }

  /**
   * Encrypts the versions of a fact again, so that they have the same hash as the fact. Otherwise they could not be found without
   * the master key.
   */
  #resealVersions(namespace: Namespace, key: string, from: Buffer): void {
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
    const hash = kind === 'activity' ? NO_HASH : key.hash(namespace, entry.key);
    const { category, createdAt, updatedAt, expiresAt } = entry;
    const place = { namespace, kind, keyHash: hash, category, createdAt, updatedAt, expiresAt };
    return { hash, sealed: sealEntry(key, place, entry, this.authors.numberOf(namespace, entry.author, expiresAt)) };
  }
}

/** Returns the unencrypted columns in their order. A new entry's creation time is stored as 0. */
const columnsOf = ({ category, createdAt, updatedAt, expiresAt }: Entry): [string, number, number, number] => [
  storedCategory(category),
  createdAt === updatedAt ? 0 : createdAt,
  updatedAt,
  expiresAt,
];

const sealContextOf = (namespace: Namespace, kind: Kind, row: EntryRow): SealContext => ({
  namespace,
  kind,
  keyHash: row.key_hash,
  category: row.category,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  expiresAt: row.expires_at,
});

interface AuthorRow {
  readonly id: number;
  readonly namespace: number;
  readonly expires_at: number;
  readonly sealed: Buffer;
}

interface Numbered {
  readonly number: number;
  readonly expiresAt: number;
}

interface Found {
  readonly namespace: Namespace;
  readonly author: Author;
  /** False if the author's row is missing or its seal is broken. */
  readonly readable: boolean;
}

/**
 * Gives each author of a namespace a number, so that an entry contains the number and not three names. Call the methods in a
 * transaction or in one synchronous read.
 */
export class Authors {
  readonly #connection: Connection;
  readonly #keys: KeyKeeper;
  readonly #found = new Map<number, Found>();
  /** The authors of each namespace, by name. */
  readonly #numbers = new Map<number, Map<string, Numbered>>();
  /** Numbers that no new entry may use. Kept in RAM, like the forget that will delete the authors. */
  readonly #retired = new Set<number>();
  /** The numbers of the unreadable authors that `find` returned. An entry that is sealed again keeps its number. */
  readonly #unreadable = new WeakMap<Author, number>();
  #generation: number;

  constructor(connection: Connection, keys: KeyKeeper) {
    this.#connection = connection;
    this.#keys = keys;
    this.#generation = connection.generation;
  }

  /** Number of authors that were found to be missing or to have a broken seal. */
  get brokenCount(): number {
    return [...this.#found.values()].filter(({ readable }) => !readable).length;
  }

  clear(): void {
    this.#found.clear();
    this.#numbers.clear();
  }

  /** Returns the number of an author, and makes sure that the author's row does not expire before the entry. */
  numberOf(namespace: Namespace, author: Author, expiresAt: number): number {
    const unreadable = this.#unreadable.get(author);
    if (unreadable !== undefined) return unreadable;
    this.#discardOutdated();
    const id = this.#connection.ensureNamespace(namespace);
    const known = this.#numbersIn(id, namespace);
    const name = nameOf(author);
    const found = known.get(name);
    if (found && found.expiresAt >= expiresAt) return found.number;
    const numbered = { number: found?.number ?? this.#create(id), expiresAt: expiresAt + MARGIN_MS };
    this.#write(namespace, author, numbered);
    known.set(name, numbered);
    this.#found.set(numbered.number, { namespace, author, readable: true });
    return numbered.number;
  }

  /** Returns the author with this number. The author is unreadable if its row is missing or has a broken seal. */
  find(namespace: Namespace, number: number): Author {
    this.#discardOutdated();
    const known = this.#found.get(number);
    if (known && isSame(known.namespace, namespace)) return known.author;
    const row = this.#connection.sql.author.get(number) as AuthorRow | undefined;
    const opened = row && this.#open(namespace, row);
    const author = opened ?? unreadableAuthor();
    if (!opened) this.#unreadable.set(author, number);
    this.#found.set(number, { namespace, author, readable: opened !== undefined });
    return author;
  }

  /**
   * Gives new entries of this namespace only new numbers, so that the present authors can be deleted with their entries. Returns
   * the numbers of the present authors.
   */
  retire(namespaceId: number): readonly number[] {
    const numbers = (this.#connection.sql.authorsOf.all(namespaceId) as AuthorRow[]).map(({ id }) => id);
    for (const number of numbers) this.#retired.add(number);
    this.#numbers.delete(namespaceId);
    return numbers;
  }

  /** Deletes retired authors, and the authors of namespaces without entries. Returns how many were deleted. */
  deleteRetired(numbers: readonly number[]): number {
    const { deleteAuthor } = this.#connection.sql;
    const retired = numbers.reduce((count, number) => count + deleteAuthor.run(number).changes, 0);
    return retired + this.deleteWithoutEntries();
  }

  /** Deletes the authors of namespaces without entries. Returns how many were deleted. */
  deleteWithoutEntries(): number {
    const deleted = this.#connection.sql.deleteAuthorsWithoutEntries.run().changes;
    this.clear();
    return deleted;
  }

  /**
   * Deletes the authors that no entry can name: those that have expired, and those of a namespace without entries. Call it when
   * all expired entries are deleted. Returns true if an author was deleted.
   */
  deleteUnused(now: number): boolean {
    const expired = this.#connection.sql.deleteExpiredAuthors.run(now).changes;
    return expired + this.deleteWithoutEntries() > 0;
  }

  /** Deletes every author that is not in the list. `kept` contains the authors that `find` returned. */
  deleteExcept(kept: ReadonlySet<Author>): void {
    for (const { id } of this.#connection.sql.authors.all() as AuthorRow[]) {
      const author = this.#found.get(id)?.author;
      if (!author || !kept.has(author)) this.#connection.sql.deleteAuthor.run(id);
    }
    this.clear();
  }

  /** Seals every author with the current key. An author with a broken seal stays as it is. */
  reseal(): void {
    for (const [namespace, row] of this.#all()) {
      const author = namespace && this.#open(namespace, row);
      if (author) this.#write(namespace, author, { number: row.id, expiresAt: row.expires_at });
    }
  }

  /** Counts the authors that are missing or have a broken seal. `named` contains the authors of all entries. */
  countBroken(named: ReadonlySet<Author>): number {
    const missing = new Set([...named].flatMap((author) => this.#unreadable.get(author) ?? []));
    for (const [namespace, row] of this.#all()) if (!namespace || !this.#open(namespace, row)) missing.add(row.id);
    return missing.size;
  }

  #all(): [Namespace | undefined, AuthorRow][] {
    const namespaces = new Map(this.#connection.namespaces().map((row) => [row.id, row]));
    return (this.#connection.sql.authors.all() as AuthorRow[]).map((row) => [namespaces.get(row.namespace), row]);
  }

  #numbersIn(id: number, namespace: Namespace): Map<string, Numbered> {
    const known = this.#numbers.get(id);
    if (known) return known;
    const numbers = new Map<string, Numbered>();
    for (const row of this.#connection.sql.authorsOf.all(id) as AuthorRow[]) {
      const author = this.#retired.has(row.id) ? undefined : this.#open(namespace, row);
      if (author) numbers.set(nameOf(author), { number: row.id, expiresAt: row.expires_at });
    }
    this.#numbers.set(id, numbers);
    return numbers;
  }

  /**
   * Draws a number. The numbers of deleted authors must not be drawn again, because an older copy of a row would then name
   * another author. A counter in the file could be reset by a restore or by an editor of the file.
   */
  #create(namespaceId: number): number {
    const number = randomInt(1, AUTHOR_NUMBERS);
    return this.#connection.sql.insertAuthor.run(number, namespaceId).changes === 1 ? number : this.#create(namespaceId);
  }

  #write(namespace: Namespace, author: Author, { number, expiresAt }: Numbered): void {
    const sealed = sealAuthor(this.#keys.sealingKey(), { namespace, number, expiresAt }, author);
    this.#connection.sql.updateAuthor.run(expiresAt, sealed, number);
  }

  #open(namespace: Namespace, { id, expires_at: expiresAt, sealed }: AuthorRow): Author | undefined {
    try {
      return openAuthor(this.#keys.ring, { namespace, number: id, expiresAt }, sealed);
    } catch (error) {
      if (error instanceof BrokenSeal) return undefined;
      throw error;
    }
  }

  #discardOutdated(): void {
    if (this.#generation === this.#connection.generation) return;
    this.#generation = this.#connection.generation;
    this.clear();
  }
}

/** Returns a unique name of an author. The lengths show where each part ends. */
const nameOf = ({ client, origin, token, definedBy }: Author): string =>
  `${client.length} ${origin.length} ${definedBy === undefined ? '' : token.length} ${client}${origin}${token}${definedBy ?? ''}`;
