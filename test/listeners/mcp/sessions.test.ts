import { describe, expect, test } from 'vitest';
import { signingKey, signToken } from '../../../src/core/access/jwt.ts';
import { TokenRegistry } from '../../../src/core/access/token-registry.ts';
import type { Perform } from '../../../src/core/operations/perform.ts';
import { RamStore } from '../../../src/core/store/ram-store.ts';
import { systemClock } from '../../../src/core/time/clock.ts';
import { SESSION_IDLE_MS, MAX_SESSIONS } from '../../../src/listeners/mcp/session-registry.ts';
import { DAY, manualClock, HOUR, MINUTE, SECOND } from '../../support/clock.ts';
import { sendRequest, serve, type ServedMemory } from '../../support/listener.ts';
import { measureWait } from '../../support/work.ts';
import { initialize, MCP, openSession, openSse, post, rpcErrorOf, openStream, toolResultOf } from './mcp-client.ts';

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** The parts of a response that a client can compare. */
const seen = ({ status, headers, text }: Awaited<ReturnType<typeof sendRequest>>) => {
  const { date: _date, ...rest } = headers;
  return { status, headers: rest, text };
};

describe('a session belongs to the token that opened it (R-MCP-06)', () => {
  const strangers: Record<string, (served: ServedMemory) => Promise<string>> = {
    'another subject': (served) => served.token('mallory'),
    'another token of the same subject': (served) => served.token(),
    'the owner of the memory': async (served) => served.owner,
  };

  const verbs = (session: string, messages: string): [string, string, object | undefined, string[]][] => [
    ['POST', MCP, ping, ['Mcp-Session-Id', session]],
    ['POST', MCP, { jsonrpc: '2.0', method: 'notifications/initialized' }, ['Mcp-Session-Id', session]],
    ['GET', MCP, undefined, ['Mcp-Session-Id', session, 'Accept', 'text/event-stream']],
    ['DELETE', MCP, undefined, ['Mcp-Session-Id', session]],
    ['POST', messages, ping, []],
    ['POST', `/api/v1/mcp/qmd`, ping, ['Mcp-Session-Id', session]],
    ['POST', messages.replace('/mcp/', '/mcp/qmd/'), ping, []],
  ];

  test.each(Object.keys(strangers))('it is unknown to %s, for every method', async (who) => {
    const served = await serve();
    const token = await served.token();
    const mine = await openSession(served, token);
    const { messages, line } = await openSse(served, token);
    const stranger = (await strangers[who]?.(served)) ?? '';
    const tried = verbs(mine.session, messages);
    const unknown = verbs('A'.repeat(32), messages.replace(/sessionId=.*/, `sessionId=${'A'.repeat(32)}`));
    for (const [index, [method, path, body, headers]] of tried.entries()) {
      const [, emptyPath = '', , emptyHeaders = []] = unknown[index] ?? [];
      const asked = { method, token: stranger, ...(body && { body }) };
      const answer = seen(await sendRequest(served.url, path, { ...asked, headers }));
      expect(answer, `${method} ${path}`).toEqual(
        seen(await sendRequest(served.url, emptyPath, { ...asked, headers: emptyHeaders })),
      );
      expect(answer).toMatchObject({ status: 404, text: expect.stringContaining('"code":-32001') });
    }
    // The sessions are unaffected.
    expect((await mine.post(ping)).status).toBe(200);
    expect((await sendRequest(served.url, messages, { token, body: ping })).status).toBe(202);
    expect(await line.waitFor('"result":{}')).not.toMatch(/-32/);
  });

  test('and to its transport, because responses on the other transport would be lost', async () => {
    const served = await serve();
    const token = await served.token();
    const { session } = await openSession(served, token);
    const { messages } = await openSse(served, token);
    const wrong = messages.replace(/sessionId=.*/, `sessionId=${session}`);
    expect((await sendRequest(served.url, wrong, { token, body: ping })).status).toBe(404);
    const id = /sessionId=(.*)$/.exec(messages)?.[1] ?? '';
    expect((await post(served, token, ping, ['Mcp-Session-Id', id])).status).toBe(404);
    expect((await sendRequest(served.url, messages, { token, body: ping })).status).toBe(202);
    expect((await post(served, token, ping, ['Mcp-Session-Id', session])).status).toBe(200);
  });

  test('even if another token has the same id with other scopes', async () => {
    const secret = 's'.repeat(32);
    const store = new RamStore(systemClock);
    const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false, secret });
    const served = await serve({ store, tokens });
    const claims = {
      iss: 'helmdeck',
      sub: 'me',
      client: 'two',
      jti: 'the-same',
      exp: Math.floor(Date.now() / 1000) + 3600,
    } as const;
    const key = signingKey(secret);
    const [reads, writes] = (['memory:read', 'memory:write'] as const).map((scope) =>
      signToken({ ...claims, scopes: [scope] }, key),
    );
    const { session } = await openSession(served, writes ?? '');
    expect((await post(served, reads ?? '', ping, ['Mcp-Session-Id', session])).status).toBe(404);
    expect((await post(served, writes ?? '', ping, ['Mcp-Session-Id', session])).status).toBe(200);
  });

  test('its id cannot be guessed and does not authenticate', async () => {
    const served = await serve();
    const { session } = await openSession(served, await served.token());
    expect(Buffer.from(session, 'base64url').length * 8).toBeGreaterThanOrEqual(128);
    const headers = ['Mcp-Session-Id', session];
    expect((await sendRequest(served.url, MCP, { body: ping, headers })).json.error).toBe('missing_bearer');
  });

  test('a hundred callers with the same request ids get their own responses only (R-MCP-10)', async () => {
    const served = await serve();
    const subjects = Array.from({ length: 100 }, (_, index) => `subject-${index}`);
    const answers = await Promise.all(
      subjects.map(async (subject) => {
        const session = await openSession(served, await served.token(subject));
        await session.call('memory_store', { key: 'name', value: subject }, 1);
        return session.call('memory_recall', { key: 'name' }, 1);
      }),
    );
    expect(answers.map(({ json }) => toolResultOf(json['result'])['value'])).toEqual(subjects);
  });
});

