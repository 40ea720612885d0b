import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { asFailure, Failure } from '../contract/failure.ts';
import { isOperation } from '../contract/operations.ts';
import type { VerifiedToken, TokenRegistry } from '../core/access/token-registry.ts';
import type { Clock } from '../core/time/clock.ts';
import { readBearerToken } from './bearer-token.ts';
import type { Guard } from './guard.ts';
import { healthResponse } from './health.ts';
import { CONNECTION_LIMITS } from './limits.ts';
import type { LogEvent } from './log-event.ts';
import { markBodyBroken, rejectBody } from './request-body.ts';
import { sendJson, sendFailure } from './response.ts';
import type { RouteMatch } from './router.ts';
import type { WindowServer } from './window/window-server.ts';

interface Deps {
  readonly guard: Guard;
  readonly findRoutes: (path: string) => RouteMatch | undefined;
  /** Absent where there is no built window. */
  readonly window?: WindowServer | undefined;
  readonly tokens: Pick<TokenRegistry, 'verify'>;
  readonly prove: (challenge: string) => string;
  readonly clock: Clock;
  readonly log: (trouble: LogEvent) => void;
}

interface Connection {
  /** Questions that it waits for. */
  waiting: number;
  /** The answer that is being given: the next question is looked at when this one is taken. */
  answering: ServerResponse | undefined;
  /** Questions that came meanwhile. */
  readonly queue: [IncomingMessage, ServerResponse][];
  /** Of whoever asked last and was known; nobody's until then. */
  subject: string;
  readonly sent: VerifiedToken;
  /** Nothing more can be read from it: what is still to be done when all is answered that was asked before. */
  last: (() => void) | undefined;
}

const NOBODY = '';

/** What lies in wait for a reader is looked at where it is more than this, in bytes. */
const SMALL = 64 * 1024;

/**
 * What every request goes through, in this order: is it from this machine, who is it, is there such a place. Only then is a
 * body looked at. Whatever goes wrong is answered, and in one way.
 */
