import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../core/access/caller.ts';

/** An authenticated request and its response. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Read only from the token (R-ISO-02). */
  readonly caller: Caller;
  readonly token: string;
  /** The raw query, without the question mark. */
  readonly query: string;
  /** The raw value of the path parameter, or '' if the route has none. */
  readonly parameter: string;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** May have one `{parameter}`, as its last segment or the one before. */
  readonly path: string;
  /** Recorded with the caller and with every write. */
  readonly transport: string;
  /** Names the route in the log. */
  readonly operation: string;
  /** Throws while the path cannot serve requests of any method. */
  readonly requireReady?: (caller: Caller) => Promise<void>;
  /** Returns the body of a 200 JSON response, or undefined if the handler has sent the response itself. */
  handle(exchange: Exchange): Promise<object | undefined>;
}

/** Where an unexpected error happened. Logs hold nothing else about it, because an error may quote a fact. */
export interface LogEvent {
  readonly operation: string;
  readonly client: string;
}
