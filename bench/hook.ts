import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { MintInput } from '../src/contract/token.ts';
import { TokenRegistry } from '../src/core/access/token-registry.ts';
import { createCore } from '../src/core/operations/create-core.ts';
import { Finder } from '../src/core/search/finder.ts';
import { systemClock } from '../src/core/time/clock.ts';
import { startListener } from '../src/listeners/listener.ts';
import { ours } from './memory.ts';
import { realFacts } from './real-facts.ts';
import { median, quantile, type Result } from './report.ts';

const FACTS = 10_000;
const ROUNDS = 60;
const ENDINGS = 10;
/** Rounds before the measurement, because the first briefs of a program take longer. */
const WARM_UP = 10;
const SCRIPT = 'helmdeck-memory-hook.mjs';

/**
 * Measures what the hook of a prompt costs an agent in a memory of 10,000 facts, by words, beside a Node that runs nothing, in turns
 * in the same run. Then measures the hook when the program is stopped, locked or does not respond.
 */
export async function hook(): Promise<Result[]> {
  const folder = mkdtempSync(join(tmpdir(), 'helmdeck-bench-hook-'));
  const facts = realFacts(FACTS);
  await using mine = await ours(FACTS, {
    quota: { facts: 2 * FACTS, bytes: 2 ** 40 },
    factOf: (index) => {
      const { key, value, tags, category } = facts[index] ?? facts[0]!;
      return { key: `${key}-${index}`, value, tags, category };
    },
  });
  const { store } = mine;
  const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  using finder = new Finder(store);
  using core = createCore({ store, tokens, finder, clock: systemClock });
  await finder.prepare();
  const listener = await startListener({
    perform: core.perform,
    tokens,
    onChange: (hear) => store.onChange(hear),
    folder,
    address: '127.0.0.1:0',
    version: '0.0.0',
    clock: systemClock,
  });
  copyFileSync(join('integrations/hook', SCRIPT), join(folder, SCRIPT));
  mkdirSync(join(folder, 'clients'), { mode: 0o700 });
  const minted = await tokens.mint(MintInput().parse({ name: 'bench', client: 'codex', scopes: ['memory:brief'] }));
  writeFileSync(join(folder, 'clients', 'codex.hook.token'), minted.token, { mode: 0o600 });

  const promptOf = (round: number): string => {
    const words = (facts[(round * 7919) % FACTS]?.value ?? '').split(' ');
    return `Please change how the ${words[4]} of the ${words[7]} works, so that it uses ${words[9]}`;
  };
  const ask = (round: number): Promise<Run> =>
    run([join(folder, SCRIPT), 'codex', 'prompt'], { session_id: `session-${round}`, cwd: folder, prompt: promptOf(round) });
  const times = { node: [] as number[], hook: [] as number[] };
  let spoken = 0;
  for (let round = 0; round < WARM_UP; round += 1) await ask(ROUNDS + ENDINGS + round);
  for (let round = 0; round < ROUNDS; round += 1) {
    times.node.push((await run(['-e', '0'], {})).ms);
    const { ms, output } = await ask(round);
    times.hook.push(ms);
    spoken += output === '' ? 0 : 1;
  }
  const [base, asked] = [quantile(times.node, 0.95), quantile(times.hook, 0.95)];

  const ending = async (what: string): Promise<Result> => {
    const runs: Run[] = [];
    for (let round = 0; round < ENDINGS; round += 1) runs.push(await ask(ROUNDS + round));
    const all = runs.map(({ ms }) => ms);
    return {
      what: `hook while the program ${what}, without output`,
      figure: runs.some(({ output }) => output !== '') ? Infinity : quantile(all, 0.95),
      unit: 'ms, p95',
      bar: { atMost: 300 },
      from: `median ${median(all).toFixed(0)} ms of ${ENDINGS} runs`,
    };
  };
  const results: Result[] = [
    {
      what: `hook of a prompt beyond an empty Node, of ${FACTS} facts, by words`,
      figure: asked - base,
      unit: 'ms, p95',
      bar: { atMost: 25 },
      from: `p95 ${asked.toFixed(0)} and ${base.toFixed(0)} ms, median ${median(times.hook).toFixed(0)} and ${median(times.node).toFixed(0)} ms; it spoke ${spoken} of ${ROUNDS} times`,
    },
  ];
  store.lock();
  results.push(await ending('is locked'));
  await listener.close();
  results.push(await ending('is stopped'));
  const silent = createServer((socket) => void socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const endpoint = JSON.stringify({ url, pid: process.pid, proof_key: 'ab'.repeat(32) });
  writeFileSync(join(folder, 'endpoint.json'), endpoint, { mode: 0o600 });
  results.push(await ending('does not respond'));
  silent.close();
  rmSync(folder, { recursive: true });
  return results;
}

interface Run {
  readonly ms: number;
  readonly output: string;
}

async function run(args: readonly string[], input: object): Promise<Run> {
  const from = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.on('error', () => undefined).end(JSON.stringify(input));
  const [output] = await Promise.all([readText(child.stdout), once(child, 'close')]);
  return { ms: performance.now() - from, output };
}
