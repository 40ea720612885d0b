import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { FactInput, FactPatch } from '../../src/contract/fact.ts';
import { explainIssue } from '../../src/contract/schema.ts';
import { aFact, refusal } from './asking.ts';

const accepted = (input: object) => FactInput().parse({ ...aFact, ...input });
const refused = (input: object) => refusal(FactInput(), { ...aFact, ...input });

const bold = (length: number) => '\u{1d41a}'.repeat(length);

describe('a key', () => {
  test.each([
    { why: 'is trimmed (R-FACT-01)', key: '  preferences/editor\n', kept: 'preferences/editor' },
    { why: 'may have one byte (R-FACT-01)', key: 'a', kept: 'a' },
    { why: 'may have 512 bytes (R-FACT-01)', key: 'a'.repeat(512), kept: 'a'.repeat(512) },
    { why: 'is measured after trimming (R-FACT-01)', key: ` ${'ü'.repeat(256)} `, kept: 'ü'.repeat(256) },
    { why: 'keeps its letter case', key: 'Projects/README', kept: 'Projects/README' },
    { why: 'may contain composed accents (R-FACT-02)', key: 'caf\u00e9', kept: 'caf\u00e9' },
    { why: 'may contain blanks and emoji (R-FACT-03)', key: 'my notes 🎉', kept: 'my notes 🎉' },
    { why: 'may look like a path, pattern or property', key: '../../%_*\\__proto__', kept: '../../%_*\\__proto__' },
    { why: 'may be named like a prefix without its slash (R-FACT-04)', key: 'pack_history', kept: 'pack_history' },
    { why: 'may contain a reserved prefix further on (R-FACT-04)', key: 'my/pack_history/x', kept: 'my/pack_history/x' },
  ])('$why', ({ key, kept }) => {
    expect(accepted({ key }).key).toBe(kept);
  });

  test.each([
    { why: 'nothing (R-FACT-01)', key: undefined, says: /^key is missing; send/ },
    { why: 'a number (R-FACT-01)', key: 7, says: /^key must be text; send/ },
    { why: 'an empty text (R-FACT-01)', key: '', says: /^key is missing or blank; send/ },
    { why: 'blanks (R-FACT-01)', key: ' \t\n ', says: /^key is missing or blank; send/ },
    { why: '513 bytes (R-FACT-01)', key: 'a'.repeat(513), says: /^key is longer than 512 bytes; shorten/ },
    {
      why: '513 bytes in 257 characters (R-FACT-01)',
      key: `a${'ü'.repeat(256)}`,
      says: /^key is longer than 512 bytes; shorten/,
    },
    {
      why: 'a decomposed accent (R-FACT-02)',
      key: 'cafe\u0301',
      says: /^key is not in .* normalization form C \(NFC\); normalize/,
    },
    { why: 'the Ångström sign (R-FACT-02)', key: '\u212b', says: /^key is not in .* normalization form C \(NFC\); normalize/ },
    { why: 'NUL (R-FACT-03)', key: 'a\0b', says: /^key contains an invisible .* remove it/ },
    { why: 'a line feed (R-FACT-03)', key: 'a\nb', says: /^key contains an invisible .* remove it/ },
    { why: 'a C1 control (R-FACT-03)', key: 'a\u0085', says: /^key contains an invisible .* remove it/ },
    { why: 'a zero-width space (R-FACT-03)', key: 'a\u200bb', says: /^key contains an invisible .* remove it/ },
    { why: 'a right-to-left override (R-FACT-03)', key: 'a\u202eb', says: /^key contains an invisible .* remove it/ },
    { why: 'a soft hyphen (R-FACT-03)', key: 'a\u00adb', says: /^key contains an invisible .* remove it/ },
    { why: 'a tag character (R-FACT-03)', key: 'a\u{e0041}', says: /^key contains an invisible .* remove it/ },
    { why: 'half a surrogate pair (R-FACT-03)', key: 'a\ud800b', says: /^key contains an invisible .* remove it/ },
    { why: 'a line separator (R-FACT-03)', key: 'a\u2028b', says: /^key contains an invisible .* remove it/ },
    { why: 'a paragraph separator (R-FACT-03)', key: 'a\u2029b', says: /^key contains an invisible .* remove it/ },
    {
      why: 'a reserved prefix (R-FACT-04)',
      key: 'plan_history/x',
      says: /^key begins with .*plan_history\/.* choose another/,
    },
  ])('is refused for $why', ({ key, says }) => {
    expect(refused({ key })).toMatch(says);
  });
});

