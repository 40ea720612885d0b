import { DAY_MS } from '../../contract/units.ts';

const CACHED_DATES = 1024;
/** Cache of formatted dates by day number. It is effective because the facts of a page share few days. */
const dates = new Map<number, string>();

const digits = (many: number, count: number): readonly string[] =>
  Array.from({ length: many }, (_, number) => `${number}`.padStart(count, '0'));
const two = digits(60, 2);
const three = digits(1000, 3);

/**
 * Formats a time as RFC 3339 in UTC, like `toISOString`, but joins cached parts. A page of facts has 150 timestamps, and
 * `toISOString` took a third of the time to build the page.
 */
export function formatTime(ms: number): string {
  const day = Math.floor(ms / DAY_MS);
  const rest = Math.floor(ms - day * DAY_MS);
  const seconds = Math.floor(rest / 1000);
  const minutes = Math.floor(seconds / 60);
  return `${dateOf(day)}${two[Math.floor(minutes / 60)]}:${two[minutes % 60]}:${two[seconds % 60]}.${three[rest % 1000]}Z`;
}

function dateOf(day: number): string {
  const known = dates.get(day);
  if (known !== undefined) return known;
  const made = new Date(day * DAY_MS).toISOString().slice(0, -'00:00:00.000Z'.length);
  if (dates.size >= CACHED_DATES) dates.clear();
  dates.set(day, made);
  return made;
}
