import { type Sum, summed } from './lane.ts';

/** Checks that stand in a row, each said as it is made; one that fails ends nothing. */
export class Checks {
  readonly #sum: Sum = { passed: 0, failed: 0, skipped: 0 };

  /** A line for what was checked, and beneath it, if it is not so, all that was said. */
  readonly check = (what: string, holds: boolean, said: unknown): void => {
    console.log(`${holds ? 'ok' : 'FAILED'} ${what}`);
    this.#sum[holds ? 'passed' : 'failed'] += 1;
    if (!holds) tell(said);
  };

  skip(why: string): void {
    console.log(`skipped: ${why}`);
    this.#sum.skipped += 1;
  }

  /** Runs the lane; one that breaks has failed, and `after` is done all the same. Ends the process with the line that sums it. */
  async through(lane: () => Promise<void>, after: () => Promise<void> | void): Promise<never> {
    try {
      await lane();
    } catch (error) {
      this.check('the lane comes to its end', false, error);
    }
    await after();
    console.log(summed(this.#sum));
    process.exit(this.#sum.failed === 0 ? 0 : 1);
  }
}

function tell(said: unknown): void {
  const text = said instanceof Error ? (said.stack ?? said.message) : said;
  console.log((typeof text === 'string' ? text : JSON.stringify(text, undefined, 2)).replaceAll(/^/gm, '    '));
}
