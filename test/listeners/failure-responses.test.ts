import { describe, expect, test } from 'vitest';
import { Failure, type FailureCode, failures } from '../../src/contract/failure.ts';
import { toRpcError, toToolResult, toHttpFailure } from '../../src/listeners/failure-responses.ts';

const codes = Object.keys(failures) as FailureCode[];
const secret = new Error('EACCES /home/me/.secret');

describe.each(codes)('a failure %s', (code) => {
  const failure = new Failure(code, 'What is wrong and what to do.', { cause: secret });

  test('is code and sentence over HTTP, under the status of the table (R-ERR-04)', () => {
    const { status, body } = toHttpFailure(failure);
    expect(status).toBe(failures[code].http);
    expect(JSON.parse(body)).toEqual({ error: code, message: 'What is wrong and what to do.' });
  });

  test('is one text with the same JSON for a tool', () => {
    const { isError, content } = toToolResult(failure);
    expect(isError).toBe(true);
    expect(content.map(({ type, text }) => ({ type, ...JSON.parse(text) }))).toEqual([
      { type: 'text', error: code, message: 'What is wrong and what to do.' },
    ]);
  });

  test('bears a number of JSON-RPC', () => {
    const row = failures[code];
    expect(toRpcError(failure)).toEqual({
      code: 'rpc' in row ? row.rpc : -32603,
      message: 'What is wrong and what to do.',
      data: { error: code },
    });
  });

  test('tells nothing of its cause on any wire', () => {
    const told = JSON.stringify([toHttpFailure(failure), toToolResult(failure), toRpcError(failure)]);
    expect(told).not.toContain('secret');
    expect(told).not.toContain('stack');
  });
});

test('401 names the scheme, and what may be tried again says when (R-ERR-06)', () => {
  expect(toHttpFailure(new Failure('missing_bearer', 'x')).headers).toEqual(['WWW-Authenticate', 'Bearer realm="helmdeck"']);
  expect(toHttpFailure(new Failure('rate_limited', 'x', { retryAfter: 1.2 })).headers).toEqual(['Retry-After', '2']);
  expect(toHttpFailure(new Failure('rate_limited', 'x')).headers).toEqual([]);
});
