import { describe, expect, test } from 'vitest';
import { QmdRequest, SearchInput, searchOf } from '../../src/contract/search.ts';
import { refusal } from './asking.ts';

const asked = (question: object) => searchOf(QmdRequest().parse(question));

describe('a QMD question (R-QMD-02)', () => {
  test('may be empty', () => {
    expect(QmdRequest().parse({})).toEqual({ limit: 20 });
  });

  test('may have unknown fields', () => {
    expect(QmdRequest().parse({ query: 'helix', agent: 'x', collection: 'y' })).toEqual({ query: 'helix', limit: 20 });
  });

  test('may have null for omitted fields', () => {
    const fields = ['searches', 'query', 'limit', 'minScore', 'collections', 'candidateLimit', 'intent', 'rerank'];
    expect(Object.keys(QmdRequest().shape)).toEqual(fields);
    expect(QmdRequest().parse(Object.fromEntries(fields.map((field) => [field, null])))).toEqual({ limit: 20 });
  });

  test.each([
    { limit: 1, means: 1 },
    { limit: 100, means: 100 },
    { limit: 101, means: 100 },
    { limit: 1_000_000, means: 100 },
  ])('with the limit $limit gets at most $means hits', ({ limit, means }) => {
    expect(QmdRequest().parse({ limit }).limit).toBe(means);
  });

  test('is truncated, not refused, when it is long', () => {
    expect(QmdRequest().parse({ query: 'a'.repeat(5000) }).query).toHaveLength(1000);
  });

  test.each([
    { why: 'no hits', input: { limit: 0 }, says: /^limit must be a whole number of 1 or more; send/ },
    { why: 'half a hit', input: { limit: 1.5 }, says: /^limit must be a whole number of 1 or more; send/ },
    {
      why: 'a search of another kind',
      input: { searches: [{ type: 'sql', query: 'a' }] },
      says: /^searches\.0\.type must be `lex`, `vec` or `hyde`; send/,
    },
    { why: 'a search without words', input: { searches: [{ type: 'lex' }] }, says: /^searches\.0\.query is missing; send/ },
    {
      why: 'too many searches',
      input: { searches: Array.from({ length: 33 }, () => ({ type: 'lex', query: 'a' })) },
      says: /^searches must have at most 32 items; send/,
    },
    { why: 'a search that is null', input: { searches: [null] }, says: /^searches\.0 must be a JSON object; send/ },
    { why: 'collections in one text', input: { collections: 'a,b' }, says: /^collections must be a list of texts; send/ },
  ])('is refused for $why', ({ input, says }) => {
    expect(refusal(QmdRequest(), input)).toMatch(says);
  });
});

describe('the text searched (R-QMD-03)', () => {
  test.each([
    {
      why: 'all lex searches',
      question: {
        query: 'q',
        searches: [
          { type: 'vec', query: 'v' },
          { type: 'lex', query: 'a' },
          { type: 'lex', query: 'b' },
        ],
      },
      texts: ['a', 'b'],
    },
    {
      why: 'all given, without a lex search',
      question: {
        query: 'q',
        searches: [
          { type: 'vec', query: 'v' },
          { type: 'hyde', query: 'h' },
        ],
      },
      texts: ['v', 'h'],
    },
    {
      why: 'the only lex search',
      question: {
        searches: [
          { type: 'vec', query: 'v' },
          { type: 'lex', query: 'a' },
        ],
      },
      texts: ['a'],
    },
    { why: 'the query, without searches', question: { query: 'q' }, texts: ['q'] },
    { why: 'the query, with an empty list', question: { query: 'q', searches: [] }, texts: ['q'] },
    { why: 'empty for an empty request', question: {}, texts: [''] },
  ])('is $why', ({ question, texts }) => {
    expect(asked(question).texts).toEqual(texts);
  });
});

describe('the meaning searched (R-QMD-03, R-MEAN-41)', () => {
  const [lex, vec, hyde] = [
    { type: 'lex', query: 'a' },
    { type: 'vec', query: 'v' },
    { type: 'hyde', query: 'h' },
  ];

  test.each([
    { why: 'that of the first vec search', question: { searches: [hyde, vec, lex] }, asks: 'v', mode: 'auto' },
    { why: 'that of a hyde search, without a vec search', question: { searches: [lex, hyde] }, asks: 'h', mode: 'auto' },
    { why: 'not compared if there are only lex searches', question: { query: 'q', searches: [lex] }, asks: 'a', mode: 'words' },
    { why: 'that of the query, without searches', question: { query: 'q' }, asks: 'q', mode: 'auto' },
  ])('is $why', ({ question, asks, mode }) => {
    expect(asked(question)).toMatchObject({ question: asks, mode });
  });
});

describe('a search of facts', () => {
  test('finds a category under any spelling that is stored as it (R-FACT-06)', () => {
    expect(SearchInput().parse({ query: 'helix', category: ' Preferences' })).toEqual({
      query: 'helix',
      limit: 20,
      mode: 'auto',
      category: 'preferences',
    });
  });

  test.each([
    { why: 'no query', input: {}, says: /^query is missing; send/ },
    { why: 'a query that is too long', input: { query: 'a'.repeat(1001) }, says: /^query is longer than 1000 characters; send/ },
    { why: 'too many hits', input: { query: 'a', limit: 101 }, says: /^limit must be a whole number from 1 to 100; send/ },
    { why: 'another mode', input: { query: 'a', mode: 'vec' }, says: /^mode must be `auto`, `words` or `meaning`; send/ },
    { why: 'a limit in words', input: { query: 'a', limit: '5' }, says: /^limit must be a whole number from 1 to 100; send/ },
  ])('is refused for $why (R-FACT-11)', ({ input, says }) => {
    expect(refusal(SearchInput(), input)).toMatch(says);
  });
});
