import { KIND_NUMBERS } from '../statements.ts';
import type { Kind } from '../store.ts';

export const COLUMNS = 'number AS row, namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed';
/** The condition of the unique index of keys. PostgreSQL uses the index only if a query implies its condition. */
export const KEYED = 'kind <> 2 AND kind <> 6';
/** Finds the namespace by its names, because another process can delete and create namespaces at any time. */
const NAMESPACE = 'namespace = (SELECT id FROM namespace WHERE subject = $1 AND session = $2)';

/**
 * Finds entries by the hash of their key. There are several hashes during a rotation. The sums keep the server from using an index that begins with the namespace. Before the
 * server has statistics, it would choose such an index and read the whole namespace.
 */
export const keySql = (kind: Kind): string =>
  `key_hash = ANY ($3::bytea[]) AND namespace + 0 = (SELECT id FROM namespace WHERE subject = $1 AND session = $2) AND kind = ${KIND_NUMBERS[kind]} AND ${KEYED}`;

export const placeSql = (kind: Kind): string => `${NAMESPACE} AND kind = ${KIND_NUMBERS[kind]}`;

/** Begins a transaction that writes. Only one process has the lock of the writers. It ends with the transaction. */
export const BEGIN_WRITING = 'BEGIN; LOCK TABLE writer_lock IN EXCLUSIVE MODE';
/**
 * The newest change and the time of the server, as one text. The server computes it once for each statement. In a statement
 * that reads rows, the change belongs to the same snapshot as the rows.
 */
export const NEWEST = `(SELECT number || ' ' || encode(mark, 'hex') || ' ' || floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
  FROM change_log ORDER BY number DESC LIMIT 1) AS newest`;
/** Reads the last numbers that were used. The newest row of the change log is never deleted. */
export const NEWEST_CHANGE =
  'SELECT number AS change, mark, last_row, last_namespace, last_tombstone FROM change_log ORDER BY number DESC LIMIT 1';
