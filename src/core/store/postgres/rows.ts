import { Failure } from '../../../contract/failure.ts';
import { BrokenSeal, keyIdOf, openEntry, sealEntry } from '../../crypto/cipher.ts';
import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import { type EntryRow, INCLUDE_EXPIRED } from '../connection.ts';
import { OpenedRows } from '../opened-rows.ts';
import { KIND_NUMBERS } from '../statements.ts';
import type { Entry, Kind, Namespace } from '../store.ts';
import type { PlacedRow, RowSize, Target } from './change-set.ts';
import type { RunQuery } from './database.ts';
import { COLUMNS, KEYED } from './sql.ts';
import type { WorkingSet } from './working-set.ts';

/** Encrypts entries into the rows of the running batch, and decrypts rows. */
export class ServerRows {
  readonly #set: WorkingSet;
  readonly #keys: KeyKeeper;
  /** Numbers of rows with a broken seal. */
  readonly #broken = new Set<number>();

  readonly #opened = new OpenedRows();

  constructor(set: WorkingSet, keys: KeyKeeper) {
    this.#set = set;
    this.#keys = keys;
    // Remove changed and deleted entries from the cache, and all entries after a lock.
    set.events.subscribe((event) => (event.what === 'reset' ? this.#opened.clear() : this.#opened.delete(event.row)));
  }

  /** How often a row was encrypted with a key that is not held. Another process may have begun a rotation. */
  unknownKeyCount = 0;

  get brokenCount(): number {
    return this.#broken.size;
  }

  /** Decrypts a row. If the seal is broken, adds the row to `brokenCount` and returns undefined. */
  open(namespace: Namespace, kind: Kind, row: EntryRow): Entry | undefined {
    const { key_hash: keyHash, category, created_at: createdAt, updated_at: updatedAt, expires_at: expiresAt } = row;
    try {
      const place = { namespace, kind, keyHash, category, createdAt, updatedAt, expiresAt };
      const { key, value, tags, author, formerKeys } = openEntry(this.#keys.ring, place, row.sealed);
      if (this.#broken.size > 0) this.#broken.delete(row.row);
      const entry = { key, value, category, tags, author, createdAt, updatedAt, expiresAt };
      return formerKeys ? { ...entry, formerKeys } : entry;
    } catch (error) {
      if (!(error instanceof BrokenSeal)) throw error;
      if (!this.isKeyHeld(row)) this.unknownKeyCount += 1;
      this.#broken.add(row.row);
      return undefined;
    }
  }

  /**
   * Decrypts a row like `open`, with a cache. A cached entry is used only if the master key of the row is still held. `keep` adds
   * the row to the cache. It must be false if this process knows of a later change, because the entry may just have been deleted.
   */
  openCached(namespace: Namespace, kind: Kind, row: EntryRow, keep: boolean): Entry | undefined {
    const known = this.#opened.find(namespace, kind, row);
    if (known && this.isKeyHeld(row)) return known;
    const entry = this.open(namespace, kind, row);
    if (entry && keep) {
      // The buffers of the row share memory with a whole page.
      const copy = { ...row, key_hash: Buffer.from(row.key_hash), sealed: Buffer.from(row.sealed) };
      this.#opened.add(namespace, kind, copy, entry);
    }
    return entry;
  }

  isKeyHeld({ sealed }: Pick<EntryRow, 'sealed'>): boolean {
    return this.#keys.ring.find(keyIdOf(sealed)) !== undefined;
  }

  /** Reads what writes of these entries probably need: the rows, their versions, and the storage of their subjects. */
  async load(run: RunQuery, targets: readonly Target[]): Promise<void> {
    if (targets.length === 0 || !this.#keys.heldKeys) return;
    const { ring } = this.#keys;
    const places = targets.flatMap(({ namespace, kind, key }) => {
      const id = this.#set.namespaceId(namespace);
      return id === undefined ? [] : ring.hashes(namespace, key).map((hash) => ({ id, kind, hash }));
    });
    const subjects = new Set(targets.map(({ namespace }) => namespace.subject));
    await Promise.all([this.#set.loadKeys(run, places), this.#set.loadUsage(run, [...subjects])]);
  }

  find(namespace: Namespace, kind: Kind, key: string): PlacedRow | undefined {
    const id = this.#set.namespaceId(namespace);
    if (id === undefined) return undefined;
    for (const hash of this.#keys.ring.hashes(namespace, key)) {
      const row = this.#set.findRow(id, kind, hash);
      if (row) return row;
    }
    return undefined;
  }

  /** Inserts an entry, with the row number `number` if that number is free. */
  insert(namespace: Namespace, kind: Kind, entry: Entry, number?: number): void {
    const row = this.#isFree(number) ? number : this.#set.nextRow();
    this.#set.insertRow(this.#seal(namespace, kind, entry, row));
    this.#set.events.record({ what: 'stored', namespace, kind, row, entry });
  }

  #isFree(number: number | undefined): number is number {
    if (number === undefined) return false;
    const isStored = this.#set.query('SELECT 1 FROM entry WHERE number = $1', [number]).length > 0;
    return !isStored && number <= this.#set.counters.last_row;
  }

  replace(namespace: Namespace, kind: Kind, row: EntryRow, entry: Entry): void {
    const before = row as PlacedRow;
    const after = this.#seal(namespace, kind, entry, row.row);
    this.#set.updateRow(before, after);
    this.#set.events.record({ what: 'stored', namespace, kind, row: row.row, entry });
    if (kind === 'fact' && !after.key_hash.equals(before.key_hash)) this.#resealVersions(namespace, before, entry.key);
  }

  /** Encrypts the same entry again with the current key. Publishes no event. */
  reseal(namespace: Namespace, kind: Kind, row: EntryRow, entry: Entry): void {
    const [before, after] = [row as PlacedRow, this.#seal(namespace, kind, entry, row.row)];
    this.#set.updateRow(before, after, { resealed: true });
    if (kind === 'fact' && !after.key_hash.equals(before.key_hash)) this.#resealVersions(namespace, before, entry.key);
  }

  /** Encrypts the versions of a fact again, so that they have the same hash as the fact. Needed during a rotation. */
  #resealVersions(namespace: Namespace, before: PlacedRow, key: string): void {
    for (const row of this.versions(before.namespace, before.key_hash, INCLUDE_EXPIRED)) {
      const entry = this.open(namespace, 'history', row);
      if (entry?.key !== key) continue;
      this.#set.updateRow(row, this.#seal(namespace, 'history', entry, row.row), { resealed: true });
    }
  }

  /** Deletes one row, without versions. The row must have been read in this batch. */
  deleteRow({ row }: Pick<EntryRow, 'row'>): void {
    const known = this.#set.known(row);
    if (!known) throw new Failure('internal', 'A row was deleted that was not read; this is a bug.');
    this.#broken.delete(row);
    this.#set.deleteRow(known);
  }

  /** Deletes a row. If the row is a fact, also deletes its earlier versions. */
  deleteWithVersions(namespaceId: number, kind: Kind, row: Pick<EntryRow, 'row' | 'key_hash'>): void {
    this.deleteRow(row);
    if (kind !== 'fact') return;
    for (const version of this.versions(namespaceId, row.key_hash, INCLUDE_EXPIRED)) this.deleteRow(version);
  }

  /** Deletes the `count` oldest rows. Only for kinds without versions. */
  deleteOldest(namespaceId: number, kind: Kind, count: number): void {
    const deleted = this.#set.deletedCount;
    const stored = this.#set.query(
      `SELECT number AS row, namespace, kind, key_hash, octet_length(sealed) AS bytes FROM entry
         WHERE namespace = $1 AND kind = ${KIND_NUMBERS[kind]} AND ${KEYED} ORDER BY updated_at, number LIMIT $2`,
      [namespaceId, count + deleted],
    ) as readonly RowSize[];
    const oldest = [...stored, ...this.#set.insertedAt(namespaceId, KIND_NUMBERS[kind])];
    for (const row of oldest.filter((each) => !this.#set.isDeleted(each.row)).slice(0, count)) {
      this.#set.know(row);
      this.deleteRow(row);
    }
  }

  versions(namespaceId: number, hash: Buffer, expiringAfter: number): PlacedRow[] {
    return this.#set.versions(namespaceId, hash, expiringAfter);
  }

  countVersions(namespaceId: number, hash: Buffer): number {
    return this.#set.countVersions(namespaceId, hash);
  }

  deleteTombstonesAfter(hash: Buffer, last: number): void {
    this.#set.deleteTombstonesAfter(hash, last);
  }

  /**
   * Deletes the rows that belong to the namespace and the kind. Returns their numbers. Only for kinds without versions. The events of
   * all processes were published before the batch began, so only rows that this batch deleted are missing.
   */
  deleteRows(namespace: Namespace, kind: Kind, rows: readonly number[]): readonly number[] {
    const id = this.#set.ensureNamespace(namespace);
    const present = rows.filter((row) => !this.#set.isDeleted(row));
    for (const row of present) {
      if (!this.#set.known(row)) {
        this.#set.know({ row, namespace: id, kind: KIND_NUMBERS[kind], key_hash: Buffer.alloc(0), bytes: 0 });
      }
      this.deleteRow({ row });
    }
    return present;
  }

  /** Returns the next rows of a kind, oldest first, including expired rows. */
  rowsAfter(namespaceId: number, kind: Kind, { at, row }: { at: number; row: number }, limit: number): readonly PlacedRow[] {
    return this.#set.query(
      `SELECT ${COLUMNS} FROM entry WHERE namespace = $1 AND kind = ${KIND_NUMBERS[kind]} AND kind <> 2
         AND (updated_at, number) > ($2, $3) ORDER BY updated_at, number LIMIT $4`,
      [namespaceId, at, row, limit],
    ) as readonly PlacedRow[];
  }

  #seal(namespace: Namespace, kind: Kind, entry: Entry, row: number): PlacedRow {
    const id = this.#set.ensureNamespace(namespace);
    const key = this.#keys.sealingKey();
    const keyHash = key.hash(namespace, entry.key);
    const { category, createdAt, updatedAt, expiresAt } = entry;
    const sealed = sealEntry(key, { namespace, kind, keyHash, category, createdAt, updatedAt, expiresAt }, entry);
    return {
      row,
      namespace: id,
      kind: KIND_NUMBERS[kind],
      key_hash: keyHash,
      category,
      created_at: createdAt,
      updated_at: updatedAt,
      expires_at: expiresAt,
      sealed,
    };
  }
}
