import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Failure } from '../contract/failure.ts';
import type { Clock } from '../core/time/clock.ts';
import { toHttpFailure } from './failure-responses.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { hasBody, bodyFailureOf } from './request-body.ts';

/** On every answer (R-HTTP-10): what is in it is nobody else's to keep, and no browser's to take for something else. */
export const SECURITY_HEADERS = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'] as const;

const JSON_TYPE = 'application/json';

/** Head and body in one write. */
export function sendJson(response: ServerResponse, status: number, body: string, more: readonly string[] = []): void {
  response.writeHead(status, headersOf(body, more));
  endResponse(response, body);
}

/** Whoever does not take their answer may not leave it with us for ever. Time starts anew with every byte they take. */
export function endResponse(response: ServerResponse, last: string | Buffer = ''): void {
  response.end(last);
  // Node looks twice: what was taken at once counts as progress the first time.
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
    // Half of an answer is out: it must not look like a whole one.
    response.destroy();
    return;
  }
  const { status, headers, body } = toHttpFailure(failure);
  const all = [...headers, ...more];
  if (unread(request)) turnAway(request, response, status, headersOf(body, [...all, 'Connection', 'close']), body, clock);
  else sendJson(response, status, body, all);
}

const headersOf = (body: string, more: readonly string[]): string[] => [
  ...SECURITY_HEADERS,
  'Content-Type',
  JSON_TYPE,
  'Content-Length',
  `${Buffer.byteLength(body)}`,
  ...more,
];

/** A body is on its way that nobody will read. */
const unread = (request: IncomingMessage): boolean => !request.complete && hasBody(request);

/**
 * Closing at once would reset a connection that still brings a body, and its sender would see the reset and not the answer.
 * So the answer goes out whole, and the connection ends when the body does, or soon. Reading stops at `LIMITS.lingerBytes`, or a
 * sender could keep this thread busy for as long as it lasts.
 */
function turnAway(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  headers: string[],
  body: string,
  clock: Clock,
): void {
  response.writeHead(status, headers);
  response.write(body);
  const { socket } = response;
  const most = (socket?.bytesRead ?? 0) + CONNECTION_LIMITS.lingerBytes;
  const discard = (): void => {
    if (socket && socket.bytesRead > most) request.off('data', discard).pause();
  };
  const leave = (): void => {
    late[Symbol.dispose]();
    endResponse(response);
  };
  const late = clock.after(CONNECTION_LIMITS.lingerMs, leave);
  request.once('end', leave).once('close', leave);
  // A broken body never ends, and its connection is not read any more.
  if (!bodyFailureOf(request)) request.on('data', discard).resume();
}
