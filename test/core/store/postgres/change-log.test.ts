import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { PostgresStore, type ServerOptions } from '../../../../src/core/store/postgres/postgres-store.ts';
import { NEWEST_CHANGE } from '../../../../src/core/store/postgres/sql.ts';
import { manualClock } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, withKey } from '../../../support/store.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const me = { subject: 'me' };

async function openMemory(over: Partial<ServerOptions> = {}): Promise<{ store: PostgresStore; schema: string }> {
  const database = server.newMemory();
  const store = await PostgresStore.open({ database, clock: manualClock(), sources: withKey(), ...over });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return { store, schema: database.schema };
}

const numberFrom = async (sql: string): Promise<number> => Number((await server.query(sql))[0]?.['n']);

test('writes alone keep the change log short', async () => {
  const { store, schema } = await openMemory();
  const facts = store.space(me, 'fact');
  await facts.put(aDraft());
  const last = await numberFrom(`SELECT max(number) AS n FROM "${schema}".change_log`);
  // Old changes, as after many commits.
  await server.query(
    `UPDATE "${schema}".change_log SET number = number + 4000, at = at - interval '1 hour' WHERE number = ${last};
     INSERT INTO "${schema}".change_log (number, mark, at, last_row, last_namespace, last_tombstone, stored, deleted, topics)
       SELECT ${last} + n, decode(md5(n::text), 'hex'), now() - interval '1 hour', 0, 0, 0, '{}', '{}', '{}'
         FROM generate_series(1, 3999) AS n`,
  );
  const count = (): Promise<number> => numberFrom(`SELECT count(*) AS n FROM "${schema}".change_log`);
  const before = await count();
  for (let turn = 0; turn < 300; turn += 1) await facts.put(aDraft({ value: `${turn}` }));
  expect(await count()).toBeLessThan(before);
  expect(
    await numberFrom(`SELECT count(*) AS n FROM "${schema}".change_log WHERE at > now() - interval '5 minutes'`),
  ).toBeGreaterThan(1);
});

test('an open snapshot, as pg_dump holds one, does not slow the change number down', async () => {
  const { store, schema } = await openMemory();
  await store.space(me, 'fact').put(aDraft());
  const dump = new pg.Client(server.config);
  await dump.connect();
  onTestFinished(() => dump.end());
  await dump.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
  const facts = store.space(me, 'fact');
  for (let turn = 0; turn < 300; turn += 1) await facts.put(aDraft({ value: `${turn}` }));
  const plan = await server.query(
    `SET search_path = "${schema}"; SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (ANALYZE, BUFFERS) ${NEWEST_CHANGE}`,
  );
  const [, pages] = /Buffers: shared hit=(\d+)/.exec(plan.map((row) => String(row['QUERY PLAN'])).join('\n')) ?? [];
  // With a row that every commit updates, the read would visit the pages of all its versions.
  expect(Number(pages)).toBeLessThan(6);
  await dump.query('ROLLBACK');
});

test('refused writes use up no segment of the key', async () => {
  const { store, schema } = await openMemory({ quota: { facts: 5, bytes: 1e9 } });
  const facts = store.space(me, 'fact');
  for (let index = 0; index < 5; index += 1) await facts.put(aDraft({ key: `k${index}` }));
  const segment = (): Promise<number> => numberFrom(`SELECT segment AS n FROM "${schema}".master_key`);
  const before = await segment();
  for (let index = 0; index < 20; index += 1) {
    await expect(facts.put(aDraft({ key: `more ${index}` }))).rejects.toMatchObject({ code: 'quota_exceeded' });
    await facts.put(aDraft({ key: 'k1', value: `${index}` }));
  }
  expect(await segment()).toBe(before);
});
