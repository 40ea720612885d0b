import { describe, expect, test } from 'vitest';
import { formatDay, parseDuration, formatMinute, parseMoment, formatTimeLeft } from '../../../src/main/cli/times.ts';

const NOW = Date.parse('2026-11-18T12:00:00Z');
const HOUR = 3_600_000;
const inTime = (ms: number): string => new Date(NOW + ms).toISOString();

test.each([
  ['90d', 7_776_000],
  ['12h', 43_200],
  ['3600', 3600],
  ['90m', 5400],
  ['2w', 1_209_600],
  ['1y', 31_536_000],
  ['0', 0],
  ['-1d', undefined],
  ['1.5h', undefined],
  ['1e3', undefined],
  ['d', undefined],
  ['', undefined],
  ['9'.repeat(13), undefined],
])('the duration "%s" is %s seconds', (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
});

describe('a point in time', () => {
  test.each([
    ['2h', inTime(-2 * HOUR)],
    ['3d', inTime(-72 * HOUR)],
    ['2026-11-18T09:00Z', '2026-11-18T09:00:00.000Z'],
    ['2026-11-18T09:00:30.5+02:00', '2026-11-18T07:00:30.500Z'],
    ['2026-11-18 09:00', new Date(2026, 10, 18, 9).toISOString()],
    ['2026-11-18', new Date(2026, 10, 18).toISOString()],
  ])('is parsed from %s', (text, moment) => {
    expect(parseMoment(text, NOW)).toBe(moment);
  });

  test.each(['2026', 'yesterday', '2026-13-01', '2026-02-30', '2026-11-18T25:00', '18.11.2026', ''])(
    'is not guessed from "%s"',
    (text) => {
      expect(parseMoment(text, NOW)).toBeUndefined();
    },
  );
});

describe('the remaining lifetime', () => {
  const at = inTime(2 * 24 * HOUR);
  test.each([
    { ms: 90 * 24 * HOUR - 20, left: /^90 days left \(2027-02-16\)$/, why: 'a new fact' },
    { ms: 89.9 * 24 * HOUR, left: /^90 days left/, why: 'rounded' },
    { ms: 47 * HOUR, left: /^2 days left/, why: 'rounded' },
    { ms: 24 * HOUR, left: /^1 day left/, why: 'singular' },
    { ms: 23 * HOUR, left: /^23 hours left \(2026-11-\d\d \d\d:\d\d\)$/, why: 'with the time if it is soon' },
    { ms: 40.5 * 60_000, left: /^41 minutes left/, why: 'less than an hour' },
    { ms: 0, left: /^expired/, why: 'expired' },
  ])('is formatted: $why', ({ ms, left }) => {
    expect(formatTimeLeft(inTime(ms), NOW)).toMatch(left);
  });

  test('shows the date in local time', () => {
    const local = new Date(at);
    expect(formatDay(at)).toBe(local.toLocaleDateString('sv-SE'));
    expect(formatMinute(at)).toBe(`${local.toLocaleDateString('sv-SE')} ${local.toLocaleTimeString('sv-SE').slice(0, 5)}`);
  });
});
