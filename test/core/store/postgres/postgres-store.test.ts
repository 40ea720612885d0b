import { afterAll, beforeAll, expect, test } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { manualClock } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, withKey } from '../../../support/store.ts';
import { promisesOfAStore } from '../store.contract.ts';
import { promisesOfVectors } from '../vectors.contract.ts';

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

promisesOfVectors(
  'PostgreSQL',
  (clock, quota) => PostgresStore.open({ database: server.newMemory(), clock, quota, sources: withKey() }),
  (store) => (store as PostgresStore).whenIdle(),
);

test('every receipt of a forget says that copies of the bytes are left, also if nothing was found (R-PGUP-06)', async () => {
  await using store = await PostgresStore.open({ database: server.newMemory(), clock: manualClock(), sources: withKey() });
  const facts = store.space({ subject: 'me' }, 'fact');
  await Promise.all(['a', 'b', 'c'].map((key) => facts.put(aDraft({ key, category: key }))));
  const left = { purged: false, reason: 'database_copies' };
  expect(await store.forget('me', { kinds: ['fact'], key: 'a' })).toMatchObject({ deleted: 1, ...left });
  expect(await store.forget('me', { kinds: ['fact'], key: 'a' })).toMatchObject({ deleted: 0, ...left });
  expect(await store.forget('me', { kinds: ['fact'], category: 'b' })).toMatchObject({ deleted: 1, ...left });
  store.lock();
  expect(await store.forget('me', { kinds: ['fact'] })).toMatchObject({ deleted: 1, ...left });
});
