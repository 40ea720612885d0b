import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Failure } from '../contract/failure.ts';
import type { Clock } from '../core/time/clock.ts';
import { toHttpFailure } from './failure-responses.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { bodyFailureOf, hasBody } from './request-body.ts';

/** Headers of every response (R-HTTP-10). They forbid caches to store the response, and browsers to guess its type. */
export const SECURITY_HEADERS = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'] as const;

export function sendJson(response: ServerResponse, status: number, body: string, headers: readonly string[] = []): void {
  const bytes = Buffer.byteLength(body);
  response.writeHead(status, jsonHeaders(bytes, headers));
  // For ASCII, both encodings give the same bytes, but Node writes Latin-1 with fewer copies.
  endResponse(response, body, bytes === body.length ? 'latin1' : 'utf8');
}

/**
 * Ends a response. A client that does not read the response is disconnected by the socket timeout, which restarts whenever data
 * is read.
 */
export function endResponse(response: ServerResponse, body: string | Buffer = '', encoding: 'latin1' | 'utf8' = 'utf8'): void {
  response.end(body, encoding);
  // Half the time limit, because Node treats earlier writes as progress when the timeout first expires, and waits a second time.
  if (response.writableLength > 0) response.socket?.setTimeout(CONNECTION_LIMITS.progressMs / 2);
}

export function sendFailure(
  request: IncomingMessage,
  response: ServerResponse,
  failure: Failure,
  clock: Clock,
  more: readonly string[] = [],
): void {
  if (response.headersSent) {
    // Part of the response is already sent. Close the connection, so that the client notices the incomplete response.
    response.destroy();
    return;
  }
  const { status, headers, body } = toHttpFailure(failure);
  const all = [...headers, ...more];
  if (request.complete || !hasBody(request)) sendJson(response, status, body, all);
  else {
    response.writeHead(status, jsonHeaders(Buffer.byteLength(body), [...all, 'Connection', 'close']));
    response.write(body);
    drainThenEnd(request, response, clock);
  }
}

export const jsonHeaders = (bytes: number, more: readonly string[]): string[] => [
  ...SECURITY_HEADERS,
  'Content-Type',
  'application/json',
  'Content-Length',
  `${bytes}`,
  ...more,
];

/**
 * Reads and discards the rest of the request body, then ends the response. Closing the connection immediately would reset it, and
 * the client would see the reset instead of the response. Time and bytes are limited, so that a client cannot keep the server
 * busy.
 */
function drainThenEnd(request: IncomingMessage, response: ServerResponse, clock: Clock): void {
  const { socket } = response;
  const maxBytesRead = (socket?.bytesRead ?? 0) + CONNECTION_LIMITS.lingerBytes;
  const discard = (): void => {
    if (socket && socket.bytesRead > maxBytesRead) request.off('data', discard).pause();
  };
  const end = (): void => {
    timeout[Symbol.dispose]();
    endResponse(response);
  };
  const timeout = clock.after(CONNECTION_LIMITS.lingerMs, end);
  request.once('end', end).once('close', end);
  // A body that already failed is not discarded, because no more data is read from its connection.
  if (!bodyFailureOf(request)) request.on('data', discard).resume();
}

export const isDisconnected = (response: ServerResponse): boolean => response.destroyed || response.socket?.destroyed === true;

/** Returns a signal that aborts when the client disconnects before the response has been sent. */
export function abortOnClose(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  if (isDisconnected(response)) controller.abort();
  return controller.signal;
}
