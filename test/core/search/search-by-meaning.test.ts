import { describe, expect, test, vi } from 'vitest';
import type { OperationRequest } from '../../../src/contract/operations.ts';
import { Finder } from '../../../src/core/search/finder.ts';
import { HOUR } from '../../support/clock.ts';
import { ChosenMeaning } from '../../support/meaning.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';

const ENTRY = { key: 'office/access', value: 'After-hours entry at HQ is through the loading dock', category: 'office' };
const NIGHTS = { key: 'travel/nights', value: 'The night train to Vienna leaves at ten', category: 'travel' };
const TICKET = { key: 'work/ticket', value: 'The badge reader is tracked in PROJ-1234', category: 'office' };
const QUESTION = 'how do I get into the building at night?';
const cosines = { [ENTRY.key]: 0.55, [NIGHTS.key]: 0.2, [TICKET.key]: 0.3 };

async function openMemory(meaning: ChosenMeaning | undefined, facts = [ENTRY, NIGHTS, TICKET]) {
  const memory = await openTestMemory(meaning ? { meaning } : {});
  meaning?.watch(memory.store);
  const me = memory.as(aCaller());
  for (const fact of facts) {
    await me('remember', fact);
    await memory.clock.advance(1);
  }
  const search = (query: string, more: Partial<OperationRequest<'search'>> = {}) => me('search', { query, ...more });
  return { ...memory, me, search };
}

type Memory = Awaited<ReturnType<typeof openMemory>>;

const keysOf = ({ hits }: { readonly hits: readonly { readonly key: string }[] }): string[] => hits.map(({ key }) => key);

describe('a search by meaning (R-MEAN-40)', () => {
  test('finds a fact that shares no word with the question, and says why', async () => {
    const { search } = await openMemory(new ChosenMeaning({ cosines }));
    const found = await search(QUESTION);
    expect(found).toMatchObject({ meaning: 'complete', hits: [{ key: ENTRY.key, why: 'similar in meaning (0.55)' }, {}, {}] });
    expect(found.hits.find(({ key }) => key === NIGHTS.key)?.why).toBe('"night" in value; similar in meaning (0.20)');
    expect(found.hits[0]?.snippet).toBe(ENTRY.value);
  });

  test('finds only facts that pass the filters (R-SEEK-01)', async () => {
    const { search } = await openMemory(new ChosenMeaning({ cosines }));
    expect(keysOf(await search(QUESTION, { category: 'travel' }))).toEqual([NIGHTS.key]);
    expect(keysOf(await search(QUESTION, { client: 'codex' }))).toEqual([]);
    expect(keysOf(await search(QUESTION, { expiring_within: 3600 }))).toEqual([]);
  });

  test('says that some facts have no vector yet', async () => {
    const { search } = await openMemory(new ChosenMeaning({ cosines: { [ENTRY.key]: 0.55 }, partial: true }));
    const found = await search(QUESTION);
    expect(found.meaning).toBe('partial');
    expect(keysOf(found)).toEqual([ENTRY.key, NIGHTS.key]);
  });

  test('ranks the newer of two facts on one matter first (R-MEAN-42)', async () => {
    const older = { key: 'office/dock', value: 'The building is open at night through the dock', category: 'office' };
    const newer = { key: 'office/side-door', value: 'Use the side door from now on', category: 'office' };
    const meaning = { cosines: { [older.key]: 0.6, [newer.key]: 0.5 } };
    const similar = await openMemory(new ChosenMeaning({ ...meaning, similarity: 0.8 }), [older, newer]);
    expect(keysOf(await similar.search(QUESTION))).toEqual([newer.key, older.key]);
    const different = await openMemory(new ChosenMeaning(meaning), [older, newer]);
    expect(keysOf(await different.search(QUESTION))).toEqual([older.key, newer.key]);
  });

  test('finds facts, but no runs, through a QMD query', async () => {
    const meaning = new ChosenMeaning({ cosines });
    const { me } = await openMemory(meaning);
    const { results } = await me('query', { searches: [{ type: 'vec', query: QUESTION }] });
    expect(results[0]).toMatchObject({ title: ENTRY.key, probability: expect.any(Number) as number });
    expect(meaning.asked).toEqual([QUESTION]);
  });
});

