import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Defaults } from '../../../../src/core/packs/defaults.ts';
import { Finder } from '../../../../src/core/search/finder.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import type { MemoryStore } from '../../../../src/core/store/store.ts';
import { DAY, manualClock, START } from '../../../support/clock.ts';
import { withLatePages } from '../../../support/late-pages.ts';
import { theOwner } from '../../../support/memory.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, anAuthor, withKey } from '../../../support/store.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const me = { subject: 'me' };

interface Processes {
  readonly one: PostgresStore;
  readonly other: PostgresStore;
  /** The store of the other process. Each page that it reads arrives only after `duringPage`. */
  readonly slow: MemoryStore;
}

/** Opens one memory twice, as two processes do. `duringPage` runs after the server has read a page, before the page arrives. */
async function openTwo(duringPage: (processes: Processes) => Promise<unknown>): Promise<Processes> {
  const database = server.newMemory();
  const clock = manualClock();
  const open = async (): Promise<PostgresStore> => {
    const store = await PostgresStore.open({ database, clock, sources: withKey() });
    onTestFinished(() => store[Symbol.asyncDispose]());
    return store;
  };
  const [one, other] = [await open(), await open()];
  const slow = withLatePages(other, () => duringPage(processes));
  const processes = { one, other, slow };
  return processes;
}

test('a search does not find a fact that another process forgot while the index was built (R-OPS-14)', async () => {
  const { one, slow } = await openTwo(async (processes) => {
    await processes.one.forget('me', { kinds: ['fact'], key: 'forgotten' });
    await processes.other.refresh();
  });
  for (const key of ['stays', 'forgotten']) await one.space(me, 'fact').put(aDraft({ key, value: `the word ${key}` }));
  using finder = new Finder(slow);
  const find = async (): Promise<string[]> =>
    (await finder.find(me, { texts: ['word'], limit: 9 })).found.map(({ fact }) => fact.key);
  expect(await find()).toEqual(['stays']);
  expect(await find()).toEqual(['stays']);
});

const aRun = (pack: string, persona: string) => ({
  key: `pack_history/${pack}/${`${BigInt(START) * 1_000_000n}`.padStart(20, '0')}`,
  value: JSON.stringify({
    pack,
    version: '1.0.0',
    outcome: 'ok',
    at_unix: START / 1000,
    duration_ms: 7,
    learn_inputs: { persona },
  }),
  category: 'pack_history',
  tags: [],
  author: anAuthor,
  lifetime: 30 * DAY,
});

test('habits leave out runs that another process forgot while they were read, and are never older (R-VIEW-02)', async () => {
  let during: (processes: Processes) => Promise<unknown> = async ({ one, other }) => {
    await one.forget('me', { kinds: ['audit'], key: aRun('a.forgotten', '').key });
    await one.space(me, 'audit').put(aRun('a.changed', 'new'));
    await other.refresh();
  };
  const { one, slow } = await openTwo((processes) => during(processes));
  const runs = one.space(me, 'audit');
  for (const pack of ['a.forgotten', 'a.changed']) await runs.put(aRun(pack, 'old'));
  using defaults = new Defaults(slow);
  const habits = async () =>
    (await defaults.of(theOwner)).packs.map(({ id, common_inputs: inputs }) => [id, inputs?.['persona']]);
  expect(await habits()).toEqual([['a.changed', 'new']]);
  during = () => Promise.resolve();
  await runs.put(aRun('a.later', 'later'));
  expect(await habits()).toEqual([
    ['a.changed', 'new'],
    ['a.later', 'later'],
  ]);
});
