import type { ServerResponse } from 'node:http';
import type { Perform } from '../core/operations/perform.ts';
import type { Clock } from '../core/time/clock.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { SECURITY_HEADERS, endResponse } from './response.ts';
import { API_PATH, rejectQuery } from './rest-routes.ts';
import type { Route } from './router.ts';
import type { StreamRegistry } from './stream-registry.ts';

/** Facts in one write. Their values may be long, and all of a page is in memory at once. */
const PAGE = 50;
const HEAD = ['Content-Type', 'application/x-ndjson', ...SECURITY_HEADERS];

interface Deps {
  readonly perform: Perform;
  readonly clock: Clock;
  readonly streams: StreamRegistry;
}

/** Every fact as a line, a page at a time, no faster than it is read (R-REST-09). */
export const exportRoute = ({ perform, clock, streams }: Deps): Route => ({
  method: 'GET',
  path: `${API_PATH}/memory/export`,
  transport: 'rest',
  operation: 'export',
  async handle(exchange) {
    const { response, caller } = exchange;
    rejectQuery(exchange.query);
    using _open = streams.open(exchange, { end: () => response.destroy() });
    // Whatever keeps it from beginning is told as for any other request; later there is only the cut.
    let page = await perform(caller, 'export', { limit: PAGE });
    if (response.destroyed) return undefined;
    response.writeHead(200, HEAD);
    for (;;) {
      const lines = page.facts.map((fact) => `${JSON.stringify(fact)}\n`).join('');
      if (lines !== '' && !response.destroyed && !response.write(lines)) await taken(response, clock);
      if (response.destroyed) return undefined;
      if (page.next_cursor === undefined) break;
      page = await perform(caller, 'export', { limit: PAGE, cursor: page.next_cursor });
    }
    endResponse(response);
    return undefined;
  },
});

/** Until what was written is on its way, or the reader is gone. One who takes nothing for long is let go. */
async function taken(response: ServerResponse, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const written = (): number => response.socket?.bytesWritten ?? 0;
  const watch = (before: number): Disposable =>
    clock.after(CONNECTION_LIMITS.progressMs, () => {
      if (written() === before) response.destroy();
      else watching = watch(written());
    });
  let watching = watch(written());
  response.once('drain', resolve).once('close', resolve);
  await promise;
  watching[Symbol.dispose]();
  response.off('drain', resolve).off('close', resolve);
}
