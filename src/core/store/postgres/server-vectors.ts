import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import { modelNumber, openVector, sealVector, type VectorPlace } from '../sealed-vector.ts';
import {
  type EntryCursor,
  type FactVector,
  type FactVectors,
  type Namespace,
  STEP_BYTES,
  type UnembeddedFact,
} from '../store.ts';
import { bigints, buffers } from './binary-arrays.ts';
import type { PlacedRow } from './change-set.ts';
import type { Database, RunQuery } from './database.ts';
import type { ServerRows } from './rows.ts';
import type { ServerQueue } from './server-queue.ts';
import { COLUMNS, placeSql } from './sql.ts';
import type { WorkingSet } from './working-set.ts';

/** Maximum rows that one call reads or deletes. */
const SCANNED = 1000;
const FACTS = 128;
const VECTORS = 200;
const CLEARED = 500;
const NEVER = Number.MAX_SAFE_INTEGER;

/** A vector with the update time and the hash of its fact. */
interface VectorRow {
  readonly row: number;
  readonly namespace: number;
  readonly model: number;
  readonly updated_at: number;
  readonly key_hash: Buffer;
  readonly sealed: Buffer;
}

const VECTOR = 'vector.number AS row, vector.namespace, model, updated_at, key_hash, vector.sealed';
const WITH_FACT = 'vector JOIN entry ON entry.number = vector.number AND entry.namespace = vector.namespace AND kind = 1';

interface Deps {
  readonly database: Database;
  readonly set: WorkingSet;
  readonly rows: ServerRows;
  readonly keys: KeyKeeper;
  readonly time: Pick<StoredClock, 'now'>;
  readonly queue: ServerQueue;
}

/** Reads from the database with the present keys. */
type Read = <T>(query: () => Promise<T>) => Promise<T>;

/** Writes of vectors have one lane, so that they take turns with the writes of clients. */
const LANE = 'vectors';

export class ServerVectors implements FactVectors {
  readonly #deps: Deps;
  readonly #read: Read;
  #broken = 0;

  constructor(deps: Deps, read: Read) {
    this.#deps = deps;
    this.#read = read;
  }

  /** Number of vectors with a broken seal that were found since the start. They are deleted, and made again. */
  get brokenCount(): number {
    return this.#broken;
  }

