import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { aFact } from './memory.ts';
import { median, report, type Result } from './report.ts';
import { served } from './served.ts';

const FACTS = 5000;
/** Every store creates a new fact. */
const ROOM = { facts: 1_000_000, bytes: 2 ** 40 };
const ROUNDS = 20;
const CALLS = 200_000;
const WARM_UP = 40_000;
const IN_ONE_GO = 2000;

interface Door {
  readonly port: number;
  readonly path: string;
  readonly token: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Round extends Door {
  readonly atOnce: number;
  readonly bodies: readonly string[];
}

interface Took {
  readonly took: number;
  readonly times: readonly number[];
}

const MCP = '/api/v1/mcp';
const HEADERS = { Accept: 'application/json, text/event-stream' };

/** Compares an MCP call with the same call over REST, and with an empty call to the SDK's own server. */
export async function mcp(): Promise<Result[]> {
  await using mine = await served(FACTS, { quota: ROOM });
  const { tokens, port } = mine;
  const scopes = ['memory:read' as const, 'memory:write' as const];
  const { token } = await tokens.mint({ name: 'bench', client: 'claude-code', subject: 'me', scopes, days: 1 });
  const asker = fork(import.meta.filename, ['client']);
  await using theirs = await emptyServer();

  const rest: Door = { port, path: '/api/v1/memory/store', token };
  const session: Door = { port, path: MCP, token, headers: await sessionAt(port, MCP, token) };
  const empty: Door = { port: theirs.port, path: '/mcp', token, headers: await sessionAt(theirs.port, '/mcp', token) };
  let index = FACTS;
  const aStore = () => {
    const { key, value, category, tags } = aFact((index += 1));
    return { key, value, category, tags };
  };
  const storing = (): string => JSON.stringify(aStore());
  const calling = (): string => call('memory_store', aStore());
  const recalling = (): string => call('memory_recall', { key: aFact((index += 1) % FACTS).key });
  const nothing = (): string => call('nothing', aStore());

  const [overRest, overMcp] = await inTurns(asker, [rest, session], [storing, calling], 50, 1);
  const [nothings, stores] = await inTurns(asker, [empty, session], [nothing, calling], 400, 8);
  const [nothingsAgain, recalls] = await inTurns(asker, [empty, session], [nothing, recalling], 400, 8);
  const [before, after] = await longSession(asker, session);
  asker.disconnect();
  return [
    beside(
      'store over MCP, p50',
      p50(overMcp) / p50(overRest),
      'times REST',
      { atMost: 1.3 },
      `${p50(overRest).toFixed(0)} µs REST, ${p50(overMcp).toFixed(0)} µs MCP`,
    ),
    beside(
      'durable stores over MCP, 8 at a time',
      rate(stores) / rate(nothings),
      "of the SDK's empty calls",
      { atLeast: 1 },
      `${rate(nothings).toFixed(0)} a second from the SDK's server, ${rate(stores).toFixed(0)} ours`,
    ),
    beside(
      'recalls over MCP, 8 at a time',
      rate(recalls) / rate(nothingsAgain),
      "of the SDK's empty calls",
      { atLeast: 1 },
      `${rate(nothingsAgain).toFixed(0)} a second from the SDK's server, ${rate(recalls).toFixed(0)} ours`,
    ),
    beside(
      `memory after ${CALLS} calls in one session`,
      after / before,
      `times that after ${WARM_UP}`,
      { atMost: 1.1 },
      `${(before / 2 ** 20).toFixed(0)} MiB, then ${(after / 2 ** 20).toFixed(0)} MiB`,
    ),
  ];
}

const beside = (what: string, figure: number, unit: string, bar: NonNullable<Result['bar']>, from: string): Result => ({
  what,
  figure,
  unit,
  bar,
  from,
});

const call = (name: string, given: object): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } });

const p50 = (rounds: readonly Took[]): number => 1000 * median(rounds.flatMap(({ times }) => times));

const rate = (rounds: readonly Took[]): number => median(rounds.map(({ took, times }) => (1000 * times.length) / took));

async function send(asker: ChildProcess, round: Round): Promise<Took> {
  asker.send(round);
  // Only our own child process sends on this channel.
  return ((await once(asker, 'message')) as [Took])[0];
}

/** Alternates between both, so that other load on the machine affects both equally. */
async function inTurns(
  asker: ChildProcess,
  doors: readonly [Door, Door],
  bodies: readonly [() => string, () => string],
  count: number,
  atOnce: number,
): Promise<[Took[], Took[]]> {
  const all: [Took[], Took[]] = [[], []];
  for (let turn = 0; turn < ROUNDS + 2; turn += 1) {
    for (const side of [0, 1] as const) {
      const took = await send(asker, { ...doors[side], atOnce, bodies: Array.from({ length: count }, bodies[side]) });
      // The first rounds warm up both.
      if (turn > 1) all[side].push(took);
    }
  }
  return all;
}

/** Resident memory early and late in a session that mostly reads and sometimes writes. */
async function longSession(asker: ChildProcess, door: Door): Promise<[number, number]> {
  const samples: { readonly calls: number; readonly bytes: number }[] = [];
  const body = (turn: number): string => {
    const { key, value, category, tags } = aFact(turn % 1000);
    return turn % 10 === 0 ? call('memory_store', { key, value, category, tags }) : call('memory_recall', { key });
  };
  for (let calls = 0; calls < CALLS; calls += IN_ONE_GO) {
    await send(asker, { ...door, atOnce: 4, bodies: Array.from({ length: IN_ONE_GO }, (_, turn) => body(calls + turn)) });
    samples.push({ calls, bytes: process.memoryUsage.rss() });
  }
  const between = (from: number, to: number): number =>
    median(samples.filter(({ calls }) => calls >= from && calls < to).map(({ bytes }) => bytes));
  return [between(WARM_UP / 2, WARM_UP), between(CALLS - WARM_UP / 2, CALLS)];
}

async function sessionAt(port: number, path: string, token: string): Promise<Record<string, string>> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { ...HEADERS, Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  });
  await answer.text();
  return { ...HEADERS, 'Mcp-Session-Id': answer.headers.get('mcp-session-id') ?? '' };
}

/** The SDK's server on the SDK's transport with one empty tool. */
async function emptyServer(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = new Server({ name: 'empty', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler(CallToolRequestSchema, () => ({ content: [{ type: 'text', text: '{}' }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
  await server.connect(transport);
  const http = createServer((asked, response) => void transport.handleRequest(asked, response)).listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    port: (http.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await server.close();
      http.close();
      http.closeAllConnections();
    },
  };
}

/** An agent in a separate process: Node's HTTP client with keep-alive connections. */
function client(): void {
  const agent = new Agent({ keepAlive: true });
  const ask = ({ port, path, token, headers: more }: Door, body: string): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const headers = {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      ...more,
    };
    request({ host: '127.0.0.1', port, path, method: 'POST', headers, agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => (response.statusCode === 200 && !text.includes('isError') ? resolve() : reject(new Error(text))));
    })
      .on('error', reject)
      .end(body);
    return promise;
  };
  process.on('message', (round: Round) => {
    void (async () => {
      const bodies = [...round.bodies];
      const times: number[] = [];
      const start = performance.now();
      await Promise.all(
        Array.from({ length: round.atOnce }, async () => {
          for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
            const asked = performance.now();
            await ask(round, body);
            times.push(performance.now() - asked);
          }
        }),
      );
      process.send?.({ took: performance.now() - start, times });
    })();
  });
}

if (import.meta.main) {
  if (process.argv[2] === 'client') client();
  else process.exitCode = report(await mcp()) ? 0 : 1;
}
