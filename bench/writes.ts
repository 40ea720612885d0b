import { aFact, floor, ours } from './memory.ts';
import { beside, type Result } from './report.ts';

/** Measures durable writes of new facts: each is on the disk before its response. */
export async function writes(): Promise<Result[]> {
  const results: Result[] = [];
  for (const facts of [1000, 100_000]) {
    await using mine = await ours(facts);
    using bare = floor(facts);
    let [there, here] = [facts, facts];

    const singly = await beside(
      40,
      () => {
        for (let turn = 0; turn < 50; turn += 1) bare.insert((there += 1));
      },
      async () => {
        for (let turn = 0; turn < 50; turn += 1) await mine.facts.put(aFact((here += 1)));
      },
    );
    results.push(result(`singly, at ${facts} facts`, singly, 50, 0.6));

    const together = await beside(
      40,
      () => {
        for (let turn = 0; turn < 20; turn += 1) bare.batch((there += 32), 32);
      },
      async () => {
        for (let turn = 0; turn < 20; turn += 1) {
          here += 32;
          await Promise.all(Array.from({ length: 32 }, (_, more) => mine.facts.put(aFact(here + more))));
        }
      },
    );
    results.push(result(`32 at a time, at ${facts} facts`, together, 640, 0.5));
  }
  return results;
}

const result = (
  what: string,
  { ratio, floor: bare, ours: mine }: { ratio: number; floor: number; ours: number },
  writesEach: number,
  atLeast: number,
): Result => ({
  what: `durable sealed writes, ${what}`,
  figure: ratio,
  unit: 'of raw SQLite',
  bar: { atLeast },
  from: `${((1000 * bare) / writesEach).toFixed(1)} µs raw, ${((1000 * mine) / writesEach).toFixed(1)} µs ours`,
});
