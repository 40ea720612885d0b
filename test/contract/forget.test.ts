import { describe, expect, test } from 'vitest';
import { ForgetInput, needsKey, parseScope, spellScope } from '../../src/contract/forget.ts';
import { refusal } from './asking.ts';

describe('a scope', () => {
  test.each([
    { text: 'all', scope: { kind: 'all' } },
    { text: 'facts', scope: { kind: 'facts' } },
    { text: 'packs', scope: { kind: 'packs' } },
    { text: 'pipelines', scope: { kind: 'pipelines' } },
    { text: 'pack:github.list_issues', scope: { kind: 'pack', name: 'github.list_issues' } },
    { text: 'pipeline:daily', scope: { kind: 'pipeline', name: 'daily' } },
    { text: 'key:preferences/editor', scope: { kind: 'key', name: 'preferences/editor' } },
    { text: 'prefix:preferences/', scope: { kind: 'prefix', name: 'preferences/' } },
    { text: 'category:preferences', scope: { kind: 'category', name: 'preferences' } },
    { text: 'tag:frontend', scope: { kind: 'tag', name: 'frontend' } },
    { text: 'client:Claude Desktop', scope: { kind: 'client', name: 'Claude Desktop' } },
  ])('may be $text (R-FORGET-01)', ({ text, scope }) => {
    expect(parseScope(text)).toEqual(scope);
    expect(ForgetInput().parse({ scope: text })).toEqual({ scope, dry_run: false });
  });

  test.each([
    { why: 'a colon', text: 'key:a:b', name: 'a:b' },
    { why: 'blanks', text: 'key: a ', name: ' a ' },
    { why: 'letter case', text: 'key:Preferences', name: 'Preferences' },
    { why: 'the letter case of a tag', text: 'tag:Preferences', name: 'Preferences' },
    { why: 'the letter case of a client', text: 'client:Codex', name: 'Codex' },
    { why: 'wildcards', text: 'prefix:%_*\\', name: '%_*\\' },
    { why: 'width', text: 'key:ｋｅｙ', name: 'ｋｅｙ' },
    { why: 'a decomposed accent', text: 'tag:cafe\u0301', name: 'cafe\u0301' },
    { why: 'the name of a scope', text: 'key:all', name: 'all' },
  ])('keeps $why after the first colon (R-FORGET-02)', ({ text, name }) => {
    expect(ForgetInput().parse({ scope: text }).scope).toMatchObject({ name });
  });

  test.each(['category:Preferences', 'category: PREFERENCES\t', 'category:ｐｒｅｆｅｒｅｎｃｅｓ', 'category:preferenceſ'])(
    'folds a category as in facts: %s (R-FORGET-02)',
    (scope) => {
      expect(ForgetInput().parse({ scope }).scope).toEqual({ kind: 'category', name: 'preferences' });
    },
  );

  test.each(['category:日本語', 'category:x y', 'category:-x', `category:${'x'.repeat(65)}`, 'category:Pack_History'])(
    'is refused when it names a category that no fact can have: %s (R-FORGET-17)',
    (scope) => {
      expect(refusal(ForgetInput(), { scope })).toMatch(
        /^scope names a category that no fact can have; send 1 to 64 characters of a-z, /,
      );
    },
  );

  test.each([
    {},
    { scope: '' },
    { scope: ' ' },
    { scope: ':' },
    { scope: ':a' },
    { scope: '*' },
    { scope: 'key' },
    { scope: 'key:' },
    { scope: 'key:  ' },
    { scope: 'prefix:' },
    { scope: 'pack:' },
    { scope: 'category:\t' },
    { scope: 'All' },
    { scope: ' all' },
    { scope: 'all ' },
    { scope: 'all:' },
    { scope: 'all:x' },
    { scope: 'facts:x' },
    { scope: 'KEY:a' },
    { scope: 'keys:a' },
    { scope: 'ａｌｌ' },
    { scope: 'constructor:a' },
    { scope: '__proto__' },
    { scope: null },
    { scope: ['all'] },
    { scope: true },
    { scope: 'key:\ud800' },
  ])('is refused with the list of scopes: %j (R-FORGET-03)', (input) => {
    expect(refusal(ForgetInput(), input)).toMatch(/^scope must say what to forget; send one of all, facts, .*client:<name>\.$/);
  });

  test.each([undefined, null, '', 'all', [], 0])('is not inferred from the body %j (R-FORGET-03)', (body) => {
    expect(refusal(ForgetInput(), body)).toMatch(/^The request must be a JSON object; send it with scope, dry_run\.$/);
  });

  test('is formatted as it was parsed (R-FORGET-02)', () => {
    for (const text of ['all', 'key:a:b ', 'prefix:%']) {
      const scope = parseScope(text);
      expect(scope && spellScope(scope)).toBe(text);
    }
  });
});

describe('a dry run (R-FORGET-09)', () => {
  test.each([
    { dry_run: undefined, meant: false },
    { dry_run: false, meant: false },
    { dry_run: true, meant: true },
  ])('must be explicit: $dry_run', ({ dry_run, meant }) => {
    expect(ForgetInput().parse({ scope: 'all', dry_run }).dry_run).toBe(meant);
  });

  // If such a value counted as false, or the field were ignored, entries would be deleted instead of counted.
  test.each([{ dry_run: 'true' }, { dry_run: 1 }, { dry_run: null }, { dryRun: true }])('is never ignored: %j', (input) => {
    expect(refusal(ForgetInput(), { scope: 'all', ...input })).toMatch(
      /^(dry_run must be true or false|The request has an unknown field)/,
    );
  });
});

describe('without the key (R-FORGET-11)', () => {
  test.each(['all', 'facts', 'packs', 'pipelines', 'category:a'])('%s still works', (text) => {
    const scope = parseScope(text);
    expect(scope && needsKey(scope)).toBe(false);
  });

  test.each(['pack:a', 'pipeline:a', 'key:a', 'prefix:a', 'tag:a', 'client:a'])('%s cannot', (text) => {
    const scope = parseScope(text);
    expect(scope && needsKey(scope)).toBe(true);
  });
});