describe('a session ends', () => {
  test('when its client sends DELETE, and is then unknown', async () => {
    const served = await serve();
    const token = await served.token();
    const { session, post: send } = await openSession(served, token);
    expect((await sendRequest(served.url, MCP, { method: 'DELETE', token, headers: ['Mcp-Session-Id', session] })).status).toBe(
      204,
    );
    expect(rpcErrorOf(await send(ping))).toEqual({ code: -32001, message: expect.stringMatching(/initialize/) });
  });

  test('after half an hour without requests, but not while its stream is open (R-MCP-10)', async () => {
    const clock = manualClock();
    const served = await serve({ clock });
    const token = await served.token();
    const silent = await openSession(served, token);
    const used = await openSession(served, token);
    const listening = await openSession(served, token);
    await (await openStream(served, token, MCP, ['Mcp-Session-Id', listening.session])).waitFor('stream open');
    await clock.advance(SESSION_IDLE_MS - MINUTE);
    await used.post(ping);
    await clock.advance(3 * MINUTE);
    expect((await silent.post(ping)).status).toBe(404);
    expect((await used.post(ping)).status).toBe(200);
    await clock.advance(2 * HOUR);
    expect((await used.post(ping)).status).toBe(404);
    expect((await listening.post(ping)).status).toBe(200);
  });

  test('with its stream, over HTTP with SSE', async () => {
    const served = await serve();
    const token = await served.token();
    const { line, messages } = await openSse(served, token);
    expect((await sendRequest(served.url, messages, { token, body: ping })).status).toBe(202);
    line.socket.destroy();
    await expect.poll(async () => (await sendRequest(served.url, messages, { token, body: ping })).status).toBe(404);
  });

  test('with its token: its streams end at once when the token is revoked (R-AUTH-09)', async () => {
    const clock = manualClock();
    const served = await serve({ clock });
    const token = await served.token();
    const other = await served.token();
    const kept = await openSse(served, other);
    const { line } = await openSse(served, token);
    const { session } = await openSession(served, token);
    const listening = await openStream(served, token, MCP, ['Mcp-Session-Id', session]);
    await listening.waitFor('stream open');
    const { token: id } = await served.tokens.verify(token, 'mcp');
    await served.tokens.revoke({ id, unrecorded: false });
    expect(await measureWait(() => Promise.all([line.waitForEnd(), listening.waitForEnd()]))).toBeLessThan(2000);
    expect((await post(served, token, ping, ['Mcp-Session-Id', session])).json.error).toBe('invalid_token');
    await clock.advance(15 * SECOND);
    await kept.line.waitFor('keep-alive');
  });

  test.each([
    ['it expires', async (clock: ReturnType<typeof manualClock>) => clock.advance(DAY)],
    [
      'it expires while the machine sleeps',
      async (clock: ReturnType<typeof manualClock>) => {
        clock.jump(2 * DAY);
        await clock.advance(15 * SECOND);
      },
    ],
  ])('with its token, when %s', async (_why, wait) => {
    const clock = manualClock();
    const served = await serve({ clock });
    const { line } = await openSse(served, await served.token());
    await wait(clock);
    expect(await measureWait(() => line.waitForEnd())).toBeLessThan(5000);
  });
});

