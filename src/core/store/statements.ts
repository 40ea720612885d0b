import type { Database, Statement } from 'better-sqlite3';
import { CATEGORY } from '../../contract/categories.ts';
import { ACTIVITY_TTL } from '../../contract/limits.ts';
import { SUPERSEDED_FACT_FORMATS } from '../crypto/cipher.ts';
import type { Kind } from './store.ts';

/** Numbers that represent the kinds in the database file. A number must never change its meaning. */
export const KIND_NUMBERS = { fact: 1, history: 2, audit: 3, cache: 4, pack: 5, activity: 6 } as const satisfies Record<
  Kind,
  number
>;
export const ALL_KINDS = Object.keys(KIND_NUMBERS) as readonly Kind[];
export const KIND_BY_NUMBER: ReadonlyMap<number, Kind> = new Map(ALL_KINDS.map((kind) => [KIND_NUMBERS[kind], kind]));

/** SQL that returns the name of a category from its stored form (see `storedCategory`). */
export const categoryName = (column: string): string => `iif(${column} = '', '${CATEGORY.default}', ${column})`;

/** A creation time equal to the update time is stored as 0, which SQLite stores without any byte. */
const COLUMNS = `rowid AS row, key_hash, ${categoryName('category')} AS category,
  iif(created_at = 0, updated_at, created_at) AS created_at, updated_at, expires_at, sealed`;

/**
 * Milliseconds from the update to the expiry of an activity row. The index on `expires_at` leaves these rows out, so the index on
 * `updated_at` finds the expired ones.
 */
const ACTIVITY_MS = ACTIVITY_TTL * 1000;

export type Statements = Record<keyof ReturnType<typeof prepare>, Statement>;
export type KindStatements = Record<keyof ReturnType<typeof prepareKind>, Statement>;

/**
 * Conditions that begin a page after a position in an index, so that reading the last page costs as much as reading the first.
 */
const NEWEST_FIRST = 'AND updated_at <= ? AND (updated_at < ? OR rowid < ?) ORDER BY updated_at DESC, rowid DESC';
const OLDEST_FIRST = 'AND updated_at >= ? AND (updated_at > ? OR rowid > ?) ORDER BY updated_at, rowid';
const SOONEST_FIRST = 'AND expires_at >= ? AND (expires_at > ? OR rowid > ?) ORDER BY expires_at, rowid';

export function prepareKind(db: Database, kind: Kind) {
  // The kind is part of the SQL text. If the kind were a parameter that a partial index depends on, SQLite would plan the statement
  // again at each call, which costs more than the search.
  const all = `namespace = ? AND kind = ${KIND_NUMBERS[kind]}`;
  // SQLite uses a partial index only if the query contains the condition of the index word for word.
  const here = `${all} AND kind <> 2${kind === 'activity' ? '' : ' AND kind <> 6'}`;
  // Of the activity rows, the index on `updated_at` finds those that expire. Of the others, the index on `expires_at`.
  const timed = kind === 'activity' ? here : `${all} AND kind <> 6`;
  const expired = `${timed.replace('?', '@id')} AND expires_at <= @now${kind === 'activity' ? ` AND updated_at <= @now - ${ACTIVITY_MS}` : ''}`;
  const page = (where: string, after: string): Statement =>
    db.prepare(`SELECT ${COLUMNS} FROM entry WHERE ${here} AND expires_at > ? AND expires_at < ? ${where} ${after} LIMIT ?`);
  return {
    // The index contains the first bytes of the hash.
    find: db.prepare(`SELECT ${COLUMNS} FROM entry WHERE ${here} AND substr(key_hash, 1, 8) = substr(?, 1, 8) AND key_hash = ?`),
    newest: page('', NEWEST_FIRST),
    newestInCategory: page('AND category = ?', NEWEST_FIRST),
    oldest: page('', OLDEST_FIRST),
    oldestInCategory: page('AND category = ?', OLDEST_FIRST),
    soonest: page('', SOONEST_FIRST),
    soonestInCategory: page('AND category = ?', SOONEST_FIRST),
    count: db.prepare(`SELECT count(*) FROM entry WHERE ${here} AND expires_at > ?`).pluck(),
    countInCategory: db.prepare(`SELECT count(*) FROM entry WHERE ${here} AND expires_at > ? AND category = ?`).pluck(),
    countExpired: db.prepare(`SELECT count(*) FROM entry WHERE ${expired}`).pluck(),
    countEnding: db.prepare(`SELECT count(*) FROM entry WHERE ${timed} AND expires_at > ? AND expires_at < ?`).pluck(),
    expiredByCategory: db.prepare(
      `SELECT ${categoryName('category')} AS category, count(*) AS count FROM entry WHERE ${expired} GROUP BY 1`,
    ),
    // While a forget lists rows in this order, no row can move to an earlier position: versions never change, and a change makes
    // any other entry newer. SQLite answers the query from the index alone.
    rowsInOrder:
      kind === 'history'
        ? db.prepare(`SELECT rowid AS row, expires_at AS at FROM entry WHERE ${timed} ${SOONEST_FIRST} LIMIT ?`)
        : db.prepare(`SELECT rowid AS row, updated_at AS at FROM entry WHERE ${all} AND kind <> 2 ${OLDEST_FIRST} LIMIT ?`),
    rowsOfCategory: db.prepare(
      `SELECT rowid AS row, updated_at AS at FROM entry WHERE ${here} AND category = ? ${OLDEST_FIRST} LIMIT ?`,
    ),
    // The plus signs keep SQLite from reading the whole kind through an index.
    deleteThese: db
      .prepare(
        `DELETE FROM entry WHERE +namespace = ? AND +kind = ${KIND_NUMBERS[kind]} AND rowid IN (SELECT value FROM json_each(?)) RETURNING rowid`,
      )
      .pluck(),
    trim: db
      .prepare(
        `DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE ${here} ORDER BY updated_at, rowid LIMIT ?) RETURNING rowid`,
      )
      .pluck(),
  };
}

