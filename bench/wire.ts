import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ours } from './memory.ts';
import { QUERY_CLASSES, realFacts, realQueries } from './real-facts.ts';
import { median, quantile, report, type Result } from './report.ts';

/** To measure another build, name its program, and the first part of the names of folders with the facts. */
const PROGRAM = process.env['BENCH_PROGRAM'] ?? join(import.meta.dirname, '../out/main/headless.cjs');
const FOLDERS = process.env['BENCH_FOLDER'];
const QUOTA = { facts: 10_000_000, bytes: 2 ** 40 };
const AT_ONCE = 8;
const FEW = 10_000;
const MANY = 100_000;
const ROUNDS = 7;
const WARM_UP = 2000;
const ROUND = 400;
/** Health checks before each question whether the index is complete, and the milliseconds between them. */
const CHECKS = 5;
const CHECK_MS = 10;
/** Maximum time of a build, in milliseconds. */
const BUILD_MS = 120_000;
const QUERIES = 2000;
const API = '/api/v1';
const WIRES = ['REST', 'QMD'] as const;
type Wire = (typeof WIRES)[number];

/**
 * Searches of agents over REST and QMD, eight at a time. The floor is a bare node:http server that sends responses of the same size.
 * The slowest searches are counted from the start of the program, while it builds its index.
 */
