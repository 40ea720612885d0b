import { describe, expect, test } from 'vitest';
import {
  answerProbabilities,
  byMeaning,
  fuse,
  LIKELY_NEAR,
  nearProbability,
  newerFirst,
} from '../../../src/core/meaning/fuse.ts';

const aFact = (
  name: string,
  evidence: { score?: number; coverage?: number; cosine?: number | undefined; updatedAt?: number } = {},
) => ({
  name,
  category: 'home',
  score: 0,
  coverage: 0,
  updatedAt: 0,
  cosine: 0.1,
  ...evidence,
});
type Fact = ReturnType<typeof aFact>;
const BACKGROUND = 0.05;
const QUESTION = 'how do I get in at night?';
const names = (found: readonly { readonly candidate: { readonly name: string } }[]): string[] =>
  found.map(({ candidate }) => candidate.name);

describe('words and meaning together (R-MEAN-40)', () => {
  test('a fact with most words of the question comes before a fact of similar meaning', () => {
    const found = fuse(QUESTION, [aFact('similar', { cosine: 0.8 }), aFact('words', { score: 0.6, coverage: 0.9 })], BACKGROUND);
    expect(names(found)).toEqual(['words', 'similar']);
  });

  test('a fact of similar meaning comes before a fact with a few words of the question', () => {
    const found = fuse(QUESTION, [aFact('words', { score: 0.4, coverage: 0.3 }), aFact('similar', { cosine: 0.5 })], BACKGROUND);
    expect(names(found)).toEqual(['similar', 'words']);
  });

  test('a fact that is good by both comes first', () => {
    const both = aFact('both', { score: 0.5, coverage: 0.55, cosine: 0.45 });
    const found = fuse(
      QUESTION,
      [aFact('similar', { cosine: 0.5 }), both, aFact('words', { score: 0.5, coverage: 0.6 })],
      BACKGROUND,
    );
    expect(names(found)[0]).toBe('both');
  });

  test('a fact without a vector is found by its words', () => {
    const found = fuse(QUESTION, [aFact('new', { score: 0.5, coverage: 0.5, cosine: undefined })], BACKGROUND);
    expect(names(found)).toEqual(['new']);
  });

  test('a fact without a common word is left out if its meaning is far from the question', () => {
    expect(fuse(QUESTION, [aFact('other', { cosine: 0.12 })], BACKGROUND)).toEqual([]);
    expect(
      byMeaning([aFact('other', { cosine: 0.12 }), aFact('words', { score: 1, coverage: 1, cosine: undefined })], BACKGROUND),
    ).toEqual([]);
  });

  test('cosines are compared with those of unrelated texts, which differ between models', () => {
    const rank = (cosine: number, background: number): number | undefined =>
      fuse(QUESTION, [aFact('one', { cosine })], background)[0]?.score;
    expect(rank(0.62, 0.6)).toBeUndefined();
    expect(rank(0.76, 0.6)).toBeCloseTo(rank(0.4, 0) ?? NaN);
  });

  test('in a script without spaces, fewer common pairs of characters are enough', () => {
    const facts = [aFact('similar', { cosine: 0.6 }), aFact('words', { score: 0.4, coverage: 0.4, cosine: 0.3 })];
    expect(names(fuse('洗衣机的胶圈新的在哪里', facts, BACKGROUND))).toEqual(['words', 'similar']);
    expect(names(fuse(QUESTION, facts, BACKGROUND))).toEqual(['similar', 'words']);
  });

  test('scores are between 0 and 1', () => {
    const facts = [
      aFact('all', { score: 1, coverage: 1, cosine: 1 }),
      aFact('none', { score: 0.01, coverage: 0.01, cosine: -1 }),
    ];
    for (const { score } of [...fuse(QUESTION, facts, BACKGROUND), ...byMeaning(facts, BACKGROUND)]) {
      expect(score).toBeGreaterThanOrEqual(0);
      expect(score).toBeLessThanOrEqual(1);
    }
  });
});

describe('two hits on one matter (R-MEAN-42)', () => {
  const older = aFact('older', { score: 0.6, coverage: 0.7, cosine: 0.6, updatedAt: 1 });
  const newer = aFact('newer', { score: 0.4, coverage: 0.4, cosine: 0.5, updatedAt: 2 });
  const ranked = (similarity: number, one: Fact = older, other: Fact = newer, question = QUESTION): string[] =>
    names(newerFirst(question, fuse(question, [one, other], BACKGROUND), BACKGROUND, () => similarity));

  test('are ordered newest first if they are similar', () => {
    expect(ranked(0.75)).toEqual(['newer', 'older']);
  });

  test.each([
    { why: 'they are not similar', order: () => ranked(0.4) },
    {
      why: 'one of them has no vector',
      order: () => names(newerFirst(QUESTION, fuse(QUESTION, [older, newer], BACKGROUND), BACKGROUND, () => undefined)),
    },
    { why: 'they are in different categories', order: () => ranked(0.75, older, { ...newer, category: 'work' }) },
    {
      why: 'the newer one hardly answers the question',
      order: () => ranked(0.75, older, { ...newer, coverage: 0.1, cosine: 0.2 }),
    },
    { why: 'the question is in another script', order: () => ranked(0.75, older, newer, '故障はいつですか') },
    { why: 'the better one is the newer one', order: () => ranked(0.75, { ...older, updatedAt: 3 }) },
  ])('keep their order if $why', ({ order }) => {
    expect(order()).toEqual(['older', 'newer']);
  });

  test('keep their order if all hits are equally similar, as lines of one conversation are', () => {
    const lines = Array.from({ length: 9 }, (_, index) =>
      aFact(`line ${index}`, { cosine: 0.6 - index / 100, updatedAt: index }),
    );
    const found = fuse(QUESTION, lines, BACKGROUND);
    expect(names(newerFirst(QUESTION, found, BACKGROUND, () => 0.7))).toEqual(names(found));
  });
});

describe('the probability that a hit answers the question (R-MEAN-43)', () => {
  test('is high for the only near hit, and low for one of many', () => {
    const [alone = 0] = answerProbabilities([aFact('a', { cosine: 0.7, coverage: 0.7 }), aFact('b')], BACKGROUND, 300);
    const [oneOfMany = 0] = answerProbabilities([aFact('a', { cosine: 0.4 }), aFact('b', { cosine: 0.39 })], BACKGROUND, 300);
    expect(alone).toBeGreaterThan(0.9);
    expect(oneOfMany).toBeLessThan(0.2);
  });

  test('is lower for a hit with a few words of the question than for a hit with none', () => {
    const [few = 1, none = 0] = answerProbabilities(
      [aFact('few', { cosine: 0.5, coverage: 0.4 }), aFact('none', { cosine: 0.5 })],
      BACKGROUND,
      300,
    );
    expect(few).toBeLessThan(none);
  });

  test('is higher among few facts than among many, within the sizes that were measured', () => {
    const among = (size: number): number => answerProbabilities([aFact('a', { cosine: 0.4 })], BACKGROUND, size)[0] ?? 0;
    expect(among(20)).toBeGreaterThan(among(300) + 0.2);
    expect([among(1), among(1_000_000)]).toEqual([among(15), among(600)]);
  });
});

describe('the probability that a fact repeats or contradicts another', () => {
  test('grows with the cosine', () => {
    expect(nearProbability(0.3, BACKGROUND)).toBeLessThan(0.01);
    expect(nearProbability(0.8, BACKGROUND)).toBeGreaterThan(0.95);
    expect(nearProbability(0.7, BACKGROUND)).toBeGreaterThan(LIKELY_NEAR);
  });
});
