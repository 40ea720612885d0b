import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Caller } from '../../src/core/access/caller.ts';
import type { Perform } from '../../src/core/operations/perform.ts';
import { CONNECTION_LIMITS } from '../../src/listeners/limits.ts';
import { manualClock } from '../support/clock.ts';
import { sendRequest, openConnection, type RawConnection, serve, EVENTUALLY } from '../support/listener.ts';

const STORE = '/api/v1/memory/store';
const aFact = { key: 'preferences/editor', value: 'Helix' };

/** Collects the connections that this process accepts from now on. */
function acceptedSockets(): Socket[] {
  const sockets: Socket[] = [];
  const accept = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket);
  subscribe('net.server.socket', accept);
  onTestFinished(() => void unsubscribe('net.server.socket', accept));
  return sockets;
}

/** Writes 64 MiB. Returns when the server has read everything or has stopped reading. */
async function flood(line: RawConnection, reader: Socket): Promise<void> {
  line.write(Buffer.alloc(64 * 2 ** 20, 0x78));
  for (let read = -1; read !== reader.bytesRead;) {
    read = reader.bytesRead;
    await wait(250);
  }
}

describe('bytes read after a refusal are limited (R-HTTP-16)', () => {
  const long = 'Transfer-Encoding: chunked\r\n\r\n4000000\r\n';
  const gets = (port: number, owner: string, path: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\n`;
  const posts = (port: number, owner: string, path: string, type: string): string =>
    gets(port, owner, path).replace('GET', 'POST') + `Content-Type: ${type}\r\n`;

  test.each([
    [
      'that is too long',
      /^HTTP\/1\.1 413 /,
      (port: number, owner: string) => `${posts(port, owner, STORE, 'application/json')}${long}`,
    ],
    ['without a token', /^HTTP\/1\.1 401 /, (port: number) => `${posts(port, 'x', STORE, 'application/json')}${long}`],
    [
      'of no path',
      /^HTTP\/1\.1 404 /,
      (port: number, owner: string) => `${posts(port, owner, '/nowhere', 'application/json')}${long}`,
    ],
    [
      'of MCP',
      /^HTTP\/1\.1 413 /,
      (port: number, owner: string) => `${posts(port, owner, '/api/v1/mcp', 'application/json')}${long}`,
    ],
    [
      'of an import with a line that is too long',
      /^HTTP\/1\.1 413 /,
      (port: number, owner: string) => `${posts(port, owner, '/api/v1/memory/import', 'application/x-ndjson')}${long}`,
    ],
    ['with a request for a page', /^HTTP\/1\.1 400 /, (port: number, owner: string) => `${gets(port, owner, '/')}${long}`],
    [
      'with a request for a link',
      /^HTTP\/1\.1 413 /,
      (port: number, owner: string) => `${posts(port, owner, '/api/v1/window', 'application/json')}${long}`,
    ],
    [
      'whose chunks break',
      /^HTTP\/1\.1 400 /,
      (port: number, owner: string) => `${gets(port, owner, '/healthz')}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    ],
    ['that follows garbage', /^$/, (port: number, owner: string) => `${gets(port, owner, '/api/v1/status')}\r\ngarbage\r\n\r\n`],
  ] as const)('in a body %s', async (_what, answered, request) => {
    const clock = manualClock();
    const pending = (perform: Perform): Perform =>
      ((caller: Caller, operation: string, ...rest: unknown[]) =>
        operation === 'status'
          ? new Promise(() => undefined)
          : (perform as (...all: unknown[]) => unknown)(caller, operation, ...rest)) as Perform;
    const sockets = acceptedSockets();
    const { owner, port } = await serve({ clock, windowFolder: 'out/renderer', wrapPerform: pending });
    const line = await openConnection(port);
    line.write(request(port, owner));
    await vi.waitFor(() => expect(sockets.some(({ bytesRead }) => bytesRead > 0)).toBe(true), EVENTUALLY);
    const [reader] = sockets;
    if (!reader) throw new Error('No connection was accepted.');
    await flood(line, reader);
    expect(reader.bytesRead).toBeLessThan(CONNECTION_LIMITS.bodyBytes + CONNECTION_LIMITS.lingerBytes + 2 ** 20);
    expect(line.text()).toMatch(answered);
    await clock.advance(CONNECTION_LIMITS.bodyMs);
    await line.waitForEnd();
  });
});