describe('meanings are compared (R-MEAN-41)', () => {
  test.each([
    { why: 'for a question', query: QUESTION, mode: 'auto', asked: [QUESTION] },
    { why: 'not if an identifier is found', query: 'PROJ-1234', mode: 'auto', asked: [] },
    { why: 'not if the phrase is found', query: 'night train to Vienna', mode: 'auto', asked: [] },
    { why: 'not for a blank query', query: ' ', mode: 'meaning', asked: [] },
    { why: 'not by words', query: QUESTION, mode: 'words', asked: [] },
    { why: 'always by meaning', query: 'PROJ-1234', mode: 'meaning', asked: ['PROJ-1234'] },
  ] as const)('$why', async ({ query, mode, asked }) => {
    const meaning = new ChosenMeaning({ cosines });
    const { search } = await openMemory(meaning);
    const found = await search(query, { mode });
    expect(meaning.asked).toEqual(asked);
    expect(found.meaning).toBe(asked.length > 0 ? 'complete' : undefined);
  });

  test('alone by meaning, so that words do not matter', async () => {
    const { search } = await openMemory(new ChosenMeaning({ cosines }));
    const found = await search('PROJ-1234', { mode: 'meaning' });
    expect(keysOf(found)).toEqual([ENTRY.key, TICKET.key, NIGHTS.key]);
  });

  test('by words, with the same answers as without a model', async () => {
    const [on, off] = [await openMemory(new ChosenMeaning({ cosines })), await openMemory(undefined)];
    for (const query of [QUESTION, 'PROJ-1234', 'night', '']) {
      expect(keysOf(await on.search(query, { mode: 'words' }))).toEqual(keysOf(await off.search(query)));
    }
  });
});

describe('words answer if the model does not (R-MEAN-44)', () => {
  const BY_WORDS = { key: NIGHTS.key, why: '"night" in value', meaning: undefined };
  const bestOf = ({ hits, meaning }: Awaited<ReturnType<Memory['search']>>) => ({
    key: hits[0]?.key,
    why: hits[0]?.why,
    meaning,
  });

  test.each(['auto', 'meaning'] as const)('because there is none: %s', async (mode) => {
    expect(bestOf(await (await openMemory(undefined)).search(QUESTION, { mode }))).toEqual(BY_WORDS);
    expect(bestOf(await (await openMemory(new ChosenMeaning())).search(QUESTION, { mode }))).toEqual(BY_WORDS);
  });

  test('because it is off, so that it is not asked', async () => {
    const meaning = new ChosenMeaning({ cosines });
    meaning.isAvailable = false;
    expect(bestOf(await (await openMemory(meaning)).search(QUESTION))).toEqual(BY_WORDS);
    expect(meaning.asked).toEqual([]);
  });

  test('because it fails', async () => {
    const meaning = new ChosenMeaning({ cosines });
    meaning.onQuestion = () => Promise.reject(new Error('The process of the model ended.'));
    expect(bestOf(await (await openMemory(meaning)).search(QUESTION))).toEqual(BY_WORDS);
  });

  test('because it takes too long', async () => {
    const meaning = new ChosenMeaning({ cosines });
    meaning.onQuestion = ({ signal }) => signal?.throwIfAborted();
    using timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(AbortSignal.abort());
    expect(bestOf(await (await openMemory(meaning)).search(QUESTION))).toEqual(BY_WORDS);
    expect(timeout).toHaveBeenCalledOnce();
  });
});

