import { describe, expect, test } from 'vitest';
import { createGuard } from '../../src/listeners/guard.ts';
import { sendRequest, openConnection, ALL_ROUTES, serve } from '../support/listener.ts';

const unguarded = [
  ...ALL_ROUTES,
  ['GET', '/healthz'],
  ['GET', '/nowhere'],
  ['GET', '/.well-known/x'],
  ['OPTIONS', '/healthz'],
] as const;

const strangers = (port: number): string[] => [
  'evil.example',
  `evil.example:${port}`,
  `127.0.0.1.nip.io:${port}`,
  `localhost.evil.example:${port}`,
  `memory.local:${port}`,
  `memory.internal:${port}`,
  `localhost.:${port}`,
  '127.0.0.1',
  'localhost',
  `127.0.0.1:${port + 1}`,
  `127.0.0.2:${port}`,
  `0.0.0.0:${port}`,
  `[::]:${port}`,
  `[::ffff:127.0.0.1]:${port}`,
  `127.1:${port}`,
  `2130706433:${port}`,
  `127.0.0.1:0${port}`,
  `user@127.0.0.1:${port}`,
  `127.0.0.1:${port}, evil.example`,
  '',
];

describe('the Host of a request (R-HTTP-04)', () => {
  test('must be a loopback name with our port, on every route and for every caller', async () => {
    const { url, port, owner } = await serve();
    for (const [method, path] of unguarded) {
      const answers = await Promise.all(
        strangers(port).flatMap((host) => [
          sendRequest(url, path, { method, headers: ['Host', host] }),
          sendRequest(url, path, { method, token: owner, headers: ['Host', host] }),
        ]),
      );
      const told = new Set(answers.map(({ status, json }) => `${method} ${path} ${status} ${json.error}`));
      expect([...told]).toEqual([`${method} ${path} 403 forbidden_host`]);
    }
  });

  test.each(['127.0.0.1', 'localhost', '[::1]'])('is accepted: %s', async (name) => {
    const { url, port } = await serve();
    expect((await sendRequest(url, '/healthz', { headers: ['Host', `${name}:${port}`] })).status).toBe(200);
  });

  test.each([
    { why: 'no Host', lines: '' },
    { why: 'two Host headers', lines: 'Host: 127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT\r\n' },
    { why: 'a second, foreign Host', lines: 'Host: 127.0.0.1:PORT\r\nhost: evil.example\r\n' },
    { why: 'a foreign Host after 3,000 other headers', lines: `${'a:\r\n'.repeat(3000)}Host: evil.example\r\n` },
  ])('is refused with $why', async ({ lines }) => {
    const { port } = await serve();
    const line = await openConnection(port);
    line.write(`GET /healthz HTTP/1.1\r\n${lines.replaceAll('PORT', `${port}`)}\r\n`);
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 403 [^]*"forbidden_host"/);
  });

  test('may be a listed host if a proxy is in front', async () => {
    const { url } = await serve({ allowedHosts: ['memory.example:8443'] });
    expect((await sendRequest(url, '/healthz', { headers: ['Host', 'memory.example:8443'] })).status).toBe(200);
    expect((await sendRequest(url, '/healthz', { headers: ['Host', 'memory.example'] })).status).toBe(403);
  });

  test('may omit the port 80, as browsers do', () => {
    expect(() => createGuard(80)(['Host', 'localhost'])).not.toThrow();
    expect(() => createGuard(7345)(['Host', 'localhost'])).toThrow(/not an address of Helmdeck Memory/);
  });
});

describe('a web page of another origin (R-HTTP-05)', () => {
  const marks = (port: number): [string, string][] => [
    ['Origin', 'https://evil.example'],
    ['Origin', 'null'],
    ['Origin', ''],
    ['Origin', `http://127.0.0.1:${port + 1}`],
    ['Origin', `http://localhost:${port}`],
    ['Origin', `http://127.0.0.1:${port}.evil.example`],
    ['ORIGIN', 'file://'],
    ['Sec-Fetch-Site', 'cross-site'],
    ['Sec-Fetch-Site', 'same-site'],
    ['sec-fetch-site', 'none, cross-site'],
  ];

  test('is refused on every route, before any other check', async () => {
    const { url, port, owner } = await serve();
    for (const [method, path] of unguarded) {
      const answers = await Promise.all(
        marks(port).map((mark) => sendRequest(url, path, { method, token: owner, headers: mark })),
      );
      expect(new Set(answers.map(({ status, json }) => `${status} ${json.error}`))).toEqual(new Set(['403 forbidden_origin']));
    }
  });

  test('cannot hide its Origin behind many headers', async () => {
    const { port } = await serve();
    const line = await openConnection(port);
    line.write(
      `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${'a:\r\n'.repeat(3500)}Origin: https://evil.example\r\n\r\n`,
    );
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 403 /);
  });

  test('never gets a CORS header', async () => {
    const { url, owner } = await serve();
    for (const [method, path] of [...unguarded, ['OPTIONS', '/api/v1/memory/store'] as const]) {
      const headers = ['Access-Control-Request-Method', 'POST', 'Access-Control-Request-Headers', 'authorization'];
      const answer = await sendRequest(url, path, { method, headers, ...(path !== '/api/v1/events' && { token: owner }) });
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  test('opened by the owner through the address bar can read the routes without token', async () => {
    const { url } = await serve();
    expect((await sendRequest(url, '/healthz', { headers: ['Sec-Fetch-Site', 'none'] })).text).toBe('{"status":"ok"}');
  });
});

describe('our own origin (R-HTTP-05)', () => {
  const own = (port: number): string[][] => [
    ['Origin', `http://127.0.0.1:${port}`],
    ['Origin', `http://127.0.0.1:${port}`, 'Sec-Fetch-Site', 'same-origin'],
    ['Sec-Fetch-Site', 'same-origin'],
    ['Host', `localhost:${port}`, 'Origin', `http://localhost:${port}`],
  ];

  test('is served like any program with a valid token', async () => {
    const { url, port, owner } = await serve();
    for (const headers of own(port)) {
      expect((await sendRequest(url, '/api/v1/status', { token: owner, headers })).status).toBe(200);
      expect((await sendRequest(url, '/healthz', { headers })).status).toBe(200);
    }
  });

  test('does not replace a token', async () => {
    const { url, port } = await serve();
    for (const headers of own(port)) {
      for (const [method, path] of ALL_ROUTES) {
        const [none, wrong] = [
          await sendRequest(url, path, { method, headers }),
          await sendRequest(url, path, { method, token: 'wrong', headers }),
        ];
        expect([path, none.status, wrong.status]).toEqual([path, 401, 401]);
      }
    }
  });

  test('is never accepted for a foreign name that resolves to this machine', async () => {
    const { url, port, owner } = await serve();
    const headers = ['Host', `evil.example:${port}`, 'Origin', `http://evil.example:${port}`];
    const answer = await sendRequest(url, '/api/v1/status', { token: owner, headers });
    expect([answer.status, answer.json.error]).toEqual([403, 'forbidden_host']);
  });
});
