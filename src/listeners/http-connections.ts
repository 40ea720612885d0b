import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { VerifiedToken } from '../core/access/token-registry.ts';
import type { Clock } from '../core/time/clock.ts';
import { itemsOfLargestHolder, largestItemOfLargestHolder } from './largest-holder.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import { markBodyBroken } from './request-body.ts';
import { isDisconnected } from './response.ts';
import { addressGroup } from './team/pending-connections.ts';

export interface HttpConnection {
  /** Number of requests whose handler has not finished. */
  pending: number;
  /** The subject of the last authenticated request, or '' before the first such request. */
  subject: string;
  /** The last verified token with its digest, so that the digest is not computed again for every request. */
  readonly verified: VerifiedToken;
  latestRequest: IncomingMessage | undefined;
  /** The response that is being written, or the last response if none is being written. */
  response: ServerResponse | undefined;
  /** Resolves when all responses to the requests received so far have been sent. */
  allSent: Promise<void>;
  /** Whether the client sent bytes that are not HTTP. If so, nothing more is read from the connection. */
  failed: boolean;
}

interface Responder {
  /** Handles one request. The promise never rejects. */
  respond(request: IncomingMessage, response: ServerResponse, connection: HttpConnection): Promise<void>;
}

/** Unread bytes of one connection above which the limit on all unread bytes is checked. */
const UNREAD_CHECK_BYTES = 64 * 1024;

/**
 * The open connections. Requests on one connection are handled one after the other (R-HTTP-15), so that a client that sends many
 * requests but reads no responses cannot fill the RAM with responses. At a shared limit, a connection of the subject with the
 * largest share is closed.
 */
export class HttpConnections {
  readonly #clock: Clock;
  readonly #pipeline: Responder;
  /** The open connections, oldest first. */
  readonly #connections = new Map<Socket, HttpConnection>();

  /** Maximum number of connections of one address that have not sent a valid token yet. */
  readonly #anonymousPerAddress: number;

  constructor(clock: Clock, pipeline: Responder, anonymousPerAddress = Infinity) {
    this.#clock = clock;
    this.#pipeline = pipeline;
    this.#anonymousPerAddress = anonymousPerAddress;
  }

  add(socket: Socket): void {
    if (this.#anonymousPerAddress < Infinity) this.#limitAnonymous(addressGroup(socket.remoteAddress));
    if (this.#connections.size >= CONNECTION_LIMITS.connections) this.#limitConnections();
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
   * Closes a connection from which no more data can be read. Responses to earlier requests are still sent, within a time limit.
   * If the error is in a request body, that request is refused; otherwise `sendError` is called to report the error.
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
    // Do not wait for this response, because it is an event stream, which would not end.
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
    await this.#pipeline.respond(request, response, connection);
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

  /** Closes the oldest connection of an address without a valid token, if the address has too many of them. */
  #limitAnonymous(address: string): void {
    const anonymous = [...this.#connections].filter(
      ([socket, { subject }]) => subject === '' && addressGroup(socket.remoteAddress) === address,
    );
    const [oldest] = anonymous.length >= this.#anonymousPerAddress ? anonymous : [];
    if (!oldest) return;
    this.#connections.delete(oldest[0]);
    oldest[0].destroy();
  }

  /** Closes a connection of the subject with the most connections: an idle connection if possible, otherwise the oldest. */
  #limitConnections(): void {
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

const isSent = (response: ServerResponse): boolean => response.writableFinished || isDisconnected(response);
