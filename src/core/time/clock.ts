import { uptime } from 'node:os';
import { isSynchronized, uptimeOrigin } from './clock-evidence.ts';

/** The only source of time of this process. Tests use a clock that they set by hand. */
export interface Clock {
  /** The wall clock, in milliseconds since 1970. It can jump forward and backward. */
  now(): number;
  /** Milliseconds since a fixed moment of this process. This clock never jumps, but it can stop while the machine sleeps. */
  steady(): number;
  /** Milliseconds since the machine booted, including sleep. Setting the wall clock does not change this value. */
  uptime(): number;
  /**
   * Id of the counter behind `uptime`. Two processes can compare their readings if the ids are equal. Undefined if no comparison
   * is possible.
   */
  uptimeOrigin(): string | undefined;
  /** Whether the system reports that its wall clock is synchronized. Undefined if the system does not report this. */
  synchronized(): Promise<boolean | undefined>;
  /** Runs `action` once, after `ms` milliseconds. Disposing the returned value cancels the action. */
  after(ms: number, action: () => void): Disposable;
}

/**
 * Longest delay that Node's timers support. An action with a longer delay runs early, so its caller must check the time and
 * schedule it again.
 */
const MAX_DELAY_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  steady: () => performance.now(),
  uptime: () => uptime() * 1000,
  uptimeOrigin,
  synchronized: isSynchronized,
  after(ms, action) {
    const timer = setTimeout(action, Math.min(ms, MAX_DELAY_MS));
    // A scheduled purge or sweep must not keep the process alive.
    timer.unref();
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};

/** An entry dated more than this many milliseconds in the future was written while the clock was wrong. */
export const MARGIN_MS = 60_000;

/** Returns how many milliseconds a date is in the future, or 0 if at most `MARGIN_MS`. */
export const aheadBy = (date: number, now: number): number => (date - now > MARGIN_MS ? date - now : 0);
