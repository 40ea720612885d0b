import type { NumberedTombstone } from '../../upkeep/copy-memory.ts';
import type { Tombstone } from '../../upkeep/newer-state.ts';
import { EntryEvents } from '../events.ts';
import type { QuotaKind } from '../quota.ts';
import { KIND_NUMBERS } from '../statements.ts';
import type { Kind, Namespace, Quota } from '../store.ts';
import {
  type Place,
  QUOTA_KINDS,
  readExpired,
  readKeyed,
  readNumbered,
  readUsage,
  sizeOf,
  readVersions,
} from './batch-queries.ts';
import { BatchSecrets } from './batch-secrets.ts';
import { type ChangeSet, type Counters, NotLoaded, type PlacedRow, type RowSize } from './change-set.ts';
import type { RunQuery } from './database.ts';
import { type Mirror, type NamespaceRow, namespaceAt, namespaceTopic, spaceTopic, type Topic } from './mirror.ts';
import { UndoLog } from './undo-log.ts';

const { fact, history, activity } = KIND_NUMBERS;

type RowState = { readonly was: 'new' | 'stored'; row: PlacedRow | undefined };

/**
 * The rows that a batch of writes reads and changes, in RAM. Writes are synchronous, as in the SQLite store, and their changes are
 * sent to the database together when the batch commits.
 */
export class WorkingSet {
  readonly events = new EntryEvents();
  readonly secrets: BatchSecrets;
  readonly #mirror: Mirror;
  #counters: Counters = { change: 0, last_row: 0, last_namespace: 0, last_tombstone: 0 };
  /** Reverses the changes of the running write. */
  readonly #undo = new UndoLog();
  readonly #loaded = new Map<number, PlacedRow>();
  readonly #keyed = new Map<string, PlacedRow | undefined>();
  readonly #versions = new Map<string, PlacedRow[]>();
  readonly #changed = new Map<number, RowState>();
  readonly #usage = new Map<number, Map<number, { rows: number; bytes: number }>>();
  readonly #expired = new Map<string, Map<number, RowSize>>();
  readonly #places = new Map<number, RowSize>();
  readonly #queries = new Map<string, readonly unknown[]>();
  readonly #newNamespaces = new Map<number, NamespaceRow>();
  #emptyNamespaces: number[] = [];
  #tombstones: NumberedTombstone[] = [];
  #untombstoned: { hash: Buffer; after: number }[] = [];
  #statements: { text: string; values: readonly unknown[] }[] = [];
  #topics = new Set<string>();
  /** Changed rows whose text is the same as before. */
  readonly #resealed = new Set<number>();

