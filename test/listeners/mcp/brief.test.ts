import { expect, test, vi } from 'vitest';
import { operations } from '../../../src/contract/operations.ts';
import type { TokenScope } from '../../../src/contract/token.ts';
import type { Caller } from '../../../src/core/access/caller.ts';
import type { CallContext } from '../../../src/core/operations/call-context.ts';
import { startBridge } from '../../integrations/bridge.ts';
import { EVENTUALLY, sendRequest, serve, type ServedMemory } from '../../support/listener.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { CLIENT_TRANSPORTS, type ClientTransport, connectClient, post, QMD } from './mcp-client.ts';

const HEADER = "\n\nFrom Helmdeck Memory: what this person's agents remember.";

const remember = async (served: ServedMemory, fact: object, client = 'codex', subject = 'me') =>
  sendRequest(served.url, '/api/v1/memory/store', {
    token: await served.token(subject, ['memory:read', 'memory:write'], client),
    body: JSON.stringify(fact),
  });

const greeting = async (
  served: ServedMemory,
  client = 'claude-code',
  transport?: ClientTransport,
  scopes: TokenScope[] = ['memory:read'],
) => (await connectClient(served, await served.token('me', scopes, client), transport)).getInstructions() ?? '';

const editor = { key: 'preferences/editor', value: 'Helix', category: 'preferences' };

test.each(CLIENT_TRANSPORTS)(
  'a session over %s starts with the brief, after the instructions (R-BRIEF-10)',
  async (transport) => {
    const served = await serve();
    const empty = await greeting(served, 'claude-code', transport);
    expect(empty).not.toContain(HEADER);
    await remember(served, editor);
    await remember(served, { key: 'bobs', value: 'secret of bob', category: 'preferences' }, 'codex', 'bob');
    const begun = await greeting(served, 'claude-code', transport);
    expect(begun.startsWith(`${empty}${HEADER}`)).toBe(true);
    expect(begun).toContain('\n- preferences/editor (codex, just now): "Helix"');
    expect(begun).not.toContain('bob');
    await remember(served, { key: 'conventions/commits', value: 'In English.', category: 'conventions' });
    expect(await greeting(served, 'claude-code', transport)).toContain('conventions/commits');
  },
);

test('the first line alone makes a model use the memory, and all fits in what clients show (R-BRIEF-10)', async () => {
  const served = await serve({ brief: { bytes: 4000, receipts: true } });
  const instructions = await greeting(served);
  const [first = ''] = instructions.split('\n');
  expect(first.length).toBeLessThanOrEqual(250);
  expect(first).toMatch(/^[^.]*memory_search[^.]*memory_store[^.]*\.$/);
  expect(instructions).toContain('project:<name of its root folder>');
  for (let n = 0; n < 40; n += 1) await remember(served, { ...editor, key: `preferences/${n}`, value: 'x'.repeat(230) });
  const full = await greeting(served);
  expect(full.length).toBeGreaterThan(3000);
  expect(full.length).toBeLessThanOrEqual(4096);
  const bridge = startBridge({ HELMDECK_DATA_DIR: tempFolder() }, '--client', 'codex');
  const { result } = await bridge.request('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'c', version: '1' },
  });
  expect(String(result?.['instructions']).split('\n')[0]).toBe(first);
});

test('a session starts without a brief if the token cannot read, if the memory is slow, or for searches (R-BRIEF-10)', async () => {
  const pending = Promise.withResolvers<never>();
  const served = await serve({
    wrapPerform: (perform) => async (caller: Caller, name: string, input: unknown, context?: CallContext) =>
      name === 'brief' && caller.client === 'slow' ? pending.promise : ((await perform(caller, name, input, context)) as never),
  });
  await remember(served, editor);
  expect(await greeting(served)).toContain(HEADER);
  expect(await greeting(served, 'writer', undefined, ['memory:write'])).not.toContain(HEADER);
  expect(await greeting(served, 'slow')).not.toContain(HEADER);
  const search = await connectClient(served, await served.token(), undefined, QMD);
  expect(search.getInstructions()).not.toContain(HEADER);
  const hook = await greeting(served, 'hook', undefined, ['memory:brief']);
  expect(hook).toContain(HEADER);
});

