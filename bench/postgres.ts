import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { Finder } from '../src/core/search/finder.ts';
import type { EntryCursor } from '../src/core/store/store.ts';
import { type PostgresServer, startPostgres } from '../test/support/postgres.ts';
import { aFact, type Ours, ours, SEALED_BYTES } from './memory.ts';
import { realFacts, realQueries } from './real-facts.ts';
import { beside, median, report, type Result } from './report.ts';

const FACTS = 10_000;
const MANY = 100_000;
const DAY = 86_400_000;
const ROOM = { facts: 10_000_000, bytes: 2 ** 40 };
const PROGRAM = join(import.meta.dirname, '../out/main/headless.cjs');
const STARTS = 7;

/**
 * Measures the memory on PostgreSQL. The floor is the same rows in the same tables by plain SQL, through the same driver on one
 * connection, without sealing.
 */
export async function postgres(): Promise<Result[]> {
  await using server = await startPostgres();
  return [...(await storeAndRead(server)), ...(await searches(server)), ...(await firstAnswers(server))];
}

async function storeAndRead(server: PostgresServer): Promise<Result[]> {
  await using mine = await ours(FACTS, { database: server.newMemory(), quota: ROOM });
  await using bare = await floor(server, FACTS);
  let [there, here] = [FACTS, FACTS];
  const together = await beside(
    30,
    async () => {
      for (let turn = 0; turn < 10; turn += 1) await bare.batch((there += 32), 32);
    },
    async () => {
      for (let turn = 0; turn < 10; turn += 1) {
        here += 32;
        await Promise.all(Array.from({ length: 32 }, (_, more) => mine.facts.put(aFact(here + more))));
      }
    },
  );
  const get = await beside(
    30,
    async () => {
      for (let turn = 0; turn < 100; turn += 1) await bare.get((turn * 7919) % FACTS);
    },
    async () => {
      for (let turn = 0; turn < 100; turn += 1) await mine.facts.get(aFact((turn * 7919) % FACTS).key);
    },
  );
  const page = await beside(
    30,
    async () => {
      for (let turn = 0; turn < 20; turn += 1) await bare.page();
    },
    async () => {
      for (let turn = 0; turn < 20; turn += 1) await mine.facts.page({ sort: 'updated', limit: 50 });
    },
  );
  // Later pages are not read twice, so none of their rows was decrypted before.
  let after: EntryCursor | undefined;
  const later = await beside(
    30,
    async () => {
      for (let turn = 0; turn < 5; turn += 1) await bare.page();
    },
    async () => {
      for (let turn = 0; turn < 5; turn += 1) {
        ({ next: after } = await mine.facts.page({ sort: 'updated', limit: 50, ...(after && { after }) }));
      }
    },
  );
  return [
    compared('durable stores, 32 at a time', together, 320, 0.6),
    compared('get', get, 100, 0.5),
    compared('page of 50', page, 20, 0.5),
    compared('page of 50 that was not read before', later, 5),
  ];
}

const compared = (
  what: string,
  { ratio, floor: bare, ours: mine }: { ratio: number; floor: number; ours: number },
  each: number,
  atLeast?: number,
): Result => ({
  what: `PostgreSQL: ${what}`,
  figure: ratio,
  unit: 'of plain SQL',
  ...(atLeast !== undefined && { bar: { atLeast } }),
  from: `${((1000 * bare) / each).toFixed(0)} µs plain, ${((1000 * mine) / each).toFixed(0)} µs ours`,
});

/** Compares searches with those on a memory in a file. Each search also asks the server for its change number. */
async function searches(server: PostgresServer): Promise<Result[]> {
  const facts = realFacts(FACTS);
  const factOf = (index: number) => ({
    tags: [],
    category: 'user_facts',
    ...facts[index],
    key: facts[index]?.key ?? '',
    value: facts[index]?.value ?? '',
  });
  await using file = await ours(FACTS, { quota: ROOM, factOf });
  await using mine = await ours(FACTS, { quota: ROOM, factOf, database: server.newMemory() });
  using there = new Finder(file.store);
  using here = new Finder(mine.store);
  await Promise.all([there.prepare(), here.prepare()]);
  const results: Result[] = [];
  for (const kind of ['identifier', 'question'] as const) {
    const queries = realQueries(kind, facts, 100);
    const all = async (finder: Finder): Promise<void> => {
      for (const text of queries) await finder.find({ subject: 'me' }, { texts: [text], limit: 10 });
    };
    await Promise.all([all(there), all(here)]);
    const {
      ratio,
      floor: one,
      ours: other,
    } = await beside(
      15,
      () => all(there),
      () => all(here),
    );
    results.push({
      what: `PostgreSQL: search, ${kind}`,
      figure: ratio,
      unit: 'of the rate with a file',
      from: `${(10 * one).toFixed(0)} µs with a file, ${(10 * other).toFixed(0)} µs on PostgreSQL`,
    });
  }
  return results;
}

