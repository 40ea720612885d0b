import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { BUNDLE } from '../../build/tasks/bundle.ts';
import type { Checks } from './faults/checks.ts';

/** The official tools of the bundle format. Claude Desktop loads bundles with them too. */
const OFFICIAL = resolve(import.meta.dirname, 'clients/node_modules/@anthropic-ai/mcpb/dist');
const PROGRAM = resolve(import.meta.dirname, '../../bin/helmdeck-memory.js');

interface Resolver {
  readonly getMcpConfigForManifest: (options: {
    manifest: unknown;
    extensionPath: string;
    systemDirs: Record<string, string>;
    userConfig: Record<string, string>;
    pathSeparator: string;
  }) => Promise<{ command: string; args?: string[]; env?: Record<string, string> } | undefined>;
}

/** Starts from the bundle file and stores a fact in the real program, using only the bundle's own manifest. */
export async function bundle(check: Checks['check']): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'helmdeck-bundle-'));
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, HELMDECK_ADDR: '127.0.0.1:0', HELMDECK_MEANING: 'off' };
  const mcpb = (...args: string[]): { out: string; went: boolean } => {
    try {
      const out = execFileSync(process.execPath, [join(OFFICIAL, 'cli/cli.js'), ...args], { env, encoding: 'utf8' });
      return { out, went: true };
    } catch (error) {
      return { out: String(error), went: false };
    }
  };
  execFileSync(process.execPath, ['build/tasks/bundle.ts'], { stdio: 'ignore' });
  const unpacked = join(home, 'Claude Extensions', 'helmdeck');
  const did = mcpb('unpack', BUNDLE, unpacked);
  check('mcpb unpacks the bundle', did.went && did.out.includes('unpacked successfully'), did.out);
  const valid = mcpb('validate', unpacked);
  check(
    'mcpb validates the bundle and its icon',
    valid.went && /validation passes[^]*Icon validation passed/.test(valid.out),
    valid.out,
  );

  const { getMcpConfigForManifest } = (await import(pathToFileURL(join(OFFICIAL, 'index.js')).href)) as Resolver;
  const manifest: unknown = JSON.parse(readFileSync(join(unpacked, 'manifest.json'), 'utf8'));
  const opened = async (userConfig: Record<string, string>): Promise<Client> => {
    const options = { manifest, extensionPath: unpacked, systemDirs: { HOME: home }, userConfig, pathSeparator: sep };
    const config = await getMcpConfigForManifest(options);
    if (!config) throw new Error('The resolver found no command to start.');
    const client = new Client({ name: 'claude-ai', version: '0.1.0' });
    await client.connect(new StdioClientTransport({ ...config, env: { PATH: env.PATH, HOME: home, ...config.env } }));
    return client;
  };
  const call = async (client: Client, name: string, given: object): Promise<string> =>
    JSON.stringify(await client.callTool({ name, arguments: { ...given } }));

  const client = await opened({});
  const closed = await call(client, 'memory_recall', { key: 'bundle' });
  check('the bridge reports that the program is not running', closed.includes('is not running'), closed);
  const program = spawn(process.execPath, [PROGRAM, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const text of program.stdout.setEncoding('utf8')) if (String(text).includes('is running')) break;
  const stranger = await call(client, 'memory_recall', { key: 'bundle' });
  check('the bridge says how to connect the client', stranger.includes('helmdeck-memory connect claude-desktop'), stranger);
  execFileSync(process.execPath, [PROGRAM, 'token', 'mint', 'claude-desktop', '--keep'], { env, stdio: 'ignore' });
  const stored = await call(client, 'memory_store', { key: 'bundle', value: 'came through it' });
  check('the bundle stores a fact with empty settings', stored.includes('created'), stored);
  const other = await opened({ data_folder: '', token: '' });
  const recalled = await call(other, 'memory_recall', { key: 'bundle' });
  check(
    'the bundle recalls the fact with its author',
    recalled.includes('came through it') && recalled.includes('claude-desktop'),
    recalled,
  );

  await client.close();
  await other.close();
  program.kill();
  await once(program, 'close');
  rmSync(home, { recursive: true });
}
