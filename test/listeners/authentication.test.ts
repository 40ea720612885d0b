import { Agent } from 'node:http';
import { SignJWT } from 'jose';
import { describe, expect, test } from 'vitest';
import { sendRequest, ALL_ROUTES, serve } from '../support/listener.ts';

describe('every route except the health check (R-HTTP-08, R-AUTH-07)', () => {
  test('requires a token and explains how to send it (R-ERR-06)', async () => {
    const { url } = await serve();
    for (const [method, path] of ALL_ROUTES) {
      const { status, json, headers } = await sendRequest(url, path, { method });
      expect({ path, status, error: json.error }).toEqual({ path, status: 401, error: 'missing_bearer' });
      expect(headers['www-authenticate']).toBe('Bearer realm="helmdeck"');
    }
  });

  test('refuses a token with a foreign signature', async () => {
    const { url } = await serve();
    const claims = { iss: 'helmdeck', sub: 'me', scopes: ['admin'] };
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256' })
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode('another secret of at least 32 bytes'));
    for (const [method, path] of ALL_ROUTES) {
      const { status, json } = await sendRequest(url, path, { method, token: forged });
      expect({ path, status, error: json.error }).toEqual({ path, status: 401, error: 'invalid_token' });
    }
  });

  test('reads the token from the Authorization header only', async () => {
    const { url, owner } = await serve();
    const table: [why: string, path: string, headers: string[]][] = [
      ['the query', `/api/v1/version?access_token=${owner}`, []],
      ['the query, under the name of the header', `/api/v1/version?authorization=Bearer%20${owner}`, []],
      ['a cookie', '/api/v1/version', ['Cookie', `authorization=${owner}; token=${owner}`]],
      ['another header', '/api/v1/version', ['Proxy-Authorization', `Bearer ${owner}`]],
      ['another scheme', '/api/v1/version', ['Authorization', `Basic ${owner}`]],
      ['no scheme', '/api/v1/version', ['Authorization', owner]],
      ['a scheme alone', '/api/v1/version', ['Authorization', 'Bearer ']],
      ['two at once', '/api/v1/version', ['Authorization', `Bearer ${owner} ${owner}`]],
      ['two headers', '/api/v1/version', ['Authorization', `Bearer ${owner}`, 'authorization', `Bearer ${owner}`]],
      ['a good header after a bad one', '/api/v1/version', ['Authorization', 'Bearer x', 'Authorization', `Bearer ${owner}`]],
    ];
    for (const [why, path, headers] of table) {
      const { status, text } = await sendRequest(url, path, { headers });
      expect({ why, status }).toEqual({ why, status: 401 });
      expect(text).not.toContain(owner);
    }
  });

  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR', 'Bearer  '])('accepts the scheme in any letter case: %s', async (scheme) => {
    const { url, owner } = await serve();
    expect((await sendRequest(url, '/api/v1/version', { headers: ['Authorization', `${scheme} ${owner}`] })).json).toEqual({
      version: '1.2.3',
    });
  });

  test('refuses a token without the scope', async () => {
    const { url, token } = await serve();
    const reader = await token('me', ['memory:read']);
    const writer = await token('me', ['memory:write']);
    const none = await sendRequest(url, '/api/v1/memory/store', { token: reader, body: { key: 'a', value: 'b' } });
    expect([none.status, none.json.error]).toEqual([403, 'insufficient_scope']);
    const seen = await Promise.all(
      ['/api/v1/memory', '/api/v1/events', '/api/v1/memory/export'].map((path) => sendRequest(url, path, { token: writer })),
    );
    expect(seen.map(({ json }) => json.error)).toEqual(Array.from({ length: 3 }, () => 'insufficient_scope'));
  });

  test('refuses a revoked token, even on a connection that used it before', async () => {
    const { url, token, tokens } = await serve();
    const given = await token();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await sendRequest(url, '/api/v1/memory', { token: given, agent })).status).toBe(200);
    const [record] = (await tokens.list()).tokens;
    await tokens.revoke({ id: record?.id ?? '', unrecorded: false });
    expect((await sendRequest(url, '/api/v1/memory', { token: given, agent })).json.error).toBe('invalid_token');
    expect((await sendRequest(url, '/api/v1/memory', { token: given })).json.error).toBe('invalid_token');
    agent.destroy();
  });

  test('checks the token of every request, even on the same connection', async () => {
    const { url, token } = await serve();
    const [mine, yours] = [await token('me'), await token('you')];
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    await sendRequest(url, '/api/v1/memory/store', { token: mine, body: { key: 'whose', value: 'mine' }, agent });
    const asked = [mine, yours, mine, `${mine}x`, mine.slice(0, -1), undefined, mine];
    const told: unknown[] = [];
    for (const one of asked) {
      const { status } = await sendRequest(url, '/api/v1/memory/fact?key=whose', { ...(one && { token: one }), agent });
      told.push(status);
    }
    expect(told).toEqual([200, 404, 200, 401, 401, 401, 200]);
    agent.destroy();
  });
});

