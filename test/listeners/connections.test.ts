import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Perform } from '../../src/core/operations/perform.ts';
import { CONNECTION_LIMITS } from '../../src/listeners/limits.ts';
import { manualClock } from '../support/clock.ts';
import { sendRequest, openConnection, serve, EVENTUALLY } from '../support/listener.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { measureWait } from '../support/work.ts';

describe('many connections', () => {
  test('that are idle give way to new connections', async () => {
    const { url, port } = await serve();
    const agent = new Agent({ keepAlive: true, maxSockets: 2000 });
    await Promise.all(Array.from({ length: CONNECTION_LIMITS.connections }, () => sendRequest(url, '/healthz', { agent })));
    const knock = async (): Promise<string> => {
      const line = await openConnection(port);
      line.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
      return await line.waitFor('}').catch(() => '');
    };
    await knock();
    expect(await knock()).toMatch(/^HTTP\/1\.1 200/);
    agent.destroy();
  });

  const post = (port: number, more: string): string =>
    `POST /api/v1/memory/store HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\n${more}`;

  test.each([
    { why: 'say nothing', says: () => '' },
    { why: 'stop within the headers', says: (port: number) => post(port, 'X-Mo') },
    { why: 'have no token', says: (port: number) => post(port, 'Content-Length: 9\r\n\r\n{') },
    {
      why: 'all belong to one subject and stop within the body',
      says: (port: number, token: string) => post(port, `Authorization: Bearer ${token}\r\nContent-Length: 9\r\n\r\n{`),
    },
  ])('that $why give way to new connections, and never the event stream of another subject', async ({ says }) => {
    const { url, port, token } = await serve();
    const [greedy, honest] = [await token('greedy'), await token('honest')];
    const listening = await openConnection(port);
    listening.write(`GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${honest}\r\n\r\n`);
    await listening.waitFor('stream open');
    const lines = await Promise.all(Array.from({ length: CONNECTION_LIMITS.connections - 1 }, () => openConnection(port)));
    for (const line of lines) line.write(says(port, greedy));
    const knocks = Array.from({ length: 20 }, () => sendRequest(url, '/api/v1/memory', { token: honest }));
    const answers = await Promise.all(knocks);
    expect(answers.map(({ status }) => status)).toEqual(knocks.map(() => 200));
    await Promise.race(lines.map((line) => line.waitForEnd()));
    await sendRequest(url, '/api/v1/memory/store', { token: honest, body: { key: 'a', value: 'b' } });
    await listening.waitFor('"kind":"fact"');
  });
});

describe('unread responses (R-HTTP-15)', () => {
  test('cost the subject with the most unread data a connection, and no other subject', async () => {
    const { url, port, token } = await serve();
    const [greedy, honest] = [await token('greedy'), await token('honest')];
    await storeLong(url, greedy);
    await sendRequest(url, '/api/v1/memory/store', { token: honest, body: { key: 'k', value: LONG } });
    const [slow, ...lines] = await Promise.all(Array.from({ length: 25 }, () => deaf(port)));
    slow?.write(gets(port, honest, '/memory/facts?values=1'));
    for (const line of lines) line.write(gets(port, greedy, HISTORY));
    for (let n = 0; n < 40; n += 1) expect((await sendRequest(url, '/api/v1/memory', { token: honest })).status).toBe(200);
    expect(await slow?.rest()).toBeGreaterThan(360_000);
    // Each response has more than 6 MB. The buffers of the system hold a part of it.
    const whole = (await Promise.all(lines.map((line) => line.rest()))).filter((bytes) => bytes > 6_000_000).length;
    expect(whole).toBeLessThan(lines.length);
    expect(whole).toBeGreaterThan(5);
  });
});

/** JSON escapes each character as six bytes. */
const LONG = '\u0001'.repeat(60_000);
const HISTORY = '/memory/history?key=k';

/** Stores a fact with the maximum number of versions, so that its history is longer than 6 MB. */
async function storeLong(url: string, token: string): Promise<void> {
  for (let n = 0; n <= 20; n += 1)
    await sendRequest(url, '/api/v1/memory/store', { token, body: { key: 'k', value: LONG.slice(n) } });
}

const gets = (port: number, token: string, path: string): string =>
  `GET /api/v1${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`;

/** Sends requests without reading. The returned function then reads everything and returns the number of bytes. */
async function deaf(port: number): Promise<{ write(text: string): void; rest(): Promise<number> }> {
  const socket = connect({ host: '127.0.0.1', port }).pause();
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  let bytes = 0;
  let last = '';
  const { promise, resolve } = Promise.withResolvers<number>();
  const whole = (): boolean => last.endsWith(']}');
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    last = (last + chunk.subarray(-200).toString('latin1')).slice(-200);
    if (whole()) resolve(bytes);
  });
  socket.on('error', () => resolve(bytes)).on('close', () => resolve(bytes));
  return {
    write: (text) => void socket.write(text),
    rest() {
      socket.resume();
      return promise;
    },
  };
}

