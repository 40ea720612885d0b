import { isOfSupersededFact, isSupersededFact, SUPERSEDED_FACT_FORMATS } from '../../crypto/cipher.ts';
import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import { INCLUDE_EXPIRED } from '../connection.ts';
import { isUncountedCategory } from '../entry.ts';
import { DELETE_ORDER, TOMBSTONED, UNCOUNTED, needsKey, tombstoneHash } from '../forgetting.ts';
import { KIND_BY_NUMBER, KIND_NUMBERS } from '../statements.ts';
import type { Kind, Namespace, Selection } from '../store.ts';
import type { PlacedRow } from './change-set.ts';
import type { Database, RunQuery } from './database.ts';
import { type Mirror, namespaceAt } from './mirror.ts';
import type { ServerRows } from './rows.ts';
import { COLUMNS } from './sql.ts';
import type { WorkingSet } from './working-set.ts';

/** Rows that one transaction deletes. Other writers wait for it. */
const SLICE = 200;

interface Deps {
  readonly database: Database;
  readonly set: WorkingSet;
  readonly mirror: Mirror;
  readonly rows: ServerRows;
  readonly keys: KeyKeeper;
  readonly time: Pick<StoredClock, 'now' | 'trusted'>;
}

export class ServerForgetting {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Lists the rows of a selection that exist now. */
  async begin(subject: string, selection: Selection): Promise<ServerForgetJob> {
    const { database, mirror, keys } = this.#deps;
    if (needsKey(selection)) keys.requireKeys();
    const { key, category, session } = selection;
    const places = mirror.of(subject).filter((row) => session === undefined || session === row.session);
    const values: unknown[] = [places.map(({ id }) => id)];
    let where = 'namespace = ANY ($1::bigint[])';
    if (key !== undefined) {
      // A key has another hash in each namespace. The sum keeps the server from using an index without the hash.
      const hashes = places.flatMap((place) => keys.ring.hashes(namespaceAt(place), key));
      where = `namespace + 0 = ANY ($1::bigint[]) AND key_hash = ANY ($${values.push(hashes)}::bytea[])`;
    }
    if (category !== undefined) where += ` AND category = $${values.push(category)}`;
    const listed = await Promise.all(
      DELETE_ORDER.filter((kind) => selection.kinds.includes(kind)).map((kind) =>
        database.read<{ number: number }>(`SELECT number FROM entry WHERE ${where} AND kind = ${KIND_NUMBERS[kind]}`, values),
      ),
    );
    const numbers = listed.flatMap((rows) => rows.map(({ number }) => number).toSorted((one, other) => one - other));
    return new ServerForgetJob(this.#deps, subject, selection, numbers);
  }

  /** Forgets one entry in the running transaction. The selection has one kind, a key and a session. */
  run(subject: string, { kinds, key, session = '' }: Selection): number {
    const { rows } = this.#deps;
    const namespace: Namespace = session === '' ? { subject } : { subject, session };
    const [kind] = kinds;
    const row = kind && key !== undefined ? rows.find(namespace, kind, key) : undefined;
    if (!kind || !row) return 0;
    const job = new ServerForgetJob(this.#deps, subject, { kinds, key: key ?? '', session }, []);
    job.deleteRow(namespace, kind, row, key);
    return 1;
  }
}

/** Deletes or counts the listed rows of a selection, one slice at a time, and writes tombstones. */
export class ServerForgetJob {
  readonly #deps: Deps;
  readonly #subject: string;
  readonly #selection: Selection;
  readonly #numbers: readonly number[];
  readonly #began: { readonly at: number; readonly trusted: number };
  /** The namespaces from which rows were deleted. */
  readonly namespaces = new Set<number>();

  constructor(deps: Deps, subject: string, selection: Selection, numbers: readonly number[]) {
    this.#deps = deps;
    this.#subject = subject;
    this.#selection = selection;
    this.#numbers = numbers;
    this.#began = this.#times();
  }

  get slices(): number {
    return Math.ceil(this.#numbers.length / SLICE);
  }

  #sliceAt(index: number): readonly number[] {
    return this.#numbers.slice(index * SLICE, (index + 1) * SLICE);
  }

  load(run: RunQuery, index: number): Promise<void> {
    return this.#deps.set.loadRows(run, this.#sliceAt(index));
  }

  /** Deletes one slice in the running transaction. Returns the number of deleted entries that were visible to callers. */
  delete(index: number): { entries: number; rows: number } {
    const { set, keys } = this.#deps;
    if (needsKey(this.#selection)) keys.requireKeys();
    if (index === 0 && this.#coversScope) this.#writeScopeTombstones();
    let [entries, rows] = [0, 0];
    for (const number of this.#sliceAt(index)) {
      const row = set.row(number);
      const matching = row && this.#match(row);
      if (!matching) continue;
      rows += 1;
      if (this.#isVisible(row)) entries += 1;
      if (matching.kind === 'fact')
        entries += this.#versionsOf(row).filter((version) => this.#isVisibleSuperseded(version)).length;
      this.deleteRow(matching.namespace, matching.kind, row, matching.key);
    }
    return { entries, rows };
  }

  /** Counts the entries of one slice. */
  async count(index: number): Promise<number> {
    if (needsKey(this.#selection)) this.#deps.keys.requireKeys();
    const rows = await this.#deps.database.read<PlacedRow>(`SELECT ${COLUMNS} FROM entry WHERE number = ANY ($1::bigint[])`, [
      this.#sliceAt(index),
    ]);
    const matching = rows.filter((row) => this.#match(row));
    const facts = matching.filter(({ kind }) => kind === KIND_NUMBERS.fact).map(({ row }) => row);
    const [superseded] =
      facts.length === 0
        ? []
        : await this.#deps.database.read<{ count: number }>(
            `SELECT count(*) FROM entry AS fact JOIN entry AS version
           ON version.key_hash = fact.key_hash AND version.namespace + 0 = fact.namespace AND version.kind = 2
         WHERE fact.number = ANY ($1::bigint[]) AND version.expires_at > $2 AND get_byte(version.sealed, 0) = ANY ($3::int[])`,
            [facts, this.#deps.time.now(), SUPERSEDED_FACT_FORMATS],
          );
    return matching.filter((row) => this.#isVisible(row)).length + (superseded?.count ?? 0);
  }

  #versionsOf({ namespace, key_hash: hash }: PlacedRow): PlacedRow[] {
    return this.#deps.rows.versions(namespace, hash, INCLUDE_EXPIRED);
  }

  #isVisibleSuperseded({ sealed, expires_at: end }: PlacedRow): boolean {
    return isSupersededFact(sealed) && end > this.#deps.time.now();
  }

  /** Deletes a row with its versions, and writes its tombstone. */
  deleteRow(namespace: Namespace, kind: Kind, row: PlacedRow, key: string | undefined): void {
    const { rows } = this.#deps;
    this.#writeTombstone(namespace, kind, row, key);
    this.namespaces.add(row.namespace);
    if (kind === 'fact') {
      this.#writeTombstonesOfSuperseded(namespace, row);
      for (const version of this.#versionsOf(row)) rows.deleteRow(version);
    }
    rows.deleteRow(row);
  }

  #isVisible({ kind: number, category, expires_at: end }: PlacedRow): boolean {
    const kind = KIND_BY_NUMBER.get(number);
    return kind !== undefined && !UNCOUNTED.has(kind) && !isUncountedCategory(category) && end > this.#deps.time.now();
  }

  #match(row: PlacedRow): { namespace: Namespace; kind: Kind; key: string | undefined } | undefined {
    const { mirror, rows } = this.#deps;
    const { key, category, matches } = this.#selection;
    const [place, kind] = [mirror.namespaces.get(row.namespace), KIND_BY_NUMBER.get(row.kind)];
    if (!place || !kind || (category !== undefined && row.category !== category)) return undefined;
    const namespace = namespaceAt(place);
    if (!matches) return { namespace, kind, key };
    const entry = rows.open(namespace, kind, row);
    return entry && matches(entry, kind) ? { namespace, kind, key: entry.key } : undefined;
  }

  /** Whether one tombstone is written for a whole kind or category. See `ForgetJob` of the SQLite store. */
  get #coversScope(): boolean {
    return !needsKey(this.#selection) && (this.#selection.category === undefined || !this.#deps.keys.heldKeys);
  }

  #writeScopeTombstones(): void {
    const { kinds, session, category } = this.#selection;
    for (const kind of kinds.filter((one) => TOMBSTONED.has(one))) {
      this.#insertScopeTombstone(this.#began, session ?? null, kind, category ?? null);
    }
  }

  #writeTombstone(namespace: Namespace, kind: Kind, row: PlacedRow, known: string | undefined): void {
    if (!TOMBSTONED.has(kind) || (this.#coversScope && row.updated_at <= this.#began.at)) return;
    const { set, keys, rows } = this.#deps;
    const key = known ?? (keys.heldKeys && rows.open(namespace, kind, row)?.key);
    const secret = keys.heldKeys && keys.tombstoneKey();
    if (!secret || key === undefined) {
      // The key cannot be hashed, but the row may be intact in a backup.
      return this.#insertScopeTombstone(this.#times(), namespace.session ?? '', kind, row.category);
    }
    const hash = tombstoneHash(secret, namespace, kind, key);
    set.addTombstone({ ...this.#times(), hash, subject: null, session: null, kind: null, category: null });
  }

  /** See `ForgetJob` of the SQLite store. */
  #writeTombstonesOfSuperseded(namespace: Namespace, fact: PlacedRow): void {
    if (this.#coversScope && this.#selection.category === undefined) return;
    const { set, keys, rows, time } = this.#deps;
    const secret = keys.heldKeys && keys.tombstoneKey();
    const written = new Set<string>();
    for (const version of this.#versionsOf(fact).filter(({ sealed }) => isOfSupersededFact(sealed))) {
      const entry = secret && rows.open(namespace, 'history', version);
      if (!secret || !entry) this.#insertScopeTombstone(this.#times(), namespace.session ?? '', 'fact', version.category);
      for (const { key, until } of entry?.formerKeys ?? []) {
        const name = JSON.stringify([key, until]);
        if (!secret || written.has(name)) continue;
        written.add(name);
        const times = { at: until, trusted: Math.min(until, time.trusted()) };
        const hash = tombstoneHash(secret, namespace, 'fact', key);
        set.addTombstone({ ...times, hash, subject: null, session: null, kind: null, category: null });
      }
    }
  }

  #insertScopeTombstone(
    times: { at: number; trusted: number },
    session: string | null,
    kind: Kind,
    category: string | null,
  ): void {
    const subject = this.#subject;
    this.#deps.set.addTombstone({ ...times, hash: null, subject, session, kind: KIND_NUMBERS[kind], category });
  }

  #times(): { at: number; trusted: number } {
    const at = this.#deps.time.now();
    return { at, trusted: Math.min(at, this.#deps.time.trusted()) };
  }
}
