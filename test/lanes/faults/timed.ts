/** How long it took, beside what came out. */
export async function timed<T>(step: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const from = performance.now();
  const result = await step();
  return { result, ms: Math.round(performance.now() - from) };
}
