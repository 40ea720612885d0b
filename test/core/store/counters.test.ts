import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { KeyKeeper } from '../../../src/core/crypto/key-keeper.ts';
import { DiskReserve, FreeSpace } from '../../../src/core/file/disk-space.ts';
import { lockFolder } from '../../../src/core/file/folder.ts';
import { prepareFolder } from '../../../src/core/file/prepare-folder.ts';
import { Connection } from '../../../src/core/store/connection.ts';
import { openDatabase } from '../../../src/core/store/database.ts';
import { RamStore } from '../../../src/core/store/ram-store.ts';
import { SqliteStore } from '../../../src/core/store/sqlite-store.ts';
import type { EntryDraft, MemoryStore, Namespace, Overview, Quota, RevertOutcome, Space } from '../../../src/core/store/store.ts';
import { type ManualClock, manualClock, HOUR, MINUTE } from '../../support/clock.ts';
import { A_KEY, aDraft, anAuthor, ANOTHER_KEY, keyFrom } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** `npm run lane:many` sets more. */
const RUNS = Math.ceil(Number(process.env['HELMDECK_TEST_OPERATIONS'] ?? 2500) / 250);
const QUOTA: Quota = { facts: 5, bytes: 1024 * 1024 };

interface Opened {
  readonly store: MemoryStore;
  /** Absent for a memory in RAM. */
  readonly connection?: Connection;
}

/** A memory with its connection. */
async function openInside(clock: ManualClock, quota: Quota = QUOTA): Promise<Opened & { readonly connection: Connection }> {
  const folder = tempFolder();
  prepareFolder(folder);
  const file = join(folder, 'memory.db');
  const connection = new Connection(file, openDatabase(file));
  const sources = keyFrom({ HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEMORY_KEY_NEXT: ANOTHER_KEY });
  const keys = new KeyKeeper(connection, clock, sources('test'));
  await keys.unlock();
  const held = { reserve: new DiskReserve(folder), lock: lockFolder(folder), freeSpace: new FreeSpace(folder, clock) };
  const parts = { connection, keys, clock, folder, ...held, quota };
  return { store: new SqliteStore(parts), connection };
}

/** Compares the counters with a count of the rows. */
function expectCountersRight(connection: Connection): void {
  // The first use creates them.
  connection.usageCounters.usage('me', 'fact');
  connection.categoryCounters.of(1, 'fact');
  const all = (sql: string): unknown[] => connection.db.prepare(sql).all();
  expect(
    all(`SELECT place / 8 AS namespace, place % 8 AS kind, rows, bytes FROM temp.tally
          WHERE rows <> 0 OR bytes <> 0 ORDER BY 1, 2`),
  ).toEqual(all('SELECT namespace, kind, count(*) AS rows, sum(length(sealed)) AS bytes FROM entry GROUP BY 1, 2 ORDER BY 1, 2'));
  expect(all('SELECT namespace, kind, category, rows FROM temp.category_tally ORDER BY 1, 2, 3')).toEqual(
    all('SELECT namespace, kind, category, count(*) AS rows FROM entry WHERE kind <> 2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3'),
  );
}

const namespaces: readonly Namespace[] = [{ subject: 'me' }, { subject: 'me', session: 's' }, { subject: 'you' }];
const keys = ['a', 'b', 'c', 'd'] as const;
const categories = ['x', 'y', 'z'] as const;
const clients = ['claude', 'codex'] as const;

const where = { at: fc.nat(namespaces.length - 1), key: fc.constantFrom(...keys) };
const hours = fc.integer({ min: 1, max: 8 });
const job = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      ...where,
      value: fc.constantFrom('short', 'somewhat longer', 'v'.repeat(300)),
      category: fc.constantFrom(...categories),
      // An invalid lifetime is refused before the write.
      hours: fc.oneof({ weight: 9, arbitrary: hours }, { weight: 1, arbitrary: fc.constant(-1) }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('change' as const),
      ...where,
      category: fc.constantFrom(undefined, ...categories),
      hours: fc.option(hours, { nil: undefined }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('revert' as const),
      ...where,
      client: fc.constantFrom(...clients),
      hoursAgo: fc.integer({ min: 0, max: 6 }),
    }),
  },
);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      client: fc.constantFrom(...clients),
      jobs: fc.array(job, { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('forget' as const),
      ...where,
      by: fc.constantFrom('key' as const, 'category' as const, 'all' as const),
      category: fc.constantFrom(...categories),
      /** Fails after the deletes, so that they are rolled back. */
      torn: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('pass' as const, 'jump' as const), minutes: fc.nat(150) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('sweep' as const, 'reopen' as const, 'relock' as const) }) },
);
type Job = typeof job extends fc.Arbitrary<infer One> ? One : never;

