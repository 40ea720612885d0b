import { ours } from './memory.ts';
import type { Result } from './report.ts';

const ROWS = 100_000;

/** Measures a rotation and the longest time for which it blocks the event loop. */
export async function rotation(): Promise<Result[]> {
  await using mine = await ours(ROWS);
  let longest = 0;
  let last = performance.now();
  let running = true;
  const watch = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (running) setImmediate(watch);
  };
  setImmediate(watch);
  const start = performance.now();
  await mine.store.upkeep?.rotate();
  const took = performance.now() - start;
  running = false;
  return [
    {
      what: `rotation of ${ROWS} rows`,
      figure: took / 1000,
      unit: 's',
      bar: { atMost: 8 },
      from: `${(ROWS / took).toFixed(0)} rows a ms`,
    },
    {
      what: 'longest slice of it',
      figure: longest,
      unit: 'ms',
      bar: { atMost: 20 },
      from: 'delay of the event loop',
    },
  ];
}
