import { fork } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bundle } from '../../build/tasks/bundle.ts';
import { dataFolder } from '../../integrations/stdio-bridge/helmdeck-memory-mcp.mjs';
import { toolResultOf } from '../listeners/mcp/mcp-client.ts';
import { serve, EVENTUALLY } from '../support/listener.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { INITIALIZE_PARAMS, writePrivate } from './bridge.ts';
import { unzip } from './unzip.ts';

const files = unzip(bundle());
const manifest = JSON.parse(files['manifest.json']?.toString() ?? '') as {
  version: string;
  icon: string;
  tools: { name: string }[];
  server: { entry_point: string; mcp_config: { command: string; args: string[]; env: Record<string, string> } };
  user_config: Record<string, { required: boolean; sensitive?: boolean }>;
};
const aFact = { name: 'memory_store', arguments: { key: 'preferences/editor', value: 'Helix' } };

function installed(): string {
  const folder = join(tempFolder(), 'a folder with blanks');
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), bytes);
  }
  return folder;
}

/** The command in the manifest. Settings without a value remain placeholders, as with the official resolver. */
function launch(folder: string, filled: Record<string, string> = {}) {
  const spelled = (text: string): string =>
    text
      .replaceAll('${__dirname}', folder)
      .replaceAll(/\$\{user_config\.(\w+)\}/g, (all: string, name: string) => filled[name] ?? all);
  const { args, env } = manifest.server.mcp_config;
  return {
    args: args.map(spelled),
    env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, spelled(value)])),
  };
}

async function connected(home: string, filled?: Record<string, string>): Promise<Client> {
  const client = new Client({ name: 'claude-ai', version: '0.1.0' });
  const { args, env } = launch(installed(), filled);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args,
    env: { ...env, ...homeOf(home) },
    stderr: 'inherit',
  });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return client;
}

const homeOf = (home: string): Record<string, string> => ({ HOME: home, USERPROFILE: home, APPDATA: join(home, 'AppData') });
/** The program's default data folder. */
const usualFolder = (home: string): string => dataFolder(homeOf(home), process.platform, () => home);

async function running() {
  const home = tempFolder();
  const folder = usualFolder(home);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const served = await serve({ folder });
  const letIn = async (): Promise<void> => {
    const token = await served.token('me', ['memory:read', 'memory:write'], 'claude-desktop');
    writePrivate(join(folder, 'clients', 'claude-desktop.token'), token);
  };
  return { home, served, letIn };
}

describe('the bundle (R-BUNDLE-01)', () => {
  test('contains the bridge of this program, an icon, and no other program', () => {
    expect(Object.keys(files)).toEqual(['manifest.json', 'icon.png', 'server/helmdeck-memory-mcp.mjs', 'LICENSE']);
    expect(files[manifest.server.entry_point]).toEqual(readFileSync('integrations/stdio-bridge/helmdeck-memory-mcp.mjs'));
    expect(files[manifest.icon]?.subarray(1, 4).toString()).toBe('PNG');
    expect(bundle().equals(bundle())).toBe(true);
  });

  test('has the version of the program, and no required settings', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(manifest.version).toBe(version);
    expect(Object.values(manifest.user_config).map(({ required }) => required)).toEqual([false, false]);
    expect(manifest.user_config['token']?.sensitive).toBe(true);
  });

  test('lists the tools of the program', async () => {
    const { home, letIn } = await running();
    await letIn();
    const { tools } = await (await connected(home)).listTools();
    expect(manifest.tools.map(({ name }) => name).toSorted()).toEqual(tools.map(({ name }) => name).toSorted());
  });
});

describe('the server of the bundle', () => {
  test('stores, recalls and signs a fact without settings (R-BUNDLE-02)', async () => {
    const { home, letIn } = await running();
    await letIn();
    const client = await connected(home);
    expect(toolResultOf(await client.callTool(aFact))).toMatchObject({ status: 'created' });
    const recalled = toolResultOf(await client.callTool({ name: 'memory_recall', arguments: { key: 'preferences/editor' } }));
    expect(recalled).toMatchObject({ value: 'Helix', client: 'claude-desktop' });
  });

  test('prefers its settings to found values, and ignores empty settings (R-BUNDLE-02)', async () => {
    const { home, served, letIn } = await running();
    await letIn();
    const other = await served.token('me', ['memory:read', 'memory:write'], 'another');
    const client = await connected(home, { token: other, data_folder: '' });
    expect(toolResultOf(await client.callTool(aFact))).toMatchObject({ status: 'created' });
    const recalled = toolResultOf(await client.callTool({ name: 'memory_recall', arguments: { key: 'preferences/editor' } }));
    expect(recalled).toMatchObject({ client: 'another' });
    const elsewhere = await connected(tempFolder(), { token: '', data_folder: served.folder });
    expect(toolResultOf(await elsewhere.callTool(aFact))).toMatchObject({ status: 'unchanged' });
  });

  test('explains how to get a token, and works as soon as it has one (R-BUNDLE-03)', async () => {
    const { home, letIn } = await running();
    const client = await connected(home);
    expect(toolResultOf(await client.callTool(aFact))).toEqual({
      error: 'missing_bearer',
      message: expect.stringMatching(/Connect page.*helmdeck-memory connect claude-desktop/),
    });
    await letIn();
    expect(toolResultOf(await client.callTool(aFact))).toMatchObject({ status: 'created' });
  });

  test('starts while the program is stopped, and says what to do (R-BUNDLE-03)', async () => {
    const client = await connected(tempFolder());
    expect((await client.listTools()).tools).toHaveLength(manifest.tools.length);
    expect(toolResultOf(await client.callTool(aFact))).toMatchObject({
      message: expect.stringMatching(/is not running.*start Helmdeck Memory/),
    });
  });

  test('also runs if it is imported, with messages instead of stdin and stdout (R-BUNDLE-02)', async () => {
    const { home, letIn } = await running();
    await letIn();
    const { args, env } = launch(installed());
    const child = fork('test/integrations/hosted.mjs', args, {
      env: { ...env, ...homeOf(home) },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const heard: { id?: number; result?: unknown }[] = [];
    child.on('message', (line) => void heard.push(JSON.parse(line as string) as { id?: number }));
    child.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE_PARAMS }));
    child.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: aFact }));
    await expect.poll(() => heard.find(({ id }) => id === 2), EVENTUALLY).toBeDefined();
    expect(toolResultOf(heard.find(({ id }) => id === 2)?.result)).toMatchObject({ status: 'created' });
  });
});
