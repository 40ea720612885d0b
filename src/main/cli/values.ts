import { Failure } from '../../contract/failure.ts';
import { TTL } from '../../contract/limits.ts';
import { parseDuration, parseMoment } from './times.ts';
import { UsageError } from './usage-error.ts';

/** The lifetime of a fact, in seconds. Its bounds are told as the command line writes them. */
export function parseLifetime(text: string | undefined): number | undefined {
  const seconds = secondsOf(text, '--ttl');
  if (seconds === undefined || seconds === 0 || (seconds >= TTL.min && seconds <= TTL.max)) return seconds;
  throw outOfBounds('--ttl must be from an hour (1h) to a year (365d), or 0 for the usual 90d.');
}

/** A time from now in which facts expire, in seconds. */
export function parseExpiryWindow(text: string | undefined): number | undefined {
  const seconds = secondsOf(text, '--expiring-within');
  if (seconds === undefined || (seconds >= 1 && seconds <= TTL.max)) return seconds;
  throw outOfBounds('--expiring-within must be from a second (1s) to a year (365d).');
}

function secondsOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined;
  const seconds = parseDuration(text);
  if (seconds !== undefined) return seconds;
  throw new UsageError(`${option} must be a time such as 90d, 12h or 3600 (seconds).`);
}

export function parseCount(text: string | undefined, option: string, most = Infinity): number | undefined {
  if (text === undefined) return undefined;
  const says = `${option} must be a whole number from 1${most === Infinity ? '' : ` to ${most}`}.`;
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(says);
  if (Number(text) > most) throw outOfBounds(says);
  return Number(text);
}

export function parseTime(text: string | undefined, option: string, now: number): string {
  const moment = text === undefined ? undefined : parseMoment(text, now);
  if (moment !== undefined) return moment;
  throw new UsageError(`${option} must be there, as how long ago (2h, 3d) or as a time (2026-11-18, 2026-11-18T09:00).`);
}

/** What the memory would refuse too, in words of the command line. */
const outOfBounds = (says: string): Failure => new Failure('invalid_input', says);
