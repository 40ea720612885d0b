import { Failure } from '../contract/failure.ts';
import { hasScope } from '../core/access/caller.ts';
import type { MemoryStore, SpaceChange } from '../core/store/store.ts';
import { type EventStream, openEventStream } from './event-stream.ts';
import { API_PATH, rejectQuery } from './rest-routes.ts';
import type { Exchange, Route } from './route.ts';
import type { StreamRegistry } from './stream-registry.ts';

/**
 * Sends a caller an event whenever the caller's own namespace changes. Changes of other namespaces are never sent (R-REST-11).
 */
export class ChangeEvents implements Disposable {
  readonly #registry: StreamRegistry;
  readonly #changes: Disposable;
  readonly #streams = new Map<string, Set<EventStream>>();

  constructor(registry: StreamRegistry, onChange: MemoryStore['onChange']) {
    this.#registry = registry;
    this.#changes = onChange((change) => this.#send(change));
  }

  readonly route: Route = {
    method: 'GET',
    path: `${API_PATH}/events`,
    transport: 'rest',
    operation: 'events',
    handle: async (exchange) => this.#open(exchange),
  };

  #open(exchange: Exchange): undefined {
    rejectQuery(exchange.query);
    const { subject } = exchange.caller;
    if (!hasScope(exchange.caller, 'memory:read')) {
      throw new Failure(
        'insufficient_scope',
        'This request needs a token with the scope `memory:read`; ask the owner of this memory for such a token.',
      );
    }
    const stream = openEventStream(this.#registry, exchange, {
      onClose: (closed) => {
        const streams = this.#streams.get(subject);
        if (streams?.delete(closed) && streams.size === 0) this.#streams.delete(subject);
      },
    });
    if (!stream.isOpen) return;
    const streams = this.#streams.get(subject) ?? new Set();
    this.#streams.set(subject, streams.add(stream));
  }

  [Symbol.dispose](): void {
    this.#changes[Symbol.dispose]();
  }

  /**
   * Sends a change to the streams of its subject. Changes in pack sessions are skipped, because no token can read their
   * namespaces.
   */
  #send({ namespace: { subject, session }, kind }: SpaceChange): void {
    const streams = session === undefined ? this.#streams.get(subject) : undefined;
    if (!streams) return;
    const data = JSON.stringify({ namespace: subject, kind });
    for (const stream of streams) stream.send(data);
  }
}
