import { type Failure, failures } from '../contract/failure.ts';

/** The public part of a failure. Never send its cause or stack. */
const failureBody = ({ code, message }: Failure) => ({ error: code, message });

export interface HttpFailure {
  readonly status: number;
  /** Alternating names and values, as `writeHead` takes them. */
  readonly headers: readonly string[];
  readonly body: string;
}

const BEARER_CHALLENGE = ['WWW-Authenticate', 'Bearer realm="helmdeck"'];

/** Formats a failure for REST, and for requests to an MCP path that fail before the MCP protocol applies. */
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
 * Formats a failure as a tool result. It has no `structuredContent`: clients validate that against the tool's output schema, and
 * would report a schema error to the agent instead of this message.
 */
export const toToolResult = (failure: Failure) => ({
  isError: true as const,
  content: [{ type: 'text' as const, text: JSON.stringify(failureBody(failure)) }],
});

/** Formats a failure as a JSON-RPC error. A failure without its own RPC code becomes an internal error. */
export function toRpcError(failure: Failure): { code: number; message: string; data: { error: string } } {
  const row = failures[failure.code];
  return { code: 'rpc' in row ? row.rpc : -32603, message: failure.message, data: { error: failure.code } };
}
