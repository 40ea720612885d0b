import { asFailure } from '../../contract/failure.ts';
import { TOKEN_SCOPES } from '../../contract/names.ts';
import type { BridgeResponse } from '../../contract/window.ts';
import type { Caller } from '../../core/access/caller.ts';

/** Returns the caller for requests from the window. The window can use any subject, because the owner can open any memory. */
export const windowCaller = (subject: string): Caller => ({
  subject,
  client: 'window',
  transport: 'window',
  token: '',
  scopes: new Set(TOKEN_SCOPES),
  owner: true,
});

export async function toWindowResult(result: Promise<unknown>): Promise<BridgeResponse> {
  try {
    return { ok: true, value: await result };
  } catch (error) {
    const { code, message } = asFailure(error);
    return { ok: false, code, message };
  }
}
