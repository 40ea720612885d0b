import { asFailure } from '../../contract/failure.ts';

/** What was looked at, and how it stands. */
export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'bad';
  readonly says: string;
  /** What to do, unless it is well or has been said. */
  readonly remedy?: string;
}

export const ok = (check: string, says: string): Finding => ({ check, state: 'ok', says });
export const warn = (check: string, says: string, remedy: string): Finding => ({ check, state: 'warn', says, remedy });
export const bad = (check: string, says: string, remedy: string): Finding => ({ check, state: 'bad', says, remedy });

/** A refusal of ours says what to do by itself. */
export const refusal = (check: string, error: unknown): Finding => ({ check, state: 'bad', says: asFailure(error).message });
