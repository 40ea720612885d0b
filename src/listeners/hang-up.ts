import type { ServerResponse } from 'node:http';

/** Aborted when the client goes: what runs for nobody need not run on. After the answer it means nothing. */
export function abortOnClose(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  if (response.destroyed || response.socket?.destroyed) gone.abort();
  return gone.signal;
}