describe('an unknown path (R-HTTP-09)', () => {
  const unknown = [
    '/',
    '/api',
    '/api/v1',
    '/api/v1/',
    '/api/v1/memory/',
    '/api/v1//memory',
    '/API/v1/memory',
    '/api/v1/memory/%73tore',
    '/api/v1/./memory',
    '/api/v1/tokens/',
    '/api/v1/tokens/a/b',
    '/api/v1/owner/',
    '/healthz/',
    '/registered',
    '/.well-known',
    '/__proto__',
    '/constructor',
    '/api/v1/memory;x',
    'http://127.0.0.1/api/v1/memory',
    '*',
  ];

  test('is 404 with a token and 401 without', async () => {
    const { url, owner } = await serve();
    for (const path of unknown) {
      const answers = await Promise.all([
        sendRequest(url, path),
        sendRequest(url, path, { token: 'x.y.z' }),
        sendRequest(url, path, { token: owner }),
      ]);
      expect({ path, told: answers.map(({ json }) => json.error) }).toEqual({
        path,
        told: ['missing_bearer', 'invalid_token', 'not_found'],
      });
    }
  });

  test.each(['/.well-known/oauth-protected-resource', '/.well-known/oauth-authorization-server/api/v1/mcp', '/register'])(
    'at an OAuth discovery path is 404 without a token: %s',
    async (path) => {
      const { url } = await serve();
      for (const method of ['GET', 'POST', 'HEAD', 'OPTIONS']) {
        const { status, headers } = await sendRequest(url, path, {
          method,
          ...(method === 'POST' && { body: { redirect_uris: [] } }),
        });
        expect([status, headers['www-authenticate']]).toEqual([404, undefined]);
      }
    },
  );
});

describe('an unsupported method', () => {
  test('is 405 and lists the supported methods (R-ERR-06)', async () => {
    const { url, owner } = await serve();
    for (const [known, path] of ALL_ROUTES) {
      for (const method of ['OPTIONS', 'PUT', 'HEAD', 'TRACE', 'PROPFIND']) {
        const { status, headers } = await sendRequest(url, path, { method, token: owner });
        expect({ path, method, status }).toEqual({ path, method, status: 405 });
        expect(headers.allow?.split(', ')).toContain(known);
      }
    }
  });

  test('is 405 on the health check too, without a token', async () => {
    const { url } = await serve();
    const answers = await Promise.all(['POST', 'HEAD', 'OPTIONS'].map((method) => sendRequest(url, '/healthz', { method })));
    expect(answers.map(({ status, headers }) => [status, headers.allow])).toEqual(Array.from({ length: 3 }, () => [405, 'GET']));
  });
});

test('every response forbids caching and content sniffing (R-HTTP-10)', async () => {
  const { url, owner } = await serve();
  const answers = await Promise.all([
    sendRequest(url, '/healthz'),
    sendRequest(url, '/healthz', { headers: ['Origin', 'x'] }),
    sendRequest(url, '/nowhere'),
    sendRequest(url, '/nowhere', { token: owner }),
    sendRequest(url, '/.well-known/x'),
    sendRequest(url, '/api/v1/memory', { method: 'PUT', token: owner }),
    sendRequest(url, '/api/v1/memory/store', { token: owner, body: '{' }),
    sendRequest(url, '/api/v1/memory/store', { token: owner, body: Buffer.alloc(2 ** 20 + 1) }),
    ...ALL_ROUTES.filter(([, path]) => !path.endsWith('events')).map(([method, path]) =>
      sendRequest(url, path, { method, token: owner }),
    ),
  ]);
  for (const { headers } of answers) {
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['server']).toBeUndefined();
    expect(headers['x-powered-by']).toBeUndefined();
  }
});
