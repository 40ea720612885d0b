import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { findOwnerClient } from '../../src/listeners/endpoint.ts';
import { isAlive, putStandIn } from '../support/ollama-program.ts';
import { Checks } from './faults/checks.ts';

const TIMES = 20;
const REST_MS = 10_000;
const TICKS_PER_SECOND = 100;
/** A garbage collection can fall into one interval. Background work would show in every interval. */
const RESTS = 3;
/** The time in which Ollama must exit after the program is killed. */
const GONE_WITHIN_MS = 5000;
const PATIENCE_MS = 120_000;
const OPENCLAW = resolve(import.meta.dirname, 'openclaw/node_modules/.bin/openclaw');
const CLIENT = { client: 'openclaw-embeddings' };
const NOTES = {
  'MEMORY.md': '# Deploys\n\nWe deploy to production on Tuesdays.\n',
  'memory/2026-06-03.md': '# Kitchen\n\nThe cat sleeps.\n',
};

const checks = new Checks();
const { check } = checks;

/** A home folder with an Ollama that its owner has approved. */

const home = mkdtempSync(join(tmpdir(), 'helmdeck-embeddings-'));
const folder = join(home, 'data');
const openClawConfig = join(home, '.openclaw/openclaw.json');
for (const made of [folder, dirname(openClawConfig), join(home, 'ollama'), join(home, 'workspace')])
  mkdirSync(made, { mode: 0o700 });
const ollama = putStandIn(join(home, 'ollama'), { quick: false });
const environment = {
  PATH: [dirname(OPENCLAW), dirname(process.execPath), '/usr/bin', '/bin'].join(':'),
  HOME: home,
  HELMDECK_DATA_DIR: folder,
  HELMDECK_ADDR: '127.0.0.1:0',
  HELMDECK_MEANING: 'off',
  HELMDECK_MEMORY_KEY: createHash('sha256').update(home).digest('hex'),
  HELMDECK_OLLAMA: ollama.path,
  HELMDECK_EMBEDDINGS_MODEL: 'all-minilm',
};
const approved = {
  path: ollama.path,
  size: statSync(ollama.path).size,
  sha256: createHash('sha256').update(readFileSync(ollama.path)).digest('hex'),
};
const choose = (on: boolean): void =>
  writeFileSync(join(folder, 'embeddings.json'), JSON.stringify({ on, adopt: false, approved }), { mode: 0o600 });

let program: ChildProcess | undefined;
await checks.through(
  async () => {
    await leavesNoOrphans();
    await restsAtNoCost();
    await bundledModelRestsAtNoCost();
    if (existsSync(OPENCLAW)) await servesOpenClaw();
    else checks.skip('OpenClaw cannot be installed');
  },
  () => {
    program?.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  },
);

async function leavesNoOrphans(): Promise<void> {
  choose(true);
  ollama.behave({ fault: 'forks' });
  let slowest = 0;
  for (let time = 1; time <= TIMES; time += 1) {
    await start();
    const before = ollama.pids().filter(isAlive);
    if (before.length !== 3) check(`start ${time}: Ollama runs with its child processes`, false, before);
    const killed = performance.now();
    program?.kill('SIGKILL');
    while (ollama.pids().some(isAlive) && performance.now() - killed < GONE_WITHIN_MS) await wait(20);
    slowest = Math.max(slowest, performance.now() - killed);
    const left = ollama.pids().filter(isAlive);
    if (left.length > 0) check(`kill ${time} leaves nothing`, false, left);
  }
  check(
    `R-EMB-04 killed ${TIMES} times: no process of Ollama is left after at most ${Math.round(slowest)} ms`,
    slowest < GONE_WITHIN_MS,
    slowest,
  );
}

async function restsAtNoCost(): Promise<void> {
  ollama.behave({});
  await start();
  const on = await costAtRest();
  check(`on and at rest: ${on.told}`, on.none, on);
  await stop();
  choose(false);
  const known = ollama.pids().length;
  await start();
  const off = await costAtRest();
  check(`off: ${off.told}`, off.none, off);
  check('off: no process', off.children.length === 0 && ollama.pids().length === known, [off, ollama.pids()]);
  await stop();
}

/** The bundled model, without Ollama: its cost while it is idle, and the memory that a lock gives back. */
async function bundledModelRestsAtNoCost(): Promise<void> {
  choose(false);
  await start({ HELMDECK_MEANING: 'bundled' });
  using owner = await findOwnerClient(folder);
  if (!owner) throw new Error('The program is not running.');
  const texts = Array.from({ length: 16 }, (_, at) => `After-hours entry at HQ is through the loading dock ${at}`);
  // The first requests are not the model's, because requests themselves make the program larger. A stored fact would be embedded.
  for (const query of [...texts, ...texts]) await owner.call('search', { query, mode: 'words' });
  const [before, unloaded] = [residentBytes(), await costAtRest()];
  check('R-MEAN-21 before the first text, the model has no process', unloaded.children.length === 0, unloaded);
  const { data } = await owner.call('embed', { model: 'minilm-l6-v2', input: texts });
  for (let request = 0; request < 10; request += 1) await owner.call('embed', { model: 'minilm-l6-v2', input: texts });
  check('R-MEAN-28 the bundled model embeds without Ollama', data.length === texts.length, data.length);
  const idle = await costAtRest();
  check(`the bundled model is loaded and idle: ${idle.told}`, idle.none && idle.children.length === 1, idle);
  await owner.call('lock', {});
  await wait(500);
  const locked = await costAtRest();
  const more = residentBytes() - before;
  check(
    `R-MEAN-21 locked: no process is left, and the program uses ${Math.round(more / 1e6)} MB more than before`,
    locked.children.length === 0 && more < 10_000_000,
    [locked, more],
  );
  await owner.call('unlock', {});
  await owner.call('embed', { model: 'minilm-l6-v2', input: texts });
  const [model = 0] = (await costAtRest()).children.map(Number);
  program?.kill('SIGKILL');
  for (let tries = 0; tries < 250 && isAlive(model); tries += 1) await wait(20);
  check('R-MEAN-21 no process of the model outlives a killed program', model !== 0 && !isAlive(model), model);
}

