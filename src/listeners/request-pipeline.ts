import type { IncomingMessage, ServerResponse } from 'node:http';
import { asFailure, Failure } from '../contract/failure.ts';
import { isOperation } from '../contract/operations.ts';
import type { TokenRegistry } from '../core/access/token-registry.ts';
import type { Clock } from '../core/time/clock.ts';
import { type Guard, readBearerToken } from './guard.ts';
import type { HttpConnection } from './http-connections.ts';
import { healthResponse } from './info-routes.ts';
import { rejectBody } from './request-body.ts';
import { isDisconnected, sendFailure, sendJson } from './response.ts';
import type { LogEvent, Route } from './route.ts';
import type { WindowServer } from './window/window-server.ts';

interface Deps {
  readonly guard: Guard;
  readonly routes: readonly Route[];
  /** Undefined if the window's files have not been built. */
  readonly window?: WindowServer | undefined;
  readonly tokens: Pick<TokenRegistry, 'verify'>;
  /** Undefined for requests from other machines. */
  readonly prove?: ((challenge: string) => string) | undefined;
  readonly clock: Clock;
  readonly log: (event: LogEvent) => void;
}

interface RequestState {
  /** Written to the log if the request fails with an internal error. */
  readonly logEvent: { operation: string; client: string };
  /** Name and value of the Allow header for a 405 response. Empty for other responses. */
  readonly allow: string[];
}

/** Handles every request: checks host and origin, authenticates the caller, finds the route, and runs the route's handler. */
export class RequestPipeline {
  readonly #deps: Deps;
  readonly #findRoutes: (path: string) => RouteMatch | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#findRoutes = createRouter(deps.routes);
  }

  async respond(request: IncomingMessage, response: ServerResponse, connection: HttpConnection): Promise<void> {
    const state: RequestState = { logEvent: { operation: 'none', client: 'unknown' }, allow: [] };
    try {
      const body = await this.#run(request, response, connection, state);
      if (body !== undefined && !isDisconnected(response)) sendJson(response, 200, body);
    } catch (error) {
      const failure = asFailure(error);
      if (failure.code === 'internal') this.#deps.log(state.logEvent);
      if (!isDisconnected(response)) sendFailure(request, response, failure, this.#deps.clock, state.allow);
    }
  }

  /** Returns the response body, or undefined if the handler has sent the response itself. */
  async #run(
    request: IncomingMessage,
    response: ServerResponse,
    connection: HttpConnection,
    { logEvent, allow }: RequestState,
  ): Promise<string | undefined> {
    const { guard, tokens, prove, window } = this.#deps;
    const { rawHeaders, method = '' } = request;
    guard(rawHeaders);
    const [path, query] = splitTarget(request);
    if (window?.owns(path)) {
      Object.assign(logEvent, { operation: 'window', client: 'window' });
      await window.handle({ request, response, path, query, allow });
      return undefined;
    }
    if (path === '/healthz') {
      if (method !== 'GET') throw methodNotAllowed(['GET'], allow);
      rejectBody(request);
      return healthResponse(query, prove);
    }
    if (isDiscoveryProbe(path)) throw unknownPath();
    const token = readBearerToken(rawHeaders);
    const match = this.#findRoutes(path);
    const route = match?.methods.get(method);
    const caller = await tokens.verify(token, route?.transport ?? 'rest', connection.verified);
    connection.subject = caller.subject;
    // Stop if the client disconnected during verification. Handlers would wait for a 'close' event that was already emitted.
    if (isDisconnected(response)) return undefined;
    if (!match) throw unknownPath();
    if (!route) {
      for (const { requireReady } of match.methods.values()) await requireReady?.(caller);
      throw methodNotAllowed([...match.methods.keys()], allow);
    }
    if (route.requireReady) await route.requireReady(caller);
    if (method === 'GET' || method === 'DELETE') rejectBody(request);
    logEvent.client = caller.client;
    logEvent.operation = isOperation(match.parameter) ? match.parameter : route.operation;
    const result = await route.handle({
      request,
      response,
      caller,
      token,
      digest: connection.verified.digest,
      query,
      parameter: match.parameter,
    });
    return result && JSON.stringify(result);
  }
}

/**
 * Splits the request target into path and query. Clients that treat this server as a proxy send an absolute URL. The URL's host
 * must equal the Host header, which the guard has checked.
 */
function splitTarget({ url = '', headers }: IncomingMessage): readonly [path: string, query: string] {
  const origin = `http://${headers.host ?? ''}`;
  const target = url.startsWith(`${origin}/`) ? url.slice(origin.length) : url;
  const mark = target.indexOf('?');
  return mark === -1 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)];
}

/**
 * Whether the path is one at which MCP clients look for OAuth. These paths must return a plain 404, otherwise clients try to use
 * OAuth.
 */
const isDiscoveryProbe = (path: string): boolean => path === '/register' || path.startsWith('/.well-known/');

const unknownPath = (): Failure =>
  new Failure('not_found', 'Unknown path; send GET /api/v1/openapi.json for a list of all paths.');

function methodNotAllowed(methods: readonly string[], allow: string[]): Failure {
  const list = methods.join(', ');
  allow.push('Allow', list);
  return new Failure('method_not_allowed', `This path does not support the method; send ${list}.`);
}

interface RouteMatch {
  readonly methods: ReadonlyMap<string, Route>;
  readonly parameter: string;
}

const PARAMETER = /\{[^}]+\}/;
const PLACEHOLDER = '{}';

/**
 * Returns a function that finds the routes of a path. Paths are compared byte for byte, so a differently encoded path is not
 * found.
 */
function createRouter(routes: readonly Route[]): (path: string) => RouteMatch | undefined {
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
