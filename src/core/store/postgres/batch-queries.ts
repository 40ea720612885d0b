import type { QuotaKind } from '../quota.ts';
import { KIND_NUMBERS } from '../statements.ts';
import type { Kind, Quota } from '../store.ts';
import { bigints, buffers, smallints } from './binary-arrays.ts';
import type { PlacedRow, RowSize } from './change-set.ts';
import type { RunQuery } from './database.ts';
import { COLUMNS, KEYED } from './sql.ts';

/** The hash of a key in a namespace. */
export interface Place {
  readonly id: number;
  readonly kind: Kind;
  readonly hash: Buffer;
}

const { fact, history, pack } = KIND_NUMBERS;

/** The kinds that count for each quota. */
export const QUOTA_KINDS: Record<QuotaKind, readonly number[]> = { fact: [fact, history], pack: [pack] };

/** Reads the entry under each key. */
export const readKeyed = (run: RunQuery, places: readonly Place[]): Promise<PlacedRow[]> =>
  run(
    `SELECT ${COLUMNS} FROM unnest($1::bigint[], $2::smallint[], $3::bytea[]) AS wanted (id, in_kind, hash)
       JOIN entry ON key_hash = hash AND namespace + 0 = id AND kind = in_kind AND ${KEYED}`,
    [
      bigints(places.map(({ id }) => id)),
      smallints(places.map(({ kind }) => KIND_NUMBERS[kind])),
      buffers(places.map(({ hash }) => hash)),
    ],
  );

/**
 * Reads the versions of wanted facts, newest first. `OFFSET 0` keeps the server from reading all versions of the memory first, which it
 * would choose if there were few versions when it planned the statement.
 */
const versionsOf = (wanted: string, columns = COLUMNS): string =>
  `SELECT version.* FROM (SELECT DISTINCT ${wanted}) AS wanted (id, hash) CROSS JOIN LATERAL
     (SELECT ${columns} FROM entry WHERE key_hash = hash AND namespace + 0 = id AND kind = 2 OFFSET 0) AS version`;
const NEWEST_FIRST = 'ORDER BY updated_at DESC';

/** Reads the versions of each fact, newest first. */
export async function readVersions(run: RunQuery, facts: readonly Place[]): Promise<PlacedRow[]> {
  if (facts.length === 0) return [];
  return run(`${versionsOf('id, hash FROM unnest($1::bigint[], $2::bytea[]) AS each (id, hash)')} ${NEWEST_FIRST}`, [
    bigints(facts.map(({ id }) => id)),
    buffers(facts.map(({ hash }) => hash)),
  ]);
}

/** Reads rows by their numbers, and the versions of the facts among them, newest first. */
export const readNumbered = (run: RunQuery, numbers: readonly number[]): Promise<[rows: PlacedRow[], versions: PlacedRow[]]> =>
  Promise.all([
    run<PlacedRow>(`SELECT ${COLUMNS} FROM entry WHERE number = ANY ($1::bigint[])`, [numbers]),
    run<PlacedRow>(
      `${versionsOf('namespace, key_hash FROM entry WHERE number = ANY ($1::bigint[]) AND kind = 1')} ${NEWEST_FIRST}`,
      [numbers],
    ),
  ]);

const SIZES = 'number AS row, namespace, kind, key_hash, octet_length(sealed) AS bytes';

/** Reads the sizes of expired rows: of facts with all their versions, and of expired versions of other facts. */
export function readExpired(run: RunQuery, ids: readonly number[], kind: QuotaKind, now: number): Promise<RowSize[]> {
  const kinds = QUOTA_KINDS[kind].join(', ');
  const expired = `SELECT ${SIZES} FROM entry WHERE namespace = ANY ($1::bigint[]) AND kind IN (${kinds}) AND expires_at <= $2`;
  // Materialized, because a condition on facts alone would let the server choose an index without the expiry.
  const withVersions = `WITH expired AS MATERIALIZED (${expired})
    SELECT * FROM expired UNION ${versionsOf('namespace, key_hash FROM expired WHERE kind = 1', SIZES)}`;
  return run(kind === 'fact' ? withVersions : expired, [ids, now]);
}

/** Returns the storage of rows: their entries of a kind, and the bytes of all. */
export function sizeOf(rows: Iterable<RowSize>, kind: QuotaKind): Quota {
  let [facts, bytes] = [0, 0];
  for (const row of rows) {
    if (row.kind === KIND_NUMBERS[kind]) facts += 1;
    bytes += row.bytes;
  }
  return { facts, bytes };
}

interface UsageRow {
  readonly namespace: number;
  readonly kind: number;
  readonly rows: number;
  readonly bytes: number;
}

/** Reads the rows and bytes of each kind in namespaces, as the triggers have counted them. */
export const readUsage = (run: RunQuery, ids: readonly number[]): Promise<UsageRow[]> =>
  run('SELECT namespace, kind, rows, bytes FROM usage WHERE namespace = ANY ($1::bigint[])', [ids]);
