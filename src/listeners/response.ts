import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Failure } from '../contract/failure.ts';
import type { Clock } from '../core/time/clock.ts';
import { toHttpFailure } from './failure-responses.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { bodyFailureOf, hasBody } from './request-body.ts';

/** Sent with every response (R-HTTP-10): caches must not store it, and browsers must not guess its type. */
export const SECURITY_HEADERS = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'] as const;

export function sendJson(response: ServerResponse, status: number, body: string, headers: readonly string[] = []): void {
  response.writeHead(status, jsonHeaders(body, headers));
  endResponse(response, body);
}

/** Ends a response. The socket timeout disconnects a client that does not read it; each byte read restarts the timeout. */
export function endResponse(response: ServerResponse, body: string | Buffer = ''): void {
  response.end(body);
  // At its first timeout Node counts the bytes flushed so far as progress and waits once more, hence half the time.
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
    // A truncated response must not look complete.
    response.destroy();
    return;
  }
  const { status, headers, body } = toHttpFailure(failure);
  const all = [...headers, ...more];
  if (request.complete || !hasBody(request)) sendJson(response, status, body, all);
  else {
    response.writeHead(status, jsonHeaders(body, [...all, 'Connection', 'close']));
    response.write(body);
    drainThenEnd(request, response, clock);
  }
}

export const jsonHeaders = (body: string, more: readonly string[]): string[] => [
  ...SECURITY_HEADERS,
  'Content-Type',
  'application/json',
  'Content-Length',
  `${Buffer.byteLength(body)}`,
  ...more,
];

/**
 * Discards the rest of the request body before the connection closes: closing at once would reset it, and the client would see the
 * reset instead of the response. Time and bytes are limited, so that a client cannot keep this thread busy.
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
  // A broken body never ends, and its connection is no longer read.
  if (!bodyFailureOf(request)) request.on('data', discard).resume();
}

/** True once the client has disconnected. */
export const isGone = (response: ServerResponse): boolean => response.destroyed || response.socket?.destroyed === true;

/** Aborts when the client disconnects. Has no effect once the response is sent. */
export function abortOnClose(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  if (isGone(response)) controller.abort();
  return controller.signal;
}
