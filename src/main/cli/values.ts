import { Failure } from '../../contract/failure.ts';
import { TTL } from '../../contract/limits.ts';
import { UsageError } from './errors.ts';
import { parseDuration, parseMoment } from './times.ts';

/** The lifetime of a fact in seconds. Checked here so that the message uses the units of the command line. */
export function parseLifetime(text: string | undefined): number | undefined {
  const seconds = secondsOf(text, '--ttl');
  if (seconds === undefined || seconds === 0 || (seconds >= TTL.min && seconds <= TTL.max)) return seconds;
  throw outOfBounds('--ttl must be between 1h and 365d, or 0 for the default of 90d.');
}

/** The value of --expiring-within in seconds. */
export function parseExpiryWindow(text: string | undefined): number | undefined {
  const seconds = secondsOf(text, '--expiring-within');
  if (seconds === undefined || (seconds >= 1 && seconds <= TTL.max)) return seconds;
  throw outOfBounds('--expiring-within must be between 1s and 365d.');
}

function secondsOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const seconds = parseDuration(text);
  if (seconds !== undefined) return seconds;
  throw new UsageError(`${option} must be a duration such as 90d, 12h or 3600 (seconds).`);
}

export function parseCount(text: string | undefined, option: string, most = Infinity): number | undefined {
  if (text === undefined) return undefined;
  const message = `${option} must be a whole number${most === Infinity ? ', at least 1' : ` from 1 to ${most}`}.`;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(message);
  if (Number(text) > most) throw outOfBounds(message);
  return Number(text);
}

export function parseTime(text: string | undefined, option: string, now: number): string {
  const moment = text === undefined ? undefined : parseMoment(text, now);
  if (moment !== undefined) return moment;
  throw new UsageError(`${option} is required: a time ago (2h, 3d) or a date (2026-11-18, 2026-11-18T09:00).`);
}

/** The memory also rejects these values, but its message uses other units. */
const outOfBounds = (message: string): Failure => new Failure('invalid_input', message);

/** The options that were given. Absent ones are dropped, as the memory's requests demand. */
export const given = <Options extends object>(
  options: Options,
): { [Name in keyof Options]?: Exclude<Options[Name], undefined> } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