describe('while a search waits for the model (R-MEAN-45)', () => {
  const aPause = () => {
    const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const meaning = new ChosenMeaning({ cosines });
    meaning.onQuestion = () => {
      begun.resolve();
      return end.promise;
    };
    return { meaning, begun: begun.promise, end };
  };

  test('it sees facts that are forgotten, changed, stored or expire', async () => {
    const { meaning, begun, end } = aPause();
    const { search, me, clock } = await openMemory(meaning);
    await me('remember', {
      key: 'office/short',
      value: 'The building opens at night today',
      category: 'office',
      ttl_seconds: 3600,
    });
    const found = search(QUESTION);
    await begun;
    await me('forget', { scope: `key:${ENTRY.key}` });
    await me('remember', { ...NIGHTS, value: 'The sleeper to Vienna leaves at ten' });
    await me('remember', { key: 'office/lights', value: 'The building is dark at night', category: 'office' });
    await clock.advance(2 * HOUR);
    end.resolve();
    expect(keysOf(await found)).toEqual(['office/lights', TICKET.key, NIGHTS.key]);
  });

  test.each([
    { outcome: 'the model answers', settle: (end: PromiseWithResolvers<void>) => end.resolve() },
    { outcome: 'the model fails', settle: (end: PromiseWithResolvers<void>) => end.reject(new Error('The model was released.')) },
  ])('it fails after the memory was locked, and $outcome (R-KEY-04)', async ({ settle }) => {
    const { meaning, begun, end } = aPause();
    const { search, store } = await openMemory(meaning);
    const found = search(QUESTION);
    await begun;
    store.lock();
    settle(end);
    await expect(found).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('other calls of the subject run', async () => {
    const { meaning, begun, end } = aPause();
    const { search } = await openMemory(meaning);
    const found = search(QUESTION);
    await begun;
    expect(keysOf(await search('PROJ-1234'))).toEqual([TICKET.key]);
    end.resolve();
    expect(keysOf(await found)[0]).toBe(ENTRY.key);
  });

  test('it can be cancelled', async () => {
    const meaning = new ChosenMeaning({ cosines });
    const reason = new Error('The client disconnected.');
    const control = new AbortController();
    meaning.onQuestion = ({ signal }) => {
      control.abort(reason);
      signal?.throwIfAborted();
    };
    const { store } = await openMemory(meaning);
    using finder = new Finder(store, { meaning });
    const asked = { texts: [QUESTION], limit: 3, signal: control.signal };
    await expect(finder.find({ subject: 'me' }, asked)).rejects.toBe(reason);
  });

  test('it waits for a turn before it resumes', async () => {
    const meaning = new ChosenMeaning({ cosines });
    const { store } = await openMemory(meaning);
    using finder = new Finder(store, { meaning });
    const turn = Promise.withResolvers<void>();
    const yieldTurn = vi.fn<() => Promise<void>>(() => turn.promise);
    const found = finder.find({ subject: 'me' }, { texts: [QUESTION], limit: 3, yieldTurn });
    await expect.poll(() => yieldTurn.mock.calls.length).toBe(1);
    const early = await Promise.race([found, new Promise((resolve) => setTimeout(resolve, 20, 'it waits'))]);
    expect(early).toBe('it waits');
    turn.resolve();
    expect((await found).found[0]?.fact.key).toBe(ENTRY.key);
  });
});

test('a hit by words alone has a probability too (R-MEAN-43)', async () => {
  const { search } = await openMemory(undefined);
  const [certain] = (await search('PROJ-1234')).hits;
  const [unlikely] = (await search(QUESTION)).hits;
  const [newest] = (await search('')).hits;
  expect(certain?.probability).toBeGreaterThan(0.9);
  expect(unlikely?.probability).toBeLessThan(0.3);
  expect(newest?.probability).toBe(0);
  expect((await search('PROJ-1234', { limit: 1 })).hits[0]?.probability).toBe(certain?.probability);
});