describe('one connection', () => {
  test('gets responses in the order of its requests, however many it sends at once', async () => {
    const { port, owner } = await serve();
    const line = await openConnection(port);
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\n\r\n`;
    line.write(['/api/v1/memory', '/healthz', '/nowhere', '/api/v1/version', '/healthz'].map(get).join(''));
    const text = await line.waitFor(/(HTTP\/1\.1[^]*){5}\{"status":"ok"\}$/);
    expect([...text.matchAll(/\r\n\r\n\{"(\w+)"/g)].map(([, first]) => first)).toEqual([
      'scope',
      'status',
      'error',
      'version',
      'status',
    ]);
  });

  test('that sends invalid bytes gets the responses to earlier requests, then an error', async () => {
    const { port, owner } = await serve();
    const line = await openConnection(port);
    line.write(`${gets(port, owner, '/version')}${gets(port, owner, '/memory')}no such thing\r\n\r\n`);
    await line.waitForEnd();
    expect(line.text().match(/HTTP\/1\.1 \d+|"version"|"scope"|"error":"\w+"/g)).toEqual([
      'HTTP/1.1 200',
      '"version"',
      'HTTP/1.1 200',
      '"scope"',
      'HTTP/1.1 400',
      '"error":"invalid_input"',
    ]);
  });

  test('that sends invalid bytes while responses are unread gets them completely, then the error', async () => {
    const { url, port, owner } = await serve();
    await storeLong(url, owner);
    const line = await openConnection(port);
    line.socket.pause();
    line.write(gets(port, owner, HISTORY).repeat(3));
    await new Promise((resolve) => setTimeout(resolve, 200));
    line.write('no such thing\r\n\r\n');
    await new Promise((resolve) => setTimeout(resolve, 200));
    line.socket.resume();
    await line.waitForEnd();
    expect(line.text().match(/HTTP\/1\.1 \d+|"versions"/g)).toEqual([
      'HTTP/1.1 200',
      '"versions"',
      'HTTP/1.1 200',
      '"versions"',
      'HTTP/1.1 200',
      '"versions"',
      'HTTP/1.1 400',
    ]);
  });

  test('whose second request arrives too slowly gets the first response, and the second request is not performed (R-HTTP-07)', async () => {
    const asked: string[] = [];
    const around =
      (perform: Perform) =>
      async (...call: Parameters<Perform>) => {
        asked.push(call[1]);
        if (call[1] === 'myMemory') await wait(CONNECTION_LIMITS.headersMs + 4000);
        return perform(...call);
      };
    const { port, owner } = await serve({ wrapPerform: around });
    const line = await openConnection(port);
    const late = gets(port, owner, '/memory/callers');
    line.write(gets(port, owner, '/memory') + late.slice(0, 40));
    await wait(CONNECTION_LIMITS.headersMs + 2500);
    line.write(late.slice(40));
    await line.waitForEnd();
    expect(line.text().match(/HTTP\/1\.1 \d+|did not arrive within/g)).toEqual([
      'HTTP/1.1 200',
      'HTTP/1.1 400',
      'did not arrive within',
    ]);
    expect(asked).toEqual(['myMemory']);
  });

  test('that does not read a static file is closed, even without a token (R-HTTP-07)', async () => {
    const pages = tempFolder();
    writeFileSync(join(pages, 'index.html'), 'x'.repeat(2 ** 20));
    const { port } = await serve({ windowFolder: pages });
    const line = await openConnection(port);
    line.socket.pause();
    line.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`.repeat(20));
    await wait(CONNECTION_LIMITS.progressMs + 3000);
    line.socket.resume();
    await line.waitForEnd();
    expect(line.text().match(/HTTP\/1\.1 200/g)?.length).toBeLessThan(20);
  });

  test('that sends garbage during an event stream is closed, and nothing is written into the stream', async () => {
    const { port, owner } = await serve();
    const line = await openConnection(port);
    line.write(gets(port, owner, '/events'));
    await line.waitFor('stream open');
    line.write('no such thing\r\n\r\n');
    await line.waitForEnd();
    expect(line.text().match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  });

  test('may send an absolute URL with our address, and no other', async () => {
    const { url, port, owner } = await serve();
    for (const [target, status] of [
      [`${url}/api/v1/memory`, 200],
      [`${url}:1/api/v1/memory`, 404],
      ['http://elsewhere.example/api/v1/memory', 404],
    ] as const) {
      const line = await openConnection(port);
      line.write(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\n\r\n`);
      expect(await line.waitFor('}')).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    }
  });

  test('that uses an unknown method gets the list of methods', async () => {
    const { port } = await serve();
    const line = await openConnection(port);
    line.write(`BREW /api/v1/memory HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 400 [^]*or its method is unknown/);
  });

  test('that sends many requests and reads nothing gets one response at a time, and all of them once it reads (R-HTTP-15)', async () => {
    let asked = 0;
    const around =
      (perform: Perform): Perform =>
      (...call: Parameters<Perform>) => {
        asked += 1;
        return perform(...call);
      };
    const { url, port, owner } = await serve({ wrapPerform: around });
    await storeLong(url, owner);
    asked = 0;
    const line = await openConnection(port);
    line.socket.pause();
    line.write(gets(port, owner, HISTORY).repeat(5));
    await vi.waitFor(() => expect(asked).toBeGreaterThan(0), EVENTUALLY);
    for (let n = 0; n < 20; n += 1) await sendRequest(url, '/api/v1/memory', { token: owner });
    // Data in the buffers of the system counts as read.
    expect(asked - 20).toBeLessThanOrEqual(3);
    line.socket.resume();
    await vi.waitFor(() => expect(line.text().match(/"versions"/g)).toHaveLength(5), EVENTUALLY);
  });

  test('that sends requests without end before the first response is closed', async () => {
    let asked = 0;
    const around = (): Perform => () => {
      asked += 1;
      return new Promise(() => undefined);
    };
    const { port, owner } = await serve({ wrapPerform: around });
    const line = await openConnection(port);
    line.write(`GET /api/v1/memory HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\n\r\n`.repeat(5000));
    await line.waitForEnd();
    expect(asked).toBeLessThanOrEqual(CONNECTION_LIMITS.pendingRequests);
  });

  test.each([
    { why: 'no HTTP', text: 'hello\r\n\r\n', says: /^HTTP\/1\.1 400 [^]*not an HTTP/ },
    { why: 'a TLS greeting', text: Buffer.from('16030100a5010000a10303', 'hex'), says: /^HTTP\/1\.1 400 / },
    { why: 'an invalid method', text: 'get /healthz HTTP/1.1\r\n\r\n', says: /^HTTP\/1\.1 400 / },
    { why: 'two lengths', text: 'POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', says: /^HTTP\/1\.1 400 / },
    {
      why: 'a length and chunks',
      text: 'POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      says: /^HTTP\/1\.1 400 /,
    },
    { why: 'a folded header', text: 'GET / HTTP/1.1\r\nA: b\r\n c\r\nX : y\r\n\r\n', says: /^HTTP\/1\.1 400 / },
    { why: '20 KiB of headers', text: `GET / HTTP/1.1\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`, says: /longer than 16 KiB/ },
    { why: 'a line without end', text: `GET /${'x'.repeat(20_000)}`, says: /longer than 16 KiB/ },
  ])('with $why is refused and closed', async ({ text, says }) => {
    const { port } = await serve();
    const line = await openConnection(port);
    line.write(text);
    await line.waitForEnd();
    expect(line.text()).toMatch(says);
    expect(line.text()).toMatch(/\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n/);
    expect(line.text()).toMatch(/"error":"invalid_input"/);
  });

  test('gets no error inside an earlier response', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const around = (): Perform => async () => {
      await promise;
      return { all: 'well' };
    };
    const clock = manualClock();
    const { port, owner } = await serve({ clock, wrapPerform: around });
    const line = await openConnection(port);
    const timers = clock.pendingTimers;
    line.write(`GET /api/v1/memory HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\n\r\nrubbish\r\n\r\n`);
    await vi.waitFor(() => expect(clock.pendingTimers).toBe(timers + 1), EVENTUALLY);
    await clock.advance(CONNECTION_LIMITS.bodyMs);
    await line.waitForEnd();
    resolve();
    expect(line.text()).toBe('');
  });

  test('that requests a protocol upgrade continues with HTTP/1.1', async () => {
    const { port } = await serve();
    const line = await openConnection(port);
    line.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 200 /);
    const tunnel = await openConnection(port);
    tunnel.write(`CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n`);
    await tunnel.waitForEnd();
    expect(tunnel.text()).toBe('');
  });

  test('that is half closed is closed', async () => {
    const { port } = await serve();
    const line = await openConnection(port);
    line.socket.end();
    expect(await measureWait(() => line.waitForEnd())).toBeLessThan(1000);
  });
});
