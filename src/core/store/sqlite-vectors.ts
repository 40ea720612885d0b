import { lowDiskSpace } from '../file/disk-space.ts';
import type { EntryRow } from './connection.ts';
import { modelNumber } from './sealed-vector.ts';
import { KIND_NUMBERS } from './statements.ts';
import type { StoreContext } from './store-context.ts';
import { type EntryCursor, type FactVector, type FactVectors, type Namespace, STEP_BYTES, type UnembeddedFact } from './store.ts';

/** Maximum rows that one call reads, decrypts or deletes, so that other requests are not delayed. */
const SCANNED = 1000;
const FACTS = 128;
const VECTORS = 200;
const CLEARED = 200;
const CLEARED_WITH_OTHERS = 8;
const NEWEST: EntryCursor = { at: Number.MAX_SAFE_INTEGER, row: Number.MAX_SAFE_INTEGER };

/** Functions with which vectors are read and written. `writeUnopened` works without the master key. */
interface Access {
  read<T>(query: () => T): Promise<T>;
  write<T>(job: () => T): Promise<T>;
  writeUnopened<T>(job: (isAlone: boolean) => T): Promise<T>;
}

type Context = Pick<StoreContext, 'connection' | 'rows' | 'time' | 'disk' | 'freeSpace'>;

export class SqliteVectors implements FactVectors {
  readonly #context: Context;
  readonly #access: Access;

  constructor(context: Context, access: Access) {
    this.#context = context;
    this.#access = access;
  }

  missing(
    namespace: Namespace,
    model: string,
    after: EntryCursor = NEWEST,
  ): Promise<{ facts: readonly UnembeddedFact[]; next?: EntryCursor }> {
    return this.#access.read(() => {
      const { connection } = this.#context;
      const id = connection.namespaceId(namespace);
      if (id === undefined) return { facts: [] };
      const place = [modelNumber(model), id, after.at, after.at, after.row, SCANNED];
      const found = connection.sql.factsWithVector.all(...place) as (EntryCursor & { has: number })[];
      const facts: UnembeddedFact[] = [];
      let bytes = 0;
      for (const { at, row, has } of found) {
        if (has === 1) continue;
        const fact = this.#fact(namespace, row);
        if (fact) facts.push(fact);
        bytes += fact?.bytes ?? 0;
        if (facts.length === FACTS || bytes >= STEP_BYTES) return { facts, next: { at, row } };
      }
      const last = found.at(-1);
      return { facts, ...(last && found.length === SCANNED && { next: { at: last.at, row: last.row } }) };
    });
  }

  async read(
    namespace: Namespace,
    model: string,
    rows: readonly number[],
  ): Promise<{ facts: readonly UnembeddedFact[]; vectors: readonly FactVector[] }> {
    const { vectors, broken, missing } = await this.#access.read(() => {
      const number = modelNumber(model);
      const found = rows.map((row) => this.#context.rows.vectors.find(row));
      const present = found.filter((one) => one?.model === number).filter((one) => one !== undefined);
      return { ...this.#open(namespace, present), missing: rows.filter((_, at) => found[at]?.model !== number) };
    });
    await this.#deleteBroken(broken);
    const facts = await this.#access.read(() => [...missing, ...broken].map((row) => this.#fact(namespace, row)));
    return { facts: facts.filter((fact) => fact !== undefined), vectors };
  }

  put(
    namespace: Namespace,
    model: string,
    embedded: readonly (UnembeddedFact & Pick<FactVector, 'vector'>)[],
  ): Promise<readonly number[]> {
    const { rows, freeSpace } = this.#context;
    return this.#access.write(() => {
      if (freeSpace?.isLow) throw lowDiskSpace();
      const number = modelNumber(model);
      const stored = embedded.filter(({ row, entry, vector }) => {
        // A row number can belong to another fact now, so compare the key too.
        const found = rows.find(namespace, 'fact', entry.key);
        if (found?.row !== row || found.updated_at !== entry.updatedAt) return false;
        rows.vectors.put(namespace, { row, model: number, version: entry.updatedAt, keyHash: found.key_hash }, vector);
        return true;
      });
      return stored.map(({ row }) => row);
    });
  }

  async page(
    namespace: Namespace,
    model: string,
    before = Number.MAX_SAFE_INTEGER,
  ): Promise<{ vectors: readonly FactVector[]; next?: number }> {
    const { vectors, broken, next } = await this.#access.read(() => {
      const id = this.#context.connection.namespaceId(namespace);
      const found = id === undefined ? [] : this.#context.rows.vectors.before(id, modelNumber(model), before, VECTORS);
      return { ...this.#open(namespace, found), next: found.length < VECTORS ? undefined : found.at(-1)?.row };
    });
    await this.#deleteBroken(broken);
    return { vectors, ...(next !== undefined && { next }) };
  }

  count(namespace: Namespace, model: string): Promise<number> {
    const { connection } = this.#context;
    return this.#access.read(
      () => connection.sql.countVectors.get(connection.namespaceId(namespace), modelNumber(model)) as number,
    );
  }

  async clear(): Promise<void> {
    const { connection, disk } = this.#context;
    const clear = (isAlone: boolean): number => connection.sql.deleteVectors.run(isAlone ? CLEARED : CLEARED_WITH_OTHERS).changes;
    let cleared = await this.#access.writeUnopened(clear);
    const any = cleared > 0;
    while (cleared > 0) cleared = await this.#access.writeUnopened(clear);
    if (any) disk.purgeSoon();
  }

  #open(
    namespace: Namespace,
    found: readonly NonNullable<ReturnType<Context['rows']['vectors']['find']>>[],
  ): { vectors: FactVector[]; broken: number[] } {
    const opened = found.map((row) => ({ row: row.row, vector: this.#context.rows.vectors.open(namespace, row) }));
    return {
      vectors: opened.map(({ vector }) => vector).filter((vector) => vector !== undefined),
      broken: opened.filter(({ vector }) => vector === undefined).map(({ row }) => row),
    };
  }

  async #deleteBroken(rows: readonly number[]): Promise<void> {
    if (rows.length > 0) await this.#access.write(() => this.#context.rows.vectors.deleteBroken(rows));
  }

  /** Reads a fact of the namespace. Returns undefined if the row is something else, has expired or does not open. */
  #fact(namespace: Namespace, number: number): (UnembeddedFact & { bytes: number }) | undefined {
    const { connection, rows, time } = this.#context;
    const row = connection.sql.rowById.get(number) as (EntryRow & { kind: number; namespace: number }) | undefined;
    if (row?.kind !== KIND_NUMBERS.fact || row.namespace !== connection.namespaceId(namespace)) return undefined;
    if (row.expires_at <= time.now()) return undefined;
    const entry = rows.open(namespace, 'fact', row);
    return entry && { row: number, entry, bytes: row.sealed.length };
  }
}
