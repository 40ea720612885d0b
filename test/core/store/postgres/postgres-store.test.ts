import { afterAll, beforeAll } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { withKey } from '../../../support/store.ts';
import { promisesOfAStore } from '../store.contract.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

promisesOfAStore(
  'PostgreSQL',
  (clock, quota) => PostgresStore.open({ database: server.newMemory(), clock, quota, sources: withKey() }),
  { purges: false, whenIdle: (store) => (store as PostgresStore).whenIdle() },
);
