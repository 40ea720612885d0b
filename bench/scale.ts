import { statSync } from 'node:fs';
import { Finder } from '../src/core/search/finder.ts';
import type { MemoryStore } from '../src/core/store/store.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { aFact, ours } from './memory.ts';
import { realFacts, realQueries } from './real-facts.ts';
import { median, report, type Result } from './report.ts';

/** Facts of all subjects together. */
const SIZES = (process.env['BENCH_FACTS'] ?? '1000,10000,100000,1000000').split(',').map(Number);
const SUBJECTS = 100;
/** Subjects that search. */
const IN_USE = 5;
const ROOM = { facts: 10_000_000, bytes: 2 ** 40 };
const QUESTIONS = 100;

const subjectOf = (number: number): string => `subject${number}`;
const texts = realFacts(Math.max(...SIZES) / SUBJECTS);

/** Measures how the costs grow with the number of facts, on a file and on PostgreSQL. Takes about half an hour. */
async function scale(kept: 'file' | 'PostgreSQL'): Promise<Result[]> {
  await using server = kept === 'PostgreSQL' ? await startPostgres() : undefined;
  const database = server?.newMemory();
  await using mine = await ours(0, { quota: ROOM, ...(database && { database }) });
  const results: Result[] = [];
  let filled = 0;
  for (const size of SIZES) {
    const writes = await fill(mine.store, filled, size);
    filled = size;
    await mine.store.sweep(1);
    const [pages] = (await server?.query(`SELECT pg_total_relation_size('${database?.schema}.entry')::float8 AS bytes`)) ?? [];
    const bytes = pages ? Number(pages['bytes']) : statSync(mine.file).size;
    const row = (what: string, figure: number, unit: string, atMost?: number): void => {
      const bar = atMost === undefined ? {} : { bar: { atMost } };
      results.push({ what: `${kept}, ${size} facts: ${what}`, figure, unit, ...bar, from: `${SUBJECTS} subjects` });
    };
    row('store, 32 at a time', writes, 'µs');
    row('get', await reads(mine.store, size), 'µs');
    row('page of 50', await pagesOf(mine.store), 'µs');
    row('storage', bytes / size, 'bytes a fact');
    const { identifier, question, memory } = await searches(mine.store, size);
    row('search for an identifier', identifier, 'ms', 5);
    row('search for a question', question, 'ms', 5);
    row('memory', memory, 'bytes a fact of the subjects in use', size < 1_000_000 ? undefined : 1024);
    report(results.slice(-7));
  }
  return results;
}

/** Stores facts of all subjects in turn, 32 at a time. Returns the median time of a store in microseconds. */
async function fill(store: MemoryStore, from: number, to: number): Promise<number> {
  const times: number[] = [];
  for (let next = from; next < to; next += 32) {
    const began = performance.now();
    const count = Math.min(32, to - next);
    await Promise.all(
      Array.from({ length: count }, (_, more) => {
        const index = Math.floor((next + more) / SUBJECTS);
        const fact = texts[index];
        const space = store.space({ subject: subjectOf((next + more) % SUBJECTS) }, 'fact');
        return space.put({ ...aFact(index), ...(fact && { key: fact.key, value: fact.value }) });
      }),
    );
    times.push((1000 * (performance.now() - began)) / count);
  }
  return median(times);
}

async function reads(store: MemoryStore, size: number): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < 500; turn += 1) {
    const key = texts[(turn * 7919) % (size / SUBJECTS)]?.key ?? '';
    const space = store.space({ subject: subjectOf(turn % SUBJECTS) }, 'fact');
    const began = performance.now();
    if ((await space.get(key)) === undefined) throw new Error(`${key} is missing.`);
    times.push(1000 * (performance.now() - began));
  }
  return median(times);
}

async function pagesOf(store: MemoryStore): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < 200; turn += 1) {
    const space = store.space({ subject: subjectOf(turn % SUBJECTS) }, 'fact');
    const began = performance.now();
    await space.page({ sort: 'updated', limit: 50 });
    times.push(1000 * (performance.now() - began));
  }
  return median(times);
}

/** Searches the memories of a few subjects. `memory` is the resident memory that their indexes need. */
async function searches(store: MemoryStore, size: number) {
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  using finder = new Finder(store);
  const subjects = Array.from({ length: IN_USE }, (_, number) => ({ subject: subjectOf(number) }));
  for (const subject of subjects) await finder.names(subject, 1);
  const medians = { identifier: NaN, question: NaN };
  for (const kind of ['identifier', 'question'] as const) {
    const times: number[] = [];
    for (const [turn, text] of realQueries(kind, texts.slice(0, size / SUBJECTS), QUESTIONS).entries()) {
      const began = performance.now();
      await finder.find(subjects[turn % IN_USE] ?? { subject: '' }, { texts: [text], limit: 10 });
      times.push(performance.now() - began);
    }
    medians[kind] = median(times);
  }
  globalThis.gc?.();
  const grown = Math.max(finder.bytes, process.memoryUsage().rss - before);
  return { ...medians, memory: grown / ((size / SUBJECTS) * IN_USE) };
}

const kept = process.argv[2] === 'file' ? 'file' : 'PostgreSQL';
process.exitCode = report(await scale(kept)) ? 0 : 1;
