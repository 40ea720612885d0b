import type { EntryRow } from './connection.ts';
import type { Entry, Kind, Namespace } from './store.ts';

/** Maximum rows in the cache: one or two result pages for each active caller. */
const MAX_ROWS = 1024;
const MAX_ROW_BYTES = 4096;

interface Opened {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly row: EntryRow;
  readonly entry: Entry;
}

/**
 * Caches decrypted rows by row number. Every read still reads the row from the database, and uses the cached entry only if all
 * columns are unchanged, so the cache never hides a change.
 */
export class OpenedRows {
  /** The oldest come first. */
  readonly #opened = new Map<number, Opened>();
  readonly #byKey = new Map<string, Opened>();

  /** Returns the entry of a row that was decrypted before and is unchanged. */
  find(namespace: Namespace, kind: Kind, row: EntryRow): Entry | undefined {
    const known = this.#opened.get(row.row);
    return known?.kind === kind && isSame(known.namespace, namespace) && isUnchanged(known.row, row) ? known.entry : undefined;
  }

  /** Returns the hash under which an entry was stored when it was decrypted. Computing a hash takes as long as finding the row. */
  hashOf(namespace: Namespace, kind: Kind, key: string): Buffer | undefined {
    return this.#byKey.get(cacheKey(namespace, kind, key))?.row.key_hash;
  }

  add(namespace: Namespace, kind: Kind, row: EntryRow, entry: Entry): void {
    this.delete(row.row);
    if (row.sealed.length > MAX_ROW_BYTES) return;
    const [oldest] = this.#opened.size >= MAX_ROWS ? this.#opened.keys() : [];
    if (oldest !== undefined) this.delete(oldest);
    const opened = { namespace, kind, row, entry };
    this.#opened.set(row.row, opened);
    this.#byKey.set(cacheKey(namespace, kind, entry.key), opened);
  }

  delete(row: number): void {
    const known = this.#opened.get(row);
    if (!known) return;
    this.#opened.delete(row);
    this.#byKey.delete(cacheKey(known.namespace, known.kind, known.entry.key));
  }

  clear(): void {
    this.#opened.clear();
    this.#byKey.clear();
  }
}

/** Returns a unique cache key. The lengths show where each part ends, so different parts never give the same text. */
const cacheKey = ({ subject, session = '' }: Namespace, kind: Kind, key: string): string =>
  `${kind} ${subject.length} ${session.length} ${subject}${session}${key}`;

export const isSame = (one: Namespace, other: Namespace): boolean =>
  one.subject === other.subject && (one.session ?? '') === (other.session ?? '');

const isUnchanged = (one: EntryRow, other: EntryRow): boolean =>
  one.updated_at === other.updated_at &&
  one.expires_at === other.expires_at &&
  one.created_at === other.created_at &&
  one.category === other.category &&
  one.key_hash.equals(other.key_hash) &&
  one.sealed.equals(other.sealed);
