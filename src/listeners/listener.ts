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
import { type ListenAddress, parseListenAddress, formatListenAddress } from './address.ts';
import { ChangeEvents } from './change-events.ts';
import { embeddingsRoute } from './embeddings.ts';
import { publishEndpoint, type PublishedEndpoint, publisherPid } from './endpoint.ts';
import { exportRoute } from './export-route.ts';
import { toHttpFailure } from './failure-responses.ts';
import { createGuard } from './guard.ts';
import { importRoute } from './import-route.ts';
import { infoRoutes } from './info-routes.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import type { LogEvent } from './log-event.ts';
import { createMcpServers } from './mcp/agents.ts';
import { ownerRoute } from './owner-route.ts';
import { describePortHolder } from './port.ts';
import { BodyReader } from './request-body.ts';
import { RequestPipeline } from './request-pipeline.ts';
import { SECURITY_HEADERS } from './response.ts';
import { restRoutes } from './rest-routes.ts';
import { createRouter } from './router.ts';
import { StreamRegistry } from './stream-registry.ts';
import { windowLinkRoute } from './window/link.ts';
import { WindowServer } from './window/window-server.ts';

export interface ListenerDeps {
  readonly perform: Perform;
  /** Packs that are tools too. */
  readonly catalogue?: Pick<Catalogue, 'all'> | undefined;
  readonly tokens: TokenRegistry;
  readonly onChange: MemoryStore['onChange'];
  /** Calls back when the key came or went. */
  readonly onKeyChange?: ((hear: () => void) => Disposable) | undefined;
  /** Where `endpoint.json` and `owner-token` go. */
  readonly folder: string;
  /** As HELMDECK_ADDR says it. */
  readonly address?: string | undefined;
  /** Names with their port by which a program in front of this one is reached; headless mode only. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Where the built window lies; without it there is none in a browser. */
  readonly windowFolder?: string | undefined;
  readonly version: string;
  readonly clock: Clock;
  readonly log?: ((trouble: LogEvent) => void) | undefined;
}

export interface Listener extends AsyncDisposable {
  readonly url: string;
  /** A link that opens the window in a browser, once; undefined where there is none. */
  windowLink(): string | undefined;
  /** Browsers that have the window open; undefined where there is none. */
  readonly windowSessions: WindowSessionPort | undefined;
  /** Ends streams, lets what is under way come to its end for a moment, and takes `endpoint.json` away. */
  close(): Promise<void>;
}

/**
 * Asked for like this, because an import makes Node look at everything the module exports, and that loads its whole HTTP
 * client, which the program has no use for: 14 ms of every start, and memory for good.
 */
const { createServer } = process.getBuiltinModule('node:http');

/** The one HTTP server: loopback only, one port, every request through one front (R-HTTP). */
export async function startListener(deps: ListenerDeps): Promise<Listener> {
  const {
    perform,
    catalogue,
    tokens,
    onChange,
    onKeyChange: onKey,
    folder,
    allowedHosts,
    windowFolder: pages,
    version,
    clock,
    log = () => undefined,
  } = deps;
  const asked = parseListenAddress(deps.address ?? DEFAULT_ADDRESS);
  const server = createServer({
    maxHeaderSize: CONNECTION_LIMITS.headerBytes,
    headersTimeout: CONNECTION_LIMITS.headersMs,
    // An import may take as long as it needs; bodies have limits of their own.
    requestTimeout: 0,
    keepAliveTimeout: CONNECTION_LIMITS.idleMs,
    connectionsCheckingInterval: NEVER_MS,
    // The guard says it, in our own words.
    requireHostHeader: false,
  });
  checkWhileConnected(server);
  // Beyond what there may be: one that makes room for another is still counted when that one comes.
  server.maxConnections = CONNECTION_LIMITS.connections + BACKLOG;
  // Node would drop the rest without a word, and with it what the guard looks for. Their bytes are limited.
  server.maxHeadersCount = 0;
  await listen(server, asked, folder);
  const { port } = server.address() as AddressInfo;
  const url = `http://${formatListenAddress({ ...asked, port })}`;
  const published = await publishOr(
    server,
    () => publishEndpoint(folder, { url, token: tokens.ownerToken(), now: clock.now() }),
    folder,
  );
  const bodies = new BodyReader(clock);
  const streams = new StreamRegistry(clock, tokens);
  const events = new ChangeEvents(streams, onChange);
  const agents = createMcpServers({ perform, catalogue, tokens, onChange, bodies, streams, clock, version, log });
  const window =
    pages === undefined ? undefined : new WindowServer({ perform, bodies, clock, onChange, onKey, folder: pages, log });
  const windowLink = (): string | undefined => window?.createLink(url);
  const front = new RequestPipeline({
    window,
    guard: createGuard(port, allowedHosts),
    findRoutes: createRouter([
      ownerRoute({ perform, bodies }),
      ...restRoutes({ perform, bodies }),
      exportRoute({ perform, clock, streams }),
      importRoute({ perform, clock, streams }),
      embeddingsRoute({ perform, bodies }),
      events.route,
      ...agents.routes,
      ...infoRoutes(version),
      windowLinkRoute(windowLink, bodies),
    ]),
    tokens,
    prove: published.prove,
    clock,
    log,
  });
  attach(server, front);

  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= closeAll());
  return { url, windowLink, windowSessions: window?.sessions, close, [Symbol.asyncDispose]: close };

  async function closeAll(): Promise<void> {
    // First of all: nobody shall look for us here any more.
    published[Symbol.dispose]();
    events[Symbol.dispose]();
    window?.[Symbol.dispose]();
    agents[Symbol.dispose]();
    streams[Symbol.dispose]();
    await shut(server, front);
  }
}

