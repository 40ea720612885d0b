import { timeLeft } from '../../contract/time-left.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../contract/units.ts';

const units: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
  w: 7 * DAY_MS,
  y: 365 * DAY_MS,
};

/** Parses a duration such as `90d` or `3600`, and returns seconds. Returns undefined for other text. Callers check the limits. */
export function parseDuration(text: string): number | undefined {
  const [, digits, unit = 's'] = /^(\d{1,12})([smhdwy]?)$/.exec(text) ?? [];
  if (digits === undefined) return undefined;
  return (Number(digits) * (units[unit || 's'] ?? SECOND_MS)) / SECOND_MS;
}

/** Parses 2026-11-18, 2026-11-18T09:00 (with an optional Z or offset), or a duration before now, such as 2h. */
export function parseMoment(text: string, now: number): string | undefined {
  const ago = parseDuration(text);
  // Reject digits without a unit, because they could mean seconds or a year.
  if (ago !== undefined && /\D$/.test(text)) return new Date(now - ago * SECOND_MS).toISOString();
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(text);
  if (!parts) return undefined;
  const [, day = '', hour = '00:00', zone = ''] = parts;
  const moment = new Date(`${day}T${hour}${zone}`);
  if (Number.isNaN(moment.getTime())) return undefined;
  // Reject dates such as 30 February, which JavaScript reads as a day in March.
  const exists = !Number.isNaN(Date.parse(day)) && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
  return exists ? moment.toISOString() : undefined;
}

const two = (number: number): string => String(number).padStart(2, '0');

/** Returns the local date as YYYY-MM-DD. */
export function formatDay(time: string): string {
  const at = new Date(time);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

export function formatMinute(time: string): string {
  const at = new Date(time);
  return `${formatDay(time)} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** Returns the remaining lifetime, such as "90 days left (2026-11-18)". Rounds in the same way as the window. */
export function formatTimeLeft(time: string, now: number): string {
  const left = timeLeft(time, now);
  if (!left) return `expired ${formatMinute(time)}`;
  const { count, unit } = left;
  return `${count} ${unit}${count === 1 ? '' : 's'} left (${unit === 'day' ? formatDay(time) : formatMinute(time)})`;
}
