import { asFailure } from '../../contract/failure.ts';
import { REMEMBER_AGAIN, TOKEN_SCOPES } from '../../contract/limits.ts';
import type { Crossed } from '../../contract/window.ts';
import type { Caller } from '../../core/caller.ts';
import { AGAIN } from '../../core/undo.ts';

/** The owner may look at every memory, one at a time. */
export const theWindow = (subject: string): Caller => ({
  subject,
  client: 'window',
  transport: 'window',
  token: '',
  scopes: new Set(TOKEN_SCOPES),
  owner: true,
});

/**
 * What the window asks, as the memory is asked. A forget that is taken back comes by a door of its own, which no agent has: somebody else
 * may have made that fact, so no undo of what the window wrote takes it away (R-FORGET-16).
 */
export const askedBy = (subject: string, name: string): readonly [caller: Caller, operation: string] =>
  name === REMEMBER_AGAIN ? [{ ...theWindow(subject), transport: AGAIN }, 'remember'] : [theWindow(subject), name];

export async function crossing(answering: Promise<unknown>): Promise<Crossed> {
  try {
    return { ok: true, value: await answering };
  } catch (error) {
    const { code, message } = asFailure(error);
    return { ok: false, code, message };
  }
}
