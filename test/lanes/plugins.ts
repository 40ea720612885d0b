import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { plugins } from '../../build/tasks/plugins.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import { TokenRegistry } from '../../src/core/access/token-registry.ts';
import { createCore } from '../../src/core/operations/create-core.ts';
import { Finder } from '../../src/core/search/finder.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { startListener } from '../../src/listeners/listener.ts';
import { CONNECTORS } from '../../src/main/connect/clients.ts';
import { Connections } from '../../src/main/connect/connections.ts';
import { localMachine } from '../../src/main/connect/programs.ts';
import { Checks } from './faults/checks.ts';
import { RecordingModel } from './recording-model.ts';

const PROGRAMS = resolve(import.meta.dirname, 'connect/node_modules/.bin');
const PATIENCE_MS = 180_000;
const FACT = { key: 'preferences/editor', value: 'Helix is the editor, never Vim', category: 'preferences' };
const QUESTION = 'Say hello.';

/** A real client that installs plugins. */
interface PluginClient {
  readonly client: string;
  readonly program: string;
  /** Commands that validate the built plugins and must succeed. */
  readonly validates: readonly (readonly string[])[];
  readonly installs: readonly (readonly string[])[];
  /** Writes the client's settings for the model. */
  readonly prepare?: (home: string, model: string) => void;
  readonly asks: readonly string[];
  readonly environment: (model: string) => Record<string, string>;
  readonly uninstalls: readonly string[];
}

const checks = new Checks();
const { check } = checks;

/** Has the plugins, in a folder whose name contains a blank. */
const built = join(mkdtempSync(join(tmpdir(), 'helmdeck-plugins-')), 'the plugins');
for (const [path, content] of Object.entries(await plugins())) {
  mkdirSync(dirname(join(built, path)), { recursive: true });
  writeFileSync(join(built, path), content);
}

function settings(home: string, file: string, text: string): void {
  mkdirSync(dirname(join(home, file)), { recursive: true });
  writeFileSync(join(home, file), text);
}

