import { describe, expect, test } from 'vitest';
import { baselines, ours } from './relevance/engines.ts';
import { kindsOf, measure } from './relevance/measure.ts';
import { facts, queries } from './relevance/suite.ts';

const engine = ours(facts);
const others = Object.values(baselines).map((over) => over(facts));
const best = (asked: typeof queries, figure: 'ndcg' | 'recall' = 'ndcg'): number =>
  Math.max(...others.map((other) => measure(other, asked)[figure]));

test('the suite is large and judged, has many kinds of queries, and a third of it is held out', () => {
  const keys = new Set(facts.map(({ key }) => key));
  expect(keys.size).toBe(facts.length);
  expect(facts.length).toBeGreaterThanOrEqual(400);
  expect(queries.length).toBeGreaterThanOrEqual(150);
  expect(kindsOf(queries).length).toBeGreaterThanOrEqual(6);
  expect(queries.filter(({ held }) => held).length).toBeGreaterThanOrEqual(queries.length * 0.3);
  for (const { relevant } of queries) {
    expect(Object.keys(relevant).length).toBeGreaterThan(0);
    for (const key of Object.keys(relevant)) expect(keys).toContain(key);
  }
});

describe('search is more relevant than the baselines', () => {
  test.each([
    { which: 'all questions', asked: queries },
    { which: 'those held out', asked: queries.filter(({ held }) => held) },
  ])('by five points of nDCG@10 over $which', ({ asked }) => {
    expect(measure(engine, asked).ndcg).toBeGreaterThanOrEqual(best(asked) + 5);
  });

  test('by five points of recall@5', () => {
    expect(measure(engine, queries).recall).toBeGreaterThanOrEqual(best(queries, 'recall') + 5);
  });

  test.each(kindsOf(queries))('and never more than one point worse for a kind of query: %s', (kind) => {
    const asked = queries.filter((query) => query.kind === kind);
    expect(measure(engine, asked).ndcg).toBeGreaterThanOrEqual(best(asked) - 1);
  });
});
