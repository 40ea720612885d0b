import { describe, expect, test } from 'vitest';
import { openStore } from '../../src/core/store/open-store.ts';
import { formatTime } from '../../src/core/time/format-time.ts';
import { CONNECTION_LIMITS } from '../../src/listeners/limits.ts';
import { manualClock, HOUR, MINUTE } from '../support/clock.ts';
import { sendRequest, openConnection, ALL_ROUTES, serve, type ServedMemory, EVENTUALLY } from '../support/listener.ts';
import { withKey } from '../support/store.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PAGES = 'out/renderer';
const windowed = (over: Parameters<typeof serve>[0] = {}) => serve({ windowFolder: PAGES, ...over });

const linkOf = ({ listener }: ServedMemory): string => /#link=(.+)$/.exec(listener.windowLink() ?? '')?.[1] ?? '';

const follow = ({ url }: ServedMemory, link: unknown, headers: readonly string[] = []) =>
  sendRequest(url, '/window/open', { body: { link }, headers });

async function opened(all: ServedMemory): Promise<string> {
  const { json } = await follow(all, linkOf(all));
  return String(json['session']);
}

const call = (
  { url }: ServedMemory,
  session: string | undefined,
  operation = 'status',
  { input = {}, subject = 'subject=me', headers = [] as readonly string[] } = {},
) =>
  sendRequest(url, `/window/call/${operation}?${subject}`, {
    ...(session !== undefined && { token: session }),
    body: input,
    headers,
  });

const told = ({ status, json }: { status: number; json: { error?: string } }): string => `${status} ${json.error ?? ''}`.trim();

