import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import type { EntryRow } from '../connection.ts';
import { ALL_KINDS, KIND_NUMBERS } from '../statements.ts';
import {
  type Entry,
  type EntryCursor,
  type EntryPage,
  type FactWithHistory,
  type Kind,
  type Namespace,
  type Overview,
  type PageQuery,
  STEP_BYTES,
} from '../store.ts';
import type { ChangeFeed, Found } from './change-feed.ts';
import type { Database } from './database.ts';
import { type PackedRow, packedSql, unpackRows } from './packed-rows.ts';
import type { ServerRows } from './rows.ts';
import { KEYED, keySql, NEWEST, placeSql } from './sql.ts';

/** Maximum rows decrypted in one step while searching for matching entries. */
const MAX_ROWS_PER_STEP = 500;
/** A page of more rows uses the longer statement at once, so that the server does not read many long texts in vain. */
const MAX_SHORT_ROWS = 101;
const NEVER = Number.MAX_SAFE_INTEGER;

interface Order {
  readonly by: 'updated_at' | 'expires_at';
  readonly descending: boolean;
}

const ORDERS: Record<PageQuery['sort'], Order> = {
  updated: { by: 'updated_at', descending: true },
  oldest: { by: 'updated_at', descending: false },
  expires: { by: 'expires_at', descending: false },
};

const hasText = (row: PackedRow): row is EntryRow => row.sealed !== undefined;

/** Integer bound for `expires_at < before`, because the column has whole milliseconds. */
const bound = (before: number): number => Math.min(NEVER, Math.ceil(before));

/** Finds the entry under a key. One query finds the row under any hash, because a rotation can change the hash between two queries. */
const FIND = new Map(
  ALL_KINDS.map((kind) => [
    kind,
    `SELECT ${NEWEST}, string_agg(${packedSql('sealed')}, ''::bytea) AS rows FROM entry WHERE ${keySql(kind)} AND expires_at > $4`,
  ]),
);

const VERSIONS = `SELECT ${NEWEST}, string_agg(packed, ''::bytea) AS rows FROM (
  SELECT ${packedSql('sealed')} AS packed FROM entry
    WHERE key_hash = ANY ($3::bytea[]) AND namespace + 0 = (SELECT id FROM namespace WHERE subject = $1 AND session = $2)
      AND kind = 2 AND expires_at > $4 ORDER BY updated_at DESC) AS version`;

/**
 * Reads a page in the order of the index, so the server sorts nothing and stops after the last row. If the sealed bytes of all rows are
 * less than the size of the page, one aggregate is enough. Otherwise `rows` is NULL, unless `isLong`: then rows after those that reach
 * the size come without their text, and only show that there are more. Adding up the bytes before each row takes as long as reading it.
 */
function pageSql(kind: Kind, { by, descending }: Order, inCategory: boolean, isLong: boolean): string {
  const [sign, direction] = descending ? ['<', 'DESC'] : ['>', 'ASC'];
  const order = `ORDER BY ${by} ${direction}, number ${direction}`;
  const packed = `string_agg(${packedSql('sealed')}, ''::bytea)`;
  const isRead = 'sum(octet_length(sealed)) OVER before - octet_length(sealed) < $8';
  return `SELECT ${NEWEST}, count(*), ${isLong ? packed : `CASE WHEN sum(octet_length(sealed)) < $8 THEN ${packed} END`} AS rows FROM (
    SELECT number, created_at, updated_at, expires_at, category, key_hash, ${isLong ? `CASE WHEN ${isRead} THEN sealed END AS sealed` : 'sealed'}
      FROM entry WHERE ${placeSql(kind)} AND kind <> 2 ${kind === 'activity' ? '' : 'AND kind <> 6'}
        AND expires_at > $3 AND expires_at < $4 AND (${by}, number) ${sign} ($5, $6) ${inCategory ? 'AND category = $9' : ''}
      ${isLong ? `WINDOW before AS (${order} ROWS UNBOUNDED PRECEDING)` : ''} ${order} LIMIT $7) AS page`;
}

/** The statements of pages. The same texts each time, because composing a text takes longer than finding it. */
const PAGES = new Map<string, string>();

