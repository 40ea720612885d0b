import { describe, expect, test } from 'vitest';
import { HISTORY_VERSIONS, SUPERSEDED_VERSIONS } from '../../../src/contract/limits.ts';
import type {
  ActivityNote,
  Entry,
  EntryDraft,
  FactWithHistory,
  MemoryStore,
  Quota,
  Space,
} from '../../../src/core/store/store.ts';
import { DAY, HOUR, type ManualClock, START } from '../../support/clock.ts';
import { aDraft, anAuthor } from '../../support/store.ts';

interface Opened {
  readonly store: MemoryStore;
  readonly clock: ManualClock;
  readonly facts: Space;
}

const aNote = (key: string): ActivityNote => aDraft({ key, category: 'activity', value: 'stored', lifetime: 30 * DAY });
const vandal = { ...anAuthor, client: 'vandal' };
const unwanted = { client: 'vandal', since: START + HOUR };
const GRACE = 7 * DAY;

/** Everything about a fact that a caller can see, and its place among facts of the same millisecond. */
const seen = async (facts: Space, key: string): Promise<Pick<FactWithHistory, 'entry' | 'versions' | 'row'> | undefined> => {
  const found = await facts.withHistory(key);
  return found && { entry: found.entry, versions: found.versions, row: found.row };
};
const keysOf = async (facts: Space): Promise<string[]> =>
  (await facts.page({ sort: 'oldest', limit: 200 })).entries.map(({ key }) => key);
const formerOf = ({ value, formerKeys = [] }: Entry): string[] => [value, ...formerKeys.map(({ key }) => key)];

