import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { median, quantile, report, type Result } from './report.ts';
import { served } from './served.ts';

/** 60 MiB, sealed. */
const FACTS = 10_000;
const LETTERS = 6000;
const ROOM = { facts: 2 * FACTS, bytes: 2 ** 40 };
const ROUNDS = 5;
const SECONDS = 3;
const PAUSE_MS = 5;
/** Two slices of a millisecond. */
const ALLOWED_MS = 2;

const NOTHING = ['category:none', 'tag:none', 'prefix:none', 'client:none', 'pack:none', 'pipeline:none', 'packs', 'pipelines'];
const EVERYTHING = ['category:user_facts', 'tag:frontend', 'prefix:preferences/', 'client:claude-code', 'facts', 'all'];
const LOOP = [
  ...NOTHING.map((scope) => ({ scope, dry_run: false })),
  ...[...NOTHING, ...EVERYTHING].map((scope) => ({ scope, dry_run: true })),
];

interface Task {
  readonly what: 'recall' | 'forget';
  readonly port: number;
  readonly tokens: readonly string[];
}

/** Measures how long a recall takes while two clients of another subject run forgets and dry runs. */
export async function forgetting(): Promise<Result[]> {
  await using mine = await served(FACTS, {
    quota: ROOM,
    textOf: (index) => `${index} `.padEnd(LETTERS, 'what the owner said; '),
  });
  const mint = async (subject: string): Promise<string> =>
    (await mine.tokens.mint({ name: 'bench', client: 'bench', subject, scopes: ['memory:write', 'memory:read'], days: 1 })).token;
  const [one, other, bystander] = [await mint('me'), await mint('me'), await mint('bystander')];
  const { port } = mine;
  const [asker, crowd] = [fork(import.meta.filename, ['client']), fork(import.meta.filename, ['client'])];
  const recalls = async (): Promise<number[]> => {
    asker.send({ what: 'recall', port, tokens: [bystander] } satisfies Task);
    return answerOf(asker);
  };
  const alone: number[] = [];
  const beside: number[] = [];
  const all = { alone: [] as number[], beside: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = await recalls();
    crowd.send({ what: 'forget', port, tokens: [one, other] } satisfies Task);
    await wait(100);
    const among = await recalls();
    crowd.send('enough');
    await answerOf(crowd);
    alone.push(quantile(before, 0.95));
    beside.push(quantile(among, 0.95));
    all.alone.push(...before);
    all.beside.push(...among);
  }
  asker.disconnect();
  crowd.disconnect();
  return [
    {
      what: 'recall of one subject beside two clients of another that loop every forget over 60 MiB, p95 over alone',
      figure: median(beside) - median(alone),
      unit: 'ms',
      bar: { atMost: ALLOWED_MS },
      from: `alone p50 ${quantile(all.alone, 0.5).toFixed(2)}, p95 ${median(alone).toFixed(2)} ms; beside p50 ${quantile(all.beside, 0.5).toFixed(2)}, p95 ${median(beside).toFixed(2)} ms`,
    },
    await longestSlice(),
  ];
}

/** Runs a real forget of everything and measures the delays on the store's own event loop. */
async function longestSlice(): Promise<Result> {
  const { ours } = await import('./memory.ts');
  await using mine = await ours(FACTS, { quota: ROOM, textOf: (index) => `${index} `.padEnd(LETTERS, 'what the owner said; ') });
  await wait(1000);
  const gaps: number[] = [];
  const state = { running: true };
  let last = performance.now();
  const watch = (): void => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    if (state.running) setImmediate(watch);
  };
  setImmediate(watch);
  const start = performance.now();
  await mine.store.forget('me', { kinds: ['fact'], matches: ({ tags }) => tags.includes('frontend') });
  const took = performance.now() - start;
  state.running = false;
  const slices = gaps.filter((gap) => gap > 0.05);
  return {
    what: 'slice of a forget of 60 MiB by tag, p95',
    figure: quantile(slices, 0.95),
    unit: 'ms',
    bar: { atMost: 2 * ALLOWED_MS },
    from: `p50 ${quantile(slices, 0.5).toFixed(2)} ms, longest ${Math.max(...slices).toFixed(1)} ms; ${(took / 1000).toFixed(1)} s in all`,
  };
}

async function answerOf(child: ChildProcess): Promise<number[]> {
  const [answer] = (await once(child, 'message')) as [number[] | string];
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

/** The clients, in separate processes, so that their CPU time is not counted. */
function client(): void {
  const agent = new Agent({ keepAlive: true });
  const state = { enough: false };
  const ask = (port: number, path: string, token: string, body?: object): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    request(
      { host: '127.0.0.1', port, path: `/api/v1/memory/${path}`, headers, method: body ? 'POST' : 'GET', agent },
      (response) => {
        if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`));
        response.once('end', resolve).resume();
      },
    )
      .on('error', reject)
      .end(body && JSON.stringify(body));
    return promise;
  };
  const tasks: Record<Task['what'], (task: Task) => Promise<number[]>> = {
    async recall({ port, tokens: [token = ''] }) {
      const times: number[] = [];
      await ask(port, 'store', token, { key: 'mine', value: 'what I said' });
      for (const until = performance.now() + SECONDS * 1000; performance.now() < until;) {
        const start = performance.now();
        await ask(port, 'fact?key=mine', token);
        times.push(performance.now() - start);
        await wait(PAUSE_MS);
      }
      return times;
    },
    async forget({ port, tokens }) {
      state.enough = false;
      const loop = async (token: string): Promise<void> => {
        for (let turn = 0; !state.enough; turn += 1) await ask(port, 'forget', token, LOOP[turn % LOOP.length] ?? {});
      };
      await Promise.all(tokens.map(loop));
      return [];
    },
  };
  process.on('message', (task: Task | 'enough') => {
    if (task === 'enough') {
      state.enough = true;
      return;
    }
    tasks[task.what](task).then(
      (times) => process.send?.(times),
      (error: unknown) => process.send?.(String(error)),
    );
  });
  process.on('disconnect', () => process.exit());
}

if (import.meta.main) {
  if (process.argv[2] === 'client') client();
  else process.exitCode = report(await forgetting()) ? 0 : 1;
}
