import { useEffect, useState } from 'react';
import { type TimeLeft, timeLeft as roundedTimeLeft } from '../../contract/time-left.ts';
import { DAY_MS, SECOND_MS } from '../../contract/units.ts';

const SHORT: Record<TimeLeft['unit'], string> = { minute: 'min', hour: 'h', day: 'd' };

interface TimeLeftText {
  /** Short form for a list row, such as "5 h". */
  readonly label: string;
  /** Long form, such as "5 hours". */
  readonly long: string;
  /** True if less than a day is left. */
  readonly soon: boolean;
}

export function timeLeft(expiresAt: string, now: number): TimeLeftText {
  const left = roundedTimeLeft(expiresAt, now);
  if (!left) return { label: 'expired', long: 'expired', soon: true };
  const { count, unit } = left;
  return { label: `${count} ${SHORT[unit]}`, long: counted(count, unit), soon: Date.parse(expiresAt) - now < DAY_MS };
}

/** Formats how long ago a time was, such as "2 hours ago". */
export function timeAgo(at: string, now: number): string {
  const past = roundedTimeLeft(new Date(now).toISOString(), Date.parse(at));
  return past ? `${counted(past.count, past.unit)} ago` : 'just now';
}

/** Formats a duration in the largest unit that gives a whole number, such as "90 minutes". */
export function duration(seconds: number): string {
  const [unit, size] = (
    [
      ['day', 86_400],
      ['hour', 3600],
      ['minute', 60],
    ] as const
  ).find(([, each]) => seconds % each === 0) ?? ['second', 1];
  return counted(seconds / size, unit);
}

/** Formats a count with its noun in the singular or plural. */
export const counted = (count: number, noun: string): string => {
  if (count === 1) return `1 ${noun}`;
  return `${count.toLocaleString()} ${/[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;
};

/** Returns the current time in milliseconds, updated every 30 seconds. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30 * SECOND_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'long', timeStyle: 'short' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'long', year: 'numeric' });

export const fullDate = (at: string | number): string => full.format(new Date(at));
export const dayOf = (at: string | number): string => day.format(new Date(at));
