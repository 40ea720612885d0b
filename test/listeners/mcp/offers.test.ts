import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, test, vi } from 'vitest';
import type { PackOffer } from '../../../src/contract/client.ts';
import type { TokenScope } from '../../../src/contract/token.ts';
import type { Caller } from '../../../src/core/access/caller.ts';
import { TokenRegistry } from '../../../src/core/access/token-registry.ts';
import { EVENTUALLY, sendRequest, serve, type ServedMemory } from '../../support/listener.ts';
import { aPack } from '../../support/packs.ts';
import { CLIENT_TRANSPORTS, connectClient, openSession, QMD, toolResultOf } from './mcp-client.ts';

const SCOPES: TokenScope[] = ['memory:read', 'memory:write', 'packs:run'];
const MEMORY = ['memory_search', 'memory_recall', 'memory_store', 'memory_renew', 'memory_history', 'memory_forget'];
const NOT_OFFERED = /^The owner of this memory does not offer the pack test\.other to codex\. .* connect codex --packs all\.$/;

const served = () =>
  serve({
    packs: {
      packs: [
        aPack(({ input: { what } }) => ({ said: what })),
        aPack(() => ({ said: '' }), { name: 'test.other', title: 'Other' }),
      ],
    },
  });

async function offering(all: ServedMemory, offer: PackOffer): Promise<PackOffer> {
  const owner: Caller = await all.tokens.verify(all.owner, 'owner');
  return all.perform(owner, 'offerPacks', offer);
}

const toolsOf = async (session: Awaited<ReturnType<typeof openSession>>): Promise<string[]> => {
  const { json } = await session.post({ jsonrpc: '2.0', id: 2, method: 'tools/list' });
  return (json['result'] as { tools: { name: string }[] }).tools.map(({ name }) => name);
};

test('a client sees and runs only the packs that it is offered, by default all (R-CONN-14, R-MCP-11)', async () => {
  const all = await served();
  const codex = await openSession(all, await all.token('me', SCOPES, 'codex'));
  const other = await openSession(all, await all.token('me', SCOPES, 'gemini-cli'));
  const everything = [...MEMORY, 'pipeline_run', 'route', 'test_echo', 'test_other'];
  expect(await toolsOf(codex)).toEqual(everything);
  expect(await offering(all, { client: 'codex', packs: ['test.echo'] })).toEqual({ client: 'codex', packs: ['test.echo'] });
  // The change applies to the next request of an open session.
  expect(await toolsOf(codex)).toEqual([...MEMORY, 'pipeline_run', 'test_echo']);
  expect(await toolsOf(other)).toEqual(everything);
  expect(toolResultOf((await codex.call('test_echo', { what: 'x' })).json['result'])).toMatchObject({ output: { said: 'x' } });
  for (const name of ['test_other', 'test.other', 'helmdeck__test_other']) {
    const { json } = await codex.call(name, { what: 'x' });
    expect(json['result']).toMatchObject({ isError: true });
    expect(toolResultOf(json['result'])).toEqual({
      error: 'insufficient_scope',
      message: expect.stringMatching(NOT_OFFERED) as string,
    });
  }
  expect(toolResultOf((await codex.call('nothing', {})).json['result'])['message']).not.toMatch(/test_other/);
  await offering(all, { client: 'codex', packs: [] });
  expect(await toolsOf(codex)).toEqual(MEMORY);
  await offering(all, { client: 'codex', packs: 'all' });
  expect(await toolsOf(codex)).toEqual(everything);
});

test('REST offers and refuses the same packs for the same client (R-CONN-14)', async () => {
  const all = await served();
  const token = await all.token('me', SCOPES, 'codex');
  await offering(all, { client: 'codex', packs: ['test.echo', 'helmdeck.route'] });
  const listed = (await sendRequest(all.url, '/api/v1/packs', { token })).json['packs'] as { name: string }[];
  expect(listed.map(({ name }) => name)).toEqual([
    'helmdeck.memory_forget',
    'helmdeck.memory_store',
    'helmdeck.route',
    'test.echo',
  ]);
  expect((await sendRequest(all.url, '/api/v1/packs/test.echo', { token, body: { what: 'x' } })).status).toBe(200);
  const refused = await sendRequest(all.url, '/api/v1/packs/test.other', { token, body: {} });
  expect([refused.status, refused.json.message]).toEqual([403, expect.stringMatching(NOT_OFFERED)]);
  const routed = await sendRequest(all.url, '/api/v1/packs/helmdeck.route', { token, body: { user_intent: 'other' } });
  expect(routed.text).not.toMatch(/test\.other/);
  // Facts can be stored by a pipeline of every client.
  const stored = { key: 'a', value: 'b' };
  expect((await sendRequest(all.url, '/api/v1/packs/helmdeck.memory_store', { token, body: stored })).status).toBe(200);
});

