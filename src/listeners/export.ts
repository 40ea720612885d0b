import type { ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import type { Perform } from '../core/perform.ts';
import { ALWAYS, end } from './answer.ts';
import { LIMITS } from './limits.ts';
import { API, refuseQuery } from './rest.ts';
import type { Route } from './routes.ts';
import type { Streams } from './streams.ts';

/** Facts in one write. Their values may be long, and all of a page is in memory at once. */
const PAGE = 50;
const HEAD = ['Content-Type', 'application/x-ndjson', ...ALWAYS];

interface Deps {
  readonly perform: Perform;
  readonly clock: Clock;
  readonly streams: Streams;
}

/** Every fact as a line, a page at a time, no faster than it is read (R-REST-09). */
export const exportRoute = ({ perform, clock, streams }: Deps): Route => ({
  method: 'GET',
  path: `${API}/memory/export`,
  transport: 'rest',
  operation: 'export',
  async handle(exchange) {
    const { response, caller } = exchange;
    refuseQuery(exchange.query);
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
    end(response);
    return undefined;
  },
});

/** Until what was written is on its way, or the reader is gone. One who takes nothing for long is let go. */
async function taken(response: ServerResponse, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const written = (): number => response.socket?.bytesWritten ?? 0;
  const watch = (before: number): Disposable =>
    clock.after(LIMITS.progressMs, () => {
      if (written() === before) response.destroy();
      else watching = watch(written());
    });
  let watching = watch(written());
  response.once('drain', resolve).once('close', resolve);
  await promise;
  watching[Symbol.dispose]();
  response.off('drain', resolve).off('close', resolve);
}
