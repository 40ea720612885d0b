import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FactIndex, WEIGHT_LEVELS } from '../../../src/core/search/fact-index.ts';
import { type ParsedQuery, isOneIdentifier, parseQuery } from '../../../src/core/search/parsed-query.ts';
import { Ranking } from '../../../src/core/search/ranking.ts';

interface Ranked {
  readonly share: number;
  readonly words: number;
  /** The indexes of the words. */
  readonly found: readonly number[];
}

/** Ranks every fact by reading all postings of all words. */
function exhaustive(query: ParsedQuery, facts: FactIndex): Map<number, Ranked> {
  const ranked = new Map<number, Ranked>();
  for (const [word, { alternatives, weight }] of query.words.entries()) {
    const gains = new Map<number, number>();
    for (const { id, weight: factor } of alternatives) {
      const count = facts.readPostings(id, Infinity);
      for (const posting of facts.postings.subarray(0, count)) {
        const number = posting >>> 8;
        const gain = (factor * weight * (posting % WEIGHT_LEVELS)) / (WEIGHT_LEVELS - 1);
        if (facts.isLive(number)) gains.set(number, Math.max(gains.get(number) ?? 0, gain));
      }
    }
    for (const [number, gain] of gains) {
      const { share, words, found } = ranked.get(number) ?? { share: 0, words: 0, found: [] };
      ranked.set(number, { share: share + gain / query.maxWeight, words: words + 1, found: [...found, word] });
    }
  }
  return ranked;
}

/** Words that differ in how many facts contain them, as in a real memory. */
const someWord = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('the', 'of', 'common', 'commons', 'often') },
  { weight: 3, arbitrary: fc.nat(12).map((number) => `word${'abcdefghijklm'.charAt(number)}`) },
  { weight: 2, arbitrary: fc.nat(40).map((number) => `grp${String(number).padStart(4, '0')}`) },
  { weight: 1, arbitrary: fc.tuple(fc.nat(2), fc.nat(3)).map(([major, minor]) => `v${major}.${minor}`) },
);
const someText = (maxLength: number) => fc.array(someWord, { minLength: 1, maxLength }).map((words) => words.join(' '));
const someFacts = fc.array(fc.record({ key: someText(2), value: someText(14) }), { minLength: 1, maxLength: 120 });
/** Facts that are removed after they were added, and added again with another value. */
const someChanges = fc.array(fc.record({ id: fc.nat(119), value: fc.option(someText(6), { nil: undefined }) }), {
  maxLength: 60,
});

function indexOf(
  facts: readonly { key: string; value: string }[],
  changes: readonly { id: number; value?: string | undefined }[],
): FactIndex {
  const index = new FactIndex();
  const add = (id: number, key: string, value: string): void =>
    index.add(id, { key, category: 'c', tags: [], value, updatedAt: id });
  for (const [id, { key, value }] of facts.entries()) add(id, key, value);
  for (const { id, value } of changes) {
    if (value === undefined) index.remove(id);
    else add(id, 'changed', value);
  }
  return index;
}

