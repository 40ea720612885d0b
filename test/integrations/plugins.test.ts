import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { plugins } from '../../build/tasks/plugins.ts';
import { startsBridgeFor } from '../../src/main/connect/launch.ts';
import { toolResultOf } from '../listeners/mcp/mcp-client.ts';
import { serve, type ServedMemory } from '../support/listener.ts';
import { aCaller } from '../support/memory.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { writePrivate } from './bridge.ts';

const files = await plugins();
const textOf = (path: string): string => String(files[path]);
const CLIENTS = ['claude-code', 'codex', 'gemini-cli'] as const;
type PluginClient = (typeof CLIENTS)[number];

describe('R-PLUG-01 the plugins', () => {
  test('contain the files that docs/agents.md names, and no others', () => {
    const table = readFileSync('docs/agents.md', 'utf8').split('\n');
    const rows = table.flatMap((line) => {
      const [, path, ...marks] = /^\| `([^`]+)` \| (yes|) ?\| (yes|) ?\| (yes|) ?\|/.exec(line) ?? [];
      return path === undefined ? [] : CLIENTS.filter((_, at) => marks[at] === 'yes').map((client) => `${client}/${path}`);
    });
    const shared = ['.agents/plugins/marketplace.json', '.claude-plugin/marketplace.json', 'README.md'];
    expect(Object.keys(files).toSorted()).toEqual([...rows, ...shared].toSorted());
  });

  test('come from one source each, and are the same in every build', async () => {
    expect(await plugins()).toEqual(files);
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    for (const client of CLIENTS) {
      const source = (path: string): string => readFileSync(`integrations/${path}`, 'utf8');
      expect(textOf(`${client}/server/helmdeck-memory-mcp.mjs`)).toBe(source('stdio-bridge/helmdeck-memory-mcp.mjs'));
      expect(textOf(`${client}/hooks/helmdeck-memory-hook.mjs`)).toBe(source('hook/helmdeck-memory-hook.mjs'));
      const skill = source('plugins/SKILL.md').replace('{client}', client);
      expect(textOf(`${client}/skills/shared-memory/SKILL.md`)).toBe(skill);
      expect(skill).not.toContain('{');
    }
    for (const path of [
      'claude-code/.claude-plugin/plugin.json',
      'codex/.codex-plugin/plugin.json',
      'gemini-cli/gemini-extension.json',
    ])
      expect(JSON.parse(textOf(path))).toMatchObject({ name: 'helmdeck-memory', version });
  });

  test('contain no token, no address of a memory, and no path of this machine', () => {
    const secret =
      /eyJ[\w-]+\.[\w-]+\.[\w-]+|\bBearer \w|https?:\/\/(?!127\.0\.0\.1|\[::1\]|json|nodejs)\w+\.\w|\/(?:home|Users|tmp|root)\//;
    for (const [path, content] of Object.entries(files)) {
      if (typeof content !== 'string') continue;
      expect(`${path}: ${secret.exec(content)?.[0] ?? 'nothing'}`).toBe(`${path}: nothing`);
    }
  });

  test('come with links that add the bridge to Cursor and Visual Studio Code', () => {
    const [, cursor = ''] = /cursor:\/\/\S+&config=(\S+)/.exec(textOf('README.md')) ?? [];
    const [, vscode = ''] = /vscode:mcp\/install\?(\S+)/.exec(textOf('README.md')) ?? [];
    const entries = [Buffer.from(decodeURIComponent(cursor), 'base64').toString(), decodeURIComponent(vscode)];
    const [first, second] = entries.map((text) => JSON.parse(text) as { command: string; args: string[]; env: object });
    for (const [entry, client] of [
      [first, 'cursor'],
      [second, 'vscode'],
    ] as const) {
      expect(entry).toMatchObject({ command: 'helmdeck-memory', args: ['mcp', '--client', client] });
      expect(startsBridgeFor({ command: '', args: [], ...entry, env: {} }, client)).toBe(true);
    }
  });
});

/** Writes a plugin to a folder whose name needs quoting. */
function unpacked(client: PluginClient): string {
  const folder = join(tempFolder(), "a plugin's folder");
  for (const [path, content] of Object.entries(files)) {
    if (!path.startsWith(`${client}/`)) continue;
    const target = join(folder, path.slice(client.length + 1));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, content);
  }
  return folder;
}

const PLACEHOLDER = /\$\{(?:CLAUDE_PLUGIN_ROOT|PLUGIN_ROOT|extensionPath)\}/g;

interface ServerEntry {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
}

/** Starts the MCP server of an unpacked plugin as its client does. */
async function connectServer(client: PluginClient, folder: string, data: string): Promise<Client> {
  const manifest = client === 'gemini-cli' ? 'gemini-extension.json' : '.mcp.json';
  const { mcpServers } = JSON.parse(readFileSync(join(folder, manifest), 'utf8')) as { mcpServers: { helmdeck: ServerEntry } };
  const { command, args, cwd } = mcpServers.helmdeck;
  expect(command).toBe('node');
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: args.map((text) => text.replaceAll(PLACEHOLDER, () => folder)),
    env: { HELMDECK_DATA_DIR: data },
    stderr: 'inherit',
    ...(cwd !== undefined && { cwd: join(folder, cwd) }),
  });
  const agent = new Client({ name: client, version: '1' });
  await agent.connect(transport);
  onTestFinished(() => agent.close());
  return agent;
}

interface Handler {
  readonly command: string;
}

/** The commands of a plugin's hooks by their event. */
function hooksOf(client: PluginClient, folder: string): Record<string, string> {
  const { hooks } = JSON.parse(readFileSync(join(folder, 'hooks/hooks.json'), 'utf8')) as {
    hooks: Record<string, [{ hooks: [Handler] }]>;
  };
  const spelled = (text: string): string => (client === 'gemini-cli' ? text.replaceAll(PLACEHOLDER, () => folder) : text);
  return Object.fromEntries(Object.entries(hooks).map(([event, [group]]) => [event, spelled(group.hooks[0].command)]));
}

/** Runs a hook's command in a shell, as the clients do. Returns its output. */
function runHook(command: string, { folder, data, input }: { folder: string; data: string; input: object }): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const env = {
    PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
    HELMDECK_DATA_DIR: data,
    CLAUDE_PLUGIN_ROOT: folder,
    PLUGIN_ROOT: folder,
  };
  const child = execFile('/bin/sh', ['-c', command], { env }, (error, stdout, stderr) => {
    expect([error, stderr]).toEqual([null, '']);
    resolve(stdout);
  });
  child.stdin?.end(JSON.stringify(input));
  return promise;
}

/** A memory with one fact of another agent, and the tokens that `connect` creates. */
async function connectedMemory(client: PluginClient): Promise<ServedMemory> {
  const memory = await serve();
  writePrivate(
    join(memory.folder, 'clients', `${client}.token`),
    await memory.token('me', ['memory:read', 'memory:write'], client),
  );
  writePrivate(join(memory.folder, 'clients', `${client}.hook.token`), await memory.token('me', ['memory:brief'], client));
  const fact = { key: 'preferences/editor', value: 'Helix is the editor, never Vim', category: 'preferences' };
  await memory.perform(aCaller({ subject: 'me', client: 'another' }), 'remember', fact);
  return memory;
}

describe.skipIf(process.platform === 'win32').each(CLIENTS)('R-PLUG-02 the plugin of %s', (client) => {
  test('needs nothing but the tokens that connecting creates', async () => {
    const { folder: data } = await connectedMemory(client);
    const folder = unpacked(client);
    const agent = await connectServer(client, folder, data);
    const found = await agent.callTool({ name: 'memory_search', arguments: { query: 'which editor' } });
    expect(JSON.stringify(toolResultOf(found))).toContain('Helix');
    const { SessionStart = '', ...prompts } = hooksOf(client, folder);
    const [[event, command] = ['', '']] = Object.entries(prompts);
    const heard = async (run: string, input: object): Promise<void> => {
      // A hook on a busy machine gives up. A new session gets the whole brief again.
      const ask = () => runHook(run, { folder, data, input: { ...input, session_id: randomUUID(), cwd: folder } });
      await expect.poll(ask).toMatch(/"additionalContext":".*Helix is the editor, never Vim/);
    };
    await heard(SessionStart, { hook_event_name: 'SessionStart', source: 'startup' });
    await heard(command, { hook_event_name: event, prompt: 'Which editor do I prefer?' });
  });

  test.each([
    { at: 'the start of a session', index: 0, more: { source: 'startup' } },
    { at: 'a prompt', index: 1, more: { prompt: 'Which editor do I prefer?' } },
    { at: 'a lost context', index: 0, more: { source: client === 'gemini-cli' ? 'resume' : 'compact' } },
  ])('and the hooks of a connection: one of them speaks at $at (R-PLUG-05)', async ({ index, more }) => {
    const { folder: data } = await connectedMemory(client);
    const folder = unpacked(client);
    const [[event, command] = ['', '']] = Object.entries(hooksOf(client, folder)).slice(index);
    copyFileSync(join(folder, 'hooks/helmdeck-memory-hook.mjs'), join(data, 'helmdeck-memory-hook.mjs'));
    const connected = `node '${join(data, 'helmdeck-memory-hook.mjs')}' ${client} ${index === 0 ? 'session' : 'prompt'}`;
    const heard = async (): Promise<number> => {
      const input = { hook_event_name: event, session_id: randomUUID(), cwd: folder, ...more };
      const outputs = await Promise.all([command, connected].map((run) => runHook(run, { folder, data, input })));
      return outputs.filter((output) => output !== '').length;
    };
    // On a busy machine, both can give up, but they never both speak.
    let spoken = 0;
    for (let attempt = 0; attempt < 20 && spoken === 0; attempt += 1) spoken = await heard();
    expect(spoken).toBe(1);
  });

  test('says nothing without the tokens, and its tools say in one line what to do', async () => {
    const { folder: data } = await serve();
    const folder = unpacked(client);
    for (const [event, command] of Object.entries(hooksOf(client, folder))) {
      const input = { session_id: 's', cwd: folder, hook_event_name: event, prompt: 'Which editor?' };
      expect(await runHook(command, { folder, data, input })).toBe('');
    }
    const agent = await connectServer(client, folder, data);
    const answer = await agent.callTool({ name: 'memory_recall', arguments: { key: 'x' } });
    expect(JSON.stringify(answer)).toMatch(new RegExp(`helmdeck-memory connect ${client}|connect ${client}\\\\.`));
  });
});