const CLIENTS: readonly PluginClient[] = [
  {
    client: 'claude-code',
    program: 'claude',
    validates: [
      ['plugin', 'validate', '--strict', built],
      ['plugin', 'validate', '--strict', '--profile', 'directory', join(built, 'claude-code')],
    ],
    installs: [
      ['plugin', 'marketplace', 'add', built],
      ['plugin', 'install', 'helmdeck-memory@helmdeck'],
    ],
    asks: ['-p', QUESTION],
    environment: (model) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
    uninstalls: ['plugin', 'uninstall', 'helmdeck-memory@helmdeck'],
  },
  {
    client: 'codex',
    program: 'codex',
    // Codex has no command that validates a plugin.
    validates: [],
    installs: [
      ['plugin', 'marketplace', 'add', built],
      ['plugin', 'add', 'helmdeck-memory@helmdeck'],
    ],
    prepare(home, model) {
      const provider = `[model_providers.recording]\nname = "recording"\nbase_url = "${model}/v1"\nwire_api = "responses"\n`;
      settings(
        home,
        '.codex/config.toml',
        `model = "recording"\nmodel_provider = "recording"\napproval_policy = "never"\n${provider}`,
      );
    },
    // Codex asks its user to review hooks on its screen, which this lane does not drive.
    asks: ['exec', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', QUESTION],
    environment: () => ({}),
    uninstalls: ['plugin', 'remove', 'helmdeck-memory@helmdeck'],
  },
  {
    client: 'gemini-cli',
    program: 'gemini',
    validates: [['extensions', 'validate', join(built, 'gemini-cli')]],
    installs: [['extensions', 'install', join(built, 'gemini-cli'), '--consent']],
    prepare(home) {
      const security = { auth: { selectedType: 'gemini-api-key' } };
      settings(home, '.gemini/settings.json', JSON.stringify({ security, privacy: { usageStatisticsEnabled: false } }));
    },
    asks: ['-p', QUESTION, '-m', 'gemini-2.5-pro'],
    environment: (model) => ({
      GEMINI_API_KEY: 'none',
      GOOGLE_GEMINI_BASE_URL: model,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
    uninstalls: ['extensions', 'uninstall', 'helmdeck-memory'],
  },
];

const folder = mkdtempSync(join(tmpdir(), 'helmdeck-plugins-data-'));
const another: Caller = { subject: 'me', client: 'another', transport: 'lane', token: '', scopes: new Set(['admin']) };
const store = new RamStore(systemClock);
const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
const { perform } = createCore({ store, tokens, finder: new Finder(store), clock: systemClock });
const listener = await startListener({
  perform,
  tokens,
  onChange: (hear) => store.onChange(hear),
  folder,
  address: '127.0.0.1:0',
  version: 'lane',
  clock: systemClock,
});

await checks.through(
  async () => {
    await perform(another, 'remember', FACT);
    await using model = await RecordingModel.open();
    for (const one of CLIENTS) await tryPlugin(one, model);
  },
  async () => {
    await listener.close();
    for (const path of [dirname(built), folder]) rmSync(path, { recursive: true, force: true });
  },
);

async function tryPlugin(one: PluginClient, model: RecordingModel): Promise<void> {
  const { client, program, validates, installs, prepare, asks, uninstalls } = one;
  const home = mkdtempSync(join(tmpdir(), 'helmdeck-home-'));
  const environment = {
    PATH: [PROGRAMS, dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
    HOME: home,
    HELMDECK_DATA_DIR: folder,
    ...one.environment(model.url),
  };
  const run = (args: readonly string[]) => runClient(join(PROGRAMS, program), args, { home, environment });
  const ask = async (): Promise<{ readonly times: number; readonly said: unknown }> => {
    model.begin([]);
    const { output } = await run(asks);
    const [first = ''] = model.requests;
    return { times: first.split(FACT.value).length - 1, said: [output, model.log, first.slice(0, 20_000)] };
  };
  try {
    prepare?.(home, model.url);
    for (const args of validates) {
      const { code, output } = await run(args);
      check(`${client}: its own program accepts the plugin (${args.slice(0, 3).join(' ')})`, code === 0, output);
    }
    for (const args of installs) {
      const { code, output } = await run(args);
      check(`${client}: its own program installs the plugin (${args.slice(0, 3).join(' ')})`, code === 0, output);
    }
    const silent = await ask();
    check(`${client}: without tokens, the plugin says nothing`, silent.times === 0, silent.said);
    const host = localMachine({ environment, platform: process.platform, home: () => home });
    const connections = new Connections({ connectors: CONNECTORS, machine: host, tokens, folder, now: () => store.now() });
    const plan = await connections.plan({ client, subject: 'me' });
    check(`${client}: connecting changes no file while the plugin is installed`, plan.files.length === 0, plan);
    const done = await connections.connect({ client, subject: 'me', basis: plan.basis });
    check(`${client}: the connection works`, done.verified.works, done);
    let told = await ask();
    // A hook gives up on a busy machine. A new session gets the whole brief again.
    for (let attempt = 0; attempt < 10 && told.times === 0; attempt += 1) told = await ask();
    check(`${client}: the fact is in the first request of a new session, once`, told.times === 1, told.said);
    await connections.disconnect({ client });
    const after = await ask();
    check(`${client}: after disconnecting, the plugin says nothing`, after.times === 0, after.said);
    const { code, output } = await run(uninstalls);
    check(`${client}: its own program removes the plugin`, code === 0, output);
  } finally {
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

interface Run {
  readonly home: string;
  readonly environment: Record<string, string>;
}

/** Runs a client in a temporary home folder, and confirms its questions. */
async function runClient(
  path: string,
  args: readonly string[],
  { home, environment }: Run,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(path, args, { cwd: home, env: environment, stdio: ['pipe', 'pipe', 'pipe'], timeout: PATIENCE_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  // Gemini CLI asks whether to trust the folder of the extension. The others read nothing.
  child.stdin.on('error', () => undefined).end('y\n');
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output: output.slice(-3000) };
}
