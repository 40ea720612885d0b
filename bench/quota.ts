import { aFact, ours } from './memory.ts';
import { aCaller, doorOf } from './my-memory.ts';
import { beside, type Result } from './report.ts';

const FACTS = 10_000;
const QUOTA = { facts: 10 * FACTS, bytes: 2 ** 40 };

/** Compares a full write with a bare put, which has no quota and no activity row. For information: it has no bar. */
export async function quota(): Promise<Result[]> {
  const results: Result[] = [];
  for (const { at, how } of [
    { at: 1, how: 'singly' },
    { at: 32, how: '32 at a time' },
  ]) {
    await using bare = await ours(FACTS);
    await using mine = await ours(FACTS, { quota: QUOTA });
    const perform = await doorOf(mine.store);
    let [there, here] = [FACTS, FACTS];
    const turns = 64 / at;
    const { floor, ours: whole } = await beside(
      40,
      async () => {
        for (let turn = 0; turn < turns; turn += 1) {
          await Promise.all(Array.from({ length: at }, () => bare.facts.put(aFact((there += 1)))));
        }
      },
      async () => {
        for (let turn = 0; turn < turns; turn += 1) {
          await Promise.all(
            Array.from({ length: at }, () => {
              const { key, value, category, tags } = aFact((here += 1));
              return perform(aCaller, 'remember', { key, value, category, tags: [...tags] });
            }),
          );
        }
      },
    );
    results.push({
      what: `remembering with its record and the quota, ${how}`,
      figure: whole / floor,
      unit: 'times a bare put',
      from: `${((1000 * floor) / 64).toFixed(1)} µs bare, ${((1000 * whole) / 64).toFixed(1)} µs whole`,
    });
  }
  return results;
}
