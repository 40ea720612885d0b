import { describe, expect, test } from 'vitest';
import { RESERVED_CATEGORIES, RESERVED_KEY_PREFIXES } from '../../src/contract/categories.ts';
import { FactInput } from '../../src/contract/fact.ts';
import { disguises } from '../support/disguises.ts';
import { aFact, refusal } from './asking.ts';

const names = ['pack_history', 'pipeline_history'];
const spellings = names.flatMap((name) => Object.entries(disguises).map(([how, disguise]) => ({ name, how, disguise })));

test('covers 38 spellings', () => {
  expect(spellings).toHaveLength(38);
});

describe('a category that imitates a reserved one (R-FACT-07)', () => {
  test.each([...RESERVED_CATEGORIES])('is refused: %s', (category) => {
    expect(refusal(FactInput(), { ...aFact, category })).toMatch(/^category is reserved/);
  });

  test.each(spellings)('is refused: $name $how', ({ name, disguise }) => {
    expect(refusal(FactInput(), { ...aFact, category: disguise(name) })).toMatch(/^category /);
  });

  test.each(spellings)('is refused after another space: $name $how', ({ name, disguise }) => {
    expect(refusal(FactInput(), { ...aFact, category: `${disguise(name)} ` })).toMatch(/^category /);
  });
});

describe('a key that imitates a reserved prefix (R-FACT-04)', () => {
  test.each([...RESERVED_KEY_PREFIXES])('is refused: %s', (prefix) => {
    expect(refusal(FactInput(), { ...aFact, key: prefix })).toMatch(/^key begins with/);
    expect(refusal(FactInput(), { ...aFact, key: `${prefix}x` })).toMatch(/^key begins with/);
  });

  test.each(spellings)('is refused: $name $how', ({ name, disguise }) => {
    expect(refusal(FactInput(), { ...aFact, key: `${disguise(name)}/x` })).toMatch(/^key /);
  });

  test.each(names)('is refused with a full-width slash: %s', (name) => {
    expect(refusal(FactInput(), { ...aFact, key: `${name}／x` })).toMatch(/^key begins with/);
  });
});
