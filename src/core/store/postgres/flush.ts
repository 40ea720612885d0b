import pg from 'pg';
import { bigints, buffers, smallints, texts } from './binary-arrays.ts';
import type { ChangeSet, Counters, PlacedRow } from './change-set.ts';
import type { RunQuery } from './database.ts';

const column = <K extends keyof PlacedRow>(rows: readonly PlacedRow[], name: K): PlacedRow[K][] => rows.map((row) => row[name]);

const rowArrays = (rows: readonly PlacedRow[]): unknown[] => [
  bigints(column(rows, 'row')),
  bigints(column(rows, 'namespace')),
  smallints(column(rows, 'kind')),
  buffers(column(rows, 'key_hash')),
  texts(column(rows, 'category')),
  bigints(column(rows, 'created_at')),
  bigints(column(rows, 'updated_at')),
  bigints(column(rows, 'expires_at')),
  buffers(column(rows, 'sealed')),
];

const ROW_ARRAYS =
  'unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bytea[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bytea[])';

/** Commits between two purges of the change log. */
const PURGE_EVERY = 256;
/**
 * How long the change log is kept. A process that was away for longer reads everything again. A lost commit is looked for within
 * a minute.
 */
const LOG_AGE = '5 minutes';

export async function insertRows(run: RunQuery, rows: readonly PlacedRow[]): Promise<void> {
  if (rows.length === 0) return;
  await run(
    `INSERT INTO entry (number, namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed)
       SELECT * FROM ${ROW_ARRAYS}`,
    rowArrays(rows),
  );
}

/** Deletes the rows that have the keys of these rows under other numbers. */
export async function deleteSameKeys(run: RunQuery, rows: readonly PlacedRow[]): Promise<void> {
  if (rows.length === 0) return;
  await run(
    `DELETE FROM entry USING unnest($1::bigint[], $2::smallint[], $3::bytea[]) AS new (namespace, kind, key_hash)
       WHERE entry.key_hash = new.key_hash AND entry.namespace = new.namespace AND entry.kind = new.kind
         AND entry.kind <> 2 AND entry.kind <> 6`,
    [bigints(column(rows, 'namespace')), smallints(column(rows, 'kind')), buffers(column(rows, 'key_hash'))],
  );
}

export interface Commit {
  readonly changes: ChangeSet;
  readonly counters: Counters;
  readonly mark: Buffer;
  readonly channel: string;
}

/** Thrown if the server answers a COMMIT with ROLLBACK. */
export class RolledBack extends Error {
  constructor() {
    super('The server rolled back instead of committing.');
  }
}

/** Whether a batch has changed nothing, so that there is nothing to commit. */
export const isEmpty = ({ inserted, updated, deleted, namespaces, ...rest }: ChangeSet): boolean =>
  inserted.length + updated.length + deleted.length + namespaces.length === 0 &&
  rest.emptyNamespaces.length + rest.meta.size + rest.tombstones.length + rest.untombstoned.length + rest.statements.length ===
    0 &&
  rest.keys === undefined;

/**
 * Sends the changes of a batch with its COMMIT, all in one round trip. The server runs them in order. If one of them fails, the
 * server refuses the others, and rolls back instead of committing.
 */
