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

/** A list whose pages hold two rows; its cursors are the keys behind which a page begins. */
function resultOf(all: string, start: string) {
  const from = start === '' ? 0 : all.indexOf(start) + 1;
  const facts = all
    .slice(from, from + 2)
    .split('')
    .map(row);
  const last = facts.at(-1)?.key;
  return { facts, ...(last !== undefined && from + 2 < all.length && { next_cursor: last }) };
}

/** Reads these pages again, one after the other. */
const read = (pages: Pages, all: string, ...at: number[]): Pages =>
  at.reduce((known, index) => withResult(known, index, resultOf(all, known[index]?.start ?? '')), pages);

const keysOf = (pages: Pages): string =>
  rowsOf(pages)
    .map(({ key }) => key)
    .join('');
const isRead = (pages: Pages): boolean => pages.at(-1)?.from !== undefined;

const whole = read(NO_PAGES, 'abcdefgh', 0, 1, 2, 3);

describe('a list that is read page by page (R-WIN-41)', () => {
  test('has a page that was not read yet behind the last that was, until it ends', () => {
    const begun = read(NO_PAGES, 'abcde', 0);
    expect([keysOf(begun), isRead(begun)]).toEqual(['ab', false]);
    const ended = read(begun, 'abcde', 1, 2);
    expect([keysOf(ended), isRead(ended)]).toEqual(['abcde', true]);
  });

  test('shows on top what is new, and loses nothing of what had to make room', () => {
    expect(keysOf(read(whole, 'nabcdefgh', 0))).toBe('nabcdefgh');
    expect(keysOf(read(whole, 'nmoabcdefgh', 0))).toBe('nmabcdefgh');
    expect(keysOf(read(whole, 'nmoabcdefgh', 0, 1))).toBe('nmoabcdefgh');
  });

  test('shows once, and on top, what moved there from a page that nobody looks at', () => {
    expect(keysOf(read(whole, 'fabcdegh', 0))).toBe('fabcdegh');
  });

  test('drops what is gone from the page that is looked at, and fills it from the next', () => {
    expect(keysOf(read(whole, 'bcdefgh', 0))).toBe('bcdefgh');
    expect(keysOf(read(whole, 'acdefgh', 0))).toBe('acdefgh');
    expect(keysOf(read(whole, 'cdefgh', 0))).toBe('cdefgh');
    expect(keysOf(read(whole, 'abcefgh', 1))).toBe('abcefgh');
  });

  test('ends where it ends now', () => {
    expect(keysOf(read(whole, 'a', 0))).toBe('a');
    expect(keysOf(read(whole, '', 0))).toBe('');
    expect(keysOf(read(whole, 'abcdef', 2))).toBe('abcdef');
  });

  test('is right again wherever it is looked at, after any number of changes', () => {
    const changed = read(whole, 'xhyabfg', 0);
    expect(keysOf(read(changed, 'xhyabfg', 1, 2, 3))).toBe('xhyabfg');
  });

  test('looks at the first page and those in sight or nearly', () => {
    const facts = Array.from({ length: 200 }, (_, index) => row(`k${index}`));
    const pages: Pages = Array.from({ length: 5 }, (_, at) => ({ start: `${at}`, rows: facts, from: { facts } }));
    expect(visiblePages(pages, 0, 30)).toEqual([0]);
    expect(visiblePages(pages, 500, 530)).toEqual([0, 2]);
    expect(visiblePages(pages, 590, 620)).toEqual([0, 2, 3]);
    expect(visiblePages(pages, 560, 585)).toEqual([0, 2, 3]);
  });
});
