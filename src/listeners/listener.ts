import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { Failure } from '../contract/failure.ts';
import { DEFAULT_ADDRESS } from '../contract/limits.ts';
import type { TokenRegistry } from '../core/access/token-registry.ts';
import { diskFailureOf } from '../core/file/disk-failure.ts';
import { errorCodeOf } from '../core/file/files.ts';
import type { WindowSessionPort } from '../core/operations/memory.ts';
import type { Perform } from '../core/operations/perform.ts';
import type { Catalogue } from '../core/packs/catalogue.ts';
import type { MemoryStore } from '../core/store/store.ts';
import type { Clock } from '../core/time/clock.ts';
import { formatListenAddress, parseListenAddress } from './address.ts';
import { ChangeEvents } from './change-events.ts';
import { publishEndpoint, type PublishedEndpoint } from './endpoint.ts';
import { exportRoute } from './export-route.ts';
import { toHttpFailure } from './failure-responses.ts';
import { createGuard } from './guard.ts';
import { HttpConnections } from './http-connections.ts';
import { importRoute } from './import-route.ts';
import { infoRoutes } from './info-routes.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { createMcpServers } from './mcp/mcp-servers.ts';
import { listenOn } from './port.ts';
import { BodyReader } from './request-body.ts';
import { RequestPipeline } from './request-pipeline.ts';
import { jsonHeaders } from './response.ts';
import { embeddingsRoute, ownerRoute, restRoutes } from './rest-routes.ts';
import type { LogEvent } from './route.ts';
import { StreamRegistry } from './stream-registry.ts';
import { windowLinkRoute, WindowServer } from './window/window-server.ts';

export interface ListenerDeps {
  readonly perform: Perform;
  /** Packs offered as MCP tools. */
  readonly catalogue?: Pick<Catalogue, 'all'> | undefined;
  readonly tokens: TokenRegistry;
  readonly onChange: MemoryStore['onChange'];
  /** Subscribes to the key becoming available or unavailable. */
  readonly onKeyChange?: ((listener: () => void) => Disposable) | undefined;
  /** The folder of `endpoint.json` and `owner-token`. */
  readonly folder: string;
  /** The value of HELMDECK_ADDR. */
  readonly address?: string | undefined;
  /** Host names with port under which a proxy reaches this program; headless mode only. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** The folder of the built window. Without it, there is no window in a browser. */
  readonly windowFolder?: string | undefined;
  readonly version: string;
  readonly clock: Clock;
  readonly log?: ((event: LogEvent) => void) | undefined;
}

export interface Listener extends AsyncDisposable {
  readonly url: string;
  /** Creates a link that opens the window in a browser once. Returns undefined if there is no built window. */
  windowLink(): string | undefined;
  /** The window's browser sessions. Undefined if there is no built window. */
  readonly windowSessions: WindowSessionPort | undefined;
  /** Deletes `endpoint.json`, ends streams, and waits briefly for pending requests. */
  close(): Promise<void>;
}

/**
 * Not imported: an import makes Node evaluate every export of the module, which loads the HTTP client too. That would add 14 ms to
 * each start, and memory.
 */
const { createServer } = process.getBuiltinModule('node:http');

/** Starts the one HTTP server, on loopback only (R-HTTP-01). */
export async function startListener(deps: ListenerDeps): Promise<Listener> {
  const { perform, catalogue, tokens, onChange, onKeyChange, folder, allowedHosts, windowFolder, version, clock } = deps;
  const { log = () => undefined } = deps;
  const address = parseListenAddress(deps.address ?? DEFAULT_ADDRESS);
  const server = createServer({
    maxHeaderSize: CONNECTION_LIMITS.headerBytes,
    headersTimeout: CONNECTION_LIMITS.headersMs,
    // Request bodies have their own time limits, and an import may take long.
    requestTimeout: 0,
    keepAliveTimeout: CONNECTION_LIMITS.idleMs,
    connectionsCheckingInterval: MAX_TIMER_MS,
    // The guard checks the Host header and explains what is wrong with it.
    requireHostHeader: false,
  });
  checkWhileConnected(server);
  // Higher than our own limit, because Node still counts a connection that is being closed to make room.
  server.maxConnections = CONNECTION_LIMITS.connections + BACKLOG;
  // By default Node drops surplus headers silently, and the guard would not see them. Their total size is limited.
  server.maxHeadersCount = 0;
  await listenOn(server, address, folder);
  const { port } = server.address() as AddressInfo;
  const url = `http://${formatListenAddress({ ...address, port })}`;
  const published = publishOrClose(server, folder, { url, token: tokens.ownerToken(), now: clock.now() });
  const bodies = new BodyReader(clock);
  const streams = new StreamRegistry(clock, tokens);
  const events = new ChangeEvents(streams, onChange);
  const mcp = createMcpServers({ perform, catalogue, tokens, onChange, bodies, streams, clock, version, log });
  const window =
    windowFolder === undefined
      ? undefined
      : new WindowServer({ perform, bodies, clock, onChange, onKeyChange, folder: windowFolder, log });
  const windowLink = (): string | undefined => window?.createLink(url);
  const pipeline = new RequestPipeline({
    window,
    guard: createGuard(port, allowedHosts),
    routes: [
      ownerRoute({ perform, bodies }),
      ...restRoutes({ perform, bodies }),
      exportRoute({ perform, clock, streams }),
      importRoute({ perform, clock, streams }),
      embeddingsRoute({ perform, bodies }),
      events.route,
      ...mcp.routes,
      ...infoRoutes(version),
      windowLinkRoute(windowLink, bodies),
    ],
    tokens,
    prove: published.prove,
    clock,
    log,
  });
  const connections = new HttpConnections(clock, (...request) => pipeline.respond(...request));
  serveConnections(server, connections);

  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= closeAll());
  return { url, windowLink, windowSessions: window?.sessions, close, [Symbol.asyncDispose]: close };

  async function closeAll(): Promise<void> {
    // First, so that no other program looks for us here any more.
    published[Symbol.dispose]();
    events[Symbol.dispose]();
    window?.[Symbol.dispose]();
    mcp[Symbol.dispose]();
    streams[Symbol.dispose]();
    await closeServer(server, connections);
  }
}

