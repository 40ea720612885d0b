import { Failure } from '../../contract/failure.ts';
import { TTL } from '../../contract/limits.ts';
import type { OperationRequest } from '../../contract/operations.ts';
import { UsageError } from './errors.ts';
import { parseDuration, parseMoment } from './times.ts';

/**
 * Parses `--ttl` and returns seconds. Checks the limits here, so that the error message uses hours and days instead of seconds.
 */
export function parseLifetime(text: string | undefined): number | undefined {
  const seconds = secondsOf(text, '--ttl');
  if (seconds === undefined || seconds === 0 || (seconds >= TTL.min && seconds <= TTL.max)) return seconds;
  throw outOfBounds('--ttl must be between 1h and 365d, or 0 for the default of 90d.');
}

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

/** Creates the error for a value outside the limits. The error code is the same as when the memory itself rejects the value. */
const outOfBounds = (message: string): Failure => new Failure('invalid_input', message);

/** Returns only the options that have a value, because operations reject a property that is present but undefined. */
export const given = <Options extends object>(
  options: Options,
): { [Name in keyof Options]?: Exclude<Options[Name], undefined> } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;

/** Reads what a search compares. */
export function parseMode(text: string | undefined): OperationRequest<'search'>['mode'] {
  if (text === undefined || text === 'auto' || text === 'words' || text === 'meaning') return text;
  throw new UsageError('--mode must be auto, words or meaning.');
}
