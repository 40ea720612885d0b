import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../../src/core/access/caller.ts';
import { sendRequest, serve } from '../../support/listener.ts';
import { runs } from '../../support/runs.ts';
import { initialize, MCP, openSession, openSse, post, QMD, rpcErrorOf, toolResultOf } from './mcp-client.ts';

describe('an invalid message', () => {
  test.each([
    ['no JSON', '{"jsonrpc":', -32700],
    ['no object', '7', -32600],
    ['no version', { id: 1, method: 'ping' }, -32600],
    ['another version', { jsonrpc: '1.0', id: 1, method: 'ping' }, -32600],
    ['no method', { jsonrpc: '2.0', id: 1 }, -32600],
    ['an object as id', { jsonrpc: '2.0', id: { a: 1 }, method: 'ping' }, -32600],
    ['an id that is null', { jsonrpc: '2.0', id: null, method: 'ping' }, -32600],
    ['params in a list', { jsonrpc: '2.0', id: 1, method: 'ping', params: [1] }, -32602],
    ['_meta of no kind', { jsonrpc: '2.0', id: 1, method: 'ping', params: { _meta: { progressToken: {} } } }, -32602],
    ['an incomplete initialize', { jsonrpc: '2.0', id: 1, method: 'initialize', params: { capabilities: {} } }, -32602],
    ['nothing at all', '', -32600],
  ])('is refused at once: %s (R-MCP-09)', async (_why, body, code) => {
    const served = await serve();
    const token = await served.token();
    const session = await openSession(served, token);
    const { messages } = await openSse(served, token);
    for (const answer of [await session.post(body), await sendRequest(served.url, messages, { token, body })]) {
      expect([answer.status, answer.json['jsonrpc'], rpcErrorOf(answer).code]).toEqual([400, '2.0', code]);
    }
  });

  test('gets an error with its id', async () => {
    const served = await serve();
    const session = await openSession(served, await served.token());
    const answer = await session.post({ jsonrpc: '2.0', id: 'seven', method: 'ping', params: 'x' });
    expect(answer.json['id']).toBe('seven');
  });

  test('that is too long or of the wrong type is refused like any body', async () => {
    const served = await serve();
    const session = await openSession(served, await served.token());
    expect((await session.post(`"${'x'.repeat(1024 * 1024)}"`)).json.error).toBe('payload_too_large');
    expect((await session.post('a', ['Content-Type', 'text/plain'])).json.error).toBe('unsupported_media_type');
  });
});

test.each(['server/discover', 'prompts/list', 'completion/complete', 'logging/setLevel', 'tasks/list', 'toString', '__proto__'])(
  'an unknown method %s is refused at once (R-MCP-09)',
  async (method) => {
    const served = await serve();
    const token = await served.token();
    const message = { jsonrpc: '2.0', id: 1, method };
    const within = await (await openSession(served, token)).post(message);
    expect([within.status, rpcErrorOf(within).code]).toEqual([200, -32601]);
    // Clients of a later protocol try this method first, and fall back to initialize.
    const before = await post(served, token, message, ['MCP-Protocol-Version', '2026-07-28']);
    expect([before.status, rpcErrorOf(before).code]).toEqual([400, -32600]);
  },
);

describe('every path of both servers', () => {
  const places = [MCP, `${MCP}/qmd`].flatMap((path): [string, string][] => [
    ['POST', path],
    ['GET', path],
    ['DELETE', path],
    ['GET', `${path}/sse`],
    ['POST', `${path}/sse/message?sessionId=x`],
  ]);

  test.each(places)(
    'refuses missing tokens, foreign origins and foreign hosts: %s %s (R-HTTP-04, R-HTTP-05, R-HTTP-08)',
    async (method, path) => {
      const served = await serve();
      const token = await served.token();
      const told = async (headers: string[], given?: string) =>
        (
          await sendRequest(served.url, path, {
            method,
            headers,
            ...(given && { token: given }),
            ...(method === 'POST' && { body: initialize() }),
          })
        ).json.error;
      expect(await told([])).toBe('missing_bearer');
      expect(await told(['Origin', 'http://127.0.0.1:1'], token)).toBe('forbidden_origin');
      expect(await told(['Host', 'attacker.example'], token)).toBe('forbidden_host');
    },
  );
});

