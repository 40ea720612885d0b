import { Failure } from '../../contract/failure.ts';
import { UsageError } from '../cli/errors.ts';
import { exitCodeOf, exits } from '../cli/exit-codes.ts';

/**
 * Prints why the program cannot start, and returns the exit code. Throws an unexpected error again, so that Node prints its
 * stack.
 */
export function refuseStart(error: unknown): number {
  if (!(error instanceof Failure || error instanceof UsageError)) throw error;
  console.error(startRefusal(error.message));
  return error instanceof Failure ? exitCodeOf(error.code) : exits.usage.code;
}

export const startRefusal = (why: string): string => `Helmdeck Memory cannot start: ${why}`;
