import { useEffect, useState } from 'react';
import { type TimeLeft, timeLeft as whatIsLeft } from '../../contract/time-left.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const UNITS: Record<TimeLeft['unit'], string> = { minute: 'min', hour: 'h', day: 'd' };

interface Left {
  /** Short enough for the edge of a row. */
  readonly label: string;
  /** Within a day: it is marked, and not by colour alone. */
  readonly soon: boolean;
}

export function timeLeft(expiresAt: string, now: number): Left {
  const left = whatIsLeft(expiresAt, now);
  if (!left) return { label: 'gone', soon: true };
  return { label: `${left.count} ${UNITS[left.unit]}`, soon: Date.parse(expiresAt) - now < DAY };
}

/** So long, in the largest unit that tells it exactly. */
export function lasting(seconds: number): string {
  const [unit, size] = (
    [
      ['day', DAY],
      ['hour', HOUR],
      ['minute', MINUTE],
      ['second', SECOND],
    ] as const
  ).find(([, ms]) => (seconds * SECOND) % ms === 0) ?? ['second', SECOND];
  const count = (seconds * SECOND) / size;
  return `${count.toLocaleString()} ${unit}${count === 1 ? '' : 's'}`;
}

/** The present, as often as what is shown of it changes. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const ticking = setInterval(() => setNow(Date.now()), 30 * SECOND);
    return () => clearInterval(ticking);
  }, []);
  return now;
}

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'long', timeStyle: 'short' });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'long', year: 'numeric' });

export const fullDate = (at: string | number): string => full.format(new Date(at));
export const dayOf = (at: string | number): string => day.format(new Date(at));
