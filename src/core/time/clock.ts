import { uptime } from 'node:os';
import { isSynchronized } from './clock-sync.ts';

/** Time as the program sees it, handed in so that tests can set it by hand. */
export interface Clock {
  /** The wall clock in milliseconds since 1970; it may jump. */
  now(): number;
  /** Milliseconds since some fixed moment; it never jumps and does not know the date. It may stop while the machine sleeps. */
  steady(): number;
  /** Milliseconds since the machine started, sleep included. Setting the wall clock does not change it. */
  uptime(): number;
  /** Whether the system says that its wall clock is synchronized; undefined where it does not say. */
  synchronized(): Promise<boolean | undefined>;
  /** Runs `action` once, after `ms`. Disposing the result takes it back. */
  after(ms: number, action: () => void): Disposable;
}

/** The longest wait Node's timers can hold; a longer one is asked for again by whoever waits. */
const LONGEST_WAIT = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  steady: () => performance.now(),
  uptime: () => uptime() * 1000,
  synchronized: isSynchronized,
  after(ms, action) {
    const timer = setTimeout(action, Math.min(ms, LONGEST_WAIT));
    // A pending purge or sweep alone is no reason to keep the program alive.
    timer.unref();
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