function residentBytes(): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${program?.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

async function servesOpenClaw(): Promise<void> {
  choose(true);
  await start();
  mkdirSync(join(home, 'workspace/memory'));
  for (const [name, text] of Object.entries(NOTES)) writeFileSync(join(home, 'workspace', name), text);
  const before = `{
  // The owner's own formatting.
  "gateway": { "mode": "local", "bind": "loopback" },
  "agents": { "defaults": { "workspace": ${JSON.stringify(join(home, 'workspace'))} } },
}
`;
  writeFileSync(openClawConfig, before);
  using owner = await findOwnerClient(folder);
  if (!owner) throw new Error('The program is not running.');
  const plan = await owner.call('planConnection', CLIENT);
  const done = await owner.call('connectClient', { ...CLIENT, basis: plan.basis });
  check('R-EMB-10 OpenClaw is connected, and its own query succeeds', done.verified.works, [plan, done]);
  const asked = ollama.requests().length;
  const indexed = await openClaw('memory', 'index', '--force');
  check('openclaw memory index uses our endpoint', indexed.code === 0 && ollama.requests().length > asked, indexed);
  const status = await openClaw('memory', 'status', '--deep', '--json');
  check('openclaw memory status: its vectors are ready', /openai-compatible/.test(status.out) && /384/.test(status.out), status);
  // The query and the note share no word.
  const found = await openClaw('memory', 'search', 'when do you ship new versions?', '--min-score', '0.1', '--json');
  const [first] = (JSON.parse(found.out) as { results: { path: string }[] }).results;
  check('openclaw memory search finds a note that shares no word with the query', first?.path === 'MEMORY.md', found);
  const [token] = (await owner.call('tokens', {})).tokens.filter(({ client }) => client === CLIENT.client);
  check('OpenClaw uses its own token', token?.last_used_at !== undefined, token);
  await owner.call('disconnectClient', { client: CLIENT.client });
  const now = readFileSync(openClawConfig, 'utf8');
  check('after switching off, its configuration is byte for byte as before', now === before, now);
  await stop();
  check('R-EMB-04 the program ended: no process of Ollama is left', !ollama.pids().some(isAlive), ollama.pids().filter(isAlive));
}

/** Starts the program and waits until embeddings are ready, if they are on. */
async function start(more: Record<string, string> = {}): Promise<void> {
  const { on } = JSON.parse(readFileSync(join(folder, 'embeddings.json'), 'utf8')) as { on: boolean };
  program = spawn(process.execPath, ['src/main/roots/headless.ts'], {
    env: { ...environment, ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(program, 'exit').then(() => Promise.reject(new Error('The program exited during its start.')));
  ended.catch(() => undefined);
  await Promise.race([once(program.stdout ?? program, 'data'), ended]);
  for (const last = performance.now() + PATIENCE_MS; performance.now() < last;) {
    using owner = await findOwnerClient(folder);
    const { at } = (await owner?.call('status', {}))?.embeddings ?? {};
    if (at === (on || more['HELMDECK_MEANING'] === 'bundled' ? 'ready' : 'off')) return;
    await wait(50);
  }
  throw new Error('Embeddings did not become ready.');
}

async function stop(): Promise<void> {
  if (!program) return;
  const ended = once(program, 'exit');
  program.kill('SIGTERM');
  await ended;
}

/** CPU ticks of the idle program, measured until an interval uses none, and its child processes. */
async function costAtRest(): Promise<{ none: boolean; told: string; children: string[] }> {
  const of = `/proc/${program?.pid}`;
  const ticks = (): number => {
    const fields = readFileSync(`${of}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  // Wait until the work after the start is done.
  await wait(5000);
  const taken: number[] = [];
  while (taken.length < RESTS && taken.at(-1) !== 0) {
    const before = ticks();
    await wait(REST_MS);
    taken.push(ticks() - before);
  }
  const children = readFileSync(`${of}/task/${program?.pid}/children`, 'utf8').split(' ').filter(Boolean);
  const whole = (REST_MS / 1000) * TICKS_PER_SECOND;
  const told = `${taken.join(', then ')} of ${whole} ticks of the processor`;
  return { none: taken.at(-1) === 0, told, children };
}

async function openClaw(...args: string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(OPENCLAW, args, {
    env: { ...environment, OPENCLAW_STATE_DIR: dirname(openClawConfig), NO_COLOR: '1' },
    cwd: home,
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out: out.slice(-4000), err: err.slice(-2000) };
}
