import { asFailure } from '../../contract/failure.ts';

export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'bad';
  readonly says: string;
  /** What the user can do about the problem. Absent if nothing is wrong, or if `says` contains the advice. */
  readonly remedy?: string;
}

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says });
export const warn = (check: string, says: string, remedy: string): Finding => ({ check, state: 'warn', says, remedy });
export const bad = (check: string, says: string, remedy: string): Finding => ({ check, state: 'bad', says, remedy });

/** Converts an error to a finding. The finding has no remedy, because the error's message already says what to do. */
export const failed = (check: string, error: unknown): Finding => ({ check, state: 'bad', says: asFailure(error).message });
