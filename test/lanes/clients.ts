import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { TokenRegistry } from '../../src/core/access/token-registry.ts';
import { createCore } from '../../src/core/operations/create-core.ts';
import { Finder } from '../../src/core/search/finder.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { startListener } from '../../src/listeners/listener.ts';
import { registerInMcporter } from '../../src/main/connect/openclaw/mcporter.ts';
import { bundle } from './clients-bundle.ts';
import { conformance, TokenProxy } from './clients-conformance.ts';
import { models } from './clients-models.ts';
import { Checks } from './faults/checks.ts';
import { timed } from './faults/timed.ts';

const PACKAGES = resolve(import.meta.dirname, 'clients/node_modules');
const BRIDGE = resolve(import.meta.dirname, '../../integrations/stdio-bridge/helmdeck-memory-mcp.mjs');
const MCP = '/api/v1/mcp';
const PATIENCE_MS = 180_000;

interface Ran {
  readonly code: number;
  readonly out: string;
}

const checks = new Checks();
const { check } = checks;

/** Runs a client in an empty home folder, so that it reads no settings of the developer. */
function run(home: string, program: string, ...args: string[]): Promise<Ran> {
  const { promise, resolve: done } = Promise.withResolvers<Ran>();
  const env = { PATH: process.env['PATH'], HOME: home, XDG_CONFIG_HOME: join(home, 'config') };
  const options = { env, cwd: home, timeout: PATIENCE_MS, maxBuffer: 2 ** 24 };
  execFile(process.execPath, [join(PACKAGES, program), ...args], options, (error, stdout, stderr) =>
    done({ code: error ? Number(error.code ?? 1) : 0, out: stdout + stderr }),
  );
  return promise;
}

const home = mkdtempSync(join(tmpdir(), 'helmdeck-clients-'));
const store = new RamStore(systemClock);
const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
const finder = new Finder(store);
const { perform } = createCore({ store, tokens, finder, clock: systemClock });
const proxy = await TokenProxy.open();
const listener = await startListener({
  perform,
  tokens,
  onChange: (hear) => store.onChange(hear),
  folder: home,
  address: '127.0.0.1:0',
  // The proxy's host name must be allowed.
  allowedHosts: [proxy.host],
  version: 'lane',
  clock: systemClock,
});
const scopes = ['memory:read' as const, 'memory:write' as const];
const { token } = await tokens.mint({ name: 'lane', client: 'lane', subject: 'me', scopes, days: 1 });
proxy.forwardTo(listener.url, token);

await checks.through(
  async () => {
    await inspector();
    await mcporter();
    await conformance(`http://${proxy.host}${MCP}`, { run: (program, ...args) => run(home, program, ...args), check });
    await bundle(check);
    const stored = 'The needle lies under the oak.';
    await perform(await tokens.verify(token, 'lane'), 'remember', { key: 'models', value: stored });
    await models({ url: listener.url + MCP, token }, stored, checks);
  },
  async () => {
    proxy[Symbol.dispose]();
    await listener.close();
    rmSync(home, { recursive: true });
  },
);

async function inspector(): Promise<void> {
  const cli = '@modelcontextprotocol/inspector/clients/launcher/build/index.js';
  const header = `Authorization: Bearer ${token}`;
  for (const [transport, path] of [
    ['http', MCP],
    ['sse', `${MCP}/sse`],
  ] as const) {
    const ask = (...args: string[]) =>
      run(home, cli, '--cli', listener.url + path, '--transport', transport, '--header', header, ...args);
    const listed = await ask('--method', 'tools/list');
    check(`Inspector lists the tools over ${transport}`, listed.code === 0 && listed.out.includes('memory_store'), listed.out);
    const fact = ['--tool-arg', 'key=inspector', '--tool-arg', `value=over ${transport}`];
    const stored = await ask('--method', 'tools/call', '--tool-name', 'memory_store', ...fact);
    check(`Inspector stores a fact over ${transport}`, stored.code === 0 && stored.out.includes('expires_at'), stored.out);
  }
}

async function mcporter(): Promise<void> {
  const headers = { Authorization: `Bearer ${token}` };
  const at = (path: string, more = {}) => ({ baseUrl: listener.url + path, headers, ...more });
  const mcpServers = {
    http: at(MCP),
    sse: at(`${MCP}/sse`),
    qmd: at(`${MCP}/qmd/sse`),
    stranger: { baseUrl: listener.url + MCP },
  };
  mkdirSync(join(home, 'config', 'mcporter'), { recursive: true });
  const path = join(home, 'config', 'mcporter', 'mcporter.json');
  writeFileSync(path, JSON.stringify({ mcpServers, imports: [] }));
  registerSearch(path);
  const ask = (...args: string[]) => run(home, 'mcporter/dist/cli.js', ...args);

  for (const server of ['http', 'sse', 'qmd']) {
    const listed = await ask('list', server, '--json', '--exit-code');
    check(`mcporter lists ${server}`, listed.code === 0 && listed.out.includes('"status": "ok"'), listed.out);
  }
  for (const server of ['http', 'sse']) {
    const fact = JSON.stringify({ key: `mcporter/${server}`, value: 'Helix is the editor' });
    const stored = await ask('call', `${server}.memory_store`, '--args', fact, '--output', 'json');
    check(`mcporter stores over ${server}`, stored.out.includes('"status": "created"'), stored.out);
  }
  // The request that OpenClaw makes mcporter send: its own collection names, and options that QMD here ignores.
  const question = { searches: [{ type: 'lex', query: 'editor' }], limit: 4, collections: ['memory-root-main'], rerank: false };
  const found = await ask('call', 'qmd.query', '--args', JSON.stringify(question), '--output', 'json');
  check('mcporter finds it through QMD', found.out.includes('user_facts/mcporter/http'), found.out);
  const bridged = await ask('call', 'helmdeck.query', '--args', JSON.stringify(question), '--output', 'json');
  check(
    'mcporter finds the fact through the entry that connecting OpenClaw writes',
    bridged.out.includes('user_facts/mcporter/http'),
    bridged.out,
  );
  const refused = await ask('call', 'http.memory_recall', 'key=nothing', '--output', 'json');
  check(
    'mcporter distinguishes a failed tool call from a successful one',
    refused.code === 1 && refused.out.includes('not_found'),
    refused.out,
  );
  const { ms: usual } = await timed(() => ask('list', 'http', '--json', '--exit-code'));
  const { result: stranger, ms } = await timed(() => ask('list', 'stranger', '--json', '--exit-code'));
  check('mcporter fails without a token', stranger.code !== 0, stranger.out);
  check('mcporter without a token fails quickly compared with a list', ms < 10_000 + 3 * usual, [ms, usual]);
}

/** Writes the same entry as connecting OpenClaw: without address and token. */
function registerSearch(path: string): void {
  mkdirSync(join(home, 'clients'), { mode: 0o700 });
  writeFileSync(join(home, 'clients', 'lane.token'), token, { mode: 0o600 });
  const environment = { XDG_CONFIG_HOME: join(home, 'config') };
  const entry = { command: process.execPath, args: [BRIDGE, '--client', 'lane'], env: { HELMDECK_DATA_DIR: home } };
  const step = registerInMcporter({ environment, platform: process.platform, home: () => home }, entry);
  check('the entry is written to the file that mcporter reads', step.path === path, step.path);
  writeFileSync(path, step.edit(readFileSync(path, 'utf8')) ?? '');
}