function knownPageSql(kind: Kind, sort: PageQuery['sort'], inCategory: boolean, isLong: boolean): string {
  const name = `${kind} ${sort} ${inCategory} ${isLong}`;
  const known = PAGES.get(name) ?? pageSql(kind, ORDERS[sort], inCategory, isLong);
  PAGES.set(name, known);
  return known;
}

interface Deps {
  readonly database: Database;
  readonly feed: ChangeFeed;
  readonly rows: ServerRows;
  readonly keys: KeyKeeper;
  readonly time: Pick<StoredClock, 'now'>;
}

/**
 * Reads entries that have not expired, each time from the database. Methods that open entries also bring this process up to date.
 * The callers of the others do that before.
 */
export class ServerReader {
  readonly #database: Database;
  readonly #feed: ChangeFeed;
  readonly #rows: ServerRows;
  readonly #keys: KeyKeeper;
  readonly #time: Pick<StoredClock, 'now'>;

  constructor({ database, feed, rows, keys, time }: Deps) {
    this.#database = database;
    this.#feed = feed;
    this.#rows = rows;
    this.#keys = keys;
    this.#time = time;
  }

  async get(namespace: Namespace, kind: Kind, key: string): Promise<Entry | undefined> {
    return (await this.#find(namespace, kind, key))?.entry;
  }

  async #find(namespace: Namespace, kind: Kind, key: string): Promise<{ row: number; entry: Entry } | undefined> {
    const { rows, isNewest } = await this.#readKeyed(FIND.get(kind) ?? '', namespace, key);
    const row = rows.find(hasText);
    const entry = row && this.#rows.openCached(namespace, kind, row, isNewest);
    return entry && { row: row.row, entry };
  }

