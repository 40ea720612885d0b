import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { aFact, floor } from './memory.ts';
import { median, quantile, report, type Result } from './report.ts';
import { served } from './served.ts';

/** Every store creates a new fact. */
const ROOM = { facts: 10_000_000, bytes: 2 ** 40 };
const FACTS = 1000;
const AT_ONCE = 32;
/** Stores before the measurement. They fill the activity record, so that later stores also evict rows. */
const WARM_UP = 12_000;
const ROUNDS = 20;
const ROUND_MS = 300;
/** A response of the length that a store gets. */
const ANSWER = JSON.stringify({
  key: 'preferences/area/1000000',
  category: 'user_facts',
  tags: ['frontend'],
  status: 'created',
  expires_at: '2027-02-18T01:20:00.000Z',
});

type What = 'bare' | 'raw' | 'ours';

interface Started {
  readonly port: number;
  readonly token: string;
}

interface Server extends Started {
  readonly child: ChildProcess;
  readonly rates: number[];
  readonly times: number[];
}

/**
 * Measures durable stores over REST by 32 clients, each on its own connection, which send their next store when the last one is
 * answered. Alternates with two floors: node:http that only parses the body, and node:http that writes the same rows with bare
 * SQLite, all stores of one turn in one commit. Each server is a process of its own.
 */
export async function stores(): Promise<Result[]> {
  const [bare, raw, ours] = await Promise.all((['bare', 'raw', 'ours'] as const).map(start));
  if (!bare || !raw || !ours) throw new Error('A server did not start.');
  await burst(ours, { stores: WARM_UP });
  for (const server of [bare, raw]) await burst(server, { stores: AT_ONCE * 50 });
  for (const server of [bare, raw, ours]) server.times.length = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const server of [bare, raw, ours]) server.rates.push(await burst(server, { ms: ROUND_MS }));
  }
  for (const { child } of [bare, raw, ours]) {
    child.disconnect();
    await once(child, 'exit');
  }
  const [most, plain, mine] = [median(bare.rates), median(raw.rates), median(ours.rates)];
  const from =
    `${most.toFixed(0)} a second bare, ${plain.toFixed(0)} with raw SQLite, ${mine.toFixed(0)} ours; ` +
    `ours p50 ${median(ours.times).toFixed(1)} ms, p99 ${quantile(ours.times, 0.99).toFixed(1)} ms`;
  const what = `durable stores over REST, ${AT_ONCE} connections`;
  return [
    { what, figure: mine / most, unit: 'of bare node:http', bar: { atLeast: 0.25 }, from },
    { what, figure: mine / plain, unit: 'of bare node:http with raw SQLite', from },
  ];
}

async function start(what: What): Promise<Server> {
  const child = fork(import.meta.filename, [what]);
  const [started] = (await once(child, 'message')) as [Started];
  return { ...started, child, rates: [], times: [] };
}

let index = 1_000_000;

function requestTo({ port, token }: Started): string {
  const { key, value, category, tags } = aFact((index += 1));
  const body = JSON.stringify({ key, value, category, tags });
  const headers = [
    'POST /api/v1/memory/store HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return `${headers.join('\r\n')}\r\n\r\n${body}`;
}

/** Sends stores for some time or up to a number. Returns the stores per second. */
async function burst(server: Server, { ms = Infinity, stores: most = Infinity }): Promise<number> {
  const sockets = await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      const socket = connect(server.port, '127.0.0.1');
      await once(socket, 'connect');
      return socket.setNoDelay(true);
    }),
  );
  let sent = 0;
  const began = performance.now();
  const isOver = (): boolean => performance.now() - began >= ms || sent >= most;
  const send = (socket: Socket): void => {
    sent += 1;
    socket.write(requestTo(server));
  };
  await Promise.all(sockets.map((socket) => repeat(socket, server.times, { isOver, send })));
  const seconds = (performance.now() - began) / 1000;
  for (const socket of sockets) socket.destroy();
  return sent / seconds;
}

function repeat(
  socket: Socket,
  times: number[],
  { isOver, send }: { isOver: () => boolean; send: (socket: Socket) => void },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let sentAt = performance.now();
  // Each of these short responses arrives in one piece.
  socket.on('data', (bytes) => {
    const response = bytes.toString();
    if (!response.startsWith('HTTP/1.1 200')) return reject(new Error(response));
    times.push(performance.now() - sentAt);
    if (isOver()) return resolve();
    sentAt = performance.now();
    send(socket);
  });
  socket.once('error', reject);
  send(socket);
  return promise;
}

async function serveOurs(): Promise<Started & AsyncDisposable> {
  const mine = await served(FACTS, { quota: ROOM });
  const { token } = await mine.tokens.mint({ name: 'bench', client: 'bench', subject: 'me', scopes: ['memory:write'], days: 1 });
  return { port: mine.port, token, [Symbol.asyncDispose]: () => mine[Symbol.asyncDispose]() };
}

async function serveFloor(what: 'bare' | 'raw'): Promise<Started & AsyncDisposable> {
  const raw = what === 'raw' ? floor(FACTS) : undefined;
  let next = 2 * FACTS;
  let waiting: ServerResponse[] = [];
  const answer = (response: ServerResponse): void => {
    response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', `${Buffer.byteLength(ANSWER)}`]);
    response.end(ANSWER);
  };
  const commit = (): void => {
    const responses = waiting;
    waiting = [];
    // A store writes a fact and its activity row.
    raw?.batch(next, 2 * responses.length);
    next += 2 * responses.length;
    for (const response of responses) answer(response);
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      JSON.parse(Buffer.concat(chunks).toString());
      if (!raw) return answer(response);
      if (waiting.push(response) === 1) setImmediate(commit);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    token: 'none',
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      raw?.[Symbol.dispose]();
    },
  };
}

if (import.meta.main) {
  const [what] = process.argv.slice(2);
  if (what === undefined) process.exitCode = report(await stores()) ? 0 : 1;
  else {
    const server = await (what === 'ours' ? serveOurs() : serveFloor(what as 'bare' | 'raw'));
    process.once('disconnect', () => void server[Symbol.asyncDispose]());
    process.send?.({ port: server.port, token: server.token });
  }
}
