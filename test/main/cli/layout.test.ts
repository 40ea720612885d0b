import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { failures, type FailureCode } from '../../../src/contract/failure.ts';
import { exitCodeOf, exits } from '../../../src/main/cli/exit-codes.ts';
import { splitLines } from '../../../src/main/cli/import-lines.ts';
import { columns, formatCount, indent, jsonText, escapeControls, wrap } from '../../../src/main/cli/layout.ts';

describe('text from agents', () => {
  test.each([
    ['a code that moves the cursor', 'a\u001b[2Jb', String.raw`a\u{1b}[2Jb`],
    ['one of eight bits', 'a\u009b2J', String.raw`a\u{9b}2J`],
    ['a turned line', 'exe.\u202egpj', String.raw`exe.\u{202e}gpj`],
    ['a return to the beginning', 'safe\revil', String.raw`safe\u{d}evil`],
    ['line ends and tabs', 'a\r\nb\n\tc', 'a\nb\n\tc'],
    ['letters of the world', '日本語 naïve 👩‍👩‍👧', '日本語 naïve 👩‍👩‍👧'],
  ])('is shown with its control characters escaped: %s', (_why, text, shown) => {
    expect(escapeControls(text)).toBe(shown);
  });

  test('survives a round trip through the JSON output', () => {
    const value = 'a\u001b\u009b\u202e\u2028"\\日';
    expect(jsonText({ value })).not.toMatch(/[\u007f-\u009f\u202e\u2028]/);
    expect(JSON.parse(jsonText({ value }))).toEqual({ value });
  });
});

test('columns are aligned, even after wide characters, and lines have no trailing spaces', () => {
  expect(
    columns([
      ['日本', 'a', ''],
      ['key', 'bb', 'c'],
    ]),
  ).toEqual(['日本  a', 'key   bb  c']);
  expect(columns([])).toEqual([]);
});

test('text is indented, wrapped and counted', () => {
  expect(indent('a\n\nb')).toEqual(['  a', '', '  b']);
  expect(wrap('one two three', 8)).toEqual(['one two', 'three']);
  expect([formatCount(1, 'entry', 'entries'), formatCount(1200, 'fact')]).toEqual(['1 entry', '1,200 facts']);
});

describe('splitting a stream into lines', () => {
  const read = async (parts: readonly string[], most = 10) => {
    const lines = [];
    const chunks = (async function* () {
      for (const part of parts) yield Buffer.from(part, 'latin1');
    })();
    for await (const { number, text } of splitLines(chunks, most)) lines.push([number, text]);
    return lines;
  };

  test.each([
    {
      why: 'a single chunk',
      parts: ['a\nb\n'],
      lines: [
        [1, 'a'],
        [2, 'b'],
      ],
    },
    {
      why: 'chunks that split lines',
      parts: ['a', 'b\n', '\nc'],
      lines: [
        [1, 'ab'],
        [2, ''],
        [3, 'c'],
      ],
    },
    {
      why: 'a line that is too long, without losing the next one',
      parts: ['x'.repeat(9), 'x'.repeat(9), '\nok'],
      lines: [
        [1, undefined],
        [2, 'ok'],
      ],
    },
    {
      why: 'a line that is not UTF-8',
      parts: ['\xff\nok'],
      lines: [
        [1, undefined],
        [2, 'ok'],
      ],
    },
    { why: 'a byte order mark', parts: ['\xef\xbb\xbfa\n'], lines: [[1, 'a']] },
    { why: 'an empty stream', parts: [], lines: [] },
  ])('works: $why', async ({ parts, lines }) => {
    expect(await read(parts)).toEqual(lines);
  });
});

test('docs/scripting.md lists the exit codes as the help does', () => {
  const rows = Object.values(exits).map(({ code, description }) => `| ${code} | ${description} |\n`);
  expect(readFileSync('docs/scripting.md', 'utf8')).toContain(rows.join(''));
});

test('every failure code maps to a documented exit code', () => {
  const known = new Set<number>(Object.values(exits).map(({ code }) => code));
  for (const code of Object.keys(failures) as FailureCode[]) {
    expect(known).toContain(exitCodeOf(code));
    expect(exitCodeOf(code)).toBeGreaterThan(0);
  }
  expect(
    (
      [
        'invalid_input',
        'not_found',
        'key_unavailable',
        'store_unavailable',
        'unavailable',
        'quota_exceeded',
        'rate_limited',
        'disk_full',
        'cancelled',
        'invalid_config',
      ] as const
    ).map(exitCodeOf),
  ).toEqual([1, 3, 4, 5, 5, 6, 6, 7, 1, 78]);
});