  constructor(mirror: Mirror) {
    this.#mirror = mirror;
    this.secrets = new BatchSecrets(mirror, this.#undo, (topic) => this.#topics.add(topic));
  }

  /** Starts a batch. Its rows must be read after the lock of the writers was taken. */
  begin(counters: Counters): void {
    this.#counters = { ...counters };
  }

  get counters(): Counters {
    return this.#counters;
  }

  /** Ends a batch and forgets its rows. Returns to the state before it, unless it was committed. */
  end(): void {
    for (const map of [
      this.#loaded,
      this.#keyed,
      this.#versions,
      this.#changed,
      this.#usage,
      this.#expired,
      this.#places,
      this.#queries,
    ])
      map.clear();
    this.#newNamespaces.clear();
    this.#emptyNamespaces = [];
    this.secrets.end();
    this.#resealed.clear();
    this.#tombstones = [];
    this.#untombstoned = [];
    this.#statements = [];
    this.#topics = new Set();
    this.#undo.clear();
  }

  /** Undoes the whole batch, for a retry or after a failed commit. */
  rollback(): void {
    this.secrets.rollback();
    this.end();
    this.events.rollback();
  }

  /** Copies the changes of the batch to the mirror, after they were committed. */
  committed(): void {
    for (const id of this.#emptyNamespaces) this.#mirror.removeNamespace(id);
    for (const row of this.#newNamespaces.values()) this.#mirror.addNamespace(row);
    this.secrets.committed();
    this.end();
    this.events.publish();
  }

  /** Runs one write. If the write fails, undoes its changes. */
  run<T>(write: () => T): T {
    this.secrets.active = true;
    this.events.savepoint();
    this.#undo.clear();
    try {
      return write();
    } catch (error) {
      this.#undo.run();
      this.events.rollbackToSavepoint();
      throw error;
    } finally {
      this.secrets.active = false;
    }
  }

  changes(): ChangeSet {
    const states = [...this.#changed];
    const rowsOf = (was: RowState['was']): PlacedRow[] =>
      states.flatMap(([, state]) => (state.was === was && state.row ? [state.row] : []));
    return {
      inserted: rowsOf('new'),
      updated: rowsOf('stored'),
      deleted: states.filter(([, { was, row }]) => was === 'stored' && !row).map(([number]) => number),
      namespaces: [...this.#newNamespaces.values()],
      emptyNamespaces: this.#emptyNamespaces,
      resealed: this.#resealed,
      ...this.secrets.changes(),
      tombstones: this.#tombstones,
      untombstoned: this.#untombstoned,
      statements: this.#statements,
      topics: this.#topics,
    };
  }

  /** Adds a statement that the commit runs, for a table that no write reads. */
  addStatement(text: string, values: readonly unknown[], topic?: Topic): void {
    this.#statements.push({ text, values });
    if (topic) this.#topics.add(topic);
    this.#undo.push(() => this.#statements.pop());
  }

  // Namespaces

  namespaceId(namespace: Namespace): number | undefined {
    const known = this.#mirror.idOf(namespace);
    if (known !== undefined && !this.#emptyNamespaces.includes(known)) return known;
    const { subject, session = '' } = namespace;
    return [...this.#newNamespaces.values()].find((row) => row.subject === subject && row.session === session)?.id;
  }

  ensureNamespace(namespace: Namespace): number {
    const known = this.namespaceId(namespace);
    if (known !== undefined) return known;
    const id = ++this.#counters.last_namespace;
    this.#newNamespaces.set(id, { id, subject: namespace.subject, session: namespace.session ?? '' });
    this.#topics.add(namespaceTopic(id));
    this.#undo.push(() => this.#newNamespaces.delete(id));
    return id;
  }

  namespaceAt(id: number): Namespace | undefined {
    const row = this.#mirror.namespaces.get(id) ?? this.#newNamespaces.get(id);
    return row && namespaceAt(row);
  }

  /** Whether this batch has stored rows in a namespace. */
  hasRowsIn(id: number): boolean {
    return [...this.#changed.values()].some(({ row }) => row?.namespace === id);
  }

  deleteNamespace(id: number): void {
    this.#emptyNamespaces.push(id);
    this.#topics.add(namespaceTopic(id));
    this.#undo.push(() => this.#emptyNamespaces.pop());
  }

  #idsOf(subject: string): number[] {
    const added = [...this.#newNamespaces.values()].filter((row) => row.subject === subject).map(({ id }) => id);
    return [...this.#mirror.of(subject).map(({ id }) => id), ...added];
  }

  // Rows

  /** Reads rows that writes of this batch need: the entry under each key, and the versions of each fact. */
  async loadKeys(run: RunQuery, places: readonly Place[]): Promise<void> {
    const wanted = places.filter(({ id }) => !this.#newNamespaces.has(id));
    if (wanted.length === 0) return;
    const facts = wanted.filter(({ kind }) => kind === 'fact');
    const [rows, versions] = await Promise.all([readKeyed(run, wanted), readVersions(run, facts)]);
    for (const { id, kind, hash } of wanted) this.#keyed.set(placeOf(id, KIND_NUMBERS[kind], hash), undefined);
    for (const row of rows) this.#keyed.set(placeOf(row.namespace, row.kind, row.key_hash), row);
    for (const { id, hash } of facts) this.#versions.set(placeOf(id, history, hash), []);
    for (const row of versions) this.#versions.get(placeOf(row.namespace, history, row.key_hash))?.push(row);
    for (const row of [...rows, ...versions]) this.know({ ...row, bytes: row.sealed.length });
  }

  /** Reads rows by their numbers, with the versions of the facts among them. */
  async loadRows(run: RunQuery, numbers: readonly number[]): Promise<void> {
    const [rows, versions] = await readNumbered(run, numbers);
    for (const row of rows) {
      this.#loaded.set(row.row, row);
      this.know({ ...row, bytes: row.sealed.length });
      if (row.kind !== history && row.kind !== activity) this.#keyed.set(placeOf(row.namespace, row.kind, row.key_hash), row);
      if (row.kind === fact) this.#versions.set(placeOf(row.namespace, history, row.key_hash), []);
    }
    for (const row of versions) {
      this.know({ ...row, bytes: row.sealed.length });
      this.#versions.get(placeOf(row.namespace, history, row.key_hash))?.push(row);
    }
  }

  /** Returns a row that `loadRows` read, as the batch has changed it. Undefined if the row is gone. */
  row(number: number): PlacedRow | undefined {
    const changed = this.#changed.get(number);
    return changed ? changed.row : this.#loaded.get(number);
  }

  /** Reads the storage that subjects use. */
  loadUsage(run: RunQuery, subjects: readonly string[]): Promise<void> {
    return this.#loadUsage(
      run,
      subjects.flatMap((subject) => this.#mirror.of(subject).map(({ id }) => id)),
    );
  }

  async #loadUsage(run: RunQuery, ids: readonly number[]): Promise<void> {
    const wanted = ids.filter((id) => !this.#newNamespaces.has(id) && !this.#usage.has(id));
    if (wanted.length === 0) return;
    const rows = await readUsage(run, wanted);
    for (const id of wanted) this.#usage.set(id, new Map());
    for (const { namespace, kind, ...used } of rows) this.#usage.get(namespace)?.set(kind, used);
  }

  /** Finds the row with this hash, even if expired. */
  findRow(id: number, kind: Kind, hash: Buffer): PlacedRow | undefined {
    const place = placeOf(id, KIND_NUMBERS[kind], hash);
    if (!this.#keyed.has(place) && !this.#newNamespaces.has(id)) {
      throw new NotLoaded((run) => this.loadKeys(run, [{ id, kind, hash }]));
    }
    return this.#keyed.get(place);
  }

  versions(id: number, hash: Buffer, expiringAfter: number): PlacedRow[] {
    return this.#versionsAt(id, hash).filter((row) => row.expires_at > expiringAfter);
  }

  countVersions(id: number, hash: Buffer): number {
    return this.#versionsAt(id, hash).length;
  }

  #versionsAt(id: number, hash: Buffer): PlacedRow[] {
    const known = this.#versions.get(placeOf(id, history, hash));
    if (known || this.#newNamespaces.has(id)) return known ?? [];
    throw new NotLoaded((run) => this.loadKeys(run, [{ id, kind: 'fact', hash }]));
  }

  /** Returns a new row number. Numbers are never used again. */
  nextRow(): number {
    this.#counters.last_row += 1;
    return this.#counters.last_row;
  }

  insertRow(row: PlacedRow): void {
    this.#setState(row.row, { was: 'new', row });
    this.#index(row);
    this.know({ ...row, bytes: row.sealed.length });
    this.#count(row, 1, row.sealed.length);
  }

  /** Changes a row. `resealed`: only the key of its seal changes, so no process must read it again. */
  updateRow(before: PlacedRow, row: PlacedRow, { resealed = false } = {}): void {
    if (!resealed) this.#undo.remove(this.#resealed, row.row);
    else if (!this.#changed.has(row.row)) this.#undo.add(this.#resealed, row.row);
    this.#setState(row.row, { was: this.#changed.get(row.row)?.was ?? 'stored', row }, resealed);
    this.#unindex(before);
    this.#index(row);
    this.know({ ...row, bytes: row.sealed.length });
    this.#count(row, 0, row.sealed.length - before.sealed.length);
  }

  /** Deletes a row that was read before. */
  deleteRow(row: RowSize): void {
    this.#setState(row.row, { was: this.#changed.get(row.row)?.was ?? 'stored', row: undefined });
    this.#unindex(row);
    this.#count(row, -1, -row.bytes);
    for (const expired of this.#expired.values()) this.#undo.delete(expired, row.row);
    this.events.record({ what: 'deleted', row: row.row });
  }

  get deletedCount(): number {
    return [...this.#changed.values()].filter(({ row }) => !row).length;
  }

  /** Returns the rows that this batch has inserted in a namespace, oldest first. */
  insertedAt(namespace: number, kind: number): RowSize[] {
    const rows = [...this.#changed.values()].flatMap(({ was, row }) => (was === 'new' && row ? [row] : []));
    return rows
      .filter((row) => row.namespace === namespace && row.kind === kind)
      .map((row) => ({ ...row, bytes: row.sealed.length }));
  }

  /** Whether the running batch has deleted this row. */
  isDeleted(row: number): boolean {
    const state = this.#changed.get(row);
    return state !== undefined && state.row === undefined;
  }

  /** Returns rows that a query of the write reads. The same query is read once in a batch. */
  query(text: string, values: readonly unknown[]): readonly unknown[] {
    const name = `${text}\0${JSON.stringify(values)}`;
    const known = this.#queries.get(name);
    if (known) return known;
    throw new NotLoaded(async (run) => void this.#queries.set(name, await run(text, values)));
  }

  /** Remembers the place of a row, so that the row can be deleted by its number alone. */
  know(row: RowSize): void {
    this.#places.set(row.row, row);
  }

  known(row: number): RowSize | undefined {
    return this.#places.get(row);
  }

  #setState(number: number, state: RowState, resealed = false): void {
    const before = this.#changed.get(number);
    this.#undo.push(() => {
      if (before) this.#changed.set(number, before);
      else this.#changed.delete(number);
    });
    const place = state.row ?? this.#places.get(number);
    if (place && !resealed) this.#topics.add(spaceTopic(place.namespace, place.kind));
    // A row that was inserted and deleted in one batch never reaches the database.
    if (state.was === 'new' && !state.row) this.#changed.delete(number);
    else this.#changed.set(number, state);
  }

  #index(row: PlacedRow): void {
    const place = placeOf(row.namespace, row.kind, row.key_hash);
    if (row.kind !== history) return this.#undo.set(this.#keyed, place, row);
    const before = this.#versions.get(place) ?? [];
    this.#undo.set(
      this.#versions,
      place,
      [row, ...before].toSorted((one, other) => other.updated_at - one.updated_at),
    );
  }

  #unindex(row: RowSize | PlacedRow): void {
    const place = placeOf(row.namespace, row.kind, row.key_hash);
    if (row.kind !== history) {
      if (this.#keyed.get(place)?.row === row.row) this.#undo.set(this.#keyed, place, undefined);
      return;
    }
    const before = this.#versions.get(place);
    if (before)
      this.#undo.set(
        this.#versions,
        place,
        before.filter((version) => version.row !== row.row),
      );
  }

  // Quotas

  #count({ namespace, kind }: Pick<PlacedRow, 'namespace' | 'kind'>, rows: number, bytes: number): void {
    let kinds = this.#usage.get(namespace);
    if (!kinds && this.#newNamespaces.has(namespace)) this.#usage.set(namespace, (kinds = new Map()));
    if (!kinds) return;
    const before = kinds.get(kind) ?? { rows: 0, bytes: 0 };
    this.#undo.set(kinds, kind, { rows: before.rows + rows, bytes: before.bytes + bytes });
  }

  #usageOf(id: number): ReadonlyMap<number, { rows: number; bytes: number }> {
    const known = this.#usage.get(id);
    if (known || this.#newNamespaces.has(id)) return known ?? new Map<number, never>();
    throw new NotLoaded((run) => this.#loadUsage(run, [id]));
  }

  rowCount(id: number, kind: Kind): number {
    return this.#usageOf(id).get(KIND_NUMBERS[kind])?.rows ?? 0;
  }

  usage(subject: string, kind: QuotaKind): Quota {
    let [facts, bytes] = [0, 0];
    for (const id of this.#idsOf(subject)) {
      const usage = this.#usageOf(id);
      facts += usage.get(KIND_NUMBERS[kind])?.rows ?? 0;
      for (const counted of QUOTA_KINDS[kind]) bytes += usage.get(counted)?.bytes ?? 0;
    }
    return { facts, bytes };
  }

  /** Returns the storage of expired rows, which a sweep has not deleted yet. */
  expired(subject: string, kind: QuotaKind, now: number): Quota {
    const name = `${kind} ${subject}`;
    const known = this.#expired.get(name);
    if (!known) throw new NotLoaded((run) => this.#loadExpired(run, name, this.#idsOf(subject), kind, now));
    return sizeOf(known.values(), kind);
  }

  async #loadExpired(run: RunQuery, name: string, ids: readonly number[], kind: QuotaKind, now: number): Promise<void> {
    const rows = await readExpired(run, ids, kind, now);
    this.#expired.set(name, new Map(rows.filter(({ row }) => !this.#changed.has(row)).map((row) => [row.row, row])));
  }

  // Tombstones

  addTombstone(tombstone: Tombstone): void {
    this.#counters.last_tombstone += 1;
    this.#tombstones.push({ ...tombstone, number: this.#counters.last_tombstone });
    this.#undo.push(() => this.#tombstones.pop());
  }

  deleteTombstonesAfter(hash: Buffer, after: number): void {
    const before = this.#tombstones;
    this.#tombstones = before.filter((one) => one.number <= after || !one.hash?.equals(hash));
    this.#untombstoned.push({ hash, after });
    this.#undo.push(() => {
      this.#tombstones = before;
      this.#untombstoned.pop();
    });
  }
}

const placeOf = (id: number, kind: number, hash: Buffer): string => `${id} ${kind} ${hash.toString('latin1')}`;
