import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { asFailure } from '../../contract/failure.ts';
import { toRpcError } from '../failure-responses.ts';

/** JSON-RPC error codes. The code `unknown_session` makes MCP clients open a new session. */
const CODES = {
  parse_error: -32700,
  malformed: -32600,
  unknown_method: -32601,
  invalid_params: -32602,
  unknown_session: -32001,
} as const;

interface RpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface RpcErrorResponse {
  readonly jsonrpc: '2.0';
  /** The id of the request, or null if the id could not be read. */
  readonly id: RequestId | null;
  readonly error: RpcErrorBody;
}

export type RpcResponse = JSONRPCMessage | RpcErrorResponse;

/** A violation of the MCP protocol, as opposed to a failure of an operation. It is sent as a JSON-RPC error. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  readonly code: number;
  readonly httpStatus: number;

  constructor(kind: keyof typeof CODES, message: string) {
    super(message);
    this.code = CODES[kind];
    this.httpStatus = kind === 'unknown_session' ? 404 : 400;
  }
}

function toRpcErrorBody(error: unknown): RpcErrorBody {
  if (error instanceof ProtocolError) return { code: error.code, message: error.message };
  return toRpcError(asFailure(error));
}

export const rpcErrorResponse = (id: RequestId | null, error: unknown): RpcErrorResponse => ({
  jsonrpc: '2.0',
  id,
  error: toRpcErrorBody(error),
});
