import { once } from 'node:events';
import { createServer, type ServerResponse, setGlobalProxyFromEnv } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { EgressRequest, EgressResponse } from '../../../src/core/packs/egress.ts';
import { parseHostAllowlist } from '../../../src/core/packs/hosts.ts';
import { createEgress } from '../../../src/main/egress/egress.ts';
import { type ManualClock, manualClock, SECOND } from '../../support/clock.ts';
import { type FakeInternet, startFakeInternet, PUBLIC_IPV4, PUBLIC_IPV6 } from '../../support/fake-internet.ts';

const HOSTS = parseHostAllowlist(['*.example.com', '*.example.org', 'docs.example.com:8443'], 'ask its owner')!;

let internet: FakeInternet;
let clock: ManualClock;

beforeEach(async () => {
  clock = manualClock();
  internet = await startFakeInternet({ clock });
});

const get = (url: string, over: Partial<EgressRequest> = {}): Promise<EgressResponse> =>
  internet.egress.get({ url, hosts: HOSTS, signal: new AbortController().signal, ...over });

/** A server that sends exactly these bytes. */
const raw = (host: string, ...bytes: (string | Buffer)[]): void =>
  internet.respond(host, ({ socket }) => bytes.forEach((more) => socket.write(more)));

const waitUntil = async (condition: () => boolean): Promise<void> => {
  await expect.poll(condition, { interval: 5, timeout: 45_000 }).toBe(true);
};

/** The message of the rejection, once there is one. */
const failureOf = (reply: Promise<EgressResponse>): Promise<unknown> => reply.catch((error: unknown) => error);

