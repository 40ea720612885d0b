import { statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { DotProducts } from '../src/core/meaning/dot-products.ts';
import type { Embedder } from '../src/core/meaning/embedder.ts';
import { MeaningIndex } from '../src/core/meaning/meaning-index.ts';
import { encodeVectors, quantize } from '../src/core/meaning/vector-codec.ts';
import { VectorIndex } from '../src/core/meaning/vector-index.ts';
import { aFact, ours as openMemory } from './memory.ts';
import { median, quantile, report, type Result } from './report.ts';

const DIMENSIONS = 384;
const FACTS = 10_000;
const HITS = 200;
const ROUNDS = 31;
const CALLS = 2000;

/** Measures search by meaning without the time of the model: scans of vectors, their size, and what making them costs other calls. */
export async function vectors(): Promise<Result[]> {
  return [...scan(10_000, 2), ...scan(100_000, 15), ...(await background())];
}

function unit(seed: number): Float32Array {
  let state = seed + 1;
  const vector = Float32Array.from({ length: DIMENSIONS }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  });
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

/** Finds the nearest facts by comparing a question with each. The floor only reads the same bytes. */
function scan(count: number, atMost: number): Result[] {
  const index = new VectorIndex(new DotProducts(DIMENSIONS));
  for (let row = 0; row < count; row += 1) index.set(row, 1, encodeVectors([unit(row)]));
  const bytes = new Int32Array((count * DIMENSIONS) / 4);
  let sum = 0;
  const read = (): void => {
    for (let at = 0; at < bytes.length; at += 1) sum ^= bytes[at] ?? 0;
  };
  const question = quantize(unit(-7));
  const [times, floors]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    times.push(cpuOf(() => index.nearest(question, HITS)));
    floors.push(cpuOf(read));
  }
  const [ours, floor] = [median(times), median(floors)];
  return [
    {
      what: `scan of ${count} vectors`,
      figure: ours,
      unit: 'ms of CPU',
      bar: { atMost },
      from: `best ${HITS} of ${count} × ${DIMENSIONS} numbers; ${(ours / floor).toFixed(2)} times as long as reading the bytes in JavaScript (${floor.toFixed(2)} ms)`,
    },
  ];
}

/** Returns the milliseconds of CPU that a step takes. On a busy machine, the time on the clock says little about a short step. */
function cpuOf(step: () => void): number {
  const start = process.cpuUsage();
  step();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

/** A model that takes some milliseconds for each text. A real one takes twenty times as long, so it costs other calls less. */
class PacedModel implements Embedder {
  readonly model = { id: 'bench', dimensions: DIMENSIONS };
  milliseconds = 2;

  async embed(texts: readonly string[]): Promise<Float32Array[]> {
    if (this.milliseconds > 0) await delay(this.milliseconds * texts.length);
    return texts.map((text) => unit(text.length));
  }

  onChange(): Disposable {
    return { [Symbol.dispose]: () => undefined };
  }

  release(): void {}
}

async function background(): Promise<Result[]> {
  await using mine = await openMemory(FACTS);
  const sizeNow = async (): Promise<number> => {
    await mine.store.forget('nobody', { kinds: ['fact'] });
    return statSync(mine.file).size;
  };
  const before = await sizeNow();
  const call = async (): Promise<number> => {
    const start = performance.now();
    await mine.facts.put(aFact(FACTS + 1));
    return performance.now() - start;
  };
  const quiet: number[] = [];
  for (let round = 0; round < CALLS; round += 1) quiet.push(await call());

  const model = new PacedModel();
  const index = new MeaningIndex(mine.store, model);
  index.start();
  const missing = async (): Promise<number> => {
    const { done, total } = await index.progress();
    return total - done;
  };
  const busy: number[] = [];
  while (busy.length % 100 > 0 || (await missing()) > 1) busy.push(await call());
  const bytes = (await sizeNow()) - before;

  model.milliseconds = 0;
  const cpu = process.cpuUsage();
  await index.rebuild();
  while ((await missing()) > 1) await delay(50);
  const spent = process.cpuUsage(cpu);
  index[Symbol.dispose]();
  return [
    {
      what: `a write while ${FACTS} facts get vectors`,
      figure: quantile(busy, 0.99) / quantile(quiet, 0.99),
      unit: 'times as long at p99',
      bar: { atMost: 2 },
      from: `${quantile(quiet, 0.99).toFixed(2)} ms without, ${quantile(busy, 0.99).toFixed(2)} ms with, ${busy.length} writes; the model takes 2 ms for a fact`,
    },
    {
      what: 'a vector, on the main thread',
      figure: (spent.user + spent.system) / 1000 / FACTS,
      unit: 'ms of CPU',
      bar: { atMost: 1 },
      from: `${FACTS} facts, with reading, sealing and commits, and without the model`,
    },
    {
      what: 'size of a vector on disk',
      figure: bytes / FACTS,
      unit: 'bytes',
      bar: { atMost: 640 },
      from: `${FACTS} facts with one window of ${DIMENSIONS} numbers`,
    },
  ];
}

if (import.meta.main) process.exitCode = report(await vectors()) ? 0 : 1;
