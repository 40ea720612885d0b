import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { MeaningIndex } from '../../../../src/core/meaning/meaning-index.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { manualClock } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, withKey } from '../../../support/store.ts';
import { WordEmbedder } from '../../../support/word-embedder.ts';
import { embedAll, storedVectors } from '../vectors.contract.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const me = { subject: 'me' };

async function opened(database = server.newMemory()) {
  const store = await PostgresStore.open({ database, clock: manualClock(), sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const embedder = new WordEmbedder();
  const index = new MeaningIndex(store, embedder);
  onTestFinished(() => index[Symbol.dispose]());
  const put = (key: string, value = key) => store.space(me, 'fact').put(aDraft({ key, value, category: 'user_facts' }));
  const idle = (): Promise<void> =>
    vi.waitFor(
      async () => {
        const { done, total } = await index.progress();
        expect(done).toBe(total);
      },
      { timeout: 10_000, interval: 20 },
    );
  const ask = async (text: string): Promise<number> => {
    for (let turn = 0; turn < 100; turn += 1) {
      const nearest = await index.nearest(me, text, { limit: 1 });
      if (nearest && !nearest.partial) return nearest.rows[0]?.cosine ?? 0;
      await delay(20);
    }
    throw new Error('Some facts had no vector in time.');
  };
  return { database, store, embedder, index, put, idle, ask };
}

test('a process uses the vectors that another process has stored, and embeds no fact again (R-MEAN-14)', async () => {
  const one = await opened();
  for (let at = 0; at < 20; at += 1) await one.put(`fact/${at}`);
  one.index.start();
  await one.idle();
  const other = await opened(one.database);
  other.index.start();
  expect(await other.ask('fact 7')).toBeGreaterThan(0.9);
  expect(other.embedder.facts).toEqual([]);
  await one.put('fact/7', 'the bicycle stands in the cellar');
  await other.put('new', 'green leaves from Kyoto');
  for (const { idle, ask } of [one, other]) {
    await idle();
    expect(await ask('fact 7: the bicycle stands in the cellar')).toBeGreaterThan(0.9);
    expect(await ask('new: green leaves from Kyoto')).toBeGreaterThan(0.9);
  }
  expect(one.embedder.facts.length + other.embedder.facts.length).toBeLessThanOrEqual(20 + 2 * 2);
});

test('a fact that another process forgets leaves RAM, and turning meaning off keeps the vectors of the others (R-MEAN-15)', async () => {
  const one = await opened();
  for (let at = 0; at < 20; at += 1) await one.put(`fact/${at}`);
  one.index.start();
  await one.idle();
  await one.ask('fact 7');
  const other = await opened(one.database);
  await other.store.forget('me', { kinds: ['fact'], key: 'fact/7' });
  const nearest = await one.index.nearest(me, 'fact 7', { limit: 100 });
  expect(nearest?.rows).toHaveLength(19);
  await other.index.turnOff();
  expect(await one.store.vectors.count(me, 'words-1')).toBe(19);
});

test('a vector that was moved to another fact is not used, and is made again (R-MEAN-12)', async () => {
  const { store, database, put } = await opened();
  for (const key of ['a', 'b', 'c']) await put(key);
  expect(await embedAll(store)).toBe(3);
  const [last] = await storedVectors(store);
  await server.query(
    `UPDATE "${database.schema}".vector SET sealed = (SELECT sealed FROM "${database.schema}".vector ORDER BY number LIMIT 1)
      WHERE number = ${last?.row}`,
  );
  expect(await store.upkeep.verify()).toMatchObject({ entries: 3, broken: 1 });
  expect(await storedVectors(store)).toHaveLength(2);
  expect(store.status().quarantined).toBe(1);
  expect(await embedAll(store)).toBe(1);
  expect(await store.upkeep.verify()).toMatchObject({ entries: 3, broken: 0 });
});

test('a fact that is changed or superseded in the commit of its vector gets none (R-MEAN-10)', async () => {
  const { store, put } = await opened();
  const space = store.space(me, 'fact');
  for (const key of ['superseded', 'changed', 'stays']) await put(key);
  const { facts } = await store.vectors.missing(me, 'model-1');
  const embedded = facts.map((fact) => ({ ...fact, vector: new Uint8Array(68).fill(7) }));
  // Writes that arrive together share a commit, and the vectors are the first of them.
  await Promise.all([
    store.vectors.put(me, 'model-1', embedded),
    space.put(aDraft({ key: 'new', value: 'new', category: 'user_facts', supersedes: 'superseded' })),
    put('changed', 'another value'),
  ]);
  expect(await store.vectors.count(me, 'model-1')).toBe(1);
  expect((await store.vectors.page(me, 'model-1')).vectors).toHaveLength(1);
  expect((await store.vectors.missing(me, 'model-1')).facts.map(({ entry }) => entry.key).toSorted()).toEqual(['changed', 'new']);
  expect(store.status().quarantined).toBe(0);
});
