import type { StoredClock } from '../../time/stored-clock.ts';
import type { EntryRow } from '../connection.ts';
import { writerOf } from '../entry.ts';
import type { Entry, EntryCursor, Kind, Namespace } from '../store.ts';
import type { PlacedRow } from './change-set.ts';
import type { ServerRows } from './rows.ts';
import type { WorkingSet } from './working-set.ts';

type RowWriter = EntryCursor & { readonly writer: string };

/** Reads entries in the running transaction, for the decisions of a write. */
export class ServerWriteReader {
  readonly #set: WorkingSet;
  readonly #rows: ServerRows;
  readonly #time: Pick<StoredClock, 'now'>;

  constructor(set: WorkingSet, rows: ServerRows, time: Pick<StoredClock, 'now'>) {
    this.#set = set;
    this.#rows = rows;
    this.#time = time;
  }

  findLiving(namespace: Namespace, kind: Kind, key: string): { row: PlacedRow; entry: Entry } | undefined {
    const row = this.#rows.find(namespace, kind, key);
    if (!row || row.expires_at <= this.#time.now()) return undefined;
    const entry = this.#rows.open(namespace, kind, row);
    return entry && { row, entry };
  }

  versions(namespace: Namespace, fact: EntryRow): Entry[] {
    const id = this.#set.ensureNamespace(namespace);
    const found = this.#rows.versions(id, fact.key_hash, this.#time.now());
    return found.map((row) => this.#rows.open(namespace, 'history', row)).filter((entry) => entry !== undefined);
  }

  /** Returns rows with their writers. Rows with a broken seal all get the writer `''`, which no real writer has. */
  writersOf(namespace: Namespace, kind: Kind, found: readonly EntryRow[]): RowWriter[] {
    return found.map((row) => {
      const entry = this.#rows.open(namespace, kind, row);
      return { at: row.updated_at, row: row.row, writer: entry ? writerOf(entry.author) : '' };
    });
  }

  /** Returns the next rows of a kind with their writers, oldest first, including expired rows. */
  writersAfter(namespace: Namespace, kind: Kind, after: EntryCursor, limit: number): RowWriter[] {
    const id = this.#set.namespaceId(namespace);
    return id === undefined ? [] : this.writersOf(namespace, kind, this.#rows.rowsAfter(id, kind, after, limit));
  }
}