interface Word {
  value: string;
  category: string;
  client: string;
  updatedAt: number;
  expiresAt: number;
  /** The first version of the key. */
  first: boolean;
}

interface Fact {
  row: number;
  /** Newest first, with the present version. */
  words: Word[];
}

/** A model of the store, made of maps. */
class Model {
  readonly #clock: ManualClock;
  readonly #spaces = namespaces.map(() => new Map<string, Fact>());
  #rows = 0;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  /** The expected result. */
  run(one: Job, client: string): string {
    const facts = this.living(one.at);
    const before = facts.get(one.key);
    const now = this.#clock.now();
    const [last] = before?.words ?? [];
    if (one.do === 'put') {
      const { value, category } = one;
      if (one.hours < 0) return 'invalid_input';
      const expiresAt = now + one.hours * HOUR;
      if (!before || !last) {
        if (this.#held(one.at) === QUOTA.facts) return 'quota_exceeded';
        const word = { value, category, client, updatedAt: now, expiresAt, first: true };
        facts.set(one.key, { row: (this.#rows += 1), words: [word] });
        return 'created';
      }
      const shortened = last.client !== client && expiresAt < last.expiresAt;
      if (last.value === value && last.category === category && !shortened) {
        last.expiresAt = expiresAt;
        return 'unchanged';
      }
      this.#say(before, { value, category, client, expiresAt });
      return 'updated';
    }
    if (one.do === 'change') {
      if (!before || !last) return 'nothing';
      const { category = last.category } = one;
      const expiresAt = one.hours === undefined ? last.expiresAt : now + one.hours * HOUR;
      const shortened = last.client !== client && expiresAt < last.expiresAt;
      if (category === last.category && !shortened) last.expiresAt = expiresAt;
      else this.#say(before, { value: last.value, category, client, expiresAt });
      return 'changed';
    }
    return before ? this.#revert(facts, before, one) : 'untouched';
  }

  #revert(facts: Map<string, Fact>, before: Fact, one: Job & { do: 'revert' }): RevertOutcome {
    const since = this.#clock.now() - one.hoursAgo * HOUR;
    const theirs = ({ client, updatedAt }: Word): boolean => client === one.client && updatedAt >= since;
    const [last, ...earlier] = before.words;
    if (!last || !theirs(last)) return 'untouched';
    const good = earlier.find((word) => !theirs(word));
    if (good) {
      if (good.client === one.client && good.value === last.value && good.category === last.category) return 'untouched';
      this.#say(before, good);
      return 'restored';
    }
    if (!before.words.at(-1)?.first) return 'skipped';
    facts.delete(one.key);
    return 'removed';
  }

  #say(fact: Fact, word: Omit<Word, 'updatedAt' | 'first'>): void {
    const updatedAt = Math.max(this.#clock.now(), (fact.words[0]?.updatedAt ?? 0) + 1);
    fact.words = [{ ...word, updatedAt, first: false }, ...fact.words];
    if (fact.words.length <= 21) return;
    const heldBy = ({ client }: Word): number => fact.words.filter((other) => other.client === client).length;
    const most = Math.max(...fact.words.map(heldBy));
    const evicted = fact.words.findLast((one) => heldBy(one) === most);
    fact.words = fact.words.filter((one) => one !== evicted);
  }

  #held(at: number): number {
    return namespaces.reduce(
      (sum, { subject }, index) => sum + (subject === namespaces[at]?.subject ? this.living(index).size : 0),
      0,
    );
  }

  living(at: number): Map<string, Fact> {
    const facts = this.#spaces[at] ?? new Map<string, Fact>();
    const now = this.#clock.now();
    for (const [key, fact] of facts) {
      if ((fact.words[0]?.expiresAt ?? 0) <= now) facts.delete(key);
      fact.words = fact.words.filter(({ expiresAt }) => expiresAt > now);
    }
    return facts;
  }

  forget(subject: string, matches: (key: string, fact: Fact) => boolean): number {
    let deleted = 0;
    for (const [at, namespace] of namespaces.entries()) {
      if (namespace.subject !== subject) continue;
      const facts = this.living(at);
      for (const [key, fact] of facts) if (matches(key, fact) && facts.delete(key)) deleted += 1;
    }
    return deleted;
  }

  /** Removes the facts and versions that the store no longer has. */
  async adopt(at: number, facts: Space): Promise<void> {
    for (const [key, fact] of this.living(at)) {
      const entry = await facts.get(key);
      const times = new Set([entry, ...(await facts.history(key))].map((one) => one?.updatedAt));
      if (entry) fact.words = fact.words.filter(({ updatedAt }) => times.has(updatedAt));
      else this.living(at).delete(key);
    }
  }

  overview(at: number, most: { categories: number; keys: number }): Overview {
    const facts = [...this.living(at)].map(([key, { row, words }]) => ({ key, row, word: words[0]! }));
    const newest = facts.toSorted((one, other) => other.word.updatedAt - one.word.updatedAt || other.row - one.row);
    const names = [...new Set(facts.map(({ word }) => word.category))].toSorted();
    return {
      categories: names.slice(0, most.categories).map((name) => {
        const theirs = newest.filter(({ word }) => word.category === name);
        return { name, count: theirs.length, recent: theirs.slice(0, most.keys).map(({ key }) => key) };
      }),
      more: Math.max(0, names.length - most.categories),
    };
  }
}

async function settled(outcome: Promise<unknown>): Promise<string> {
  try {
    const value = await outcome;
    if (value === undefined) return 'nothing';
    if (typeof value === 'string') return value;
    const { status, what } = value as { status?: string; what?: string };
    return status ?? what ?? 'changed';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

let notes = 0;
const aNote = (author = anAuthor): EntryDraft =>
  aDraft({ key: `note ${(notes += 1)}`, category: 'activity', lifetime: 2 * HOUR, author });

function doJob(store: MemoryStore, clock: ManualClock, one: Job, client: string): Promise<unknown> {
  const { key } = one;
  const author = { ...anAuthor, client };
  const space = store.space(namespaces[one.at]!, 'fact');
  if (one.do === 'put') {
    const { value, category } = one;
    return space.put({ key, value, category, tags: [], author, lifetime: one.hours * HOUR }, aNote(author));
  }
  if (one.do === 'revert')
    return space.revert(key, { client: one.client, since: clock.now() - one.hoursAgo * HOUR }, aNote(author));
  const { category, hours: left } = one;
  const change = { author, ...(category && { category }), ...(left !== undefined && { lifetime: left * HOUR }) };
  return space.change(key, change, aNote(author));
}

const stores = {
  SQLite: openInside,
  RAM: (clock: ManualClock): Promise<Opened> => Promise.resolve({ store: new RamStore(clock, QUOTA) }),
};

describe.each(Object.entries(stores))('%s: the counters (R-FACT-16, R-VIEW-01, R-TIME-01)', (_name, open) => {
  test('equal those of a simple model after every step of a random sequence', { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const clock = manualClock();
        const { store, connection } = await open(clock);
        await using _ = store;
        const model = new Model(clock);
        for (const one of steps) {
          let [told, wanted]: [unknown, unknown] = [undefined, undefined];
          switch (one.do) {
            case 'write': {
              // All of one client, so that they run in this order and in one commit.
              told = await Promise.all(one.jobs.map((each) => settled(doJob(store, clock, each, one.client))));
              wanted = one.jobs.map((each) => model.run(each, one.client));
              break;
            }
            case 'forget': {
              const { subject } = namespaces[one.at]!;
              const selection = {
                kinds: ['fact'] as const,
                ...(one.by === 'key' && { key: one.key }),
                ...(one.by === 'category' && { category: one.category }),
              };
              if (one.torn && connection) {
                const seen = await store.countMatching(subject, selection);
                // The note of a forget of everything cannot be stored.
                told = await settled(store.forget(subject, selection, { ...aNote(), lifetime: 0 }));
                wanted = seen > 0 ? 'invalid_input' : told;
                // Only the last slice is rolled back. On a busy machine, a forget has earlier slices, which stay.
                for (const [at, namespace] of namespaces.entries()) await model.adopt(at, store.space(namespace, 'fact'));
                break;
              }
              told = (await store.forget(subject, selection, aNote())).deleted;
              wanted = model.forget(
                subject,
                (key, { words }) =>
                  one.by === 'all' || (one.by === 'key' ? key === one.key : words[0]?.category === one.category),
              );
              break;
            }
            case 'pass':
              await clock.advance(one.minutes * MINUTE);
              break;
            case 'jump':
              clock.jump(one.minutes * MINUTE);
              break;
            case 'sweep':
              await store.sweep(2);
              break;
            case 'reopen':
              connection?.reopen();
              break;
            case 'relock':
              if (store.upkeep) store.lock();
              await store.unlock();
              break;
          }
          expect(told).toEqual(wanted);
          if (connection) expectCountersRight(connection);
          for (const [at, namespace] of namespaces.entries()) {
            const facts = store.space(namespace, 'fact');
            for (const most of [
              { categories: 50, keys: 5 },
              { categories: 2, keys: 1 },
            ]) {
              expect(await facts.overview(most)).toEqual(model.overview(at, most));
            }
            expect(await facts.count()).toBe(model.living(at).size);
            for (const [key, { words }] of model.living(at)) {
              const said = [await facts.get(key), ...(await facts.history(key))];
              expect(said.map((entry) => entry?.value)).toEqual(words.map(({ value }) => value));
            }
          }
        }
      }),
      { numRuns: RUNS, seed: 20_261_118 },
    );
  });
});

describe('the counters of SQLite', () => {
  const opened = async (quota?: Quota) => {
    const clock = manualClock();
    const all = await openInside(clock, quota);
    onTestFinished(() => all.store[Symbol.asyncDispose]());
    return { ...all, clock, facts: all.store.space({ subject: 'me' }, 'fact') };
  };

  test('stay correct during a key rotation with other writes', async () => {
    const { store, connection, facts } = await opened({ facts: 5000, bytes: 64 * 1024 * 1024 });
    await Promise.all(
      Array.from({ length: 600 }, (_, index) => facts.put(aDraft({ key: `k${index % 400}`, value: `${index}` }))),
    );
    const rotating = store.upkeep?.rotate();
    for (let index = 0; index < 200; index += 1) {
      await facts.put(aDraft({ key: `k${index * 3}`, value: `new ${index}`, category: index % 2 ? 'x' : 'y' }));
      if (index % 5 === 0) await store.forget('me', { kinds: ['fact'], key: `k${index}` });
    }
    await rotating;
    expectCountersRight(connection);
    expect((await facts.overview({ categories: 9, keys: 0 })).categories.map(({ count }) => count)).toEqual(
      await Promise.all(['preferences', 'x', 'y'].map((category) => facts.count(category))),
    );
  });

  test('stay correct after a rollback', async () => {
    const { connection, facts } = await opened({ facts: 100, bytes: 1024 * 1024 });
    await facts.put(aDraft({ key: 'a', category: 'x' }));
    await facts.overview({ categories: 9, keys: 9 });
    connection.begin();
    connection.db.exec("DELETE FROM entry WHERE kind = 1; UPDATE entry SET category = 'other'");
    connection.rollback();
    expectCountersRight(connection);
    expect((await facts.overview({ categories: 9, keys: 9 })).categories).toEqual([{ name: 'x', count: 1, recent: ['a'] }]);
  });

  test('are created again after a disk error, and no cached number is used', async () => {
    const { connection, facts } = await opened({ facts: 100, bytes: 1024 * 1024 });
    const most = { categories: 9, keys: 9 };
    for (const key of ['a', 'b', 'c']) {
      await facts.put(aDraft({ key, category: 'x' }));
      await facts.overview(most);
    }
    connection.reopen();
    const seen: (string | undefined)[] = [];
    for (const key of ['d', 'e', 'f', 'g', 'h']) {
      await facts.put(aDraft({ key, category: 'x' }));
      // Read late, so that the new version numbers reach the old ones.
      if (key > 'e') seen.push((await facts.overview(most)).categories[0]?.recent[0]);
    }
    expect(seen).toEqual(['f', 'g', 'h']);
    expectCountersRight(connection);
  });

  test('a session that reuses the number of a deleted one shows none of its entries', async () => {
    const { store, facts } = await opened();
    const most = { categories: 9, keys: 9 };
    await facts.put(aDraft({ key: 'lasting' }));
    for (const session of ['1', '2', '3']) {
      const theirs = store.space({ subject: 'me', session }, 'fact');
      await theirs.put(aDraft({ key: `of ${session}` }));
      expect((await theirs.overview(most)).categories).toEqual([{ name: 'preferences', count: 1, recent: [`of ${session}`] }]);
      await store.forget('me', { kinds: ['fact'], session });
    }
  });

  test('the first overview does not count bytes', async () => {
    const { connection, facts } = await opened();
    await facts.put(aDraft());
    connection.reopen();
    expect((await facts.overview({ categories: 9, keys: 9 })).categories).toHaveLength(1);
    expect(await facts.count()).toBe(1);
    expect(connection.hasUsageCounters).toBe(false);
    await facts.put(aDraft({ key: 'another' }));
    expect(connection.hasUsageCounters).toBe(true);
    expectCountersRight(connection);
  });

  test('empty categories leave no row', async () => {
    const { connection, facts, store } = await opened();
    for (let turn = 0; turn < 20; turn += 1) {
      await facts.put(aDraft({ key: 'a', category: `c${turn}` }));
      await facts.overview({ categories: 9, keys: 9 });
      if (turn % 5 === 0) await store.forget('me', { kinds: ['fact'] });
    }
    expect(connection.db.prepare('SELECT count(*) FROM temp.category_tally').pluck().get()).toBe(1);
  });

  test('are created again if that failed before', async () => {
    const { connection, facts } = await opened();
    await facts.put(aDraft());
    connection.reopen();
    // The file cannot be read at first.
    connection.db.exec('ALTER TABLE entry RENAME TO away');
    expect(() => connection.usageCounters).toThrow('no such table: main.entry');
    connection.db.exec('ALTER TABLE away RENAME TO entry');
    expectCountersRight(connection);
    expect((await facts.overview({ categories: 9, keys: 9 })).categories).toHaveLength(1);
  });
});
