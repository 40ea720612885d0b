import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { Failure } from '../contract/failure.ts';
import { DEFAULT_ADDRESS } from '../contract/names.ts';
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
  readonly catalogue?: Pick<Catalogue, 'all'> | undefined;
  readonly tokens: TokenRegistry;
  readonly onChange: MemoryStore['onChange'];
  /**
   * Returns whether the memory can be read, as far as its last access showed. If absent, each request of the search server runs
   * the operation `status`.
   */
  readonly isReadable?: (() => boolean) | undefined;
  /** Adds a listener that is called when the master key becomes available or unavailable. */
  readonly onKeyChange?: ((listener: () => void) => Disposable) | undefined;
  /** The data folder, to which `endpoint.json` and `owner-token` are written. */
  readonly folder: string;
  /** The value of HELMDECK_ADDR. */
  readonly address?: string | undefined;
  /** Further accepted Host headers, for a proxy in front of this program. Used only in headless mode. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** The folder that contains the built files of the window. If undefined, the window cannot be opened in a browser. */
  readonly windowFolder?: string | undefined;
  readonly version: string;
  readonly clock: Clock;
  readonly log?: ((event: LogEvent) => void) | undefined;
}

export interface Listener extends AsyncDisposable {
  readonly url: string;
  /**
   * Creates a single-use link that opens the window in a browser. Returns undefined if the window's files have not been built.
   */
  windowLink(): string | undefined;
  /** The window's browser sessions. Undefined if the window's files have not been built. */
  readonly windowSessions: WindowSessionPort | undefined;
  /** Deletes `endpoint.json`, ends streams, and waits briefly for pending requests. */
  close(): Promise<void>;
}

/**
 * `node:http` is loaded without `import`, because an import would make Node load its HTTP client too. That would add 14 ms to
 * each startup, and use more RAM.
 */
const { createServer } = process.getBuiltinModule('node:http');

/** Starts the HTTP server. It listens only on a loopback address (R-HTTP-01). */
export async function startListener(deps: ListenerDeps): Promise<Listener> {
  const { perform, catalogue, tokens, onChange, onKeyChange, isReadable, folder, allowedHosts, windowFolder, version, clock } =
    deps;
  const { log = () => undefined } = deps;
  const address = parseListenAddress(deps.address ?? DEFAULT_ADDRESS);
  const server = createServer({
    maxHeaderSize: CONNECTION_LIMITS.headerBytes,
    headersTimeout: CONNECTION_LIMITS.headersMs,
    // 0 means no limit. Request bodies have their own time limits, and an import can take long.
    requestTimeout: 0,
    keepAliveTimeout: CONNECTION_LIMITS.idleMs,
    connectionsCheckingInterval: MAX_TIMER_MS,
    // The guard checks the Host header instead, because its error message is more helpful than Node's.
    requireHostHeader: false,
  });
  checkWhileConnected(server);
  // Higher than this program's own limit, because Node also counts connections that this program is already closing.
  server.maxConnections = CONNECTION_LIMITS.connections + BACKLOG;
  // 0 means no limit. With a limit, Node would silently drop excess headers before the guard sees them. `maxHeaderSize` still
  // applies.
  server.maxHeadersCount = 0;
  await listenOn(server, address, folder);
  const { port } = server.address() as AddressInfo;
  const url = `http://${formatListenAddress({ ...address, port })}`;
  const published = publishOrClose(server, folder, { url, token: tokens.ownerToken(), now: clock.now() });
  const bodies = new BodyReader(clock);
  const streams = new StreamRegistry(clock, tokens);
  const events = new ChangeEvents(streams, onChange);
  const mcp = createMcpServers({ perform, catalogue, isReadable, tokens, onChange, bodies, streams, clock, version, log });
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
    // Delete `endpoint.json` first, so that no other program connects while the server closes.
    published[Symbol.dispose]();
    events[Symbol.dispose]();
    window?.[Symbol.dispose]();
    mcp[Symbol.dispose]();
    streams[Symbol.dispose]();
    await closeServer(server, connections);
  }
}

/** Node's default length of the queue of connections that are not yet accepted. */
const BACKLOG = 511;

const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Makes Node check for slow connections only while a client is connected. Otherwise the checks would wake the machine for
 * nothing. Node has no method to change the interval, but reads it again when `listening` is emitted.
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
    const message =
      'The file endpoint.json cannot be written to the data folder; check the permissions of the folder and of the file.';
    throw diskFailureOf(cause, folder)?.failure ?? new Failure('unavailable', message, { cause });
  }
}

function serveConnections(server: Server, connections: HttpConnections): void {
  const handle = (...[request, response]: Parameters<HttpConnections['handle']>): void => connections.handle(request, response);
  // Requests with an Expect header are handled like all others. The body reader later sends `100 Continue` or refuses the header.
  server.on('request', handle).on('checkContinue', handle).on('checkExpectation', handle);
  server.on('connection', (socket: Socket) => connections.add(socket));
  // Node refused a connection above `maxConnections`, so close idle ones to allow new ones.
  server.on('drop', () => server.closeIdleConnections());
  server.on('clientError', (error, socket) => rejectClient(connections, error, socket));
}

/**
 * Sends a 400 response to a client that sends invalid HTTP, or headers too slowly. A connection on which no bytes arrived is
 * closed without a response: browsers open connections in advance, and would treat the error as the response to their next
 * request.
 */
function rejectClient(connections: HttpConnections, error: Error, duplex: Duplex): void {
  const socket = duplex as Socket;
  if (!socket.writable || socket.bytesRead === 0 || errorCodeOf(error) === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  connections.fail(socket, () => {
    const { headers, body } = toHttpFailure(new Failure('invalid_input', describeClientError(errorCodeOf(error))));
    const lines = jsonHeaders(Buffer.byteLength(body), [...headers, 'Connection', 'close']);
    const text = lines.map((part, index) => (index % 2 === 0 ? `${part}: ` : `${part}\r\n`)).join('');
    socket.write(`HTTP/1.1 400 Bad Request\r\n${text}\r\n${body}`);
  });
}

function describeClientError(code: string): string {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return `The headers are longer than ${CONNECTION_LIMITS.headerBytes / 1024} KiB; send fewer or shorter headers.`;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return `The headers did not arrive within ${CONNECTION_LIMITS.headersMs / 1000} s; send them without pauses.`;
    default:
      return 'This is not an HTTP/1.1 request, or its method is unknown; use an HTTP library to send requests.';
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
