import type { EntryCursor } from '../src/core/store/store.ts';
import { aFact, floor, ours } from './memory.ts';
import { beside, type Result } from './report.ts';

const FACTS = 100_000;

/** Measures a read by key, and the first and last page of a long list. */
export async function reads(): Promise<Result[]> {
  await using mine = await ours(FACTS);
  using bare = floor(FACTS);
  const keys = Array.from({ length: 500 }, (_, turn) => (turn * 7919) % FACTS);
  const get = await beside(
    60,
    () => keys.forEach((index) => bare.get(index)),
    async () => {
      for (const index of keys) await mine.facts.get(aFact(index).key);
    },
  );

  const first = await beside(
    200,
    () => bare.page(Number.MAX_SAFE_INTEGER),
    () => mine.facts.page({ sort: 'updated', limit: 50 }),
  );

  // The cursor of a reader who has reached the last page.
  let after: EntryCursor | undefined;
  for (let seen = 0; seen < FACTS - 50;) {
    const page = await mine.facts.page({ sort: 'updated', limit: Math.min(200, FACTS - 50 - seen), ...(after && { after }) });
    seen += page.entries.length;
    after = page.next;
  }
  const oldest = bare.db.prepare('SELECT updated_at FROM entry ORDER BY rowid LIMIT 1 OFFSET 50').pluck().get() as number;
  const last = await beside(
    200,
    () => bare.page(oldest),
    () => mine.facts.page({ sort: 'updated', limit: 50, ...(after && { after }) }),
  );

  return [
    result('get by key', get, keys.length, 0.6),
    result('first page of 50', first, 1, 0.5),
    result('last page of 50', last, 1, 0.5),
  ];
}

const result = (
  what: string,
  { ratio, floor: bare, ours: mine }: { ratio: number; floor: number; ours: number },
  each: number,
  atLeast: number,
): Result => ({
  what: `${what}, of ${FACTS} facts`,
  figure: ratio,
  unit: 'of raw read and open',
  bar: { atLeast },
  from: `${((1000 * bare) / each).toFixed(1)} µs raw, ${((1000 * mine) / each).toFixed(1)} µs ours`,
});