test('no brief is given to a program without a model, or where no model would see it (R-BRIEF-08, R-BRIEF-10)', async () => {
  const served = await serve();
  await remember(served, editor);
  for (const client of ['codex', 'openclaw']) expect(await greeting(served, client)).not.toContain(HEADER);
  const token = await served.token();
  const openAs = async (name: unknown) => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } };
    const { text } = await post(served, token, { jsonrpc: '2.0', id: 1, method: 'initialize', params });
    return text;
  };
  expect(await openAs('helmdeck-memory')).not.toContain('From Helmdeck Memory');
  expect(await openAs('helmdeck-stdio-bridge')).not.toContain('From Helmdeck Memory');
  const { activity } = await served.perform(await served.tokens.verify(served.owner, 'owner'), 'activity', {});
  expect(activity.filter(({ operation }) => operation === 'brief')).toEqual([]);
  expect(await openAs('claude')).toContain('From Helmdeck Memory');
  expect(await openAs(7)).not.toContain('From Helmdeck Memory');
});

test('the bridge opens a session again under its own name (R-BRIEF-10)', async () => {
  const names: (string | undefined)[] = [];
  const folder = tempFolder();
  const first = await serve({ folder });
  await remember(first, editor);
  const { token } = await first.tokens.mint({ name: 'a', client: 'cursor', subject: 'me', scopes: ['memory:read'], days: 1 });
  const bridge = startBridge({ HELMDECK_DATA_DIR: folder, HELMDECK_TOKEN: token });
  const clientInfo = { name: 'cursor', version: '1' };
  const { result } = await bridge.request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  expect(String(result?.['instructions'])).toContain(HEADER);
  bridge.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  await first.listener.close();
  const { store, tokens } = first;
  await serve({
    folder,
    store,
    tokens,
    wrapPerform: (perform) => async (caller: Caller, name: string, input: unknown, context?: CallContext) => {
      names.push(name);
      return (await perform(caller, name, input, context)) as never;
    },
  });
  // The first call can meet the connection that was just closed.
  await vi.waitFor(async () => {
    await bridge.request('tools/call', { name: 'memory_recall', arguments: { key: 'preferences/editor' } });
    expect(names).toContain('recall');
  }, EVENTUALLY);
  expect(names).not.toContain('brief');
});

test('a brief is no tool (R-MCP-02)', async () => {
  const served = await serve();
  const client = await connectClient(served, await served.token());
  const { tools } = await client.listTools();
  expect(operations.brief.scope).toBe('memory:brief');
  expect(tools.filter(({ name }) => name.includes('brief'))).toEqual([]);
});

test('a token for briefs learns nothing about changes from the resources (R-MCP-07)', async () => {
  const served = await serve();
  const client = await connectClient(served, await served.token('me', ['memory:brief'], 'codex'));
  for (const uri of ['helmdeck://my-memory', 'helmdeck://my-defaults']) {
    await expect(client.subscribeResource({ uri })).rejects.toThrow(/needs a token with the scope memory:read/);
    await expect(client.readResource({ uri })).rejects.toThrow(/needs a token with the scope memory:read/);
  }
});

test('the server is silent for a client whose hooks speak (R-BRIEF-09)', async () => {
  const served = await serve();
  await remember(served, editor);
  const hook = await served.token('me', ['memory:brief'], 'claude-code');
  const asked = await sendRequest(served.url, '/api/v1/brief', { token: hook, body: '{"session":"s"}' });
  expect(asked.json).toMatchObject({ keys: ['preferences/editor'] });
  await vi.waitFor(async () => expect(await greeting(served)).not.toContain(HEADER));
  expect(await greeting(served, 'gemini-cli')).toContain(HEADER);
});
