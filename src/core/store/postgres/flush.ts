import type pg from 'pg';
import type { ChangeSet, Counters, PlacedRow } from './change-set.ts';
import type { RunQuery } from './database.ts';

const column = <K extends keyof PlacedRow>(rows: readonly PlacedRow[], name: K): PlacedRow[K][] => rows.map((row) => row[name]);

const rowArrays = (rows: readonly PlacedRow[]): unknown[] => [
  column(rows, 'row'),
  column(rows, 'namespace'),
  column(rows, 'kind'),
  column(rows, 'key_hash'),
  column(rows, 'category'),
  column(rows, 'created_at'),
  column(rows, 'updated_at'),
  column(rows, 'expires_at'),
  column(rows, 'sealed'),
];

const ROW_ARRAYS =
  'unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bytea[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bytea[])';

export interface Commit {
  readonly changes: ChangeSet;
  readonly counters: Counters;
  readonly mark: Buffer;
  readonly channel: string;
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
  const update =
    updated.length > 0 &&
    run<{ number: number }>(
      `UPDATE entry SET key_hash = new.key_hash, category = new.category, created_at = new.created_at, updated_at = new.updated_at,
           expires_at = new.expires_at, sealed = new.sealed
         FROM ${ROW_ARRAYS} AS new (number, namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed)
         WHERE entry.number = new.number AND entry.namespace = new.namespace RETURNING entry.number`,
      rowArrays(updated),
    );
  if (update) sent.push(update);
  // Deleting first makes room for a row with the same key.
  if (deleted.length > 0) send('DELETE FROM entry WHERE number = ANY ($1::bigint[])', [deleted]);
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
  if (inserted.length > 0) {
    send(
      `INSERT INTO entry (number, namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed)
         SELECT * FROM ${ROW_ARRAYS}`,
      rowArrays(inserted),
    );
  }
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
  send('INSERT INTO change_log (number, mark, stored, deleted, topics) VALUES ($1, $2, $3, $4, $5)', [
    counters.change + 1,
    mark,
    [...inserted, ...updated].map(({ row }) => row),
    deleted,
    [...changes.topics],
  ]);
  send('UPDATE state SET change = $1, last_row = $2, last_namespace = $3, last_tombstone = $4', [
    counters.change + 1,
    counters.last_row,
    counters.last_namespace,
    counters.last_tombstone,
  ]);
  send('SELECT pg_notify($1, $2)', [channel, String(counters.change + 1)]);
  const committed = client.query('COMMIT');
  sent.push(committed);
  await Promise.all(sent);
  // After a failed statement, the server answers ROLLBACK.
  if ((await committed).command !== 'COMMIT') throw new Error('The server rolled back instead of committing.');
  const found = update ? (await update).length : 0;
  if (found !== updated.length) throw new Error('Rows of this memory were deleted outside Helmdeck Memory.');
}

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
