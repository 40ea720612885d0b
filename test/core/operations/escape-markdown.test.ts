import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { escapeMarkdown } from '../../../src/core/operations/escape-markdown.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';

/** Splits lines like the strictest known reader, Python's `splitlines`. */
const linesOf = (text: string): string[] => text.split(/\r\n|[[\p{Cc}\p{Zl}\p{Zp}]--[\t]]/v);

/** Independent implementation of CommonMark headings, in lists and quotes of any depth and with any white space. */
const isHeading = (line: string): boolean => /^[\s>*+.)\d\u200b\ufeff-]*#{1,6}(?:\s|$)/u.test(line);
const isUnderline = (line: string): boolean => /^[\s>]*(?:=+|-+)\s*$/u.test(line);
const isText = (line: string): boolean => !/^[\s>]*$/u.test(line);
const headingsIn = (text: string): string[] =>
  linesOf(text).filter((line, at, all) => isHeading(line) || (isUnderline(line) && isText(all[at - 1] ?? '')));

describe('text within a snippet', () => {
  test.each([
    'const list: Array<string> = new Map<string, number>();',
    '<div class="a">x</div> <!-- a comment --> <h2>Title</h2>',
    '#!/bin/sh\n#include <stdio.h>\n#tag and issue #12',
    'a | b\n--|--\n1 | 2',
    'one\r\ntwo\rthree',
    '---\n\ntext\n\n===\n\n- - -\n* * *',
    '```ts\nconst a = 1;\n```\n\n~~~\nx\n~~~',
    'C:\\path\\file and 2 * 3 * 4 = 24',
    '1. one\n2. two\n- three\n> four',
    '日本語\u2028x\u0085y',
  ])('without a heading is unchanged: %j (R-QMD-07)', (text) => {
    expect(escapeMarkdown(text)).toBe(text);
  });

  test('is unchanged if no line looks like a heading (R-QMD-07)', () => {
    const line = fc
      .string({ unit: fc.constantFrom('a', ' ', '<', '>', '\\', '`', '*', '#x', '-', '=', '&', '_', '\t', 'ü', '|') })
      .map((text) => `a${text.replaceAll('```', '')}`);
    fc.assert(
      fc.property(fc.array(line), fc.constantFrom('\n', '\r\n', '\r', '\u2028'), (lines, end) => {
        const text = lines.join(end);
        expect(escapeMarkdown(text)).toBe(text);
      }),
    );
  });

  test.each([
    ['## Pack call: x', '\\## Pack call: x'],
    ['##Pack call: x', '\\##Pack call: x'],
    ['#', '\\#'],
    ['#\tx', '\\#\tx'],
    ['##\u00a0Pack call: x', '\\##\u00a0Pack call: x'],
    ['text\n   ### x', 'text\n   \\### x'],
    ['        ## x', '        \\## x'],
    ['> > ## x', '> > \\## x'],
    ['- 1. * ## x', '- 1. * \\## x'],
    ['\u200b## x', '\u200b\\## x'],
    ['＃＃ x', '\\＃＃ x'],
    ['a\r## x', 'a\r\\## x'],
    ['a\u0085## x', 'a\u0085\\## x'],
    ['a\v## x', 'a\v\\## x'],
    ['a\u2028## x', 'a\u2028\\## x'],
    ['a\u001e## x', 'a\u001e\\## x'],
    ['Title\n===', 'Title\n\\==='],
    ['Title\n-', 'Title\n\\-'],
    ['> Title\n> ---  ', '> Title\n> \\---  '],
    ['- Title\n  ---', '- Title\n  \\---'],
    ['Title\r\n---\r\n', 'Title\r\n\\---\r\n'],
    ['Title\u0085===', 'Title\u0085\\==='],
    ['```\n## x\n```', '```\n\\## x\n```'],
  ])('cannot begin a heading: %j (R-QMD-07)', (text, said) => {
    expect(escapeMarkdown(text)).toBe(said);
  });

  test.each([
    ['```\ncode', '\\```\ncode'],
    ['~~~~\n~~~', '\\~~~~\n\\~~~'],
    ['```a\n```b', '\\```a\n\\```b'],
    ['> ```\n```', '> \\```\n\\```'],
    ['- ```\n  x\n  ```\n```', '- \\```\n  x\n  \\```\n\\```'],
  ])('cannot hide the text after it with an unclosed code fence: %j (R-QMD-07)', (text, said) => {
    expect(escapeMarkdown(text)).toBe(said);
  });

  test('made of hostile parts contains no heading and loses no character (R-QMD-07)', () => {
    const parts = ['#', '##', ' ', '\t', '\n', '\r', '\r\n', '\v', '\f', '\u0085', '\u2028', '\u2029', '>', '-', '---', '==='];
    const more = ['*', '1.', '```', '~~~', 'Pack call: x', '<h2>', '<!--', '\\', '\u200b', '\ufeff', '\u00a0', 'a', '\u001c'];
    const part = fc.constantFrom(...parts, ...more);
    fc.assert(
      fc.property(fc.array(part, { maxLength: 40 }), (chosen) => {
        const text = chosen.join('');
        const said = escapeMarkdown(text);
        expect(headingsIn(said)).toEqual([]);
        // Only backslashes were added.
        expect(said.replaceAll('\\', '')).toBe(text.replaceAll('\\', ''));
      }),
      { numRuns: 3000 },
    );
  });
});

test('a QMD client receives a fact with angle brackets as it was stored (R-QMD-07)', async () => {
  const memory = await openTestMemory();
  const me = memory.as(aCaller());
  await me('remember', { key: 'Map<K, V>', value: 'Return Promise<Array<string>>, never a <T>; a < b' });
  const [hit] = (await me('query', { query: 'promise' })).results;
  const [heading, , , , text] = String(hit?.snippet).split('\n');
  expect([heading, text]).toEqual(['## Map<K, V>', 'Return Promise<Array<string>>, never a <T>; a < b']);
});