describe('a body (R-HTTP-06)', () => {
  test.each([
    { type: 'application/json', status: 200 },
    { type: 'application/json; charset=utf-8', status: 200 },
    { type: 'Application/JSON;charset="UTF-8"', status: 200 },
    { type: 'application/json; charset=latin1', status: 415 },
    { type: 'application/jsonp', status: 415 },
    { type: 'text/plain', status: 415 },
    { type: 'text/plain; application/json', status: 415 },
    { type: 'application/x-www-form-urlencoded', status: 415 },
    { type: 'multipart/form-data; boundary=x', status: 415 },
    { type: 'application/x-ndjson', status: 415 },
    { type: '', status: 415 },
  ])('of type "$type" gets $status', async ({ type, status }) => {
    const { url, owner } = await serve();
    const answer = await sendRequest(url, STORE, { token: owner, body: aFact, headers: ['Content-Type', type] });
    expect([answer.status, answer.json.error]).toEqual([status, status === 415 ? 'unsupported_media_type' : undefined]);
  });

  test('is not decompressed', async () => {
    const { url, owner } = await serve();
    const asked = (encoding: string) =>
      sendRequest(url, STORE, { token: owner, body: aFact, headers: ['Content-Encoding', encoding] });
    expect((await asked('gzip')).status).toBe(415);
    expect((await asked('identity')).status).toBe(200);
  });

  test.each([
    { why: 'in an unsupported transfer encoding', headers: ['Transfer-Encoding: gzip, chunked'], told: 415 },
    { why: 'with two content types', headers: ['Content-Type: text/plain', 'Transfer-Encoding: chunked'], told: 415 },
    {
      why: 'with the same content type twice',
      headers: ['content-type: application/json', 'Transfer-Encoding: chunked'],
      told: 415,
    },
    { why: 'with an unknown Expect header', headers: ['Expect: 200-maybe', 'Transfer-Encoding: chunked'], told: 400 },
    { why: 'with invalid chunks', headers: ['Transfer-Encoding: chunked'], chunks: 'zz\r\n{}\r\n0\r\n\r\n', told: 400 },
    { why: 'of unknown length', headers: ['Transfer-Encoding: identity'], chunks: '{}', told: 415 },
  ])('$why is refused, and the client gets the response', async ({ headers, chunks = '2\r\n{}\r\n0\r\n\r\n', told }) => {
    const clock = manualClock();
    const { owner, port } = await serve({ clock });
    const line = await openConnection(port);
    const lines = [`Host: 127.0.0.1:${port}`, `Authorization: Bearer ${owner}`, 'Content-Type: application/json', ...headers];
    line.write(`POST ${STORE} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${chunks}`);
    const answer = await line.waitFor('}');
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${told} [^]*"message":"[A-Z]`));
    await clock.advance(CONNECTION_LIMITS.lingerMs);
    if (answer.includes('Connection: close')) await line.waitForEnd();
    expect(line.text().match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  });

  test('that is empty means an empty input', async () => {
    const { url, owner } = await serve();
    const empty = [
      await sendRequest(url, '/api/v1/memory/forget', { method: 'POST', token: owner }),
      await sendRequest(url, '/api/v1/memory/forget', { token: owner, body: '' }),
      await sendRequest(url, '/api/v1/memory/forget', { token: owner, body: '', headers: ['Transfer-Encoding', 'chunked'] }),
    ];
    expect(empty.map(({ status, json }) => [status, json.error])).toEqual(
      Array.from({ length: 3 }, () => [400, 'invalid_input']),
    );
    expect((await sendRequest(url, '/api/v1/unlock', { method: 'POST', token: owner })).status).toBe(200);
    expect(
      (await sendRequest(url, '/api/v1/unlock', { token: owner, body: '', headers: ['Content-Type', 'text/plain'] })).status,
    ).toBe(415);
  });

  test('may have at most 1 MiB, with and without Content-Length', async () => {
    const { url, owner } = await serve();
    const body = (bytes: number) =>
      JSON.stringify({ ...aFact, more: 'x'.repeat(bytes - JSON.stringify({ ...aFact, more: '' }).length) });
    const most = body(CONNECTION_LIMITS.bodyBytes);
    expect(Buffer.byteLength(most)).toBe(2 ** 20);
    const chunked = ['Transfer-Encoding', 'chunked'];
    for (const headers of [[], chunked]) {
      expect((await sendRequest(url, STORE, { token: owner, body: most, headers })).json.error).toBe('invalid_input');
      const { status, json, headers: told } = await sendRequest(url, STORE, { token: owner, body: `${most} `, headers });
      expect([status, json.error, told.connection]).toEqual([413, 'payload_too_large', 'close']);
    }
  });

  test('that is much too long is refused before it arrives, and the client still gets the response', async () => {
    const clock = manualClock();
    const { url, owner, port } = await serve({ clock });
    const line = await openConnection(port);
    line.write(
      `POST ${STORE} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\nContent-Type: application/json\r\nContent-Length: 999999999999\r\n\r\n`,
    );
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 413 /);
    line.write(Buffer.alloc(2 ** 16));
    await clock.advance(CONNECTION_LIMITS.lingerMs);
    await line.waitForEnd();
    const body = Buffer.alloc(8 * 2 ** 20, 0x20);
    expect((await sendRequest(url, STORE, { token: owner, body })).status).toBe(413);
    expect((await sendRequest(url, STORE, { body })).status).toBe(401);
  });

  test('is requested with 100 Continue after authentication', async () => {
    const { owner, port } = await serve();
    const head = `POST ${STORE} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n`;
    const body = JSON.stringify(aFact);
    const known = await openConnection(port);
    known.write(`${head}Authorization: Bearer ${owner}\r\nContent-Length: ${body.length}\r\n\r\n`);
    await known.waitFor('HTTP/1.1 100 Continue');
    known.write(body);
    await known.waitFor('HTTP/1.1 200 OK');
    const unknown = await openConnection(port);
    unknown.write(`${head}Content-Length: ${body.length}\r\n\r\n`);
    expect(await unknown.waitFor('}')).toMatch(/^HTTP\/1\.1 401 /);
  });

  test('that does not arrive times out', async () => {
    const clock = manualClock();
    const { owner, port } = await serve({ clock });
    const line = await openConnection(port);
    line.write(
      `POST ${STORE} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{"key":`,
    );
    while (clock.pendingTimers < 1) await new Promise((resolve) => setTimeout(resolve, 5));
    await clock.advance(CONNECTION_LIMITS.bodyMs);
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 400 [^]*"message":"The body did not arrive within 7 s/);
    await clock.advance(CONNECTION_LIMITS.lingerMs);
    await line.waitForEnd();
  });

  test('is refused while too many bodies are being received', async () => {
    const { url, owner, port } = await serve();
    const head = `POST ${STORE} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\nContent-Type: application/json\r\nContent-Length: ${CONNECTION_LIMITS.bodyBytes}\r\n\r\n`;
    const most = CONNECTION_LIMITS.bodyTotalBytes / CONNECTION_LIMITS.bodyBytes;
    const part = Buffer.alloc(CONNECTION_LIMITS.bodyBytes - 1, 0x20);
    const lines = await Promise.all(Array.from({ length: most + 2 }, () => openConnection(port)));
    for (const line of lines) {
      line.write(head);
      line.write(part);
    }
    const refused = await Promise.race(lines.map((line) => line.waitFor('}')));
    expect(refused).toMatch(/^HTTP\/1\.1 429 [^]*\r\nRetry-After: 1\r\n[^]*"rate_limited"/);
    for (const line of lines) line.socket.destroy();
    await expect.poll(async () => (await sendRequest(url, STORE, { token: owner, body: aFact })).status, EVENTUALLY).toBe(200);
  });

  test('of the subject that sends the most is refused when the total limit is reached', async () => {
    const { url, port, token } = await serve();
    const greedy = await token('greedy');
    const head = `POST ${STORE} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${greedy}\r\nContent-Type: application/json\r\nContent-Length: ${CONNECTION_LIMITS.bodyBytes}\r\n\r\n`;
    const part = Buffer.alloc(CONNECTION_LIMITS.bodyBytes - 1, 0x20);
    const lines = await Promise.all(
      Array.from({ length: CONNECTION_LIMITS.bodyTotalBytes / CONNECTION_LIMITS.bodyBytes }, () => openConnection(port)),
    );
    for (const line of lines) {
      line.write(head);
      line.write(part);
    }
    const honest = await token('honest');
    const value = 'x'.repeat(1000);
    await expect
      .poll(async () => {
        expect(await sendRequest(url, STORE, { token: honest, body: { ...aFact, value } })).toMatchObject({ status: 200 });
        return lines.filter((line) => line.text().startsWith('HTTP/1.1 429 ')).length;
      }, EVENTUALLY)
      .toBe(1);
  });

  test('is refused where no body is expected', async () => {
    const { url, owner } = await serve();
    for (const [method, path] of [
      ['GET', '/healthz'],
      ['GET', '/api/v1/memory'],
      ['GET', '/api/v1/events'],
      ['DELETE', '/api/v1/tokens/x'],
    ] as const) {
      const { status, json } = await sendRequest(url, path, { method, token: owner, body: '{}' });
      expect([path, status, json.error]).toEqual([path, 400, 'invalid_input']);
    }
  });

  test('that is truncated has no effect', async () => {
    const called: string[] = [];
    const around =
      (perform: Perform): Perform =>
      (...args: Parameters<Perform>) => {
        called.push(args[1]);
        return perform(...args);
      };
    const { url, owner, port } = await serve({ wrapPerform: around });
    const line = await openConnection(port);
    const body = JSON.stringify(aFact);
    line.write(
      `POST ${STORE} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\nContent-Type: application/json\r\nContent-Length: ${body.length + 1}\r\n\r\n${body}`,
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    line.socket.end();
    await line.waitForEnd();
    await sendRequest(url, '/api/v1/memory', { token: owner });
    expect(called).toEqual(['myMemory']);
  });
});

describe('JSON (R-HTTP-06)', () => {
  const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth);

  const torture: [why: string, body: string | Buffer, says: RegExp][] = [
    ['is not JSON', '{"key":', /not valid JSON/],
    ['is a text', '"key"', /JSON object/],
    ['is null', 'null', /JSON object/],
    ['is a list', '[]', /JSON object/],
    ['is a number', '1e999', /JSON object/],
    ['is nested deeper than 64', `{"key":${nested(64)}}`, /nested deeper than 64/],
    ['is nested deep without an end', '['.repeat(500_000), /nested deeper/],
    ['is nested deep in objects', nested(100_000, '{"a":', '}').replace('}', '1}'), /nested deeper/],
    ['begins with a byte order mark', `\uFEFF${JSON.stringify(aFact)}`, /not valid JSON/],
    ['is UTF-16', Buffer.from(JSON.stringify(aFact), 'utf16le'), /not valid JSON/],
    ['is not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), /not valid UTF-8/],
    ['holds an overlong form', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), /not valid UTF-8/],
    ['holds an encoded surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), /not valid UTF-8/],
    ['holds half a surrogate pair', String.raw`{"key":"a","value":"\ud800"}`, /value .*surrogate/],
    ['names a field by half a surrogate pair', String.raw`{"key":"a","value":"b","\ud800":1}`, /unknown field/],
    ['holds NUL in the key', String.raw`{"key":"a\u0000b","value":"b"}`, /key/],
    ['holds a bare NUL', '{"key":"a\u0000b","value":"b"}', /not valid JSON/],
    ['has a lifetime beyond all numbers', '{"key":"a","value":"b","ttl_seconds":1e400}', /ttl_seconds/],
    ['has a lifetime that overflows', '{"key":"a","value":"b","ttl_seconds":18446747674}', /ttl_seconds/],
    ['has a number of 100,000 digits', `{"key":"a","value":"b","ttl_seconds":${'9'.repeat(100_000)}}`, /ttl_seconds/],
    ['sets a prototype', '{"key":"a","value":"b","__proto__":{"ttl_seconds":3600}}', /unknown field/],
    ['sets a constructor', '{"key":"a","value":"b","constructor":{"prototype":{"x":1}}}', /unknown field/],
    ['has two JSON values', '{"key":"a","value":"b"}{"key":"c","value":"d"}', /not valid JSON/],
    ['has a comment', '{"key":"a","value":"b"/**/}', /not valid JSON/],
    ['has 100,000 fields', `{${Array.from({ length: 90_000 }, (_, n) => `"${n}":1`).join(',')}}`, /key/],
  ];

  test.each(torture)('that %s is refused in one sentence that does not quote it', async (_why, body, says) => {
    const { url, owner } = await serve();
    const { status, json } = await sendRequest(url, STORE, { token: owner, body });
    expect([status, json.error]).toEqual([400, 'invalid_input']);
    expect(json.message).toMatch(says);
    expect(json.message?.length).toBeLessThan(300);
    expect({}).not.toHaveProperty('ttl_seconds');
    expect({}).not.toHaveProperty('x');
  });

  test.each([
    ['64 levels in a text', { key: 'a', value: nested(100_000).slice(0, 60_000) }],
    ['quotes and backslashes before brackets', { key: 'a', value: String.raw`\"[[\\"{{`.repeat(200) }],
    ['keys with a meaning in JavaScript', { key: '__proto__', value: 'constructor' }],
    ['characters outside the BMP', { key: 'a', value: '😀' }],
  ])('with %s is stored unchanged', async (_why, fact) => {
    const { url, owner } = await serve();
    expect((await sendRequest(url, STORE, { token: owner, body: fact })).status).toBe(200);
    const read = await sendRequest(url, `/api/v1/memory/fact?key=${encodeURIComponent(fact.key)}`, { token: owner });
    expect(read.json['value']).toBe(fact.value);
  });

  test('uses the last value of a repeated field, like JSON.parse', async () => {
    const { url, owner } = await serve();
    await sendRequest(url, STORE, { token: owner, body: '{"key":"a","value":"one","value":"two"}' });
    expect((await sendRequest(url, '/api/v1/memory/fact?key=a', { token: owner })).json['value']).toBe('two');
  });
});

describe('a query', () => {
  const FACTS = '/api/v1/memory/facts';

  test.each([
    ['numbers and flags are read as such', 'limit=1&values=1&expiring_within=3600', 200],
    ['a plus is a space', 'tag=a+b', 200],
    ['a flag may be true', 'values=true', 200],
    ['a flag cannot be another word', 'values=yes', 400],
    ['a number cannot have an exponent', 'limit=1e1', 400],
    ['a number cannot be empty', 'limit=', 400],
    ['a number has bounds', 'limit=201', 400],
    ['a field cannot be repeated', 'limit=1&limit=2', 400],
    ['an unknown field is refused', 'limits=1', 400],
    ['a prototype is an unknown field', '__proto__=1', 400],
    ['an empty field is an unknown one', '&', 400],
    ['a percent sign needs its digits', 'tag=%', 400],
    ['encoded bytes must be UTF-8', 'tag=%ff', 400],
    ['a cursor must be valid', 'cursor=abc', 400],
  ])('%s: %s', async (_why, query, status) => {
    const { url, owner } = await serve();
    const answer = await sendRequest(url, `${FACTS}?${query}`, { token: owner });
    expect([answer.status, answer.json.error]).toEqual([status, status === 400 ? 'invalid_input' : undefined]);
  });

  test('is refused where none is expected', async () => {
    const { url, owner } = await serve();
    for (const path of ['/api/v1/memory', '/api/v1/version', '/api/v1/memory/export', '/api/v1/events', '/api/v1/openapi.json']) {
      expect((await sendRequest(url, `${path}?subject=you`, { token: owner })).status).toBe(400);
    }
    expect((await sendRequest(url, `${STORE}?dry_run=1`, { token: owner, body: aFact })).status).toBe(400);
    expect((await sendRequest(url, '/healthz?x')).status).toBe(400);
  });
});
