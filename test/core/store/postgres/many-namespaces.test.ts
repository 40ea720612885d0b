import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { manualClock } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, withKey } from '../../../support/store.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const NAMESPACES = 2000;
const ROUNDS = 8;

test('calls of one subject do not read the namespaces of all others', async () => {
  const database = server.newMemory();
  const open = async (): Promise<PostgresStore> => {
    const store = await PostgresStore.open({ database, clock: manualClock(), sources: withKey() });
    onTestFinished(() => store[Symbol.asyncDispose]());
    return store;
  };
  await (await open())[Symbol.asyncDispose]();
  const { schema } = database;
  await server.query(
    `INSERT INTO "${schema}".namespace SELECT i, 'other ' || i % 50, 'session ' || i FROM generate_series(1, ${NAMESPACES}) AS i;
     UPDATE "${schema}".change_log SET last_namespace = ${NAMESPACES}`,
  );
  /** Returns the rows of the table that were read. The server counts them when a connection ends. */
  const rowsRead = async (): Promise<number> => {
    const [row] = await server.query(
      `SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = '${schema}' AND relname = 'namespace') AS read
         FROM pg_stat_user_tables WHERE schemaname = '${schema}' AND relname = 'namespace'`,
    );
    return Number(row?.['read']);
  };
  const readWhile = async (work: (one: PostgresStore, other: PostgresStore) => Promise<void>): Promise<number> => {
    const before = await rowsRead();
    const [one, other] = [await open(), await open()];
    await work(one, other);
    await one[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
    return (await rowsRead()) - before;
  };
  const opening = await readWhile(() => Promise.resolve());
  const working = await readWhile(async (one, other) => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const session = { subject: `new ${round}`, session: 'work' };
      await one.space(session, 'pack').put(aDraft());
      expect((await other.space(session, 'pack').put(aDraft())).status).toBe('unchanged');
      expect((await one.forget(session.subject, { kinds: ['pack'], session: 'work' })).deleted).toBe(1);
      await other.refresh();
    }
  });
  expect(working - opening).toBeLessThan(NAMESPACES);
});

test('a session that ends and starts again under the same name is one session for every process', async () => {
  const database = server.newMemory();
  const open = async (): Promise<PostgresStore> => {
    const store = await PostgresStore.open({ database, clock: manualClock(), sources: withKey() });
    onTestFinished(() => store[Symbol.asyncDispose]());
    return store;
  };
  const [one, other] = [await open(), await open()];
  const session = { subject: 'me', session: 'work' };
  for (let round = 0; round < 3; round += 1) {
    const [first, second] = round % 2 === 0 ? [one, other] : [other, one];
    await first.space(session, 'pack').put(aDraft({ key: 'a' }));
    await second.space(session, 'pack').put(aDraft({ key: 'b' }));
    expect(await first.space(session, 'pack').count()).toBe(2);
    expect((await second.forget('me', { kinds: ['pack'], session: 'work' })).deleted).toBe(2);
    expect(await first.space(session, 'pack').count()).toBe(0);
  }
  await one.whenIdle();
  const [left] = await server.query(`SELECT count(*)::int AS count FROM "${database.schema}".namespace`);
  expect(left?.['count']).toBe(0);
});