test('a stream sends a keep-alive every 15 s (R-MCP-10)', async () => {
  const clock = manualClock();
  const served = await serve({ clock });
  const token = await served.token();
  const sse = await openSse(served, token);
  const { session } = await openSession(served, token);
  const line = await openStream(served, token, MCP, ['Mcp-Session-Id', session]);
  await line.waitFor('stream open');
  await clock.advance(45 * SECOND);
  for (const reader of [sse.line, line]) expect(await reader.waitFor(/(keep-alive[^]*){3}/)).not.toMatch(/(keep-alive[^]*){4}/);
});

describe('a subject has a limit', () => {
  test('of sessions: the least recently used idle session ends (R-MCP-10)', async () => {
    const clock = manualClock();
    const served = await serve({ clock });
    const token = await served.token();
    const [first, second] = [await openSession(served, token), await openSession(served, token)];
    await clock.advance(SECOND);
    await first.post(ping);
    const other = await openSession(served, await served.token('somebody-else'));
    for (let more = 2; more < MAX_SESSIONS + 1; more += 1) await openSession(served, token);
    expect((await second.post(ping)).status).toBe(404);
    expect((await first.post(ping)).status).toBe(200);
    expect((await other.post(ping)).status).toBe(200);
  });

  test('of streams: another stream is refused, but not for other subjects (R-MCP-10)', async () => {
    const served = await serve();
    const token = await served.token();
    for (let more = 0; more < 64; more += 1) await openSse(served, token);
    const refused = await sendRequest(served.url, `${MCP}/sse`, { token });
    expect([refused.status, refused.json.error]).toEqual([429, 'rate_limited']);
    await openSse(served, await served.token('somebody-else'));
  });
});

describe('the client with the most sessions gives way (R-MCP-14)', () => {
  const tokenOf = (served: ServedMemory, client: string): Promise<string> => served.token('me', undefined, client);

  test('a greedy client closes no session of another client', async () => {
    const clock = manualClock();
    const served = await serve({ clock });
    const [quiet, greedy] = [await tokenOf(served, 'quiet'), await tokenOf(served, 'greedy')];
    const oldest = await openSession(served, quiet);
    await clock.advance(SECOND);
    for (let count = 0; count < MAX_SESSIONS + 10; count += 1) await openSession(served, greedy);
    expect((await oldest.post(ping)).status).toBe(200);
    expect((await openSession(served, quiet)).session).not.toBe('undefined');
    expect((await oldest.post(ping)).status).toBe(200);
  });

  test('a client with fewer sessions is admitted even while all sessions of the greedy client are busy', async () => {
    const neverEnds = (async () => new Promise<never>(() => undefined)) as Perform;
    const served = await serve({ wrapPerform: () => neverEnds });
    const [quiet, greedy] = [await tokenOf(served, 'quiet'), await tokenOf(served, 'greedy')];
    const busy = [];
    for (let count = 0; count < MAX_SESSIONS; count += 1) {
      const session = await openSession(served, greedy);
      busy.push(session.call('memory_recall', { key: 'a' }));
    }
    const { status, json } = await post(served, greedy, initialize());
    expect([status, json.error]).toEqual([429, 'rate_limited']);
    expect((await (await openSession(served, quiet)).post(ping)).status).toBe(200);
    expect(rpcErrorOf(await Promise.race(busy)).message).toMatch(/session has ended/);
  });

  test('a client with fewer streams is admitted, and the greedy client loses its oldest stream', async () => {
    const served = await serve();
    const [quiet, greedy] = [await tokenOf(served, 'quiet'), await tokenOf(served, 'greedy')];
    const { line: oldest } = await openSse(served, greedy);
    for (let count = 1; count < 64; count += 1) await openSse(served, greedy);
    const { line } = await openSse(served, quiet);
    await oldest.waitForEnd();
    expect((await sendRequest(served.url, `${MCP}/sse`, { token: greedy })).json.error).toBe('rate_limited');
    expect(line.socket.readyState).toBe('open');
  });

  test('no other client can end a session, and the owner ends it by revoking its token', async () => {
    const served = await serve();
    const [own, other] = [await tokenOf(served, 'own'), await tokenOf(served, 'other')];
    const { session, post: send } = await openSession(served, own);
    const end = { method: 'DELETE', headers: ['Mcp-Session-Id', session] };
    expect((await sendRequest(served.url, MCP, { ...end, token: other })).status).toBe(404);
    expect((await send(ping)).status).toBe(200);
    const { token: id } = await served.tokens.verify(own, 'mcp');
    await served.tokens.revoke({ id, unrecorded: false });
    expect((await send(ping)).status).toBe(401);
  });
});