describe('a value (R-FACT-05)', () => {
  test.each([
    { why: 'is trimmed', value: '\n Uses Helix \u00a0', kept: 'Uses Helix' },
    { why: 'may have one byte', value: '0', kept: '0' },
    { why: 'may have 64 KiB', value: 'a'.repeat(65_536), kept: 'a'.repeat(65_536) },
    { why: 'is measured in bytes after trimming', value: ` ${'ü'.repeat(32_768)} `, kept: 'ü'.repeat(32_768) },
    { why: 'keeps lines, controls and decomposed accents', value: 'a\n\0\u200be\u0301', kept: 'a\n\0\u200be\u0301' },
  ])('$why', ({ value, kept }) => {
    expect(accepted({ value }).value).toBe(kept);
  });

  test.each([
    { why: 'nothing', value: undefined, says: /^value is missing; send/ },
    { why: 'null', value: null, says: /^value must be text; send/ },
    { why: 'an object', value: { editor: 'Helix' }, says: /^value must be text; send/ },
    { why: 'blanks', value: ' \n ', says: /^value is missing or blank; send/ },
    { why: '64 KiB and a byte', value: 'a'.repeat(65_537), says: /^value is longer than 64 KiB; store a summary/ },
    {
      why: '64 KiB and a byte in fewer characters',
      value: `a${'ü'.repeat(32_768)}`,
      says: /^value is longer than 64 KiB; store a summary/,
    },
    { why: 'half a surrogate pair', value: 'a\udc00b', says: /^value contains half of a surrogate pair; send/ },
  ])('is refused for $why', ({ value, says }) => {
    expect(refused({ value })).toMatch(says);
  });
});

describe('a category (R-FACT-06)', () => {
  test.each([
    { why: 'is user_facts when absent', category: undefined, kept: 'user_facts' },
    { why: 'is trimmed', category: ' preferences ', kept: 'preferences' },
    { why: 'is stored in lower case', category: 'Preferences', kept: 'preferences' },
    { why: 'is normalized to half width', category: 'ｐｒｅｆｓ', kept: 'prefs' },
    { why: 'is fully case-folded', category: 'Straße', kept: 'strasse' },
    { why: 'may have one character', category: '7', kept: '7' },
    { why: 'may have 64', category: 'a'.repeat(64), kept: 'a'.repeat(64) },
    { why: 'may have 64 of two units each', category: bold(64), kept: 'a'.repeat(64) },
    { why: 'may contain dots, underscores and hyphens', category: '0a_b.c-d', kept: '0a_b.c-d' },
    { why: 'may contain a reserved name', category: 'my_cache', kept: 'my_cache' },
  ])('$why', ({ category, kept }) => {
    expect(accepted({ category }).category).toBe(kept);
  });

  test.each([
    { why: 'null', category: null, says: /^category must be text; send/ },
    { why: 'blanks', category: '  ', says: /^category must have 1 to 64 .* choose/ },
    { why: '65 characters', category: 'a'.repeat(65), says: /^category must have 1 to 64 .* choose/ },
    { why: '65 characters of two units each', category: bold(65), says: /^category must have 1 to 64 .* choose/ },
    { why: 'a space inside', category: 'my prefs', says: /^category must have 1 to 64 .* choose/ },
    { why: 'a leading hyphen', category: '-prefs', says: /^category must have 1 to 64 .* choose/ },
    { why: 'a slash', category: 'a/b', says: /^category must have 1 to 64 .* choose/ },
    { why: 'an accent', category: 'préférences', says: /^category must have 1 to 64 .* choose/ },
    { why: 'another script', category: 'настройки', says: /^category must have 1 to 64 .* choose/ },
    { why: 'a line feed inside', category: 'a\nb', says: /^category must have 1 to 64 .* choose/ },
    { why: 'a reserved name (R-FACT-07)', category: 'cache', says: /^category is reserved; choose another category/ },
  ])('is refused for $why', ({ category, says }) => {
    expect(refused({ category })).toMatch(says);
  });
});

describe('tags (R-FACT-08)', () => {
  test.each([
    { why: 'are empty when absent', tags: undefined, kept: [] },
    { why: 'are trimmed and keep their order', tags: [' b ', 'a'], kept: ['b', 'a'] },
    { why: 'drop duplicates and keep the first', tags: ['b', 'a', ' b', 'a'], kept: ['b', 'a'] },
    { why: 'differ by letter case', tags: ['A', 'a'], kept: ['A', 'a'] },
    {
      why: 'may be 32',
      tags: Array.from({ length: 32 }, (_, n) => `t${n}`),
      kept: Array.from({ length: 32 }, (_, n) => `t${n}`),
    },
    { why: 'may have 64 characters of two units each', tags: ['🎉'.repeat(64)], kept: ['🎉'.repeat(64)] },
  ])('$why', ({ tags, kept }) => {
    expect(accepted({ tags }).tags).toEqual(kept);
  });

  test.each([
    { why: 'a text', tags: 'frontend', says: /^tags must be a list of texts; send/ },
    { why: '33', tags: Array.from({ length: 33 }, (_, n) => `t${n}`), says: /^tags must have at most 32 items; send/ },
    { why: 'a number in the list', tags: ['a', 7], says: /^tags\.1 must be text; send/ },
    { why: 'a blank tag', tags: [' '], says: /^tags\.0 must have 1 to 64 characters; shorten/ },
    { why: '65 characters', tags: ['a'.repeat(65)], says: /^tags\.0 must have 1 to 64 characters; shorten/ },
    { why: '65 characters of two units each', tags: ['🎉'.repeat(65)], says: /^tags\.0 must have 1 to 64 characters; shorten/ },
    { why: 'a zero-width joiner', tags: ['a', 'a\u200db'], says: /^tags\.1 contains an invisible .* remove it/ },
    { why: 'a decomposed accent', tags: ['cafe\u0301'], says: /^tags\.0 is not in .* normalization form C \(NFC\); normalize/ },
  ])('are refused for $why', ({ tags, says }) => {
    expect(refused({ tags })).toMatch(says);
  });
});

