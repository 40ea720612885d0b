import { connect } from 'node:net';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/time/clock.ts';
import { sendRequest, ALL_ROUTES, serve } from '../support/listener.ts';
import { openFileStore } from '../support/store.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { MCP, openSession, QMD } from './mcp/mcp-client.ts';

const AT_ONCE = 40;
const ROUNDS = 60;
/** A client that sends no more data closes its side after this time. */
const QUIET_MS = 100;
const HANGS_MS = 3000;

/** Sends raw bytes. Resolves with the received text when the server closes the connection. */
function sent(port: number, bytes: Buffer): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let heard = '';
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => socket.write(bytes));
  const quiet = setTimeout(() => socket.end(), QUIET_MS);
  const late = setTimeout(() => {
    reject(new Error(`Still open after ${HANGS_MS} ms: ${JSON.stringify(bytes.toString('latin1'))}`));
    socket.destroy();
  }, HANGS_MS);
  socket.on('data', (part) => {
    heard += part.toString('latin1');
    // An event stream would not end.
    if (heard.includes('\r\n\r\n')) socket.destroy();
  });
  socket.on('error', () => undefined).on('end', () => socket.destroy());
  socket.on('close', () => {
    clearTimeout(quiet);
    clearTimeout(late);
    resolve(heard);
  });
  return promise;
}

interface Known {
  readonly port: number;
  readonly token: string;
  readonly sessions: readonly string[];
}

const printable = (maxLength: number) => fc.string({ unit: 'grapheme-ascii', maxLength });
/** Includes bytes that are invalid in headers and paths. */
const latin = (maxLength: number) => fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const mostly = <T>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: other });

function requests({ port, token, sessions }: Known): fc.Arbitrary<Buffer> {
  const agents = [MCP, QMD].flatMap((path) =>
    [
      ['POST', path],
      ['GET', path],
      ['DELETE', path],
      ['GET', `${path}/sse`],
      ...sessions.map((id) => ['POST', `${path}/sse/message?sessionId=${id}`]),
    ].map(([method = '', at = '']): [string, string] => [method, at]),
  );
  const known = fc.constantFrom(...ALL_ROUTES.map(([method, path]): [string, string] => [method, path]), ...agents, [
    'GET',
    '/healthz',
  ] as [string, string]);
  const methods = fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY', 'get');
  const place = mostly(
    known,
    fc.tuple(
      methods,
      fc.oneof(
        known.map(([, path]) => path),
        mostly(printable(30), latin(30)).map((text) => `/${text}`),
        fc.constant('*'),
      ),
    ),
  );
  const query = mostly(
    fc.constant(''),
    fc.oneof(
      fc.constantFrom('?key=a', '?q=a', '?limit=1&values=1', '?%', '?%00=%ff', '?__proto__=1'),
      printable(20).map((text) => `?${text}`),
    ),
  );
  const name = fc.oneof(
    fc.constantFrom('Content-Type', 'Content-Length', 'Transfer-Encoding', 'Content-Encoding', 'Expect', 'Connection', 'Upgrade'),
    fc.constantFrom('Host', 'Authorization', 'Origin', 'Cookie', 'Accept', 'Range', 'Sec-Fetch-Site', 'X-HTTP-Method-Override'),
    fc.constantFrom('Mcp-Session-Id', 'MCP-Protocol-Version', 'Last-Event-ID', '__proto__'),
    fc.constant('X-More'),
    latin(10),
  );
  const value = fc.oneof(
    fc.constantFrom('application/json', 'application/x-ndjson', 'text/event-stream', 'chunked', 'gzip', '100-continue', 'close'),
    fc.constantFrom('0', '1', '-1', '1e9', '99999999999999999999', '', '*', '2025-11-25', '2024-11-05', 'websocket', 'bytes=0-'),
    fc.constantFrom(...sessions, `127.0.0.1:${port}`, `Bearer ${token}`, `Bearer ${token}x`),
    printable(40),
    latin(40),
  );
  const call = fc.record({
    jsonrpc: fc.constantFrom('2.0', 2),
    id: fc.oneof(fc.nat(), fc.jsonValue()),
    method: fc.constantFrom('tools/call', 'initialize', 'resources/read', 'ping', 'notifications/cancelled'),
    params: fc.oneof(
      fc.record({ name: fc.constantFrom('memory_store', 'memory_search', 'query'), arguments: fc.jsonValue() }),
      fc.jsonValue(),
    ),
  });
  const fact = fc.record({ key: fc.jsonValue(), value: fc.jsonValue(), scope: fc.jsonValue() }, { requiredKeys: [] });
  const body = fc.oneof(
    fc.constant(''),
    fc.oneof(call, fact, fc.jsonValue()).map((json) => JSON.stringify(json)),
    latin(60),
  );
  const more = mostly(fc.constant<[string, string][]>([]), fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 4 }));
  const whole = fc
    .record({
      place,
      query,
      more,
      body,
      plain: fc.nat(4),
      type: mostly(fc.constant('application/json'), fc.constant('text/plain')),
    })
    .map((one) => {
      // Most requests are authenticated, so that they reach a handler.
      const own = one.plain > 0 ? [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${token}`] : [];
      const length = one.body === '' ? [] : [`Content-Type: ${one.type}`, `Content-Length: ${Buffer.byteLength(one.body)}`];
      const lines = [...own, ...length, ...one.more.map(([field, text]) => `${field}: ${text}`)];
      return Buffer.from(`${one.place.join(' ')}${one.query} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${one.body}`);
    });
  return fc.tuple(whole, fc.nat(12), fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 8 })).map(([bytes, way, at, other]) => {
    const from = at % bytes.length;
    switch (way) {
      case 0:
        return bytes.subarray(0, from);
      case 1:
        return Buffer.concat([bytes.subarray(0, from), other, bytes.subarray(from)]);
      case 2:
        return Buffer.concat([bytes, bytes]);
      default:
        return bytes;
    }
  });
}

test('any bytes at any path are answered or refused quickly, and never with an internal error (R-ERR-03, R-HTTP-07)', async () => {
  const store = await openFileStore(tempFolder(), systemClock);
  const served = await serve({ store });
  const token = await served.token();
  const sessions = await Promise.all(
    [MCP, QMD].map(async (path) => (await openSession(served, token, '2025-03-26', path)).session),
  );
  const statuses = new Map<string, number>();
  const all = fc.array(requests({ port: served.port, token, sessions }), { minLength: AT_ONCE, maxLength: AT_ONCE });
  await fc.assert(
    fc.asyncProperty(all, async (round) => {
      const answers = await Promise.all(round.map((bytes) => sent(served.port, bytes)));
      for (const [index, text] of answers.entries()) {
        const status = /^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 'none';
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        expect(/HTTP\/1\.1 5\d\d/.test(text), `${round[index]?.toString('latin1')}\n\n${text}`).toBe(false);
      }
    }),
    { numRuns: ROUNDS },
  );
  // The requests reached every step: they were accepted, or refused for each of these reasons.
  for (const status of ['200', '400', '401', '403', '404', '405', '415'])
    expect(statuses.get(status) ?? 0, `${status} of ${JSON.stringify([...statuses])}`).toBeGreaterThan(3);
  expect((await sendRequest(served.url, '/api/v1/memory', { token: await served.token() })).status).toBe(200);
});