/** Node's default length of the accept queue. */
const BACKLOG = 511;

const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Node checks for slow connections at a fixed interval, even without connections, and reads the interval again when it emits
 * `listening`. This avoids waking the machine while no client is connected.
 */
function checkWhileConnected(server: Server): void {
  let connected = 0;
  const checkEvery = (connectionsCheckingInterval: number): void => {
    Object.assign(server, { connectionsCheckingInterval }).emit('listening');
  };
  server.on('connection', (socket: Socket) => {
    connected += 1;
    if (connected === 1) checkEvery(CONNECTION_LIMITS.checkMs);
    socket.once('close', () => {
      connected -= 1;
      if (connected === 0 && server.listening) checkEvery(MAX_TIMER_MS);
    });
  });
}

function publishOrClose(server: Server, folder: string, endpoint: Parameters<typeof publishEndpoint>[1]): PublishedEndpoint {
  try {
    return publishEndpoint(folder, endpoint);
  } catch (cause) {
    server.close();
    const message = 'endpoint.json cannot be written to the data folder; check the folder and any file of that name.';
    throw diskFailureOf(cause, folder)?.failure ?? new Failure('unavailable', message, { cause });
  }
}

function serveConnections(server: Server, connections: HttpConnections): void {
  const handle = (...[request, response]: Parameters<HttpConnections['handle']>): void => connections.handle(request, response);
  // The body reader sends `100 Continue`, or refuses the Expect header, when it gets to the request.
  server.on('request', handle).on('checkContinue', handle).on('checkExpectation', handle);
  server.on('connection', (socket: Socket) => connections.add(socket));
  // Node has just refused a connection above `maxConnections`.
  server.on('drop', () => server.closeIdleConnections());
  server.on('clientError', (error, socket) => rejectClient(connections, error, socket));
}

/**
 * Answers bytes that are not HTTP, and headers that arrive too slowly. A connection without any bytes is closed silently: browsers
 * connect in advance, and would take the error for the response to their next request.
 */
function rejectClient(connections: HttpConnections, error: Error, duplex: Duplex): void {
  const socket = duplex as Socket;
  if (!socket.writable || socket.bytesRead === 0 || errorCodeOf(error) === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  connections.fail(socket, () => {
    const { headers, body } = toHttpFailure(new Failure('invalid_input', describeClientError(errorCodeOf(error))));
    const lines = jsonHeaders(body, [...headers, 'Connection', 'close']);
    const text = lines.map((part, index) => (index % 2 === 0 ? `${part}: ` : `${part}\r\n`)).join('');
    socket.write(`HTTP/1.1 400 Bad Request\r\n${text}\r\n${body}`);
  });
}

function describeClientError(code: string): string {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return `The headers are longer than ${CONNECTION_LIMITS.headerBytes / 1024} KiB; send fewer.`;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return `The headers did not arrive within ${CONNECTION_LIMITS.headersMs / 1000} s; send them without pauses.`;
    default:
      return 'This is not an HTTP/1.1 request, or its method is not known; use an HTTP library to send it.';
  }
}

const POLL_MS = 10;

async function closeServer(server: Server, connections: HttpConnections): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  const deadline = performance.now() + CONNECTION_LIMITS.closingMs;
  do {
    connections.closeIdle();
    if (await Promise.race([closed, wait(POLL_MS)])) break;
  } while (performance.now() < deadline);
  server.closeAllConnections();
  await closed;
}
