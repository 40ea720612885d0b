import type { IncomingMessage, ServerResponse } from 'node:http';
import { Failure } from '../../contract/failure.ts';
import { type EventStream, openEventStream } from '../event-stream.ts';
import type { BodyReader } from '../request-body.ts';
import { endResponse, SECURITY_HEADERS, sendJson } from '../response.ts';
import type { Exchange, Route } from '../route.ts';
import type { StreamRegistry } from '../stream-registry.ts';
import { loadSdk, readBatch, readMessage, type RpcMessage, type Sdk } from './message.ts';
import { ProtocolError, type RpcResponse, rpcErrorResponse } from './rpc.ts';
import type { SessionRegistry } from './session-registry.ts';
import type { SendBeforeResponse, Session } from './session.ts';
import { stringifyMessage } from './tool-result.ts';

interface Deps {
  /** Path of the Streamable HTTP transport. The paths of the older HTTP+SSE transport are below this path. */
  readonly path: string;
  readonly transport: string;
  readonly sessions: SessionRegistry;
  readonly streams: StreamRegistry;
  readonly bodies: BodyReader;
}

/** Maximum unread bytes per stream: enough for a few of the longest results. */
const UNREAD_BYTES = 4 * 1024 * 1024;

/** Returns the routes of one MCP server, for the transports Streamable HTTP and HTTP+SSE (R-MCP-01). */
export const mcpRoutes = (deps: Deps): Route[] => [...streamableHttpRoutes(deps), ...sseRoutes(deps)];

/**
 * The Streamable HTTP transport. A POST request gets its response directly, and a GET request opens a stream of notifications.
 */
function streamableHttpRoutes({ path, transport, sessions, streams, bodies }: Deps): Route[] {
  return [
    route('POST', path, transport, async (exchange) => {
      const { request, response } = exchange;
      const sdk = await loadSdk();
      const body = await readBody(bodies, exchange);
      const single = Array.isArray(body) ? undefined : readMessage(body, sdk);
      if (single?.kind === 'invalid') return send(response, 400, single.response);
      if (single?.kind === 'request' && single.method === 'initialize') {
        // Open a new session, even if the request has the id of an old session.
        const session = await sessions.open(exchange, 'http');
        const [result] = await session.request([single]);
        return result && send(response, 200, result, ['Mcp-Session-Id', session.id]);
      }
      const session = findSession(sessions, exchange);
      requireVersion(request, sdk);
      const stream = new ResponseStream(streams, exchange, session);
      const responses = await session.request(messagesOf(single, body, session, sdk), stream.send);
      if (stream.isOpen) return stream.end(responses);
      if (responses[0] === undefined) return sendEmpty(response, 202);
      return send(response, 200, single ? responses[0] : responses);
    }),
    route('GET', path, transport, async (exchange) => {
      const session = findSession(sessions, exchange);
      requireVersion(exchange.request, await loadSdk());
      const lastEventId = Number(exchange.request.headers['last-event-id'] ?? NaN);
      const stream = openEventStream(streams, exchange, {
        unreadBytes: UNREAD_BYTES,
        onClose: (closed) => session.detachStream(closed),
      });
      session.attachStream(stream, ...(Number.isSafeInteger(lastEventId) ? [lastEventId] : []));
    }),
    route('DELETE', path, transport, async (exchange) => {
      await findSession(sessions, exchange).close();
      sendEmpty(exchange.response, 204);
    }),
  ];
}

/** The response to a POST request. It becomes an event stream if a message, such as progress, must be sent before the result. */
class ResponseStream {
  readonly #streams: StreamRegistry;
  readonly #exchange: Exchange;
  readonly #session: Session;
  #unavailable = false;
  #stream: EventStream | undefined;

  constructor(streams: StreamRegistry, exchange: Exchange, session: Session) {
    this.#streams = streams;
    this.#exchange = exchange;
    this.#session = session;
  }

  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  readonly send: SendBeforeResponse = (text) => {
    this.#stream ??= this.#open();
    this.#stream?.sendOrDrop(text, { event: 'message' });
    return this.isOpen;
  };

  end(responses: readonly RpcResponse[]): void {
    for (const response of responses) this.#stream?.send(stringifyMessage(response), { event: 'message' });
    this.#stream?.end();
  }

