import { asFailure } from '../../contract/failure.ts';

/** The result of one check. */
export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'bad';
  readonly says: string;
  /** What to do. Absent if nothing is wrong, or if `says` already contains it. */
  readonly remedy?: string;
}

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says });
export const warn = (check: string, says: string, remedy: string): Finding => ({ check, state: 'warn', says, remedy });
export const bad = (check: string, says: string, remedy: string): Finding => ({ check, state: 'bad', says, remedy });

/** The message of a failure already says what to do. */
export const failed = (check: string, error: unknown): Finding => ({ check, state: 'bad', says: asFailure(error).message });