describe('a link to the window (R-WIN-01)', () => {
  test('is in the fragment of the URL, which browsers send to no server', async () => {
    const all = await windowed();
    expect(all.listener.windowLink()).toMatch(new RegExp(`^${all.url}/#link=[A-Za-z0-9_-]{43}$`));
  });

  test('works once', async () => {
    const all = await windowed();
    const link = linkOf(all);
    const first = await follow(all, link);
    expect(first.json).toEqual({ session: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) as string });
    const second = await follow(all, link);
    expect(told(second)).toBe('401 invalid_token');
    expect(second.json.message).toMatch(/already used or has expired; run helmdeck-memory window/);
  });

  test('works for five minutes', async () => {
    const clock = manualClock();
    const all = await windowed({ clock });
    const [early, late] = [linkOf(all), linkOf(all)];
    await clock.advance(5 * MINUTE - 1);
    expect((await follow(all, early)).status).toBe(200);
    await clock.advance(1);
    expect(told(await follow(all, late))).toBe('401 invalid_token');
  });

  test('is not extended by setting the clock back', async () => {
    const clock = manualClock();
    const all = await windowed({ clock });
    const link = linkOf(all);
    clock.jump(-HOUR);
    await clock.advance(5 * MINUTE);
    expect((await follow(all, link)).status).toBe(401);
  });

  test.each([undefined, null, 7, '', 'x'.repeat(43), ['a'], {}])('cannot be %j', async (link) => {
    const all = await windowed();
    linkOf(all);
    expect(told(await follow(all, link))).toBe('401 invalid_token');
  });

  test('is created for the owner only', async () => {
    const all = await windowed();
    const made = await sendRequest(all.url, '/api/v1/window', { method: 'POST', token: all.owner });
    expect(made.json).toEqual({ link: expect.stringMatching(/#link=/) as string });
    expect((await follow(all, /#link=(.+)$/.exec(String(made.json['link']))?.[1])).status).toBe(200);
    const token = await all.token('me', ['memory:read', 'memory:write', 'packs:run']);
    expect(told(await sendRequest(all.url, '/api/v1/window', { method: 'POST', token }))).toBe('403 insufficient_scope');
    expect((await sendRequest(all.url, '/api/v1/window', { method: 'POST' })).status).toBe(401);
  });

  test('is refused if no window was built', async () => {
    const all = await serve();
    expect(all.listener.windowLink()).toBeUndefined();
    const made = await sendRequest(all.url, '/api/v1/window', { method: 'POST', token: all.owner });
    expect(told(made)).toBe('404 not_found');
    expect(made.json.message).toMatch(/has not been built/);
    expect((await sendRequest(all.url, '/', {})).status).toBe(401);
  });
});

describe('a session of the window (R-WIN-02)', () => {
  test('is required for everything except static files', async () => {
    const all = await windowed();
    await opened(all);
    for (const session of [undefined, 'wrong', all.owner, await all.token()]) {
      expect((await call(all, session)).status).toBe(401);
      expect((await sendRequest(all.url, '/window/events', { ...(session !== undefined && { token: session }) })).status).toBe(
        401,
      );
      expect((await sendRequest(all.url, '/window/nothing', { ...(session !== undefined && { token: session }) })).status).toBe(
        401,
      );
    }
    expect((await call(all, undefined)).headers['www-authenticate']).toBe('Bearer realm="helmdeck"');
  });

  test('gives access to the window only', async () => {
    const all = await windowed();
    const session = await opened(all);
    for (const [method, path] of ALL_ROUTES) {
      expect({ path, status: (await sendRequest(all.url, path, { method, token: session })).status }).toEqual({
        path,
        status: 401,
      });
    }
  });

  test('is not stored in a cookie', async () => {
    const all = await windowed();
    const answers = [await follow(all, linkOf(all)), await sendRequest(all.url, '/'), await call(all, await opened(all))];
    expect(answers.map(({ headers }) => headers['set-cookie'])).toEqual([undefined, undefined, undefined]);
    expect((await call(all, undefined, 'status', { headers: ['Cookie', `session=${await opened(all)}`] })).status).toBe(401);
  });

  test('ends after twelve hours without use', async () => {
    const clock = manualClock();
    const all = await windowed({ clock });
    const session = await opened(all);
    for (const rest of [12 * HOUR - 1, 12 * HOUR - 1]) {
      await clock.advance(rest);
      expect((await call(all, session)).status).toBe(200);
    }
    await clock.advance(12 * HOUR);
    expect((await call(all, session)).json.message).toMatch(/has ended; run helmdeck-memory window/);
  });

  test('ends after seven days, even if in use', async () => {
    const clock = manualClock();
    const all = await windowed({ clock });
    const session = await opened(all);
    for (let passed = 0; passed < 16; passed += 1) {
      expect((await call(all, session)).status).toBe(200);
      await clock.advance(10 * HOUR);
    }
    expect((await call(all, session)).status).toBe(200);
    await clock.advance(8 * HOUR - 1);
    expect((await call(all, session)).status).toBe(200);
    await clock.advance(1);
    expect((await call(all, session)).json.message).toMatch(/has ended; run helmdeck-memory window/);
  });

  test('ends when sixteen newer ones are opened, least recently used first', async () => {
    const all = await windowed();
    const [used, left] = [await opened(all), await opened(all)];
    for (let more = 0; more < 14; more += 1) await opened(all);
    expect((await call(all, used)).status).toBe(200);
    await opened(all);
    expect((await call(all, used)).status).toBe(200);
    expect((await call(all, left)).status).toBe(401);
  });

  test('that makes room for a newer one ends its event stream at once', async () => {
    // With this clock no keep-alive is due, which would also end the stream of an ended session.
    const all = await windowed({ clock: manualClock() });
    const session = await opened(all);
    const line = await openConnection(all.port);
    line.write(`GET /window/events HTTP/1.1\r\nHost: 127.0.0.1:${all.port}\r\nAuthorization: Bearer ${session}\r\n\r\n`);
    await line.waitFor('stream open');
    for (let more = 0; more < 16; more += 1) await opened(all);
    await line.waitForEnd();
    expect((await call(all, session)).status).toBe(401);
  });
});

describe('the list of browser sessions (R-WIN-46)', () => {
  const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0';
  const list = async (all: ServedMemory) =>
    (await sendRequest(all.url, '/api/v1/window-sessions', { token: all.owner })).json['sessions'] as Record<string, string>[];
  const end = (all: ServedMemory, id: string, token = all.owner) =>
    sendRequest(all.url, `/api/v1/window-sessions/${id}`, { method: 'DELETE', token });
  const sessionBy = async (all: ServedMemory, userAgent: string) =>
    String((await follow(all, linkOf(all), ['User-Agent', userAgent])).json['session']);

  test('shows browser, start, last use and expiry, and never the session secret', async () => {
    const clock = manualClock();
    const all = await windowed({ clock });
    const start = clock.now();
    const session = await sessionBy(all, FIREFOX);
    await clock.advance(HOUR);
    await call(all, session);
    await sessionBy(all, '');
    const sessions = await list(all);
    expect(sessions).toEqual([
      expect.objectContaining({ browser: 'Unknown browser' }),
      {
        id: expect.stringMatching(/^[0-9a-f]{12}$/) as string,
        browser: 'Firefox 142 on Linux',
        opened_at: formatTime(start),
        last_used_at: formatTime(start + HOUR),
        expires_at: formatTime(start + 7 * 24 * HOUR),
      },
    ]);
    expect(JSON.stringify(sessions)).not.toContain(session);
  });

  test('is available to the owner only', async () => {
    const all = await windowed();
    const session = await sessionBy(all, FIREFOX);
    const [row] = await list(all);
    const token = await all.token('me', ['memory:read', 'memory:write', 'packs:run']);
    expect(told(await sendRequest(all.url, '/api/v1/window-sessions', { token }))).toBe('403 insufficient_scope');
    expect(told(await end(all, row?.['id'] ?? '', token))).toBe('403 insufficient_scope');
    expect((await call(all, session)).status).toBe(200);
  });

  test('can end one session and its event stream at once, and keeps the others', async () => {
    // With this clock no keep-alive is due, which would also end the stream of an ended session.
    const all = await windowed({ clock: manualClock() });
    const [one, other] = [await sessionBy(all, FIREFOX), await sessionBy(all, 'other')];
    const line = await openConnection(all.port);
    line.write(`GET /window/events HTTP/1.1\r\nHost: 127.0.0.1:${all.port}\r\nAuthorization: Bearer ${one}\r\n\r\n`);
    await line.waitFor('stream open');
    const id = (await list(all)).find(({ browser }) => browser === 'Firefox 142 on Linux')?.['id'] ?? '';
    expect((await end(all, id)).json).toEqual({ id });
    await line.waitForEnd();
    expect((await call(all, one)).status).toBe(401);
    expect((await call(all, other)).status).toBe(200);
    expect((await list(all)).map(({ browser }) => browser)).toEqual(['other']);
    expect(told(await end(all, id))).toBe('404 not_found');
    expect(told(await end(all, 'x'))).toBe('400 invalid_input');
  });

  test('does not show ended sessions', async () => {
    const clock = manualClock();
    const all = await windowed({ clock });
    await sessionBy(all, FIREFOX);
    await clock.advance(12 * HOUR);
    expect(await list(all)).toEqual([]);
  });

  test('is empty if no window is served', async () => {
    expect(await list(await serve())).toEqual([]);
  });

  test.each([
    [FIREFOX, 'Firefox 142 on Linux'],
    [
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36 Edg/139.0.0.0',
      'Edge 139 on Windows',
    ],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15',
      'Safari 18 on macOS',
    ],
    [
      'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Mobile Safari/537.36',
      'Chrome 139 on Android',
    ],
    [`curl ${'x'.repeat(100)}`, `curl ${'x'.repeat(55)}`],
  ])('names the browser of %s', async (userAgent, browser) => {
    const all = await windowed();
    await sessionBy(all, userAgent);
    expect(await list(all)).toMatchObject([{ browser }]);
  });
});

describe('access to the window (R-WIN-03, R-HTTP-05)', () => {
  const paths = [
    ['GET', '/'],
    ['GET', '/icon.svg'],
    ['POST', '/window/open'],
    ['POST', '/window/call/status?subject=me'],
    ['GET', '/window/events'],
  ] as const;

  const strangers = (port: number): string[][] => [
    ['Origin', 'https://evil.example'],
    ['Origin', 'null'],
    ['Origin', ''],
    ['Origin', `http://127.0.0.1:${port + 1}`, 'Sec-Fetch-Site', 'same-site'],
    ['Origin', `http://localhost:${port}`],
    ['Origin', `http://127.0.0.1:${port}`, 'Sec-Fetch-Site', 'same-site'],
    ['Origin', `http://127.0.0.1:${port}`, 'Origin', `http://127.0.0.1:${port}`],
    ['Sec-Fetch-Site', 'same-site'],
    ['Sec-Fetch-Site', 'cross-site'],
    ['Sec-Fetch-Site', 'same-origin', 'Origin', 'https://evil.example'],
    ['Sec-Fetch-Site', 'none', 'Origin', 'https://evil.example'],
  ];

  test('is refused to pages of other origins and ports, even with a session', async () => {
    const all = await windowed();
    const session = await opened(all);
    for (const [method, path] of paths) {
      for (const headers of strangers(all.port)) {
        const body = method === 'POST' ? { body: { link: linkOf(all) } } : {};
        const answer = await sendRequest(all.url, path, { method, token: session, headers, ...body });
        expect({ path, headers, told: told(answer) }).toEqual({ path, headers, told: '403 forbidden_origin' });
        expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      }
    }
  });

  test('is given to the window, with its session', async () => {
    const all = await windowed();
    const own = ['Origin', all.url, 'Sec-Fetch-Site', 'same-origin'];
    const { json } = await follow(all, linkOf(all), own);
    expect((await call(all, String(json['session']), 'status', { headers: own })).status).toBe(200);
    expect((await call(all, undefined, 'status', { headers: own })).status).toBe(401);
    expect((await sendRequest(all.url, '/icon.svg', { headers: ['Sec-Fetch-Site', 'same-origin'] })).status).toBe(200);
  });

  test('is given to the owner who typed the address', async () => {
    const { url } = await windowed();
    expect((await sendRequest(url, '/', { headers: ['Sec-Fetch-Site', 'none'] })).status).toBe(200);
  });

  test('does not extend a session to other routes', async () => {
    const all = await windowed();
    const session = await opened(all);
    for (const [method, path] of ALL_ROUTES) {
      for (const headers of [
        ['Origin', all.url],
        ['Sec-Fetch-Site', 'same-origin'],
      ]) {
        const answer = await sendRequest(all.url, path, { method, token: session, headers });
        expect({ path, told: told(answer) }).toEqual({ path, told: '401 invalid_token' });
      }
    }
  });
});

describe('the pages (R-WIN-04)', () => {
  test('have a policy that allows only their own scripts, and are not cached (R-HTTP-10)', async () => {
    const { url } = await windowed();
    const page = await sendRequest(url, '/');
    expect(page.text).toMatch('<div id="window"></div>');
    const policy = String(page.headers['content-security-policy']);
    expect(policy.split('; ').toSorted()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "img-src 'self'",
      "require-trusted-types-for 'script'",
      "script-src 'self'",
      "style-src 'self'",
      "trusted-types 'none'",
    ]);
    expect(page.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'content-type': 'text/html; charset=utf-8',
    });
  });

  test('are the built files, each with its type', async () => {
    const { url } = await windowed();
    const { text } = await sendRequest(url, '/');
    const named = [...text.matchAll(/(?:src|href)="\.?(\/[^"]+)"/g)].map(([, path = '']) => path);
    const types = await Promise.all(named.map(async (path) => (await sendRequest(url, path)).headers['content-type']));
    expect(types.map(String).toSorted()).toEqual([
      'image/svg+xml',
      'text/css; charset=utf-8',
      'text/css; charset=utf-8',
      'text/javascript; charset=utf-8',
    ]);
  });

  test.each([
    '/index.html',
    '/../package.json',
    '/assets/../../../package.json',
    '/..%2fpackage.json',
    '/%2e%2e/package.json',
    '/assets/..%5c..%5cpackage.json',
    '/./icon.svg',
    '//icon.svg',
    '/icon.svg/',
    '/icon.svg%00',
    '/ICON.SVG',
    '/assets',
    '/assets/',
    '/__proto__',
    '/constructor',
  ])('do not include other paths: %s', async (path) => {
    const { port } = await windowed();
    const line = await openConnection(port);
    // Raw, because HTTP clients normalize paths.
    line.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
    expect(await line.waitFor('}')).toMatch(/^HTTP\/1\.1 401 /);
  });

  test('support one method each, and name it (R-ERR-06)', async () => {
    const all = await windowed();
    const session = await opened(all);
    const wrong = [
      ['POST', '/', 'GET'],
      ['HEAD', '/', 'GET'],
      ['GET', '/window/open', 'POST'],
      ['DELETE', '/window/events', 'GET'],
      ['GET', '/window/call/status', 'POST'],
    ] as const;
    for (const [method, path, allow] of wrong) {
      const answer = await sendRequest(all.url, path, { method, token: session });
      expect({ path, status: answer.status, allow: answer.headers.allow }).toEqual({ path, status: 405, allow });
    }
    expect(told(await sendRequest(all.url, '/window/nothing', { token: session }))).toBe('404 not_found');
  });
});

describe('calls of the window (R-WIN-05)', () => {
  test('run through perform, in the open memory, with the client window', async () => {
    const all = await windowed();
    const session = await opened(all);
    const input = { key: 'a', value: 'one' };
    expect((await call(all, session, 'remember', { input })).json).toMatchObject({ ok: true, value: { status: 'created' } });
    const read = async (subject: string) => (await call(all, session, 'recall', { input: { key: 'a' }, subject })).json;
    expect(await read('subject=me')).toMatchObject({ ok: true, value: { value: 'one', client: 'window' } });
    expect(await read('subject=you')).toMatchObject({ ok: false, code: 'not_found' });
    const status = (await call(all, session, 'callers')).json;
    expect(status).toEqual({ ok: true, value: { callers: [{ namespace: 'me', count: 1 }] } });
  });

  test.each([
    ['recall', { key: '' }, 'invalid_input'],
    ['remember', { key: 'a', value: 'b', ttl_seconds: 60 }, 'invalid_input'],
    ['remember', null, 'invalid_input'],
    ['nothing', {}, 'not_found'],
    ['constructor', {}, 'not_found'],
    ['', {}, 'not_found'],
  ])('fail with their code: %s %j', async (operation, input, code) => {
    const all = await windowed();
    const { status, json } = await call(all, await opened(all), operation, { input: input as object });
    expect([status, json]).toEqual([200, { ok: false, code, message: expect.stringMatching(/./) as string }]);
  });

  test.each(['', 'subject=', 'subject=a%3Ab', 'subject=a%20b', 'me', 'subject=me&x=1', 'subject=me&subject=you', 'subject=%zz'])(
    'need one valid subject, not "%s"',
    async (subject) => {
      const all = await windowed();
      expect(told(await call(all, await opened(all), 'status', { subject }))).toBe('400 invalid_input');
    },
  );

  test('report an unexpected error without details, and log where it happened (R-ERR-03)', async () => {
    const troubles: object[] = [];
    const all = await windowed({
      wrapPerform: () => () => Promise.reject(new Error('the stack of a developer')),
      log: (trouble) => troubles.push(trouble),
    });
    const { json } = await call(all, await opened(all));
    expect(json).toMatchObject({ ok: false, code: 'internal' });
    expect(JSON.stringify(json)).not.toMatch('developer');
    expect(troubles).toEqual([{ operation: 'status', client: 'window' }]);
  });
});

describe('events of the window (R-WIN-06)', () => {
  async function listening(all: ServedMemory, session: string) {
    const line = await openConnection(all.port);
    line.write(`GET /window/events HTTP/1.1\r\nHost: 127.0.0.1:${all.port}\r\nAuthorization: Bearer ${session}\r\n\r\n`);
    await line.waitFor('stream open');
    return line;
  }

  test('name the changed memory and kind, without data', async () => {
    const all = await windowed();
    const line = await listening(all, await opened(all));
    await sendRequest(all.url, '/api/v1/memory/store', {
      token: await all.token('you'),
      body: { key: 'a-telling-key', value: 'x' },
    });
    expect(await line.waitFor('"fact"')).toMatch(/data: \{"namespace":"you","kind":"fact"\}\n\n/);
    expect(line.text()).not.toMatch('telling');
    expect(line.text()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Content-Type: text\/event-stream\r\n/);
  });

  test('report when the key becomes available or unavailable, and nothing otherwise (R-LOCK-02)', async () => {
    await using store = await openStore({ folder: tempFolder(), clock: manualClock(), sources: withKey() });
    const all = await windowed({ store });
    const line = await listening(all, await opened(all));
    const key = 'data: {"namespace":"","kind":"key"}\n\n';
    await sendRequest(all.url, '/api/v1/status', { token: all.owner });
    await sendRequest(all.url, '/api/v1/lock', { method: 'POST', token: all.owner });
    await line.waitFor(key);
    await sendRequest(all.url, '/api/v1/status', { token: all.owner });
    await sendRequest(all.url, '/api/v1/unlock', { method: 'POST', token: all.owner });
    await expect.poll(() => line.text().split(key).length - 1, EVENTUALLY).toBe(2);
  });

  test('continue while the window is used, and end with its session', async () => {
    const clock = manualClock();
    const all = await windowed({ clock });
    const session = await opened(all);
    const line = await listening(all, session);
    await clock.advance(2 * CONNECTION_LIMITS.keepAliveMs);
    await expect.poll(() => line.text().split(': keep-alive').length, EVENTUALLY).toBe(3);
    for (let passed = 0; passed < 11; passed += 1) await clock.advance(HOUR);
    await call(all, session);
    for (let passed = 0; passed < 11; passed += 1) await clock.advance(HOUR);
    expect(line.text()).not.toMatch(/\r\n0\r\n\r\n$/);
    await clock.advance(HOUR + CONNECTION_LIMITS.keepAliveMs);
    await line.waitForEnd();
    expect(line.text()).toMatch(/\r\n0\r\n\r\n$/);
  });

  test('end with the program and release their resources', async () => {
    const clock = manualClock();
    const all = await windowed({ clock });
    const before = clock.pendingTimers;
    const line = await listening(all, await opened(all));
    const other = await listening(all, await opened(all));
    other.socket.resetAndDestroy();
    await expect.poll(() => clock.pendingTimers, EVENTUALLY).toBe(before + 1);
    await all.listener.close();
    await line.waitForEnd();
    expect(line.text()).toMatch(/\r\n0\r\n\r\n$/);
  });

  test('are sent to at most 64 windows', async () => {
    const all = await windowed();
    const session = await opened(all);
    await Promise.all(Array.from({ length: CONNECTION_LIMITS.streams }, () => listening(all, session)));
    expect(told(await sendRequest(all.url, '/window/events', { token: session }))).toBe('429 rate_limited');
  });
});