/** As many may come at once. */
const BACKLOG = 511;

/** The longest that a timer takes. */
const NEVER_MS = 2 ** 31 - 1;

/**
 * Node looks for slow connections at every interval, also where there are none, and begins anew with another interval when it
 * hears that it listens. So nothing wakes the machine while nobody is connected.
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
      if (connected === 0 && server.listening) checkEvery(NEVER_MS);
    });
  });
}

async function listen(server: Server, address: ListenAddress, folder: string): Promise<void> {
  try {
    server.listen({ ...address, exclusive: true });
    await once(server, 'listening');
  } catch (cause) {
    throw new Failure('unavailable', whyNot(errorCodeOf(cause), address, folder), { cause });
  }
}

function whyNot(code: string, address: ListenAddress, folder: string): string {
  const where = formatListenAddress(address);
  switch (code) {
    case 'EADDRINUSE':
      return `${where} is taken by ${describePortHolder(address, publisherPid(folder, address.port))}; end it, or set HELMDECK_ADDR to another port.`;
    case 'EACCES':
      return `This user may not listen on ${where}; set HELMDECK_ADDR to a port from 1024 on.`;
    default:
      return `This machine cannot listen on ${where}; set HELMDECK_ADDR to 127.0.0.1 with a port.`;
  }
}

async function publishOr(server: Server, write: () => PublishedEndpoint, folder: string): Promise<PublishedEndpoint> {
  try {
    return write();
  } catch (cause) {
    server.close();
    const told = diskFailureOf(cause, folder)?.told;
    throw (
      told ??
      new Failure('unavailable', 'endpoint.json cannot be written into the data folder; check what stands in its place.', {
        cause,
      })
    );
  }
}

function attach(server: Server, front: RequestPipeline): void {
  const receive = (...[request, response]: Parameters<RequestPipeline['handle']>): void => void front.handle(request, response);
  // What a client expects is asked for, or refused, when its turn has come.
  server.on('request', receive).on('checkContinue', receive).on('checkExpectation', receive);
  server.on('connection', (socket: Socket) => front.addConnection(socket));
  // Room for whoever knocks next.
  server.on('drop', () => server.closeIdleConnections());
  server.on('clientError', (error, socket) => turnAway(front, error, socket));
}

/**
 * What is no HTTP, or comes too slowly. Nothing may be written into the answer to an earlier question, and nothing to a browser that
 * connects in advance: it would take that for the answer to what it asks at this moment.
 */
function turnAway(front: RequestPipeline, error: Error, duplex: Duplex): void {
  const socket = duplex as Socket;
  if (!socket.writable || socket.bytesRead === 0 || errorCodeOf(error) === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  front.failConnection(socket, () => {
    const { headers, body } = toHttpFailure(new Failure('invalid_input', explanation(errorCodeOf(error))));
    const lines = [
      ...SECURITY_HEADERS,
      'Content-Type',
      'application/json',
      'Content-Length',
      `${Buffer.byteLength(body)}`,
      ...headers,
    ];
    const spelled = lines.map((part, index) => (index % 2 === 0 ? `${part}: ` : `${part}\r\n`)).join('');
    socket.write(`HTTP/1.1 400 Bad Request\r\n${spelled}Connection: close\r\n\r\n${body}`);
  });
}

function explanation(code: string): string {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return `The headers are longer than ${CONNECTION_LIMITS.headerBytes / 1024} KiB; send fewer.`;
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return `The headers did not arrive within ${CONNECTION_LIMITS.headersMs / 1000} s; send them without a pause.`;
    default:
      return 'This is not an HTTP/1.1 request, or its method is not known; use an HTTP library to write it.';
  }
}

const POLL_MS = 10;

async function shut(server: Server, front: RequestPipeline): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  const deadline = performance.now() + CONNECTION_LIMITS.closingMs;
  do {
    front.closeIdle();
    if (await Promise.race([closed, wait(POLL_MS)])) break;
  } while (performance.now() < deadline);
  server.closeAllConnections();
  await closed;
}
