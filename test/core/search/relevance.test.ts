import { describe, expect, test } from 'vitest';
import { baselines, ours } from './relevance/engines.ts';
import { kindsOf, measure } from './relevance/measure.ts';
import { facts, queries } from './relevance/suite.ts';

const engine = ours(facts);
const others = Object.values(baselines).map((over) => over(facts));
const best = (subset: typeof queries, figure: 'ndcg' | 'recall' = 'ndcg'): number =>
  Math.max(...others.map((other) => measure(other, subset)[figure]));

test('the suite is large, has judged results and many kinds of queries, and holds out a third of them', () => {
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
    { which: 'all questions', subset: queries },
    { which: 'the held-out questions', subset: queries.filter(({ held }) => held) },
  ])('by five points of nDCG@10 over $which', ({ subset }) => {
    expect(measure(engine, subset).ndcg).toBeGreaterThanOrEqual(best(subset) + 5);
  });

  test('by five points of recall@5', () => {
    expect(measure(engine, queries).recall).toBeGreaterThanOrEqual(best(queries, 'recall') + 5);
  });

  test.each(kindsOf(queries))('and never more than one point worse for a kind of query: %s', (kind) => {
    const subset = queries.filter((query) => query.kind === kind);
    expect(measure(engine, subset).ndcg).toBeGreaterThanOrEqual(best(subset) - 1);
  });
});
