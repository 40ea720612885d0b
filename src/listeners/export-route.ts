import type { ServerResponse } from 'node:http';
import type { Perform } from '../core/operations/perform.ts';
import type { Clock } from '../core/time/clock.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { SECURITY_HEADERS, endResponse } from './response.ts';
import { API_PATH, rejectQuery } from './rest-routes.ts';
import type { Route } from './route.ts';
import type { StreamRegistry } from './stream-registry.ts';

/** Number of facts read at once. Small, because values can be long and a whole page is held in RAM. */
const PAGE_SIZE = 50;
const HEADERS = ['Content-Type', 'application/x-ndjson', ...SECURITY_HEADERS];

interface Deps {
  readonly perform: Perform;
  readonly clock: Clock;
  readonly streams: StreamRegistry;
}

/**
 * Streams all facts, one JSON object per line. Reads the next page only when the client has read the previous one (R-REST-09).
 */
export const exportRoute = ({ perform, clock, streams }: Deps): Route => ({
  method: 'GET',
  path: `${API_PATH}/memory/export`,
  transport: 'rest',
  operation: 'export',
  async handle(exchange) {
    const { response, caller } = exchange;
    rejectQuery(exchange.query);
    using _open = streams.open(exchange, { end: () => response.destroy() });
    // A failure on the first page can still be sent as an error response. On a later page, the connection can only be closed.
    let page = await perform(caller, 'export', { limit: PAGE_SIZE });
    if (response.destroyed) return undefined;
    response.writeHead(200, HEADERS);
    for (;;) {
      const lines = page.facts.map((fact) => `${JSON.stringify(fact)}\n`).join('');
      if (lines !== '' && !response.destroyed && !response.write(lines)) await waitForDrain(response, clock);
      if (response.destroyed) return undefined;
      if (page.next_cursor === undefined) break;
      page = await perform(caller, 'export', { limit: PAGE_SIZE, cursor: page.next_cursor });
    }
    endResponse(response);
    return undefined;
  },
});

/** Waits until the client has read the written data. Disconnects the client if it stops reading. */
async function waitForDrain(response: ServerResponse, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const bytesWritten = (): number => response.socket?.bytesWritten ?? 0;
  const watch = (before: number): Disposable =>
    clock.after(CONNECTION_LIMITS.progressMs, () => {
      if (bytesWritten() === before) response.destroy();
      else timer = watch(bytesWritten());
    });
  let timer = watch(bytesWritten());
  response.once('drain', resolve).once('close', resolve);
  await promise;
  timer[Symbol.dispose]();
  response.off('drain', resolve).off('close', resolve);
}
