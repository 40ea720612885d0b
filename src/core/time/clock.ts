import { uptime } from 'node:os';
import { isSynchronized, uptimeOrigin } from './clock-evidence.ts';

/** The program's only source of time. Tests pass a clock that they set by hand. */
export interface Clock {
  /** The wall clock in milliseconds since 1970; it may jump. */
  now(): number;
  /** Milliseconds since a fixed moment of this run. It never jumps, and it may stop while the machine sleeps. */
  steady(): number;
  /** Milliseconds since the machine started, sleep included. Setting the wall clock does not change it. */
  uptime(): number;
  /** Identifies the counter behind `uptime`, so that readings of two runs can be compared; undefined if they cannot. */
  uptimeOrigin(): string | undefined;
  /** Whether the system says that its wall clock is synchronized; undefined where it does not say. */
  synchronized(): Promise<boolean | undefined>;
  /** Runs `action` once, after `ms`. Disposing the result cancels it. */
  after(ms: number, action: () => void): Disposable;
}

/** The longest delay of Node's timers. A longer one fires early, and the caller schedules the rest. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  steady: () => performance.now(),
  uptime: () => uptime() * 1000,
  uptimeOrigin,
  synchronized: isSynchronized,
  after(ms, action) {
    const timer = setTimeout(action, Math.min(ms, MAX_DELAY_MS));
    // A pending purge or sweep must not keep the program alive.
    timer.unref();
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
