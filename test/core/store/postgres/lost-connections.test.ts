import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { manualClock } from '../../../support/clock.ts';
import { type CommitFate, type PostgresProxy, startProxy } from '../../../support/postgres-proxy.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, anAuthor, withKey } from '../../../support/store.ts';

let server: PostgresServer;
let proxy: PostgresProxy;
beforeAll(async () => {
  server = await startPostgres();
  proxy = await startProxy(server.port);
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const me = { subject: 'me' };
/** Servers that are killed, and connections that are lost in the middle of a commit. The lane does more of both. */
const KILLS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 100) / 50;
const CUTS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 50) / 5;

async function openMemory(): Promise<PostgresStore> {
  const { connection, schema } = server.newMemory();
  const options = {
    database: { connection: { ...connection, port: proxy.port }, schema },
    clock: manualClock(),
    sources: withKey(),
  };
  const store = await PostgresStore.open(options);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

test('no write is lost or stored twice when the connection is lost in the middle of its commit (R-DUR-01)', async () => {
  const store = await openMemory();
  const facts = store.space(me, 'fact');
  const fates: CommitFate[] = ['pass', 'lose before', 'lose answer'];
  let commits = 0;
  proxy.fateOf = () => fates[(commits += 1) % 3] ?? 'pass';
  onTestFinished(() => void (proxy.fateOf = () => 'pass'));
  const before = proxy.cut;
  for (let turn = 0; proxy.cut - before < CUTS; turn += 1) {
    // Each client writes a new version of its own fact, with a note.
    const outcomes = await Promise.all(
      [1, 2, 3].map((client) =>
        facts.put(
          aDraft({ key: `k${client}`, value: `${turn}`, author: { ...anAuthor, client: `c${client}` } }),
          aDraft({ key: `note ${turn} ${client}`, category: 'activity' }),
        ),
      ),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 3 }, () => (turn === 0 ? 'created' : 'updated')));
    for (const client of [1, 2, 3]) {
      const { value } = (await facts.get(`k${client}`))!;
      const [newest] = await facts.history(`k${client}`);
      expect([value, newest?.value]).toEqual([`${turn}`, turn === 0 ? undefined : `${turn - 1}`]);
    }
    expect(await store.space(me, 'activity').count()).toBe(3 * (turn + 1));
  }
});

test('a write whose commit stays unanswered says so, and what is stored is found afterwards', async () => {
  const store = await openMemory();
  const facts = store.space(me, 'fact');
  await facts.put(aDraft({ key: 'before' }));
  // The store cannot connect again to look for the commit.
  proxy.fateOf = () => {
    proxy.refuses = true;
    return 'lose answer';
  };
  await expect(facts.put(aDraft({ key: 'unanswered' }))).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringMatching(/may or may not/) as string,
  });
  proxy.fateOf = () => 'pass';
  proxy.refuses = false;
  expect((await facts.get('before'))?.key).toBe('before');
  expect((await facts.get('unanswered'))?.key).toBe('unanswered');
  expect((await facts.put(aDraft({ key: 'unanswered' }))).status).toBe('unchanged');
});

test('without the database every call refuses, and none answers from RAM', async () => {
  const store = await openMemory();
  const facts = store.space(me, 'fact');
  await facts.put(aDraft());
  await server.stop('SIGKILL');
  const refused = { code: 'store_unavailable' };
  await Promise.all([
    expect(facts.get(aDraft().key)).rejects.toMatchObject(refused),
    expect(facts.put(aDraft({ key: 'b' }))).rejects.toMatchObject(refused),
    expect(facts.overview({ categories: 1, keys: 1 })).rejects.toMatchObject(refused),
    expect(store.vault.names()).rejects.toMatchObject(refused),
    expect(store.refresh()).rejects.toMatchObject(refused),
  ]);
  await server.start();
  expect(await facts.count()).toBe(1);
});

test('a killed server loses no acknowledged write (R-DUR-01)', async () => {
  const store = await openMemory();
  const facts = store.space(me, 'fact');
  const acknowledged = new Set<string>();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let turn = 0; !stop.signal.aborted; turn += 1) {
      const key = `${writer} ${turn}`;
      await facts.put(aDraft({ key })).then(
        () => acknowledged.add(key),
        () => undefined,
      );
    }
  });
  for (let kill = 0; kill < KILLS; kill += 1) {
    const so = acknowledged.size;
    await expect.poll(() => acknowledged.size).toBeGreaterThan(so + 20);
    await server.restart();
  }
  stop.abort();
  await Promise.all(writers);
  const stored = new Set<string>();
  for (let after = {}; ;) {
    const page = await facts.page({ sort: 'oldest', limit: 500, ...after });
    for (const { key } of page.entries) stored.add(key);
    if (!page.next) break;
    after = { after: page.next };
  }
  expect([...acknowledged].filter((key) => !stored.has(key))).toEqual([]);
  expect(await facts.count()).toBe(stored.size);
});