test('a step of a pipeline needs a pack that its author and its caller are offered (R-CONN-14, R-DEFINE-02)', async () => {
  const all = await served();
  const [codex, gemini] = [await all.token('me', SCOPES, 'codex'), await all.token('me', SCOPES, 'gemini-cli')];
  const body = { id: 'one', steps: [{ id: 'first', pack: 'test.other', input: {} }] };
  expect((await sendRequest(all.url, '/api/v1/pipelines', { token: codex, body })).status).toBe(200);
  const runBy = async (token: string) => {
    const { call } = await openSession(all, token);
    return toolResultOf((await call('pipeline_run', { id: 'one' })).json['result']);
  };
  expect(await runBy(gemini)).toMatchObject({ status: 'succeeded' });
  await offering(all, { client: 'gemini-cli', packs: ['test.echo'] });
  expect(await runBy(gemini)).toMatchObject({ error: 'insufficient_scope' });
  await offering(all, { client: 'gemini-cli', packs: 'all' });
  await offering(all, { client: 'codex', packs: ['test.echo'] });
  expect(await runBy(gemini)).toMatchObject({ error: 'insufficient_scope' });
});

test.each(CLIENT_TRANSPORTS)('open sessions of the client over %s are notified of the change (R-CONN-14)', async (way) => {
  const all = await served();
  const heard: string[] = [];
  for (const name of ['codex', 'gemini-cli']) {
    const client = await connectClient(all, await all.token('me', SCOPES, name), way);
    expect(client.getServerCapabilities()?.tools).toEqual({ listChanged: true });
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.push(name));
    await client.listTools();
  }
  const searcher = await connectClient(all, await all.token('me', SCOPES, 'codex'), way, QMD);
  searcher.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.push('search'));
  await offering(all, { client: 'codex', packs: [] });
  await vi.waitFor(() => expect(heard).toEqual(['codex']), EVENTUALLY);
  await offering(all, { client: 'gemini-cli', packs: [] });
  await vi.waitFor(() => expect(heard).toEqual(['codex', 'gemini-cli']), EVENTUALLY);
});

test('only the owner can change the packs of a client, and the change is recorded (R-CONN-14, R-VIEW-07)', async () => {
  const all = await served();
  const caller = await all.tokens.verify(await all.token('me', SCOPES, 'codex'), 'rest');
  await expect(all.perform(caller, 'offerPacks', { client: 'codex', packs: 'all' })).rejects.toMatchObject({
    code: 'insufficient_scope',
  });
  await expect(offering(all, { client: 'codex', packs: ['test.ecko'] })).rejects.toMatchObject({ code: 'not_found' });
  await expect(offering(all, { client: 'window', packs: [] })).rejects.toMatchObject({ code: 'invalid_input' });
  await offering(all, { client: 'codex', packs: ['test.echo'] });
  const owner = await all.tokens.verify(all.owner, 'owner');
  const { activity } = await all.perform(owner, 'activity', {});
  expect(activity.map(({ operation, target }) => [operation, target])).toEqual([['offerPacks', 'codex']]);
});

test('the choice is kept for the next start, and no pack is offered while it cannot be read (R-CONN-14)', async () => {
  const all = await served();
  const token = await all.token('me', SCOPES, 'codex');
  await offering(all, { client: 'codex', packs: ['test.echo'] });
  const next = (vault = all.store.vault) => TokenRegistry.open({ vault, now: () => all.store.now(), doubtful: () => false });
  expect((await (await next()).verify(token, 'mcp')).packs).toEqual(new Set(['test.echo']));
  const { vault } = all.store;
  let isLocked = true;
  const closed = await next({
    read: (name) => (isLocked && name === 'offered packs' ? Promise.reject(new Error('locked')) : vault.read(name)),
    write: (name, text) => vault.write(name, text),
    update: (name, change) => vault.update(name, change),
    delete: (name) => vault.delete(name),
    names: () => vault.names(),
    revokeToken: (id, until) => vault.revokeToken(id, until),
    revokedTokens: () => vault.revokedTokens(),
  });
  expect((await closed.verify(token, 'mcp')).packs).toEqual(new Set());
  isLocked = false;
  expect((await closed.verify(token, 'mcp')).packs).toEqual(new Set(['test.echo']));
});
