import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { VerifiedToken } from '../core/access/token-registry.ts';
import type { Clock } from '../core/time/clock.ts';
import { itemsOfLargestHolder, largestItemOfLargestHolder } from './largest-holder.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { markBodyBroken } from './request-body.ts';
import { isGone } from './response.ts';

export interface HttpConnection {
  /** Requests whose handler has not finished. */
  pending: number;
  /** The subject of the last authenticated request, or '' before the first. */
  subject: string;
  /** The token sent last and its digest, so that the digest is not computed for each request. */
  readonly verified: VerifiedToken;
  latestRequest: IncomingMessage | undefined;
  /** The response being written, or the last one written. */
  response: ServerResponse | undefined;
  /** Resolves when every response so far has been sent. */
  allSent: Promise<void>;
  /** The client sent bytes that are not HTTP, so nothing more is read. */
  failed: boolean;
}

/** Answers one request. Never rejects. */
type Respond = (request: IncomingMessage, response: ServerResponse, connection: HttpConnection) => Promise<void>;

/** Unread output above this size is checked against the limit, in bytes. */
const UNREAD_CHECK_BYTES = 64 * 1024;

/**
 * The open connections. Each is given one response at a time (R-HTTP-15): a client that sends many requests and reads nothing must
 * not make us hold all the responses. When a shared limit is reached, the subject that holds the most gives way.
 */
export class HttpConnections {
  readonly #clock: Clock;
  readonly #respond: Respond;
  /** Oldest first. */
  readonly #connections = new Map<Socket, HttpConnection>();

  constructor(clock: Clock, respond: Respond) {
    this.#clock = clock;
    this.#respond = respond;
  }

  add(socket: Socket): void {
    if (this.#connections.size >= CONNECTION_LIMITS.connections) this.#makeRoom();
    this.#connections.set(socket, {
      pending: 0,
      subject: '',
      verified: { token: '', digest: '' },
      latestRequest: undefined,
      response: undefined,
      allSent: Promise.resolve(),
      failed: false,
    });
    socket.once('close', () => this.#connections.delete(socket));
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (!connection || connection.pending >= CONNECTION_LIMITS.pendingRequests) {
      socket.destroy();
      return;
    }
    if (connection.failed) return;
    connection.pending += 1;
    connection.latestRequest = request;
    connection.allSent = this.#handleAfter(connection.allSent, connection, request, response);
  }

  /**
   * Closes a connection over which nothing more can be read. Earlier requests are still answered, within a time limit. The error is
   * reported as a refusal of the request whose body it is in, or by `sendError` if it is in none.
   */
  fail(socket: Socket, sendError: () => void): void {
    const connection = this.#connections.get(socket);
    if (connection?.failed) return;
    const { pending = 0, response, latestRequest } = connection ?? {};
    if (!connection || (pending === 0 && (!response || isSent(response)))) {
      sendError();
      socket.destroySoon();
      return;
    }
    connection.failed = true;
    const bodyIsBroken = latestRequest?.complete === false;
    // The response is an event stream, which would never end.
    if (pending === 0 && !bodyIsBroken && response?.writableEnded === false) {
      socket.destroy();
      return;
    }
    socket.pause();
    const timeout = this.#clock.after(CONNECTION_LIMITS.bodyMs, () => socket.destroy());
    socket.once('close', () => timeout[Symbol.dispose]());
    if (bodyIsBroken) markBodyBroken(latestRequest);
    void connection.allSent.then(() => {
      if (!bodyIsBroken) sendError();
      socket.destroySoon();
    });
  }

  closeIdle(): void {
    for (const [socket, { pending }] of this.#connections) if (pending === 0 && socket.writableLength === 0) socket.destroy();
  }

  async #handleAfter(
    previous: Promise<void>,
    connection: HttpConnection,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    await previous;
    const { socket } = request;
    if (!socket.writable) return;
    connection.response = response;
    await this.#respond(request, response, connection);
    connection.pending -= 1;
    if (socket.writableLength > UNREAD_CHECK_BYTES) this.#limitUnread();
    if (!isSent(response)) await new Promise<void>((resolve) => response.once('close', resolve));
  }

  #limitUnread(): void {
    let unread = 0;
    for (const socket of this.#connections.keys()) unread += socket.writableLength;
    if (unread <= CONNECTION_LIMITS.unreadTotalBytes) return;
    const largest = largestItemOfLargestHolder(
      this.#connections,
      ([, { subject }]) => subject,
      ([socket]) => socket.writableLength,
    );
    largest?.[0].destroy();
  }

  /** Closes a connection of the subject that has the most: an idle one if possible, otherwise its oldest. */
  #makeRoom(): void {
    const candidates = itemsOfLargestHolder(
      this.#connections,
      ([, { subject }]) => subject,
      () => 1,
    );
    const [socket] = candidates.find(([, { pending }]) => pending === 0) ?? candidates[0] ?? [];
    if (!socket) return;
    this.#connections.delete(socket);
    socket.destroy();
  }
}

const isSent = (response: ServerResponse): boolean => response.writableFinished || isGone(response);