test.each([`${MCP}/sse`, `${MCP}/qmd/sse`])('a POST to %s is refused at once, with the Allow header (R-MCP-09)', async (path) => {
  const served = await serve();
  const answer = await post(served, await served.token(), initialize(), [], path);
  expect([answer.status, answer.headers.allow, answer.json.error]).toEqual([405, 'GET', 'method_not_allowed']);
});

test('a request to run as a task runs directly', async () => {
  const served = await serve();
  const session = await openSession(served, await served.token());
  const params = { name: 'memory_store', arguments: { key: 'a', value: 'b' }, task: { ttl: 60_000 } };
  const answer = await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  expect(toolResultOf(answer.json['result'])).toMatchObject({ status: 'created' });
});

test('notifications are accepted without a response', async () => {
  const served = await serve();
  const session = await openSession(served, await served.token());
  for (const message of [
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'notifications/whatever', params: { _meta: 7 } },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'none' } },
    { jsonrpc: '2.0', id: 9, result: {} },
  ]) {
    const answer = await session.post(message);
    expect([answer.status, answer.text]).toEqual([202, '']);
  }
});

test('a cancelled request gets no response and delays no other', async () => {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const served = await serve({
    wrapPerform: (perform) => async (caller: Caller, name: string, input: unknown) => {
      if (name === 'recall') await held;
      return (await perform(caller, name, input)) as never;
    },
  });
  const session = await openSession(served, await served.token());
  const waiting = session.call('memory_recall', { key: 'a' }, 5);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } });
  expect((await waiting).status).toBe(202);
  release();
  expect((await session.post({ jsonrpc: '2.0', id: 5, method: 'ping' })).json).toMatchObject({ id: 5, result: {} });
});

describe('a batch', () => {
  const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' });

  test.each(['2025-03-26', '2024-11-05'])('is answered under %s, message by message', async (version) => {
    const served = await serve();
    const session = await openSession(served, await served.token(), version);
    const { status, json } = await session.post([
      ping(1),
      { jsonrpc: '2.0', method: 'notifications/x' },
      ping(2),
      { broken: true },
    ]);
    expect(status).toBe(200);
    expect(json).toHaveLength(3);
    expect(json).toEqual(
      expect.arrayContaining([expect.objectContaining({ id: 1, result: {} }), expect.objectContaining({ id: 2 })]),
    );
  });

  test.each(['2025-06-18', '2025-11-25'])('is refused under %s', async (version) => {
    const served = await serve();
    const answer = await (await openSession(served, await served.token(), version)).post([ping(1)]);
    expect([answer.status, rpcErrorOf(answer).code]).toEqual([400, -32600]);
  });

  test.each([
    ['is empty', []],
    ['is too long', Array.from({ length: 101 }, (_, id) => ping(id))],
    ['contains initialize', [ping(1), initialize()]],
  ])('that %s is refused', async (_why, batch) => {
    const served = await serve();
    const answer = await (await openSession(served, await served.token(), '2025-03-26')).post(batch);
    expect([answer.status, rpcErrorOf(answer).code]).toEqual([400, -32600]);
  });
});

test('two requests with the same id each get their own response (R-MCP-10)', async () => {
  const served = await serve();
  const session = await openSession(served, await served.token());
  await session.call('memory_store', { key: 'one', value: '1' });
  await session.call('memory_store', { key: 'two', value: '2' });
  const keys = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? 'one' : 'two'));
  const answers = await Promise.all(keys.map((key) => session.call('memory_recall', { key }, 1)));
  expect(answers.map(({ json }) => toolResultOf(json['result'])['key'])).toEqual(keys);
});

