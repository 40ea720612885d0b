import { describe, expect, onTestFinished, test } from 'vitest';
import { HISTORY_VERSIONS } from '../../src/contract/limits.ts';
import type { Draft, Entry, Kind, MemoryStore, Namespace, Space, SpaceKind } from '../../src/core/store.ts';
import { DAY, type HandClock, handClock, HOUR, MINUTE, START } from '../support/clock.ts';
import { aDraft, anAuthor } from '../support/store.ts';

const me: Namespace = { subject: 'me' };

interface Opened {
  readonly store: MemoryStore;
  readonly clock: HandClock;
  readonly facts: Space;
}

/** What every store promises, whatever it keeps its entries in (R-STORE-01). */
export function promisesOfAStore(name: string, open: (clock: HandClock) => Promise<MemoryStore>): void {
  const opened = async (): Promise<Opened> => {
    const clock = handClock();
    const store = await open(clock);
    onTestFinished(() => store[Symbol.asyncDispose]());
    return { store, clock, facts: store.space(me, 'fact') };
  };

  describe(`${name}: the life of an entry`, () => {
    test('what is put can be got, with who made it and when it goes (R-STORE-01)', async () => {
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

    test('a new value replaces the old one and keeps its beginning (R-FACT-14)', async () => {
      const { facts, clock } = await opened();
      await facts.put(aDraft());
      await clock.pass(HOUR);
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

    test('the same said again only lives longer, and stays the word of whoever said it first (R-FACT-15, R-HIST-03)', async () => {
      const { facts, clock } = await opened();
      const first = await facts.put(aDraft());
      await clock.pass(HOUR);
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

    test('a change leaves alone what it does not name (R-HIST-03, R-OPS-04)', async () => {
      const { facts, clock } = await opened();
      const { entry } = await facts.put(aDraft());
      await clock.pass(MINUTE);
      const other = { ...anAuthor, client: 'window' };
      const renewed = await facts.change(entry.key, { lifetime: DAY, author: other });
      expect(renewed).toEqual({ ...entry, expiresAt: START + MINUTE + DAY });
      expect(await facts.history(entry.key)).toEqual([]);

      const moved = await facts.change(entry.key, { category: 'habits', tags: [], author: other });
      expect(moved).toEqual({ ...renewed, category: 'habits', tags: [], author: other, updatedAt: START + MINUTE });
      expect(await facts.history(entry.key)).toEqual([{ ...renewed }]);
      expect(await facts.change('nothing here', { lifetime: DAY, author: other })).toBeUndefined();
    });

    test('only facts have a history (R-HIST-01)', async () => {
      const { store } = await opened();
      const pack = store.space(me, 'pack');
      await pack.put(aDraft({ value: 'one' }));
      await pack.put(aDraft({ value: 'two' }));
      expect(await pack.history(aDraft().key)).toEqual([]);
      expect((await pack.get(aDraft().key))?.value).toBe('two');
    });

    test(`the last ${HISTORY_VERSIONS} earlier versions are kept, newest first (R-HIST-01, R-HIST-02, R-HIST-04)`, async () => {
      const { facts, clock } = await opened();
      for (let turn = 0; turn < HISTORY_VERSIONS + 5; turn += 1) {
        await facts.put(aDraft({ value: `version ${turn}` }));
        await clock.pass(MINUTE);
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

  describe(`${name}: ends of life`, () => {
    test('an entry is gone from every answer at the very moment it expires (R-TIME-01)', async () => {
      const { store, clock, facts } = await opened();
      await facts.put(aDraft({ lifetime: HOUR }));
      await facts.put(aDraft({ lifetime: HOUR, value: 'again' }));
      const { key } = aDraft();
      await clock.pass(HOUR - 1);
      expect(await facts.get(key)).toBeDefined();
      // Set forward by hand: nothing has swept yet.
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

    test.each([0, -1, NaN, 365 * DAY + 1, Infinity])(
      'nothing lives for ever: %d ms are refused (R-TIME-02)',
      async (lifetime) => {
        const { facts } = await opened();
        await expect(facts.put(aDraft({ lifetime }))).rejects.toMatchObject({ code: 'invalid_input' });
        await facts.put(aDraft());
        await expect(facts.change(aDraft().key, { lifetime, author: anAuthor })).rejects.toMatchObject({ code: 'invalid_input' });
        expect((await facts.get(aDraft().key))?.expiresAt).toBe(START + 90 * DAY);
      },
    );

    test('what is put in the place of an expired fact is new, without its history (R-TIME-01, R-HIST-02)', async () => {
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

    test('a version ends when it would have ended (R-HIST-02)', async () => {
      const { clock, facts } = await opened();
      await facts.put(aDraft({ value: 'short', lifetime: HOUR }));
      await facts.put(aDraft({ value: 'long', lifetime: DAY }));
      expect(await facts.history(aDraft().key)).toHaveLength(1);
      await clock.pass(HOUR);
      expect(await facts.history(aDraft().key)).toEqual([]);
      expect(await facts.get(aDraft().key)).toMatchObject({ value: 'long' });
    });

    test('the sweep comes by itself, when something ends (R-PURGE-05)', async () => {
      const { store, clock, facts } = await opened();
      await facts.put(aDraft({ key: 'soon', lifetime: HOUR }));
      await facts.put(aDraft({ key: 'later', lifetime: 2 * HOUR }));
      await clock.pass(HOUR);
      // Nothing is left for a sweep by hand, and it tells when to come again.
      expect(await store.sweep(100)).toEqual({ removed: 0, next: START + 2 * HOUR });
      await clock.pass(HOUR);
      expect(await store.sweep(100)).toEqual({ removed: 0 });
    });

    test('a sweep removes no more than it is asked to (R-PURGE-05)', async () => {
      const { store, clock, facts } = await opened();
      for (let index = 0; index < 5; index += 1) await facts.put(aDraft({ key: `k${index}`, lifetime: HOUR }));
      clock.jump(HOUR);
      const swept = await Promise.all([store.sweep(3), store.sweep(3), store.sweep(3)]);
      expect(swept.map(({ removed }) => removed)).toEqual([3, 2, 0]);
    });

    test('a clock set back prolongs nothing (R-TIME-04)', async () => {
      const { clock, facts } = await opened();
      await facts.put(aDraft({ lifetime: HOUR }));
      clock.jump(-365 * DAY);
      await clock.pass(HOUR - 1);
      expect(await facts.get(aDraft().key)).toBeDefined();
      await clock.pass(1);
      expect(await facts.get(aDraft().key)).toBeUndefined();
      // Nor does time run backwards for what is written.
      expect((await facts.put(aDraft())).entry.createdAt).toBe(START + HOUR);
    });

    test('after a jump forward facts are hidden at once, and back again if the clock is put right (R-TIME-03)', async () => {
      const { store, clock, facts } = await opened();
      await facts.put(aDraft());
      clock.jump(365 * DAY);
      expect(await facts.get(aDraft().key)).toBeUndefined();
      expect(store.status().purge_held_seconds).toBe(3600);
      expect(await store.sweep(100)).toMatchObject({ removed: 0 });
      await clock.pass(HOUR - MINUTE);
      clock.jump(-365 * DAY);
      expect(await facts.get(aDraft().key)).toBeDefined();
      expect(store.status().purge_held_seconds).toBe(0);
    });

    test('what is put over a fact while the clock is in doubt destroys nothing (R-TIME-03)', async () => {
      const { store, clock, facts } = await opened();
      if (!store.upkeep) return;
      await facts.put(aDraft({ value: 'before' }));
      clock.jump(200 * DAY);
      expect((await facts.put(aDraft({ value: 'meanwhile' }))).status).toBe('created');
      expect(await facts.history(aDraft().key)).toEqual([]);
      clock.jump(-200 * DAY);
      expect((await facts.history(aDraft().key)).map(({ value }) => value)).toEqual(['before']);
    });

    test('an hour after the jump the clock is believed, and the bytes go (R-TIME-03)', async () => {
      const { store, clock, facts } = await opened();
      await facts.put(aDraft());
      clock.jump(365 * DAY);
      await store.sweep(100);
      await clock.pass(HOUR);
      expect(store.status().purge_held_seconds).toBe(0);
      clock.jump(-365 * DAY);
      expect(await facts.get(aDraft().key)).toBeUndefined();
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
      await clock.pass(1);
      for (const key of ['d', 'e']) await facts.put(aDraft({ key }));
      await clock.pass(1);
      await facts.put(aDraft({ key: 'a', value: 'newer' }));
      for (const limit of [1, 2, 3, 10]) expect(await walk(facts, { sort: 'updated', limit })).toEqual(['a', 'e', 'd', 'c', 'b']);
    });

    test('soonest end first (R-STORE-09)', async () => {
      const { facts } = await opened();
      for (const [index, key] of ['c', 'a', 'b', 'a2'].entries()) {
        await facts.put(aDraft({ key, lifetime: [3, 1, 2, 1][index]! * HOUR }));
      }
      for (const limit of [1, 2, 10]) expect(await walk(facts, { sort: 'expires', limit })).toEqual(['a', 'a2', 'b', 'c']);
    });

    test('by category, and by what ends before a moment', async () => {
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

    test('a page is right when entries came and went since the one before', async () => {
      const { store, facts } = await opened();
      for (const key of ['a', 'b', 'c', 'd']) await facts.put(aDraft({ key }));
      const first = await facts.page({ sort: 'updated', limit: 2 });
      expect(keys(first.entries)).toEqual(['d', 'c']);
      await store.forget('me', { kinds: ['fact'], key: 'c' });
      await facts.put(aDraft({ key: 'e' }));
      expect(keys((await facts.page({ sort: 'updated', limit: 2, after: first.next! })).entries)).toEqual(['b', 'a']);
    });

    test('nothing was ever kept: an empty page and a zero', async () => {
      const { facts, store } = await opened();
      expect(await facts.page({ sort: 'updated', limit: 10 })).toEqual({ entries: [] });
      expect(await facts.count()).toBe(0);
      expect(await store.namespaces()).toEqual([]);
    });
  });

  describe(`${name}: whose memory, and of what kind`, () => {
    test('no namespace and no kind sees into another (R-ISO-01, R-ISO-03, R-ISO-04, R-STORE-02)', async () => {
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

    test('keys match to the letter, and those of every object are ordinary ones (R-STORE-08, R-ISO-05)', async () => {
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

    test('values come back to the letter, of any size', async () => {
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
      const put = (namespace: Namespace, kind: SpaceKind, over: Partial<Draft>) => store.space(namespace, kind).put(aDraft(over));
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
      '$what: exactly that goes, is counted and does not come back (R-FORGET-07, R-FORGET-10, R-FORGET-12)',
      async ({ selection, deleted, left }) => {
        const { store, facts } = await filled();
        // Counting changes nothing, however often (R-FORGET-09).
        for (let turn = 0; turn < 3; turn += 1) expect(await store.countMatching('me', selection)).toBe(deleted);
        expect(await store.forget('me', selection)).toMatchObject({ deleted, purged: true });
        expect(await store.countMatching('me', selection)).toBe(0);
        expect((await facts.page({ sort: 'updated', limit: 10 })).entries.map(({ key }) => key)).toEqual(left);
        // Nobody else lost anything.
        expect(await store.space({ subject: 'you' }, 'fact').count()).toBe(1);
      },
    );

    test('a forgotten fact takes its history along: stored again, it has none (R-FORGET-12, R-HIST-02)', async () => {
      const { store, facts } = await filled();
      expect(await facts.history('a')).toHaveLength(1);
      await store.forget('me', { kinds: ['fact'], key: 'a' });
      expect((await facts.put(aDraft({ key: 'a' }))).status).toBe('created');
      expect(await facts.history('a')).toEqual([]);
    });

    test('a subject is forgotten with its sessions, and nobody with a similar name (R-ISO-03)', async () => {
      const { store } = await opened();
      const namespaces: Namespace[] = [{ subject: 'a' }, { subject: 'a', session: 'b' }, { subject: 'a:b' }, { subject: 'ab' }];
      for (const namespace of namespaces) await store.space(namespace, 'fact').put(aDraft());
      expect((await store.forget('a', { kinds: everything })).deleted).toBe(2);
      expect((await store.namespaces()).map(({ namespace }) => namespace)).toEqual([{ subject: 'a:b' }, { subject: 'ab' }]);
    });
  });

  describe(`${name}: notes and many at once`, () => {
    test('a note is kept in the same commit as what it tells of (R-DUR-01)', async () => {
      const { store, facts } = await opened();
      const note = (key: string): Draft => aDraft({ key, category: 'activity', value: 'stored', lifetime: 30 * DAY });
      await facts.put(aDraft(), note('1'));
      await facts.change(aDraft().key, { category: 'other', author: anAuthor }, note('2'));
      await facts.change('nothing here', { category: 'other', author: anAuthor }, note('no'));
      await expect(facts.change(aDraft().key, { lifetime: -1, author: anAuthor }, note('refused'))).rejects.toMatchObject({
        code: 'invalid_input',
      });
      await expect(facts.put(aDraft({ lifetime: -1 }), note('refused'))).rejects.toMatchObject({ code: 'invalid_input' });
      await store.forget('me', { kinds: ['fact'], key: aDraft().key }, note('3'));
      const { entries } = await store.space(me, 'activity').page({ sort: 'updated', limit: 10 });
      expect(entries.map(({ key }) => key)).toEqual(['3', '2', '1']);
    });

    test('a thousand writes at once are all there, and the last word on a key holds (R-ISO-01)', async () => {
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

    test('a closed store refuses with a word on what to do', async () => {
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
