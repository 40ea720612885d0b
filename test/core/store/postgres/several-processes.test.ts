import { expect, onTestFinished, test } from 'vitest';
import { TokenRegistry } from '../../../../src/core/access/token-registry.ts';
import { Finder } from '../../../../src/core/search/finder.ts';
import type { DatabaseOptions } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore, type ServerOptions } from '../../../../src/core/store/postgres/postgres-store.ts';
import type { MemoryStore } from '../../../../src/core/store/store.ts';
import { manualClock } from '../../../support/clock.ts';
import { startProxiedServer } from '../../../support/postgres-proxy.ts';
import { aDraft, ANOTHER_KEY, withKey } from '../../../support/store.ts';

const local = startProxiedServer();

const me = { subject: 'me' };
/** The lane runs more operations. */
const OPERATIONS = Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 25);

/** Opens the memory as another process does, which shares only the database. `deaf`: its notifications are lost. */
async function openAnother(
  database: DatabaseOptions,
  over: Partial<ServerOptions> & { deaf?: boolean } = {},
): Promise<PostgresStore> {
  const { deaf = false, ...options } = over;
  local.proxy.dropsNotifications = deaf;
  const connection = deaf ? { ...database.connection, port: local.proxy.port } : database.connection;
  const store = await PostgresStore.open({
    database: { ...database, connection },
    clock: manualClock(),
    sources: withKey(),
    ...options,
  });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

const registryOf = async (store: MemoryStore): Promise<TokenRegistry> => {
  const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  onTestFinished(() => tokens[Symbol.asyncDispose]());
  return tokens;
};

test.each([false, true])(
  'the next search through another process finds an acknowledged fact (R-OPS-14), notifications lost: %s',
  async (deaf) => {
    const database = local.server.newMemory();
    const one = await openAnother(database);
    const other = await openAnother(database, { deaf });
    const finder = new Finder(other);
    onTestFinished(() => finder[Symbol.dispose]());
    const facts = one.space(me, 'fact');
    for (let turn = 0; turn < OPERATIONS; turn += 1) {
      const [key, word] = [`k${turn % 50}`, `word${turn}x`];
      await facts.put(aDraft({ key, value: `the ${word}` }));
      const { found } = await finder.find(me, { texts: [word], limit: 1 });
      expect(found.map(({ fact }) => fact.key)).toEqual([key]);
      expect((await other.space(me, 'fact').get(key))?.value).toBe(`the ${word}`);
      if (turn % 5 !== 4) continue;
      await one.forget('me', { kinds: ['fact'], key });
      const { found: left } = await finder.find(me, { texts: [word], limit: 50 });
      expect(left.map(({ fact }) => fact.key)).not.toContain(key);
    }
  },
);

test('a read brings its process up to date before it answers, also if it finds nothing (R-OPS-14)', async () => {
  const database = local.server.newMemory();
  const one = await openAnother(database);
  const other = await openAnother(database, { deaf: true });
  const seen: string[] = [];
  using _listener = other.onEntryEvent((event) => event.what === 'stored' && seen.push(event.entry.key));
  const [facts, packs] = [other.space(me, 'fact'), other.space(me, 'pack')];
  await one.space(me, 'fact').put(aDraft({ key: 'known' }));
  const reads: readonly (() => Promise<unknown>)[] = [
    () => facts.get('known'),
    () => facts.get('missing'),
    () => facts.page({ sort: 'updated', limit: 10 }),
    () => facts.page({ sort: 'updated', limit: 10, category: 'missing' }),
    () => facts.history('known'),
    () => facts.withHistory('missing'),
    () => facts.overview({ categories: 10, keys: 10 }),
    () => packs.overview({ categories: 10, keys: 10 }),
    () => packs.history('missing'),
  ];
  for (const [turn, read] of reads.entries()) {
    await one.space(me, 'fact').put(aDraft({ key: `turn ${turn}` }));
    await read();
    expect(seen.at(-1)).toBe(`turn ${turn}`);
  }
  one.lock();
  await one.whenIdle();
  await expect(facts.get('known')).rejects.toMatchObject({ code: 'key_unavailable' });
});

test('a token that one process revokes or pauses is refused by the very next request anywhere (R-AUTH-04)', async () => {
  const database = local.server.newMemory();
  const [one, other] = [await openAnother(database), await openAnother(database, { deaf: true })];
  const [here, there] = [await registryOf(one), await registryOf(other)];
  const mint = (): Promise<{ id: string; token: string }> =>
    here.mint({ name: 'n', client: 'c', subject: 'me', scopes: ['memory:read'], days: 1 });
  const closed: string[] = [];
  there.onRevoked((id) => closed.push(id));
  const [first, second] = [await mint(), await mint()];
  for (const { token } of [first, second]) expect((await there.verify(token, 'rest')).subject).toBe('me');
  await here.revoke({ id: first.id, unrecorded: false });
  await expect(there.verify(first.token, 'rest')).rejects.toMatchObject({ code: 'invalid_token' });
  await here.pause({ id: second.id, paused: true });
  await expect(there.verify(second.token, 'rest')).rejects.toMatchObject({ code: 'invalid_token' });
  expect(closed).toEqual([first.id, second.id]);
  await here.pause({ id: second.id, paused: false });
  expect((await there.verify(second.token, 'rest')).token).toBe(second.id);
  await here.offerPacks({ client: 'c', packs: ['http'] });
  expect((await there.verify(second.token, 'rest')).packs).toEqual(new Set(['http']));
});

test('a token stays paused if another process changes tokens while the pause is stored (R-CONN-09)', async () => {
  const database = local.server.newMemory();
  const [one, other] = [await openAnother(database), await openAnother(database)];
  const gate = Promise.withResolvers<void>();
  const vault = new Proxy(one.vault, {
    get: (target, name) => {
      if (name === 'write') {
        return async (text: string, value: string) => {
          if (text.startsWith('paused')) await gate.promise;
          await target.write(text, value);
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const here = await TokenRegistry.open({ vault, now: () => one.now(), doubtful: () => false });
  onTestFinished(async () => {
    gate.resolve();
    await here[Symbol.asyncDispose]();
  });
  const there = await registryOf(other);
  const wanted = { name: 'n', client: 'c', subject: 'me', scopes: ['memory:read'], days: 1 } as const;
  const { id, token } = await here.mint({ ...wanted, scopes: [...wanted.scopes] });
  expect((await here.verify(token, 'rest')).subject).toBe('me');
  const pausing = here.pause({ id, paused: true });
  const { token: second } = await there.mint({ ...wanted, scopes: [...wanted.scopes] });
  const verified = here.verify(second, 'rest');
  await new Promise((resolve) => setTimeout(resolve, 100));
  gate.resolve();
  await pausing;
  expect((await verified).subject).toBe('me');
  await expect(here.verify(token, 'rest')).rejects.toMatchObject({ code: 'invalid_token' });
});

test('two processes that change which packs are offered keep both changes (R-CONN-14)', async () => {
  const database = local.server.newMemory();
  const [one, other, third] = [await openAnother(database), await openAnother(database), await openAnother(database)];
  const [here, there] = [await registryOf(one), await registryOf(other)];
  const clients = ['a', 'b'] as const;
  for (let turn = 0; turn < 5; turn += 1) {
    const packs = [`pack-${turn}`];
    await Promise.all([here.offerPacks({ client: 'a', packs }), there.offerPacks({ client: 'b', packs })]);
    const fresh = await registryOf(third);
    for (const registry of [fresh, here, there]) {
      for (const client of clients) {
        const { token } = await here.mint({ name: 'n', client, subject: 'me', scopes: ['packs:run'], days: 1 });
        expect((await registry.verify(token, 'rest')).packs).toEqual(new Set(packs));
      }
    }
  }
});

test('processes that start together agree on the key, the signing secret and the tables', async () => {
  const database = local.server.newMemory();
  const stores = await Promise.all([1, 2, 3, 4].map(() => openAnother(database)));
  const registries = await Promise.all(stores.map(registryOf));
  for (const tokens of registries) {
    const { token } = await tokens.mint({ name: 'n', client: 'c', subject: 'me', scopes: ['memory:read'], days: 1 });
    for (const other of registries) expect((await other.verify(token, 'rest')).client).toBe('c');
  }
  await Promise.all(stores.map((store, index) => store.space(me, 'fact').put(aDraft({ key: `k${index}` }))));
  for (const store of stores) expect(await store.space(me, 'fact').count()).toBe(4);
});

test('a process with another key is refused before it writes anything (R-KEY-04)', async () => {
  const database = local.server.newMemory();
  const one = await openAnother(database);
  await one.space(me, 'fact').put(aDraft());
  const wrong = await openAnother(database, { sources: withKey(ANOTHER_KEY) });
  expect(wrong.status().key.at).toBe('mismatch');
  await expect(wrong.space(me, 'fact').put(aDraft({ value: 'x' }))).rejects.toMatchObject({ code: 'key_unavailable' });
  await expect(wrong.space(me, 'fact').get(aDraft().key)).rejects.toMatchObject({ code: 'key_unavailable' });
  await wrong[Symbol.asyncDispose]();
  expect((await one.space(me, 'fact').get(aDraft().key))?.value).toBe(aDraft().value);

  const fresh = local.server.newMemory();
  const raced = await Promise.all([withKey(), withKey(ANOTHER_KEY)].map((sources) => openAnother(fresh, { sources })));
  expect(raced.map((store) => store.status().key.at).toSorted()).toEqual(['mismatch', 'ok']);
});

test.each([false, true])(
  'a lock reaches the other processes, and each unlocks by itself, notifications lost: %s',
  async (deaf) => {
    const database = local.server.newMemory();
    const [one, other] = [await openAnother(database), await openAnother(database, { deaf })];
    await one.space(me, 'fact').put(aDraft());
    expect(await other.space(me, 'fact').count()).toBe(1);
    one.lock();
    await one.whenIdle();
    // Without notifications, the next call brings the lock.
    if (deaf) await other.refresh();
    await expect.poll(() => other.status().key.at).toBe('locked');
    await expect(other.space(me, 'fact').get(aDraft().key)).rejects.toMatchObject({ code: 'key_unavailable' });
    await other.unlock();
    expect((await other.space(me, 'fact').get(aDraft().key))?.key).toBe(aDraft().key);
    expect(one.status().key.at).toBe('locked');
  },
);

test('a lock that cannot be stored at first hides no lock of another process', async () => {
  const database = local.server.newMemory();
  const [one, other] = [await openAnother(database), await openAnother(database)];
  await one.space(me, 'fact').put(aDraft());
  await other.refresh();
  await local.server.query(`ALTER TABLE "${database.schema}".meta RENAME TO elsewhere`);
  one.lock();
  await one.whenIdle();
  await local.server.query(`ALTER TABLE "${database.schema}".elsewhere RENAME TO meta`);
  await one.unlock();
  other.lock();
  await expect.poll(() => one.status().key.at).toBe('locked');
});

test('a lock reaches every process, also after a failover lost an earlier lock (R-PGSV-03, R-PGSV-05)', async () => {
  const database = local.server.newMemory();
  const [one, other] = [await openAnother(database), await openAnother(database)];
  await one.space(me, 'fact').put(aDraft());
  for (let turn = 0; turn < 2; turn += 1) {
    one.lock();
    await expect.poll(() => other.status().key.at).toBe('locked');
    await Promise.all([one.whenIdle().then(() => one.unlock()), other.unlock()]);
  }
  // The standby that takes over lacks both locks, and a later commit has the number of the newest one.
  await local.server.query(`UPDATE "${database.schema}".change_log SET mark = decode(md5(random()::text), 'hex');
    DELETE FROM "${database.schema}".meta WHERE name = 'locks'`);
  await other.refresh();
  expect(other.status().key.at).toBe('ok');
  one.lock();
  await expect.poll(() => other.status().key.at).toBe('locked');
});

test('a quota holds across processes (R-FACT-16)', async () => {
  const database = local.server.newMemory();
  const quota = { facts: 20, bytes: 1_000_000_000 };
  const stores = await Promise.all([1, 2, 3].map(() => openAnother(database, { quota })));
  const outcomes = await Promise.allSettled(
    stores.flatMap((store, at) =>
      Array.from({ length: 15 }, (_, index) => store.space(me, 'fact').put(aDraft({ key: `${at} ${index}` }))),
    ),
  );
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(20);
  expect((await stores[0]!.usage('me')).used.facts).toBe(20);
});

test('a process that missed a part of the change log reads everything again', async () => {
  const database = local.server.newMemory();
  const [one, other] = [await openAnother(database), await openAnother(database, { deaf: true })];
  const resets: string[] = [];
  other.onEntryEvent(({ what }) => resets.push(what));
  await one.space(me, 'fact').put(aDraft());
  await one.space(me, 'fact').put(aDraft({ key: 'another' }));
  // The newest change always stays.
  const log = `"${database.schema}".change_log`;
  await local.server.query(`DELETE FROM ${log} WHERE number < (SELECT max(number) FROM ${log})`);
  await one.space({ subject: 'you' }, 'fact').put(aDraft());
  expect(await other.space({ subject: 'you' }, 'fact').count()).toBe(1);
  expect(resets).toContain('reset');
  expect((await other.namespaces()).map(({ namespace }) => namespace.subject)).toEqual(['me', 'you']);
});

test('a process notices that the server lost commits in a failover, although their numbers are used again (R-PGSV-05)', async () => {
  const database = local.server.newMemory();
  const [one, other] = [await openAnother(database), await openAnother(database, { deaf: true })];
  await one.space(me, 'fact').put(aDraft({ key: 'stays' }));
  const { schema } = database;
  const tables = ['change_log', 'entry', 'usage', 'namespace', 'meta', 'master_key'];
  for (const table of tables) await local.server.query(`CREATE TABLE ${schema}_${table} AS TABLE "${schema}".${table}`);
  await one.space(me, 'fact').put(aDraft({ key: 'lost' }));
  const finder = new Finder(other);
  onTestFinished(() => finder[Symbol.dispose]());
  const keysFound = async (): Promise<string[]> =>
    (await finder.find(me, { texts: [aDraft().value], limit: 9 })).found.map(({ fact }) => fact.key).toSorted();
  expect(await keysFound()).toEqual(['lost', 'stays']);
  // The standby that takes over lacks the last commit. Another process commits to it first.
  const restored = tables.map((table) => `INSERT INTO "${schema}".${table} SELECT * FROM ${schema}_${table}`).join(';');
  await local.server.query(
    `BEGIN; SET LOCAL session_replication_role = replica; ${tables.map((table) => `DELETE FROM "${schema}".${table}`).join(';')};
     ${restored}; COMMIT`,
  );
  const third = await openAnother(database);
  await third.space(me, 'fact').put(aDraft({ key: 'new' }));
  expect(await keysFound()).toEqual(['new', 'stays']);
  await one.space(me, 'fact').put(aDraft({ key: 'later' }));
  expect(await keysFound()).toEqual(['later', 'new', 'stays']);
  expect((await one.space(me, 'fact').page({ sort: 'updated', limit: 9 })).entries).toHaveLength(3);
});
