import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { ENTRY } from '../../src/main/connect/connector.ts';

/** The address of the model. Codex sends it no requests here. */
const NOWHERE = 'http://127.0.0.1:9';
const PATIENCE_MS = 60_000;

/**
 * Listing servers in Codex starts none of them. The app server for editor extensions starts them and calls their tools on request,
 * without a model and without an account.
 */
export async function askCodex(program: string, environment: Record<string, string>, home: string): Promise<object> {
  const env = { ...environment, HTTPS_PROXY: NOWHERE, HTTP_PROXY: NOWHERE };
  const child = spawn(program, ['app-server'], { env, cwd: home, stdio: ['pipe', 'pipe', 'ignore'], timeout: PATIENCE_MS });
  try {
    const ask = asking(child);
    await ask('initialize', { clientInfo: { name: 'lane', version: '1' } });
    const { data } = await ask('mcpServerStatus/list', { serverName: ENTRY });
    const { thread } = await ask('thread/start', { ephemeral: true });
    const to = { threadId: Object(thread)['id'], server: ENTRY };
    const fact = { key: 'codex/says', value: 'I came through' };
    const stored = await ask('mcpServer/tool/call', { ...to, tool: 'memory_store', arguments: fact });
    const summary = await ask('mcpServer/resource/read', { ...to, uri: 'helmdeck://my-memory' });
    const [block] = stored['content'] as { text: string }[];
    return { server: Object(data)[0]?.serverInfo, stored: JSON.parse(block?.text ?? '') as object, summary };
  } finally {
    child.stdin.end();
    await once(child, 'close');
  }
}

type Ask = (method: string, params: object) => Promise<Record<string, unknown>>;

/** JSON-RPC over lines: one line for each request and response, mixed with notifications. */
function asking(child: ChildProcessByStdio<Writable, Readable, null>): Ask {
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  createInterface(child.stdout)
    .on('line', (line) => {
      const { id, result, error } = JSON.parse(line) as { id?: number; result?: Record<string, unknown>; error?: unknown };
      const asked = waiting.get(id ?? 0);
      if (result) asked?.resolve(result);
      else asked?.reject(new Error(JSON.stringify(error)));
    })
    .on('close', () => {
      for (const asked of waiting.values()) asked.reject(new Error('Codex exited before it responded.'));
    });
  return (method, params) => {
    const id = waiting.size + 1;
    const asked = Promise.withResolvers<Record<string, unknown>>();
    waiting.set(id, asked);
    child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
    return asked.promise;
  };
}
