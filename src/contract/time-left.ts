const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How much of a lifetime is left, as every surface shows it. */
export interface TimeLeft {
  readonly count: number;
  readonly unit: 'minute' | 'hour' | 'day';
}

/** Rounded to the nearest whole unit, so that a fact that was stored for 90 days a moment ago has 90. Undefined once it has expired. */
export function timeLeft(expiresAt: string, now: number): TimeLeft | undefined {
  const ms = Date.parse(expiresAt) - now;
  if (ms <= 0) return undefined;
  const minutes = Math.round(ms / MINUTE_MS);
  if (minutes < 60) return { count: Math.max(1, minutes), unit: 'minute' };
  const hours = Math.round(ms / HOUR_MS);
  return hours < 24 ? { count: hours, unit: 'hour' } : { count: Math.round(ms / DAY_MS), unit: 'day' };
}