test('a client that does not read is disconnected and costs little memory until then (R-MCP-10)', async () => {
  const served = await serve();
  const token = await served.token();
  const writer = await openSession(served, token);
  await writer.call('memory_store', { key: 'long', value: 'x'.repeat(60_000) });
  const { line, messages } = await openSse(served, token);
  line.socket.pause();
  const before = process.memoryUsage.rss();
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'memory_recall', arguments: { key: 'long' } } };
  let status = 202;
  let asked = 0;
  for (; status === 202 && asked < 1000; asked += 1) status = (await sendRequest(served.url, messages, { token, body })).status;
  expect(status).toBe(404);
  expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 2 ** 20);
  expect((await writer.post(ping)).status).toBe(200);
});

describe('a client that reconnects', () => {
  test('gets missed notifications, each once (R-MCP-07)', async () => {
    const served = await serve();
    const token = await served.token();
    const session = await openSession(served, token);
    const headers = ['Mcp-Session-Id', session.session];
    for (const uri of ['helmdeck://my-memory', 'helmdeck://context']) {
      await session.post({ jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri } });
    }
    const change = async (value: string) => {
      await session.call('memory_store', { key: 'a', value });
      await new Promise((resolve) => setTimeout(resolve, 150));
    };
    for (const value of ['1', '2', '3']) await change(value);
    const first = await openStream(served, token, MCP, headers);
    const missed = await first.waitFor(/resources\/updated[^]*resources\/updated/);
    expect(missed.match(/resources\/updated/g)).toHaveLength(2);
    first.socket.destroy();
    const last = /id: (\d+)\n[^]*$/.exec(missed)?.[1] ?? '';
    const again = await openStream(served, token, MCP, [...headers, 'Last-Event-ID', last]);
    await again.waitFor('stream open');
    await change('4');
    expect((await again.waitFor(/my-memory/)).match(/id: (\d+)/)?.[1]).not.toBe(last);
  });

  test('with a second stream gets notifications on the new one', async () => {
    const served = await serve();
    const token = await served.token();
    const { session } = await openSession(served, token);
    const old = await openStream(served, token, MCP, ['Mcp-Session-Id', session]);
    await old.waitFor('stream open');
    const now = await openStream(served, token, MCP, ['Mcp-Session-Id', session]);
    await now.waitFor('stream open');
    await old.waitForEnd();
    expect(now.socket.readyState).toBe('open');
  });

  test('after a restart of the program must start a new session (R-MCP-06)', async () => {
    const first = await serve();
    const { session } = await openSession(first, await first.token());
    const second = await serve();
    const token = await second.token();
    expect((await post(second, token, ping, ['Mcp-Session-Id', session])).status).toBe(404);
    const again = await post(second, token, { ...ping, method: 'initialize', params: hello }, ['Mcp-Session-Id', session]);
    expect([again.status, again.headers['mcp-session-id']]).toEqual([200, expect.not.stringMatching(session)]);
  });

  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
});