/** The promises of every store about a fact that makes another fact outdated (ADR 0117). */
export function promisesOfSuperseding(name: string, opened: (quota?: Partial<Quota>) => Promise<Opened>): void {
  const put = (facts: Space, key: string, value: string, over: Partial<EntryDraft> = {}) =>
    facts.put(aDraft({ key, value, ...over }), aNote(`${key} ${value}`));

  /** A fact `old` with one earlier version, and an hour later another client's fact `new` that supersedes it. */
  const superseded = async (quota: Partial<Quota> = {}) => {
    const all = await opened(quota);
    const { facts, clock } = all;
    await put(facts, 'old', 'first', { tags: ['t'], lifetime: 20 * DAY });
    await clock.advance(1);
    await put(facts, 'old', 'second', { category: 'habits', lifetime: 30 * DAY });
    await put(facts, 'beside', 'written in the same millisecond');
    const before = await seen(facts, 'old');
    await clock.advance(HOUR);
    const receipt = await put(facts, 'new', 'third', { author: vandal, supersedes: 'old' });
    return { ...all, before, receipt };
  };

  describe(`${name}: a fact that supersedes another`, () => {
    test('moves it with its history to its own history, and nothing finds it any more (R-MEAN-30)', async () => {
      const { facts, store, receipt } = await superseded();
      expect(receipt).toMatchObject({ status: 'created', entry: { key: 'new', value: 'third', createdAt: START + HOUR + 1 } });
      expect(await keysOf(facts)).toEqual(['beside', 'new']);
      expect(await facts.get('old')).toBeUndefined();
      expect(await facts.history('old')).toEqual([]);
      expect(await facts.count()).toBe(2);
      expect((await facts.overview({ categories: 9, keys: 9 })).categories.map(({ name: category }) => category)).toEqual([
        'preferences',
      ]);
      const versions = await facts.history('new');
      expect(versions.map(formerOf)).toEqual([
        ['second', 'old'],
        ['first', 'old'],
      ]);
      expect(versions[0]).toMatchObject({
        key: 'new',
        category: 'habits',
        author: anAuthor,
        updatedAt: START + 1,
        expiresAt: START + 1 + 30 * DAY,
      });
      expect((await store.usage('me')).used.facts).toBe(2);
    });

    test('also if it is stored already, with the same content or another one (R-MEAN-30)', async () => {
      const { facts, clock } = await superseded();
      await clock.advance(1);
      await put(facts, 'other', 'a repetition');
      await clock.advance(HOUR);
      expect(await put(facts, 'new', 'third', { author: vandal, supersedes: 'other' })).toMatchObject({ status: 'updated' });
      await clock.advance(1);
      await put(facts, 'another', 'a repetition');
      expect(await put(facts, 'new', 'fourth', { supersedes: 'another' })).toMatchObject({ status: 'updated' });
      expect((await facts.history('new')).map(formerOf)).toEqual([
        ['a repetition', 'another'],
        ['third'],
        ['a repetition', 'other'],
        ['third'],
        ['second', 'old'],
        ['first', 'old'],
      ]);
    });

    test('is newer than every version of it, and stored in one commit with its note (R-MEAN-30, R-TIME-05)', async () => {
      const { facts, store } = await opened();
      for (let turn = 0; turn < 5; turn += 1) await put(facts, 'old', `${turn}`);
      const last = await facts.get('old');
      const { entry } = await put(facts, 'new', 'v', { supersedes: 'old' });
      expect(entry.updatedAt).toBeGreaterThan(last!.updatedAt);
      expect(entry.createdAt).toBe(entry.updatedAt);
      const { entries } = await store.space({ subject: 'me' }, 'activity').page({ sort: 'updated', limit: 1 });
      expect(entries[0]).toMatchObject({ key: 'new v' });
    });

    test.each([
      { why: 'an unknown key', supersedes: 'nothing', code: 'not_found' },
      { why: 'its own key', supersedes: 'new', code: 'invalid_input' },
      { why: 'a key in another letter case', supersedes: 'OLD', code: 'not_found' },
      { why: 'an expired fact', supersedes: 'expired', code: 'not_found' },
      { why: 'a fact of a session', supersedes: 'private', code: 'not_found' },
      { why: 'a superseded fact', supersedes: 'gone', code: 'not_found' },
    ])('$why: nothing is stored and nothing is moved (R-MEAN-31)', async ({ supersedes, code }) => {
      const { facts, store, clock } = await opened();
      await put(facts, 'expired', 'v', { lifetime: HOUR });
      await put(facts, 'gone', 'v');
      await put(facts, 'old', 'v', { supersedes: 'gone' });
      await store.space({ subject: 'me', session: 's' }, 'fact').put(aDraft({ key: 'private' }));
      clock.jump(HOUR);
      const before = await seen(facts, 'old');
      await expect(put(facts, 'new', 'v', { supersedes })).rejects.toMatchObject({ code });
      expect(await keysOf(facts)).toEqual(['old']);
      expect(await seen(facts, 'old')).toEqual(before);
      expect(await store.space({ subject: 'me', session: 's' }, 'fact').count()).toBe(1);
      const { entries } = await store.space({ subject: 'me' }, 'activity').page({ sort: 'updated', limit: 9 });
      expect(entries.map(({ key }) => key)).not.toContain('new v');
    });

    test('is removed by undo, and the other fact is exactly as before (R-MEAN-32)', async () => {
      const { facts, before } = await superseded();
      for (let turn = 0; turn < 2; turn += 1)
        expect(await facts.revert('new', unwanted)).toEqual({ what: 'removed', returned: ['old'] });
      expect(await facts.revert('new', unwanted, aNote('undo'))).toEqual({ what: 'removed', returned: ['old'] });
      expect(await seen(facts, 'old')).toEqual(before);
      expect(await facts.get('new')).toBeUndefined();
      // The two facts of one millisecond are still in the order of writing (R-STORE-09).
      expect(await keysOf(facts)).toEqual(['old', 'beside']);
      // A fact that is stored later has nothing of it.
      await put(facts, 'new', 'later');
      expect(await facts.history('new')).toEqual([]);
    });

    test('is restored by undo to its earlier version, and gives back only what the undone writes superseded', async () => {
      const { facts, clock } = await opened();
      for (const key of ['a', 'b', 'c']) await put(facts, key, `of ${key}`);
      await put(facts, 'new', 'one', { supersedes: 'a' });
      const b = await seen(facts, 'b');
      await clock.advance(HOUR);
      await put(facts, 'new', 'two', { author: vandal, supersedes: 'b' });
      await clock.advance(1);
      await put(facts, 'new', 'two', { author: vandal, supersedes: 'c' });
      expect(await facts.revert('new', unwanted, aNote('undo'))).toMatchObject({ what: 'restored' });
      expect(await keysOf(facts)).toEqual(['b', 'c', 'new']);
      expect(await seen(facts, 'b')).toEqual(b);
      expect(await facts.get('new')).toMatchObject({ value: 'one', author: { client: anAuthor.client } });
      expect((await facts.history('new')).map(formerOf)).toEqual([['two'], ['two'], ['one'], ['of a', 'a']]);
      // A second undo finds nothing.
      expect(await facts.revert('new', unwanted, aNote('again'))).toEqual({ what: 'untouched', returned: [] });
    });

    test('gives it back although the client stored the same value before (R-MEAN-32)', async () => {
      const { facts, clock } = await opened();
      await put(facts, 'old', 'v');
      await put(facts, 'new', 'same', { author: vandal });
      await clock.advance(HOUR);
      await put(facts, 'new', 'same', { author: vandal, supersedes: 'old' });
      expect(await facts.revert('new', unwanted, aNote('undo'))).toEqual({ what: 'restored', returned: ['old'] });
      expect(await keysOf(facts)).toEqual(['old', 'new']);
    });

    test('gives it back although so many writes followed that no earlier version is left (R-MEAN-32)', async () => {
      const { facts, clock } = await opened();
      await put(facts, 'old', 'v');
      await put(facts, 'new', 'before', { author: vandal, lifetime: 90 * DAY });
      const before = await seen(facts, 'old');
      await clock.advance(HOUR);
      await put(facts, 'new', 'first', { author: vandal, supersedes: 'old' });
      for (let turn = 0; turn <= HISTORY_VERSIONS + 1; turn += 1) {
        await clock.advance(turn);
        await put(facts, 'new', `${turn}`, { author: vandal });
      }
      clock.jump(10 * DAY);
      expect(await facts.revert('new', unwanted, aNote('undo'))).toMatchObject({ returned: ['old'] });
      expect(await seen(facts, 'old')).toEqual(before);
    });

    test('in a chain gives back each fact under its own key (R-MEAN-32)', async () => {
      const { facts, clock } = await opened();
      await put(facts, 'a', 'a1');
      await put(facts, 'a', 'a2');
      const a = await seen(facts, 'a');
      await clock.advance(1);
      await put(facts, 'b', 'b1', { supersedes: 'a' });
      await put(facts, 'b', 'b2');
      const b = await seen(facts, 'b');
      await clock.advance(HOUR);
      await put(facts, 'c', 'c1', { author: vandal, supersedes: 'b' });
      expect((await facts.history('c')).map(formerOf)).toEqual([
        ['b2', 'b'],
        ['b1', 'b'],
        ['a2', 'b', 'a'],
        ['a1', 'b', 'a'],
      ]);
      expect(await facts.revert('c', unwanted, aNote('undo'))).toEqual({ what: 'removed', returned: ['b'] });
      expect(await seen(facts, 'b')).toEqual(b);
      const range = { client: anAuthor.client, since: START + 1 };
      expect(await facts.revert('b', range, aNote('undo b'))).toEqual({ what: 'removed', returned: ['a'] });
      expect(await seen(facts, 'a')).toEqual(a);
    });

    test('does not touch a fact that is stored under the old key later, also when it is undone (R-MEAN-32)', async () => {
      const { facts, clock } = await superseded();
      await clock.advance(HOUR);
      const { entry } = await put(facts, 'old', 'of another matter');
      expect(entry).toMatchObject({ createdAt: entry.updatedAt });
      expect(await facts.history('old')).toEqual([]);
      expect(await facts.revert('new', unwanted, aNote('undo'))).toEqual({ what: 'removed', returned: [] });
      expect(await facts.get('old')).toEqual(entry);
      // Nothing is lost: the versions of the superseded fact are its history.
      expect((await facts.history('old')).map(formerOf)).toEqual([['second'], ['first']]);
    });

    test('gives it back after a forget of the new fact was undone (R-MEAN-32)', async () => {
      const { facts, store, before } = await superseded();
      const held = await facts.withHistory('new');
      await store.forget('me', { kinds: ['fact'], key: 'new' });
      expect(await keysOf(facts)).toEqual(['beside']);
      expect(await facts.restoreForgotten(held!, aNote('restored'))).toBe(true);
      expect((await facts.history('new')).map(formerOf)).toEqual([
        ['second', 'old'],
        ['first', 'old'],
      ]);
      expect(await facts.revert('new', unwanted, aNote('undo'))).toEqual({ what: 'removed', returned: ['old'] });
      expect(await seen(facts, 'old')).toEqual(before);
    });

    test.each([
      { how: 'by its key', selection: { kinds: ['fact'] as const, key: 'c' }, deleted: 3 },
      { how: 'by a match', selection: { kinds: ['fact'] as const, matches: ({ key }: Entry) => key === 'c' }, deleted: 3 },
      { how: 'by its category', selection: { kinds: ['fact'] as const, category: 'preferences' }, deleted: 4 },
      { how: 'with all facts', selection: { kinds: ['fact'] as const }, deleted: 4 },
      { how: 'by the category of the superseded fact', selection: { kinds: ['fact'] as const, category: 'habits' }, deleted: 0 },
      { how: 'by the key of the superseded fact', selection: { kinds: ['fact'] as const, key: 'a' }, deleted: 0 },
    ])('is forgotten $how, and each fact that it superseded is counted once (R-MEAN-33)', async ({ selection, deleted }) => {
      const { facts, store, clock } = await opened();
      await put(facts, 'a', 'a1', { category: 'habits' });
      await put(facts, 'a', 'a2', { category: 'habits' });
      await put(facts, 'ended', 'no longer visible', { lifetime: HOUR });
      await put(facts, 'b', 'b1', { supersedes: 'a', category: 'habits' });
      await put(facts, 'b', 'b2', { supersedes: 'ended', category: 'habits' });
      await put(facts, 'c', 'c1', { supersedes: 'b' });
      await put(facts, 'beside', 'v');
      clock.jump(2 * HOUR);
      for (let turn = 0; turn < 2; turn += 1) expect(await store.countMatching('me', selection)).toBe(deleted);
      expect((await store.forget('me', selection)).deleted).toBe(deleted);
      expect(await store.countMatching('me', selection)).toBe(0);
      expect(await facts.history('c')).toHaveLength(deleted === 0 ? 4 : 0);
    });

    test('keeps the fact of another client for a week, in one step or two (R-MEAN-34, R-HIST-05)', async () => {
      const { facts, clock } = await opened();
      await put(facts, 'old', 'v', { lifetime: 300 * DAY });
      await put(facts, 'new', 'w', { author: vandal, lifetime: 300 * DAY });
      await clock.advance(30 * DAY);
      const end = clock.now() + GRACE;
      const hour = { author: vandal, lifetime: HOUR, grace: GRACE };
      expect((await put(facts, 'new', 'x', { ...hour, supersedes: 'old' })).entry.expiresAt).toBe(end);
      await clock.advance(DAY);
      expect((await put(facts, 'new', 'y', hour)).entry.expiresAt).toBe(end);
      expect((await facts.change('new', hour))?.expiresAt).toBe(end);
      expect((await put(facts, 'third', 'z', { ...hour, supersedes: 'new' })).entry.expiresAt).toBe(end);
      // Its own fact may expire at any time.
      await put(facts, 'own', 'v', { author: vandal });
      expect((await put(facts, 'fourth', 'z', { ...hour, supersedes: 'own' })).entry.expiresAt).toBe(clock.now() + HOUR);
    });

    test('records both expiry times in its note if it shortens the fact of another client (R-MEAN-34)', async () => {
      const { facts, store } = await opened();
      await put(facts, 'old', 'v', { lifetime: 300 * DAY });
      const note: ActivityNote = { ...aNote('noted'), valueFor: (outcome) => JSON.stringify(outcome) };
      await facts.put(aDraft({ key: 'new', author: vandal, lifetime: DAY, grace: GRACE, supersedes: 'old' }), note);
      const { entries } = await store.space({ subject: 'me' }, 'activity').page({ sort: 'updated', limit: 1 });
      expect(JSON.parse(entries[0]!.value)).toMatchObject({ shortened: { from: START + 300 * DAY, to: START + GRACE } });
    });

    test('loses superseded versions at their own expiry, and all of them at its own (R-HIST-02)', async () => {
      const { facts, store, clock } = await superseded();
      clock.jump(21 * DAY);
      expect((await facts.history('new')).map(formerOf)).toEqual([['second', 'old']]);
      clock.jump(10 * DAY);
      expect(await facts.history('new')).toEqual([]);
      // An expired fact is not given back.
      expect(await facts.revert('new', unwanted, aNote('undo'))).toMatchObject({ what: 'removed' });
      expect(await facts.get('old')).toBeUndefined();
      expect((await store.usage('me')).used.facts).toBe(1);
    });

    test(`keeps ${HISTORY_VERSIONS} versions of its own and ${SUPERSEDED_VERSIONS} of superseded facts (R-MEAN-30)`, async () => {
      const { facts, clock } = await opened();
      for (let turn = 0; turn <= HISTORY_VERSIONS; turn += 1) {
        await clock.advance(1);
        for (const key of ['old', 'new']) await put(facts, key, `${turn}`);
      }
      const before = await seen(facts, 'old');
      await clock.advance(HOUR);
      await put(facts, 'new', 'v', { author: vandal, supersedes: 'old' });
      expect((await facts.history('new')).filter(({ formerKeys }) => formerKeys)).toHaveLength(HISTORY_VERSIONS + 1);
      // A loop of writes evicts its own versions, and a loop of superseding writes its own facts.
      for (let turn = 0; turn < 2 * SUPERSEDED_VERSIONS; turn += 1) {
        await put(facts, `own ${turn}`, 'v', { author: vandal });
        await put(facts, 'new', `v ${turn}`, { author: vandal, supersedes: `own ${turn}` });
      }
      const versions = await facts.history('new');
      const others = versions.filter(({ formerKeys }) => formerKeys);
      expect(versions.length - others.length).toBe(HISTORY_VERSIONS);
      expect(others).toHaveLength(SUPERSEDED_VERSIONS);
      expect(others.filter(({ author }) => author.client === anAuthor.client)).toHaveLength(SUPERSEDED_VERSIONS / 2);
      await facts.revert('new', unwanted, aNote('undo'));
      expect((await facts.get('old'))?.value).toBe(before?.entry.value);
    });

    test('counts in the quota, and undo works in a full memory (R-FACT-16)', async () => {
      const { facts, store } = await superseded({ facts: 2 });
      await expect(put(facts, 'one more', 'v')).rejects.toMatchObject({ code: 'quota_exceeded' });
      await put(facts, 'one more', 'v', { supersedes: 'beside' });
      const { used } = await store.usage('me');
      expect(used.facts).toBe(2);
      expect(used.bytes).toBeGreaterThan(0);
      expect(await facts.revert('new', unwanted, aNote('undo'))).toEqual({ what: 'removed', returned: ['old'] });
      const range = { client: anAuthor.client, since: START + HOUR };
      expect(await facts.revert('one more', range, aNote('undo'))).toEqual({ what: 'removed', returned: ['beside'] });
      expect((await keysOf(facts)).toSorted()).toEqual(['beside', 'old']);
      await store.forget('me', { kinds: ['fact'] });
      expect((await store.usage('me')).used).toEqual({ facts: 0, bytes: 0 });
    });

    test('cannot read or move a fact of another subject (R-ISO-01)', async () => {
      const { facts, store } = await opened();
      const theirs = store.space({ subject: 'you' }, 'fact');
      await theirs.put(aDraft({ key: 'old' }));
      await expect(put(facts, 'new', 'v', { supersedes: 'old' })).rejects.toMatchObject({ code: 'not_found' });
      expect(await theirs.count()).toBe(1);
    });
  });
}
