import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Caller } from '../src/core/access/caller.ts';
import { TokenRegistry } from '../src/core/access/token-registry.ts';
import { createCore } from '../src/core/operations/create-core.ts';
import type { Perform } from '../src/core/operations/perform.ts';
import { Finder } from '../src/core/search/finder.ts';
import { systemClock } from '../src/core/time/clock.ts';
import { startListener } from '../src/listeners/listener.ts';
import { aFact, type Floor, floor, ours } from './memory.ts';
import { median, quantile, report, type Result } from './report.ts';

const FACTS = 100_000;
/** Every store creates a new fact. */
const ROOM = { facts: 10_000_000, bytes: 2 ** 40 };
const API = '/api/v1';
const WARM_UP = 500;
const TURNS = 1000;
/** In every tenth fact. */
const COMMON = 'cellar';
/** A word that only one fact contains: its shuffled number, spelled in letters. */
const own = (index: number): string =>
  (Math.imul(index + 1, 0x9e3779b1) >>> 0).toString(26).replaceAll(/\d/g, (digit) => 'zyxwvutsrq'.charAt(Number(digit)));
/** How many stores or pages of long values one client keeps in flight while others send requests. */
const FLOOD = 32;
const FLOODS = 5;
const LONG_PAGE = `${API}/memory/facts?values=1&limit=200`;

/**
 * Compares REST with bare node:http that does one raw durable insert or sends a prepared response: in the same run, with the same
 * bytes, requested alternately with `fetch`, as agents' libraries do.
 */
