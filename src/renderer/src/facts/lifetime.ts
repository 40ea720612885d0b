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

const within = (seconds: number): number => Math.max(TTL.min, Math.min(TTL.max, seconds));

/** @internal What is left of a lifetime, for storing an earlier version again: an hour at least, as for any fact. */
export const secondsLeft = (end: string, now: number): number => within(Math.round((Date.parse(end) - now) / 1000));

/** The same of a fact as it is now: what is shown of it may be older than a change of its lifetime. */
export async function secondsLeftOf(ask: MemoryClient, shown: Pick<FactDetail, 'key' | 'expires_at'>): Promise<number> {
  const { expires_at: end } = await ask('recall', { key: shown.key }).catch(() => shown);
  return secondsLeft(end, Date.now());
}

/** The days on which a fact may be made to go. */
export const daysOf = (now: number): { readonly first: string; readonly last: string } => ({
  first: dateField(now + DAY * 1000),
  last: dateField(now + TTL.max * 1000),
});

/** Until this time of that day; undefined where it is none of those, so that no other end is shown than the one that was chosen. */
export function secondsUntil(date: string, now: number): number | undefined {
  const { first, last } = daysOf(now);
  if (date < first || date > last) return undefined;
  const [year, month, day] = date.split('-').map(Number);
  if (year === undefined || month === undefined || day === undefined) return undefined;
  const then = new Date(now);
  return within(Math.round((then.setFullYear(year, month - 1, day) - now) / 1000));
}

/** A day as a date field spells it, in the owner's own time zone. */
export function dateField(at: number): string {
  const date = new Date(at);
  const two = (number: number): string => `${number}`.padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
