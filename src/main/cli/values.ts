import { inSeconds, momentOf } from './times.ts';
import { UsageError } from './usage-error.ts';

/** What a command line can only hold as text. A number that is too large or too small is for the memory to refuse. */
export function secondsOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const seconds = inSeconds(text);
  if (seconds !== undefined) return seconds;
  throw new UsageError(`${option} must be a time such as 90d, 12h or 3600 (seconds).`);
}

export function numberOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(`${option} must be a whole number from 1.`);
}

export function timeOf(text: string | undefined, option: string, now: number): string {
  const moment = text === undefined ? undefined : momentOf(text, now);
  if (moment !== undefined) return moment;
  throw new UsageError(`${option} must be there, as how long ago (2h, 3d) or as a time (2026-11-18, 2026-11-18T09:00).`);
}