describe('a request of a pack (R-PACK-14)', () => {
  test('is a GET over TLS that names the product and nothing else', async () => {
    internet.respond('docs.example.com', (_, response) => response.setHeader('X-One', ['a', 'b']).end('hello'));
    const reply = await get('https://docs.example.com/a%20b?q=1&r=%26#part', { headers: { Accept: 'text/plain' } });
    expect({ ...reply, body: reply.body.toString() }).toMatchObject({
      url: 'https://docs.example.com/a%20b?q=1&r=%26',
      status: 200,
      body: 'hello',
      truncated: false,
      uncacheable: false,
    });
    expect(reply.headers.get('x-one')).toBe('a, b');
    expect(internet.requests).toEqual([
      {
        method: 'GET',
        url: 'https://docs.example.com/a%20b?q=1&r=%26',
        headers: {
          accept: 'text/plain',
          host: 'docs.example.com',
          'user-agent': 'Helmdeck-Memory',
          'accept-encoding': 'identity',
          connection: 'close',
        },
      },
    ]);
    expect(internet.connections).toEqual([`${PUBLIC_IPV4} 443`]);
  });

  test('reaches another port only if it is listed', async () => {
    internet.respond('docs.example.com:8443', (_, response) => response.end('there'));
    expect((await get('https://docs.example.com:8443/')).body.toString()).toBe('there');
    expect(internet.connections).toEqual([`${PUBLIC_IPV4} 8443`]);
  });

  test('tries the next address if one refuses the connection', async () => {
    internet.names.set('docs.example.com', [['1.1.1.1', PUBLIC_IPV6]]);
    internet.respond('docs.example.com', (_, response) => response.end('hello'));
    // The trap closes the connection during the handshake, which is not retried. Only a refused connection moves on to the next
    // address.
    const dial = (address: string, port: number): Socket =>
      address === PUBLIC_IPV6 ? internet.network.dial(address, port) : refused(internet.network.dial(address, port));
    const egress = createEgress({ ...internet.network, dial, clock });
    const reply = await egress.get({ url: 'https://docs.example.com/', hosts: HOSTS, signal: new AbortController().signal });
    expect(reply.body.toString()).toBe('hello');
    expect(internet.connections).toEqual(['1.1.1.1 443', `${PUBLIC_IPV6} 443`]);
  });

  test('ignores proxies and certificate settings in the environment', async () => {
    const proxy = createServer();
    let proxied = 0;
    proxy.on('connection', (socket) => {
      proxied += 1;
      socket.destroy();
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const restore = setGlobalProxyFromEnv({ HTTPS_PROXY: url, HTTP_PROXY: url, https_proxy: url, http_proxy: url });
    vi.spyOn(process, 'emitWarning').mockReturnValue();
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    onTestFinished(() => {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
      restore();
      proxy.close();
    });
    internet.respond('docs.example.com', (_, response) => response.end('hello'));
    expect((await get('https://docs.example.com/')).body.toString()).toBe('hello');
    const { resolve, dial } = internet.network;
    const proxiedEgress = createEgress({ resolve, dial, clock });
    await expect(
      proxiedEgress.get({ url: 'https://docs.example.com/', hosts: HOSTS, signal: new AbortController().signal }),
    ).rejects.toMatchObject({ code: 'handler_failed', message: expect.stringContaining('has no valid certificate') as string });
    expect(proxied).toBe(0);
    expect(internet.requests).toHaveLength(1);
  });

  test('stores no cookies', async () => {
    internet.respond('docs.example.com', (_, response) => response.setHeader('Set-Cookie', 'a=b').end());
    await get('https://docs.example.com/');
    await get('https://docs.example.com/');
    expect(internet.requests.map(({ headers }) => headers.cookie)).toEqual([undefined, undefined]);
  });

  test.each([
    { says: 'Set-Cookie: a=b', once: true },
    { says: 'Cache-Control: no-store', once: true },
    { says: 'Cache-Control: max-age=60, Private', once: true },
    { says: 'Cache-Control: no-cache', once: true },
    { says: 'Cache-Control: max-age=0', once: true },
    { says: 'Cache-Control: public, max-age=60', once: false },
    { says: 'Cache-Control: public,max-age=05', once: false },
    { says: 'X-Other: no-store', once: false },
  ])('a response with $says cannot be cached: $once, also after a redirect (R-PACK-04)', async ({ says, once: uncacheable }) => {
    const [name = '', value = ''] = says.split(': ');
    internet.respond('docs.example.com', (_, response) => response.setHeader(name, value).end());
    internet.respond('old.example.com', (_, response) =>
      response.writeHead(302, { Location: 'https://new.example.com/', [name]: value }).end(),
    );
    internet.respond('new.example.com', (_, response) => response.end());
    expect(await get('https://docs.example.com/')).toMatchObject({ uncacheable });
    expect(await get('https://old.example.com/')).toMatchObject({ url: 'https://new.example.com/', uncacheable });
  });
});

const refused = (socket: Socket): Socket => {
  socket.destroy(new Error('ECONNREFUSED'));
  return socket;
};

describe('an address that is refused before a connection (R-PACK-14)', () => {
  test.each([
    ['http://docs.example.com/', 'https://'],
    ['ftp://docs.example.com/', 'https://'],
    ['file:///etc/passwd', 'https://'],
    ['//docs.example.com/', 'https://'],
    ['docs.example.com', 'https://'],
    ['', 'https://'],
    ['https:docs.example.com', 'https://'],
    ['https:///docs.example.com', 'https://'],
    [' https://docs.example.com/', 'https://'],
    ['https://docs.example.com/\n', 'not a valid address'],
    ['https://docs.exam\tple.com/', 'not a valid address'],
    ['https://docs.example.com\\@10.0.0.1/', 'not a valid address'],
    ['https://%31%30.0.0.1%/', 'not a valid address'],
    ['https://user@docs.example.com/', 'user name or a password'],
    ['https://user:pass@docs.example.com/', 'user name or a password'],
    ['https://:pass@docs.example.com/', 'user name or a password'],
    ['https://127.0.0.1/', 'full host name'],
    ['https://93.184.215.14/', 'full host name'],
    ['https://2130706433/', 'full host name'],
    ['https://0x7f000001/', 'full host name'],
    ['https://0x7f.1/', 'full host name'],
    ['https://0177.0.0.1/', 'full host name'],
    ['https://017700000001/', 'full host name'],
    ['https://127.1/', 'full host name'],
    ['https://10.1/', 'full host name'],
    ['https://127.0.0.1./', 'full host name'],
    ['https://①②⑦.⓪.⓪.①/', 'full host name'],
    ['https://%31%32%37.0.0.1/', 'full host name'],
    ['https://[::1]/', 'full host name'],
    ['https://[::ffff:127.0.0.1]/', 'full host name'],
    ['https://[::ffff:7f00:1]/', 'full host name'],
    ['https://[64:ff9b::7f00:1]/', 'full host name'],
    ['https://[2002:7f00:1::]/', 'full host name'],
    ['https://localhost/', 'full host name'],
    ['https://metadata/', 'full host name'],
    ['https://docs.example.com./', 'full host name'],
    ['https://docs.example.com:444/', 'not an allowed host'],
    ['https://docs.example.com:22/', 'not an allowed host'],
    ['https://other.example.net/', 'not an allowed host'],
    ['https://example.com/', 'not an allowed host'],
    ['https://docs.example.com.evil.net/', 'not an allowed host'],
    ['https://dоcs.example.net/', 'not an allowed host'],
  ])('%j', async (url, why) => {
    await expect(get(url)).rejects.toMatchObject({ code: 'invalid_input', message: expect.stringContaining(why) as string });
    expect([internet.trappedConnections(), internet.connections, internet.requests]).toEqual([0, [], []]);
  });
});

const PRIVATE_ADDRESSES = [
  '127.0.0.1',
  '127.8.8.8',
  '0.0.0.0',
  '10.0.0.1',
  '172.16.0.1',
  '192.168.1.1',
  '100.64.0.1',
  '169.254.169.254',
  '224.0.0.251',
  '198.18.0.1',
  '203.0.113.9',
  '255.255.255.255',
  '::1',
  '::',
  '::ffff:10.0.0.1',
  '::ffff:127.0.0.1',
  '::127.0.0.1',
  'fe80::1',
  'fe80::1%lo',
  'fd00::1',
  'fd00:ec2::254',
  'ff02::1',
  '64:ff9b::a00:1',
  '64:ff9b:1::1',
  '2002:7f00:1::',
  '2001:0:7f00:1::1',
  '2001:db8::1',
  '127.1',
  '0x7f.0.0.1',
  '2130706433',
  'localhost',
];

describe('a name with a private address is refused (R-PACK-14)', () => {
  test('the trap detects connections', async () => {
    internet.network.dial('10.0.0.1', 443).on('error', () => undefined);
    await expect.poll(internet.trappedConnections).toBe(1);
  });

  test.each(PRIVATE_ADDRESSES)('address %s', async (address) => {
    internet.names.set('docs.example.com', [[address]]);
    await expect(get('https://docs.example.com/')).rejects.toMatchObject({
      code: 'handler_failed',
      message: 'docs.example.com resolves to an address that is not public, so no request was sent; check the host name.',
    });
    expect([internet.trappedConnections(), internet.connections, internet.requests]).toEqual([0, [], []]);
  });

  test.each([
    ['public first', [PUBLIC_IPV4, '10.0.0.1']],
    ['public last', ['10.0.0.1', PUBLIC_IPV4]],
    ['mapped among public ones', [PUBLIC_IPV6, PUBLIC_IPV4, '::ffff:10.0.0.1']],
    ['no address', []],
  ])('private and public addresses: %s', async (_, addresses) => {
    internet.names.set('docs.example.com', [addresses]);
    await expect(get('https://docs.example.com/')).rejects.toMatchObject({ code: 'handler_failed' });
    expect([internet.trappedConnections(), internet.connections, internet.requests]).toEqual([0, [], []]);
  });

  test('DNS rebinding: the name is resolved once, and the checked address is used', async () => {
    internet.names.set('docs.example.com', [[PUBLIC_IPV4], ['127.0.0.1']]);
    internet.respond('docs.example.com', (_, response) => response.end('hello'));
    expect((await get('https://docs.example.com/')).body.toString()).toBe('hello');
    expect(internet.connections).toEqual([`${PUBLIC_IPV4} 443`]);
    await expect(get('https://docs.example.com/')).rejects.toMatchObject({ code: 'handler_failed' });
    expect(internet.connections).toHaveLength(1);
    expect(internet.trappedConnections()).toBe(0);
  });

  test('including a name that the system resolver maps to this machine', async () => {
    const inside = createTcpServer();
    let reached = 0;
    inside.on('connection', () => (reached += 1)).listen(0, '127.0.0.1');
    await once(inside, 'listening');
    onTestFinished(() => void inside.close());
    const { port } = inside.address() as AddressInfo;
    const hosts = { allows: () => true, remedy: '' };
    const egress = createEgress();
    // Resolvers map names below localhost to this machine or do not answer.
    for (const url of [`https://a.localhost:${port}/`, `https://127.0.0.1:${port}/`, `https://localhost:${port}/`]) {
      await expect(egress.get({ url, hosts, signal: new AbortController().signal })).rejects.toThrow(
        /public|resolved|full host name/,
      );
    }
    expect(reached).toBe(0);
  });
});

describe('a redirect (R-PACK-14)', () => {
  const redirect = (host: string, to: string, status = 302): void =>
    internet.respond(host, (_, response) => response.writeHead(status, { Location: to }).end('moved'));

  test.each([301, 302, 303, 307, 308])('with status %i is followed, and keeps the headers within a host', async (status) => {
    internet.respond('docs.example.com', ({ url }, response) =>
      url === '/old' ? response.writeHead(status, { Location: 'new#part' }).end() : response.end('new'),
    );
    const reply = await get('https://docs.example.com/old', { headers: { Authorization: 'Bearer abc' } });
    expect(reply).toMatchObject({ url: 'https://docs.example.com/new', status: 200 });
    expect(internet.requests.map(({ method, headers }) => [method, headers.authorization])).toEqual([
      ['GET', 'Bearer abc'],
      ['GET', 'Bearer abc'],
    ]);
  });

  test('to another host drops the headers, also if a later redirect leads back', async () => {
    redirect('docs.example.com', 'https://other.example.org/');
    internet.respond('other.example.org', (_, response) =>
      response.writeHead(302, { Location: 'https://www.example.com/' }).end(),
    );
    internet.respond('www.example.com', ({ url }, response) =>
      url === '/' ? response.writeHead(302, { Location: 'https://docs.example.com:8443/' }).end() : response.end(),
    );
    internet.respond('docs.example.com:8443', (_, response) => response.end('end'));
    const headers = { Authorization: 'Bearer abc', Cookie: 'a=b', Accept: 'text/plain', 'X-Own': 'c' };
    expect((await get('https://docs.example.com/', { headers })).url).toBe('https://docs.example.com:8443/');
    expect(internet.requests).toHaveLength(4);
    for (const { headers: sent } of internet.requests.slice(1)) {
      expect(Object.keys(sent).toSorted()).toEqual(['accept-encoding', 'connection', 'host', 'user-agent']);
    }
  });

  test.each([
    ['http://docs.example.com/', 'does not begin with https://'],
    ['https://127.0.0.1/', 'full host name'],
    ['https://169.254.169.254/latest/meta-data/', 'full host name'],
    ['//2130706433/', 'full host name'],
    ['https://[::ffff:10.0.0.1]/', 'full host name'],
    ['https://localhost/', 'full host name'],
    ['https://user:pass@www.example.com/', 'user name or a password'],
    ['https://www.example.com:8080/', 'not an allowed host'],
    ['https://evil.example.net/', 'not an allowed host'],
    ['file:///etc/passwd', 'does not begin with https://'],
    ['gopher://docs.example.com/', 'does not begin with https://'],
    ['https://', 'not a valid address'],
    ['https://www.example.com\\@10.0.0.1/', 'not a valid address'],
  ])('to %j is not followed', async (to, why) => {
    redirect('docs.example.com', to);
    await expect(get('https://docs.example.com/')).rejects.toMatchObject({
      code: 'handler_failed',
      message: expect.stringContaining(why) as string,
    });
    expect([internet.trappedConnections(), internet.requests.length]).toEqual([0, 1]);
  });

  test('to a listed name with a private address is refused, also after several redirects', async () => {
    redirect('a.example.com', 'https://b.example.com/');
    redirect('b.example.com', 'https://c.example.com/');
    redirect('c.example.com', 'https://inside.example.com/');
    for (const address of PRIVATE_ADDRESSES) {
      internet.names.set('inside.example.com', [[address]]);
      await expect(get('https://a.example.com/')).rejects.toMatchObject({ code: 'handler_failed' });
    }
    expect(internet.trappedConnections()).toBe(0);
    expect(new Set(internet.connections)).toEqual(new Set([`${PUBLIC_IPV4} 443`]));
  });

  test('to the same name is refused if it then has a private address', async () => {
    internet.names.set('docs.example.com', [[PUBLIC_IPV4], ['10.0.0.1']]);
    redirect('docs.example.com', '/again');
    await expect(get('https://docs.example.com/')).rejects.toMatchObject({ code: 'handler_failed' });
    expect([internet.trappedConnections(), internet.requests.length]).toEqual([0, 1]);
  });

  test('is followed at most five times', async () => {
    internet.respond('docs.example.com', ({ url = '' }, response) => {
      const left = Number(url.slice(1));
      if (left > 0) response.writeHead(302, { Location: `/${left - 1}` }).end();
      else response.end('there');
    });
    expect((await get('https://docs.example.com/5')).body.toString()).toBe('there');
    await expect(get('https://docs.example.com/6')).rejects.toMatchObject({
      message: expect.stringContaining('more than 5 times') as string,
    });
    expect(internet.requests).toHaveLength(6 + 6);
  });
});

describe('a response beyond a limit (R-PACK-14)', () => {
  const MOST = 1024 * 1024;

  test('is accepted up to 1 MiB, and refused or truncated above', async () => {
    internet.respond('docs.example.com', ({ url = '' }, response) => response.end(Buffer.alloc(Number(url.slice(1)), 'x')));
    expect((await get(`https://docs.example.com/${MOST}`)).body).toHaveLength(MOST);
    await expect(get(`https://docs.example.com/${MOST + 1}`)).rejects.toMatchObject({
      code: 'handler_failed',
      message: 'docs.example.com sent more than 1,048,576 bytes; request less data.',
    });
    expect(await get(`https://docs.example.com/${MOST + 1}`, { truncate: true, maxBytes: 10 })).toMatchObject({
      body: Buffer.alloc(10, 'x'),
      truncated: true,
    });
    // Requests above the limit are capped.
    await expect(get(`https://docs.example.com/${MOST + 1}`, { maxBytes: 10 * MOST })).rejects.toMatchObject({
      code: 'handler_failed',
    });
  });

  test('is accepted in single bytes up to the limit', async () => {
    const pieces = (count: number): Buffer => Buffer.from('1\r\na\r\n'.repeat(count));
    const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
    raw('docs.example.com', head, pieces(20_000), '0\r\n\r\n');
    expect((await get('https://docs.example.com/')).body.equals(Buffer.alloc(20_000, 'a'))).toBe(true);
    expect((await get('https://docs.example.com/', { maxBytes: 100, truncate: true })).body).toHaveLength(100);
  });

  test('without an end is stopped at the limit', async () => {
    let sent = 0;
    let gone = false;
    internet.respond('docs.example.com', (_, response) => {
      const more = (): void => {
        while (response.writable && response.write(Buffer.alloc(65_536, 'x'))) sent += 65_536;
      };
      response.on('drain', more).on('close', () => (gone = true));
      more();
    });
    await expect(get('https://docs.example.com/')).rejects.toMatchObject({
      message: expect.stringContaining('more than') as string,
    });
    await waitUntil(() => gone);
    expect(sent).toBeLessThan(32 * MOST);
  });

  test('that is compressed is refused', async () => {
    internet.respond('docs.example.com', (_, response) =>
      response.setHeader('Content-Encoding', 'gzip').end(gzipSync(Buffer.alloc(64 * MOST))),
    );
    await expect(get('https://docs.example.com/')).rejects.toMatchObject({
      message: expect.stringContaining('sent a compressed response') as string,
    });
  });

  test('with more than 16 KiB of headers is refused', async () => {
    const lines = Array.from({ length: 3000 }, (_, index) => `X-${index}: ${index}\r\n`);
    raw('many.example.com', 'HTTP/1.1 200 OK\r\n', ...lines, 'Content-Length: 0\r\n\r\n');
    raw('long.example.com', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(17_000)}\r\n`);
    raw('trailing.example.com', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n', ...lines);
    for (const name of ['many', 'long', 'trailing']) {
      await expect(get(`https://${name}.example.com/`), name).rejects.toMatchObject({ code: 'handler_failed' });
    }
  });

  test('with endless headers is refused at the limit', async () => {
    let line: Socket | undefined;
    internet.respond('docs.example.com', ({ socket }) => {
      line = socket;
      socket.write('HTTP/1.1 200 OK\r\n');
      const more = (): void => void (socket.writable && socket.write('X-More: and more\r\n', () => setImmediate(more)));
      more();
    });
    await expect(get('https://docs.example.com/')).rejects.toMatchObject({
      message: expect.stringContaining('more than 16 KiB of headers') as string,
    });
    await waitUntil(() => line?.destroyed === true);
  });

  test('with a thousand headers still prevents caching', async () => {
    const lines = Array.from({ length: 2500 }, () => `a:\r\n`);
    raw('docs.example.com', 'HTTP/1.1 200 OK\r\n', ...lines, 'Cache-Control: no-store\r\nContent-Length: 0\r\n\r\n');
    expect(await get('https://docs.example.com/')).toMatchObject({ uncacheable: true });
  });

  test('that is incomplete or not HTTP is reported', async () => {
    raw('noise.example.com', 'SSH-2.0-OpenSSH_9.6\r\n');
    internet.respond('short.example.com', ({ socket }) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal'));
    internet.respond('gone.example.com', ({ socket }) => socket.destroy());
    internet.respond('upgrade.example.com', ({ socket }) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    );
    for (const name of ['noise', 'short', 'gone', 'upgrade']) {
      await expect(get(`https://${name}.example.com/`), name).rejects.toMatchObject({
        code: 'handler_failed',
        message: `${name}.example.com closed the connection before the response was complete; try again later.`,
      });
    }
  });

  test('from a server with another certificate is refused before the request is sent', async () => {
    const hosts = parseHostAllowlist(['docs.example.net'], '')!;
    await expect(get('https://docs.example.net/', { hosts, headers: { Authorization: 'Bearer abc' } })).rejects.toMatchObject({
      code: 'handler_failed',
      message: 'docs.example.net has no valid certificate, or closed the connection during the TLS handshake; try again later.',
    });
    expect(internet.requests).toEqual([]);
  });
});

describe('a timeout (R-PACK-14)', () => {
  const timeout = (what: string) => ({ code: 'timeout', message: `docs.example.com ${what} seconds; try again later.` });

  test('ends a request after 10 s without data, before the headers and in the body', async () => {
    let line: Socket | undefined;
    internet.respond('docs.example.com', ({ socket, url }, response) => {
      line = socket;
      if (url === '/body') response.writeHead(200).write('beginning');
    });
    for (const path of ['/headers', '/body']) {
      line = undefined;
      const failure = failureOf(get(`https://docs.example.com${path}`));
      await waitUntil(() => line !== undefined);
      await clock.advance(11 * SECOND);
      expect(await failure, path).toMatchObject(timeout('sent no data for 10'));
      await waitUntil(() => line?.destroyed === true);
    }
    expect(clock.pendingTimers).toBe(0);
  });

  test('ends a request after 20 s in total', async () => {
    let answering: ServerResponse | undefined;
    internet.respond('docs.example.com', (_, response) => {
      response.writeHead(200).write('.');
      answering = response;
    });
    const failure = failureOf(get('https://docs.example.com/'));
    await waitUntil(() => answering !== undefined);
    for (let second = 0; second < 21; second += 1) {
      answering?.write('.');
      await new Promise((resolve) => setTimeout(resolve, 5));
      await clock.advance(SECOND);
    }
    expect(await failure).toMatchObject(timeout('took longer than 20'));
  });

  test('ends a name lookup and a connection that never complete', async () => {
    const target = { url: 'https://docs.example.com/', hosts: HOSTS, signal: new AbortController().signal };
    const failedLookup = failureOf(
      createEgress({ ...internet.network, resolve: () => new Promise(() => undefined), clock }).get(target),
    );
    await clock.advance(11 * SECOND);
    expect(await failedLookup).toMatchObject(timeout('sent no data for 10'));
    let dialled = false;
    const dial = (): Socket => {
      dialled = true;
      // A socket that neither connects nor fails.
      return new Socket();
    };
    const failedConnection = failureOf(createEgress({ ...internet.network, dial, clock }).get(target));
    await waitUntil(() => dialled);
    await clock.advance(5 * SECOND);
    expect(await failedConnection).toMatchObject({
      code: 'handler_failed',
      message: 'docs.example.com could not be reached; try again later.',
    });
    expect(clock.pendingTimers).toBe(0);
  });

  test('is not needed if the caller cancels: before, during the lookup, and during the response', async () => {
    const reason = new Error('given up');
    await expect(get('https://docs.example.com/', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const looking = new AbortController();
    const never = createEgress({ ...internet.network, resolve: () => new Promise(() => undefined), clock });
    const failedLookup = failureOf(never.get({ url: 'https://docs.example.com/', hosts: HOSTS, signal: looking.signal }));
    looking.abort(reason);
    expect(await failedLookup).toBe(reason);
    expect(internet.connections).toEqual([]);
    let line: Socket | undefined;
    internet.respond('docs.example.com', ({ socket }, response) => {
      line = socket;
      response.writeHead(200).write('beginning');
    });
    const controller = new AbortController();
    const failure = failureOf(get('https://docs.example.com/', { signal: controller.signal }));
    await waitUntil(() => line !== undefined);
    controller.abort(reason);
    expect(await failure).toBe(reason);
    await waitUntil(() => line?.destroyed === true);
    expect(clock.pendingTimers).toBe(0);
  });
});

test('an error contains no header, no address and no text of the server', async () => {
  const secret = 'Bearer very-secret-9f2c';
  raw('docs.example.com', `HTTP/1.1 200 ${secret}\r\nBroken\r\n\r\n`);
  const error = await get('https://docs.example.com/?q=private', { headers: { Authorization: secret } }).catch(
    (one: Error) => one,
  );
  expect(error).toMatchObject({ code: 'handler_failed' });
  expect((error as Error).message).not.toMatch(/9f2c|private|93\.184|Broken/);
});
