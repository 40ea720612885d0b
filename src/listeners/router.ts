import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../core/access/caller.ts';

/** A request that has passed the guard and said who it is from. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Read from the token, and from nothing else in the request (R-ISO-02). */
  readonly caller: Caller;
  readonly token: string;
  /** What stands behind the question mark, as it was sent. */
  readonly query: string;
  /** What stands in place of `{name}` in the path, as it was sent. */
  readonly parameter: string;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Exact, or with one `{name}` as its last part or the one before. */
  readonly path: string;
  /** The door, as callers and their writes bear it. */
  readonly transport: string;
  /** What failed here, for the log. */
  readonly operation: string;
  /** Throws where nothing at this path can be answered at present, whatever the method. */
  readonly requireReady?: (caller: Caller) => Promise<void>;
  /** The answer, which goes out as JSON; undefined when the handler has answered itself. */
  handle(exchange: Exchange): Promise<object | undefined>;
}

export interface RouteMatch {
  readonly methods: ReadonlyMap<string, Route>;
  readonly parameter: string;
}

const PARAMETER = /\{[^}]+\}/;
const ANY = '{}';

/** Finds the place of a path, byte for byte: another spelling of it is another place, and unknown. */
export function createRouter(routes: readonly Route[]): (path: string) => RouteMatch | undefined {
  const exact = new Map<string, Map<string, Route>>();
  const named = new Map<string, Map<string, Route>>();
  for (const route of routes) {
    const places = PARAMETER.test(route.path) ? named : exact;
    const path = route.path.replace(PARAMETER, ANY);
    const methods = places.get(path) ?? new Map<string, Route>();
    places.set(path, methods.set(route.method, route));
  }
  return (path) => {
    const found = exact.get(path);
    if (found) return { methods: found, parameter: '' };
    const last = path.lastIndexOf('/');
    return placeOf(path, last, path.length) ?? placeOf(path, path.lastIndexOf('/', last - 1), last);
  };

  function placeOf(path: string, slash: number, end: number): RouteMatch | undefined {
    const name = path.slice(slash + 1, end);
    const methods = name === '' ? undefined : named.get(path.slice(0, slash + 1) + ANY + path.slice(end));
    return methods && { methods, parameter: name };
  }
}