export async function listener(): Promise<Result[]> {
  await using mine = await ours(FACTS, {
    quota: ROOM,
    textOf: (index) => `${index % 10 === 0 ? `${COMMON} ` : ''}${own(index)} ${aFact(index).value}`,
  });
  using raw = floor(FACTS);
  const { store } = mine;
  await using tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  using finder = new Finder(store);
  // Build the index, as the program does at its start. Later stores update it.
  await finder.prepare();
  const { perform } = createCore({ store, tokens, finder, clock: systemClock });
  const atHand = new Map<string, unknown>();
  const remembered = (async (caller: Caller, name: string, input: unknown) => {
    const known = atHand.get(name) ?? (await perform(caller, name, input));
    atHand.set(name, known);
    return known;
  }) as Perform;
  const token = tokens.ownerToken();
  await using whole = await serve(perform, tokens);
  await using alone = await serve(remembered, tokens);
  await using bare = await serveBare(raw);
  const { token: greedy } = await tokens.mint({
    name: 'greedy client',
    client: 'bench',
    subject: 'greedy',
    scopes: ['memory:read', 'memory:write'],
    days: 1,
  });
  const ask = async (url: string, path: string, body?: string, bearer = token): Promise<string> => {
    const answer = await fetch(url + path, {
      headers: { Authorization: `Bearer ${bearer}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      ...(body !== undefined && { method: 'POST', body }),
    });
    if (answer.status !== 200) throw new Error(await answer.text());
    return await answer.text();
  };
  let index = FACTS;
  const aBody = (): string => {
    const { key, value, category, tags } = aFact((index += 1));
    return JSON.stringify({ key, value, category, tags });
  };

  for (let long = 0; long < 50; long += 1)
    await ask(whole.url, `${API}/memory/store`, JSON.stringify({ key: `long/${long}`, value: 'words '.repeat(10_000) }), greedy);

  const latency = async (
    what: string,
    path: string,
    most: number | undefined,
    body?: () => string,
    url = whole.url,
  ): Promise<Result> => {
    bare.answer = await ask(url, path, body?.());
    const times = { bare: [] as number[], ours: [] as number[] };
    for (let turn = -WARM_UP; turn < TURNS; turn += 1) {
      const bareTook = await timed(() => ask(bare.url, path, body?.()));
      const oursTook = await timed(() => ask(url, path, body?.()));
      if (turn < 0) continue;
      times.bare.push(bareTook);
      times.ours.push(oursTook);
    }
    const [one, other] = [median(times.bare), median(times.ours)];
    return {
      what: `${what} over REST, p50`,
      figure: other / one,
      unit: 'times bare node:http',
      ...(most !== undefined && { bar: { atMost: most } }),
      from: `${(1000 * one).toFixed(0)} µs bare, ${(1000 * other).toFixed(0)} µs ours`,
    };
  };

  const together = async (
    what: string,
    { path, atOnce, atLeast, beside }: { path: string; atOnce: number; atLeast: number; beside: string },
    body?: () => string,
  ): Promise<Result> => {
    bare.answer = await ask(whole.url, path, body?.());
    const burst = (url: string) => timed(() => Promise.all(Array.from({ length: atOnce }, () => ask(url, path, body?.()))));
    const times = { bare: [] as number[], ours: [] as number[] };
    for (let turn = 0; turn < 100; turn += 1) {
      times.bare.push(await burst(bare.url));
      times.ours.push(await burst(whole.url));
    }
    const [one, other] = [median(times.bare), median(times.ours)];
    const rate = (ms: number): string => `${((1000 * atOnce) / ms).toFixed(0)} a second`;
    return {
      what: `${what} over REST, ${atOnce} at a time`,
      figure: one / other,
      unit: `of bare node:http${beside}`,
      bar: { atLeast },
      from: `${rate(one)} bare, ${rate(other)} ours`,
    };
  };

  /** Measures the p99 latency of other clients while one client stores or reads as fast as it can. */
  const flooded = async (what: 'stores' | 'pages', path: string): Promise<Result> => {
    bare.answer = await ask(whole.url, path);
    bare.page = await ask(whole.url, LONG_PAGE, undefined, greedy);
    const p99 = async (url: string): Promise<number> => {
      const times: number[] = [];
      for (let turn = 0; turn < TURNS; turn += 1) times.push(await timed(() => ask(url, path)));
      return quantile(times, 0.99);
    };
    const under = async (url: string): Promise<number> => {
      const flooder = fork(import.meta.filename, [what, url, greedy, `${(index += 1_000_000)}`]);
      await once(flooder, 'message');
      const took = await p99(url);
      flooder.kill();
      await once(flooder, 'exit');
      return took;
    };
    const calm = await p99(whole.url);
    // Three programs share two cores, so a single round would measure the scheduler. Take several.
    const times = { bare: [] as number[], ours: [] as number[] };
    for (let turn = 0; turn < FLOODS; turn += 1) {
      times.bare.push(await under(bare.url));
      times.ours.push(await under(whole.url));
    }
    const [one, other] = [median(times.bare), median(times.ours)];
    return {
      what: `recall while another subject keeps ${FLOOD} ${what} under way, p99`,
      figure: other / one,
      unit: what === 'stores' ? 'times bare node:http with raw SQLite' : 'times bare node:http with the same bytes',
      bar: { atMost: 3 },
      from: `${one.toFixed(1)} ms bare, ${other.toFixed(1)} ms ours, ${calm.toFixed(1)} ms ours without load`,
    };
  };

  const foundAtOnce = async (): Promise<Result> => {
    let found = 0;
    for (let turn = 0; turn < TURNS; turn += 1) {
      const word = `zebra${turn}quux`;
      await ask(whole.url, `${API}/memory/store`, JSON.stringify({ key: `found/${turn}`, value: `They said ${word}.` }));
      const { hits } = JSON.parse(await ask(whole.url, `${API}/memory/search?q=${word}`)) as { hits: { key: string }[] };
      if (hits[0]?.key === `found/${turn}`) found += 1;
    }
    return {
      what: 'stored facts that the next search finds',
      figure: found / TURNS,
      unit: 'of all',
      bar: { atLeast: 1 },
      from: `${found} of ${TURNS}`,
    };
  };

  const fact = `${API}/memory/fact?key=preferences%2Farea%2F5000`;
  const rare = `${API}/memory/search?q=${own(54_321)}`;
  return [
    await latency('store', `${API}/memory/store`, 1.5, aBody),
    await together('store', { path: `${API}/memory/store`, atOnce: 32, atLeast: 0.6, beside: ' with raw SQLite' }, aBody),
    await latency('recall', fact, 1.5),
    await latency(`my-memory, of ${FACTS} facts,`, `${API}/memory`, 1.3),
    await latency('page of 50', `${API}/memory/facts?limit=50`, 4),
    await latency('search for a word of one fact', rare, 1.5),
    await latency('search for a word of every tenth fact', `${API}/memory/search?q=${COMMON}`, 4),
    await together('search', { path: rare, atOnce: 8, atLeast: 0.7, beside: '' }),
    await flooded('stores', fact),
    await flooded('pages', fact),
    await foundAtOnce(),
    // The cost of the listener alone: guard, token, route, limits.
    await latency('prepared response', fact, undefined, undefined, alone.url),
  ];
}

async function timed(step: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await step();
  return performance.now() - start;
}

async function serve(perform: Perform, tokens: TokenRegistry): Promise<{ url: string } & AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), 'helmdeck-bench-listener-'));
  const served = await startListener({
    perform,
    tokens,
    onChange: () => ({ [Symbol.dispose]: () => undefined }),
    folder,
    address: '127.0.0.1:0',
    version: 'bench',
    clock: systemClock,
  });
  return {
    url: served.url,
    async [Symbol.asyncDispose]() {
      await served.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** A minimal server with the same responses. */
async function serveBare(raw: Floor): Promise<{ url: string; answer: string; page: string } & AsyncDisposable> {
  let index = 2 * FACTS;
  const server = createServer((request, response) => {
    const answer = (): void => {
      const text = request.url === LONG_PAGE ? bare.page : bare.answer;
      response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', `${Buffer.byteLength(text)}`]);
      response.end(text);
    };
    if (request.method === 'GET') {
      answer();
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      JSON.parse(Buffer.concat(chunks).toString());
      raw.insert((index += 1));
      answer();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const bare = {
    url: `http://127.0.0.1:${port}`,
    answer: '',
    page: '',
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
  return bare;
}

/** A client that sends requests without pause, in a separate process. It reports its start and runs until it is killed. */
async function flood(what: string, url: string, token: string, from: number): Promise<void> {
  let index = from;
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const read = async (): Promise<void> => {
    await (await fetch(url + LONG_PAGE, { headers })).text();
  };
  const store = async (): Promise<void> => {
    const { key, value, category, tags } = aFact((index += 1));
    const body = JSON.stringify({ key, value, category, tags });
    await (await fetch(`${url}${API}/memory/store`, { method: 'POST', headers, body })).text();
  };
  const ask = what === 'pages' ? read : store;
  await ask();
  process.send?.('under way');
  await Promise.all(
    Array.from({ length: FLOOD }, async () => {
      for (;;) await ask();
    }),
  );
}

if (import.meta.main) {
  const [what, url = '', token = '', from] = process.argv.slice(2);
  if (what !== undefined) await flood(what, url, token, Number(from));
  else process.exitCode = report(await listener()) ? 0 : 1;
}
