import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Thrown by a check that cannot run here. Its message says what is missing. */
export class Missing extends Error {
  override readonly name = 'Missing';
}

export interface Surroundings {
  /** The large figures, or those for every commit. */
  readonly large: boolean;
  /** What is random comes again from the same seed. */
  readonly seed: number;
  /** A folder of the check's own, gone afterwards. */
  readonly folder: string;
}

export interface Check {
  /** With the requirements that it proves. */
  readonly name: string;
  /** Fulfils with its figures. */
  run(here: Surroundings): Promise<string>;
}

export interface Sum {
  passed: number;
  failed: number;
  skipped: number;
}

/** The line that closes a lane; whoever runs several adds them up. */
export const summed = ({ passed, failed, skipped }: Readonly<Sum>): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;

/** Prints a line for each check and one that sums them. False if any failed. */
export async function runLane(checks: readonly Check[], around: Omit<Surroundings, 'folder'>): Promise<boolean> {
  const sum: Sum = { passed: 0, failed: 0, skipped: 0 };
  for (const check of checks) {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'helmdeck-faults-')));
    const from = performance.now();
    const line = (how: string, figures: string): void =>
      console.log(`${how} ${check.name} | ${figures} | ${((performance.now() - from) / 1000).toFixed(1)} s`);
    try {
      line('ok', await check.run({ ...around, folder }));
      sum.passed += 1;
    } catch (error) {
      if (error instanceof Missing) {
        line('skipped:', `missing: ${error.message}`);
        sum.skipped += 1;
      } else {
        line('FAILED', (error instanceof Error ? error.message : String(error)).replaceAll(/\s*\n\s*/g, ' / '));
        sum.failed += 1;
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  console.log(summed(sum));
  return sum.failed === 0;
}

/** Fails with the first few of what went wrong. */
export function mustBeEmpty(violations: readonly string[], figures: string): void {
  if (violations.length > 0)
    throw new Error(`${violations.length} violations: ${violations.slice(0, 5).join('; ')} | ${figures}`);
}
