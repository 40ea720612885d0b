import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import type { EntryRow } from '../connection.ts';
import { KIND_NUMBERS } from '../statements.ts';
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
import type { ChangeFeed } from './change-feed.ts';
import type { PlacedRow } from './change-set.ts';
import type { Database } from './database.ts';
import type { ServerRows } from './rows.ts';
import { COLUMNS, KEYED, keySql, NEWEST, NEWEST_VALUE, placeSql } from './sql.ts';

/** Maximum rows decrypted in one step while searching for matching entries. */
const MAX_ROWS_PER_STEP = 500;
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

/** A row of a page. The text of rows beyond the size of the page is not read. */
type PageRow = Omit<EntryRow, 'sealed'> & { readonly sealed: Buffer | null };
const hasText = (row: PageRow): row is EntryRow => row.sealed !== null;

/** Integer bound for `expires_at < before`, because the column has whole milliseconds. */
const bound = (before: number): number => Math.min(NEVER, Math.ceil(before));

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
    const row = await this.#find(namespace, kind, key);
    return row && this.#rows.open(namespace, kind, row);
  }

  async #find(namespace: Namespace, kind: Kind, key: string): Promise<PlacedRow | undefined> {
    const { subject, session = '' } = namespace;
    // One query finds the row under any hash, because a rotation can change the hash between two queries.
    const [row] = await this.#feed.read<PlacedRow>(
      `SELECT ${NEWEST}, ${COLUMNS} FROM entry WHERE ${keySql(kind)} AND expires_at > $4`,
      [subject, session, this.#keys.ring.hashes(namespace, key), this.#time.now()],
    );
    return row;
  }

  async history(namespace: Namespace, key: string): Promise<Entry[]> {
    return (await this.withHistory(namespace, key))?.versions.slice() ?? [];
  }

  async withHistory(namespace: Namespace, key: string): Promise<FactWithHistory | undefined> {
    const row = await this.#find(namespace, 'fact', key);
    const entry = row && this.#rows.open(namespace, 'fact', row);
    if (!entry) return undefined;
    const [versions, [state]] = await Promise.all([
      this.#feed.read<PlacedRow>(
        `SELECT ${NEWEST}, ${COLUMNS} FROM entry WHERE key_hash = ANY ($2::bytea[]) AND namespace + 0 = $1 AND kind = 2 AND expires_at > $3 ORDER BY updated_at DESC`,
        [row.namespace, this.#keys.ring.hashes(namespace, key), this.#time.now()],
      ),
      this.#database.read<{ last: number }>('SELECT last_tombstone AS last FROM change_log ORDER BY number DESC LIMIT 1'),
    ]);
    return {
      entry,
      versions: versions
        .map((version) => this.#rows.open(namespace, 'history', version))
        .filter((version) => version !== undefined),
      row: row.row,
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
    const { limit, matches, bytes = STEP_BYTES } = query;
    const { by } = ORDERS[query.sort];
    const most = matches ? MAX_ROWS_PER_STEP : limit;
    const found = await this.#rowsAfter(namespace, kind, query, most + 1, bytes);
    const entries: Entry[] = [];
    const rows: number[] = [];
    let last: EntryCursor | undefined;
    for (const [index, row] of found.entries()) {
      if (entries.length === limit || index === most || !hasText(row)) return { entries, rows, ...(last && { next: last }) };
      last = { at: row[by], row: row.row };
      const entry = this.#rows.open(namespace, kind, row);
      if (entry && (matches?.(entry) ?? true)) {
        entries.push(entry);
        rows.push(row.row);
      }
    }
    return { entries, rows };
  }

  /**
   * Reads at most `most` rows. Rows after those whose sealed bytes reach `bytes` come without their text, and only show that there are
   * more. Only the first row has the newest change. The window has the order of the index, so the server sorts nothing and stops after the last row.
   */
  #rowsAfter(
    { subject, session = '' }: Namespace,
    kind: Kind,
    { sort, category, expiresBefore = NEVER, after }: PageQuery,
    most: number,
    bytes: number,
  ): Promise<PageRow[]> {
    const { by, descending } = ORDERS[sort];
    const [sign, direction] = descending ? ['<', 'DESC'] : ['>', 'ASC'];
    const order = `ORDER BY ${by} ${direction}, number ${direction}`;
    const start: EntryCursor = after ?? (descending ? { at: NEVER, row: NEVER } : { at: -NEVER, row: -NEVER });
    const values: unknown[] = [subject, session, this.#time.now(), bound(expiresBefore), start.at, start.row, most, bytes];
    if (category !== undefined) values.push(category);
    return this.#feed.read(
      `SELECT CASE WHEN sum(octet_length(sealed)) OVER before = octet_length(sealed) THEN ${NEWEST_VALUE} END AS newest, number AS row, key_hash, category, created_at, updated_at, expires_at,
           CASE WHEN sum(octet_length(sealed)) OVER before - octet_length(sealed) < $8 THEN sealed END AS sealed FROM entry
         WHERE ${placeSql(kind)} AND kind <> 2 ${kind === 'activity' ? '' : 'AND kind <> 6'}
           AND expires_at > $3 AND expires_at < $4 AND (${by}, number) ${sign} ($5, $6)
           ${category === undefined ? '' : 'AND category = $9'}
         WINDOW before AS (${order} ROWS UNBOUNDED PRECEDING) ${order} LIMIT $7`,
      values,
    );
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
    const counted = await this.#feed.read<{ name: string; count: number }>(
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
