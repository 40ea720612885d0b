import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { TokenScope } from '../../src/contract/token.ts';
import { sendRequest, serve, type ServedMemory, EVENTUALLY } from '../support/listener.ts';
import { aPack } from '../support/packs.ts';
import { measureWait } from '../support/work.ts';

const MAY: TokenScope[] = ['memory:read', 'memory:write', 'packs:run'];

async function served(packs = [aPack(({ input: { what } }) => ({ said: what }))]) {
  const all = await serve({ packs: { packs } });
  const token = await all.token('me', MAY);
  const run = (name: string, body?: object | string, more = '') =>
    sendRequest(all.url, `/api/v1/packs/${name}${more}`, { method: 'POST', token, ...(body !== undefined && { body }) });
  return { ...all, token, run };
}

const rows = async ({ store }: Pick<ServedMemory, 'store'>) =>
  (await store.space({ subject: 'me' }, 'audit').page({ sort: 'updated', limit: 10 })).entries.map(
    ({ value }) => JSON.parse(value) as { outcome: string },
  );

test('a run over REST ends within 2 s after its token is revoked, with the reason (R-AUTH-09, R-PACK-32)', async () => {
  const started = Promise.withResolvers<void>();
  const all = await served([
    aPack(() => {
      started.resolve();
      return new Promise(() => undefined);
    }),
  ]);
  const answer = all.run('test.echo', {});
  await started.promise;
  const waited = await measureWait(async () => {
    for (const { id } of (await all.tokens.list()).tokens) await all.tokens.revoke({ id, unrecorded: false });
    await answer;
  });
  expect(waited).toBeLessThan(2000);
  const { status, json } = await answer;
  expect(status).toBe(401);
  expect(json).toMatchObject({ error: 'invalid_token' });
  expect(await rows(all)).toMatchObject([{ outcome: 'cancelled' }]);
});