  #readKeyed(sql: string, namespace: Namespace, key: string): Promise<Found<PackedRow>> {
    const { subject, session = '' } = namespace;
    return this.#readPacked(sql, [subject, session, this.#keys.ring.hashes(namespace, key), this.#time.now()]);
  }

  async #readPacked(sql: string, values: readonly unknown[]): Promise<Found<PackedRow>> {
    const { rows, isNewest } = await this.#feed.read<{ rows: Buffer | null }>(sql, values);
    return { rows: unpackRows(rows[0]?.rows ?? null), isNewest };
  }

  async history(namespace: Namespace, key: string): Promise<Entry[]> {
    return (await this.withHistory(namespace, key))?.versions.slice() ?? [];
  }

  async withHistory(namespace: Namespace, key: string): Promise<FactWithHistory | undefined> {
    const found = await this.#find(namespace, 'fact', key);
    if (!found) return undefined;
    const [versions, [state]] = await Promise.all([
      this.#readKeyed(VERSIONS, namespace, key),
      this.#database.read<{ last: number }>('SELECT last_tombstone AS last FROM change_log ORDER BY number DESC LIMIT 1'),
    ]);
    return {
      ...found,
      versions: versions.rows
        .filter(hasText)
        .map((version) => this.#rows.open(namespace, 'history', version))
        .filter((version) => version !== undefined),
      lastTombstone: state?.last ?? 0,
    };
  }

  async count({ subject, session = '' }: Namespace, kind: Kind, category?: string): Promise<number> {
    const inCategory = category === undefined ? '' : `AND ${KEYED} AND category = $4`;
    const values = [subject, session, this.#time.now(), ...(category === undefined ? [] : [category])];
    const [row] = await this.#database.read<{ count: number }>(
      `SELECT count(*) FROM entry WHERE ${placeSql(kind)} AND expires_at > $3 ${inCategory}`,
      values,
    );
    return row?.count ?? 0;
  }

  async countEnding({ subject, session = '' }: Namespace, kind: Kind, before: number): Promise<number> {
    const [row] = await this.#database.read<{ count: number }>(
      `SELECT count(*) FROM entry WHERE ${placeSql(kind)} AND expires_at > $3 AND expires_at < $4`,
      [subject, session, this.#time.now(), bound(before)],
    );
    return row?.count ?? 0;
  }

  async page(namespace: Namespace, kind: Kind, query: PageQuery): Promise<EntryPage> {
    const { limit, matches, bytes = STEP_BYTES, uncached = false } = query;
    const { by } = ORDERS[query.sort];
    const most = matches ? MAX_ROWS_PER_STEP : limit;
    const { rows: found, isNewest } = await this.#rowsAfter(namespace, kind, query, most + 1, bytes);
    // Later pages are rarely read again.
    const keep = isNewest && query.after === undefined;
    const entries: Entry[] = [];
    const rows: number[] = [];
    let last: EntryCursor | undefined;
    for (const [index, row] of found.entries()) {
      if (entries.length === limit || index === most || !hasText(row)) return { entries, rows, ...(last && { next: last }) };
      last = { at: row[by], row: row.row };
      const entry = uncached ? this.#rows.open(namespace, kind, row) : this.#rows.openCached(namespace, kind, row, keep);
      if (entry && (matches?.(entry) ?? true)) {
        entries.push(entry);
        rows.push(row.row);
      }
    }
    return { entries, rows };
  }

  /** Reads at most `most` rows. */
  async #rowsAfter(
    { subject, session = '' }: Namespace,
    kind: Kind,
    { sort, category, expiresBefore = NEVER, after }: PageQuery,
    most: number,
    bytes: number,
  ): Promise<Found<PackedRow>> {
    const start: EntryCursor = after ?? (ORDERS[sort].descending ? { at: NEVER, row: NEVER } : { at: -NEVER, row: -NEVER });
    const values: unknown[] = [subject, session, this.#time.now(), bound(expiresBefore), start.at, start.row, most, bytes];
    if (category !== undefined) values.push(category);
    const sqlOf = (isLong: boolean): string => knownPageSql(kind, sort, category !== undefined, isLong);
    if (most > MAX_SHORT_ROWS) return this.#readPacked(sqlOf(true), values);
    const { rows: found, isNewest } = await this.#feed.read<{ rows: Buffer | null; count: number }>(sqlOf(false), values);
    const [page] = found;
    if (page && page.rows === null && page.count > 0) return this.#readPacked(sqlOf(true), values);
    return { rows: unpackRows(page?.rows ?? null), isNewest };
  }

  async namespaces(kind: Kind): Promise<readonly { readonly namespace: Namespace; readonly count: number }[]> {
    const rows = await this.#database.read<{ subject: string; session: string; count: number }>(
      `SELECT subject, session, usage.rows -
           (SELECT count(*) FROM entry WHERE namespace = id AND kind = ${KIND_NUMBERS[kind]} AND expires_at <= $1) AS count
         FROM namespace JOIN usage ON usage.namespace = id AND usage.kind = ${KIND_NUMBERS[kind]} ORDER BY id`,
      [this.#time.now()],
    );
    return rows
      .filter(({ count }) => count > 0)
      .map(({ subject, session, count }) => ({ namespace: session === '' ? { subject } : { subject, session }, count }));
  }

  /** Counts the facts of all subjects that are expired at a time. */
  async countExpired(now: number): Promise<number> {
    const [row] = await this.#database.read<{ count: number }>(
      'SELECT count(*) FROM namespace JOIN entry ON namespace = id AND kind = 1 AND expires_at <= $1',
      [now],
    );
    return row?.count ?? 0;
  }

  async overview(namespace: Namespace, kind: Kind, most: { categories: number; keys: number }): Promise<Overview> {
    const { subject, session = '' } = namespace;
    const now = this.#time.now();
    const { rows: counted } = await this.#feed.read<{ name: string; count: number }>(
      `SELECT ${NEWEST}, category AS name, count(*) FROM entry WHERE ${placeSql(kind)} AND expires_at > $3 GROUP BY category ORDER BY category`,
      [subject, session, now],
    );
    const shown = counted.slice(0, most.categories);
    const categories = await Promise.all(
      shown.map(async ({ name, count }) => ({ name, count, recent: await this.#newestKeys(namespace, kind, name, most.keys) })),
    );
    return { categories, more: counted.length - categories.length };
  }

  /** Returns the newest keys of a category. Skips rows with a broken seal. */
  async #newestKeys(namespace: Namespace, kind: Kind, category: string, most: number): Promise<string[]> {
    const keys: string[] = [];
    if (most === 0) return keys;
    for (let after: EntryCursor | undefined; ;) {
      const query: PageQuery = { sort: 'updated', limit: most - keys.length, category, bytes: NEVER, ...(after && { after }) };
      const page = await this.page(namespace, kind, query);
      keys.push(...page.entries.map(({ key }) => key));
      after = page.next;
      if (!after || keys.length === most) return keys;
    }
  }
}
