import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { systemClock } from '../src/core/time/clock.ts';
import { createNetworkPacks } from '../src/main/egress/network-packs.ts';
import { aFact } from './memory.ts';
import { report, type Result } from './report.ts';
import { served } from './served.ts';

/** Facts in the measured search answer. Each has a value of 200 bytes. */
const HITS = 20;

/** Measures the bytes that an agent's model reads: the list of tools, and the answer to a search, in all their representations. */
export async function context(): Promise<Result[]> {
  const egress = {
    get: () => {
      throw new Error('This bench sends no requests.');
    },
  };
  // With a host, the fetch pack is turned on and listed.
  const packs = createNetworkPacks({ clock: systemClock, egress, fetchHosts: ['example.com'] });
  await using mine = await served(0, {}, packs);
  const memory = await clientOf(mine, ['memory:read', 'memory:write']);
  for (let index = 0; index < HITS; index += 1) {
    const { key, value, category, tags } = aFact(index);
    await memory.callTool({ name: 'memory_store', arguments: { key, value, category, tags } });
  }
  const answer = await memory.callTool({ name: 'memory_search', arguments: { query: 'owner said', limit: HITS } });
  const withPacks = await clientOf(mine, ['memory:read', 'memory:write', 'packs:run']);
  const lists = [await memory.listTools(), await withPacks.listTools()] as const;
  await memory.close();
  await withPacks.close();
  return [
    kB('list of the memory tools', lists[0], 6, `${lists[0].tools.length} tools`),
    kB('list of all tools, with the packs', lists[1], 9, `${lists[1].tools.length} tools`),
    kB(`answer of ${HITS} facts of 200 bytes`, answer, 13, 'all representations'),
  ];
}

const kB = (what: string, sent: object, atMost: number, from: string): Result => ({
  what: `MCP, ${what}`,
  figure: Buffer.byteLength(JSON.stringify(sent)) / 1000,
  unit: 'kB',
  bar: { atMost },
  from,
});

async function clientOf(
  { tokens, url }: Awaited<ReturnType<typeof served>>,
  scopes: ('memory:read' | 'memory:write' | 'packs:run')[],
) {
  const { token } = await tokens.mint({ name: 'bench', client: 'claude-code', subject: 'me', scopes, days: 1 });
  const client = new Client({ name: 'bench', version: '1' });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/api/v1/mcp`), {
      requestInit: { headers: { Authorization: `Bearer ${token}` } },
    }),
  );
  return client;
}

if (import.meta.main) process.exitCode = report(await context()) ? 0 : 1;
