import { describe, expect, test } from 'vitest';
import { LifetimeField } from '../../src/contract/fact-fields.ts';
import { filterName, parseSearch, scopeOf } from '../../src/renderer/src/facts/filter.ts';
import { dateField, expiryRange, PRESETS, secondsLeft, secondsUntil } from '../../src/renderer/src/facts/lifetime.ts';
import { timeLeft } from '../../src/renderer/src/time.ts';
import { DAY, HOUR, MINUTE, START } from '../support/clock.ts';

const at = (ms: number): string => new Date(START + ms).toISOString();

describe('the lifetimes that the window offers', () => {
  test('are valid for the memory', () => {
    const offered = [...PRESETS.map(({ seconds }) => seconds), secondsLeft(at(-DAY), START), secondsLeft(at(999 * DAY), START)];
    expect(offered.map((seconds) => LifetimeField().parse(seconds))).toEqual(offered);
    expect(offered).toEqual([3600, 86_400, 604_800, 2_592_000, 7_776_000, 31_536_000, 3600, 31_536_000]);
  });

  test('are exact to the second', () => {
    expect(secondsLeft(at(2 * HOUR + 400), START)).toBe(7200);
  });

  test('end at the present time of a day, from tomorrow to a year from now (R-SEEK-03)', () => {
    const { first, last } = expiryRange(START);
    expect([first, last]).toEqual([dateField(START + DAY), dateField(START + 365 * DAY)]);
    expect(secondsUntil(first, START)).toBe(86_400);
    expect(secondsUntil(dateField(START + 3 * DAY), START)).toBe(3 * 86_400);
    expect(secondsUntil(last, START)).toBe(31_536_000);
    for (const none of [
      dateField(START),
      dateField(START - DAY),
      dateField(START + 366 * DAY),
      '0002-06-03',
      '12026-06-03',
      '',
    ]) {
      expect(secondsUntil(none, START), none).toBeUndefined();
    }
  });
});

test.each([
  [-1, 'expired', 'expired', true],
  [30_000, '1 min', '1 minute', true],
  [59 * MINUTE, '59 min', '59 minutes', true],
  [5 * HOUR, '5 h', '5 hours', true],
  [HOUR - 1, '1 h', '1 hour', true],
  [23.4 * HOUR, '23 h', '23 hours', true],
  [DAY - 1, '1 d', '1 day', true],
  [DAY, '1 d', '1 day', false],
  [89.4 * DAY, '89 d', '89 days', false],
  [90 * DAY - 1, '90 d', '90 days', false],
])('%i ms before it expires, a fact shows "%s"', (left, label, long, soon) => {
  expect(timeLeft(at(left), START)).toEqual({ label, long, soon });
});

describe('the text of the search box', () => {
  test.each([
    ['deploy pipeline ', { words: 'deploy pipeline' }],
    ['tag:konflux', { words: '', filter: { tag: 'konflux' } }],
    [' client:"claude code" ', { words: '', filter: { client: 'claude code' } }],
    ['client:codex deploy', { words: 'deploy', filter: { client: 'codex' } }],
    ['category:preferences', { words: '', filter: { category: 'preferences' } }],
    ['tag:', { words: '' }],
    ['http://tag:x', { words: 'http://tag:x' }],
  ])('%j is parsed as %j', (text, question) => {
    expect(parseSearch(text)).toEqual(question);
  });
});

test('every filter has a name, and a forget scope if there is one', () => {
  const filters = [{}, { tag: 'a:b' }, { client: 'c' }, { category: 'd' }, { expiring_within: 604_800 }];
  expect(filters.map(filterName)).toEqual([undefined, 'tagged a:b', 'written by c', 'in d', 'expiring within 7 days']);
  expect(filters.map(scopeOf)).toEqual(['facts', 'tag:a:b', 'client:c', 'category:d', undefined]);
});
