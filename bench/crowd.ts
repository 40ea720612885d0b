import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { aFact } from './memory.ts';
import { quantile, report, type Result } from './report.ts';
import { served } from './served.ts';

const FACTS = 5000;
const SUBJECTS = 10;
/** Below the limits for one subject. */
const SESSIONS = 1000;
const STREAMS = 500;
/** Connections that send nothing or an incomplete request. */
const SLOW = 200;
const SECONDS = 10;
const A_SECOND = 100;
/** The most pages of facts that the bench requests. */
const UNREAD = 1000;
const MIB = 2 ** 20;

interface Task {
  readonly what: 'open sessions' | 'open streams' | 'send slowly' | 'read nothing' | 'ask';
  readonly port: number;
  readonly tokens: readonly string[];
}

/** Measures what idle, slow and non-reading clients cost: memory, and latency for other clients. */
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
  const crowding = fork(import.meta.filename, ['client']);
  const others = (what: Task['what']) => send(crowding, { what, port, tokens: minted.map(({ token }) => token) });
  const slow = others('send slowly');
  const amongSlow = await task('ask');
  bytes.push(process.memoryUsage.rss());
  const gone = await slow;
  const beforeUnread = process.memoryUsage.rss();
  await others('read nothing');
  bytes.push(process.memoryUsage.rss() - beforeUnread);
  asker.disconnect();
  crowding.disconnect();
  const [atFirst = 0, withSessions = 0, withAll = 0, withSlow = 0, unread = 0] = bytes;
  const grown = (what: string, from: number, to: number, atMost = 32): Result => ({
    what: `memory of ${what}`,
    figure: (to - from) / MIB,
    unit: 'MiB',
    bar: { atMost },
    from: `${(from / MIB).toFixed(0)} MiB before, ${(to / MIB).toFixed(0)} MiB with them`,
  });
  return [
    grown(`${SESSIONS} unused sessions`, atFirst, withSessions),
    grown(`${STREAMS} idle streams`, withSessions, withAll),
    {
      what: `recall among ${STREAMS} idle streams, ${A_SECOND} a second, p99`,
      figure: quantile(among, 0.99),
      unit: 'ms',
      bar: { atMost: 100 },
      from: `${quantile(among, 0.5).toFixed(2)} ms at p50; alone ${quantile(alone, 0.5).toFixed(2)} and ${quantile(alone, 0.99).toFixed(2)} ms`,
    },
    grown(`${SLOW} slow connections`, withAll, withSlow, 64),
    {
      what: `the last of ${SLOW} slow connections is closed`,
      figure: Math.max(...gone) / 1000,
      unit: 's',
      bar: { atMost: 10 },
      from: `the first after ${(Math.min(...gone) / 1000).toFixed(1)} s`,
    },
    {
      what: `recall among ${SLOW} slow connections, ${A_SECOND} a second, p95`,
      figure: quantile(amongSlow, 0.95),
      unit: 'ms',
      bar: { atMost: 50 },
      from: `${quantile(amongSlow, 0.5).toFixed(2)} ms at p50`,
    },
    grown(`${UNREAD} responses on an unread stream`, beforeUnread, beforeUnread + unread),
  ];
}

async function send(asker: ChildProcess, task: Task): Promise<number[]> {
  asker.send(task);
  // Only our own child process sends on this channel.
  const [answer] = (await Promise.race([once(asker, 'message'), ended(asker)])) as [number[] | string];
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

async function ended(asker: ChildProcess): Promise<never> {
  const [code] = await once(asker, 'exit');
  throw new Error(`The process of the clients ended with code ${code}.`);
}

const API = '/api/v1';

/** All clients, in a separate process, so that their memory and CPU time are not counted. */
function client(): void {
  const agent = new Agent({ keepAlive: true });
  const ask = async (port: number, path: string, token: string, body?: object): Promise<void> => {
    try {
      await askOnce(port, path, token, body);
    } catch (error) {
      // The server may close an idle connection at the moment when the agent reuses it. The request was not read, so send it again.
      if (!(error instanceof Error && 'reused' in error)) throw error;
      await ask(port, path, token, body);
    }
  };
  const askOnce = (port: number, path: string, token: string, body?: object): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const headers = { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) };
    const stream = path.endsWith('/events');
    const options = { host: '127.0.0.1', port, path, headers, method: body ? 'POST' : 'GET', ...(!stream && { agent }) };
    const sent = request(options, (response) => {
      if (response.statusCode !== 200 && response.statusCode !== 202) reject(new Error(`${path}: ${response.statusCode}`));
      response.once(stream ? 'data' : 'end', resolve).resume();
    })
      .on('error', (error) => reject(sent.reusedSocket ? Object.assign(error, { reused: true }) : error))
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
    async 'send slowly'({ port, tokens: [token = ''] }) {
      const post = `POST ${API}/memory/store HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`;
      const begun = `${post}Authorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{`;
      const firsts = ['', 'GET /hea', post, begun];
      return Promise.all(
        Array.from({ length: SLOW }, (_, index) => {
          const { promise, resolve } = Promise.withResolvers<number>();
          const start = performance.now();
          const socket = connect(port, '127.0.0.1', () => socket.write(firsts[index % firsts.length] ?? ''));
          // Some connections send a few more bytes from time to time.
          const more = setInterval(() => index % 8 === 2 && socket.writable && socket.write('X-More: x\r\n'), 500);
          socket.resume().on('error', () => undefined);
          socket.once('close', () => {
            clearInterval(more);
            resolve(performance.now() - start);
          });
          return promise;
        }),
      );
    },
    async 'read nothing'({ port, tokens: [token = ''] }) {
      const { promise, resolve } = Promise.withResolvers<string>();
      let text = '';
      const stream = connect(port, '127.0.0.1', () =>
        stream.write(`GET ${API}/mcp/sse HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`),
      );
      stream
        .on('error', () => undefined)
        .on('data', (part) => {
          text += String(part);
          const messages = /^data: (\S+)$/m.exec(text)?.[1];
          if (messages !== undefined) resolve(messages);
        });
      const messages = await promise;
      stream.pause();
      const page = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'memory_list', arguments: { limit: 200 } } };
      // Stop when the server has closed the unread stream.
      for (let asked = 0; asked < UNREAD; asked += 1) {
        const said = await ask(port, messages, token, page).catch(String);
        if (typeof said === 'string' && said.endsWith('404')) break;
      }
      return [];
    },
    async ask({ port, tokens: [token = ''] }) {
      const times: number[] = [];
      const asked: Promise<void>[] = [];
      for (let index = 0; index < SECONDS * A_SECOND; index += 1) {
        const start = performance.now();
        const path = `${API}/memory/fact?key=${encodeURIComponent(aFact((index * 7) % FACTS).key)}`;
        const answer = ask(port, path, token).then(() => void times.push(performance.now() - start));
        // A request can fail while later ones are still sent. `Promise.all` reports it in the end.
        answer.catch(() => undefined);
        asked.push(answer);
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
  // Exit now, because open streams would keep this process alive.
  process.on('disconnect', () => process.exit());
}

if (import.meta.main) {
  if (process.argv[2] === 'client') client();
  else process.exitCode = report(await crowd()) ? 0 : 1;
}
