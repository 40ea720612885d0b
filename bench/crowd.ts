import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { aFact } from './memory.ts';
import { quantile, report, type Result } from './report.ts';
import { served } from './served.ts';

const FACTS = 5000;
const SUBJECTS = 10;
/** Below what one subject may have of each. */
const SESSIONS = 1000;
const STREAMS = 500;
const SECONDS = 10;
const A_SECOND = 100;
const MIB = 2 ** 20;

interface Task {
  readonly what: 'open sessions' | 'open streams' | 'ask';
  readonly port: number;
  readonly tokens: readonly string[];
}

/** What those cost who have come and say nothing: their memory, and how long the others wait. */
export async function crowd(): Promise<Result[]> {
  await using mine = await served(FACTS);
  const { tokens, port } = mine;
  const subjects = ['me', ...Array.from({ length: SUBJECTS - 1 }, (_, index) => `subject-${index}`)];
  const scopes = ['memory:read' as const];
  const minted = await Promise.all(
    subjects.map((subject) => tokens.mint({ name: 'bench', client: 'bench', subject, scopes, days: 1 })),
  );
  const asker = fork(import.meta.filename, ['client']);
  const task = (what: Task['what']) => send(asker, { what, port, tokens: minted.map(({ token }) => token) });

  const alone = await task('ask');
  const bytes = [process.memoryUsage.rss()];
  await task('open sessions');
  bytes.push(process.memoryUsage.rss());
  await task('open streams');
  const among = await task('ask');
  bytes.push(process.memoryUsage.rss());
  asker.disconnect();
  const [atFirst = 0, withSessions = 0, withAll = 0] = bytes;
  const grown = (what: string, from: number, to: number): Result => ({
    what: `memory of ${what}`,
    figure: (to - from) / MIB,
    unit: 'MiB',
    bar: { atMost: 32 },
    from: `${(from / MIB).toFixed(0)} MiB before, ${(to / MIB).toFixed(0)} MiB with them`,
  });
  return [
    grown(`${SESSIONS} sessions that nobody uses`, atFirst, withSessions),
    grown(`${STREAMS} streams that hear of nothing`, withSessions, withAll),
    {
      what: `recall among ${STREAMS} idle streams, ${A_SECOND} a second, p99`,
      figure: quantile(among, 0.99),
      unit: 'ms',
      bar: { atMost: 100 },
      from: `${quantile(among, 0.5).toFixed(2)} ms at p50; alone ${quantile(alone, 0.5).toFixed(2)} and ${quantile(alone, 0.99).toFixed(2)} ms`,
    },
  ];
}

async function send(asker: ChildProcess, task: Task): Promise<number[]> {
  asker.send(task);
  // Nobody else speaks to us on this channel.
  const [answer] = (await once(asker, 'message')) as [number[] | string];
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

const API = '/api/v1';

/** Everybody who comes, in a process of their own, so that nothing of theirs is counted as ours. */
function client(): void {
  const agent = new Agent({ keepAlive: true });
  const ask = (port: number, path: string, token: string, body?: object): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const headers = { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) };
    const stream = path.endsWith('/events');
    const options = { host: '127.0.0.1', port, path, headers, method: body ? 'POST' : 'GET', ...(!stream && { agent }) };
    request(options, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`));
      response.once(stream ? 'data' : 'end', resolve).resume();
    })
      .on('error', reject)
      .end(body && JSON.stringify(body));
    return promise;
  };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const tasks: Record<Task['what'], (task: Task) => Promise<number[]>> = {
    async 'open sessions'({ port, tokens }) {
      const hello = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
      for (let opened = 0; opened < SESSIONS; opened += tokens.length)
        await Promise.all(tokens.map((token) => ask(port, `${API}/mcp`, token, hello)));
      return [];
    },
    async 'open streams'({ port, tokens }) {
      for (let opened = 0; opened < STREAMS; opened += tokens.length)
        await Promise.all(tokens.map((token) => ask(port, `${API}/events`, token)));
      return [];
    },
    async ask({ port, tokens: [token = ''] }) {
      const times: number[] = [];
      const asked: Promise<void>[] = [];
      for (let index = 0; index < SECONDS * A_SECOND; index += 1) {
        const start = performance.now();
        const path = `${API}/memory/fact?key=${encodeURIComponent(aFact((index * 7) % FACTS).key)}`;
        asked.push(ask(port, path, token).then(() => void times.push(performance.now() - start)));
        await wait(1000 / A_SECOND);
      }
      await Promise.all(asked);
      return times;
    },
  };
  process.on('message', (task: Task) => {
    tasks[task.what](task).then(
      (times) => process.send?.(times),
      (error: unknown) => process.send?.(String(error)),
    );
  });
  // Streams would hold it open when whoever started it has what they wanted.
  process.on('disconnect', () => process.exit());
}

if (import.meta.main) {
  if (process.argv[2] === 'client') client();
  else process.exitCode = report(await crowd()) ? 0 : 1;
}
