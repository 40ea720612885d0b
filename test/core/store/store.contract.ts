import { describe, expect, onTestFinished, test } from 'vitest';
import { HISTORY_VERSIONS, PACK, QUOTA, RECORD_ROWS } from '../../../src/contract/limits.ts';
import type {
  EntryDraft,
  Entry,
  Kind,
  MemoryStore,
  Namespace,
  ActivityNote,
  Quota,
  Space,
  SpaceKind,
} from '../../../src/core/store/store.ts';
import { DAY, type ManualClock, manualClock, HOUR, MINUTE, START } from '../../support/clock.ts';
import { aDraft, anAuthor } from '../../support/store.ts';
import { promisesOfSuperseding } from './superseding.contract.ts';

const me: Namespace = { subject: 'me' };

interface Opened {
  readonly store: MemoryStore;
  readonly clock: ManualClock;
  readonly facts: Space;
}

/** The note of a write. */
const aNote = (key: string): ActivityNote => aDraft({ key, category: 'activity', value: 'stored', lifetime: 30 * DAY });

type OpenStore = (clock: ManualClock, quota: Quota) => Promise<MemoryStore>;
const nothing: (store: MemoryStore) => Promise<void> = () => Promise.resolve();

/**
 * The promises of every store (R-STORE-01). `isDurable`: whether the store can be locked and keeps entries over a restart. `purges`:
 * whether a forget erases the bytes. `whenIdle` waits for work that a timer started.
 */
