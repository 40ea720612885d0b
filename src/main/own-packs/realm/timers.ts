import { callHost } from './host.ts';

const timers = new Map<number, { readonly run: () => void; readonly repeats: boolean }>();
let started = 0;

function start(repeats: boolean, run: (...given: unknown[]) => void, ms: unknown, given: unknown[]): number {
  if (typeof run !== 'function') throw new TypeError('A timer needs a function');
  started += 1;
  timers.set(started, { run: () => run(...given), repeats });
  callHost(repeats ? 'interval' : 'timeout', JSON.stringify([started, Math.max(1, Math.trunc(Number(ms)) || 1)]));
  return started;
}

type Run = (...given: unknown[]) => void;

export const setTimeout = (run: Run, ms?: unknown, ...given: unknown[]): number => start(false, run, ms, given);
export const setInterval = (run: Run, ms?: unknown, ...given: unknown[]): number => start(true, run, ms, given);
export const setImmediate = (run: Run, ...given: unknown[]): number => start(false, run, 1, given);

export function clearTimer(id: unknown): void {
  if (typeof id === 'number' && timers.delete(id)) callHost('clear', String(id));
}

export function fire(id: number): void {
  const timer = timers.get(id);
  if (timer?.repeats === false) timers.delete(id);
  timer?.run();
}

/** Runs a callback as a microtask. If the callback throws, the run fails, as for a timer's callback. */
export const queueMicrotask = (run: Run): void => void Promise.resolve().then(() => run());
