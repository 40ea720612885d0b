import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Thrown by a check that cannot run here. Its message says what is missing. */
export class Missing extends Error {
  override readonly name = 'Missing';
}

export interface Surroundings {
  /** Whether to run the large figures of the torture lane. */
  readonly large: boolean;
  /** A seeded generator. The same seed repeats the run. */
  readonly seed: number;
  /** A temporary folder of this check. */
  readonly folder: string;
}

export interface Check {
  /** The name, with the ids of the promises that it proves. */
  readonly name: string;
  /** Resolves with the figures to print. */
  run(here: Surroundings): Promise<string>;
}

export interface Sum {
  passed: number;
  failed: number;
  skipped: number;
}

/** The last line of a lane. .ci/run adds them up. */
export const summed = ({ passed, failed, skipped }: Readonly<Sum>): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;

/** Runs the checks, and prints one line for each and a summary. Returns false if any failed. */
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

/** Throws an error with the first violations. */
export function mustBeEmpty(violations: readonly string[], figures: string): void {
  if (violations.length > 0)
    throw new Error(`${violations.length} violations: ${violations.slice(0, 5).join('; ')} | ${figures}`);
}
