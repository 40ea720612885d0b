import { type Failure, failures } from '../contract/failure.ts';

/** A failure as every wire tells it. Nothing else of it leaves: no cause, no stack. */
const told = ({ code, message }: Failure) => ({ error: code, message });

export interface HttpFailure {
  readonly status: number;
  /** Names and values in turn, as `writeHead` takes them. */
  readonly headers: readonly string[];
  readonly body: string;
}

const CHALLENGE = ['WWW-Authenticate', 'Bearer realm="helmdeck"'];

/** For REST, and for whatever an MCP transport refuses before it speaks MCP. */
export function toHttpFailure(failure: Failure): HttpFailure {
  const status = failures[failure.code].http;
  const { retryAfter } = failure;
  return {
    status,
    headers: [
      ...(status === 401 ? CHALLENGE : []),
      ...(retryAfter === undefined ? [] : ['Retry-After', `${Math.ceil(retryAfter)}`]),
    ],
    body: JSON.stringify(told(failure)),
  };
}

/**
 * For a tool that was called. In the text alone: clients compare `structuredContent` with the schema of what the tool
 * answers when all is well, and would tell the agent that the answer is broken instead of what it says.
 */
export const toToolResult = (failure: Failure) => ({
  isError: true as const,
  content: [{ type: 'text' as const, text: JSON.stringify(told(failure)) }],
});

/** For a JSON-RPC request that is no tool call, such as reading a resource. What has no number of its own is ours. */
export function toRpcError(failure: Failure): { code: number; message: string; data: { error: string } } {
  const row = failures[failure.code];
  return { code: 'rpc' in row ? row.rpc : -32603, message: failure.message, data: { error: failure.code } };
}
