import { withCliCommand } from './cli-command.ts';

/**
 * Every failure code with its HTTP status. Codes that MCP reports as a specific JSON-RPC error also have the error number.
 *
 * - `insufficient_scope`: the token, or the author of a pipeline, does not have the required scope, or the owner does not offer
 *   the pack to the client. The owner can grant either.
 * - `declined`: the operation needs the owner's consent, and the owner refused.
 * - `key_unavailable`: the master key is locked, lost, wrong or not created yet, or the keychain is not available.
 * - `invalid_config`: a setting, or a folder or file of the program, is wrong. Only the owner can correct it.
 * - `store_unavailable`: the memory's own file cannot be opened, read or written.
 * - `unavailable`: a resource other than the memory's file, such as a port or a program, is missing, busy or not running.
 * - `handler_failed`: a pack, or a server or program that it called, failed or sent an unexpected response.
 * - `cancelled`: the operation was cancelled before it ended. HTTP has no status for cancellation, and 409 (Conflict) is the
 *   closest. The JSON-RPC error number -32800 is from the Language Server Protocol.
 */
export const failures = {
  invalid_input: { http: 400, rpc: -32602 },
  missing_bearer: { http: 401 },
  invalid_token: { http: 401 },
  forbidden_origin: { http: 403 },
  forbidden_host: { http: 403 },
  insufficient_scope: { http: 403 },
  declined: { http: 403 },
  not_found: { http: 404, rpc: -32602 },
  method_not_allowed: { http: 405, rpc: -32601 },
  cancelled: { http: 409, rpc: -32800 },
  payload_too_large: { http: 413 },
  unsupported_media_type: { http: 415 },
  quota_exceeded: { http: 429 },
  rate_limited: { http: 429 },
  handler_failed: { http: 502 },
  artifact_failed: { http: 502 },
  invalid_output: { http: 502 },
  session_unavailable: { http: 503, rpc: -32603 },
  key_unavailable: { http: 503, rpc: -32603 },
  qmd_unavailable: { http: 503, rpc: -32603 },
  unavailable: { http: 503, rpc: -32603 },
  store_unavailable: { http: 503, rpc: -32603 },
  embeddings_unavailable: { http: 503, rpc: -32603 },
  timeout: { http: 504 },
  disk_full: { http: 507 },
  invalid_config: { http: 500, rpc: -32603 },
  internal: { http: 500, rpc: -32603 },
} as const satisfies Record<string, { http: number; rpc?: number }>;

export type FailureCode = keyof typeof failures;

/**
 * The only kind of error that is sent to clients. `message` tells the caller what is wrong and what to do, and never contains a
 * fact's value, a key, a token or an internal path. `cause` has the details for developers and is never sent.
 */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: FailureCode;
  /** Seconds to wait before sending the same request again. */
  readonly retryAfter: number | undefined;

  constructor(code: FailureCode, message: string, options?: ErrorOptions & { retryAfter?: number }) {
    super(withCliCommand(message), options);
    this.code = code;
    this.retryAfter = options?.retryAfter;
  }
}

/**
 * Converts any error to a failure. An error that is not a `Failure` is a bug in this program. Its text is not sent to the client,
 * because the text could contain private data.
 */
export const asFailure = (error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure('internal', 'Helmdeck Memory had an internal error; try again, and check the log if the error happens again.', {
        cause: error,
      });
