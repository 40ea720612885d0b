import { INCLUDE_EXPIRED, type EntryRow } from './connection.ts';
import { storedCategory, writerOf } from './entry.ts';
import type { KindStatements } from './statements.ts';
import type { StoreContext } from './store-context.ts';
import {
  type EntryCursor,
  type Entry,
  type FactWithHistory,
  type Kind,
  type Namespace,
  type EntryPage,
  type PageQuery,
  STEP_BYTES,
} from './store.ts';

const FIRST: EntryCursor = { at: Number.MIN_SAFE_INTEGER, row: Number.MIN_SAFE_INTEGER };
const LAST: EntryCursor = { at: Number.MAX_SAFE_INTEGER, row: Number.MAX_SAFE_INTEGER };

/** Maximum rows decrypted in one step while searching for matching entries. More rows would delay other requests. */
const MAX_ROWS_PER_STEP = 500;
/** Maximum rows read at once. The first chunk is smaller, because its row sizes decide how many rows the next chunks read. */
const CHUNK = 50;
const FIRST_CHUNK = 2;

interface Order {
  readonly all: keyof KindStatements;
  readonly inCategory: keyof KindStatements;
  readonly start: EntryCursor;
  readonly by: 'updated_at' | 'expires_at';
}

const ORDERS: Record<PageQuery['sort'], Order> = {
  updated: { all: 'newest', inCategory: 'newestInCategory', start: LAST, by: 'updated_at' },
  oldest: { all: 'oldest', inCategory: 'oldestInCategory', start: FIRST, by: 'updated_at' },
  expires: { all: 'soonest', inCategory: 'soonestInCategory', start: FIRST, by: 'expires_at' },
};

/** Reads entries that have not expired. Each method is one synchronous step. */
export class EntryReader {
  readonly #context: Pick<StoreContext, 'connection' | 'rows' | 'time'>;

  constructor(context: Pick<StoreContext, 'connection' | 'rows' | 'time'>) {
    this.#context = context;
  }

  findLiving(namespace: Namespace, kind: Kind, key: string): { row: EntryRow; entry: Entry } | undefined {
    const { rows, time } = this.#context;
    const row = rows.find(namespace, kind, key);
    if (!row || row.expires_at <= time.now()) return undefined;
    const entry = rows.openCached(namespace, kind, row);
    return entry && { row, entry };
  }

  history(namespace: Namespace, key: string): Entry[] {
    const fact = this.findLiving(namespace, 'fact', key);
    return fact ? this.versions(namespace, fact.row) : [];
  }

  withHistory(namespace: Namespace, key: string): FactWithHistory | undefined {
    const fact = this.findLiving(namespace, 'fact', key);
    if (!fact) return undefined;
    const lastTombstone = this.#context.connection.sql.lastTombstone.get() as number;
    return { entry: fact.entry, versions: this.versions(namespace, fact.row), row: fact.row.row, lastTombstone };
  }

  versions(namespace: Namespace, fact: EntryRow): Entry[] {
    const { connection, rows, time } = this.#context;
    const found = connection.sql.versions.all(connection.namespaceId(namespace), fact.key_hash, time.now()) as EntryRow[];
    return found.map((row) => rows.open(namespace, 'history', row)).filter((entry) => entry !== undefined);
  }

  /** Returns rows with their writers. Rows with a broken seal all get the writer `''`, which no real writer has. */
  writersOf(namespace: Namespace, kind: Kind, found: readonly EntryRow[]): (EntryCursor & { readonly writer: string })[] {
    return found.map((row) => {
      const entry = this.#context.rows.open(namespace, kind, row);
      return { at: row.updated_at, row: row.row, writer: entry ? writerOf(entry.author) : '' };
    });
  }

  /** Returns the next rows of a kind with their writers, oldest first, including expired rows. */
  writersAfter(namespace: Namespace, kind: Kind, { at, row }: EntryCursor, limit: number): (EntryCursor & { writer: string })[] {
    const { connection } = this.#context;
    const id = connection.namespaceId(namespace);
    if (id === undefined) return [];
    const found = connection
      .statementsOf(kind)
      .oldest.all(id, INCLUDE_EXPIRED, Number.MAX_SAFE_INTEGER, at, at, row, limit) as EntryRow[];
    return this.writersOf(namespace, kind, found);
  }

  count(namespace: Namespace, kind: Kind, category?: string): number {
    const { connection, time } = this.#context;
    const id = connection.namespaceId(namespace);
    if (id === undefined) return 0;
    const { count, countInCategory, countExpired } = connection.statementsOf(kind);
    if (category === undefined && connection.hasUsageCounters) {
      return connection.usageCounters.rows(id, kind) - (countExpired.get({ id, now: time.now() }) as number);
    }
    return (
      category === undefined ? count.get(id, time.now()) : countInCategory.get(id, time.now(), storedCategory(category))
    ) as number;
  }

  countEnding(namespace: Namespace, kind: Kind, before: number): number {
    const { connection, time } = this.#context;
    const id = connection.namespaceId(namespace);
    return id === undefined ? 0 : (connection.statementsOf(kind).countEnding.get(id, time.now(), before) as number);
  }

  page(namespace: Namespace, kind: Kind, query: PageQuery): EntryPage {
    const { connection, rows } = this.#context;
    const id = connection.namespaceId(namespace);
    if (id === undefined) return { entries: [], rows: [] };
    const { limit, matches, bytes = STEP_BYTES, uncached = false } = query;
    const { by, start } = ORDERS[query.sort];
    const entries: Entry[] = [];
    const rowNumbers: number[] = [];
    let after = query.after ?? start;
    let opened = 0;
    for (let seen = 0; seen < MAX_ROWS_PER_STEP;) {
      const estimate = seen === 0 ? FIRST_CHUNK : Math.ceil(((bytes - opened) * seen) / opened);
      const chunk = Math.min(CHUNK, estimate, matches ? CHUNK : limit - entries.length);
      const found = this.#rowsAfter(id, kind, query, after, chunk + 1);
      for (const [index, row] of found.slice(0, chunk).entries()) {
        const entry = uncached ? rows.open(namespace, kind, row) : rows.openCached(namespace, kind, row);
        after = { at: row[by], row: row.row };
        // On a damaged page, the column may not contain a blob, whatever its declared type.
        opened += Buffer.isBuffer(row.sealed) ? row.sealed.length : 0;
        if (entry && (matches?.(entry) ?? true)) {
          entries.push(entry);
          rowNumbers.push(row.row);
        }
        if (index + 1 === found.length) return { entries, rows: rowNumbers };
        if (entries.length === limit || opened >= bytes) return { entries, rows: rowNumbers, next: after };
      }
      if (found.length === 0) return { entries, rows: rowNumbers };
      seen += chunk;
    }
    return { entries, rows: rowNumbers, next: after };
  }

  #rowsAfter(
    id: number,
    kind: Kind,
    { sort, category, expiresBefore }: PageQuery,
    { at, row }: EntryCursor,
    limit: number,
  ): EntryRow[] {
    const { connection, time } = this.#context;
    const { all, inCategory } = ORDERS[sort];
    const scope = [id, time.now(), expiresBefore ?? Number.MAX_SAFE_INTEGER];
    const place = [at, at, row, limit];
    const statements = connection.statementsOf(kind);
    if (category === undefined) return statements[all].all(...scope, ...place) as EntryRow[];
    return statements[inCategory].all(...scope, storedCategory(category), ...place) as EntryRow[];
  }
}