  missing(
    namespace: Namespace,
    model: string,
    after: EntryCursor = { at: NEVER, row: NEVER },
  ): Promise<{ facts: readonly UnembeddedFact[]; next?: EntryCursor }> {
    const { subject, session = '' } = namespace;
    return this.#read(async () => {
      const found = await this.#deps.database.read<EntryCursor & { has: boolean }>(
        `SELECT number AS row, updated_at AS at,
             EXISTS (SELECT 1 FROM vector WHERE vector.number = entry.number AND model = $5) AS has
           FROM entry WHERE ${placeSql('fact')} AND kind <> 2 AND (updated_at, number) < ($3, $4)
           ORDER BY updated_at DESC, number DESC LIMIT ${SCANNED}`,
        [subject, session, after.at, after.row, modelNumber(model)],
      );
      const wanted = found.filter(({ has }) => !has).slice(0, FACTS);
      const last = wanted.length === FACTS ? wanted.at(-1) : found.length === SCANNED ? found.at(-1) : undefined;
      const { facts, next = last } = await this.#facts(namespace, wanted);
      return { facts, ...(next && { next: { at: next.at, row: next.row } }) };
    });
  }

  async read(
    namespace: Namespace,
    model: string,
    rows: readonly number[],
  ): Promise<{ facts: readonly UnembeddedFact[]; vectors: readonly FactVector[] }> {
    const sql = `SELECT ${VECTOR} FROM ${WITH_FACT} WHERE vector.number = ANY ($1::bigint[]) AND model = $2`;
    const vectors = await this.#open(namespace, () =>
      this.#deps.database.read<VectorRow>(sql, [bigints(rows), modelNumber(model)]),
    );
    const present = new Set(vectors.map(({ row }) => row));
    const wanted = rows.filter((row) => !present.has(row)).map((row) => ({ at: 0, row }));
    return { facts: (await this.#read(() => this.#facts(namespace, wanted, NEVER))).facts, vectors };
  }

  put(
    namespace: Namespace,
    model: string,
    embedded: readonly (UnembeddedFact & Pick<FactVector, 'vector'>)[],
  ): Promise<readonly number[]> {
    const { set, rows, keys } = this.#deps;
    const number = modelNumber(model);
    const put = (): readonly number[] => {
      const stored = embedded.flatMap(({ row, entry, vector }) => {
        const found = rows.find(namespace, 'fact', entry.key);
        if (found?.row !== row || found.updated_at !== entry.updatedAt) return [];
        const place = { namespace, row, model: number, version: entry.updatedAt, keyHash: found.key_hash };
        return [{ ...place, sealed: sealVector(keys.sealingKey(), place, vector) }];
      });
      const id = set.namespaceId(namespace);
      if (id !== undefined) this.#store(id, number, stored);
      return stored.map(({ row }) => row);
    };
    const targets = embedded.map(({ entry: { key } }) => ({ namespace, kind: 'fact' as const, key }));
    return this.#deps.queue.run(put, LANE, { load: (run) => rows.load(run, targets) });
  }

  async page(namespace: Namespace, model: string, before = NEVER): Promise<{ vectors: readonly FactVector[]; next?: number }> {
    const { subject, session = '' } = namespace;
    let next: number | undefined;
    const vectors = await this.#open(namespace, async () => {
      const found = await this.#deps.database.read<VectorRow>(
        `SELECT ${VECTOR} FROM ${WITH_FACT} WHERE vector.namespace = (SELECT id FROM namespace WHERE subject = $1 AND session = $2)
             AND model = $3 AND vector.number < $4 ORDER BY vector.number DESC LIMIT ${VECTORS}`,
        [subject, session, modelNumber(model), before],
      );
      next = found.length < VECTORS ? undefined : found.at(-1)?.row;
      return found;
    });
    return { vectors, ...(next !== undefined && { next }) };
  }

  async count({ subject, session = '' }: Namespace, model: string): Promise<number> {
    const [counted] = await this.#deps.database.read<{ count: number }>(
      'SELECT count(*) FROM vector WHERE namespace = (SELECT id FROM namespace WHERE subject = $1 AND session = $2) AND model = $3',
      [subject, session, modelNumber(model)],
    );
    return counted?.count ?? 0;
  }

  async clear(): Promise<void> {
    let numbers: number[] = [];
    const load = async (run: RunQuery): Promise<void> => {
      numbers = (await run<{ number: number }>('SELECT number FROM vector LIMIT $1', [CLEARED])).map(({ number }) => number);
    };
    do await this.#deps.queue.run(() => this.#delete(numbers), LANE, { load });
    while (numbers.length > 0);
  }

  /** Reads the vectors of these rows, for a rotation. Call it in a transaction. */
  loadForRotation(run: RunQuery, rows: readonly number[]): Promise<VectorRow[]> {
    return run(`SELECT ${VECTOR} FROM ${WITH_FACT} WHERE vector.number = ANY ($1::bigint[])`, [bigints(rows)]);
  }

  /**
   * Encrypts vectors again whose facts were encrypted again in this batch. The server deletes a vector when the hash of its fact
   * changes, and this stores it again in the same commit.
   */
  reseal(found: readonly VectorRow[]): void {
    const { set, keys } = this.#deps;
    for (const vector of found) {
      const namespace = set.namespaceAt(vector.namespace);
      const fact = set.row(vector.row);
      const opened = namespace && this.#opened(namespace, vector);
      if (!fact || !opened || fact.key_hash.equals(vector.key_hash)) continue;
      const { row, model } = vector;
      const place = { namespace, row, model, version: fact.updated_at, keyHash: fact.key_hash };
      this.#store(vector.namespace, model, [{ ...place, sealed: sealVector(keys.sealingKey(), place, opened.vector) }]);
    }
  }

  /** Counts the vectors that do not open. */
  async countBroken(): Promise<number> {
    let broken = 0;
    for (let place = 0; ;) {
      const found = await this.#deps.database.read<VectorRow & { subject: string | null; session: string | null }>(
        `SELECT ${VECTOR}, subject, session FROM vector LEFT JOIN entry ON entry.number = vector.number
             AND entry.namespace = vector.namespace AND kind = 1 LEFT JOIN namespace ON id = vector.namespace
           WHERE vector.number > $1 ORDER BY vector.number LIMIT ${VECTORS}`,
        [place],
      );
      for (const row of found) {
        const { subject, session } = row;
        const namespace = { subject: subject ?? '', ...(session ? { session } : {}) };
        if (subject === null || !this.#opened(namespace, row)) broken += 1;
      }
      const last = found.at(-1);
      if (!last) return broken;
      place = last.row;
    }
  }

  /**
   * Adds a statement that stores vectors, except of facts that a later write of the same batch changes or deletes. It runs after the
   * changes of entries.
   */
  #store(namespaceId: number, model: number, stored: readonly (VectorPlace & { readonly sealed: Buffer })[]): void {
    if (stored.length === 0) return;
    this.#deps.set.addStatement(
      `INSERT INTO vector (number, namespace, model, sealed)
         SELECT new.number, $1, $2, new.sealed
           FROM unnest($3::bigint[], $4::bytea[], $5::bigint[], $6::bytea[]) AS new (number, sealed, version, hash)
           JOIN entry ON entry.number = new.number AND entry.namespace = $1 AND kind = 1 AND updated_at = version AND key_hash = hash
         ON CONFLICT (number) DO UPDATE SET namespace = excluded.namespace, model = excluded.model, sealed = excluded.sealed`,
      [
        namespaceId,
        model,
        bigints(stored.map(({ row }) => row)),
        buffers(stored.map(({ sealed }) => sealed)),
        bigints(stored.map(({ version }) => version)),
        buffers(stored.map(({ keyHash }) => keyHash)),
      ],
    );
  }

  #delete(rows: readonly number[]): void {
    if (rows.length > 0) this.#deps.set.addStatement('DELETE FROM vector WHERE number = ANY ($1::bigint[])', [bigints(rows)]);
  }

  /** Reads vectors and decrypts them. Deletes those with a broken seal. */
  async #open(namespace: Namespace, query: () => Promise<VectorRow[]>): Promise<FactVector[]> {
    const { vectors, broken } = await this.#read(async () => {
      const opened = (await query()).map((found) => ({ row: found.row, vector: this.#opened(namespace, found) }));
      return {
        vectors: opened.map(({ vector }) => vector).filter((vector) => vector !== undefined),
        broken: opened.filter(({ vector }) => vector === undefined).map(({ row }) => row),
      };
    });
    if (broken.length === 0) return vectors;
    this.#broken += broken.length;
    await this.#deps.queue.run(() => this.#delete(broken), LANE);
    return vectors;
  }

  #opened(
    namespace: Namespace,
    { row, model, updated_at: version, key_hash: keyHash, sealed }: VectorRow,
  ): FactVector | undefined {
    const vector = openVector(this.#deps.keys.ring, { namespace, row, model, version, keyHash }, sealed);
    return vector && { row, version, vector };
  }

  /** Reads facts in the given order. `next` is set if there was no room for all of them. */
  async #facts(
    namespace: Namespace,
    wanted: readonly EntryCursor[],
    bytes = STEP_BYTES,
  ): Promise<{ facts: readonly UnembeddedFact[]; next?: EntryCursor }> {
    if (wanted.length === 0) return { facts: [] };
    const { subject, session = '' } = namespace;
    const found = await this.#deps.database.read<PlacedRow>(
      `SELECT ${COLUMNS} FROM entry WHERE ${placeSql('fact')} AND number = ANY ($3::bigint[]) AND expires_at > $4`,
      [subject, session, bigints(wanted.map(({ row }) => row)), this.#deps.time.now()],
    );
    const byNumber = new Map(found.map((row) => [row.row, row]));
    const facts: UnembeddedFact[] = [];
    let read = 0;
    for (const cursor of wanted) {
      const row = byNumber.get(cursor.row);
      const entry = row && this.#deps.rows.open(namespace, 'fact', row);
      if (entry) facts.push({ row: cursor.row, entry });
      read += row?.sealed.length ?? 0;
      if (read >= bytes) return { facts, next: cursor };
    }
    return { facts };
  }
}
