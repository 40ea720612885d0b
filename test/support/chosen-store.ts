import { afterAll } from 'vitest';
import { type StoreOptions, openStore } from '../../src/core/store/open-store.ts';
import { PostgresStore } from '../../src/core/store/postgres/postgres-store.ts';
import type { MemoryStore } from '../../src/core/store/store.ts';
import { startPostgres } from './postgres.ts';

/** Set by the PostgreSQL lane, which runs tests of other stores on a database too. */
export const isOnServer = process.env['HELMDECK_TEST_STORE'] === 'postgres';

/** One server for all memories of a test file. */
const server = isOnServer ? startPostgres() : undefined;
if (server) afterAll(async () => (await server)[Symbol.asyncDispose]());

/** Opens a memory in a file, or in a new database if the lane says so. */
export async function openChosenStore(options: StoreOptions): Promise<MemoryStore> {
  if (!server) return openStore(options);
  // The clock of the test also decides what expires, instead of the clock of the database.
  return PostgresStore.open({ ...options, database: (await server).newMemory() });
}
