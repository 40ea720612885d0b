export interface Result {
  readonly what: string;
  readonly figure: number;
  readonly unit: string;
  /** What was promised: at least, or at most. Absent where a figure is only there to be seen. */
  readonly bar?: { readonly atLeast: number } | { readonly atMost: number };
  /** The numbers behind the figure. */
  readonly from: string;
}

const met = ({ figure, bar }: Result): boolean => !bar || ('atLeast' in bar ? figure >= bar.atLeast : figure <= bar.atMost);

/** Prints a line a figure; true when every bar was reached. */
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

/** The number below which such a part of all lie. */
export const quantile = (numbers: readonly number[], part: number): number =>
  numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length * part)] ?? NaN;

export const median = (numbers: readonly number[]): number => quantile(numbers, 0.5);

/**
 * How fast ours is beside the floor, 1 being as fast. Both take turns, round by round, so that whatever else the machine
 * does meets both alike; the medians are compared.
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
