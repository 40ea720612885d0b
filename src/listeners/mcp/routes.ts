import type { IncomingMessage, ServerResponse } from 'node:http';
import { Failure } from '../../contract/failure.ts';
import { EventStream } from '../event-stream.ts';
import type { BodyReader } from '../request-body.ts';
import { SECURITY_HEADERS, sendJson, endResponse } from '../response.ts';
import type { Exchange, Route } from '../router.ts';
import type { StreamRegistry } from '../stream-registry.ts';
import { readBatch, readMessage } from './message.ts';
import { ProtocolError, rpcErrorResponse } from './rpc.ts';
import { loadSdk, type Sdk } from './sdk.ts';
import type { SessionRegistry } from './session-registry.ts';
import type { Session, SendBeforeResponse } from './session.ts';

interface Deps {
  /** Where the server is reached over streamable HTTP; HTTP with SSE is below it. */
  readonly path: string;
  readonly transport: string;
  readonly sessions: SessionRegistry;
  readonly streams: StreamRegistry;
  readonly bodies: BodyReader;
}

/** Both ways over HTTP to one MCP server (R-MCP-01). */
export const mcpRoutes = (deps: Deps): Route[] => [...streamable(deps), ...withSse(deps)];

/** Streamable HTTP: what is posted is answered at once; a stream tells what nobody asked for. */
function streamable({ path, transport, sessions, streams, bodies }: Deps): Route[] {
  return [
    route('POST', path, transport, async (exchange) => {
      const { request, response } = exchange;
      const sdk = await loadSdk();
      const body = await read(bodies, exchange);
      const alone = Array.isArray(body) ? undefined : readMessage(body, sdk);
      if (alone?.kind === 'broken') return send(response, 400, alone.answer);
      if (alone?.kind === 'request' && alone.method === 'initialize') {
        // Also within a session: whoever begins anew gets a new one.
        const session = await sessions.open(exchange, 'http');
        const [greeting] = await session.request([alone]);
        return greeting && send(response, 200, greeting, ['Mcp-Session-Id', session.id]);
      }
      const session = sessionOf(sessions, exchange);
      requireVersion(request, sdk);
      const aside = new Aside(streams, exchange, session);
      const answers = await session.request(alone ? [alone] : readBatch(body as unknown[], session.version, sdk), aside.tell);
      if (aside.stream) return aside.end(answers);
      if (answers[0] === undefined) return sendNothing(response, 202);
      return send(response, 200, alone ? answers[0] : answers);
    }),
    route('GET', path, transport, async (exchange) => {
      const session = sessionOf(sessions, exchange);
      requireVersion(exchange.request, await loadSdk());
      const last = Number(exchange.request.headers['last-event-id'] ?? NaN);
      const stream = follow(streams, exchange, (ended) => session.detachStream(ended));
      session.attachStream(stream, ...(Number.isSafeInteger(last) ? [last] : []));
    }),
    route('DELETE', path, transport, async (exchange) => {
      await sessionOf(sessions, exchange).close();
      sendNothing(exchange.response, 204);
    }),
  ];
}

/** What is told of a request before it is answered. The first word of it makes a stream of the answer. */
class Aside {
  readonly #streams: StreamRegistry;
  readonly #exchange: Exchange;
  readonly #session: Session;
  #refused = false;
  stream: EventStream | undefined;

  constructor(streams: StreamRegistry, exchange: Exchange, session: Session) {
    this.#streams = streams;
    this.#exchange = exchange;
    this.#session = session;
  }

  readonly tell: SendBeforeResponse = (text) => {
    this.stream ??= this.#open();
    this.stream?.sendIfRoom('message', text);
    return this.stream !== undefined;
  };

  end(answers: readonly object[]): void {
    for (const one of answers) this.stream?.send('message', JSON.stringify(one));
    this.stream?.end();
  }

  #open(): EventStream | undefined {
    const { request, response } = this.#exchange;
    if (this.#refused || response.destroyed || !request.headers.accept?.includes('text/event-stream')) return undefined;
    try {
      // Its token ends before the answer is there: then that it does is the answer.
      return follow(
        this.#streams,
        this.#exchange,
        () => undefined,
        () => void this.#session.close(),
      );
    } catch {
      // There are as many streams as may be; the answer comes without.
      this.#refused = true;
      return undefined;
    }
  }
}

