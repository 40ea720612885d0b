import type { InitializeRequest, JSONRPCRequest, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { ProtocolError, rpcErrorResponse, type RpcErrorResponse } from './rpc.ts';
import type { Sdk } from './sdk.ts';

type Params = NonNullable<JSONRPCRequest['params']>;

interface Called {
  readonly kind: 'request';
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params | undefined;
}

interface Told {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: Params | undefined;
}

/** An answer to a question that this server never asks. */
interface Answered {
  readonly kind: 'answer';
}

interface Broken {
  readonly kind: 'broken';
  readonly answer: RpcErrorResponse;
}

export type RpcMessage = Called | Told | Answered | Broken;

/** Messages in one body. More are no use to a client, and each is work before any of them is answered. */
const MOST_IN_A_BATCH = 100;

/** Protocol versions in which one body may hold several messages; later ones took that back. */
const BATCHING: ReadonlySet<string> = new Set(['2024-10-07', '2024-11-05', '2025-03-26']);

/** What a body holds: one message, or a batch of them where the protocol of the session knows batches. */
export function readBatch(body: readonly unknown[], version: string | undefined, sdk: Sdk): RpcMessage[] {
  if (version === undefined || !BATCHING.has(version)) {
    throw new ProtocolError('malformed', 'This protocol version knows no batches; send one JSON-RPC message at a time.');
  }
  if (body.length === 0 || body.length > MOST_IN_A_BATCH) {
    throw new ProtocolError('malformed', `A batch holds 1 to ${MOST_IN_A_BATCH} messages; send it in parts.`);
  }
  const messages = body.map((value) => readMessage(value, sdk));
  if (messages.some((message) => message.kind === 'request' && message.method === 'initialize')) {
    throw new ProtocolError('malformed', 'initialize stands alone; send it first and by itself.');
  }
  return messages;
}

/**
 * The SDK drops what it does not recognise, and whoever sent it waits for ever. So nothing is handed to it that it could not
 * answer: what is broken is refused here, by the SDK's own schemas where they are the rule.
 */
export function readMessage(value: unknown, sdk: Sdk): RpcMessage {
  if (!isObject(value) || value['jsonrpc'] !== '2.0') {
    return broken(null, 'malformed', 'This is not a JSON-RPC 2.0 message; send an object with jsonrpc, id, method and params.');
  }
  const { id, method } = value;
  if (typeof method !== 'string') return readAnswer(value);
  if (value['params'] !== undefined && !isObject(value['params'])) {
    return broken(isId(id) ? id : null, 'unfit', 'params must be a JSON object; send it so, or leave it out.');
  }
  const params = value['params'] && atOnce(value['params']);
  if (id === undefined) return { kind: 'notification', method, params };
  if (!isId(id)) return broken(null, 'malformed', 'id must be text or a number; a request that is to be answered needs one.');
  if (params && '_meta' in params && !sdk.isJSONRPCRequest({ jsonrpc: '2.0', id: 1, method, params })) {
    return broken(id, 'unfit', 'params._meta does not fit the protocol; send progressToken as text or a whole number.');
  }
  if (method === 'initialize' && !isInitialize(params, sdk)) {
    return broken(
      id,
      'unfit',
      'initialize needs protocolVersion, capabilities and clientInfo with name and version; send all three.',
    );
  }
  return { kind: 'request', id, method, params };
}

/** Whoever does not know tasks does at once what was asked for as one; the SDK would refuse it. */
function atOnce(params: Params): Params {
  if (!('task' in params)) return params;
  const { task: _later, ...rest } = params;
  return rest;
}

function readAnswer(value: Record<string, unknown>): RpcMessage {
  if ('result' in value || 'error' in value) return { kind: 'answer' };
  return broken(
    isId(value['id']) ? value['id'] : null,
    'malformed',
    'The message names no method; send the name of one as text.',
  );
}

const isInitialize = (params: Params | undefined, sdk: Sdk): params is InitializeRequest['params'] =>
  sdk.InitializeRequestSchema.safeParse({ method: 'initialize', params }).success;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isId = (id: unknown): id is RequestId => typeof id === 'string' || (typeof id === 'number' && Number.isFinite(id));

const broken = (id: RequestId | null, kind: 'malformed' | 'unfit', message: string): Broken => ({
  kind: 'broken',
  answer: rpcErrorResponse(id, new ProtocolError(kind, message)),
});
