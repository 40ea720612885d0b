import { asFailure } from '../../contract/failure.ts';
import { TOKEN_SCOPES } from '../../contract/limits.ts';
import type { BridgeResponse } from '../../contract/window.ts';
import type { Caller } from '../../core/access/caller.ts';

/** The owner may look at every memory, one at a time. */
export const windowCaller = (subject: string): Caller => ({
  subject,
  client: 'window',
  transport: 'window',
  token: '',
  scopes: new Set(TOKEN_SCOPES),
  owner: true,
});

export async function toWindowResult(answering: Promise<unknown>): Promise<BridgeResponse> {
  try {
    return { ok: true, value: await answering };
  } catch (error) {
    const { code, message } = asFailure(error);
    return { ok: false, code, message };
  }
}
