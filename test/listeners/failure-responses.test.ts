import { describe, expect, test } from 'vitest';
import { Failure, type FailureCode, failures } from '../../src/contract/failure.ts';
import { toRpcError, toToolResult, toHttpFailure } from '../../src/listeners/failure-responses.ts';

const codes = Object.keys(failures) as FailureCode[];
const secret = new Error('EACCES /home/me/.secret');

describe.each(codes)('a failure %s', (code) => {
  const failure = new Failure(code, 'The key is missing; send it.', { cause: secret });

  test('has code, message and status of the table over HTTP (R-ERR-04)', () => {
    const { status, body } = toHttpFailure(failure);
    expect(status).toBe(failures[code].http);
    expect(JSON.parse(body)).toEqual({ error: code, message: 'The key is missing; send it.' });
  });

  test('is one text block with the same JSON for a tool', () => {
    const { isError, content } = toToolResult(failure);
    expect(isError).toBe(true);
    expect(content.map(({ type, text }) => ({ type, ...JSON.parse(text) }))).toEqual([
      { type: 'text', error: code, message: 'The key is missing; send it.' },
    ]);
  });

  test('has a JSON-RPC error number', () => {
    const row = failures[code];
    expect(toRpcError(failure)).toEqual({
      code: 'rpc' in row ? row.rpc : -32603,
      message: 'The key is missing; send it.',
      data: { error: code },
    });
  });

  test('never contains its cause', () => {
    const told = JSON.stringify([toHttpFailure(failure), toToolResult(failure), toRpcError(failure)]);
    expect(told).not.toContain('secret');
    expect(told).not.toContain('stack');
  });
});

test('401 names the scheme, and a retryable failure has Retry-After (R-ERR-06)', () => {
  expect(toHttpFailure(new Failure('missing_bearer', 'x')).headers).toEqual(['WWW-Authenticate', 'Bearer realm="helmdeck"']);
  expect(toHttpFailure(new Failure('rate_limited', 'x', { retryAfter: 1.2 })).headers).toEqual(['Retry-After', '2']);
  expect(toHttpFailure(new Failure('rate_limited', 'x')).headers).toEqual([]);
});