test('requests of many clients with the same id are each answered to their client, on each transport (R-MCP-10, R-ISO-01)', async () => {
  const served = await serve();
  const subjects = Array.from({ length: 10 }, (_, index) => `subject-${index}`);
  const recall = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'memory_recall', arguments: { key: 'mine' } } };
  const asked = await Promise.all(
    subjects.map(async (subject) => {
      const token = await served.token(subject);
      const [posting, listening] = [await openSession(served, token), await openSse(served, token)];
      await posting.call('memory_store', { key: 'mine', value: `of ${subject}.` });
      return { subject, token, posting, listening };
    }),
  );
  const rounds = Array.from({ length: 10 }, () =>
    asked.map(async ({ subject, token, posting, listening }) => {
      expect((await sendRequest(served.url, listening.messages, { token, body: recall })).status).toBe(202);
      return [subject, /of subject-\d+\./.exec((await posting.post(recall)).text)?.[0]];
    }),
  );
  const answers = await Promise.all(rounds.flat());
  expect(answers.filter(([subject, said]) => said !== `of ${subject}.`)).toEqual([]);
  expect(answers).toHaveLength(100);
  for (const { subject, listening } of asked) {
    const heard = await listening.line.waitFor(/(notice[^]*){10}/);
    expect(new Set(heard.match(/of subject-\d+\./g))).toEqual(new Set([`of ${subject}.`]));
  }
});

describe('arbitrary messages', () => {
  const id = fc.oneof(fc.integer(), fc.string(), fc.double(), fc.constant(null), fc.object());
  const method = fc.oneof(
    fc.constantFrom(
      'ping',
      'initialize',
      'tools/call',
      'tools/list',
      'resources/read',
      'resources/subscribe',
      'notifications/cancelled',
    ),
    fc.string(),
    fc.anything(),
  );
  const params = fc.oneof(
    fc.record(
      {
        name: fc.constantFrom('memory_store', 'memory_forget', 'memory_search', 'query', 'x'),
        arguments: fc.anything(),
        task: fc.anything(),
      },
      { requiredKeys: [] },
    ),
    fc.record(
      { _meta: fc.anything(), cursor: fc.anything(), uri: fc.anything(), requestId: fc.anything() },
      { requiredKeys: [] },
    ),
    fc.anything(),
  );
  const message = fc.record(
    { jsonrpc: fc.constantFrom('2.0', 2), id, method, params, extra: fc.anything() },
    { requiredKeys: [] },
  );
  const body = fc
    .oneof(message, message, fc.array(message, { maxLength: 5 }), fc.anything(), fc.string())
    .map((value) => JSON.stringify(value) ?? '');

  const FAULT = /node_modules|at .*\.ts|ZodError|-32603/;

  test.each([MCP, QMD])('to %s are answered quickly, and never with an internal error (R-MCP-09)', async (path) => {
    const served = await serve();
    const token = await served.token();
    const session = await openSession(served, token, '2025-03-26', path);
    await fc.assert(
      fc.asyncProperty(body, async (text) => {
        const late = AbortSignal.timeout(10_000);
        const headers = {
          Authorization: `Bearer ${token}`,
          'Content-Type': 'application/json',
          'Mcp-Session-Id': session.session,
        };
        const answer = await fetch(served.url + path, { method: 'POST', headers, body: text, signal: late });
        const said = await answer.text();
        expect(answer.status).toBeLessThan(500);
        expect(said).not.toMatch(FAULT);
      }),
      { numRuns: runs(1500) },
    );
  });

  test.each([MCP, QMD])('to %s over HTTP with SSE too, and every request gets a response', async (path) => {
    const served = await serve();
    const token = await served.token();
    const { line, messages } = await openSse(served, token, path);
    await post(served, token, initialize('2025-03-26', 'first'), [], messages);
    await line.waitFor('"first"');
    let asked = 0;
    await fc.assert(
      fc.asyncProperty(body, async (text) => {
        const answer = await post(served, token, text, [], messages);
        expect([200, 202, 400]).toContain(answer.status);
        expect(answer.text).not.toMatch(FAULT);
        asked += 1;
        const search = { name: path === MCP ? 'memory_search' : 'query', arguments: { query: 'a' } };
        const question = { jsonrpc: '2.0', id: `question ${asked}`, method: 'tools/call', params: search };
        expect((await post(served, token, question, [], messages)).status).toBe(202);
        await expect.poll(() => line.text(), { interval: 1 }).toContain(`"question ${asked}"`);
      }),
      { numRuns: runs(400) },
    );
    expect(line.text()).not.toMatch(FAULT);
  });
});