describe('packs over REST (R-REST-16)', () => {
  test('are listed and shown with their input and output schemas', async () => {
    const { url, token } = await served();
    const list = (await sendRequest(url, '/api/v1/packs', { token })).json as unknown as { packs: { name: string }[] };
    expect(list.packs.map(({ name }) => name)).toEqual([
      'helmdeck.memory_forget',
      'helmdeck.memory_store',
      'helmdeck.route',
      'test.echo',
    ]);
    const one = await sendRequest(url, '/api/v1/packs/test.echo', { token });
    expect(one.json).toMatchObject({ name: 'test.echo', tool: 'test_echo', input_schema: { type: 'object' } });
  });

  test('run with the request body as input', async () => {
    const { run } = await served();
    const { status, json } = await run('test.echo', { what: 'hello' });
    expect(status).toBe(200);
    expect(json).toEqual({
      pack: 'test.echo',
      version: '1.0.0',
      output: { said: 'hello' },
      cached: false,
      duration_ms: expect.any(Number) as number,
    });
    expect((await run('test.echo')).json['output']).toEqual({ said: 'nothing' });
  });

  test('run in the session named in the query, until it ends (R-PACK-07)', async () => {
    const counting = aPack(
      async ({ memory }) => {
        const before = ((await memory?.recall('count'))?.value as number | undefined) ?? 0;
        await memory?.store('count', before + 1);
        return { said: `${before + 1}` };
      },
      { memory: {} },
    );
    const { url, token, run } = await served([counting]);
    const said = async (more: string) => (await run('test.echo', {}, more)).json;
    expect(await said('?session=a-1')).toMatchObject({ output: { said: '1' }, session_id: 'a-1' });
    expect(await said('?session=a-1')).toMatchObject({ output: { said: '2' } });
    expect(await said('')).toMatchObject({ output: { said: '1' } });
    const end = () => sendRequest(url, '/api/v1/sessions/a-1', { method: 'DELETE', token });
    expect((await end()).json).toEqual({ session_id: 'a-1', deleted: 1 });
    expect((await end()).json).toEqual({ session_id: 'a-1', deleted: 0 });
    expect(await said('?session=a-1')).toMatchObject({ output: { said: '1' } });
  });

  test.each([
    ['an unknown pack', 'no.such', {}, '', 404, 'not_found', /list the packs/],
    ['an invalid name', 'test', {}, '', 400, 'invalid_input', /name must be a group and a name/],
    ['a name with an encoded slash', 'test%2Fecho', {}, '', 400, 'invalid_input', /name must be/],
    ['a name encoded twice', 'test%252eecho', {}, '', 400, 'invalid_input', /name must be/],
    ['a name with a lookalike letter', 'test.e%D1%81ho', {}, '', 400, 'invalid_input', /name must be/],
    ['a name that is not UTF-8', '%ff.echo', {}, '', 400, 'invalid_input', /percent-encoded/],
    ['a name in the query too', 'test.echo', {}, '?name=test.echo', 400, 'invalid_input', /name is in the path/],
    ['an input in the query', 'test.echo', {}, '?input=x', 400, 'invalid_input', /input is the body/],
    ['an unknown field', 'test.echo', {}, '?subject=you', 400, 'invalid_input', /unknown field/],
    ['a session with a colon', 'test.echo', {}, '?session=a:b', 400, 'invalid_input', /session must have/],
    ['two sessions', 'test.echo', {}, '?session=a&session=b', 400, 'invalid_input', /twice/],
    ['an input that is not an object', 'test.echo', '[]', '', 400, 'invalid_input', /input must be a JSON object/],
    ['an input that does not match the schema', 'test.echo', { what: 7 }, '', 400, 'invalid_input', /what/],
    ['a pack below a pack', 'test.echo/test.echo', {}, '', 404, 'not_found', /Unknown path/],
  ])('refuses %s', async (_why, name, body, more, status, code, says) => {
    const all = await served();
    const answer = await all.run(name, body, more);
    expect([answer.status, answer.json.error]).toEqual([status, code]);
    expect(answer.json.message).toMatch(says);
    expect(await rows(all)).toEqual([]);
  });

  test('report handler failures with their own status', async () => {
    const { run } = await served([
      aPack(() => {
        throw new Error('secret');
      }),
      aPack(() => ({}), { name: 'test.wrong' }),
    ]);
    for (const [name, code] of [
      ['test.echo', 'handler_failed'],
      ['test.wrong', 'invalid_output'],
    ] as const) {
      const answer = await run(name, {});
      expect([answer.status, answer.json.error]).toEqual([502, code]);
      expect(answer.text).not.toMatch(/secret/);
    }
  });

  test('need packs:run to run and memory:read to show', async () => {
    const { url, token } = await serve({ packs: { packs: [aPack(() => ({ said: '' }))] } });
    const [reader, runner] = [await token('me', ['memory:read']), await token('me', ['packs:run'])];
    const status = async (method: string, path: string, by: string) =>
      (await sendRequest(url, `/api/v1${path}`, { method, token: by })).status;
    expect(await status('GET', '/packs', reader)).toBe(200);
    expect(await status('POST', '/packs/test.echo', reader)).toBe(403);
    expect(await status('DELETE', '/sessions/a', reader)).toBe(403);
    expect(await status('GET', '/packs/test.echo', runner)).toBe(403);
    expect(await status('POST', '/packs/test.echo', runner)).toBe(200);
  });
});

test.each(['/api/v1/packs/test.echo', '/api/v1/owner/runPack'])(
  'a client that disconnects from %s cancels its run (R-PACK-26)',
  async (path) => {
    const started = Promise.withResolvers<AbortSignal>();
    const waiting = aPack(({ signal }) => {
      started.resolve(signal);
      return new Promise(() => undefined);
    });
    const all = await served([waiting]);
    const token = path.includes('owner') ? all.owner : all.token;
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const sent = request(`${all.url}${path}`, { method: 'POST', headers, agent: false }).on('error', () => undefined);
    sent.end(path.includes('owner') ? '{"name":"test.echo"}' : '{}');
    const signal = await started.promise;
    expect(signal.aborted).toBe(false);
    sent.destroy();
    await expect.poll(() => signal.aborted, EVENTUALLY).toBe(true);
    await expect.poll(() => rows(all), EVENTUALLY).toMatchObject([{ outcome: 'cancelled' }]);
  },
);
