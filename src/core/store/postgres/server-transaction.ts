import { randomBytes } from 'node:crypto';
import { databaseFailure, isConnectionLost } from './database-failure.ts';
import type { Database, RunQuery } from './database.ts';
import { prepareSchema, requireSchema } from './schema.ts';
import { BEGIN_WRITING, NEWEST_CHANGE } from './sql.ts';

/**
 * Counts rows that were written with their own numbers, so that no number is used again. The change numbers get a gap, so every process
 * reads everything again.
 */
const COUNT = `INSERT INTO change_log (number, mark, last_row, last_namespace, last_tombstone, stored, deleted, topics)
  SELECT number + 2, $1,
      greatest(last_row, (SELECT max(number) FROM entry)),
      greatest(last_namespace, (SELECT max(id) FROM namespace)),
      greatest(last_tombstone, (SELECT max(number) FROM tombstone)), '{}', '{}', '{}'
    FROM change_log ORDER BY number DESC LIMIT 1`;

/**
 * Runs a step in one transaction, while no process of this memory writes. The step gets the number of the last change. Never
 * repeated, because the caller compares the tables before it writes.
 */
export async function commitAlone(database: Database, step: (run: RunQuery, change: number) => Promise<void>): Promise<void> {
  const client = await database.retryWhileLost(() => database.writer());
  const { run, query } = database.on(client);
  try {
    await query(BEGIN_WRITING);
    const [newest] = await run<{ change: number }>(NEWEST_CHANGE);
    await step(run, newest?.change ?? 0);
    await run(COUNT, [randomBytes(16)]);
    await run('SELECT pg_notify($1, $2)', [database.channel, '']);
    await query('COMMIT');
  } catch (error) {
    if (isConnectionLost(error)) database.dropWriter(client);
    else await query('ROLLBACK').catch(() => database.dropWriter(client));
    throw databaseFailure(error);
  }
}

/** Checks the server and the tables without changing anything. Returns whether the schema contains a memory. */
export async function hasMemory(database: Database): Promise<boolean> {
  const isMemory = await database.retryWhileLost(async () => {
    const client = await database.writer();
    return requireSchema(client, database.on(client).run, database.schema);
  });
  // From now on, each new connection refuses a standby.
  database.isPrepared = true;
  return isMemory;
}

export async function createTables(database: Database): Promise<void> {
  await database.retryWhileLost(async () => {
    const client = await database.writer();
    await prepareSchema(client, database.on(client).run, database.schema);
  });
}