export async function flush(client: pg.Client, run: RunQuery, { changes, counters, mark, channel }: Commit): Promise<void> {
  const { inserted, updated, deleted } = changes;
  const sent: Promise<unknown>[] = [];
  const send = (text: string, values: readonly unknown[] = []): void => void sent.push(run(text, values));
  if (updated.length > 0) {
    // The division fails if a row is missing. So the server undoes the batch, although its COMMIT was already sent.
    send(
      `WITH changed AS (UPDATE entry SET key_hash = new.key_hash, category = new.category, created_at = new.created_at, updated_at = new.updated_at,
           expires_at = new.expires_at, sealed = new.sealed
         FROM ${ROW_ARRAYS} AS new (number, namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed)
         WHERE entry.number = new.number AND entry.namespace = new.namespace RETURNING entry.number)
         SELECT 1 / (count(*) = $10)::int FROM changed`,
      [...rowArrays(updated), updated.length],
    );
  }
  // Deleting first makes room for a row with the same key.
  if (deleted.length > 0) send('DELETE FROM entry WHERE number = ANY ($1::bigint[])', [bigints(deleted)]);
  if (changes.emptyNamespaces.length > 0) {
    send('DELETE FROM usage WHERE namespace = ANY ($1::bigint[])', [changes.emptyNamespaces]);
    send('DELETE FROM namespace WHERE id = ANY ($1::bigint[])', [changes.emptyNamespaces]);
  }
  if (changes.namespaces.length > 0) {
    send('INSERT INTO namespace (id, subject, session) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])', [
      changes.namespaces.map(({ id }) => id),
      changes.namespaces.map(({ subject }) => subject),
      changes.namespaces.map(({ session }) => session),
    ]);
  }
  sent.push(insertRows(run, inserted));
  sendSecrets(send, changes);
  for (const { hash, after } of changes.untombstoned)
    send('DELETE FROM tombstone WHERE hash = $1 AND number > $2', [hash, after]);
  for (const one of changes.tombstones) {
    send(
      'INSERT INTO tombstone (number, at, trusted, hash, subject, session, kind, category) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)',
      [one.number, one.at, one.trusted, one.hash, one.subject, one.session, one.kind, one.category],
    );
  }
  for (const { text, values } of changes.statements) send(text, values);
  send(
    `INSERT INTO change_log (number, mark, last_row, last_namespace, last_tombstone, stored, deleted, topics)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING pg_notify($9, number::text)`,
    [
      counters.change + 1,
      mark,
      counters.last_row,
      counters.last_namespace,
      counters.last_tombstone,
      bigints([...inserted, ...updated].map(({ row }) => row).filter((row) => !changes.resealed.has(row))),
      bigints(deleted),
      texts([...changes.topics]),
      channel,
    ],
  );
  if ((counters.change + 1) % PURGE_EVERY === 0) {
    // The numbers have an index, and old changes come first, so this reads only a few rows.
    send(
      `DELETE FROM change_log WHERE number IN (SELECT number FROM change_log ORDER BY number LIMIT ${2 * PURGE_EVERY})
         AND number <= $1 AND at < clock_timestamp() - interval '${LOG_AGE}'`,
      [counters.change],
    );
  }
  const committed = client.query('COMMIT');
  sent.push(committed);
  await allOf(sent);
  // After a failed statement, the server answers ROLLBACK.
  if ((await committed).command !== 'COMMIT') throw new RolledBack();
}

/**
 * Waits for all statements of a transaction. After one has failed, the server refuses the others because of it, so the error of that
 * statement is thrown and not theirs.
 */
async function allOf(sent: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(sent))
    .filter((result) => result.status === 'rejected')
    .map(({ reason }) => reason as unknown);
  if (failed.length > 0) throw failed.find((error) => !isAborted(error)) ?? failed[0];
}

/** Whether the server refused a statement only because an earlier statement of its transaction had failed. */
const isAborted = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === '25P02';

function sendSecrets(send: (text: string, values: readonly unknown[]) => void, { meta, keys }: ChangeSet): void {
  for (const [name, value] of meta) {
    if (value === undefined) send('DELETE FROM meta WHERE name = $1', [name]);
    else {
      send(
        `INSERT INTO meta (name, secret, plain) VALUES ($1, $2, $3)
           ON CONFLICT (name) DO UPDATE SET secret = excluded.secret, plain = excluded.plain`,
        [name, Buffer.isBuffer(value) ? value : null, Buffer.isBuffer(value) ? null : value],
      );
    }
  }
  if (!keys) return;
  send('DELETE FROM master_key', []);
  for (const { id, role, proof, source, segment } of keys) {
    send('INSERT INTO master_key (id, role, proof, source, segment) VALUES ($1, $2, $3, $4, $5)', [
      id,
      role,
      proof,
      source,
      segment,
    ]);
  }
}