describe('a lifetime (R-FACT-09)', () => {
  test.each([
    { why: 'is 90 days when absent', ttl_seconds: undefined, kept: 7_776_000 },
    { why: 'is 90 days for 0', ttl_seconds: 0, kept: 7_776_000 },
    { why: 'may be an hour', ttl_seconds: 3600, kept: 3600 },
    { why: 'may be a year', ttl_seconds: 31_536_000, kept: 31_536_000 },
  ])('$why', ({ ttl_seconds, kept }) => {
    expect(accepted({ ttl_seconds }).ttl_seconds).toBe(kept);
  });

  test.each([
    1,
    3599,
    31_536_001,
    -1,
    -3600,
    3600.5,
    0.5,
    18_446_747_674,
    2 ** 53,
    1e300,
    Infinity,
    -Infinity,
    NaN,
    '3600',
    '',
    true,
    false,
    null,
    [3600],
    {},
    3600n,
  ])('is refused for %s', (ttl_seconds) => {
    expect(refused({ ttl_seconds })).toMatch(/^ttl_seconds must be 0 or a whole number of seconds from 3600 to 31536000; send/);
  });
});

describe('the request as a whole', () => {
  test.each([
    {
      why: 'an unknown field (R-FACT-10)',
      input: { ...aFact, ttl: 60 },
      says: /^The request has an unknown field; send only key, value, category, tags, ttl_seconds, supersedes, similar\.$/,
    },
    {
      why: 'a namespace field (R-FACT-10)',
      input: { ...aFact, namespace: 'other' },
      says: /^The request has an unknown field; send only/,
    },
    {
      why: 'a planted prototype (R-FACT-10)',
      input: JSON.parse('{"key":"a","value":"b","__proto__":{}}'),
      says: /^The request has an unknown field; send only/,
    },
    { why: 'a list', input: [aFact], says: /^The request must be a JSON object; send it with key, value/ },
    { why: 'nothing', input: undefined, says: /^The request must be a JSON object; send it with key, value/ },
  ])('is refused for $why', ({ input, says }) => {
    expect(refusal(FactInput(), input)).toMatch(says);
  });
});

describe('a change to a fact (R-OPS-04)', () => {
  test('leaves absent fields absent', () => {
    expect(FactPatch().parse({ key: 'a' })).toEqual({ key: 'a' });
  });

  test('reads 0 as the default lifetime', () => {
    expect(FactPatch().parse({ key: 'a', ttl_seconds: 0 })).toEqual({ key: 'a', ttl_seconds: 7_776_000 });
  });

  test.each([
    { why: 'a lifetime under an hour', input: { key: 'a', ttl_seconds: 60 }, says: /^ttl_seconds must be/ },
    { why: 'a reserved category', input: { key: 'a', category: 'PLAN_HISTORY' }, says: /^category is reserved/ },
    {
      why: 'a value',
      input: { key: 'a', value: 'b' },
      says: /^The request has an unknown field; send only key, ttl_seconds, category, tags\.$/,
    },
  ])('is refused for $why', ({ input, says }) => {
    expect(refusal(FactPatch(), input)).toMatch(says);
  });
});

test.each([
  {
    input: { key: 'a', value: 'b', category: null },
    says: /^category must be text; .*; if the field is optional, leave it out instead of sending null\.$/,
  },
  { input: { key: 'a', value: 'b', tags: ['c', null] }, says: /^tags\.1 .* instead of sending null\.$/ },
  { input: { key: 'a', value: 'b', ttl_seconds: null }, says: /^ttl_seconds .* instead of sending null\.$/ },
  { input: { key: 'a', value: 'b', category: 1 }, says: /^category must be text; send it as a JSON string\.$/ },
  { input: null, says: /^The request must be a JSON object; (?!.*null)/ },
])('a refusal of null says to leave the field out: $input (R-FACT-11)', ({ input, says }) => {
  expect(refusal(FactInput(), input)).toMatch(says);
});

test('a refusal without an issue is still a sentence (R-FACT-11)', () => {
  expect(explainIssue(new z.ZodError([]))).toMatch(/^The request is invalid; .*\.$/);
});
