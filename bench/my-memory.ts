import Sqlite from 'better-sqlite3';
import type { Caller } from '../src/core/access/caller.ts';
import { TokenRegistry } from '../src/core/access/token-registry.ts';
import { createCore } from '../src/core/operations/create-core.ts';
import type { Perform } from '../src/core/operations/perform.ts';
import { Finder } from '../src/core/search/finder.ts';
import type { MemoryStore } from '../src/core/store/store.ts';
import { systemClock } from '../src/core/time/clock.ts';
import { aFact, ours } from './memory.ts';
import { median, quantile, type Result } from './report.ts';

const FACTS = 100_000;
const TURNS = 500;

export const aCaller: Caller = {
  subject: 'me',
  client: 'claude-code',
  transport: 'mcp',
  token: 'c2f1e0d9',
  scopes: new Set(['memory:read', 'memory:write']),
};

/** The operations of a memory, as every surface calls them. */
export async function doorOf(store: MemoryStore): Promise<Perform> {
  const tokens = await TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => false });
  return createCore({ store, tokens, finder: new Finder(store), clock: systemClock }).perform;
}

/** Measures `my-memory`, the first call of most conversations: with many facts, repeated, and right after a write. */
export async function myMemory(): Promise<Result[]> {
  const results: Result[] = [];
  for (const categories of [8, 50]) {
    await using mine = await ours(FACTS, {
      quota: { facts: 2 * FACTS, bytes: 2 ** 40 },
      categoryOf: (index) => `category_${index % categories}`,
    });
    const perform = await doorOf(mine.store);
    const first = await timed(() => perform(aCaller, 'myMemory', {}));
    const plain = countPlainly(mine.file);
    const again: number[] = [];
    const after: number[] = [];
    for (let turn = 0; turn < TURNS; turn += 1) {
      again.push(await timed(() => perform(aCaller, 'myMemory', {})));
      await mine.facts.put({
        ...aFact(FACTS + (turn % 100)),
        value: `${turn}`,
        category: `category_${(turn % 100) % categories}`,
      });
      after.push(await timed(() => perform(aCaller, 'myMemory', {})));
    }
    for (const [when, times] of Object.entries({ repeated: again, 'right after a write': after })) {
      results.push({
        what: `my-memory of ${FACTS} facts in ${categories} categories, ${when}`,
        figure: median(times),
        unit: 'ms at p50',
        bar: { atMost: 0.2 },
        from: `p99 ${quantile(times, 0.99).toFixed(3)} ms; the very first ${first.toFixed(1)} ms; counted in SQL ${plain.toFixed(1)} ms`,
      });
    }
  }
  return results;
}

/** The cost of counting in SQL at each call. */
function countPlainly(file: string): number {
  const db = new Sqlite(file, { readonly: true });
  const count = db.prepare(
    'SELECT category, count(*) FROM entry WHERE namespace = 1 AND kind = 1 AND kind <> 2 AND kind <> 6 GROUP BY category',
  );
  const times = Array.from({ length: 20 }, () => {
    const start = performance.now();
    count.all();
    return performance.now() - start;
  });
  db.close();
  return median(times);
}

async function timed(step: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await step();
  return performance.now() - start;
}
