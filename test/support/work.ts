/** CPU time of this thread for the work, in milliseconds. Other load on the machine does not count. */
export function measureCpu(run: () => unknown): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** The best of a few attempts, or the first that is good enough. */
export function measureBestCpu(run: () => unknown, enough = 0): number {
  let least = Infinity;
  for (let turn = 0; turn < 5 && least >= enough; turn += 1) least = Math.min(least, measureCpu(run));
  return least;
}

const TEXT = 'it was the best of times, it was the worst of times; '.repeat(4000);
/** How long the calibration work takes on the machine where the limits were set. */
const USUAL_MS = 3.6;

/** How many times slower the machine is now than the reference machine, measured with unrelated work. */
export const machineSlowness = (): number =>
  Math.max(1, measureBestCpu(() => [...TEXT.matchAll(/[a-z]+(?=\W+(?:best|worst)\b)/g)].length + checksum(TEXT)) / USUAL_MS);

function checksum(text: string): number {
  let sum = 0;
  for (let index = 0; index < text.length; index += 1) sum = (sum * 31 + text.charCodeAt(index)) % 1_000_003;
  return sum;
}

const TICK_MS = 10;

/**
 * Elapsed milliseconds, without the time for which a busy machine did not schedule this thread. That time is the late part of the clock's
 * ticks minus this thread's own CPU time.
 */
export async function measureWait(run: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  let last = from;
  let worked = process.threadCpuUsage();
  let missed = 0;
  const clock = setInterval(() => {
    const now = performance.now();
    const { user, system } = process.threadCpuUsage(worked);
    missed += Math.max(0, now - last - 2 * TICK_MS - (user + system) / 1000);
    last = now;
    worked = process.threadCpuUsage();
  }, TICK_MS);
  try {
    await run();
  } finally {
    clearInterval(clock);
  }
  return performance.now() - from - missed;
}
