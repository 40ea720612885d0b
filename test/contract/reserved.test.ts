import { describe, expect, test } from 'vitest';
import { FactInput } from '../../src/contract/fact.ts';
import { RESERVED_CATEGORIES, RESERVED_KEY_PREFIXES } from '../../src/contract/limits.ts';
import { aFact, refusal } from './asking.ts';

const shift = (text: string, by: number) =>
  text.replace(/[a-z]/g, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) - 0x61 + by));

/** Ways to write a reserved name so that a reader or a careless comparison takes it for the name itself. */
const disguises: Record<string, (name: string) => string> = {
  'as it is': (name) => name,
  'in upper case': (name) => name.toUpperCase(),
  'with a capital': (name) => name.replace(/^./, (letter) => letter.toUpperCase()),
  'in mixed case': (name) => name.replace(/[aeiou]/g, (letter) => letter.toUpperCase()),
  'between blanks': (name) => ` \t${name}`,
  'behind a no-break space': (name) => `\u00a0${name}`,
  'behind a byte order mark': (name) => `\ufeff${name}`,
  'in full width': (name) => shift(name, 0xff41).replace('_', '＿'),
  'in bold letters': (name) => shift(name, 0x1d41a),
  'in circled letters': (name) => shift(name, 0x24d0),
  'with a long s': (name) => name.replace('s', 'ſ'),
  'with a dotless i': (name) => name.replace('i', 'ı'),
  'with a zero-width space': (name) => name.replace('_', '\u200b_'),
  'with a zero-width joiner': (name) => name.replace('_', '_\u200d'),
  'with a soft hyphen': (name) => name.replace('_', '\u00ad_'),
  'with a grapheme joiner': (name) => name.replace('_', '\u034f_'),
  'with a Hangul filler': (name) => name.replace('_', '_\u3164'),
  'with an accent': (name) => name.replace('o', 'o\u0301').normalize('NFC'),
  'with a right-to-left override': (name) => `\u202e${name}`,
};

const names = ['pack_history', 'pipeline_history'];
const spellings = names.flatMap((name) => Object.entries(disguises).map(([how, disguise]) => ({ name, how, disguise })));

test('there are twice nineteen spellings', () => {
  expect(spellings).toHaveLength(38);
});

describe('a category that imitates one of the engine (R-FACT-07)', () => {
  test.each([...RESERVED_CATEGORIES])('is refused: %s', (category) => {
    expect(refusal(FactInput, { ...aFact, category })).toMatch(/^category belongs to the engine/);
  });

  test.each(spellings)('is refused: $name $how', ({ name, disguise }) => {
    expect(refusal(FactInput, { ...aFact, category: disguise(name) })).toMatch(/^category /);
  });

  test.each(spellings)('is refused behind one more blank: $name $how', ({ name, disguise }) => {
    expect(refusal(FactInput, { ...aFact, category: `${disguise(name)} ` })).toMatch(/^category /);
  });
});

describe('a key that imitates one of the engine (R-FACT-04)', () => {
  test.each([...RESERVED_KEY_PREFIXES])('is refused: %s', (prefix) => {
    expect(refusal(FactInput, { ...aFact, key: prefix })).toMatch(/^key begins with/);
    expect(refusal(FactInput, { ...aFact, key: `${prefix}x` })).toMatch(/^key begins with/);
  });

  test.each(spellings)('is refused: $name $how', ({ name, disguise }) => {
    expect(refusal(FactInput, { ...aFact, key: `${disguise(name)}/x` })).toMatch(/^key /);
  });

  test.each(names)('is refused with a full-width slash: %s', (name) => {
    expect(refusal(FactInput, { ...aFact, key: `${name}／x` })).toMatch(/^key begins with/);
  });
});
