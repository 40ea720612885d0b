import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Perform } from '../../src/core/operations/perform.ts';
import { CONNECTION_LIMITS } from '../../src/listeners/limits.ts';
import { sendRequest, openConnection, serve, EVENTUALLY } from '../support/listener.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { measureWait } from '../support/work.ts';

describe('many connections', () => {
  test('that idle make room for whoever knocks', async () => {
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
      why: 'are all of one subject and stop within the body',
      says: (port: number, token: string) => post(port, `Authorization: Bearer ${token}\r\nContent-Length: 9\r\n\r\n{`),
    },
  ])('that $why give way to whoever comes, and never one that another is listening by', async ({ says }) => {
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

describe('answers that nobody takes (R-HTTP-15)', () => {
  test('cost whoever leaves the most of them a connection, and nobody else', async () => {
    const { url, port, token } = await serve();
    const [greedy, honest] = [await token('greedy'), await token('honest')];
    await storeLong(url, greedy);
    await sendRequest(url, '/api/v1/memory/store', { token: honest, body: { key: 'k', value: LONG } });
    const [slow, ...lines] = await Promise.all(Array.from({ length: 25 }, () => deaf(port)));
    slow?.write(gets(port, honest, '/memory/facts?values=1'));
    for (const line of lines) line.write(gets(port, greedy, HISTORY));
    for (let n = 0; n < 40; n += 1) expect((await sendRequest(url, '/api/v1/memory', { token: honest })).status).toBe(200);
    expect(await slow?.rest()).toBeGreaterThan(360_000);
    // Each answer has more than 6 MB, of which the system's own buffers hold some.
    const whole = (await Promise.all(lines.map((line) => line.rest()))).filter((bytes) => bytes > 6_000_000).length;
    expect(whole).toBeLessThan(lines.length);
    expect(whole).toBeGreaterThan(5);
  });
});

/** On the wire each letter is six. */
const LONG = '\u0001'.repeat(60_000);
const HISTORY = '/memory/history?key=k';

/** So that one answer is longer than 6 MB: a fact with as many versions as are kept. */
async function storeLong(url: string, token: string): Promise<void> {
  for (let n = 0; n <= 20; n += 1)
    await sendRequest(url, '/api/v1/memory/store', { token, body: { key: 'k', value: LONG.slice(n) } });
}

const gets = (port: number, token: string, path: string): string =>
  `GET /api/v1${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`;

/** Asks, and reads nothing until it is told to; then it says how much came in all. */
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
  test('is answered in the order of its questions, however many it asks at once', async () => {
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

  test('that says what cannot be read is answered what it asked before, and then told so', async () => {
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

  test('that says so while answers are not taken yet gets them whole, and then hears it', async () => {
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

  test('whose second question comes too late is answered the first, and the second is not carried out (R-HTTP-07)', async () => {
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

  test('over which a page is not taken ends, though nobody said who asks for it (R-HTTP-07)', async () => {
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

  test('into which garbage comes while a stream is open ends, and nothing is written into the stream', async () => {
    const { port, owner } = await serve();
    const line = await openConnection(port);
    line.write(gets(port, owner, '/events'));
    await line.waitFor('stream open');
    line.write('no such thing\r\n\r\n');
    await line.waitForEnd();
    expect(line.text().match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  });

  test('may spell our address before the path, as to a proxy, and no other', async () => {
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

  test('that asks in a way of its own is told which ways there are', async () => {
    const { port } = await serve();
    const line = await openConnection(port);
    line.write(`BREW /api/v1/memory HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 400 [^]*or its method is not known/);
  });

  test('that asks much and reads nothing is given one answer at a time, and all of them once it reads (R-HTTP-15)', async () => {
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
    // What the system's own buffers hold counts as taken.
    expect(asked - 20).toBeLessThanOrEqual(3);
    line.socket.resume();
    await vi.waitFor(() => expect(line.text().match(/"versions"/g)).toHaveLength(5), EVENTUALLY);
  });

  test('that asks without end before it hears an answer is ended', async () => {
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
    { why: 'a method that is none', text: 'get /healthz HTTP/1.1\r\n\r\n', says: /^HTTP\/1\.1 400 / },
    { why: 'two lengths', text: 'POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', says: /^HTTP\/1\.1 400 / },
    {
      why: 'a length and chunks',
      text: 'POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      says: /^HTTP\/1\.1 400 /,
    },
    { why: 'a folded header', text: 'GET / HTTP/1.1\r\nA: b\r\n c\r\nX : y\r\n\r\n', says: /^HTTP\/1\.1 400 / },
    { why: '20 KiB of headers', text: `GET / HTTP/1.1\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`, says: /longer than 16 KiB/ },
    { why: 'a line that does not end', text: `GET /${'x'.repeat(20_000)}`, says: /longer than 16 KiB/ },
  ])('with $why is refused and ended', async ({ text, says }) => {
    const { port } = await serve();
    const line = await openConnection(port);
    line.write(text);
    await line.waitForEnd();
    expect(line.text()).toMatch(says);
    expect(line.text()).toMatch(/\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n/);
    expect(line.text()).toMatch(/"error":"invalid_input"/);
  });

  test('hears nothing of a later mistake within an earlier answer', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const around = (): Perform => async () => {
      await promise;
      return { all: 'well' };
    };
    const { port, owner } = await serve({ wrapPerform: around });
    const line = await openConnection(port);
    line.write(`GET /api/v1/memory HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${owner}\r\n\r\nrubbish\r\n\r\n`);
    await line.waitForEnd();
    resolve();
    expect(line.text()).toBe('');
  });

  test('that asks for another protocol goes on as it was', async () => {
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
