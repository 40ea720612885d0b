import { Database, type DatabaseOptions } from './database.ts';
import { hasMemory } from './server-transaction.ts';

/** Whether a database contains a memory. Makes the same checks as a start, and writes nothing. */
export async function containsMemory(options: DatabaseOptions): Promise<boolean> {
  const database = new Database(options);
  try {
    return await hasMemory(database);
  } finally {
    await database.close();
  }
}
