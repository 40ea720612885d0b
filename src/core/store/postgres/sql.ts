import { KIND_NUMBERS } from '../statements.ts';
import type { Kind } from '../store.ts';

export const COLUMNS = 'number AS row, namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed';
/** The condition of the unique index of keys. PostgreSQL uses the index only if a query implies its condition. */
export const KEYED = 'kind <> 2 AND kind <> 6';
/** Finds the namespace by its names, because another process can delete and create namespaces at any time. */
const NAMESPACE = 'namespace = (SELECT id FROM namespace WHERE subject = $1 AND session = $2)';

/**
 * Finds entries by the hash of their key. The sums keep the server from using an index that begins with the namespace. Before the
 * server has statistics, it would choose such an index and read the whole namespace.
 */
export const keySql = (kind: Kind): string =>
  `key_hash = $3 AND namespace + 0 = (SELECT id FROM namespace WHERE subject = $1 AND session = $2) AND kind = ${KIND_NUMBERS[kind]} AND ${KEYED}`;

export const placeSql = (kind: Kind): string => `${NAMESPACE} AND kind = ${KIND_NUMBERS[kind]}`;
