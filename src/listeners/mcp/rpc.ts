import type { RequestId } from '@modelcontextprotocol/sdk/types.js';
import { asFailure } from '../../contract/failure.ts';
import { toRpcError } from '../failure-responses.ts';

/** JSON-RPC's own numbers, and the one that MCP clients know a lost session by. */
const CODES = { unparsable: -32700, malformed: -32600, unknown_method: -32601, unfit: -32602, unknown_session: -32001 } as const;

interface RpcErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export interface RpcErrorResponse {
  readonly jsonrpc: '2.0';
  // A message whose id cannot be read is answered with none.
  readonly id: RequestId | null;
  readonly error: RpcErrorBody;
}

/** What the protocol itself refuses, as opposed to an operation: it is told in JSON-RPC, which is all that MCP clients read. */
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

/** As a request is answered that failed; whatever was not foreseen is told like every other failure. */
export function toRpcErrorBody(error: unknown): RpcErrorBody {
  if (error instanceof ProtocolError) return { code: error.code, message: error.message };
  return toRpcError(asFailure(error));
}

export const rpcErrorResponse = (id: RequestId | null, error: unknown): RpcErrorResponse => ({
  jsonrpc: '2.0',
  id,
  error: toRpcErrorBody(error),
});