export async function wire(): Promise<Result[]> {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing. Run: npm run build`);
  return [...(await rates()), ...(await slowest())];
}

async function rates(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack();
  const folder = await folderWith(FEW, stack);
  const facts = realFacts(FEW);
  const program = stack.use(await launch(folder));
  const bare = stack.use(await launchBare());
  await built(program);
  const results: Result[] = [];
  for (const through of WIRES) {
    for (const kind of QUERY_CLASSES) {
      await using clients = await connectAll(program, through, requestsOf(through, program, realQueries(kind, facts, QUERIES)));
      await clients.run(first(WARM_UP));
      const { bytes, times } = await clients.run(first(ROUND));
      const size = Math.round(bytes / times.length);
      await using floor = await connectAll(bare, 'REST', bareRequests(bare, through, size, realQueries(kind, facts, QUERIES)));
      await floor.run(first(WARM_UP));
      const rate = { bare: [] as number[], ours: [] as number[] };
      const spent = { bare: [] as number[], ours: [] as number[] };
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const side of ['bare', 'ours'] as const) {
          const server = side === 'bare' ? bare : program;
          const before = processorTime(server.pid);
          const { times: taken, ms } = await (side === 'bare' ? floor : clients).run(first(ROUND));
          rate[side].push((1000 * taken.length) / ms);
          spent[side].push((1e6 * (processorTime(server.pid) - before)) / taken.length);
        }
      }
      const [one, other] = [median(spent.bare), median(spent.ours)];
      results.push({
        what: `${through}, ${kind}, ${AT_ONCE} at a time, ${FEW} facts`,
        figure: median(rate.ours) / median(rate.bare),
        unit: 'times the rate of bare node:http',
        bar: { atLeast: kind === 'question' ? 0.2 : 0.35 },
        from: `${median(rate.ours).toFixed(0)} of ${median(rate.bare).toFixed(0)} a second; processor ${other.toFixed(0)} and ${one.toFixed(0)} µs: ${(one / other).toFixed(3)}; ${size} bytes`,
      });
    }
  }
  return results;
}

async function slowest(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack();
  const folder = await folderWith(MANY, stack);
  const facts = realFacts(MANY);
  const results: Result[] = [];
  const builds: { alone: number; searched: number }[] = [];
  for (const through of WIRES) {
    for (const kind of QUERY_CLASSES) {
      // Alternate builds with and without searches, so that other load on the machine affects both equally.
      const alone = through === 'REST' ? await buildAlone(folder) : undefined;
      await using program = await launch(folder);
      await using clients = await connectAll(program, through, requestsOf(through, program, realQueries(kind, facts, QUERIES)));
      const { during, after, health, buildMs } = await fromStart(program, clients);
      if (alone !== undefined) builds.push({ alone, searched: buildMs });
      const all = [...during, ...after];
      const usual = median(all);
      const slow = quantile(all, 0.99);
      const what = `${through}, ${kind}, ${AT_ONCE} at a time, ${MANY} facts, from the start`;
      const unit = 'times the p50 of all';
      const longest = (some: readonly number[]): string => some.reduce((most, ms) => Math.max(most, ms), 0).toFixed(0);
      results.push(
        {
          what: `${what}, p99`,
          figure: slow / usual,
          unit: 'times its p50',
          bar: { atMost: 8 },
          from: `p50 ${usual.toFixed(2)} ms, p99 ${slow.toFixed(2)} ms, longest ${longest(all)} ms, ${all.length} searches, ${during.length} of them while the index was built; later p50 ${median(after).toFixed(2)} ms, p99 ${quantile(after, 0.99).toFixed(2)} ms`,
        },
        ...([0.5, 0.99] as const).map((part) => ({
          what: `${what}, only while the index is built, p${100 * part}`,
          figure: quantile(during, part) / usual,
          unit,
          from: `${quantile(during, part).toFixed(2)} ms, longest ${longest(during)} ms, ${during.length} searches in ${(buildMs / 1000).toFixed(1)} s`,
        })),
        {
          what: `${what}, health check while the index is built, p99`,
          figure: quantile(health, 0.99) / usual,
          unit,
          from: `p50 ${median(health).toFixed(2)} ms, p99 ${quantile(health, 0.99).toFixed(2)} ms, longest ${longest(health)} ms, ${health.length} checks`,
        },
      );
    }
  }
  return [
    {
      what: `REST, ${AT_ONCE} at a time, ${MANY} facts, from the start, until the index is complete`,
      figure: median(builds.map(({ alone, searched }) => searched / alone)),
      unit: 'times the build without searches',
      bar: { atMost: 3 },
      from: `median of ${builds.map(({ alone, searched }) => `${(searched / 1000).toFixed(1)} and ${(alone / 1000).toFixed(1)} s`).join('; ')}`,
    },
    ...results,
  ];
}

interface FromStart {
  /** Milliseconds of each search that was sent before the index was complete. */
  readonly during: readonly number[];
  /** Milliseconds of each later search. */
  readonly after: readonly number[];
  /** Milliseconds of each health check while the index was built: the delay of any other request. */
  readonly health: readonly number[];
  readonly buildMs: number;
}

/**
 * Sends searches until the index is complete, and then for as long again, so that the figures do not depend on how many searches
 * fit into the build. Another client asks whether the index is complete, because responses of the search server do not say it.
 */
async function fromStart(program: Running, clients: Clients): Promise<FromStart> {
  await using watcher = await connectAll(program, 'REST', requestsOf('REST', program, ['the']), 1);
  await using checker = await connectAll(program, 'REST', healthChecks(program), 1);
  const start = performance.now();
  let buildMs = Infinity;
  const health: number[] = [];
  const watch = async (): Promise<void> => {
    do {
      for (let check = 0; check < CHECKS; check += 1) {
        health.push(...(await checker.run(first(1))).times);
        await pause(CHECK_MS);
      }
    } while ((await watcher.run(first(1))).partial > 0 && performance.now() - start < BUILD_MS);
    buildMs = performance.now() - start;
  };
  const [{ times, sent }] = await Promise.all([clients.run(() => performance.now() - start > 2 * buildMs), watch()]);
  const isDuring = (_: number, search: number): boolean => (sent[search] ?? 0) - start < buildMs;
  return {
    during: times.filter(isDuring),
    after: times.filter((ms, search) => !isDuring(ms, search)),
    health,
    buildMs,
  };
}

/** Milliseconds until the index is complete if one client asks ten times a second. */
async function buildAlone(folder: string): Promise<number> {
  await using program = await launch(folder);
  await using client = await connectAll(program, 'REST', requestsOf('REST', program, ['the']), 1);
  const start = performance.now();
  while ((await client.run(first(1))).partial > 0) await pause(100);
  return performance.now() - start;
}

async function folderWith(facts: number, stack: AsyncDisposableStack): Promise<string> {
  if (FOLDERS !== undefined) return `${FOLDERS}-${facts}`;
  const drafts = realFacts(facts);
  const made = stack.use(
    await ours(facts, {
      quota: QUOTA,
      factOf: (index) => {
        const { key, value, category, tags } = drafts[index] as (typeof drafts)[number];
        return { key: `${key}-${index}`, value, category, tags };
      },
    }),
  );
  // Only one process can open the memory, so stop this one and keep the folder.
  await made.store[Symbol.asyncDispose]();
  return dirname(made.file);
}

interface Running extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  readonly token: string;
}

async function launch(folder: string): Promise<Running> {
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    HELMDECK_DATA_DIR: folder,
    HELMDECK_ADDR: '127.0.0.1:0',
    HELMDECK_MEANING: 'off',
    HELMDECK_QUOTA_FACTS: String(QUOTA.facts),
    HELMDECK_QUOTA_BYTES: String(QUOTA.bytes),
  };
  const child = spawn(process.execPath, [PROGRAM], { env, stdio: ['ignore', 'pipe', 'inherit'], cwd: folder });
  let said = '';
  for await (const text of child.stdout) {
    said += String(text);
    const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
    if (port === undefined) continue;
    return running(child, Number(port), readFileSync(join(folder, 'owner-token'), 'utf8').trim());
  }
  throw new Error(`The program did not start: ${said}`);
}

async function launchBare(): Promise<Running> {
  const child = fork(import.meta.filename, ['bare']);
  // Only our own child process sends on this channel.
  const [port] = (await once(child, 'message')) as [number];
  return running(child, port, 'none');
}

const running = (child: ChildProcess, port: number, token: string): Running => ({
  port,
  pid: child.pid ?? NaN,
  token,
  async [Symbol.asyncDispose]() {
    child.kill('SIGTERM');
    await once(child, 'exit');
  },
});

/** A minimal server. The path says how many bytes it sends. */
function serveBare(): void {
  const bodies = new Map<string, string>();
  const server = createServer((request, response) => {
    const { url = '', method } = request;
    const answer = (): void => {
      const known = bodies.get(url);
      const body = known ?? JSON.stringify({ hits: 'x'.repeat(Number(url.split('/')[1]) - 11) });
      if (known === undefined) bodies.set(url, body);
      response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', `${Buffer.byteLength(body)}`]);
      response.end(body);
    };
    if (method === 'GET') return answer();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      JSON.parse(Buffer.concat(chunks).toString());
      answer();
    });
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
}

async function built(program: Running): Promise<void> {
  await using clients = await connectAll(program, 'REST', requestsOf('REST', program, ['the']));
  for (let run = await clients.run(first(AT_ONCE)); run.partial > 0; run = await clients.run(first(AT_ONCE)));
}

type Requests = readonly ((session: string) => Buffer)[];

function requestsOf(through: Wire, { port, token }: Running, queries: readonly string[]): Requests {
  const host = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n`;
  return queries.map((query, id) => {
    if (through === 'REST') {
      const text = `GET ${API}/memory/search?q=${encodeURIComponent(query)} HTTP/1.1\r\n${host}\r\n`;
      const bytes = Buffer.from(text);
      return () => bytes;
    }
    const body = rpc(id, 'tools/call', { name: 'query', arguments: { query } });
    return (session) => post(`${API}/mcp/qmd`, `${host}Mcp-Session-Id: ${session}\r\n`, body);
  });
}

