import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../core/access/caller.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The authenticated caller. It is read only from the token, never from the request's fields (R-ISO-02). */
  readonly caller: Caller;
  readonly token: string;
  /** The digest of the token. */
  readonly digest: string;
  /** The raw query, without the question mark. */
  readonly query: string;
  /** The raw value of the path parameter, or '' if the route has none. */
  readonly parameter: string;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path. It can have one `{parameter}`, as the last or second-to-last segment. */
  readonly path: string;
  /** Name of the transport, such as `rest` or `mcp`. It is recorded with the caller and with every write. */
  readonly transport: string;
  readonly operation: string;
  /** Throws if the path cannot serve requests now, whatever their method. */
  readonly requireReady?: (caller: Caller) => Promise<void>;
  /** Returns the body of a 200 JSON response, or undefined if the handler has sent the response itself. */
  handle(exchange: Exchange): Promise<object | undefined>;
}

/** The place of an internal error. Nothing else about the error is logged, because its message could quote a fact. */
export interface LogEvent {
  readonly operation: string;
  readonly client: string;
}
