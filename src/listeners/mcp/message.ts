import type { InitializeRequest, JSONRPCRequest, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { ProtocolError, rpcErrorResponse, type RpcErrorResponse } from './rpc.ts';

const load = async () => {
  const [{ Server }, { InitializeRequestSchema, isJSONRPCRequest, SUPPORTED_PROTOCOL_VERSIONS }] = await Promise.all([
    import('@modelcontextprotocol/sdk/server/index.js'),
    import('@modelcontextprotocol/sdk/types.js'),
  ]);
  return { Server, InitializeRequestSchema, isJSONRPCRequest, SUPPORTED_PROTOCOL_VERSIONS };
};

export type Sdk = Awaited<ReturnType<typeof load>>;

let loaded: Promise<Sdk> | undefined;

/** Loads the MCP SDK on first use, to keep startup fast. */
export const loadSdk = (): Promise<Sdk> => (loaded ??= load());

type Params = NonNullable<JSONRPCRequest['params']>;

interface RpcRequest {
  readonly kind: 'request';
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params | undefined;
}

interface RpcNotification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: Params | undefined;
}

/** A response from the client. It is ignored, because this server does not send requests to clients. */
interface ClientResponse {
  readonly kind: 'response';
}

interface InvalidMessage {
  readonly kind: 'invalid';
  readonly response: RpcErrorResponse;
}

export type RpcMessage = RpcRequest | RpcNotification | ClientResponse | InvalidMessage;

const MAX_BATCH = 100;

/** The protocol versions that support JSON-RPC batches. Later versions do not support them. */
const VERSIONS_WITH_BATCHES: ReadonlySet<string> = new Set(['2024-10-07', '2024-11-05', '2025-03-26']);

export function readBatch(body: readonly unknown[], version: string | undefined, sdk: Sdk): RpcMessage[] {
  if (version === undefined || !VERSIONS_WITH_BATCHES.has(version)) {
    throw new ProtocolError('malformed', 'This protocol version does not support batches; send one JSON-RPC message at a time.');
  }
  if (body.length === 0 || body.length > MAX_BATCH) {
    throw new ProtocolError('malformed', `A batch must have 1 to ${MAX_BATCH} messages; split a larger batch.`);
  }
  const messages = body.map((value) => readMessage(value, sdk));
  if (messages.some((message) => message.kind === 'request' && message.method === 'initialize')) {
    throw new ProtocolError('malformed', '`initialize` cannot be part of a batch; send it as a single message.');
  }
  return messages;
}

/**
 * Validates a message before it is passed to the SDK. Otherwise the SDK would silently drop a message that it does not recognize,
 * and the client would wait forever.
 */
export function readMessage(value: unknown, sdk: Sdk): RpcMessage {
  if (!isObject(value) || value['jsonrpc'] !== '2.0') {
    return invalid(
      null,
      'malformed',
      'This is not a JSON-RPC 2.0 message; send an object with `jsonrpc`, `id`, `method` and `params`.',
    );
  }
  const { id, method } = value;
  if (typeof method !== 'string') return readResponse(value);
  if (value['params'] !== undefined && !isObject(value['params'])) {
    return invalid(
      isId(id) ? id : null,
      'invalid_params',
      '`params` must be a JSON object; send an object, or leave `params` out.',
    );
  }
  const params = value['params'] && withoutTask(value['params']);
  if (id === undefined) return { kind: 'notification', method, params };
  if (!isId(id)) return invalid(null, 'malformed', '`id` must be a string or a number; send an id with every request.');
  if (params && '_meta' in params && !sdk.isJSONRPCRequest({ jsonrpc: '2.0', id: 1, method, params })) {
    return invalid(id, 'invalid_params', '`params._meta` is not valid; send `progressToken` as a string or an integer.');
  }
  if (method === 'initialize' && !isInitialize(params, sdk)) {
    const message =
      '`initialize` needs `protocolVersion`, `capabilities`, and `clientInfo` with `name` and `version`; send all of them.';
    return invalid(id, 'invalid_params', message);
  }
  return { kind: 'request', id, method, params };
}

/**
 * Removes the `task` field, which asks to run the request as a task. This server does not support tasks, and the SDK would refuse
 * the request.
 */
function withoutTask(params: Params): Params {
  if (!('task' in params)) return params;
  const { task: _task, ...rest } = params;
  return rest;
}

function readResponse(value: Record<string, unknown>): RpcMessage {
  if ('result' in value || 'error' in value) return { kind: 'response' };
  const id = isId(value['id']) ? value['id'] : null;
  return invalid(id, 'malformed', 'The message has no `method`; send the name of the method as a string.');
}

const isInitialize = (params: Params | undefined, sdk: Sdk): params is InitializeRequest['params'] =>
  sdk.InitializeRequestSchema.safeParse({ method: 'initialize', params }).success;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isId = (id: unknown): id is RequestId => typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id));

const invalid = (id: RequestId | null, kind: 'malformed' | 'invalid_params', message: string): InvalidMessage => ({
  kind: 'invalid',
  response: rpcErrorResponse(id, new ProtocolError(kind, message)),
});
