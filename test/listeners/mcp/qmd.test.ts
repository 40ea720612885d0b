import { describe, expect, onTestFinished, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import type { Caller } from '../../../src/core/access/caller.ts';
import { manualClock } from '../../support/clock.ts';
import { sendRequest, serve } from '../../support/listener.ts';
import { openFileStore } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { connectClient, initialize, MCP, openSession, post, QMD, toolResultOf, CLIENT_TRANSPORTS } from './mcp-client.ts';

const aFact = { key: 'preferences/editor', value: 'Helix, with the terminal beside it', category: 'preferences' };

describe.each(CLIENT_TRANSPORTS)('a search client over %s', (way) => {
  test('sees one read-only tool (R-QMD-01)', async () => {
    const served = await serve();
    const client = await connectClient(served, await served.token(), way, QMD);
    expect(client.getServerVersion()?.name).toBe('helmdeck');
    expect(client.getServerCapabilities()).toEqual({ tools: {} });
    const { tools } = await client.listTools();
    expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([['query', true]]);
    for (const name of ['memory_store', 'memory_forget', 'helmdeck.memory_store']) {
      const refused = await client.callTool({ name, arguments: aFact });
      expect([refused.isError, toolResultOf(refused)['message']]).toEqual([true, 'Unknown tool. The tools are query.']);
    }
    await expect(client.listResources()).rejects.toMatchObject({ code: -32601 });
  });

  test('gets ranked hits, as structure and as text (R-QMD-01)', async () => {
    const served = await serve();
    const token = await served.token();
    const writer = await connectClient(served, token);
    await writer.callTool({ name: 'memory_store', arguments: aFact });
    const client = await connectClient(served, token, way, QMD);
    const result = await client.callTool({ name: 'query', arguments: { searches: [{ type: 'lex', query: 'helix' }], limit: 3 } });
    expect(result).toEqual({ content: [expect.anything()], structuredContent: toolResultOf(result) });
    expect(toolResultOf(result)).toMatchObject({
      results: [{ docid: 'preferences/preferences/editor', collection: 'helmdeck-preferences' }],
    });
    // Additional fields from OpenClaw are ignored.
    const foreign = {
      query: 'helix',
      collections: ['memory-root-main'],
      rerank: false,
      candidateLimit: 40,
      intent: 'recall',
      min: 1,
    };
    expect(toolResultOf(await client.callTool({ name: 'query', arguments: foreign }))).toEqual(toolResultOf(result));
    expect(toolResultOf(await client.callTool({ name: 'query', arguments: {} }))).toMatchObject({ results: [{ score: 0.5 }] });
    const other = await connectClient(served, await served.token('somebody-else'), way, QMD);
    expect(toolResultOf(await other.callTool({ name: 'query', arguments: { query: 'helix' } }))).toEqual({ results: [] });
  });
});

test('a session of one server is unknown to the other (R-MCP-06)', async () => {
  const served = await serve();
  const token = await served.token();
  const { session } = await openSession(served, token);
  const answer = await post(served, token, { jsonrpc: '2.0', id: 1, method: 'ping' }, ['Mcp-Session-Id', session], QMD);
  expect(answer.status).toBe(404);
});

test.each([
  ['the file has failed', 'store_unavailable', 'The disk is gone.'],
  ['the key is unavailable', 'key_unavailable', 'The keychain is locked; unlock it.'],
] as const)('while %s, every method fails with qmd_unavailable and the remedy (R-QMD-01)', async (_why, code, message) => {
  const served = await serve({
    wrapPerform: () => async () => {
      throw new Failure(code, message);
    },
  });
  const token = await served.token();
  for (const [method, path] of [
    ['POST', QMD],
    ['GET', QMD],
    ['DELETE', QMD],
    ['PUT', QMD],
    ['PATCH', QMD],
    ['OPTIONS', QMD],
    ['GET', `${QMD}/sse`],
    ['POST', `${QMD}/sse`],
    ['DELETE', `${QMD}/sse/message`],
    ['GET', `${QMD}/sse/message`],
    ['POST', `${QMD}/sse/message?sessionId=none`],
  ] as const) {
    const answer = await sendRequest(served.url, path, { method, token, ...(method === 'POST' && { body: initialize() }) });
    expect([answer.status, answer.json.error], `${method} ${path}`).toEqual([503, 'qmd_unavailable']);
    expect(answer.json.message).toMatch(message);
  }
  // The memory server reports it in each call instead.
  expect((await post(served, token, initialize(), [], MCP)).status).toBe(200);
});

test('searches fail while the memory is locked, and work again afterwards (R-QMD-01)', async () => {
  const states = { at: 'locked' };
  const served = await serve({
    wrapPerform: (perform) => async (caller: Caller, name: string, input: unknown) => {
      const answer = (await perform(caller, name, input)) as { store: { key: object } };
      if (name === 'status' && states.at === 'locked')
        answer.store.key = { at: 'locked', why: 'the keychain is closed', remedy: 'Unlock it.' };
      return answer as never;
    },
  });
  const token = await served.token();
  const refused = await post(served, token, initialize(), [], QMD);
  expect([refused.status, refused.json.error]).toEqual([503, 'qmd_unavailable']);
  expect(refused.json.message).toMatch(
    /^The memory cannot be searched now\. The key of this memory is locked: the keychain is closed\. Unlock it\.$/,
  );
  states.at = 'ok';
  expect((await post(served, token, initialize(), [], QMD)).status).toBe(200);
});

test('a locked memory is noticed without an operation on each request (R-QMD-01)', async () => {
  const store = await openFileStore(tempFolder(), manualClock());
  onTestFinished(() => store[Symbol.asyncDispose]());
  const served = await serve({ store });
  const token = await served.token();
  expect((await post(served, token, initialize(), [], QMD)).status).toBe(200);
  store.lock('the owner is away');
  const refused = await post(served, token, initialize(), [], QMD);
  expect([refused.status, refused.json.error]).toEqual([503, 'qmd_unavailable']);
  expect(refused.json.message).toContain('the owner is away');
});

test('a search needs the scope memory:read', async () => {
  const served = await serve();
  const answer = await post(served, await served.token('me', ['memory:write']), initialize(), [], QMD);
  expect([answer.status, answer.json.error]).toEqual([403, 'insufficient_scope']);
});