/**
 * Subquery of all pairs of namespace and kind, without activity rows, so that SQLite can use the index on `expires_at`. Versions
 * (kind 2) come first, so that few versions are left to delete together with their fact.
 */
const PLACES = `(SELECT id, column1 AS kind FROM namespace CROSS JOIN (VALUES (2), (1), (3), (4), (5))) AS place`;
/** Condition for the activity rows of a namespace. */
const SUPERSEDED_FACT = `substr(sealed, 1, 1) IN (${SUPERSEDED_FACT_FORMATS.map((format) => `x'${format.toString(16)}'`).join(', ')})`;
const ACTIVITY = 'entry.namespace = namespace.id AND entry.kind = 6 AND entry.kind <> 2';

/** Condition for a namespace without entries. Each part is answered by one partial index. */
const isEmpty = (namespace: string): string =>
  ['kind <> 2', 'kind = 2']
    .map((kind) => `NOT EXISTS (SELECT 1 FROM entry WHERE entry.namespace = ${namespace} AND ${kind})`)
    .join(' AND ');

const VECTOR = 'vector.row, vector.namespace, model, vector.sealed, entry.updated_at, entry.key_hash';
/** Condition that joins a vector to its fact. */
const OF_ITS_FACT = 'entry.rowid = vector.row AND entry.namespace = vector.namespace AND entry.kind = 1';

