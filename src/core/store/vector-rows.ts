import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { Connection } from './connection.ts';
import { openVector, sealVector, type VectorPlace } from './sealed-vector.ts';
import type { FactVector, Namespace } from './store.ts';

interface VectorRow {
  readonly row: number;
  readonly namespace: number;
  readonly model: number;
  readonly sealed: Buffer;
  /** Update time and hash of the fact. Null if the vector has no fact. */
  readonly updated_at: number | null;
  readonly key_hash: Buffer | null;
}

/** Encrypts the vectors of facts, and decrypts them. Call the methods in a transaction or in one synchronous read. */
export class VectorRows {
  readonly #connection: Connection;
  readonly #keys: KeyKeeper;
  #broken = 0;

  constructor(connection: Connection, keys: KeyKeeper) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** Number of vectors with a broken seal that were found since the start. They are deleted, and made again. */
  get brokenCount(): number {
    return this.#broken;
  }

  put(namespace: Namespace, place: Omit<VectorPlace, 'namespace'>, vector: Uint8Array): void {
    const sealed = sealVector(this.#keys.sealingKey(), { namespace, ...place }, vector);
    this.#connection.sql.putVector.run(place.row, this.#connection.ensureNamespace(namespace), place.model, sealed);
  }

  /** Returns the rows of the next vectors of a model, the last rows first. */
  before(namespaceId: number, model: number, row: number, limit: number): VectorRow[] {
    return this.#connection.sql.vectorsBefore.all(namespaceId, model, row, limit) as VectorRow[];
  }

  find(row: number): VectorRow | undefined {
    return this.#connection.sql.vectorOf.get(row) as VectorRow | undefined;
  }

  /** Decrypts a vector. Returns undefined if its seal is broken or its fact is missing. */
  open(namespace: Namespace, row: VectorRow): FactVector | undefined {
    const { row: number, model, updated_at: version, key_hash: keyHash, sealed } = row;
    if (version === null || keyHash === null) return undefined;
    const vector = openVector(this.#keys.ring, { namespace, row: number, model, version, keyHash }, sealed);
    return vector && { row: number, version, vector };
  }

  /** Deletes vectors with a broken seal, so that they are made again. */
  deleteBroken(rows: readonly number[]): void {
    for (const row of rows) this.#broken += this.#connection.sql.deleteVector.run(row).changes;
  }

  /** Encrypts the vector of a fact again, with the current key and the fact's new hash. Call it before the hash changes. */
  reseal(namespace: Namespace, row: number, keyHash: Buffer): void {
    const found = this.find(row);
    const opened = found && this.open(namespace, found);
    if (opened) this.put(namespace, { row, model: found.model, version: opened.version, keyHash }, opened.vector);
    else if (found) this.deleteBroken([row]);
  }

  /** Counts the vectors after a row number that do not open, and returns the last row number that was read. */
  countBroken(after: number, limit: number, namespaces: ReadonlyMap<number, Namespace>): { broken: number; last?: number } {
    const found = this.#connection.sql.allVectorsAfter.all(after, limit) as VectorRow[];
    const broken = found.filter((row) => {
      const namespace = namespaces.get(row.namespace);
      return !namespace || !this.open(namespace, row);
    });
    const last = found.at(-1)?.row;
    return { broken: broken.length, ...(last !== undefined && { last }) };
  }
}
