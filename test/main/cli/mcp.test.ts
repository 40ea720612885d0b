import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { serve } from '../../support/listener.ts';

test('mcp serves a client over standard input and output, and prints nothing else there (R-MCP-01)', async () => {
  const { folder, token } = await serve();
  const child = spawn(process.execPath, ['bin/helmdeck-memory.js', 'mcp'], {
    env: { HELMDECK_DATA_DIR: folder, HELMDECK_TOKEN: await token() },
    stdio: 'pipe',
  });
  const [out, err] = [text(child.stdout), text(child.stderr)];
  const ask = (id: number, method: string, params: object) =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  const clientInfo = { name: 'a test', version: '1' };
  ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  await once(child.stdout, 'data');
  ask(2, 'tools/call', { name: 'memory_store', arguments: { key: 'editor', value: 'Helix' } });
  await once(child.stdout, 'data');
  child.stdin.end();
  expect(await once(child, 'close')).toEqual([0, null]);
  const answers = (await out)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id?: number });
  expect(answers.filter(({ id }) => id !== undefined)).toMatchObject([
    { id: 1, result: { serverInfo: { name: 'helmdeck' } } },
    { id: 2, result: { content: [{ text: expect.stringContaining('"status":"created"') as string }] } },
  ]);
  expect(await err).toBe('');
});

test('mcp refuses an invalid client name', async () => {
  const child = spawn(process.execPath, ['bin/helmdeck-memory.js', 'mcp', '--client', '../key'], {
    env: { HOME: '/nowhere' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err] = [text(child.stdout), text(child.stderr)];
  expect(await once(child, 'close')).toEqual([2, null]);
  expect({ out: await out, err: await err }).toEqual({ out: '', err: expect.stringMatching(/^--client must be/) as string });
});