function bareRequests({ port }: Running, through: Wire, size: number, queries: readonly string[]): Requests {
  const host = `Host: 127.0.0.1:${port}\r\n`;
  return queries.map((query, id) => {
    const bytes =
      through === 'REST'
        ? Buffer.from(`GET /${size} HTTP/1.1\r\n${host}\r\n`)
        : post(`/${size}`, host, rpc(id, 'tools/call', { name: 'query', arguments: { query } }));
    return () => bytes;
  });
}

const healthChecks = ({ port, token }: Running): Requests => {
  const bytes = Buffer.from(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  return [() => bytes];
};

const rpc = (id: number, method: string, params: object): string => JSON.stringify({ jsonrpc: '2.0', id, method, params });

const post = (path: string, headers: string, body: string): Buffer =>
  Buffer.from(
    `POST ${path} HTTP/1.1\r\n${headers}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );

interface Run {
  /** Milliseconds of each search, in the order in which they were answered. */
  readonly times: readonly number[];
  /** When each of them was sent, on the clock of `performance`. */
  readonly sent: readonly number[];
  readonly bytes: number;
  readonly partial: number;
  readonly ms: number;
}

interface Clients extends AsyncDisposable {
  /** Sends requests until `isEnough`, which is asked before each request. */
  run(isEnough: () => boolean): Promise<Run>;
}

/** Is enough after this many requests. */
function first(count: number): () => boolean {
  let left = count;
  return () => (left -= 1) < 0;
}

/** Clients in this process. They read only the lengths of responses, so that they take less time than the server. */
async function connectAll(server: Running, through: Wire, requests: Requests, count = AT_ONCE): Promise<Clients> {
  const clients: RawClient[] = [];
  for (let opened = 0; opened < count; opened += 1) {
    const client = new RawClient(connect({ port: server.port, host: '127.0.0.1', noDelay: true }));
    clients.push(client);
    if (through === 'QMD') await client.open(server);
  }
  let next = 0;
  return {
    async run(isEnough) {
      const times: number[] = [];
      const sent: number[] = [];
      let [bytes, partial] = [0, 0];
      const start = performance.now();
      const one = async (client: RawClient): Promise<void> => {
        while (!isEnough()) {
          const request = requests[next % requests.length];
          if (!request) return;
          next += 1;
          const at = performance.now();
          await client.ask(request(client.session));
          sent.push(at);
          times.push(performance.now() - at);
          bytes += client.bytes;
          if (client.isPartial) partial += 1;
        }
      };
      await Promise.all(clients.map(one));
      return { times, sent, bytes, partial, ms: performance.now() - start };
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.close();
    },
  };
}

const HEAD_END = '\r\n\r\n';
const PARTIAL = Buffer.from('"partial":true}');

class RawClient {
  session = '';
  bytes = 0;
  isPartial = false;
  readonly #socket: Socket;
  #expected = -1;
  #received = 0;
  #head = '';
  #done: (() => void) | undefined;
  #failed: ((error: Error) => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('data', (chunk) => this.#onData(chunk));
    socket.on('error', (error) => this.#failed?.(error));
    socket.on('close', () => this.#failed?.(new Error('The server closed the connection.')));
  }

  /** Opens a session of the search server. */
  async open({ port, token }: Running): Promise<void> {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
    const headers = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n`;
    await this.ask(post(`${API}/mcp/qmd`, headers, rpc(0, 'initialize', params)));
    this.session = /mcp-session-id: (\S+)/i.exec(this.#head)?.[1] ?? '';
  }

  ask(bytes: Buffer): Promise<void> {
    this.#expected = -1;
    this.#received = 0;
    this.#socket.write(bytes);
    return new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#failed = reject;
    });
  }

  close(): void {
    this.#failed = undefined;
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    if (this.#expected === -1) {
      const end = chunk.indexOf(HEAD_END);
      if (end === -1) throw new Error('The head of the response is in two parts.');
      this.#head = chunk.toString('latin1', 0, end);
      if (!this.#head.startsWith('HTTP/1.1 200')) throw new Error(chunk.toString());
      this.bytes = Number(/content-length: (\d+)/i.exec(this.#head)?.[1]);
      this.#expected = end + HEAD_END.length + this.bytes;
    }
    this.#received += chunk.length;
    if (this.#received < this.#expected) return;
    this.isPartial = chunk.subarray(-PARTIAL.length).equals(PARTIAL);
    this.#done?.();
  }
}

/** Seconds of CPU time of the process, or 0 where the system does not report it. */
function processorTime(pid: number): number {
  const file = `/proc/${pid}/schedstat`;
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e9 : 0;
}

if (import.meta.main) {
  if (process.argv[2] === 'bare') serveBare();
  else if (process.argv[2] === 'rates') process.exitCode = report(await rates()) ? 0 : 1;
  else if (process.argv[2] === 'slowest') process.exitCode = report(await slowest()) ? 0 : 1;
  else process.exitCode = report(await wire()) ? 0 : 1;
}
