import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Caller } from '../src/core/caller.ts';
import { systemClock } from '../src/core/clock.ts';
import { createMemory } from '../src/core/create-memory.ts';
import { Finder } from '../src/core/finder.ts';
import { createPerform, type Perform } from '../src/core/perform.ts';
import { Tokens } from '../src/core/tokens.ts';
import { WriteLimit } from '../src/core/write-limit.ts';
import { startListener } from '../src/listeners/server.ts';
import { aFact, type Floor, floor, ours } from './memory.ts';
import { median, report, type Result } from './report.ts';

const FACTS = 10_000;
const API = '/api/v1';

/**
 * What REST costs over bare node:http that does one raw durable insert, or answers what it has at hand: in the same run, with
 * the same bytes, asked in turn with `fetch`, as agents' libraries ask.
 */
export async function listener(): Promise<Result[]> {
  await using mine = await ours(FACTS);
  using raw = floor(FACTS);
  const { store } = mine;
  await using tokens = await Tokens.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  using finder = new Finder(store);
  const perform = createPerform(createMemory({ store, tokens, finder, secrets: 'refuse' }), new WriteLimit(systemClock));
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
  const ask = async (url: string, path: string, body?: string): Promise<string> => {
    const answer = await fetch(url + path, {
      headers: { Authorization: `Bearer ${token}`, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
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

  const latency = async (
    what: string,
    path: string,
    most: number | undefined,
    body?: () => string,
    url = whole.url,
  ): Promise<Result> => {
    bare.answer = await ask(url, path, body?.());
    const times = { bare: [] as number[], ours: [] as number[] };
    for (let turn = 0; turn < 1000; turn += 1) {
      times.bare.push(await timed(() => ask(bare.url, path, body?.())));
      times.ours.push(await timed(() => ask(url, path, body?.())));
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

  const together = async (): Promise<Result> => {
    const path = `${API}/memory/store`;
    const burst = (url: string) => timed(() => Promise.all(Array.from({ length: 32 }, () => ask(url, path, aBody()))));
    const times = { bare: [] as number[], ours: [] as number[] };
    for (let turn = 0; turn < 100; turn += 1) {
      times.bare.push(await burst(bare.url));
      times.ours.push(await burst(whole.url));
    }
    const [one, other] = [median(times.bare), median(times.ours)];
    const rate = (ms: number): string => `${(32_000 / ms).toFixed(0)} a second`;
    return {
      what: 'store over REST, 32 at a time',
      figure: one / other,
      unit: 'of bare node:http with raw SQLite',
      bar: { atLeast: 0.6 },
      from: `${rate(one)} bare, ${rate(other)} ours`,
    };
  };

  const fact = `${API}/memory/fact?key=preferences%2Farea%2F5000`;
  return [
    await latency('store', `${API}/memory/store`, 1.5, aBody),
    await together(),
    await latency('recall', fact, 1.5),
    await latency(`my-memory, of ${FACTS} facts,`, `${API}/memory`, 1.3),
    await latency('page of 50', `${API}/memory/facts?limit=50`, 4),
    // What the listener adds by itself: guard, token, route, limits.
    await latency('an answer at hand', fact, undefined, undefined, alone.url),
  ];
}

async function timed(step: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await step();
  return performance.now() - start;
}

async function serve(perform: Perform, tokens: Tokens): Promise<{ url: string } & AsyncDisposable> {
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

/** The least that could be called a server of it. */
async function serveBare(raw: Floor): Promise<{ url: string; answer: string } & AsyncDisposable> {
  let index = 2 * FACTS;
  const server = createServer((request, response) => {
    const answer = (): void => {
      response.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', `${Buffer.byteLength(bare.answer)}`]);
      response.end(bare.answer);
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
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
  return bare;
}

if (import.meta.main) process.exitCode = report(await listener()) ? 0 : 1;
