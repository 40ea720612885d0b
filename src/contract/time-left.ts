import { DAY_MS, HOUR_MS, MINUTE_MS } from './units.ts';

/** The remaining lifetime of a fact, as the window and the command line show it. */
export interface TimeLeft {
  readonly count: number;
  readonly unit: 'minute' | 'hour' | 'day';
}

/**
 * Returns the time until `expiresAt`, rounded to the nearest unit, so that a fact just stored for 90 days shows 90 days. Returns
 * undefined if the fact has expired. `now` is in milliseconds since 1970.
 */
export function timeLeft(expiresAt: string, now: number): TimeLeft | undefined {
  const ms = Date.parse(expiresAt) - now;
  if (ms <= 0) return undefined;
  const minutes = Math.round(ms / MINUTE_MS);
  if (minutes < 60) return { count: Math.max(1, minutes), unit: 'minute' };
  const hours = Math.round(ms / HOUR_MS);
  return hours < 24 ? { count: hours, unit: 'hour' } : { count: Math.round(ms / DAY_MS), unit: 'day' };
}