export function prepare(db: Database) {
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    rollback: db.prepare('ROLLBACK'),
    savepoint: db.prepare('SAVEPOINT job'),
    release: db.prepare('RELEASE job'),
    rollbackTo: db.prepare('ROLLBACK TO job'),

    // Returns the length of the log without changing anything.
    logSize: db.prepare('PRAGMA wal_checkpoint(NOOP)'),
    checkpoint: db.prepare('PRAGMA wal_checkpoint(PASSIVE)'),
    truncateLog: db.prepare('PRAGMA wal_checkpoint(TRUNCATE)'),
    pageCount: db.prepare('PRAGMA page_count').pluck(),
    schemaVersion: db.prepare('PRAGMA schema_version').pluck(),
    dropPageCache: db.prepare('PRAGMA shrink_memory'),

    meta: db.prepare('SELECT value FROM meta WHERE name = ?').pluck(),
    setMeta: db.prepare('INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value'),
    deleteMeta: db.prepare('DELETE FROM meta WHERE name = ?'),
    metaNames: db.prepare('SELECT name FROM meta WHERE name >= ? AND name < ? ORDER BY name').pluck(),
    metaBlobs: db.prepare("SELECT name FROM meta WHERE typeof(value) = 'blob'").pluck(),

    namespaceId: db.prepare('SELECT id FROM namespace WHERE subject = ? AND session = ?').pluck(),
    insertNamespace: db.prepare('INSERT INTO namespace (subject, session) VALUES (?, ?)'),
    namespaces: db.prepare('SELECT id, subject, session FROM namespace'),
    deleteEmptySessions: db.prepare(`DELETE FROM namespace WHERE session <> '' AND ${isEmpty('namespace.id')}`),

    insert: db.prepare(
      'INSERT INTO entry (rowid, namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
    ),
    rowExists: db.prepare('SELECT 1 FROM entry WHERE rowid = ?').pluck(),
    update: db.prepare(
      'UPDATE entry SET key_hash = ?, category = ?, created_at = ?, updated_at = ?, expires_at = ?, sealed = ? WHERE rowid = ?',
    ),
    deleteRow: db.prepare('DELETE FROM entry WHERE rowid = ?'),

    // The unary plus keeps SQLite from using the index on `expires_at`, which would find the versions of every key.
    versions: db.prepare(
      `SELECT ${COLUMNS} FROM entry WHERE namespace = ? AND kind = 2 AND key_hash = ? AND +expires_at > ? ORDER BY updated_at DESC`,
    ),
    lastVersionBefore: db
      .prepare('SELECT max(updated_at) FROM entry WHERE namespace = ? AND kind = 2 AND key_hash = ? AND updated_at < ?')
      .pluck(),
    countVersions: db.prepare('SELECT count(*) FROM entry WHERE namespace = ? AND kind = 2 AND key_hash = ?').pluck(),
    versionSizes: db.prepare(
      `SELECT rowid AS row, length(sealed) AS bytes, ${SUPERSEDED_FACT} AND expires_at > ? AS isVisible FROM entry
         WHERE namespace = ? AND kind = 2 AND key_hash = ? AND updated_at <= ?`,
    ),
    // The unary plus keeps SQLite from using the index on `expires_at`, as in `versions`.
    countSuperseded: db
      .prepare(
        `SELECT count(*) FROM entry WHERE namespace = ? AND kind = 2 AND key_hash = ? AND +expires_at > ? AND ${SUPERSEDED_FACT}`,
      )
      .pluck(),
    deleteVersions: db.prepare('DELETE FROM entry WHERE namespace = ? AND kind = 2 AND key_hash = ?'),

    keyRecords: db.prepare('SELECT id, role, proof, source, segment FROM master_key'),
    insertKeyRecord: db.prepare('INSERT INTO master_key (id, role, proof, source, segment) VALUES (?, ?, ?, ?, 0)'),
    updateSegment: db.prepare('UPDATE master_key SET segment = ? WHERE id = ?'),
    retireKey: db.prepare("UPDATE master_key SET role = 'retiring' WHERE role = 'current'"),
    deleteRetiredKey: db.prepare("DELETE FROM master_key WHERE role = 'retiring'"),

    expired: db.prepare(
      `SELECT entry.rowid AS row, entry.namespace, entry.kind, key_hash FROM ${PLACES}
         CROSS JOIN entry ON entry.namespace = place.id AND entry.kind = place.kind AND entry.kind <> 6 AND expires_at <= @now
       UNION ALL SELECT entry.rowid, entry.namespace, entry.kind, key_hash FROM namespace
         CROSS JOIN entry ON ${ACTIVITY} AND updated_at <= @now - ${ACTIVITY_MS} AND expires_at <= @now
       LIMIT @limit`,
    ),
    // Of the activity rows of a namespace, the oldest expires first.
    nextExpiry: db
      .prepare(
        `SELECT min(at) FROM (
           SELECT (SELECT min(expires_at) FROM entry WHERE namespace = place.id AND entry.kind = place.kind AND entry.kind <> 6) AS at
             FROM ${PLACES}
           UNION ALL SELECT (SELECT max(updated_at + ${ACTIVITY_MS}, expires_at) FROM entry WHERE ${ACTIVITY} ORDER BY updated_at LIMIT 1)
             FROM namespace
           UNION ALL SELECT min(expires_at) FROM author)`,
      )
      .pluck(),

    author: db.prepare('SELECT id, namespace, expires_at, sealed FROM author WHERE id = ?'),
    authors: db.prepare('SELECT id, namespace, expires_at, sealed FROM author'),
    authorsOf: db.prepare('SELECT id, namespace, expires_at, sealed FROM author WHERE namespace = ?'),
    insertAuthor: db.prepare("INSERT OR IGNORE INTO author (id, namespace, expires_at, sealed) VALUES (?, ?, 0, x'')"),
    updateAuthor: db.prepare('UPDATE author SET expires_at = ?, sealed = ? WHERE id = ?'),
    deleteAuthor: db.prepare('DELETE FROM author WHERE id = ?'),
    deleteExpiredAuthors: db.prepare('DELETE FROM author WHERE expires_at <= ?'),
    deleteAuthorsWithoutEntries: db.prepare(`DELETE FROM author WHERE ${isEmpty('author.namespace')}`),
    deleteAuthorsOfSessions: db.prepare('DELETE FROM author WHERE namespace NOT IN (SELECT id FROM namespace)'),

    rowsAfter: db.prepare(`SELECT ${COLUMNS}, kind, namespace FROM entry WHERE rowid > ? ORDER BY rowid LIMIT ?`),
    datesAfter: db.prepare('SELECT rowid AS row, updated_at FROM entry WHERE rowid > ? ORDER BY rowid LIMIT ?'),
    rowById: db.prepare(`SELECT ${COLUMNS}, kind, namespace FROM entry WHERE rowid = ?`),
    /**
     * Each statement finds the largest row number in one index. `entry_expiry` contains every row except activity rows; the
     * other two indexes together contain every row.
     */
    lastByExpiry: db.prepare('SELECT max(+rowid) FROM entry INDEXED BY entry_expiry WHERE kind <> 6').pluck(),
    lastByChange: db.prepare('SELECT max(+rowid) FROM entry INDEXED BY entry_newest WHERE kind <> 2').pluck(),
    lastVersion: db.prepare('SELECT max(+rowid) FROM entry INDEXED BY entry_version WHERE kind = 2').pluck(),
    countRows: db
      .prepare('SELECT (SELECT count(*) FROM entry WHERE kind <> 2) + (SELECT count(*) FROM entry WHERE kind = 2)')
      .pluck(),

    // With CROSS JOIN, SQLite reads the vectors in their order and finds the fact of each, not the other way round.
    vectorsBefore: db.prepare(
      `SELECT ${VECTOR} FROM vector CROSS JOIN entry ON ${OF_ITS_FACT}
         WHERE vector.namespace = ? AND model = ? AND vector.row < ? ORDER BY vector.row DESC LIMIT ?`,
    ),
    vectorOf: db.prepare(`SELECT ${VECTOR} FROM vector CROSS JOIN entry ON ${OF_ITS_FACT} WHERE vector.row = ?`),
    allVectorsAfter: db.prepare(
      `SELECT ${VECTOR} FROM vector LEFT JOIN entry ON ${OF_ITS_FACT} WHERE vector.row > ? ORDER BY vector.row LIMIT ?`,
    ),
    // SQLite answers the query from two indexes alone.
    factsWithVector: db.prepare(
      `SELECT rowid AS row, updated_at AS at,
         EXISTS (SELECT 1 FROM vector WHERE vector.namespace = entry.namespace AND model = ? AND vector.row = entry.rowid) AS has
         FROM entry WHERE namespace = ? AND kind = 1 AND kind <> 2 ${NEWEST_FIRST} LIMIT ?`,
    ),
    countVectors: db.prepare('SELECT count(*) FROM vector WHERE namespace = ? AND model = ?').pluck(),
    putVector: db.prepare(
      `INSERT INTO vector (row, namespace, model, sealed) VALUES (?, ?, ?, ?) ON CONFLICT (row)
       DO UPDATE SET namespace = excluded.namespace, model = excluded.model, sealed = excluded.sealed`,
    ),
    deleteVector: db.prepare('DELETE FROM vector WHERE row = ?'),
    deleteVectors: db.prepare('DELETE FROM vector WHERE row IN (SELECT row FROM vector ORDER BY row LIMIT ?)'),

    insertHashTombstone: db.prepare('INSERT INTO tombstone (at, trusted, hash) VALUES (?, ?, ?)'),
    lastTombstone: db.prepare('SELECT coalesce(max(rowid), 0) FROM tombstone').pluck(),
    deleteTombstonesAfter: db.prepare('DELETE FROM tombstone WHERE hash = ? AND rowid > ?'),
    insertScopeTombstone: db.prepare(
      'INSERT INTO tombstone (at, trusted, subject, session, kind, category) VALUES (?, ?, ?, ?, ?, ?)',
    ),
    tombstones: db.prepare('SELECT at, trusted, hash, subject, session, kind, category FROM tombstone'),
    deleteOldTombstones: db.prepare('DELETE FROM tombstone WHERE at <= ?'),

    insertRevocation: db.prepare(
      `INSERT INTO revoked_token (id, expires_at) VALUES (?, ?)
       ON CONFLICT (id) DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)`,
    ),
    revokedTokens: db.prepare('SELECT id FROM revoked_token WHERE expires_at > ? ORDER BY id').pluck(),
    revocations: db.prepare('SELECT id, expires_at FROM revoked_token'),
    deleteOldRevocations: db.prepare('DELETE FROM revoked_token WHERE expires_at <= ?'),
  };
}
