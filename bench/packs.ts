import { setImmediate as nextTurn } from 'node:timers/promises';
import * as z from 'zod';
import { TokenRegistry } from '../src/core/access/token-registry.ts';
import { createCore } from '../src/core/operations/create-core.ts';
import { definePack } from '../src/core/packs/pack.ts';
import { Finder } from '../src/core/search/finder.ts';
import { systemClock } from '../src/core/time/clock.ts';
import { aFact, ours } from './memory.ts';
import { aCaller } from './my-memory.ts';
import { median, quantile, report, type Result } from './report.ts';

const FACTS = 10_000;
const TURNS = 4000;
const WARM_UP = 1000;
const QUESTIONS = 200;

const me = { ...aCaller, scopes: new Set([...aCaller.scopes, 'packs:run' as const]) };

const echo = {
  version: '1.0.0',
  title: 'Echo',
  description: 'Returns its input.',
  input: z.strictObject({ what: z.string() }),
  output: z.object({ said: z.string() }),
  handler: async ({ input: { what } }: { input: { what: string } }) => ({ said: what }),
};

/** All services off: no memory, no cache, no activity record. */
const bare = definePack({ ...echo, name: 'bench.bare', unaudited: true });
const cached = definePack({ ...echo, name: 'bench.cached', memory: { cache: true, ttl: 3600 } });

/** Measures the engine's overhead around an empty handler, and compares a cache hit with a recall. */
export async function packs(): Promise<Result[]> {
  await using mine = await ours(FACTS, { quota: { facts: 2 * FACTS, bytes: 2 ** 40 } });
  const { store } = mine;
  await using tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  using finder = new Finder(store);
  using door = createCore({ store, tokens, finder, clock: systemClock, packs: { packs: [bare, cached] } });
  const { perform } = door;
  const input = (turn: number) => ({ what: `question ${turn % QUESTIONS}` });
  const steps: readonly ((turn: number) => Promise<unknown>)[] = [
    (turn) => echo.handler({ input: input(turn) }),
    (turn) => perform(me, 'runPack', { name: bare.name, input: input(turn) }),
    (turn) => perform(me, 'recall', { key: aFact(turn % QUESTIONS).key }),
    (turn) => perform(me, 'runPack', { name: cached.name, input: input(turn) }),
  ];
  const times: number[][] = steps.map(() => []);
  for (let turn = 0; turn < WARM_UP + TURNS; turn += 1) {
    for (const [index, step] of steps.entries()) {
      const took = await timed(() => step(turn));
      if (turn >= WARM_UP) times[index]?.push(took);
      // As requests come. What is written behind an answer is written here, and not in the next one's time.
      await nextTurn();
    }
  }
  const [direct = NaN, around = NaN, recall = NaN, again = NaN] = times.map((all) => 1000 * median(all));
  const slowest = (which: number): string => (1000 * quantile(times[which] ?? [], 0.99)).toFixed(0);
  return [
    {
      what: 'a pack with nothing on, through the door, beside its handler called directly',
      figure: around - direct,
      unit: 'µs more at p50',
      bar: { atMost: 50 },
      from: `${direct.toFixed(1)} µs direct, ${around.toFixed(1)} µs ours, p99 ${slowest(1)} µs`,
    },
    {
      what: 'cached output of a pack, with its activity row',
      figure: again / recall,
      unit: 'times a recall',
      bar: { atMost: 1.5 },
      from: `${recall.toFixed(1)} µs a recall, ${again.toFixed(1)} µs an answer, p99 ${slowest(3)} µs`,
    },
  ];
}

async function timed(step: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await step();
  return performance.now() - start;
}

if (import.meta.main) process.exitCode = report(await packs()) ? 0 : 1;
