import type { NumberedTombstone } from '../../upkeep/copy-memory.ts';
import type { EntryRow } from '../connection.ts';
import type { Kind, Namespace } from '../store.ts';
import type { RunQuery } from './database.ts';
import type { Meta, NamespaceRow, StoredKeyRecord } from './mirror.ts';

/** A row of the table `entry` with its place. */
export interface PlacedRow extends EntryRow {
  readonly namespace: number;
  readonly kind: number;
}

/** A row that a change deletes without reading its text. */
export type RowSize = Pick<PlacedRow, 'row' | 'namespace' | 'kind' | 'key_hash'> & { readonly bytes: number };

/** The last numbers that were used. The writer holds the lock of all writers, so no other process can use the same numbers. */
export interface Counters {
  change: number;
  last_row: number;
  last_namespace: number;
  last_tombstone: number;
}

/** An entry that a write reads. */
export interface Target {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly key: string;
}

/** What a write will probably read, so that it can be read together with what the other writes of the batch need. */
export interface Reads {
  readonly target?: Target;
  /** Reads further rows. Called after the lock was taken. */
  readonly load?: (run: RunQuery) => Promise<unknown>;
}

/**
 * Thrown when a write needs rows that were not read from the database yet. The queue undoes what the write has done so far, reads
 * the rows, and runs the write again.
 */
export class NotLoaded extends Error {
  readonly load: (run: RunQuery) => Promise<void>;

  constructor(load: (run: RunQuery) => Promise<void>) {
    super('The rows have not been read yet.');
    this.load = load;
  }
}

/** What a batch of writes changes in the database. */
export interface ChangeSet {
  readonly inserted: readonly PlacedRow[];
  readonly updated: readonly PlacedRow[];
  /** Those of `updated` whose text is the same as before. */
  readonly resealed: ReadonlySet<number>;
  readonly deleted: readonly number[];
  readonly namespaces: readonly NamespaceRow[];
  readonly emptyNamespaces: readonly number[];
  readonly meta: ReadonlyMap<string, Meta | undefined>;
  readonly keys: readonly StoredKeyRecord[] | undefined;
  readonly tombstones: readonly NumberedTombstone[];
  readonly untombstoned: readonly { readonly hash: Buffer; readonly after: number }[];
  readonly statements: readonly { readonly text: string; readonly values: readonly unknown[] }[];
  readonly topics: ReadonlySet<string>;
}
