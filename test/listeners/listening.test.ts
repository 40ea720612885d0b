import { existsSync, writeFileSync } from 'node:fs';
import { createServer, connect, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Perform } from '../../src/core/operations/perform.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { parseListenAddress } from '../../src/listeners/address.ts';
import { startListener } from '../../src/listeners/listener.ts';
import { describePortHolder } from '../../src/listeners/port.ts';
import { sendRequest, openConnection, serve } from '../support/listener.ts';
import { measureWait } from '../support/work.ts';

async function occupied(host = '127.0.0.1'): Promise<number> {
  const server: Server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

describe('the address', () => {
  test.each([
    ['127.0.0.1:7345', '127.0.0.1', 7345],
    ['localhost:80', '127.0.0.1', 80],
    ['[::1]:0', '::1', 0],
  ])('%s is accepted', (text, host, port) => {
    expect(parseListenAddress(text)).toEqual({ host, port });
  });

  test.each([
    '0.0.0.0:7345',
    '[::]:7345',
    ':7345',
    '7345',
    '127.0.0.1',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '127.0.0.1:-1',
    '127.0.0.1:1e3',
    '127.0.0.2:7345',
    '192.168.1.2:7345',
    'memory.local:7345',
    'localhost.:7345',
    '::1:7345',
    '127.0.0.1:7345/path',
    ' 127.0.0.1:7345',
    '127.0.0.1:7345\n',
    '',
  ])('must be a complete loopback address: "%s" is refused', (text) => {
    expect(() => parseListenAddress(text)).toThrow(/^HELMDECK_ADDR must be /);
  });

  test('can be an IPv6 address', async () => {
    const { url } = await serve({ address: '[::1]:0' });
    expect(url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await sendRequest(url, '/healthz')).status).toBe(200);
  });

  test('cannot be reached from another machine', async () => {
    const { port } = await serve();
    const refused = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.2', () => resolve('connected')).on('error', () => resolve('refused'));
      onTestFinished(() => void socket.destroy());
    });
    expect(refused).toBe('refused');
  });
});

describe('a taken port (R-HTTP-02)', () => {
  test('is an error that names its holder, and no other port is tried', async () => {
    const port = await occupied();
    const started = serve({ address: `127.0.0.1:${port}` });
    const names = process.platform === 'linux' ? `in use by node (process ${process.pid});` : 'in use by another program';
    await expect(started).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining(names) });
    await expect(started).rejects.toThrow(/^127\.0\.0\.1:\d+ is in use by .* HELMDECK_ADDR to another port\.$/);
  });

  test('is also taken by a program that listens on all addresses', async () => {
    const port = await occupied('0.0.0.0');
    await expect(serve({ address: `127.0.0.1:${port}` })).rejects.toThrow(/is in use by /);
  });

  test('of another Helmdeck Memory is reported as such', async () => {
    const { url, folder, perform, tokens, store } = await serve();
    const again = startListener({
      perform,
      tokens,
      onChange: (hear) => store.onChange(hear),
      folder,
      address: new URL(url).host,
      version: '1.2.3',
      clock: systemClock,
    });
    await expect(again).rejects.toThrow(`in use by another Helmdeck Memory (process ${process.pid})`);
    expect(existsSync(join(folder, 'endpoint.json'))).toBe(true);
  });

  test('with an unknown holder is reported as such', () => {
    expect(describePortHolder({ host: '127.0.0.1', port: 1 }, undefined)).toMatch(/^another program \(/);
  });
});

test('a listener that cannot write endpoint.json does not start', async () => {
  const port = await occupied();
  const folder = join(import.meta.dirname, 'there-is-no-such-folder');
  await expect(serve({ folder })).rejects.toMatchObject({ code: 'unavailable' });
  expect(port).toBeGreaterThan(0);
});

describe('closing', () => {
  test('waits for pending requests and closes everything else', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const around = (): Perform => async () => {
      await promise;
      return { all: 'well' };
    };
    const { url, port, owner, listener } = await serve({ wrapPerform: around });
    const idle = await openConnection(port);
    const kept = await openConnection(port);
    kept.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    await kept.waitFor('}');
    const asked = sendRequest(url, '/api/v1/memory', { token: owner });
    await new Promise((settle) => setTimeout(settle, 50));
    const closed = listener.close();
    await Promise.all([idle.waitForEnd(), kept.waitForEnd()]);
    await expect(sendRequest(url, '/healthz')).rejects.toThrow(/ECONNREFUSED/);
    resolve();
    expect((await asked).json).toEqual({ all: 'well' });
    await closed;
  });

  test('does not wait forever', async () => {
    const around = (): Perform => () => new Promise(() => undefined);
    const { url, owner, listener } = await serve({ wrapPerform: around });
    const asked = sendRequest(url, '/api/v1/memory', { token: owner }).catch(() => 'cut');
    await new Promise((settle) => setTimeout(settle, 50));
    expect(await measureWait(() => listener.close())).toBeLessThan(3000);
    expect(await asked).toBe('cut');
  });

  test('twice has the effect of closing once', async () => {
    const sockets = () => process.getActiveResourcesInfo().filter((name) => /TCP|Timeout/.test(name)).length;
    const before = sockets();
    const { url, owner, listener, folder } = await serve();
    await sendRequest(url, '/api/v1/memory', { token: owner });
    await Promise.all([listener.close(), listener.close(), listener[Symbol.asyncDispose]()]);
    await new Promise((settle) => setTimeout(settle, 50));
    expect(sockets()).toBeLessThanOrEqual(before);
    expect(existsSync(join(folder, 'endpoint.json'))).toBe(false);
    expect(existsSync(join(folder, 'owner-token'))).toBe(false);
  });

  test('keeps the files of a program that started later', async () => {
    const { folder, listener } = await serve();
    writeFileSync(join(folder, 'endpoint.json'), '{"instance":"another"}');
    await listener.close();
    expect(existsSync(join(folder, 'endpoint.json'))).toBe(true);
    expect(existsSync(join(folder, 'owner-token'))).toBe(true);
  });
});

test('an unexpected error is logged with operation and client, and reported as internal', async () => {
  const log: object[] = [];
  const around = (): Perform => () => Promise.reject(new TypeError('/home/me/secret is not iterable'));
  const { url, token } = await serve({ wrapPerform: around, log: (trouble) => log.push(trouble) });
  const mine = await token('me', ['admin'], 'the client');
  const answers = [
    await sendRequest(url, '/api/v1/memory/store', { token: mine, body: { key: 'k', value: 'v' } }),
    await sendRequest(url, '/api/v1/owner/recall', { token: mine, body: { key: 'k' } }),
    await sendRequest(url, '/api/v1/owner/nonsense', { token: mine, body: { key: 'k' } }),
  ];
  for (const { status, text } of answers) {
    expect(status).toBe(500);
    expect(text).toMatch(/^\{"error":"internal","message":"[^"]*"\}$/);
    expect(text).not.toMatch(/secret|TypeError|stack/);
  }
  expect(log).toEqual([
    { operation: 'remember', client: 'the client' },
    { operation: 'recall', client: 'the client' },
    { operation: 'owner', client: 'the client' },
  ]);
});
