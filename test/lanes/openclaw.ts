import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Failure } from '../../src/contract/failure.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import { TokenRegistry } from '../../src/core/access/token-registry.ts';
import { MeaningIndex } from '../../src/core/meaning/meaning-index.ts';
import { createCore } from '../../src/core/operations/create-core.ts';
import { Finder } from '../../src/core/search/finder.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { type Listener, startListener } from '../../src/listeners/listener.ts';
import { readConfig } from '../../src/main/config/config.ts';
import { Connections } from '../../src/main/connect/connections.ts';
import type { ClientEntry } from '../../src/main/connect/connector.ts';
import { json5 } from '../../src/main/connect/json-text.ts';
import { openClaw } from '../../src/main/connect/openclaw/openclaw.ts';
import { localMachine } from '../../src/main/connect/programs.ts';
import type { Finding } from '../../src/main/doctor/finding.ts';
import { examineOpenClaw } from '../../src/main/doctor/openclaw.ts';
import { ChosenModel } from '../../src/main/meaning/chosen-model.ts';
import { launchWithNode } from '../../src/main/meaning/launch-model.ts';
import { LazySidecar } from '../../src/main/sidecar/lazy-sidecar.ts';
import { Checks } from './faults/checks.ts';
import { timed } from './faults/timed.ts';
import { briefLane, modelSettings } from './openclaw-brief.ts';
import { RecordingModel } from './recording-model.ts';

const PROGRAMS = resolve(import.meta.dirname, 'openclaw/node_modules/.bin');
const SECRET = 'a-secret-of-this-gateway';
const CLIENT = { client: 'openclaw', subject: 'me' };
/** A busy machine starts a gateway in half a minute, a slow one in 90 seconds. */
const PATIENCE_MS = 240_000;

const NOTES = '# Memory\n\n- The espresso machine in the office is a Rancilio.\n- I prefer React over Vue for small projects.\n';
const FACT = { key: 'preferences/frontend', value: 'React for Konflux projects, said to another agent' };
const OURS = `helmdeck/user_facts/${FACT.key}`;
const QUESTION = { query: 'React projects' };

const checks = new Checks();
const { check } = checks;

/* A temporary home folder, so that OpenClaw reads no settings of the developer. */

