import { withCliCommand } from './cli-command.ts';

/**
 * Every failure code with its HTTP status and, if it has one, its JSON-RPC error number.
 *
 * - `insufficient_scope`: the token, or the author of a pipeline, lacks the scope. The owner can grant it.
 * - `declined`: the operation needs the owner's consent, and the owner refused.
 * - `invalid_config`: a setting, or the folder or file that it names, is wrong. Only the owner can change that.
 * - `store_unavailable`: the memory's own file cannot be opened, read or written.
 * - `unavailable`: something else that the request needs is missing, busy or not running.
 * - `handler_failed`: a pack, or a server or program that it called, failed or sent an unexpected response.
 * - `cancelled`: the work was cancelled before it ended. HTTP has no status for this; 409 (Conflict) is the closest. The JSON-RPC
 *   number -32800 is the one of the Language Server Protocol.
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
 * The only error that crosses a boundary. `message` tells the caller what is wrong and what to do. It never contains a fact's
 * value, a key, a token or an internal path. Details for developers are in `cause`, which is never sent.
 */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly code: FailureCode;
  /** Seconds after which the same request may succeed. */
  readonly retryAfter: number | undefined;

  constructor(code: FailureCode, message: string, options?: ErrorOptions & { retryAfter?: number }) {
    super(withCliCommand(message), options);
    this.code = code;
    this.retryAfter = options?.retryAfter;
  }
}

/** Any other error is a bug in this program. It becomes `internal`, and its text is not sent, because it may contain private data. */
export const asFailure = (error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure('internal', 'Helmdeck Memory had an internal error; try again, and if it happens again, check the log.', {
        cause: error,
      });
