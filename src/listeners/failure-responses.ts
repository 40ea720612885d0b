import { type Failure, failures } from '../contract/failure.ts';

/** The part of a failure that is sent to clients. The cause and the stack must never be sent. */
const failureBody = ({ code, message }: Failure) => ({ error: code, message });

export interface HttpFailure {
  readonly status: number;
  /** Header names and values in turn, as `writeHead` accepts them. */
  readonly headers: readonly string[];
  readonly body: string;
}

const BEARER_CHALLENGE = ['WWW-Authenticate', 'Bearer realm="helmdeck"'];

/** Formats a failure for REST, and for requests to MCP paths that fail before the MCP message is read. */
export function toHttpFailure(failure: Failure): HttpFailure {
  const status = failures[failure.code].http;
  const { retryAfter } = failure;
  return {
    status,
    headers: [
      ...(status === 401 ? BEARER_CHALLENGE : []),
      ...(retryAfter === undefined ? [] : ['Retry-After', `${Math.ceil(retryAfter)}`]),
    ],
    body: JSON.stringify(failureBody(failure)),
  };
}

/**
 * Formats a failure as a tool result without `structuredContent`, which clients would validate against the tool's output schema.
 * The agent would then get a schema error instead of the failure.
 */
export const toToolResult = (failure: Failure) => ({
  isError: true as const,
  content: [{ type: 'text' as const, text: JSON.stringify(failureBody(failure)) }],
});

/** Formats a failure as a JSON-RPC error. A failure code without an RPC number is sent as an internal error. */
export function toRpcError(failure: Failure): { code: number; message: string; data: { error: string } } {
  const row = failures[failure.code];
  return { code: 'rpc' in row ? row.rpc : -32603, message: failure.message, data: { error: failure.code } };
}
