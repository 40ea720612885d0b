/** Runs a function and returns its duration and its result. */
export async function timed<T>(step: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const from = performance.now();
  const result = await step();
  return { result, ms: Math.round(performance.now() - from) };
}
