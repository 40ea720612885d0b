import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import type { DatabaseOptions } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { createAuthority } from '../../../support/certificates.ts';
import { manualClock } from '../../../support/clock.ts';
import { type CommitFate, type PostgresProxy, startProxiedServer, startProxy } from '../../../support/postgres-proxy.ts';
import { aDraft, anAuthor, withKey } from '../../../support/store.ts';

const local = startProxiedServer();

const me = { subject: 'me' };
/** Servers that are killed, and connections that are lost in the middle of a commit. The lane does more of both. */
const KILLS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 100) / 50;
const CUTS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 25) / 5;

/** A store that gives up a database without an answer early. */
const SOON = { reconnect: 1000 };

async function openMemory(over: pg.ClientConfig = {}, waits: DatabaseOptions['waits'] = {}): Promise<PostgresStore> {
  const { connection, schema } = local.server.newMemory();
  const options = {
    database: { connection: { ...connection, port: local.proxy.port, ...over }, schema, waits },
    clock: manualClock(),
    sources: withKey(),
  };
  const store = await PostgresStore.open(options);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** Writes notes while commits meet the fates in turn. Every write must be acknowledged, and stored once. */
async function writeUnder(
  store: PostgresStore,
  faulty: PostgresProxy,
  fates: readonly CommitFate[],
): Promise<{ written: number; stored: number }> {
  const facts = store.space(me, 'fact');
  let commits = 0;
  faulty.fateOf = () => fates[(commits += 1) % fates.length] ?? 'pass';
  onTestFinished(() => void (faulty.fateOf = () => 'pass'));
  const before = faulty.cut;
  let turn = 0;
  for (; faulty.cut - before < CUTS; turn += 1) {
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
  return { written: 3 * turn, stored: await store.space(me, 'activity').count() };
}

test('no write is lost or stored twice when the connection is lost in the middle of its commit (R-DUR-01)', async () => {
  const fates: CommitFate[] = ['pass', 'lose before', 'lose answer', 'unreadable answer', 'fatal answer'];
  const { written, stored } = await writeUnder(await openMemory(), local.proxy, fates);
  expect(stored).toBe(written);
});

test('an answer that the driver cannot read ends the connection at once, and not after the timeout of a query', async () => {
  const store = await openMemory();
  const facts = store.space(me, 'fact');
  await facts.put(aDraft());
  // Nothing follows the unreadable answer, and the answers to earlier statements of the batch are missing too.
  let commits = 0;
  local.proxy.fateOf = () => ((commits += 1) === 1 ? 'unreadable answer' : 'pass');
  onTestFinished(() => void (local.proxy.fateOf = () => 'pass'));
  const startedAt = performance.now();
  expect((await facts.put(aDraft({ key: 'b' }))).status).toBe('created');
  expect(performance.now() - startedAt).toBeLessThan(5000);
  expect(await facts.count()).toBe(2);
});

test('no write is stored twice when a TLS record is broken at the answer to its commit (R-DUR-01)', async () => {
  const authority = createAuthority();
  const { keyFile, certificateFile } = authority.issue(['DNS:localhost']);
  const certificate = { key: readFileSync(keyFile, 'utf8'), cert: readFileSync(certificateFile, 'utf8') };
  const secure = await startProxy(local.server.port, certificate);
  onTestFinished(() => secure[Symbol.asyncDispose]());
  const store = await openMemory({ host: 'localhost', port: secure.port, ssl: { ca: authority.ca } });
  const { written, stored } = await writeUnder(store, secure, ['pass', 'broken TLS', 'lose answer']);
  expect(stored).toBe(written);
});

test('no write is stored twice when its commit stays without an answer (R-DUR-01)', async () => {
  const store = await openMemory({ query_timeout: 200 });
  const { written, stored } = await writeUnder(store, local.proxy, ['pass', 'silence', 'pass', 'pass']);
  expect(stored).toBe(written);
});

test('a commit that the server refuses is undone, and says so', async () => {
  const { connection, schema } = local.server.newMemory();
  const store = await PostgresStore.open({
    database: { connection, schema },
    clock: manualClock(),
    sources: withKey(),
  });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const facts = store.space(me, 'fact');
  await facts.put(aDraft({ key: 'a' }));
  // A deferred trigger fails at COMMIT, when all statements of the batch have succeeded.
  await local.server.query(
    `CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE check_violation; END $$;
     CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON "${schema}".entry DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN (NEW.category = 'refused') EXECUTE FUNCTION public.refuse()`,
  );
  const outcomes = await Promise.allSettled([
    facts.put(aDraft({ key: 'b', category: 'refused' })),
    facts.put(aDraft({ key: 'c' }), aDraft({ key: 'note', category: 'activity' })),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  expect([await facts.count(), await store.space(me, 'activity').count()]).toEqual([2, 1]);
});

test('a row that another program deletes during a write fails that write alone, before the commit', async () => {
  const { connection, schema } = local.server.newMemory();
  const store = await PostgresStore.open({ database: { connection, schema }, clock: manualClock(), sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const facts = store.space(me, 'fact');
  await facts.put(aDraft({ key: 'a', category: 'skipped' }));
  await facts.put(aDraft({ key: 'b' }));
  // The trigger stands for a program that deletes the row between its read and its update.
  await local.server.query(
    `CREATE FUNCTION public.skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
     CREATE TRIGGER skip BEFORE UPDATE ON "${schema}".entry FOR EACH ROW
       WHEN (OLD.category = 'skipped') EXECUTE FUNCTION public.skip()`,
  );
  const note = aDraft({ key: 'note', category: 'activity' });
  const [one, other] = await Promise.allSettled([
    facts.put(aDraft({ key: 'a', category: 'skipped', value: 'new' })),
    facts.put(aDraft({ key: 'b', value: 'new' }), note),
  ]);
  expect(one).toMatchObject({ reason: { code: 'store_unavailable', message: expect.stringMatching(/outside/) as string } });
  expect(other).toMatchObject({ value: { status: 'updated' } });
  expect((await facts.history('b')).length).toBe(1);
  expect(await store.space(me, 'activity').count()).toBe(1);
});

test('calls end with an error when the network loses all packets and reports no error', async () => {
  const store = await openMemory({ query_timeout: 300 }, SOON);
  const facts = store.space(me, 'fact');
  await facts.put(aDraft());
  local.proxy.isSilent = true;
  onTestFinished(() => void (local.proxy.isSilent = false));
  const refused = { code: 'store_unavailable' };
  await Promise.all([
    expect(facts.get(aDraft().key)).rejects.toMatchObject(refused),
    expect(facts.put(aDraft({ key: 'b' }))).rejects.toMatchObject(refused),
  ]);
  local.proxy.isSilent = false;
  expect((await facts.get(aDraft().key))?.key).toBe(aDraft().key);
  expect((await facts.put(aDraft({ key: 'b' }))).status).toBe('created');
});

test('a program that holds the lock of the writers stops no write for long', async () => {
  const { connection, schema } = local.server.newMemory();
  const store = await PostgresStore.open({
    database: { connection, schema, waits: { lock: 500 } },
    clock: manualClock(),
    sources: withKey(),
  });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const facts = store.space(me, 'fact');
  await facts.put(aDraft());
  const holder = new pg.Client(local.server.config);
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query(`BEGIN; LOCK TABLE "${schema}".writer_lock IN EXCLUSIVE MODE`);
  const refused = { code: 'store_unavailable', message: expect.stringMatching(/holds a lock/) as string };
  await Promise.all([1, 2, 3].map((each) => expect(facts.put(aDraft({ key: `k${each}` }))).rejects.toMatchObject(refused)));
  // One wait is enough for all writes of the batch.
  expect(readFileSync(join(local.server.folder, 'server.log'), 'utf8').match(/due to lock timeout/g)).toHaveLength(1);
  await holder.query('ROLLBACK');
  expect((await facts.put(aDraft({ key: 'k1' }))).status).toBe('created');
});

test('a store that was closed leaves no connection open', async () => {
  const { connection, schema } = local.server.newMemory();
  const name = `closing ${schema}`;
  for (let turn = 0; turn < 20; turn += 1) {
    await using store = await PostgresStore.open({
      database: { connection: { ...connection, application_name: name }, schema },
      clock: manualClock(),
      sources: withKey(),
    });
    await store.space(me, 'fact').put(aDraft({ key: `k${turn}` }));
  }
  const count = async (): Promise<unknown> =>
    (await local.server.query(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = '${name}'`))[0]?.['n'];
  await expect.poll(count, { timeout: 5000 }).toBe(0);
});

test('a write whose commit stays unanswered says so, and what is stored is found afterwards', async () => {
  const store = await openMemory({}, SOON);
  const facts = store.space(me, 'fact');
  await facts.put(aDraft({ key: 'before' }));
  // The store cannot connect again to look for the commit.
  local.proxy.fateOf = () => {
    local.proxy.refuses = true;
    return 'lose answer';
  };
  await expect(facts.put(aDraft({ key: 'unanswered' }))).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringMatching(/may or may not/) as string,
  });
  local.proxy.fateOf = () => 'pass';
  local.proxy.refuses = false;
  expect((await facts.get('before'))?.key).toBe('before');
  expect((await facts.get('unanswered'))?.key).toBe('unanswered');
  expect((await facts.put(aDraft({ key: 'unanswered' }))).status).toBe('unchanged');
});

test.each<CommitFate>(['lose answer', 'lose before'])(
  'a pending note is stored once, when its commit met this and stayed without an answer: %s (R-VIEW-05)',
  async (fate) => {
    const store = await openMemory({}, SOON);
    const [activity, note] = [store.space(me, 'activity'), aDraft({ key: 'note', category: 'activity' })];
    // The first commit of a process also stores the time.
    await store.space(me, 'fact').put(aDraft());
    local.proxy.fateOf = () => {
      local.proxy.refuses = true;
      return fate;
    };
    await expect(store.recordActivity('me', note)).rejects.toMatchObject({ code: 'store_unavailable' });
    local.proxy.fateOf = () => 'pass';
    local.proxy.refuses = false;
    await store.recordActivity('me', { ...note, key: 'later' });
    const { entries } = await activity.page({ sort: 'oldest', limit: 10 });
    expect(entries.map(({ key }) => key).toSorted()).toEqual(['later', 'note']);
  },
);

test('without the database every call refuses, and none answers from RAM', async () => {
  const store = await openMemory({}, SOON);
  const facts = store.space(me, 'fact');
  await facts.put(aDraft());
  await local.server.stop('SIGKILL');
  const refused = { code: 'store_unavailable' };
  await Promise.all([
    expect(facts.get(aDraft().key)).rejects.toMatchObject(refused),
    expect(facts.put(aDraft({ key: 'b' }))).rejects.toMatchObject(refused),
    expect(facts.overview({ categories: 1, keys: 1 })).rejects.toMatchObject(refused),
    expect(store.vault.names()).rejects.toMatchObject(refused),
    expect(store.refresh()).rejects.toMatchObject(refused),
  ]);
  await local.server.start();
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
    await local.server.restart();
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