/** HTTP with SSE, as older clients speak it: one stream for every answer, and a path to post to. The session ends with its stream. */
function withSse({ path, transport, sessions, streams, bodies }: Deps): Route[] {
  return [
    route('GET', `${path}/sse`, transport, async (exchange) => {
      const session = await sessions.open(exchange, 'sse');
      try {
        const close = (): void => void session.close();
        const stream = follow(streams, exchange, close, close);
        stream.send('endpoint', `${path}/sse/message?sessionId=${session.id}`);
        session.attachStream(stream);
      } catch (error) {
        await session.close();
        throw error;
      }
    }),
    route('POST', `${path}/sse/message`, transport, async (exchange) => {
      const { response, query } = exchange;
      const sdk = await loadSdk();
      const body = await read(bodies, exchange);
      const session = sessions.find(new URLSearchParams(query).get('sessionId') ?? '', exchange, 'sse');
      const alone = Array.isArray(body) ? undefined : readMessage(body, sdk);
      if (alone?.kind === 'broken') return send(response, 400, alone.answer);
      const messages = alone ? [alone] : readBatch(body as unknown[], session.version, sdk);
      sendNothing(response, 202);
      for (const message of messages) session.receive(message, (reply) => reply && session.sendOnStream(reply));
    }),
  ];
}

/** What the protocol refuses is told in JSON-RPC, all else as on every other path. */
const route = (
  method: Route['method'],
  path: string,
  transport: string,
  handle: (exchange: Exchange) => Promise<void>,
): Route => ({
  method,
  path,
  transport,
  operation: transport,
  async handle(exchange) {
    try {
      await handle(exchange);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      send(exchange.response, error.httpStatus, rpcErrorResponse(null, error));
    }
    return undefined;
  },
});

async function read(bodies: BodyReader, { request, response, caller }: Exchange): Promise<unknown> {
  try {
    return await bodies.readJson(request, response, caller.subject);
  } catch (error) {
    // What has come whole and is no JSON; the rest is the connection's affair.
    if (error instanceof Failure && error.code === 'invalid_input' && request.complete) {
      throw new ProtocolError('unparsable', error.message);
    }
    throw error;
  }
}

function sessionOf(sessions: SessionRegistry, exchange: Exchange): Session {
  const id = exchange.request.headers['mcp-session-id'];
  if (typeof id === 'string') return sessions.find(id, exchange, 'http');
  throw new ProtocolError(
    'malformed',
    'There is no session yet; send initialize first, and then its Mcp-Session-Id with every request.',
  );
}

function requireVersion({ headers }: IncomingMessage, { SUPPORTED_PROTOCOL_VERSIONS }: Sdk): void {
  const version = headers['mcp-protocol-version'];
  if (version === undefined || SUPPORTED_PROTOCOL_VERSIONS.some((known) => known === version)) return;
  throw new ProtocolError(
    'malformed',
    `This protocol version is not spoken here; send MCP-Protocol-Version ${SUPPORTED_PROTOCOL_VERSIONS.join(', ')}, as agreed on.`,
  );
}

/** A stream that ends with its token, with the program, or when its reader goes. */
function follow(
  streams: StreamRegistry,
  exchange: Exchange,
  closed: (stream: EventStream) => void,
  stop = (stream: EventStream) => stream.end(),
): EventStream {
  const { response } = exchange;
  const held = streams.open(exchange, { end: () => stop(stream), keepAlive: () => stream.keepAlive() });
  const stream = new EventStream(response);
  const over = (): void => {
    held[Symbol.dispose]();
    closed(stream);
  };
  response.once('close', over);
  // They may be gone already.
  if (response.destroyed || response.socket?.destroyed) over();
  return stream;
}

const send = (response: ServerResponse, status: number, body: object, more: readonly string[] = []): void => {
  if (!response.destroyed) sendJson(response, status, JSON.stringify(body), more);
};

function sendNothing(response: ServerResponse, status: 202 | 204): void {
  if (response.destroyed) return;
  response.writeHead(status, [...SECURITY_HEADERS, ...(status === 202 ? ['Content-Length', '0'] : [])]);
  endResponse(response);
}
