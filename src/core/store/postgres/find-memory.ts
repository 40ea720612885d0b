import { MOVED, MOVING } from '../../upkeep/moved.ts';
import { Database, type DatabaseOptions } from './database.ts';
import { hasMemory } from './server-transaction.ts';

/** Tables without a key belong to no memory yet: the next start would record its key there. A mark belongs to a move. */
const BEGUN = `SELECT 1 FROM master_key UNION ALL SELECT 1 FROM meta WHERE name = ANY ($1::text[]) LIMIT 1`;

/** Whether a database contains a memory. Makes the same checks as a start, and writes nothing. */
export async function containsMemory(options: DatabaseOptions): Promise<boolean> {
  const database = new Database(options);
  try {
    return (await hasMemory(database)) && (await database.read(BEGUN, [[MOVING, MOVED]])).length > 0;
  } finally {
    await database.close();
  }
}
