export interface Result {
  readonly what: string;
  readonly figure: number;
  readonly unit: string;
  /** The bar. Undefined if the figure is only for information. */
  readonly bar?: { readonly atLeast: number } | { readonly atMost: number };
  /** The measurements behind the figure. */
  readonly from: string;
}

const met = ({ figure, bar }: Result): boolean => !bar || ('atLeast' in bar ? figure >= bar.atLeast : figure <= bar.atMost);

/** Prints one line for each figure. Returns true if every bar was met. */
export function report(results: readonly Result[]): boolean {
  for (const result of results) {
    const { what, figure, unit, bar, from } = result;
    const wanted = !bar ? 'no bar' : 'atLeast' in bar ? `at least ${bar.atLeast}` : `at most ${bar.atMost}`;
    console.log(
      `${!bar ? '      ' : met(result) ? 'ok    ' : 'MISSED'}  ${what}: ${figure.toPrecision(3)} ${unit} (${wanted}; ${from})`,
    );
  }
  return results.every(met);
}

/** Runs one bench. If it fails, the bench is reported as missed, and the others can still run. */
export async function resultsOf(measure: () => readonly Result[] | Promise<readonly Result[]>): Promise<readonly Result[]> {
  try {
    return await measure();
  } catch (error) {
    console.error(error);
    return [{ what: measure.name, figure: 1, unit: 'failures', bar: { atMost: 0 }, from: String(error) }];
  }
}

/** The quantile of the numbers: `part` of them are at most this value. */
export const quantile = (numbers: readonly number[], part: number): number =>
  numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length * part)] ?? NaN;

export const median = (numbers: readonly number[]): number => quantile(numbers, 0.5);

/**
 * Our speed relative to the floor; 1 means equal. Alternates between both in rounds, so that other load on the machine affects both
 * equally, and compares the medians.
 */
export async function beside(
  rounds: number,
  floor: () => unknown,
  ours: () => unknown,
): Promise<{ ratio: number; floor: number; ours: number }> {
  const times = { floor: [] as number[], ours: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    times.floor.push(await timed(floor));
    times.ours.push(await timed(ours));
  }
  const [one, other] = [median(times.floor), median(times.ours)];
  return { ratio: one / other, floor: one, ours: other };
}

async function timed(step: () => unknown): Promise<number> {
  const start = performance.now();
  await step();
  return performance.now() - start;
}