describe('the ranking that stops early', () => {
  test('finds every fact that the exhaustive ranking puts among the hits, with the same weight', () => {
    fc.assert(
      fc.property(
        someFacts,
        someChanges,
        someText(8),
        fc.integer({ min: 1, max: 12 }),
        fc.boolean(),
        (facts, changes, text, limit, narrowed) => {
          const index = indexOf(facts, changes);
          const query = parseQuery(text, index, { words: 128, narrowed });
          const accepts = (number: number): boolean => !narrowed || number % 3 !== 0;
          const found = new Ranking(index).best(query, accepts, { limit, most: 512, phrases: 512, postings: 100_000, narrowed });
          const all = exhaustive(query, index);
          const expected = [...all]
            .filter(([number]) => accepts(number))
            .toSorted(([, one], [, other]) => other.share - one.share);
          for (const { number, share, words, mask } of found) {
            expect(accepts(number)).toBe(true);
            const known = all.get(number);
            // Words that are in nearly every fact are not looked up.
            expect(Math.abs(share - Math.min(1, known?.share ?? NaN))).toBeLessThan(narrowed ? 1e-5 : 0.008);
            expect(words).toBeGreaterThanOrEqual(known?.words ?? NaN);
            for (const word of known?.found ?? []) expect((mask >>> word) & 1).toBe(1);
          }
          const numbers = new Set(found.map(({ number }) => number));
          const last = expected[limit - 1]?.[1].share ?? 0;
          // A fact with the common words only is left out, unless the filter could exclude the others.
          const least = narrowed ? 0 : 0.06;
          const missing = expected.filter(([number, { share }]) => share >= Math.max(least, 0.9 * last) && !numbers.has(number));
          expect(missing).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('finds a fact that spells the identifiers of the phrase as several words (R-QMD-05)', () => {
    const limit = 5;
    fc.assert(
      fc.property(someFacts, someChanges, someText(4), fc.nat(300), (facts, changes, text, filler) => {
        const index = indexOf(facts, changes);
        const value = `${text.replaceAll('grp', 'grp ').replaceAll(/v(\d)\.(\d)/g, '$1 $2')} ${'filler '.repeat(filler)}`;
        for (let id = 1001; id < 1009; id += 1)
          index.add(id, { key: 'far', category: 'c', tags: [], value: text.replaceAll(' ', ' between '), updatedAt: id });
        index.add(1000, { key: 'apart', category: 'c', tags: [], value, updatedAt: -1 });
        const query = parseQuery(text, index, { words: 128, narrowed: false });
        const found = new Ranking(index).best(query, () => true, {
          limit,
          most: 64,
          phrases: 64,
          postings: 100_000,
          narrowed: false,
        });
        const apart = found.find(({ number }) => index.factAt(number).id === 1000);
        // Facts with the only identifier of a query contain the phrase, too.
        const complete = found.filter(({ words }) => words === query.words.length).length;
        const isEnough = isOneIdentifier(query) && complete >= limit;
        expect(isEnough || (apart?.words ?? 0) >= query.phraseWords).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  test('adds the newest facts with only a common last word after the facts with a rarer word', () => {
    const index = new FactIndex();
    const add = (id: number, value: string): void =>
      index.add(id, { key: `k${id}`, category: 'c', tags: [], value, updatedAt: id });
    for (let id = 0; id < 600; id += 1)
      add(id, id % 200 === 0 ? 'a lantern was bought' : id % 2 === 0 ? 'it was decided' : 'other');
    const query = parseQuery('unheardof lantern decided', index, { words: 128, narrowed: false });
    const extent = { limit: 5, most: 5, phrases: 64, postings: 100_000, narrowed: false };
    const found = new Ranking(index).best(query, () => true, extent).map(({ number }) => index.factAt(number).id);
    expect(found).toEqual([400, 200, 0, 598, 596]);
    const accepted = new Ranking(index).best(query, (number) => number < 500, extent);
    expect(accepted.map(({ number }) => index.factAt(number).id)).toEqual([400, 200, 0, 498, 496]);
  });

  test('keeps a fact that may contain the phrase, even if its weight is low', () => {
    const index = new FactIndex();
    const add = (id: number, value: string): void =>
      index.add(id, { key: `k${id}`, category: 'c', tags: [], value, updatedAt: id });
    add(0, `${'so many words around it '.repeat(60)} the red lantern hangs`);
    for (let id = 1; id < 200; id += 1) add(id, 'a lantern so very red');
    const found = new Ranking(index).best(parseQuery('red lantern', index, { words: 128, narrowed: false }), () => true, {
      limit: 5,
      most: 5,
      phrases: 512,
      postings: 100_000,
      narrowed: false,
    });
    expect(found.at(-1)).toMatchObject({ number: 0, words: 2 });
  });
});
