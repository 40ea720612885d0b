import {
  Client as Client2,
  SSEClientTransport as Sse2,
  StreamableHTTPClientTransport as Http2,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { BRIDGE } from '../../integrations/bridge.ts';
import { serve, type ServedMemory, EVENTUALLY } from '../../support/listener.ts';
import { aPack } from '../../support/packs.ts';
import { connectClient, initialize, MCP, openSession, toolResultOf, CLIENT_TRANSPORTS } from './mcp-client.ts';

const aFact = {
  key: 'preferences/editor',
  value: 'Helix, with the terminal beside it',
  category: 'preferences',
  tags: ['editor'],
};

describe.each(CLIENT_TRANSPORTS)('an agent over %s', (way) => {
  test('stores, finds, recalls, renews, reads history and forgets (R-MCP-01, R-MCP-02, R-MCP-05)', async () => {
    const served = await serve();
    const client = await connectClient(served, await served.token(), way);
    expect(client.getServerVersion()).toMatchObject({ name: 'helmdeck', version: '1.2.3' });
    const call = async (name: string, given: object) => {
      const result = await client.callTool({ name, arguments: { ...given } });
      expect(result).toEqual({ content: [{ type: 'text', text: JSON.stringify(toolResultOf(result)) }] });
      return toolResultOf(result);
    };
    expect(await call('memory_store', aFact)).toMatchObject({ key: aFact.key, status: 'created' });
    expect(await call('memory_store', { ...aFact, value: 'Zed' })).toMatchObject({ status: 'updated' });
    expect(await call('memory_search', { query: 'zed' })).toMatchObject({ hits: [{ key: aFact.key, value: 'Zed' }] });
    expect(await call('memory_recall', { key: aFact.key })).toMatchObject({ value: 'Zed', client: 'test', tags: ['editor'] });
    expect(await call('memory_renew', { key: aFact.key, ttl_seconds: 3600 })).toMatchObject({ key: aFact.key });
    expect(await call('memory_history', { key: aFact.key })).toMatchObject({ versions: [{ value: aFact.value }] });
    expect(await call('memory_forget', { scope: `key:${aFact.key}` })).toMatchObject({ deleted: 1, purged: true });
  });

  test('is notified of its subscriptions, and of no other subject (R-MCP-07)', async () => {
    const served = await serve();
    const client = await connectClient(served, await served.token(), way);
    const other = await connectClient(served, await served.token('somebody-else'), way);
    const heard = vi.fn<(uri: string) => void>();
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => heard(params.uri));
    await client.subscribeResource({ uri: 'helmdeck://my-memory' });
    await other.callTool({ name: 'memory_store', arguments: aFact });
    await other.callTool({ name: 'memory_store', arguments: aFact });
    expect(heard).not.toHaveBeenCalled();
    await client.callTool({ name: 'memory_store', arguments: aFact });
    await vi.waitFor(() => expect(heard).toHaveBeenCalledWith('helmdeck://my-memory'), EVENTUALLY);
    await client.unsubscribeResource({ uri: 'helmdeck://my-memory' });
    await client.callTool({ name: 'memory_store', arguments: { ...aFact, value: 'Vim' } });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(heard).toHaveBeenCalledTimes(1);
  });

  test('is notified that its defaults changed after a run, and of no other subject (R-MCP-07, R-MCP-11)', async () => {
    const served = await serve({ packs: { packs: [aPack(() => ({ said: '' }))] } });
    const client = await connectClient(served, await served.token('me', ['memory:read', 'packs:run']), way);
    const other = await connectClient(served, await served.token('somebody-else', ['memory:read', 'packs:run']), way);
    const heard = vi.fn<(uri: string) => void>();
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => heard(params.uri));
    for (const uri of ['helmdeck://my-defaults', 'helmdeck://my-memory', 'helmdeck://packs']) {
      await client.subscribeResource({ uri });
    }
    await other.callTool({ name: 'test_echo', arguments: {} });
    await client.callTool({ name: 'test_echo', arguments: {} });
    await vi.waitFor(() => expect(heard.mock.calls).toEqual([['helmdeck://my-defaults']]), EVENTUALLY);
    const { contents } = await client.readResource({ uri: 'helmdeck://my-defaults' });
    expect(JSON.parse((contents[0] as { text: string }).text)).toMatchObject({ packs: [{ id: 'test.echo', calls: 1 }] });
  });

  test('reads the memory of its own subject as JSON (R-MCP-07)', async () => {
    const served = await serve();
    const client = await connectClient(served, await served.token(), way);
    await client.callTool({ name: 'memory_store', arguments: aFact });
    const { resources } = await client.listResources();
    expect(resources.map(({ uri, mimeType }) => [uri, mimeType])).toEqual([
      ['helmdeck://my-memory', 'application/json'],
      ['helmdeck://context', 'application/json'],
      ['helmdeck://my-defaults', 'application/json'],
      ['helmdeck://packs', 'application/json'],
      ['helmdeck://pipelines', 'application/json'],
    ]);
    const read = async (reader: typeof client, uri: string) => {
      const { contents } = await reader.readResource({ uri });
      return JSON.parse((contents[0] as { text: string }).text) as object;
    };
    expect(await read(client, 'helmdeck://my-memory')).toMatchObject({
      scope: 'caller=me',
      categories: [{ name: 'preferences', count: 1, recent_keys: [aFact.key] }],
    });
    expect(await read(client, 'helmdeck://context')).toMatchObject({ categories: [{ facts: [{ value: aFact.value }] }] });
    expect(await read(client, 'helmdeck://packs')).toMatchObject({
      packs: [{ tool: 'memory_forget' }, { tool: 'memory_store' }, { tool: 'route' }],
    });
    const other = await connectClient(served, await served.token('somebody-else'), way);
    expect(await read(other, 'helmdeck://my-memory')).toMatchObject({ scope: 'caller=somebody-else', categories: [] });
    await expect(client.readResource({ uri: 'helmdeck://nowhere' })).rejects.toMatchObject({ code: -32602 });
  });
});