export function promisesOfAStore(
  name: string,
  open: OpenStore,
  { isDurable = true, purges = true, whenIdle = nothing } = {},
): void {
  const opened = async (quota: Partial<Quota> = {}): Promise<Opened> => {
    const clock = manualClock();
    const store = await open(clock, { ...QUOTA, ...quota });
    clock.work = () => whenIdle(store);
    onTestFinished(() => store[Symbol.asyncDispose]());
    return { store, clock, facts: store.space(me, 'fact') };
  };

  promisesOfSuperseding(name, opened);

  describe(`${name}: the life of an entry`, () => {
    test('returns a stored entry with author and end of life (R-STORE-01)', async () => {
      const { facts } = await opened();
      const { status, entry } = await facts.put(aDraft());
      expect(status).toBe('created');
      expect(await facts.get(entry.key)).toEqual({
        key: 'preferences/frontend-framework',
        value: 'React over Vue (Konflux project constraint)',
        category: 'preferences',
        tags: ['frontend', 'konflux'],
        author: anAuthor,
        createdAt: START,
        updatedAt: START,
        expiresAt: START + 90 * DAY,
      });
      expect(await facts.get('preferences')).toBeUndefined();
    });

    test('a new value keeps the creation time (R-FACT-14)', async () => {
      const { facts, clock } = await opened();
      await facts.put(aDraft());
      await clock.advance(HOUR);
      const { status, entry } = await facts.put(aDraft({ value: 'Svelte', lifetime: DAY }));
      expect(status).toBe('updated');
      expect(entry).toMatchObject({
        value: 'Svelte',
        createdAt: START,
        updatedAt: START + HOUR,
        expiresAt: START + HOUR + DAY,
      });
      expect(await facts.get(entry.key)).toEqual(entry);
    });

    test('the same content again only renews the fact, and keeps its author (R-FACT-15, R-HIST-03)', async () => {
      const { facts, clock } = await opened();
      const first = await facts.put(aDraft());
      await clock.advance(HOUR);
      const again = await facts.put(aDraft({ author: { ...anAuthor, client: 'codex' } }));
      expect(again).toEqual({ status: 'unchanged', entry: { ...first.entry, expiresAt: START + HOUR + 90 * DAY } });
      expect(await facts.get(first.entry.key)).toEqual(again.entry);
      expect(await facts.history(first.entry.key)).toEqual([]);
    });

    test.each([
      { what: 'value', over: { value: 'another' } },
      { what: 'category', over: { category: 'other' } },
      { what: 'tags', over: { tags: ['konflux', 'frontend'] } },
    ])('another $what makes a new version (R-HIST-03)', async ({ over }) => {
      const { facts } = await opened();
      const { entry } = await facts.put(aDraft());
      expect((await facts.put(aDraft(over))).status).toBe('updated');
      expect(await facts.history(entry.key)).toEqual([entry]);
    });

    test('versions of the same millisecond keep their order (R-TIME-05)', async () => {
      const { facts } = await opened();
      for (const value of ['one', 'two', 'three']) await facts.put(aDraft({ value }));
      const { key } = aDraft();
      expect((await facts.history(key)).map(({ value }) => value)).toEqual(['two', 'one']);
      expect((await facts.get(key))?.updatedAt).toBe(START + 2);
    });

    test('a change does not affect absent fields (R-HIST-03, R-OPS-04)', async () => {
      const { facts, clock } = await opened();
      const { entry } = await facts.put(aDraft());
      await clock.advance(MINUTE);
      const other = { ...anAuthor, client: 'window' };
      const renewed = await facts.change(entry.key, { lifetime: 100 * DAY, author: other });
      expect(renewed).toEqual({ ...entry, expiresAt: START + MINUTE + 100 * DAY });
      expect(await facts.history(entry.key)).toEqual([]);

      const moved = await facts.change(entry.key, { category: 'habits', tags: [], author: other });
      expect(moved).toEqual({ ...renewed, category: 'habits', tags: [], author: other, updatedAt: START + MINUTE });
      expect(await facts.history(entry.key)).toEqual([{ ...renewed }]);
      expect(await facts.change('nothing here', { lifetime: DAY, author: other })).toBeUndefined();
    });

    test('only facts have a history, and no other kind can read it (R-HIST-01, R-STORE-02)', async () => {
      const { store, facts } = await opened();
      const pack = store.space(me, 'pack');
      await facts.put(aDraft({ value: 'a fact' }));
      await facts.put(aDraft({ value: 'a newer fact' }));
      expect(await pack.history(aDraft().key)).toEqual([]);
      await pack.put(aDraft({ value: 'one' }));
      await pack.put(aDraft({ value: 'two' }));
      expect(await pack.history(aDraft().key)).toEqual([]);
      expect((await pack.get(aDraft().key))?.value).toBe('two');
    });

    test(`the last ${HISTORY_VERSIONS} earlier versions are kept, newest first (R-HIST-01, R-HIST-02, R-HIST-04)`, async () => {
      const { facts, clock } = await opened();
      for (let turn = 0; turn < HISTORY_VERSIONS + 5; turn += 1) {
        await facts.put(aDraft({ value: `version ${turn}` }));
        await clock.advance(MINUTE);
      }
      const versions = await facts.history(aDraft().key);
      expect(versions.map(({ value }) => value)).toEqual(
        Array.from({ length: HISTORY_VERSIONS }, (_, back) => `version ${HISTORY_VERSIONS + 3 - back}`),
      );
      expect(versions[0]).toEqual({
        ...aDraft({ value: `version ${HISTORY_VERSIONS + 3}` }),
        lifetime: undefined,
        createdAt: START,
        updatedAt: START + (HISTORY_VERSIONS + 3) * MINUTE,
        expiresAt: START + (HISTORY_VERSIONS + 3) * MINUTE + 90 * DAY,
      });
    });
  });

  describe(`${name}: expiry`, () => {
    test('no answer contains an entry from the moment it expires (R-TIME-01)', async () => {
      const { store, clock, facts } = await opened();
      await facts.put(aDraft({ lifetime: HOUR }));
      await facts.put(aDraft({ lifetime: HOUR, value: 'again' }));
      const { key } = aDraft();
      await clock.advance(HOUR - 1);
      expect(await facts.get(key)).toBeDefined();
      // The clock jumps, so no sweep has run.
      clock.jump(1);
      expect(await facts.get(key)).toBeUndefined();
      expect(await facts.history(key)).toEqual([]);
      expect(await facts.count()).toBe(0);
      expect((await facts.page({ sort: 'updated', limit: 10 })).entries).toEqual([]);
      expect((await facts.page({ sort: 'expires', limit: 10 })).entries).toEqual([]);
      expect(await facts.change(key, { lifetime: DAY, author: anAuthor })).toBeUndefined();
      expect(await store.namespaces()).toEqual([]);
      expect(await store.countMatching('me', { kinds: ['fact'] })).toBe(0);
    });

    test.each([0, -1, NaN, 365 * DAY + 1, Infinity])('a lifetime of %d ms is refused (R-TIME-02)', async (lifetime) => {
      const { facts } = await opened();
      await expect(facts.put(aDraft({ lifetime }))).rejects.toMatchObject({ code: 'invalid_input' });
      await facts.put(aDraft());
      await expect(facts.change(aDraft().key, { lifetime, author: anAuthor })).rejects.toMatchObject({ code: 'invalid_input' });
      expect((await facts.get(aDraft().key))?.expiresAt).toBe(START + 90 * DAY);
    });

    test('a fact that replaces an expired one has no history (R-TIME-01, R-HIST-02)', async () => {
      const { clock, facts } = await opened();
      await facts.put(aDraft({ lifetime: 2 * HOUR }));
      await facts.put(aDraft({ lifetime: HOUR, value: 'short' }));
      clock.jump(HOUR);
      expect(await facts.put(aDraft({ value: 'anew' }))).toMatchObject({
        status: 'created',
        entry: { createdAt: START + HOUR },
      });
      expect(await facts.history(aDraft().key)).toEqual([]);
    });

    test('a version expires at its own end of life (R-HIST-02)', async () => {
      const { clock, facts } = await opened();
      await facts.put(aDraft({ value: 'short', lifetime: HOUR }));
      await facts.put(aDraft({ value: 'long', lifetime: DAY }));
      expect(await facts.history(aDraft().key)).toHaveLength(1);
      await clock.advance(HOUR);
      expect(await facts.history(aDraft().key)).toEqual([]);
      expect(await facts.get(aDraft().key)).toMatchObject({ value: 'long' });
    });

    test('a sweep runs when an entry expires (R-PURGE-05)', async () => {
      const { store, clock, facts } = await opened();
      await facts.put(aDraft({ key: 'soon', lifetime: HOUR }));
      await facts.put(aDraft({ key: 'later', lifetime: 2 * HOUR }));
      await clock.advance(HOUR);
      // A sweep by hand finds nothing, and returns the time of the next one.
      expect(await store.sweep(100)).toEqual({ removed: 0, next: START + 2 * HOUR });
      await clock.advance(HOUR);
      expect(await store.sweep(100)).toEqual({ removed: 0 });
    });

    test('a sweep removes no more than its limit (R-PURGE-05)', async () => {
      const { store, clock, facts } = await opened();
      for (let index = 0; index < 5; index += 1) await facts.put(aDraft({ key: `k${index}`, lifetime: HOUR }));
      clock.jump(HOUR);
      const swept = await Promise.all([store.sweep(3), store.sweep(3), store.sweep(3)]);
      expect(swept.map(({ removed }) => removed)).toEqual([3, 2, 0]);
    });

    test('a clock that is set back extends no lifetime (R-TIME-04)', async () => {
      const { clock, facts } = await opened();
      await facts.put(aDraft({ lifetime: HOUR }));
      clock.jump(-365 * DAY);
      await clock.advance(HOUR - 1);
      expect(await facts.get(aDraft().key)).toBeDefined();
      await clock.advance(1);
      expect(await facts.get(aDraft().key)).toBeUndefined();
      // Update times do not run backwards either.
      expect((await facts.put(aDraft())).entry.createdAt).toBe(START + HOUR);
    });

    test('a jump forward hides facts until the clock is corrected (R-TIME-03)', async () => {
      const { store, clock, facts } = await opened();
      await facts.put(aDraft());
      clock.jump(365 * DAY);
      expect(await facts.get(aDraft().key)).toBeUndefined();
      expect(store.status().clock.at).toBe('ahead');
      expect(await store.sweep(100)).toMatchObject({ removed: 0 });
      await clock.advance(HOUR - MINUTE);
      clock.jump(-365 * DAY);
      expect(await facts.get(aDraft().key)).toBeDefined();
      expect(store.status().clock).toEqual({ at: 'ok' });
    });

    test('a write over a hidden fact destroys nothing while the clock is in doubt (R-TIME-03)', async () => {
      if (!isDurable) return;
      const { clock, facts } = await opened();
      await facts.put(aDraft({ value: 'before' }));
      clock.jump(200 * DAY);
      expect((await facts.put(aDraft({ value: 'meanwhile' }))).status).toBe('created');
      expect(await facts.history(aDraft().key)).toEqual([]);
      clock.jump(-200 * DAY);
      expect((await facts.history(aDraft().key)).map(({ value }) => value)).toEqual(['before']);
    });

    test('facts hidden by a long jump are deleted when the owner confirms the clock (R-TIME-03, R-TIME-09)', async () => {
      const { store, clock, facts } = await opened();
      await facts.put(aDraft());
      clock.jump(365 * DAY);
      await store.sweep(100);
      await clock.advance(3 * HOUR);
      expect(await store.countExpiredFacts()).toBe(1);
      await store.trustClock();
      await clock.advance(MINUTE);
      expect(store.status().clock).toEqual({ at: 'ok' });
      expect(await store.countExpiredFacts()).toBe(0);
      clock.jump(-365 * DAY);
      expect(await facts.get(aDraft().key)).toBeUndefined();
    });

    test('correcting a clock that was ahead shows the facts again (R-TIME-09)', async () => {
      const { store, clock, facts } = await opened();
      clock.jump(200 * DAY);
      await store.trustClock();
      await facts.put(aDraft({ lifetime: 10 * DAY }));
      clock.jump(-200 * DAY);
      expect(store.status().clock.at).toBe('behind');
      await store.trustClock();
      expect(store.now()).toBe(START);
      expect(await facts.get(aDraft().key)).toBeDefined();
    });
  });

  describe(`${name}: lists`, () => {
    const keys = (entries: readonly Entry[]) => entries.map(({ key }) => key);
    const walk = async (space: Space, query: Omit<Parameters<Space['page']>[0], 'after'>): Promise<string[]> => {
      const seen: string[] = [];
      let page = await space.page(query);
      for (;;) {
        expect(page.entries.length).toBeLessThanOrEqual(query.limit);
        seen.push(...keys(page.entries));
        if (!page.next) return seen;
        page = await space.page({ ...query, after: page.next });
      }
    };

    test('newest first, and in the order of writing within a millisecond (R-STORE-09)', async () => {
      const { facts, clock } = await opened();
      for (const key of ['a', 'b', 'c']) await facts.put(aDraft({ key }));
      await clock.advance(1);
      for (const key of ['d', 'e']) await facts.put(aDraft({ key }));
      await clock.advance(1);
      await facts.put(aDraft({ key: 'a', value: 'newer' }));
      for (const limit of [1, 2, 3, 10]) {
        expect(await walk(facts, { sort: 'updated', limit })).toEqual(['a', 'e', 'd', 'c', 'b']);
        expect(await walk(facts, { sort: 'oldest', limit })).toEqual(['b', 'c', 'd', 'e', 'a']);
      }
    });

    test('oldest first, with new entries last', async () => {
      const { store, facts, clock } = await opened();
      for (const key of ['a', 'b', 'c', 'd']) {
        await facts.put(aDraft({ key, category: key === 'b' ? 'y' : 'x' }));
        await clock.advance(1);
      }
      expect(await walk(facts, { sort: 'oldest', limit: 1, category: 'x' })).toEqual(['a', 'c', 'd']);
      const first = await facts.page({ sort: 'oldest', limit: 2 });
      expect(keys(first.entries)).toEqual(['a', 'b']);
      await facts.put(aDraft({ key: 'e' }));
      await clock.advance(1);
      await facts.put(aDraft({ key: 'a', value: 'newer' }));
      await store.forget('me', { kinds: ['fact'], key: 'c' });
      expect(keys((await facts.page({ sort: 'oldest', limit: 9, after: first.next! })).entries)).toEqual(['d', 'e', 'a']);
    });

    test.each(['updated', 'oldest', 'expires'] as const)(
      'by what was opened, %s: each that matches once, however many do not',
      async (sort) => {
        const { facts } = await opened();
        const all = Array.from({ length: 1300 }, (_, index) => `k${index}`);
        await Promise.all(all.map((key) => facts.put(aDraft({ key }))));
        const wanted = all.filter((_, index) => index % 600 === 7 || (index > 1200 && index % 9 === 0));
        const matches = ({ key }: Entry): boolean => wanted.includes(key);
        const ordered = sort === 'updated' ? wanted.toReversed() : wanted;
        for (const limit of [1, 3, 50]) expect(await walk(facts, { sort, limit, matches })).toEqual(ordered);
        expect(await walk(facts, { sort, limit: 50, matches: () => false })).toEqual([]);
        expect(await walk(facts, { sort, limit: 499 })).toHaveLength(1300);
      },
    );

    test('in shorter pages if entries are long, without a gap (R-STORE-10)', async () => {
      const { facts } = await opened();
      const long = 'x'.repeat(60_000);
      const all = Array.from({ length: 40 }, (_, index) => `k${index}`);
      for (const key of all) await facts.put(aDraft({ key, value: key === 'k7' ? 'short' : long }));
      expect((await facts.page({ sort: 'oldest', limit: 40 })).entries.length).toBe(2);
      expect((await facts.page({ sort: 'oldest', limit: 40, bytes: 1 })).entries).toHaveLength(1);
      for (const bytes of [1, 100_000, 10_000_000]) {
        expect(await walk(facts, { sort: 'oldest', limit: 40, bytes })).toEqual(all);
        expect(await walk(facts, { sort: 'updated', limit: 15, bytes, matches: ({ key }) => key !== 'k9' })).toEqual(
          all.filter((key) => key !== 'k9').toReversed(),
        );
      }
    });

    test('first to expire first (R-STORE-09)', async () => {
      const { facts } = await opened();
      for (const [index, key] of ['c', 'a', 'b', 'a2'].entries()) {
        await facts.put(aDraft({ key, lifetime: [3, 1, 2, 1][index]! * HOUR }));
      }
      for (const limit of [1, 2, 10]) expect(await walk(facts, { sort: 'expires', limit })).toEqual(['a', 'a2', 'b', 'c']);
    });

    test('by category, and by end of life', async () => {
      const { facts } = await opened();
      await facts.put(aDraft({ key: 'a', category: 'x', lifetime: HOUR }));
      await facts.put(aDraft({ key: 'b', category: 'y', lifetime: HOUR }));
      await facts.put(aDraft({ key: 'c', category: 'x', lifetime: DAY }));
      expect(await walk(facts, { sort: 'updated', limit: 1, category: 'x' })).toEqual(['c', 'a']);
      expect(await walk(facts, { sort: 'expires', limit: 1, category: 'x' })).toEqual(['a', 'c']);
      expect(await walk(facts, { sort: 'updated', limit: 1, expiresBefore: START + DAY })).toEqual(['b', 'a']);
      expect(await walk(facts, { sort: 'expires', limit: 5, category: 'x', expiresBefore: START + DAY })).toEqual(['a']);
      expect(await facts.count()).toBe(3);
      expect(await facts.count('x')).toBe(2);
      expect(await facts.count('z')).toBe(0);
    });

    test('in correct pages when entries are added and deleted in between', async () => {
      const { store, facts } = await opened();
      for (const key of ['a', 'b', 'c', 'd']) await facts.put(aDraft({ key }));
      const first = await facts.page({ sort: 'updated', limit: 2 });
      expect(keys(first.entries)).toEqual(['d', 'c']);
      await store.forget('me', { kinds: ['fact'], key: 'c' });
      await facts.put(aDraft({ key: 'e' }));
      expect(keys((await facts.page({ sort: 'updated', limit: 2, after: first.next! })).entries)).toEqual(['b', 'a']);
    });

    test('the count of soon expiring entries equals the list (R-SEEK-05)', async () => {
      const { facts, clock } = await opened();
      for (const hours of [1, 2, 3, 4]) await facts.put(aDraft({ key: `${hours}`, lifetime: hours * HOUR }));
      clock.jump(HOUR);
      const before = START + 4 * HOUR;
      expect(keys((await facts.page({ sort: 'expires', limit: 9, expiresBefore: before })).entries)).toEqual(['2', '3']);
      expect(await facts.countExpiringBefore(before)).toBe(2);
      expect(await facts.countExpiringBefore(before + 1)).toBe(3);
    });

    test('of an empty memory: an empty page and a count of 0', async () => {
      const { facts, store } = await opened();
      expect(await facts.countExpiringBefore(Number.MAX_SAFE_INTEGER)).toBe(0);
      expect(await facts.page({ sort: 'updated', limit: 10 })).toEqual({ entries: [], rows: [] });
      expect(await facts.count()).toBe(0);
      expect(await store.namespaces()).toEqual([]);
    });
  });

  describe(`${name}: isolation`, () => {
    test('no namespace and no kind can read another (R-ISO-01, R-ISO-03, R-ISO-04, R-STORE-02)', async () => {
      const { store } = await opened();
      const places: [Namespace, SpaceKind][] = [
        [{ subject: 'a' }, 'fact'],
        [{ subject: 'a' }, 'pack'],
        [{ subject: 'a' }, 'cache'],
        [{ subject: 'a' }, 'audit'],
        [{ subject: 'a', session: 'b' }, 'fact'],
        [{ subject: 'a:b' }, 'fact'],
        [{ subject: 'A' }, 'fact'],
        [{ subject: 'a', session: 'b:c' }, 'fact'],
        [{ subject: 'a:b', session: 'c' }, 'fact'],
      ];
      for (const [index, [namespace, kind]] of places.entries()) {
        expect((await store.space(namespace, kind).put(aDraft({ value: `value ${index}` }))).status).toBe('created');
      }
      for (const [index, [namespace, kind]] of places.entries()) {
        const space = store.space(namespace, kind);
        expect((await space.get(aDraft().key))?.value).toBe(`value ${index}`);
        expect(await space.count()).toBe(1);
        expect((await space.page({ sort: 'updated', limit: 10 })).entries).toHaveLength(1);
      }
      const facts = places.filter(([, kind]) => kind === 'fact').map(([namespace]) => ({ namespace, count: 1 }));
      const named = await store.namespaces();
      expect(named).toHaveLength(facts.length);
      expect(named).toEqual(expect.arrayContaining(facts));
    });

    test('keys match exactly, also names like __proto__ (R-STORE-08, R-ISO-05)', async () => {
      const { facts } = await opened();
      const names = [
        'key',
        'KEY',
        'k%',
        'k_y',
        'k*',
        'k\\',
        'é',
        '__proto__',
        'constructor',
        'toString',
        'a/b',
        'a//b',
        "'; DROP TABLE entry; --",
      ];
      for (const key of names) expect((await facts.put(aDraft({ key, value: `of ${key}` }))).status).toBe('created');
      for (const key of names) expect((await facts.get(key))?.value).toBe(`of ${key}`);
      expect(await facts.count()).toBe(names.length);
    });

    test('values of any size are returned unchanged', async () => {
      const { facts } = await opened();
      const values = [
        'x',
        'ß 漢字 😀 ‮',
        '\n\t"\\',
        'v'.repeat(127),
        'v'.repeat(128),
        'v'.repeat(16_383),
        'v'.repeat(16_384),
        'é'.repeat(32_768),
      ];
      for (const [index, value] of values.entries())
        await facts.put(aDraft({ key: `k${index}`, value, tags: Array(32).fill('ü') as string[] }));
      for (const [index, value] of values.entries()) expect((await facts.get(`k${index}`))?.value).toBe(value);
    });
  });

  describe(`${name}: forgetting`, () => {
    const filled = async (): Promise<Opened> => {
      const all = await opened();
      const { store } = all;
      const put = (namespace: Namespace, kind: SpaceKind, over: Partial<EntryDraft>) =>
        store.space(namespace, kind).put(aDraft(over));
      await put(me, 'fact', { key: 'a', category: 'x', tags: ['t'] });
      await put(me, 'fact', { key: 'a', category: 'x', tags: ['t'], value: 'newer' });
      await put(me, 'fact', { key: 'ab', category: 'y', tags: [] });
      await put(me, 'fact', { key: 'A', category: 'x', tags: [] });
      await put(me, 'audit', { key: 'pack_history/p/1', category: 'pack_history' });
      await put(me, 'audit', { key: 'pipeline_history/q/1', category: 'pipeline_history' });
      await put(me, 'cache', { key: 'p', category: 'cache' });
      await put(me, 'activity', { key: 'note 1', category: 'activity' });
      await put({ subject: 'me', session: 's' }, 'pack', { key: 'p' });
      await put({ subject: 'me', session: 's2' }, 'pack', { key: 'p' });
      await put({ subject: 'you' }, 'fact', { key: 'a' });
      return all;
    };
    const everything: readonly Kind[] = ['fact', 'history', 'audit', 'cache', 'pack', 'activity'];

    test.each([
      { what: 'everything', selection: { kinds: everything }, deleted: 8, left: [] },
      { what: 'all facts', selection: { kinds: ['fact'] as const }, deleted: 3, left: [] },
      { what: 'one key, to the letter', selection: { kinds: ['fact'] as const, key: 'a' }, deleted: 1, left: ['A', 'ab'] },
      { what: 'a key nobody has', selection: { kinds: ['fact'] as const, key: 'nobody' }, deleted: 0, left: ['a', 'A', 'ab'] },
      { what: 'a category', selection: { kinds: ['fact'] as const, category: 'x' }, deleted: 2, left: ['ab'] },
      {
        what: 'what matches',
        selection: { kinds: ['fact'] as const, matches: ({ key }: Entry) => key.startsWith('a') },
        deleted: 2,
        left: ['A'],
      },
      {
        what: 'audit rows of a category',
        selection: { kinds: ['audit'] as const, category: 'pack_history' },
        deleted: 1,
        left: ['a', 'A', 'ab'],
      },
      { what: 'one session', selection: { kinds: ['pack'] as const, session: 's' }, deleted: 1, left: ['a', 'A', 'ab'] },
    ])(
      '$what: exactly these entries are counted and deleted for good (R-FORGET-07, R-FORGET-10, R-FORGET-12)',
      async ({ selection, deleted, left }) => {
        const { store, facts } = await filled();
        // A count changes nothing (R-FORGET-09).
        for (let turn = 0; turn < 3; turn += 1) expect(await store.countMatching('me', selection)).toBe(deleted);
        expect(await store.forget('me', selection)).toMatchObject({
          deleted,
          purged: purges,
          ...(!purges && { reason: 'database_copies' }),
        });
        expect(await store.countMatching('me', selection)).toBe(0);
        expect((await facts.page({ sort: 'updated', limit: 10 })).entries.map(({ key }) => key)).toEqual(left);
        // Other subjects lost nothing.
        expect(await store.space({ subject: 'you' }, 'fact').count()).toBe(1);
      },
    );

    test('a forgotten fact loses its history (R-FORGET-12, R-HIST-02)', async () => {
      const { store, facts } = await filled();
      expect(await facts.history('a')).toHaveLength(1);
      await store.forget('me', { kinds: ['fact'], key: 'a' });
      expect((await facts.put(aDraft({ key: 'a' }))).status).toBe('created');
      expect(await facts.history('a')).toEqual([]);
    });

    test('a forget includes the sessions of the subject, and no similar name (R-ISO-03)', async () => {
      const { store } = await opened();
      const namespaces: Namespace[] = [{ subject: 'a' }, { subject: 'a', session: 'b' }, { subject: 'a:b' }, { subject: 'ab' }];
      for (const namespace of namespaces) await store.space(namespace, 'fact').put(aDraft());
      expect((await store.forget('a', { kinds: everything })).deleted).toBe(2);
      expect((await store.namespaces()).map(({ namespace }) => namespace)).toEqual([{ subject: 'a:b' }, { subject: 'ab' }]);
    });
  });

  describe(`${name}: quotas (R-FACT-16)`, () => {
    const tooMuch = { code: 'quota_exceeded' };
    const put = (space: Space, key: string, over: Partial<EntryDraft> = {}) => space.put(aDraft({ key, ...over }));

    test('limit the facts of a subject with its sessions, and do not affect others', async () => {
      const { store, facts } = await opened({ facts: 3 });
      const session = store.space({ subject: 'me', session: 's' }, 'fact');
      await put(facts, 'a');
      await put(session, 'b');
      await put(facts, 'c');
      await expect(put(facts, 'd')).rejects.toMatchObject({
        ...tooMuch,
        message: expect.stringMatching(/3 facts.*Forget/) as string,
      });
      await expect(put(session, 'd')).rejects.toMatchObject(tooMuch);
      // A new version is not a new fact, and other kinds do not count.
      expect((await put(facts, 'a', { value: 'newer' })).status).toBe('updated');
      await put(store.space(me, 'pack'), 'p');
      await put(store.space({ subject: 'me:s' }, 'fact'), 'a');
      await put(store.space({ subject: 'you' }, 'fact'), 'a');
      expect([await facts.count(), await session.count()]).toEqual([2, 1]);
    });

    test("and how much of that is used, without what has expired or is another's", async () => {
      const { store, facts, clock } = await opened({ facts: 3 });
      expect(await store.usage('me')).toEqual({ used: { facts: 0, bytes: 0 }, most: { ...QUOTA, facts: 3 } });
      await put(facts, 'a');
      const one = (await store.usage('me')).used;
      await put(facts, 'b', { lifetime: HOUR });
      await put(store.space({ subject: 'you' }, 'fact'), 'c');
      await put(store.space(me, 'pack'), 'd');
      const { used } = await store.usage('me');
      expect(used.facts).toBe(2);
      expect(used.bytes).toBeGreaterThan(one.bytes);
      await clock.advance(HOUR);
      expect((await store.usage('me')).used).toEqual(one);
    });

    test('a refused write leaves nothing, not even its note', async () => {
      const { store, facts } = await opened({ facts: 1 });
      await facts.put(aDraft({ key: 'a' }), aNote('1'));
      await expect(facts.put(aDraft({ key: 'b' }), aNote('2'))).rejects.toMatchObject(tooMuch);
      expect(await facts.get('b')).toBeUndefined();
      expect(await facts.count()).toBe(1);
      const { entries } = await store.space(me, 'activity').page({ sort: 'updated', limit: 10 });
      expect(entries.map(({ key }) => key)).toEqual(['1']);
    });

    test('of many concurrent writes as many are accepted as fit', async () => {
      const { store, facts } = await opened({ facts: 37 });
      for (let index = 0; index < 32; index += 1) await put(facts, `before ${index}`);
      const others = store.space({ subject: 'you' }, 'fact');
      const writers = Array.from({ length: 32 }, (_, index) => index);
      const outcomes = await Promise.allSettled(
        writers.flatMap((index) => [
          facts.put(
            aDraft({ key: `at once ${index}`, author: { ...anAuthor, client: `client ${index % 7}` } }),
            aNote(`note ${index}`),
          ),
          put(others, `theirs ${index}`),
        ]),
      );
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(5 + 32);
      expect(await facts.count()).toBe(37);
      expect(await store.space(me, 'activity').count()).toBe(5);
      expect(await others.count()).toBe(32);
    });

    test('expired entries do not count, even before a sweep', async () => {
      const { facts, clock } = await opened({ facts: 2 });
      await put(facts, 'short', { lifetime: HOUR });
      await put(facts, 'long');
      clock.jump(HOUR - 1);
      await expect(put(facts, 'new')).rejects.toMatchObject(tooMuch);
      clock.jump(1);
      await put(facts, 'new');
      await expect(put(facts, 'short')).rejects.toMatchObject(tooMuch);
      expect(await facts.count()).toBe(2);
    });

    test('nor do their bytes and versions', async () => {
      const { facts, clock } = await opened({ bytes: 10_000 });
      const big = 'v'.repeat(4000);
      await put(facts, 'short', { value: big, lifetime: 2 * HOUR });
      await put(facts, 'short', { value: `${big}.`, lifetime: HOUR });
      await expect(put(facts, 'new', { value: big })).rejects.toMatchObject(tooMuch);
      clock.jump(HOUR);
      await put(facts, 'new', { value: big });
      await put(facts, 'newer', { value: big });
      await expect(put(facts, 'newest', { value: big })).rejects.toMatchObject(tooMuch);
    });

    test('in a full memory facts can be renewed and forgotten, and a forget makes room', async () => {
      const { store, facts, clock } = await opened({ facts: 2 });
      await put(facts, 'a');
      await put(facts, 'b');
      await clock.advance(MINUTE);
      expect((await put(facts, 'a')).status).toBe('unchanged');
      expect((await facts.change('b', { lifetime: DAY, author: anAuthor }))?.expiresAt).toBe(START + MINUTE + DAY);
      await expect(put(facts, 'c')).rejects.toMatchObject(tooMuch);
      await store.forget('me', { kinds: ['fact'], key: 'a' });
      await put(facts, 'c');
      expect(await facts.count()).toBe(2);
    });

    test('limit the bytes, versions included', async () => {
      const { store, facts } = await opened({ bytes: 20_000 });
      const valueOf = (turn: number): string => `${turn}`.padEnd(4000, 'v');
      let turn = 0;
      for (; turn < 9; turn += 1) {
        const full = await put(facts, 'a', { value: valueOf(turn) }).catch((error: unknown) => error);
        if (full instanceof Error) break;
      }
      expect(turn).toBe(4);
      await expect(put(facts, 'a', { value: valueOf(turn) })).rejects.toMatchObject({
        ...tooMuch,
        message: expect.stringMatching(/bytes.*Forget/) as string,
      });
      await expect(facts.change('a', { category: 'other', author: anAuthor })).rejects.toMatchObject(tooMuch);
      expect(await facts.get('a')).toMatchObject({ value: valueOf(3), category: 'preferences' });
      expect(await facts.history('a')).toHaveLength(3);
      expect((await put(facts, 'a', { value: valueOf(3) })).status).toBe('unchanged');
      expect(await facts.change('a', { lifetime: DAY, author: anAuthor })).toBeDefined();
      // Smaller writes are accepted, and after a forget all are.
      await put(facts, 'small', { value: 'v' });
      await store.forget('me', { kinds: ['fact'], key: 'a' });
      await put(facts, 'b', { value: 'v'.repeat(15_000) });
    });

    test(`limit packs to ${PACK.memory} entries with their sessions, apart from facts (R-PACK-28)`, async () => {
      const { store, facts } = await opened({ facts: 1 });
      const [own, session] = [store.space(me, 'pack'), store.space({ ...me, session: 's' }, 'pack')];
      for (let from = 0; from < PACK.memory; from += 1000) {
        await Promise.all(Array.from({ length: 1000 }, (_, more) => put(more % 2 ? own : session, `${from + more}`)));
      }
      for (const space of [own, session]) await expect(put(space, 'one more')).rejects.toMatchObject(tooMuch);
      expect((await put(own, '1', { value: 'newer' })).status).toBe('updated');
      await put(facts, 'a');
      await put(store.space({ subject: 'you' }, 'pack'), 'a');
      await store.forget('me', { kinds: ['pack'], session: 's' });
      await put(own, 'one more');
    });

    test('limit the bytes of packs as those of facts, without expired entries', async () => {
      const { store, facts, clock } = await opened({ bytes: 10_000 });
      const [own, big] = [store.space(me, 'pack'), 'v'.repeat(4000)];
      await put(own, 'a', { value: big, lifetime: HOUR });
      await put(own, 'b', { value: big });
      await expect(put(own, 'c', { value: big })).rejects.toMatchObject(tooMuch);
      await put(facts, 'a', { value: big });
      await put(facts, 'b', { value: big });
      clock.jump(HOUR);
      await put(own, 'c', { value: big });
      expect((await put(own, 'c', { value: 'small' })).status).toBe('updated');
    });

    test('an undo works in a full memory and takes no more room', async () => {
      const { store, facts, clock } = await opened({ bytes: 20_000 });
      const [good, bad] = ['g'.repeat(4000), 'b'.repeat(4000)];
      await put(facts, 'a', { value: good });
      await clock.advance(MINUTE);
      const vandal = { ...anAuthor, client: 'vandal' };
      await put(facts, 'a', { value: bad, author: vandal });
      for (const key of ['x', 'y']) await put(facts, key, { value: bad, author: vandal });
      await expect(put(facts, 'z', { value: good })).rejects.toMatchObject(tooMuch);
      const unwanted = { client: 'vandal', since: START + MINUTE };
      expect(await facts.revert('a', unwanted, aNote('1'))).toMatchObject({ what: 'restored' });
      expect((await facts.get('a'))?.value).toBe(good);
      expect((await facts.history('a')).map(({ value }) => value)).toEqual([bad]);
      await expect(put(facts, 'z', { value: good })).rejects.toMatchObject(tooMuch);
      expect(await facts.revert('a', unwanted, aNote('2'))).toMatchObject({ what: 'untouched' });
      expect(await facts.revert('x', unwanted, aNote('3'))).toMatchObject({ what: 'removed' });
      await put(facts, 'z', { value: good });
      expect(await store.space(me, 'activity').count()).toBe(2);
    });
  });

  describe(`${name}: the table of contents (R-VIEW-01)`, () => {
    const most = { categories: 50, keys: 5 };

    test('lists categories A to Z with counts and newest keys, and no values', async () => {
      const { facts, clock } = await opened();
      expect(await facts.overview(most)).toEqual({ categories: [], more: 0 });
      for (const [index, key] of ['b1', 'a1', 'b2', 'b3', 'c1'].entries()) {
        await facts.put(aDraft({ key, category: key.slice(0, 1), value: `secret ${index}` }));
        await clock.advance(1);
      }
      await facts.put(aDraft({ key: 'b1', category: 'b', value: 'secret, newer' }));
      const shown = await facts.overview(most);
      expect(shown).toEqual({
        categories: [
          { name: 'a', count: 1, recent: ['a1'] },
          { name: 'b', count: 3, recent: ['b1', 'b3', 'b2'] },
          { name: 'c', count: 1, recent: ['c1'] },
        ],
        more: 0,
      });
      expect(JSON.stringify(shown)).not.toContain('secret');
      expect(await facts.overview({ categories: 2, keys: 1 })).toEqual({
        categories: [
          { name: 'a', count: 1, recent: ['a1'] },
          { name: 'b', count: 3, recent: ['b1'] },
        ],
        more: 1,
      });
      expect(await facts.overview({ categories: 1, keys: 0 })).toEqual({
        categories: [{ name: 'a', count: 1, recent: [] }],
        more: 2,
      });
    });

    test('is correct after every kind of change', async () => {
      const { store, facts } = await opened();
      const told = async (): Promise<string> => {
        const { categories } = await facts.overview(most);
        return categories.map(({ name: category, count, recent }) => `${category} ${count}: ${recent.join(' ')}`).join('; ');
      };
      for (const key of ['1', '2', '3', '4', '5', '6']) await facts.put(aDraft({ key, category: 'x' }));
      expect(await told()).toBe('x 6: 6 5 4 3 2');
      await facts.change('1', { category: 'y', author: anAuthor });
      expect(await told()).toBe('x 5: 6 5 4 3 2; y 1: 1');
      await store.forget('me', { kinds: ['fact'], key: '5' });
      expect(await told()).toBe('x 4: 6 4 3 2; y 1: 1');
      // The category was empty in between, so the cache must not be used.
      await store.forget('me', { kinds: ['fact'], category: 'y' });
      await facts.put(aDraft({ key: '7', category: 'y' }));
      expect(await told()).toBe('x 4: 6 4 3 2; y 1: 7');
      await facts.revert('7', { client: anAuthor.client, since: START }, aNote('undo'));
      expect(await told()).toBe('x 4: 6 4 3 2');
      await store.forget('me', { kinds: ['fact'] });
      expect(await told()).toBe('');
    });

    test('is correct at the moment an entry expires, before any sweep', async () => {
      const { store, facts, clock } = await opened();
      for (const key of ['a', 'b', 'c']) {
        await facts.put(aDraft({ key, category: key === 'c' ? 'y' : 'x', lifetime: key === 'a' ? DAY : HOUR }));
      }
      clock.jump(HOUR - 1);
      expect((await facts.overview(most)).categories.map(({ count }) => count)).toEqual([2, 1]);
      clock.jump(1);
      const after = { categories: [{ name: 'x', count: 1, recent: ['a'] }], more: 0 };
      expect(await facts.overview(most)).toEqual(after);
      await store.sweep(100);
      expect(await facts.overview(most)).toEqual(after);
    });

    test('follows a clock that jumps forward and is corrected (R-TIME-03)', async () => {
      const { facts, clock } = await opened();
      await facts.put(aDraft({ key: 'a', category: 'x', lifetime: DAY }));
      await facts.put(aDraft({ key: 'b', category: 'x', lifetime: 300 * DAY }));
      const all = { categories: [{ name: 'x', count: 2, recent: ['b', 'a'] }], more: 0 };
      expect(await facts.overview(most)).toEqual(all);
      for (let turn = 0; turn < 2; turn += 1) {
        clock.jump(100 * DAY);
        expect(await facts.overview(most)).toEqual({ categories: [{ name: 'x', count: 1, recent: ['b'] }], more: 0 });
        clock.jump(-100 * DAY);
        expect(await facts.overview(most)).toEqual(all);
      }
      clock.jump(320 * DAY);
      expect(await facts.overview(most)).toEqual({ categories: [], more: 0 });
    });

    test('of one namespace and one kind (R-ISO-01, R-STORE-02)', async () => {
      const { store, facts } = await opened();
      await facts.put(aDraft({ key: 'mine', category: 'x' }));
      await store.space(me, 'pack').put(aDraft({ key: 'of a pack', category: 'x' }));
      await store.space({ subject: 'me', session: 's' }, 'fact').put(aDraft({ key: 'of a session', category: 'x' }));
      await store.space({ subject: 'you' }, 'fact').put(aDraft({ key: 'yours', category: 'x' }));
      const recent = async (space: Space) => (await space.overview(most)).categories.flatMap((category) => category.recent);
      expect(await recent(facts)).toEqual(['mine']);
      expect(await recent(store.space(me, 'pack'))).toEqual(['of a pack']);
      expect(await recent(store.space({ subject: 'me', session: 's' }, 'fact'))).toEqual(['of a session']);
      expect(await recent(store.space(me, 'audit'))).toEqual([]);
    });

    test('cannot be read once the memory is locked, and is the same when it is unlocked', async () => {
      const { store, facts } = await opened();
      if (!isDurable) return;
      await facts.put(aDraft());
      const before = await facts.overview(most);
      store.lock();
      await expect(facts.overview(most)).rejects.toMatchObject({ code: 'key_unavailable' });
      await store.unlock();
      expect(await facts.overview(most)).toEqual(before);
    });
  });

  describe(`${name}: undo of a client's writes`, () => {
    const vandal = { ...anAuthor, client: 'vandal' };
    const later = START + HOUR;
    const unwanted = { client: 'vandal', since: later };

    const vandalised = async (): Promise<Opened> => {
      const all = await opened();
      const { facts, clock } = all;
      const put = (key: string, value: string, over: Partial<EntryDraft> = {}) => facts.put(aDraft({ key, value, ...over }));
      await put('changed', 'good', { lifetime: 10 * DAY });
      await put('kept', 'good');
      await put('answered', 'good');
      await put('own', 'before', { author: vandal });
      await clock.advance(HOUR);
      await put('made', 'bad', { author: vandal });
      await put('changed', 'bad', { author: vandal });
      await put('changed', 'worse', { author: vandal, category: 'other', tags: [] });
      await put('answered', 'bad', { author: vandal });
      await put('own', 'bad', { author: vandal });
      await clock.advance(HOUR);
      await put('answered', 'good again');
      return all;
    };

    test('removes created facts, restores changed ones, and keeps those last written by others', async () => {
      const { facts } = await vandalised();
      const before = (await facts.history('changed')).at(-1);
      for (const [key, what] of Object.entries({
        made: 'removed',
        changed: 'restored',
        own: 'restored',
        kept: 'untouched',
        answered: 'untouched',
        nothing: 'untouched',
      })) {
        // Without a note nothing changes.
        for (let turn = 0; turn < 2; turn += 1) expect(await facts.revert(key, unwanted)).toMatchObject({ what });
        expect(await facts.revert(key, unwanted, aNote(`undo ${key}`)), key).toMatchObject({ what });
      }
      expect(await facts.get('made')).toBeUndefined();
      expect(await facts.get('changed')).toEqual({
        ...before,
        author: { ...anAuthor, origin: 'undo' },
        updatedAt: START + 2 * HOUR,
      });
      expect(before).toMatchObject({ value: 'good', author: anAuthor, expiresAt: START + 10 * DAY });
      expect((await facts.history('changed')).map(({ value }) => value)).toEqual(['worse', 'bad', 'good']);
      expect((await facts.get('answered'))?.value).toBe('good again');
      expect((await facts.get('own'))?.value).toBe('before');
      // A second undo finds nothing.
      for (const key of ['made', 'changed', 'own', 'kept', 'answered']) {
        expect(await facts.revert(key, unwanted, aNote(`again ${key}`)), key).toMatchObject({ what: 'untouched' });
      }
      expect(await facts.history('changed')).toHaveLength(3);
    });

    test('each change leaves its note in the same commit (R-VIEW-05)', async () => {
      const { store, facts } = await vandalised();
      for (const key of ['made', 'changed', 'own', 'kept', 'nothing']) await facts.revert(key, unwanted, aNote(key));
      const { entries } = await store.space(me, 'activity').page({ sort: 'oldest', limit: 10 });
      expect(entries.map(({ key }) => key)).toEqual(['made', 'changed', 'own']);
    });

    test('a fact whose earlier version is gone stays, and is reported', async () => {
      const { facts, clock } = await opened();
      await facts.put(aDraft({ key: 'expired', value: 'good', lifetime: 2 * HOUR }));
      await clock.advance(HOUR);
      await facts.put(aDraft({ key: 'expired', value: 'bad', author: vandal }));
      for (let turn = 0; turn <= HISTORY_VERSIONS; turn += 1) {
        await facts.put(aDraft({ key: 'made', value: `bad ${turn}`, author: vandal, lifetime: turn === 0 ? HOUR : DAY }));
      }
      clock.jump(HOUR);
      for (const key of ['expired', 'made']) {
        expect(await facts.revert(key, unwanted), key).toMatchObject({ what: 'skipped' });
        expect(await facts.revert(key, unwanted, aNote(key)), key).toMatchObject({ what: 'skipped' });
        expect((await facts.get(key))?.value).toMatch('bad');
      }
    });

    test('a fact that was forgotten and stored again was created by the later client', async () => {
      const { store, facts, clock } = await opened();
      for (const key of ['forgotten', 'expired']) await facts.put(aDraft({ key, value: 'good', lifetime: HOUR }));
      await store.forget('me', { kinds: ['fact'], key: 'forgotten' });
      clock.jump(HOUR);
      for (const key of ['forgotten', 'expired']) await facts.put(aDraft({ key, value: 'bad', author: vandal }));
      for (const key of ['forgotten', 'expired']) {
        expect(await facts.revert(key, unwanted, aNote(key))).toMatchObject({ what: 'removed' });
        expect(await facts.history(key)).toEqual([]);
      }
      expect(await facts.count()).toBe(0);
    });

    test('of one kind in one namespace (R-ISO-01, R-STORE-02)', async () => {
      const { store, facts } = await opened();
      const spaces = [facts, store.space(me, 'pack'), store.space({ subject: 'me', session: 's' }, 'fact')];
      for (const space of spaces) await space.put(aDraft({ author: vandal }));
      expect(await store.space(me, 'pack').revert(aDraft().key, { client: 'vandal', since: START }, aNote('1'))).toMatchObject({
        what: 'removed',
      });
      expect(await Promise.all(spaces.map((space) => space.count()))).toEqual([1, 0, 1]);
    });
  });

  describe(`${name}: notifications of changes (R-OPS-12)`, () => {
    const listening = async (quota: Partial<Quota> = {}) => {
      const all = await opened(quota);
      const told: string[] = [];
      const listener = all.store.onChange(({ namespace, kind }) =>
        told.push(`${namespace.subject}/${namespace.session ?? ''} ${kind}`),
      );
      const heard = async (): Promise<string[]> => {
        for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        return told.splice(0).toSorted();
      };
      return { ...all, listener, heard };
    };

    test('come once a turn for each namespace and kind', async () => {
      const { store, facts, heard } = await listening();
      const session = store.space({ subject: 'me', session: 's' }, 'fact');
      await Promise.all(Array.from({ length: 50 }, (_, index) => facts.put(aDraft({ key: `k${index}` }))));
      await session.put(aDraft());
      await store.space({ subject: 'you' }, 'pack').put(aDraft());
      const all = await heard();
      expect(new Set(all)).toEqual(new Set(['me/ fact', 'me/s fact', 'you/ pack']));
      expect(all.filter((one) => one === 'me/ fact').length).toBeLessThanOrEqual(1);
    });

    test('include the activity kind if there is a note', async () => {
      const { store, facts, heard } = await listening();
      await facts.put(aDraft(), aNote('1'));
      expect(await heard()).toEqual(['me/ activity', 'me/ fact']);
      await facts.change(aDraft().key, { lifetime: DAY, author: anAuthor }, aNote('2'));
      expect(await heard()).toEqual(['me/ activity', 'me/ fact']);
      await store.forget('me', { kinds: ['fact'] }, aNote('3'));
      expect(await heard()).toEqual(['me/ activity', 'me/ fact']);
    });

    test('include a session that was forgotten whole', async () => {
      const { store, heard } = await listening();
      for (const namespace of [{ subject: 'me', session: 's' }, { subject: 'you' }]) {
        await store.space(namespace, 'fact').put(aDraft());
      }
      await heard();
      await store.forget('me', { kinds: ['fact'] });
      const told = await heard();
      expect(told).toContain('me/s fact');
      expect(told).not.toContain('you/ fact');
    });

    test('do not come for writes that failed or changed nothing', async () => {
      const { store, facts, heard } = await listening({ facts: 1 });
      await facts.put(aDraft());
      await heard();
      await expect(facts.put(aDraft({ key: 'b' }), aNote('1'))).rejects.toMatchObject({ code: 'quota_exceeded' });
      await expect(facts.put(aDraft({ lifetime: -1 }), aNote('2'))).rejects.toMatchObject({ code: 'invalid_input' });
      await facts.change('nothing', { lifetime: DAY, author: anAuthor }, aNote('3'));
      await facts.revert(aDraft().key, { client: 'nobody', since: 0 }, aNote('4'));
      await facts.revert(aDraft().key, { client: anAuthor.client, since: 0 });
      await store.forget('me', { kinds: ['fact'], key: 'nothing' }, aNote('5'));
      await store.countMatching('me', { kinds: ['fact'] });
      await facts.get(aDraft().key);
      expect(await heard()).toEqual([]);
    });

    test('come when an entry expires', async () => {
      const { facts, clock, heard } = await listening();
      await facts.put(aDraft({ key: 'a', lifetime: HOUR }));
      await facts.put(aDraft({ key: 'b', lifetime: 2 * HOUR }));
      await heard();
      await clock.advance(HOUR - 1);
      expect(await heard()).toEqual([]);
      await clock.advance(1);
      expect(await heard()).toEqual(['me/ fact']);
      expect(await facts.count()).toBe(1);
    });

    test('come when the change can be read', async () => {
      const { store, facts } = await opened();
      const reading: Promise<number>[] = [];
      store.onChange(() => reading.push(facts.count()));
      await Promise.all([facts.put(aDraft({ key: 'a' })), facts.put(aDraft({ key: 'b' }))]);
      await new Promise((resolve) => setImmediate(resolve));
      expect(await Promise.all(reading)).toEqual([2]);
    });

    test('stop after the listener unsubscribed', async () => {
      const { facts, listener, heard } = await listening();
      await facts.put(aDraft());
      listener[Symbol.dispose]();
      await facts.put(aDraft({ key: 'b' }));
      expect(await heard()).toEqual([]);
    });
  });

  describe(`${name}: notes and concurrent writes`, () => {
    test('a note is stored in the same commit as its write (R-DUR-01)', async () => {
      const { store, facts } = await opened();
      await facts.put(aDraft(), aNote('1'));
      await facts.change(aDraft().key, { category: 'other', author: anAuthor }, aNote('2'));
      await facts.change('nothing here', { category: 'other', author: anAuthor }, aNote('no'));
      await expect(facts.change(aDraft().key, { lifetime: -1, author: anAuthor }, aNote('refused'))).rejects.toMatchObject({
        code: 'invalid_input',
      });
      await expect(facts.put(aDraft({ lifetime: -1 }), aNote('refused'))).rejects.toMatchObject({ code: 'invalid_input' });
      await facts.revert(aDraft().key, { client: 'nobody', since: START }, aNote('untouched'));
      await store.forget('me', { kinds: ['fact'], key: 'nothing here' }, aNote('nothing'));
      await store.forget('me', { kinds: ['fact'], key: aDraft().key }, aNote('3'));
      const { entries } = await store.space(me, 'activity').page({ sort: 'updated', limit: 10 });
      expect(entries.map(({ key }) => key)).toEqual(['3', '2', '1']);
    });

    test('each namespace keeps its newest notes (R-VIEW-05)', async () => {
      const { store, facts } = await opened({ facts: 2 * RECORD_ROWS.activity });
      const others = store.space({ subject: 'you' }, 'fact');
      await others.put(aDraft(), aNote('theirs'));
      const written = RECORD_ROWS.activity + 230;
      for (let from = 0; from < written; from += 1000) {
        const some = Array.from({ length: Math.min(1000, written - from) }, (_, more) => `${from + more}`);
        await Promise.all(some.map((key) => facts.put(aDraft({ key }), aNote(key))));
      }
      const notes = store.space(me, 'activity');
      const count = await notes.count();
      expect(count).toBeGreaterThanOrEqual(RECORD_ROWS.activity);
      // They are evicted in hundreds.
      expect(count).toBeLessThan(RECORD_ROWS.activity + 100);
      const [oldest] = (await notes.page({ sort: 'oldest', limit: 1 })).entries;
      const [newest] = (await notes.page({ sort: 'updated', limit: 1 })).entries;
      expect([oldest?.key, newest?.key]).toEqual([`${written - count}`, `${written - 1}`]);
      expect(await store.space({ subject: 'you' }, 'activity').count()).toBe(1);
    });

    test.each(['audit', 'cache'] as const)(
      'and its newest rows of %s, and publishes the evicted ones (R-PACK-28)',
      async (kind) => {
        const { store } = await opened();
        const here = new Set<number>();
        store.onEntryEvent((change) => {
          if (change.what === 'stored') here.add(change.row);
          if (change.what === 'deleted') here.delete(change.row);
        });
        const [rows, others] = [store.space(me, kind), store.space({ subject: 'you' }, kind)];
        await others.put(aDraft());
        const written = RECORD_ROWS[kind] + 230;
        for (let from = 0; from < written; from += 1000) {
          const some = Array.from({ length: Math.min(1000, written - from) }, (_, more) => `${from + more}`);
          await Promise.all(some.map((key) => rows.put(aDraft({ key }))));
        }
        const count = await rows.count();
        expect(count).toBeGreaterThanOrEqual(RECORD_ROWS[kind]);
        expect(count).toBeLessThan(RECORD_ROWS[kind] + 100);
        const [oldest] = (await rows.page({ sort: 'oldest', limit: 1 })).entries;
        expect(oldest?.key).toBe(`${written - count}`);
        expect(await rows.get('0')).toBeUndefined();
        expect(here.size).toBe(count + 1);
        expect(await others.count()).toBe(1);
      },
    );

    test('a thousand concurrent writes are all stored, and the last write of a key wins (R-ISO-01)', async () => {
      const { facts } = await opened();
      const puts = await Promise.all(
        Array.from({ length: 1000 }, (_, index) => facts.put(aDraft({ key: `k${index % 250}`, value: `value ${index}` }))),
      );
      expect(puts.filter(({ status }) => status === 'created')).toHaveLength(250);
      expect(await facts.count()).toBe(250);
      for (let index = 0; index < 250; index += 1) {
        expect((await facts.get(`k${index}`))?.value).toBe(`value ${750 + index}`);
        expect(await facts.history(`k${index}`)).toHaveLength(3);
      }
    });

    test('a closed store refuses calls with a remedy', async () => {
      const { store, facts } = await opened();
      await store[Symbol.asyncDispose]();
      const closed = { code: 'store_unavailable', message: expect.stringMatching(/start Helmdeck Memory again/) as string };
      await expect(facts.get('a')).rejects.toMatchObject(closed);
      await expect(facts.put(aDraft())).rejects.toMatchObject(closed);
      await expect(facts.count()).rejects.toMatchObject(closed);
      await expect(store.forget('me', { kinds: ['fact'] })).rejects.toMatchObject(closed);
      await expect(store.sweep(1)).rejects.toMatchObject(closed);
    });
  });
}