export class RequestPipeline {
  readonly #deps: Deps;
  /** The oldest first. */
  readonly #connections = new Map<Socket, Connection>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  addConnection(socket: Socket): void {
    if (this.#connections.size >= CONNECTION_LIMITS.connections) this.#makeRoom();
    this.#connections.set(socket, {
      waiting: 0,
      answering: undefined,
      queue: [],
      subject: NOBODY,
      sent: { token: '', digest: '' },
      last: undefined,
    });
    socket.once('close', () => this.#connections.delete(socket));
  }

  /**
   * Nothing that still comes over this connection can be read. What was asked before is answered, the question whose body it is in
   * with a refusal; what belongs to no question is told by `tell`. Then it ends, and in any case soon.
   */
  failConnection(socket: Socket, tell: () => void): void {
    const connection = this.#connections.get(socket);
    // What comes behind what could not be read cannot be read either.
    if (connection?.last) return;
    const { waiting = 0, answering } = connection ?? {};
    if (!connection || (waiting === 0 && (!answering || over(answering)))) {
      tell();
      socket.destroySoon();
      return;
    }
    if (waiting === 0 && answering?.writableEnded === false) {
      // A stream is not waited for; but what was refused is being read for a moment, so that its answer is heard.
      if (answering.req.complete) socket.destroy();
      else socket.pause();
      return;
    }
    // Nothing that is still sent can be used, so nothing more is read.
    socket.pause();
    const late = this.#deps.clock.after(CONNECTION_LIMITS.bodyMs, () => socket.destroy());
    socket.once('close', () => late[Symbol.dispose]());
    const broken = unfinishedOf(connection);
    connection.last = () => {
      if (!broken) tell();
      socket.destroySoon();
    };
    if (broken) markBodyBroken(broken);
    if (waiting === 0) answering?.once('close', connection.last);
  }

  /** Ends the connections that wait for nothing. */
  closeIdle(): void {
    for (const [socket, { waiting }] of this.#connections) if (waiting === 0 && socket.writableLength === 0) socket.destroy();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (!connection || connection.waiting >= CONNECTION_LIMITS.pendingRequests) {
      // No program of good will asks so much before it hears an answer.
      socket.destroy();
      return;
    }
    // What has come too late was told so, or will be.
    if (connection.last) return;
    connection.waiting += 1;
    const { answering, queue } = connection;
    if (answering && !over(answering)) {
      queue.push([request, response]);
      if (queue.length === 1) answering.once('close', () => this.#next(connection));
    } else await this.#give(connection, request, response);
  }

  /**
   * One after the other, and each when the one before was taken: answers to one who asks much at once and reads nothing would
   * be held all at the same time.
   */
  #next(connection: Connection): void {
    const [question] = connection.queue.splice(0, 1);
    if (!question) return;
    const [request, response] = question;
    if (!request.socket.writable) return;
    if (connection.queue.length > 0) response.once('close', () => this.#next(connection));
    void this.#give(connection, request, response);
  }

  async #give(connection: Connection, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    connection.answering = response;
    await this.#serve(request, response);
    connection.waiting -= 1;
    if (connection.waiting === 0 && connection.last) {
      if (over(response)) connection.last();
      else response.once('close', connection.last);
    }
    if (socket.writableLength > SMALL) this.#limitUnread();
  }

  /** Whoever leaves the most answers untaken loses the connection that holds the most of them. */
  #limitUnread(): void {
    const held = [...this.#connections].map(([socket, { subject }]) => ({ socket, subject, bytes: socket.writableLength }));
    const sums = new Map<string, number>();
    let all = 0;
    for (const { subject, bytes } of held) {
      all += bytes;
      sums.set(subject, (sums.get(subject) ?? 0) + bytes);
    }
    if (all <= CONNECTION_LIMITS.unreadTotalBytes) return;
    const most = Math.max(...sums.values());
    const theirs = held.filter(({ subject }) => sums.get(subject) === most);
    theirs.toSorted((one, other) => other.bytes - one.bytes)[0]?.socket.destroy();
  }

  /**
   * Whoever has the most connections gives one up, at best one that waits for nothing, else the oldest: a program that holds
   * all there are, with a token or without, keeps nobody else out.
   */
  #makeRoom(): void {
    const counts = new Map<string, number>();
    for (const { subject } of this.#connections.values()) counts.set(subject, (counts.get(subject) ?? 0) + 1);
    const most = Math.max(...counts.values());
    let oldest: Socket | undefined;
    for (const [socket, { subject, waiting }] of this.#connections) {
      if (counts.get(subject) !== most) continue;
      oldest ??= socket;
      if (waiting > 0) continue;
      oldest = socket;
      break;
    }
    if (!oldest) return;
    this.#connections.delete(oldest);
    oldest.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const trouble = { operation: 'none', client: 'unknown' };
    const allow: string[] = [];
    try {
      const result = await this.#answerTo(request, response, trouble, allow);
      if (result !== undefined && !gone(response)) sendJson(response, 200, result);
    } catch (error) {
      const failure = asFailure(error);
      if (failure.code === 'internal') this.#deps.log(trouble);
      if (!gone(response)) sendFailure(request, response, failure, this.#deps.clock, allow);
    }
  }

  async #answerTo(
    request: IncomingMessage,
    response: ServerResponse,
    trouble: { operation: string; client: string },
    allow: string[],
  ): Promise<string | undefined> {
    const { guard, findRoutes: find, tokens, prove, window } = this.#deps;
    const { rawHeaders, method = '' } = request;
    guard(rawHeaders);
    const url = targetOf(request);
    const mark = url.indexOf('?');
    const path = mark === -1 ? url : url.slice(0, mark);
    const query = mark === -1 ? '' : url.slice(mark + 1);
    if (window?.owns(path)) {
      trouble.client = 'window';
      trouble.operation = 'window';
      await window.handle({ request, response, path, query, allow });
      return undefined;
    }
    if (path === '/healthz') {
      if (method !== 'GET') throw wrongMethod(['GET'], allow);
      rejectBody(request);
      return healthResponse(query, prove);
    }
    if (isProbe(path)) throw unknownPath();
    const token = readBearerToken(rawHeaders);
    const place = find(path);
    const route = place?.methods.get(method);
    const connection = this.#connections.get(request.socket);
    const caller = await tokens.verify(token, route?.transport ?? 'rest', connection?.sent);
    if (connection) connection.subject = caller.subject;
    // Who has left meanwhile would never be heard to leave.
    if (gone(response)) return undefined;
    if (!place) throw unknownPath();
    if (!route) {
      for (const { requireReady } of place.methods.values()) await requireReady?.(caller);
      throw wrongMethod([...place.methods.keys()], allow);
    }
    if (route.requireReady) await route.requireReady(caller);
    if (method === 'GET' || method === 'DELETE') rejectBody(request);
    trouble.client = caller.client;
    trouble.operation = isOperation(place.parameter) ? place.parameter : route.operation;
    const result = await route.handle({ request, response, caller, token, query, parameter: place.parameter });
    return result && JSON.stringify(result);
  }
}

/** The question whose body has not come whole: the last that was asked, or none. */
const unfinishedOf = ({ queue, answering }: Connection): IncomingMessage | undefined =>
  [...queue.map(([request]) => request), ...(answering ? [answering.req] : [])].find(({ complete }) => !complete);

/** Taken, or given up. */
const over = (response: ServerResponse): boolean => response.writableFinished || gone(response);

/** Nobody is there any more to hear it. */
const gone = (response: ServerResponse): boolean => response.destroyed || response.socket?.destroyed === true;

/** As programs that take us for a proxy spell it, too: with the address in front, which must be the one that the guard let pass. */
function targetOf({ url = '', headers }: IncomingMessage): string {
  if (url.startsWith('/')) return url;
  const address = `http://${headers.host ?? ''}`;
  return url.startsWith(`${address}/`) ? url.slice(address.length) : url;
}

/** Where programs ask for OAuth. They take anything but a plain 404 for a sign that there is some. */
const isProbe = (path: string): boolean => path === '/register' || path.startsWith('/.well-known/');

const unknownPath = (): Failure =>
  new Failure('not_found', 'There is nothing at this path; GET /api/v1/openapi.json lists what there is.');

function wrongMethod(methods: readonly string[], allow: string[]): Failure {
  const list = methods.join(', ');
  allow.push('Allow', list);
  return new Failure('method_not_allowed', `This path does not know the method; send ${list}.`);
}