  #open(): EventStream | undefined {
    const { request, response } = this.#exchange;
    if (this.#unavailable || response.destroyed || !request.headers.accept?.includes('text/event-stream')) return undefined;
    try {
      return openEventStream(this.#streams, this.#exchange, {
        unreadBytes: UNREAD_BYTES,
        onClose: () => undefined,
        // Closing the session sends error responses to its pending requests, after which this stream ends.
        onTokenEnd: () => void this.#session.close(),
      });
    } catch {
      // The client has too many streams, so send the result as a plain response.
      this.#unavailable = true;
      return undefined;
    }
  }
}

/**
 * The HTTP+SSE transport, for older clients. All responses are sent on one event stream, and the session ends when that stream
 * ends.
 */
function sseRoutes({ path, transport, sessions, streams, bodies }: Deps): Route[] {
  return [
    route('GET', `${path}/sse`, transport, async (exchange) => {
      const session = await sessions.open(exchange, 'sse');
      try {
        const close = (): void => void session.close();
        const stream = openEventStream(streams, exchange, { unreadBytes: UNREAD_BYTES, onClose: close, onTokenEnd: close });
        stream.send(`${path}/sse/message?sessionId=${session.id}`, { event: 'endpoint' });
        session.attachStream(stream);
      } catch (error) {
        await session.close();
        throw error;
      }
    }),
    route('POST', `${path}/sse/message`, transport, async (exchange) => {
      const { response, query } = exchange;
      const sdk = await loadSdk();
      const body = await readBody(bodies, exchange);
      const session = sessions.find(new URLSearchParams(query).get('sessionId') ?? '', exchange, 'sse');
      const single = Array.isArray(body) ? undefined : readMessage(body, sdk);
      if (single?.kind === 'invalid') return send(response, 400, single.response);
      const messages = messagesOf(single, body, session, sdk);
      sendEmpty(response, 202);
      for (const message of messages) session.receive(message, (result) => result && session.sendOnStream(result));
    }),
  ];
}

const messagesOf = (single: RpcMessage | undefined, body: unknown, session: Session, sdk: Sdk): readonly RpcMessage[] =>
  single ? [single] : readBatch(body as unknown[], session.version, sdk);

/** Creates a route that sends protocol errors as JSON-RPC. Other failures are sent in the same format as on all other paths. */
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

async function readBody(bodies: BodyReader, { request, response, caller }: Exchange): Promise<unknown> {
  try {
    return await bodies.readJson(request, response, caller.subject);
  } catch (error) {
    // A complete body that is not valid JSON is a protocol error. Other failures are errors of the HTTP request.
    if (error instanceof Failure && error.code === 'invalid_input' && request.complete) {
      throw new ProtocolError('parse_error', error.message);
    }
    throw error;
  }
}

function findSession(sessions: SessionRegistry, exchange: Exchange): Session {
  const id = exchange.request.headers['mcp-session-id'];
  if (typeof id === 'string') return sessions.find(id, exchange, 'http');
  throw new ProtocolError(
    'malformed',
    'The Mcp-Session-Id header is missing; send `initialize`, then send the Mcp-Session-Id of its response with every request.',
  );
}

function requireVersion({ headers }: IncomingMessage, { SUPPORTED_PROTOCOL_VERSIONS }: Sdk): void {
  const version = headers['mcp-protocol-version'];
  if (version === undefined || SUPPORTED_PROTOCOL_VERSIONS.some((supported) => supported === version)) return;
  const list = SUPPORTED_PROTOCOL_VERSIONS.join(', ');
  throw new ProtocolError(
    'malformed',
    `The MCP-Protocol-Version header has an unsupported version; send the negotiated version, one of ${list}.`,
  );
}

function send(
  response: ServerResponse,
  status: number,
  message: RpcResponse | readonly RpcResponse[],
  headers: readonly string[] = [],
): void {
  if (response.destroyed) return;
  const body = 'jsonrpc' in message ? stringifyMessage(message) : `[${message.map(stringifyMessage).join(',')}]`;
  sendJson(response, status, body, headers);
}

function sendEmpty(response: ServerResponse, status: 202 | 204): void {
  if (response.destroyed) return;
  response.writeHead(status, [...SECURITY_HEADERS, ...(status === 202 ? ['Content-Length', '0'] : [])]);
  endResponse(response);
}
