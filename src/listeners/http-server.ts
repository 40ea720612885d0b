import { once } from 'node:events';
import type { Server, ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { Failure } from '../contract/failure.ts';
import { errorCodeOf } from '../core/file/files.ts';
import { toHttpFailure } from './failure-responses.ts';
import type { HttpConnections } from './http-connections.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { jsonHeaders } from './response.ts';

const MAX_TIMER_MS = 2 ** 31 - 1;

/** Node's default length of the queue of connections that are not yet accepted. */
const BACKLOG = 511;

/** Options of every HTTP server of this program. */
export const SERVER_OPTIONS = {
  maxHeaderSize: CONNECTION_LIMITS.headerBytes,
  headersTimeout: CONNECTION_LIMITS.headersMs,
  // 0 means no limit. Request bodies have their own time limits, and an import can take long.
  requestTimeout: 0,
  keepAliveTimeout: CONNECTION_LIMITS.idleMs,
  connectionsCheckingInterval: MAX_TIMER_MS,
  // The guard checks the Host header instead, because its error message is more helpful than Node's.
  requireHostHeader: false,
} as const satisfies ServerOptions;

/** Applies the limits of every HTTP server of this program, and returns the server. */
export function prepareServer<T extends Server>(server: T): T {
  checkWhileConnected(server);
  // Higher than this program's own limit, because Node also counts connections that this program is already closing.
  server.maxConnections = CONNECTION_LIMITS.connections + BACKLOG;
  // 0 means no limit. With a limit, Node would silently drop excess headers before the guard sees them. `maxHeaderSize` still
  // applies.
  server.maxHeadersCount = 0;
  return server;
}

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

/** Passes the requests of a server to `connections`. With TLS, a connection begins after its handshake. */
export function serveConnections(
  server: Server,
  connections: HttpConnections,
  begins: 'connection' | 'secureConnection' = 'connection',
): void {
  const handle = (...[request, response]: Parameters<HttpConnections['handle']>): void => connections.handle(request, response);
  // Requests with an Expect header are handled like all others. The body reader later sends `100 Continue` or refuses the header.
  server.on('request', handle).on('checkContinue', handle).on('checkExpectation', handle);
  server.on(begins, (socket: Socket) => connections.add(socket));
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
    socket.write(badRequest(describeClientError(errorCodeOf(error))));
  });
}

/** Returns a complete 400 response for a connection that will be closed, for use without Node's HTTP server. */
export function badRequest(message: string): string {
  const { headers, body } = toHttpFailure(new Failure('invalid_input', message));
  const lines = jsonHeaders(Buffer.byteLength(body), [...headers, 'Connection', 'close']);
  const text = lines.map((part, index) => (index % 2 === 0 ? `${part}: ` : `${part}\r\n`)).join('');
  return `HTTP/1.1 400 Bad Request\r\n${text}\r\n${body}`;
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

/** Closes a server. Waits briefly for pending requests. */
export async function closeServer(server: Server, connections: HttpConnections): Promise<void> {
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
