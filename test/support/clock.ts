import type { Clock } from '../../src/core/time/clock.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Where every hand-set clock starts. */
export const START = Date.UTC(2026, 5, 3, 14, 2);

export interface ManualClock extends Clock {
  /** Time passes: both clocks move, and what was due meanwhile is done. */
  advance(ms: number): Promise<void>;
  /** The wall clock is set to another time; nothing else moves. */
  jump(ms: number): void;
  /** The machine sleeps: the wall clock and the uptime go on, and nothing else does. */
  sleep(ms: number): void;
  /** What the system says of its clock; it says nothing unless told. */
  synchronizedBy: boolean | undefined;
  /** Identifies the boot of the machine; unknown unless a test sets it. */
  boot: string | undefined;
  /** The machine is switched off for so long and starts again. */
  reboot(ms: number): void;
  /** How many things wait for their time. */
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
          // What it started ends before time goes on.
          await settle();
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

/** Lets everything that is under way in this process come to rest. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