/** Measures the time from the start of the program to the first response about the memory. */
async function firstAnswers(server: PostgresServer): Promise<Result[]> {
  if (!existsSync(PROGRAM)) throw new Error('out/main/headless.cjs is missing. Run: npm run build');
  const database = server.newMemory();
  const times = { file: [] as number[], server: [] as number[] };
  const url = `postgres://owner@127.0.0.1:${server.port}/postgres?sslmode=disable&schema=${database.schema}`;
  await using file = await ours(MANY, { quota: ROOM });
  await using mine = await ours(MANY, { quota: ROOM, database });
  for (const memory of [file, mine]) await memory.store[Symbol.asyncDispose]();
  for (let round = 0; round < STARTS; round += 1) {
    times.file.push(await firstAnswer(file));
    times.server.push(await firstAnswer(mine, url));
  }
  const [one, other] = [median(times.file), median(times.server)];
  return [
    {
      what: `PostgreSQL: first answer after the start, ${MANY} facts`,
      figure: other / one,
      unit: 'times that with a file',
      bar: { atMost: 1.5 },
      from: `${one.toFixed(0)} ms with a file, ${other.toFixed(0)} ms on PostgreSQL`,
    },
  ];
}

async function firstAnswer({ file }: Ours, url?: string): Promise<number> {
  const folder = dirname(file);
  const env = {
    HELMDECK_DATA_DIR: folder,
    HELMDECK_ADDR: '127.0.0.1:0',
    HELMDECK_MEANING: 'off',
    HOME: folder,
    ...(url !== undefined && { HELMDECK_DATABASE_URL: url }),
  };
  const began = performance.now();
  const child: ChildProcess = spawn(process.execPath, [PROGRAM], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  let address: string | undefined;
  for await (const text of child.stdout ?? []) {
    said += String(text);
    address = /running at (http:\/\/\S+)\./.exec(said)?.[1];
    if (address !== undefined) break;
  }
  const token = readFileSync(join(folder, 'owner-token'), 'utf8').trim();
  const answer = await fetch(`${address}/api/v1/memory/search?q=99999`, { headers: { Authorization: `Bearer ${token}` } });
  if (answer.status !== 200) throw new Error(await answer.text());
  await answer.text();
  const took = performance.now() - began;
  child.kill('SIGTERM');
  await once(child, 'exit');
  return took;
}

interface Floor extends AsyncDisposable {
  batch(from: number, count: number): Promise<void>;
  get(index: number): Promise<Buffer>;
  page(): Promise<Buffer[]>;
}

/** The same tables, filled by plain SQL. */
async function floor(server: PostgresServer, facts: number): Promise<Floor> {
  const database = server.newMemory();
  await (await ours(0, { database }))[Symbol.asyncDispose]();
  const client = new pg.Client({ ...server.config, pipeline: true });
  await client.connect();
  await client.query(`SET search_path = ${database.schema}`);
  await client.query("INSERT INTO namespace VALUES (1, 'me', '')");
  const hash = (index: number): Buffer => Buffer.from(index.toString(16).padStart(32, '0'), 'hex');
  const sealed = randomBytes(SEALED_BYTES);
  const insert = {
    name: 'insert',
    text: `INSERT INTO entry SELECT number, 1, 1, hash, '', at, at, at + ${90 * DAY}, sealed
             FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[]) AS new (number, hash, at, sealed)`,
  };
  const batch = async (from: number, count: number): Promise<void> => {
    const indexes = Array.from({ length: count }, (_, more) => from + more);
    const now = Date.now();
    const values = [indexes, indexes.map(hash), indexes.map(() => now), indexes.map(() => sealed)];
    await Promise.all([client.query('BEGIN'), client.query({ ...insert, values }), client.query('COMMIT')]);
  };
  for (let from = 0; from < facts; from += 256) await batch(from, Math.min(256, facts - from));
  // Without statistics, the server would read whole tables.
  await client.query('ANALYZE entry');
  const columns = 'number, key_hash, category, created_at, updated_at, expires_at, sealed';
  return {
    batch,
    async get(index) {
      const text = `SELECT ${columns} FROM entry WHERE key_hash = $1 AND namespace = 1 AND kind = 1 AND kind <> 2 AND kind <> 6`;
      const { rows } = await client.query<{ sealed: Buffer }>({ name: 'get', text, values: [hash(index)] });
      return rows[0]?.sealed ?? Buffer.alloc(0);
    },
    async page() {
      const text = `SELECT ${columns} FROM entry WHERE namespace = 1 AND kind = 1 AND kind <> 2 ORDER BY updated_at DESC, number DESC LIMIT 50`;
      const { rows } = await client.query<{ sealed: Buffer }>({ name: 'page', text });
      return rows.map((row) => row.sealed);
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

if (import.meta.main) process.exitCode = report(await postgres()) ? 0 : 1;