const home = mkdtempSync(join(tmpdir(), 'helmdeck-openclaw-'));
const folder = join(home, 'data');
const workspace = join(home, 'workspace');
const config = join(home, '.openclaw/openclaw.json');
const port = await freePort();
const model = await RecordingModel.open();
const { models, model: chosen } = modelSettings(model.url);
for (const made of [folder, workspace, dirname(config)]) mkdirSync(made, { mode: 0o700 });
writeFileSync(join(workspace, 'MEMORY.md'), NOTES);
writeFileSync(
  config,
  `{
  // A comment of the owner.
  gateway: { mode: 'local', bind: "loopback", port: 0x${port.toString(16)}, auth: { mode: 'token', token: '${SECRET}' } },
  "agents": { "defaults": { "workspace": ${JSON.stringify(workspace)}, "model": ${JSON.stringify(chosen)} } },
  "models": ${JSON.stringify(models)},
  "memory": { "search": { "provider": "none" } },
  "plugins": { "allow": ["memory-core"] },
  "logging": { "file": ${JSON.stringify(join(home, 'log'))} },
}
`,
);
const environment = {
  PATH: [PROGRAMS, dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
  HOME: home,
  OPENCLAW_STATE_DIR: dirname(config),
  OPENCLAW_NO_RESPAWN: '1',
};
const host = localMachine({ environment, platform: process.platform, home: () => home });

const store = new RamStore(systemClock);
const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
const sidecar = new LazySidecar({ folder, clock: systemClock, settings: readConfig(host).ollama, machine: host });
const meaning = new ChosenModel({ clock: systemClock, sidecar, launch: launchWithNode, choice: 'bundled' });
const vectors = new MeaningIndex(store, meaning);
vectors.start();
const finder = new Finder(store, { meaning: vectors });
const { perform } = createCore({ store, tokens, finder, clock: systemClock, meaning, meaningVectors: vectors });
let locked = false;
let listener: Listener = await listen();
const connections = new Connections({ connectors: [openClaw], machine: host, tokens, folder, now: () => store.now() });

let said = '';
const gateway = spawn(join(PROGRAMS, 'openclaw'), ['gateway', 'run'], { env: environment, cwd: home, detached: true });
for (const stream of [gateway.stdout, gateway.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
await checks.through(lane, end);

async function lane(): Promise<void> {
  await ready();
  // The first search builds OpenClaw's index and prints a message.
  await invoke('memory_search', { query: 'espresso' });
  await until(async () => isSilent(await search()));
  check("its owner's notes are found before", isNotesAlone(await search()), await search());
  const before = readFileSync(config, 'utf8');

  const plan = await connections.plan(CLIENT);
  let done = await connections.connect({ ...CLIENT, basis: plan.basis });
  check('OpenClaw is connected, and the server that its agents start reaches the memory', done.verified.works, [plan, done]);
  let connected = readFileSync(config, 'utf8');
  const token = readFileSync(join(folder, 'clients/openclaw.token'), 'utf8').trim();
  check('its configuration keeps its comment, and contains neither token nor address', holdsNeither(connected, token), connected);
  await storeAsAgent();
  check(
    'a running gateway loads the plugin without a restart',
    await until(async () => paths(await search()).includes(OURS)),
    said.slice(-2000),
  );

  const { result: both, ms: usual } = await timed(search);
  check(
    'memory_search finds the fact, stored by an agent over MCP, together with the notes',
    paths(both).includes(OURS) && paths(both).includes('MEMORY.md'),
    both,
  );
  check('memory_search gives no warning', isSilent(both), both);
  const read = await invoke('memory_get', { path: OURS });
  check('memory_get reads the fact', read['text'] === FACT.value, read);
  const findings = await examineOpenClaw(host, folder);
  check('the doctor finds no problem, and its test fact is forgotten', isWell(findings) && (await factsLeft()) === 1, findings);
  const probed = await host.run(join(PROGRAMS, 'openclaw'), ['mcp', 'probe', 'helmdeck', '--json']);
  check('OpenClaw itself lists our tools', probed.code === 0 && probed.stdout.includes('memory_store'), probed);

  await briefLane({
    checks,
    program: join(PROGRAMS, 'openclaw'),
    environment,
    home,
    model,
    perform,
    connect: async (hooks) => (done = await connections.connect({ ...CLIENT, hooks })),
    ready: async () => void (await until(async () => (await vectors.progress()).done === (await vectors.progress()).total)),
  });
  await perform(await tokens.verify(tokens.ownerToken(), 'owner'), 'forget', { scope: 'all' });
  await storeAsAgent();
  connected = readFileSync(config, 'utf8');

  await listener.close();
  const { result: alone, ms } = await timed(search);
  check('program stopped: memory_search returns only the notes, without a warning', isNotesAlone(alone), alone);
  check('program stopped: memory_search takes little longer than usual', ms < 3000 + 3 * usual, [ms, usual]);

  const old = new URL(listener.url).port;
  listener = await listen();
  await tokens.revoke({ id: done.token, unrecorded: false });
  await handOver();
  check(
    'another port and another token: memory_search finds the fact again',
    paths(await search()).includes(OURS) && new URL(listener.url).port !== old,
    await search(),
  );
  check(
    'the configuration of OpenClaw did not change meanwhile',
    readFileSync(config, 'utf8') === connected,
    readFileSync(config, 'utf8'),
  );
  locked = true;
  check('locked: memory_search returns only the notes, without a warning', isNotesAlone(await search()), await search());
  locked = false;

  const taken = await connections.disconnect({ client: 'openclaw' });
  check('after disconnecting, its configuration is byte for byte as before', readFileSync(config, 'utf8') === before, [
    taken,
    readFileSync(config, 'utf8'),
  ]);
  const extensions = join(dirname(config), 'extensions');
  // OpenClaw keeps an empty folder for backups after it has installed a plugin again.
  const plugins = (): string[] => (existsSync(extensions) ? readdirSync(extensions).filter((name) => !name.startsWith('.')) : []);
  check('after disconnecting, no plugin is left', plugins().length === 0, plugins());
  check('after disconnecting, no entry for mcporter is left', !existsSync(join(home, '.mcporter')), home);
  // A plugin that is still loaded would find the fact with this token.
  await handOver();
  check('a running gateway unloads the plugin', await until(async () => isNotesAlone(await search())), await search());
  writeFileSync(config, before.replace('"allow"', '"enabled": false, "allow"'));
  const off = readFileSync(config, 'utf8');
  const why = await connections.connect(CLIENT).then(
    () => 'it was connected',
    (error: unknown) => (error instanceof Failure ? error.message : error),
  );
  check(
    'with plugins disabled, connecting is refused with a message',
    /was not connected, and its files were restored/.test(String(why)),
    why,
  );
  check('with plugins disabled, no plugin is left', plugins().length === 0, plugins());
  check(
    'with plugins disabled, its configuration is byte for byte as before',
    readFileSync(config, 'utf8') === off,
    readFileSync(config, 'utf8'),
  );
}

/** Calls the memory through the server that the configuration names, as OpenClaw's agents do. */
async function storeAsAgent(): Promise<void> {
  const { command, args, env } = json5.valueAt(readFileSync(config, 'utf8'), ['mcp', 'servers', 'helmdeck']) as ClientEntry;
  const agent = new Client({ name: 'an agent', version: '1' });
  await agent.connect(new StdioClientTransport({ command, args: [...args], env: { ...env }, stderr: 'ignore' }));
  try {
    await agent.callTool({ name: 'memory_store', arguments: FACT });
  } finally {
    await agent.close();
  }
}

/** Mints a token and stores it where the plugin reads it. */
async function handOver(): Promise<void> {
  const { token } = await tokens.mint({ name: 'OpenClaw', client: 'openclaw', subject: 'me', scopes: ['memory:read'], days: 1 });
  writeFileSync(join(folder, 'clients/openclaw.token'), `${token}\n`, { mode: 0o600 });
}

function isWell(findings: readonly Finding[]): boolean {
  return findings.length === 5 && findings.every(({ state }) => state === 'ok');
}

async function factsLeft(): Promise<number> {
  const caller = await tokens.verify(tokens.ownerToken(), 'owner');
  return (await perform(caller, 'list', {})).facts.length;
}

interface Found {
  readonly results?: readonly { readonly path: string }[];
  readonly warning?: string;
  readonly [more: string]: unknown;
}

function search(): Promise<Found> {
  return invoke('memory_search', QUESTION);
}

function paths({ results = [] }: Found): readonly string[] {
  return results.map(({ path }) => path);
}

function isSilent(found: Found): boolean {
  return !/"(warning|error|action|unavailable)":/.test(JSON.stringify(found));
}

function isNotesAlone(found: Found): boolean {
  return paths(found).join() === 'MEMORY.md' && isSilent(found);
}

function holdsNeither(text: string, token: string): boolean {
  return text.includes('// A comment of the owner.') && !text.includes(token) && !text.includes(new URL(listener.url).host);
}

/** Makes the gateway call a tool as it does for an agent. Needs no model. */
async function invoke(tool: string, args: object): Promise<Found> {
  const headers = { Authorization: `Bearer ${SECRET}`, 'Content-Type': 'application/json' };
  const body = JSON.stringify({ tool, args });
  const answer = await fetch(`http://127.0.0.1:${port}/tools/invoke`, { method: 'POST', headers, body });
  const { result } = (await answer.json()) as { result?: { details?: Found } };
  return result?.details ?? { error: answer.status };
}

async function ready(): Promise<void> {
  const there = await until(async () => {
    if (gateway.exitCode !== null) throw new Error(`the gateway exited: ${said.slice(-3000)}`);
    return (await invoke('memory_search', { query: 'x' }))['error'] === undefined;
  });
  if (!there) throw new Error(`the gateway does not respond: ${said.slice(-3000)}`);
}

async function until(holds: () => Promise<boolean>): Promise<boolean> {
  const last = performance.now() + PATIENCE_MS;
  while (performance.now() < last) {
    if (await holds().catch((error: unknown) => unlessRefused(error))) return true;
    await wait(500);
  }
  return false;
}

function unlessRefused(error: unknown): false {
  if (error instanceof TypeError) return false;
  throw error;
}

function listen(): Promise<Listener> {
  return startListener({
    perform: (async (caller: Caller, name: 'status', input: object) => {
      if (locked && name !== 'status') throw new Failure('key_unavailable', 'The memory is locked; unlock it.');
      return perform(caller, name, input);
    }) as typeof perform,
    tokens,
    onChange: (hear) => store.onChange(hear),
    folder,
    address: '127.0.0.1:0',
    version: 'lane',
    clock: systemClock,
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: free } = server.address() as AddressInfo;
  server.close();
  return free;
}

/** Kills the gateway and its child processes. */
async function end(): Promise<void> {
  if (gateway.pid !== undefined && gateway.exitCode === null) {
    const ended = once(gateway, 'exit');
    process.kill(-gateway.pid, 'SIGTERM');
    await Promise.race([ended, wait(8000)]);
    try {
      process.kill(-gateway.pid, 'SIGKILL');
    } catch {
      // All of them have already exited.
    }
  }
  await listener.close();
  await model[Symbol.asyncDispose]();
  meaning[Symbol.dispose]();
  rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
