import { randomBytes } from 'node:crypto';
import { Failure } from '../../../contract/failure.ts';
import { databaseFailure, isConnectionLost, isRefused } from './database-failure.ts';
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

/** The answer to a COMMIT was lost, and the database cannot be asked whether the commit took place. */
export class UncertainCommit extends Failure {
  readonly change: number;
  readonly mark: Buffer;

  constructor(change: number, mark: Buffer, cause: unknown) {
    super(
      'store_unavailable',
      'The connection to the database was lost during a commit. The write may or may not be stored. Read the entry before you write it again.',
      { cause },
    );
    this.change = change;
    this.mark = mark;
  }
}

/**
 * Whether a commit took place whose answer was lost. The lock waits until the server has ended the lost transaction, so the answer is
 * final. Throws `UncertainCommit` if the database cannot be reached.
 */
export async function isCommitted(database: Database, change: number, mark: Buffer): Promise<boolean> {
  try {
    return await database.retryWhileLost(async () => {
      const client = await database.writer();
      const { run, query } = database.on(client);
      const [, found] = await Promise.all([
        query(BEGIN_WRITING),
        run('SELECT 1 FROM change_log WHERE mark = $1', [mark]),
        query('ROLLBACK'),
      ]);
      return found.length > 0;
    });
  } catch (cause) {
    throw new UncertainCommit(change, mark, cause);
  }
}

/**
 * Runs a step in one transaction, while no process of this memory writes. The step gets the number of the last change. Never
 * repeated, because the caller compares the tables before it writes. If the answer to the COMMIT is lost, finds out whether it took place.
 */
export async function commitAlone(database: Database, step: (run: RunQuery, change: number) => Promise<void>): Promise<void> {
  const client = await database.retryWhileLost(() => database.writer());
  const { run, query } = database.on(client);
  const mark = randomBytes(16);
  let change: number | undefined;
  try {
    await query(BEGIN_WRITING);
    const [newest] = await run<{ change: number }>(NEWEST_CHANGE);
    const before = newest?.change ?? 0;
    await step(run, before);
    await run(COUNT, [mark]);
    await run('SELECT pg_notify($1, $2)', [database.channel, '']);
    change = before + 2;
    await query('COMMIT');
  } catch (error) {
    if (change !== undefined && !isRefused(error)) {
      database.dropWriter(client);
      if (await isCommitted(database, change, mark)) return;
    } else if (isConnectionLost(error)) database.dropWriter(client);
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
