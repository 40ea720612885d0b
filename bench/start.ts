/**
 * Compares the start and the idle cost of the built program with a bare node:http server. Run `npm run build` first, then
 * `node bench/start.ts`. Linux only: reads resident memory and processor time from /proc.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ours } from './memory.ts';
import { median, report, type Result } from './report.ts';

const FACTS = 100_000;
const ROOM = { facts: 10_000_000, bytes: 2 ** 40 };
const ROUNDS = 15;
const IDLE_MS = 20_000;
const PROGRAM = join(import.meta.dirname, '../out/main/headless.cjs');
const API = '/api/v1';

/** A minimal server. */
const BARE = `
  import { createServer } from 'node:http';
  const server = createServer((request, response) => {
    response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', '2']);
    response.end('{}');
  });
  server.listen(0, '127.0.0.1', () => console.log('running at http://127.0.0.1:' + server.address().port + '.'));
`;

interface Running extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  /** Milliseconds from the spawn to the first response. */
  readonly took: number;
  /** Resident bytes right after the first response. */
  readonly resident: number;
  readonly pid: number;
}

export async function starts(): Promise<Result[]> {
  if (!existsSync(PROGRAM)) throw new Error('out/main/headless.cjs is missing. Run: npm run build');
  const results: Result[] = [];
  for (const facts of [0, FACTS]) {
    await using made = await ours(facts, { quota: ROOM });
    // Only one process can open the memory, so stop this one and keep the folder.
    await made.store[Symbol.asyncDispose]();
    const folder = dirname(made.file);
    results.push(...(await startsOf(folder, facts)));
    if (facts > 0) results.push(await searchable(folder, facts));
    results.push(await idle(folder, facts));
  }
  return results;
}

async function startsOf(folder: string, facts: number): Promise<Result[]> {
  const took = { bare: [] as number[], ours: [] as number[] };
  const resident = { bare: [] as number[], ours: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const side of ['bare', 'ours'] as const) {
      await using running = side === 'bare' ? await runBare() : await run(folder);
      took[side].push(running.took);
      resident[side].push(running.resident / 2 ** 20);
    }
  }
  const beside = (what: string, { bare, ours: own }: typeof took, unit: string, atMost: number | undefined): Result => ({
    what: `${what}, ${facts} facts`,
    figure: median(own) / median(bare),
    unit: 'times bare node:http',
    ...(atMost !== undefined && { bar: { atMost } }),
    from: `${median(bare).toFixed(0)} ${unit} bare, ${median(own).toFixed(0)} ${unit} ours`,
  });
  return [
    beside('first response after the start', took, 'ms', 1.5),
    // No bar with facts, because their index needs memory too.
    beside('resident memory at the first response', resident, 'MiB', facts === 0 ? 1.5 : undefined),
  ];
}

async function searchable(folder: string, facts: number): Promise<Result> {
  const start = performance.now();
  await using running = await run(folder);
  const { url, token } = running;
  for (;;) {
    const answer = await ask(url, `${API}/memory/search?q=${facts - 1}`, token);
    if ((JSON.parse(answer) as { partial?: true }).partial !== true) break;
    await wait(10);
  }
  const seconds = (performance.now() - start) / 1000;
  return {
    what: `everything searchable after the start, ${facts} facts`,
    figure: seconds,
    unit: 's',
    bar: { atMost: 5 },
    from: `${(running.took / 1000).toFixed(2)} s until the first response`,
  };
}

async function idle(folder: string, facts: number): Promise<Result> {
  await using running = await run(folder);
  // Wait until the start has finished its background work.
  for (let before = NaN; before !== (before = processorTime(running.pid));) await wait(1000);
  const before = processorTime(running.pid);
  await wait(IDLE_MS);
  const spent = processorTime(running.pid) - before;
  const percent = (100 * spent) / (IDLE_MS / 1000);
  return {
    what: `processor time while idle, ${facts} facts`,
    figure: percent,
    unit: '% of one',
    bar: { atMost: 0.05 },
    from: `${(1000 * spent).toFixed(2)} ms in ${IDLE_MS / 1000} s`,
  };
}

const run = (folder: string): Promise<Running> =>
  launch([PROGRAM], {
    path: `${API}/memory`,
    env: { HELMDECK_DATA_DIR: folder, HELMDECK_ADDR: '127.0.0.1:0', HOME: folder },
    token: () => readFileSync(join(folder, 'owner-token'), 'utf8').trim(),
  });

const runBare = (): Promise<Running> =>
  launch(['--input-type=module', '--eval', BARE], { path: '/', env: {}, token: () => 'none' });

async function launch(
  args: readonly string[],
  { path, env, token: tokenOf }: { path: string; env: Record<string, string>; token: () => string },
): Promise<Running> {
  const start = performance.now();
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await spoken(child);
  const token = tokenOf();
  await ask(url, path, token);
  const took = performance.now() - start;
  const { pid = NaN } = child;
  return {
    url,
    token,
    took,
    resident: residentOf(pid),
    pid,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

async function spoken({ stdout }: ChildProcess): Promise<string> {
  let said = '';
  for await (const text of stdout ?? []) {
    said += String(text);
    const url = /running at (http:\/\/\S+)\./.exec(said)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error(`The program did not start: ${said}`);
}

async function ask(url: string, path: string, token: string): Promise<string> {
  const answer = await fetch(url + path, { headers: { Authorization: `Bearer ${token}` } });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(text);
  return text;
}

const residentOf = (pid: number): number =>
  1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? NaN);

/** Seconds of CPU time of all threads. Reads schedstat, because the ticks in /proc/PID/stat are too coarse. */
function processorTime(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const ran = threads.map((thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]));
  return ran.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e9;
}

if (import.meta.main) process.exitCode = report(await starts()) ? 0 : 1;
