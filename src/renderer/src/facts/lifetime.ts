import type { FactDetail } from '../../../contract/fact.ts';
import { TTL } from '../../../contract/limits.ts';
import type { MemoryClient } from '../../../contract/window.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;

export const PRESETS = [
  { name: '1 hour', seconds: TTL.min },
  { name: '1 day', seconds: DAY },
  { name: '1 week', seconds: 7 * DAY },
  { name: '30 days', seconds: 30 * DAY },
  { name: '90 days', seconds: TTL.default },
  { name: '1 year', seconds: TTL.max },
] as const;

const clamp = (seconds: number): number => Math.max(TTL.min, Math.min(TTL.max, seconds));

/** @internal Returns the remaining lifetime in seconds, clamped to the limits in `TTL`. */
export const secondsLeft = (end: string, now: number): number => clamp(Math.round((Date.parse(end) - now) / 1000));

/** Returns the remaining seconds of a fact. Reads the fact again, because the shown expiry may be out of date (R-STAY-03). */
export async function currentSecondsLeft(call: MemoryClient, shown: Pick<FactDetail, 'key' | 'expires_at'>): Promise<number> {
  const { expires_at: end } = await call('recall', { key: shown.key }).catch(() => shown);
  return secondsLeft(end, Date.now());
}

/** Returns the first and last day that the owner can choose as the expiry day of a fact. */
export const expiryRange = (now: number): { readonly first: string; readonly last: string } => ({
  first: dateField(now + DAY * 1000),
  last: dateField(now + TTL.max * 1000),
});

/** Returns the seconds from now until the same time of day on `date`. Undefined if `date` is outside `expiryRange` (R-SEEK-03). */
export function secondsUntil(date: string, now: number): number | undefined {
  const { first, last } = expiryRange(now);
  if (date < first || date > last) return undefined;
  const [year, month, day] = date.split('-').map(Number);
  if (year === undefined || month === undefined || day === undefined) return undefined;
  const then = new Date(now);
  return clamp(Math.round((then.setFullYear(year, month - 1, day) - now) / 1000));
}

/** Formats a time as the value of a date input, in the owner's time zone. */
export function dateField(at: number): string {
  const date = new Date(at);
  const two = (number: number): string => `${number}`.padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
