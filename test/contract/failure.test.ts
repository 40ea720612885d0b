import { describe, expect, test } from 'vitest';
import { asFailure, Failure, failures } from '../../src/contract/failure.ts';
import { misleading } from './asking.ts';

test('every failure has its HTTP status and JSON-RPC number (R-ERR-01)', () => {
  expect(failures).toEqual({
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
  });
});

describe('an error', () => {
  test('that is a Failure stays unchanged (R-ERR-03)', () => {
    const failure = new Failure('not_found', 'There is no such fact; list the facts there are.');
    expect(asFailure(failure)).toBe(failure);
  });

  test.each([
    new TypeError('Cannot read /home/ada/secret of undefined'),
    Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' }),
    'a text with a secret',
    { code: 'invalid_input', message: 'a secret that looks like ours' },
    undefined,
    null,
  ])('of any other kind becomes internal without its text: %s (R-ERR-03)', (thrown) => {
    const failure = asFailure(thrown);
    expect(failure.code).toBe('internal');
    expect(failure.message).not.toMatch(/secret|ENOENT|home|undefined/);
    expect(failure.message).not.toMatch(misleading);
    expect(failure.cause).toBe(thrown);
  });
});
