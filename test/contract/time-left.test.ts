import { expect, test } from 'vitest';
import { formatTimeLeft as inTheTerminal } from '../../src/main/cli/times.ts';
import { timeLeft as inTheWindow } from '../../src/renderer/src/time.ts';
import { DAY, HOUR, MINUTE, SECOND, START } from '../support/clock.ts';

test.each([
  [90 * DAY - 20, '90 day'],
  [89.9 * DAY, '90 day'],
  [89.4 * DAY, '89 day'],
  [36 * HOUR, '2 day'],
  [DAY, '1 day'],
  [23.4 * HOUR, '23 hour'],
  [HOUR, '1 hour'],
  [59.4 * MINUTE, '59 minute'],
  [SECOND, '1 minute'],
])('rounds the remaining lifetime for the command line and the window (R-VIEW-06): %d', (ms, left) => {
  const expiresAt = new Date(START + ms).toISOString();
  const short = left.replace('minute', 'min').replace('hour', 'h').replace('day', 'd');
  expect(inTheTerminal(expiresAt, START)).toMatch(new RegExp(`^${left}s? left`));
  expect(inTheWindow(expiresAt, START).label).toBe(short);
});
