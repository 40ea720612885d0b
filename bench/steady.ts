import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { aFact } from './memory.ts';
import { median, report, type Result } from './report.ts';
import { served } from './served.ts';

const WARM_UP = 20_000;
const REQUESTS = 100_000;
const IN_ONE_GO = 1000;
const AT_ONCE = 8;
/** Few enough to fill their history during the warm-up; prime, so that each key meets every kind of request. */
const KEYS = 151;
const API = '/api/v1';
const MCP = `${API}/mcp`;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Expected failure statuses, such as 404 after a forget. */
  readonly expected: readonly number[];
}

interface Round {
  readonly port: number;
  readonly asked: readonly Asked[];
}

/** Measures leaks: memory and handles after many requests of every kind, including refused ones, over REST and MCP in one process. */
export async function steady(): Promise<Result[]> {
  await using mine = await served(KEYS);
  const { tokens, url, port } = mine;
  const scopes = ['memory:read' as const, 'memory:write' as const];
  const { token } = await tokens.mint({ name: 'bench', client: 'claude-code', subject: 'me', scopes, days: 1 });
  const session = await sessionAt(url, token);
  const asker = fork(import.meta.filename, ['client']);
  const go = async (from: number): Promise<void> => {
    const asked = Array.from({ length: IN_ONE_GO }, (_, turn) => mixed(from + turn, token, session));
    await send(asker, { port, asked });
  };

  const samples: number[] = [];
  for (let done = 0; done < WARM_UP; done += IN_ONE_GO) {
    await go(done);
    samples.push(process.memoryUsage.rss());
  }
  const early = { rss: median(samples.slice(-SAMPLES)), heap: heapNow(), handles: handlesNow() };
  for (let done = 0; done < REQUESTS; done += IN_ONE_GO) {
    await go(WARM_UP + done);
    samples.push(process.memoryUsage.rss());
  }
  const late = { rss: median(samples.slice(-SAMPLES)), heap: heapNow(), handles: handlesNow() };
  asker.disconnect();
  return [
    {
      what: `memory after ${REQUESTS} mixed requests`,
      figure: late.rss / early.rss,
      unit: `times that after ${WARM_UP}`,
      bar: { atMost: 1.1 },
      from: `${mib(early.rss)}, then ${mib(late.rss)}`,
    },
    {
      what: 'heap leaked by each mixed request',
      figure: (late.heap - early.heap) / REQUESTS,
      unit: 'bytes',
      bar: { atMost: 10 },
      from: `${mib(early.heap)}, then ${mib(late.heap)}, collected`,
    },
    {
      what: 'handles and timers leaked by mixed requests',
      figure: late.handles - early.handles,
      unit: 'more than before',
      bar: { atMost: 0 },
      from: `${early.handles}, then ${late.handles}`,
    },
  ];
}

/** Enough samples that a garbage collection during one does not matter. */
const SAMPLES = 10;

const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapNow(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const handlesNow = (): number => process.getActiveResourcesInfo().length;

/** Returns the request for this turn: a mix of what agents send in a day, and of invalid requests. */
function mixed(turn: number, token: string, session: Readonly<Record<string, string>>): Asked {
  const { key, value, category, tags } = aFact(turn % KEYS);
  const fact = { key, value: `${turn} ${value}`, category, tags };
  const bearer = { Authorization: `Bearer ${token}` };
  const get = (path: string, ...more: number[]): Asked => ({
    method: 'GET',
    path: API + path,
    headers: bearer,
    expected: [200, ...more],
  });
  const post = (path: string, body: object): Asked => ({
    method: 'POST',
    path: API + path,
    headers: { ...bearer, ...JSON_TYPE },
    body: JSON.stringify(body),
    expected: [200],
  });
  const call = (name: string, given: object): Asked => ({
    method: 'POST',
    path: MCP,
    headers: { ...bearer, ...JSON_TYPE, ...session },
    body: JSON.stringify({ jsonrpc: '2.0', id: turn, method: 'tools/call', params: { name, arguments: given } }),
    expected: [200],
  });
  const refused = (asked: Asked, status: number, headers: Readonly<Record<string, string>> = {}): Asked => ({
    ...asked,
    headers: { ...asked.headers, ...headers },
    expected: [status],
  });
  const sorts: readonly (() => Asked)[] = [
    () => post('/memory/store', fact),
    () => get(`/memory/fact?key=${encodeURIComponent(key)}`, 404),
    () => call('memory_recall', { key }),
    () => get('/memory/search?q=the+owner+said'),
    () => get('/memory/facts?limit=20&values=1'),
    () => call('memory_store', fact),
    () => get(`/memory/fact?key=${encodeURIComponent(key)}`, 404),
    () => call('memory_search', { query: `words ${turn}` }),
    () => get('/memory'),
    () => post('/memory/store', { ...fact, tags: ['another'] }),
    () => call('memory_history', { key }),
    () => get('/memory/context'),
    () => (turn % 5 === 0 ? post('/memory/forget', { scope: `key:${key}` }) : call('memory_forget', { scope: `key:${key}` })),
    () => refused(get('/memory'), 401, { Authorization: `Bearer ${turn}.${turn}.${turn}` }),
    () => refused(get('/memory'), 403, { Host: `attacker-${turn}.example` }),
    () => refused(get(`/nowhere/${turn}`), 404),
    () => refused(post('/memory/store', { ...fact, ttl_seconds: turn % 3600 }), 400),
    () => refused(post('/memory/store', fact), 415, { 'Content-Type': 'text/plain' }),
    () => refused(call('memory_recall', { key }), 404, { 'Mcp-Session-Id': `session-${turn}` }),
    () => call(`memory_${turn}`, {}),
  ];
  const sort = sorts[turn % sorts.length];
  if (!sort) throw new Error('Every turn needs a request.');
  return sort();
}

const JSON_TYPE = { 'Content-Type': 'application/json' };

async function send(asker: ChildProcess, round: Round): Promise<void> {
  asker.send(round);
  // Only our own child process sends on this channel.
  const [trouble] = (await once(asker, 'message')) as [string];
  if (trouble !== '') throw new Error(trouble);
}

async function sessionAt(url: string, token: string): Promise<Record<string, string>> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const answer = await fetch(url + MCP, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, ...JSON_TYPE },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  });
  await answer.text();
  return { 'Mcp-Session-Id': answer.headers.get('mcp-session-id') ?? '' };
}

/** The client, in a separate process, so that its memory is not counted. */
function client(): void {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const ask = (port: number, { method, path, headers, body, expected }: Asked): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const options = { host: '127.0.0.1', port, path, method, headers: { ...headers, ...length }, agent };
    request(options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => {
        if (expected.includes(response.statusCode ?? 0)) resolve();
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
      });
    })
      .on('error', reject)
      .end(body);
    return promise;
  };
  process.on('message', ({ port, asked }: Round) => {
    const left = [...asked];
    const one = async (): Promise<void> => {
      for (let next = left.pop(); next; next = left.pop()) await ask(port, next);
    };
    Promise.all(Array.from({ length: AT_ONCE }, one)).then(
      () => process.send?.(''),
      (error: unknown) => process.send?.(String(error)),
    );
  });
}

if (import.meta.main) {
  if (process.argv[2] === 'client') client();
  else process.exitCode = report(await steady()) ? 0 : 1;
}
