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

export interface RouteMatch {
  readonly methods: ReadonlyMap<string, Route>;
  readonly parameter: string;
}

const PARAMETER = /\{[^}]+\}/;
const PLACEHOLDER = '{}';

/** Matches paths byte for byte, so a differently encoded path is unknown. */
export function createRouter(routes: readonly Route[]): (path: string) => RouteMatch | undefined {
  const exact = new Map<string, Map<string, Route>>();
  const parameterized = new Map<string, Map<string, Route>>();
  for (const route of routes) {
    const table = PARAMETER.test(route.path) ? parameterized : exact;
    const path = route.path.replace(PARAMETER, PLACEHOLDER);
    const methods = table.get(path) ?? new Map<string, Route>();
    table.set(path, methods.set(route.method, route));
  }
  return (path) => {
    const methods = exact.get(path);
    if (methods) return { methods, parameter: '' };
    const last = path.lastIndexOf('/');
    return matchSegment(path, last, path.length) ?? matchSegment(path, path.lastIndexOf('/', last - 1), last);
  };

  function matchSegment(path: string, slash: number, end: number): RouteMatch | undefined {
    const parameter = path.slice(slash + 1, end);
    if (parameter === '') return undefined;
    const methods = parameterized.get(path.slice(0, slash + 1) + PLACEHOLDER + path.slice(end));
    return methods && { methods, parameter };
  }
}
