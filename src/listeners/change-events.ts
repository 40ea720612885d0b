import type { ServerResponse } from 'node:http';
import { Failure } from '../contract/failure.ts';
import { hasScope } from '../core/access/caller.ts';
import type { SpaceChange, MemoryStore } from '../core/store/store.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { SECURITY_HEADERS, endResponse } from './response.ts';
import { API_PATH, rejectQuery } from './rest-routes.ts';
import type { Exchange, Route } from './router.ts';
import type { StreamRegistry } from './stream-registry.ts';

/** The connection ends with the stream. */
const HEAD = ['Content-Type', 'text/event-stream', ...SECURITY_HEADERS, 'Connection', 'close'];

/** Tells each caller, as server-sent events, that their own namespace has changed, and of no other (R-REST-11). */
export class ChangeEvents implements Disposable {
  readonly #streams: StreamRegistry;
  readonly #changes: Disposable;
  readonly #readers = new Map<string, Set<ServerResponse>>();

  constructor(streams: StreamRegistry, onChange: MemoryStore['onChange']) {
    this.#streams = streams;
    this.#changes = onChange((changed) => this.#tell(changed));
  }

  readonly route: Route = {
    method: 'GET',
    path: `${API_PATH}/events`,
    transport: 'rest',
    operation: 'events',
    handle: async (exchange) => this.#follow(exchange),
  };

  #follow(exchange: Exchange): undefined {
    rejectQuery(exchange.query);
    const { response, caller } = exchange;
    if (!hasScope(caller, 'memory:read')) {
      throw new Failure(
        'insufficient_scope',
        'This needs a token with the scope memory:read; ask the owner of this memory for one.',
      );
    }
    const readers = this.#readers.get(caller.subject) ?? new Set();
    const stream = this.#streams.open(exchange, {
      end: () => endResponse(response),
      keepAlive: () => send(response, ': still here\n\n'),
    });
    this.#readers.set(caller.subject, readers.add(response));
    response.once('close', () => {
      stream[Symbol.dispose]();
      readers.delete(response);
      if (readers.size === 0) this.#readers.delete(caller.subject);
    });
    response.writeHead(200, HEAD);
    send(response, ': what changes in this memory is told from here on\n\n');
  }

  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]();
  }

  /** A session's memory is no token's own. */
  #tell({ namespace: { subject, session }, kind }: SpaceChange): void {
    const readers = session === undefined ? this.#readers.get(subject) : undefined;
    if (!readers) return;
    const frame = `data: ${JSON.stringify({ namespace: subject, kind })}\n\n`;
    for (const reader of readers) send(reader, frame);
  }
}

/** Who does not read is let go, and may come again: what they missed is in the memory. */
function send(response: ServerResponse, frame: string): void {
  if (response.writableEnded || response.destroyed) return;
  if (response.writableLength > CONNECTION_LIMITS.unreadStreamBytes) response.destroy();
  else response.write(frame);
}
