import { describe, expect, test } from 'vitest';
import { type Pages, visiblePages, rowsOf, NO_PAGES, withResult } from '../../src/renderer/src/facts/pages.ts';

const row = (key: string) => ({
  key,
  category: 'user_facts',
  tags: [],
  client: 'codex',
  created_at: '2026-06-03T14:02:00.000Z',
  updated_at: '2026-06-03T14:02:00.000Z',
  expires_at: '2026-09-01T14:02:00.000Z',
});

/** One page of a list with two rows per page. The cursor is the last key of the previous page. */
function resultOf(all: string, start: string) {
  const from = start === '' ? 0 : all.indexOf(start) + 1;
  const facts = all
    .slice(from, from + 2)
    .split('')
    .map(row);
  const last = facts.at(-1)?.key;
  return { facts, ...(last !== undefined && from + 2 < all.length && { next_cursor: last }) };
}

/** Reads the given pages again, in order. */
const read = (pages: Pages, all: string, ...at: number[]): Pages =>
  at.reduce((known, index) => withResult(known, index, resultOf(all, known[index]?.start ?? '')), pages);

const keysOf = (pages: Pages): string =>
  rowsOf(pages)
    .map(({ key }) => key)
    .join('');
const isRead = (pages: Pages): boolean => pages.at(-1)?.from !== undefined;

const whole = read(NO_PAGES, 'abcdefgh', 0, 1, 2, 3);

describe('the pages of a list (R-WIN-41)', () => {
  test('end with an unloaded page until the list ends', () => {
    const begun = read(NO_PAGES, 'abcde', 0);
    expect([keysOf(begun), isRead(begun)]).toEqual(['ab', false]);
    const ended = read(begun, 'abcde', 1, 2);
    expect([keysOf(ended), isRead(ended)]).toEqual(['abcde', true]);
  });

  test('show new facts first and keep the rows that they push down', () => {
    expect(keysOf(read(whole, 'nabcdefgh', 0))).toBe('nabcdefgh');
    expect(keysOf(read(whole, 'nmoabcdefgh', 0))).toBe('nmabcdefgh');
    expect(keysOf(read(whole, 'nmoabcdefgh', 0, 1))).toBe('nmoabcdefgh');
  });

  test('show a fact once after it moved to the top', () => {
    expect(keysOf(read(whole, 'fabcdegh', 0))).toBe('fabcdegh');
  });

  test('drop deleted facts and fill the gap from the next page', () => {
    expect(keysOf(read(whole, 'bcdefgh', 0))).toBe('bcdefgh');
    expect(keysOf(read(whole, 'acdefgh', 0))).toBe('acdefgh');
    expect(keysOf(read(whole, 'cdefgh', 0))).toBe('cdefgh');
    expect(keysOf(read(whole, 'abcefgh', 1))).toBe('abcefgh');
  });

  test('end where the new result ends', () => {
    expect(keysOf(read(whole, 'a', 0))).toBe('a');
    expect(keysOf(read(whole, '', 0))).toBe('');
    expect(keysOf(read(whole, 'abcdef', 2))).toBe('abcdef');
  });

  test('are correct again after each of them was read', () => {
    const changed = read(whole, 'xhyabfg', 0);
    expect(keysOf(read(changed, 'xhyabfg', 1, 2, 3))).toBe('xhyabfg');
  });

  test('to keep up to date are the first page and those near the visible rows', () => {
    const facts = Array.from({ length: 200 }, (_, index) => row(`k${index}`));
    const pages: Pages = Array.from({ length: 5 }, (_, at) => ({ start: `${at}`, rows: facts, from: { facts } }));
    expect(visiblePages(pages, 0, 30)).toEqual([0]);
    expect(visiblePages(pages, 500, 530)).toEqual([0, 2]);
    expect(visiblePages(pages, 590, 620)).toEqual([0, 2, 3]);
    expect(visiblePages(pages, 560, 585)).toEqual([0, 2, 3]);
  });
});
