import type { Clock } from '../../src/core/time/clock.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** The start time of every hand-set clock. */
export const START = Date.UTC(2026, 5, 3, 14, 2);

export interface ManualClock extends Clock {
  /** Moves both clocks and runs the timers that became due. */
  advance(ms: number): Promise<void>;
  /** Changes only the wall clock. */
  jump(ms: number): void;
  /** Simulates sleep: the wall clock and the uptime advance, but no timer runs. */
  sleep(ms: number): void;
  /** Whether the system reports a synchronised clock. Default: no information. */
  synchronizedBy: boolean | undefined;
  /** The id of the boot. Default: unknown. */
  boot: string | undefined;
  /** Simulates a shutdown and a new boot after the given time. */
  reboot(ms: number): void;
  /** Waits for work of a timer that `settle` does not wait for, such as queries of a database. */
  work: (() => Promise<unknown>) | undefined;
  /** The number of pending timers. */
  readonly pendingTimers: number;
}

/** A clock that a test moves by hand. */
export function manualClock(start = START): ManualClock {
  let wall = start;
  let steady = 0;
  let slept = 0;
  const timers = new Set<{ at: number; action: () => void }>();
  const due = () => [...timers].filter(({ at }) => at <= steady).toSorted((one, other) => one.at - other.at)[0];
  return {
    now: () => wall,
    steady: () => steady,
    uptime: () => steady + slept,
    boot: undefined,
    uptimeOrigin() {
      return this.boot;
    },
    reboot(ms) {
      wall += ms;
      slept = -steady;
      if (this.boot !== undefined) this.boot += '+';
    },
    synchronizedBy: undefined,
    work: undefined,
    synchronized() {
      return Promise.resolve(this.synchronizedBy);
    },
    after(ms, action) {
      const timer = { at: steady + ms, action };
      timers.add(timer);
      return { [Symbol.dispose]: () => void timers.delete(timer) };
    },
    async advance(ms) {
      const until = steady + ms;
      for (;;) {
        const next = Math.min(until, ...[...timers].map(({ at }) => at));
        if (next > steady) {
          wall += next - steady;
          steady = next;
        }
        for (let timer = due(); timer; timer = due()) {
          timers.delete(timer);
          timer.action();
          // Wait for the work that the timer started.
          await settle();
          await this.work?.();
        }
        if (steady >= until) return;
      }
    },
    jump(ms) {
      wall += ms;
    },
    sleep(ms) {
      wall += ms;
      slept += ms;
    },
    get pendingTimers() {
      return timers.size;
    },
  };
}

/** Waits until all pending work in this process has finished. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
