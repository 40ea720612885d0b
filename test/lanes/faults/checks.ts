import { type Sum, summed } from './lane.ts';

/** A sequence of checks. Each prints its result at once, and a failure does not stop the sequence. */
export class Checks {
  readonly #sum: Sum = { passed: 0, failed: 0, skipped: 0 };

  /** Prints one line, and below it the details if the check failed. */
  readonly check = (what: string, holds: boolean, said: unknown): void => {
    console.log(`${holds ? 'ok' : 'FAILED'} ${what}`);
    this.#sum[holds ? 'passed' : 'failed'] += 1;
    if (!holds) tell(said);
  };

  skip(why: string): void {
    console.log(`skipped: ${why}`);
    this.#sum.skipped += 1;
  }

  /** Runs the lane. An exception counts as a failure, and `after` runs in any case. Exits with the summary line. */
  async through(lane: () => Promise<void>, after: () => Promise<void> | void): Promise<never> {
    try {
      await lane();
    } catch (error) {
      this.check('the lane runs to its end', false, error);
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