/** Transports of the second generation of the official client, each with its token. */
const WAYS2 = {
  'streamable HTTP': ({ url }: ServedMemory, token: string) => new Http2(new URL(url + MCP), bearing(token)),
  'HTTP with SSE': ({ url }: ServedMemory, token: string) => new Sse2(new URL(`${url}${MCP}/sse`), bearing(token)),
  stdio: ({ folder }: ServedMemory, token: string) => {
    const env = { HELMDECK_DATA_DIR: folder, HELMDECK_TOKEN: token };
    return new Stdio2({ command: process.execPath, args: [BRIDGE], env, stderr: 'inherit' });
  },
};
const bearing = (token: string) => ({ requestInit: { headers: { Authorization: `Bearer ${token}` } } });

describe.each(Object.entries(WAYS2))('the second generation of the client over %s', (_way, transport) => {
  test.each(['legacy', 'auto'] as const)(
    'connects in mode %s, stores, recalls, reads and is notified of changes (R-MCP-01, R-MCP-07, R-MCP-09)',
    async (mode) => {
      const served = await serve();
      const client = new Client2({ name: 'a test', version: '2' }, { versionNegotiation: { mode } });
      await client.connect(transport(served, await served.token()));
      onTestFinished(() => client.close());
      expect(client.getServerVersion()).toMatchObject({ name: 'helmdeck', version: '1.2.3' });
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toContain('memory_store');
      const heard = vi.fn<(uri: string) => void>();
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard(params.uri));
      await client.subscribeResource({ uri: 'helmdeck://my-memory' });
      expect(toolResultOf(await client.callTool({ name: 'memory_store', arguments: aFact }))).toMatchObject({
        status: 'created',
      });
      await vi.waitFor(() => expect(heard).toHaveBeenCalledWith('helmdeck://my-memory'), EVENTUALLY);
      const recalled = await client.callTool({ name: 'memory_recall', arguments: { key: aFact.key } });
      expect(toolResultOf(recalled)).toMatchObject({ value: aFact.value, client: 'test' });
      const { contents } = await client.readResource({ uri: 'helmdeck://my-memory' });
      expect(JSON.parse((contents[0] as { text: string }).text)).toMatchObject({
        categories: [{ name: 'preferences', recent_keys: [aFact.key] }],
      });
      const unknown = await client.callTool({ name: 'nothing', arguments: {} });
      expect([unknown.isError, toolResultOf(unknown)['error']]).toEqual([true, 'not_found']);
    },
  );
});

test.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'])(
  'protocol version %s is supported (R-MCP-01)',
  async (version) => {
    const served = await serve();
    const session = await openSession(served, await served.token(), version);
    const pong = await session.post({ jsonrpc: '2.0', id: 7, method: 'ping' }, ['MCP-Protocol-Version', version]);
    expect([pong.status, pong.json]).toEqual([200, { jsonrpc: '2.0', id: 7, result: {} }]);
  },
);

test('an unknown version is answered with the latest (R-MCP-01)', async () => {
  const served = await serve();
  const { post } = await openSession(served, await served.token(), '1999-01-01');
  expect((await post(initialize('1999-01-01'))).json).toMatchObject({ result: { protocolVersion: '2025-11-25' } });
  expect((await post({ jsonrpc: '2.0', id: 1, method: 'ping' }, ['MCP-Protocol-Version', '1999-01-01'])).status).toBe(400);
});
