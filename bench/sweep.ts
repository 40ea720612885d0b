import Sqlite from 'better-sqlite3';
import { type Clock, systemClock } from '../src/core/time/clock.ts';
import { aFact, ours } from './memory.ts';
import { median, quantile, type Result } from './report.ts';

const FACTS = 100_000;
const EXPIRED = 10_000;
const REPETITIONS = 7;
const WRITES = 3000;
const HOUR = 3_600_000;

/** Measures how much a sweep of ten thousand expired facts delays a client that writes one fact after another. */
export async function sweep(): Promise<Result[]> {
  const time = skippingClock();
  const { clock } = time;
  await using mine = await ours(FACTS - EXPIRED, { clock, quota: { facts: 10 * FACTS, bytes: 2 ** 40 } });
  const file = new Sqlite(mine.file, { readonly: true });
  const expired = file
    .prepare('SELECT count(*) FROM entry WHERE namespace = 1 AND kind = 1 AND kind <> 6 AND expires_at <= ?')
    .pluck();
  let next = FACTS;
  const write = async (): Promise<number> => {
    const start = performance.now();
    await mine.facts.put(aFact((next += 1)));
    return performance.now() - start;
  };
  const turns: { quiet: number; swept: number; writes: number; took: number; worst: number }[] = [];
  for (let turn = 0; turn < REPETITIONS; turn += 1) {
    const soon = clock.now() + HOUR;
    for (let from = 0; from < EXPIRED; from += 250) {
      await Promise.all(
        Array.from({ length: 250 }, (_, more) =>
          mine.facts.put({ ...aFact(from + more), key: `gone/${from + more}`, lifetime: soon - clock.now() }),
        ),
      );
    }
    const quiet: number[] = [];
    for (let index = 0; index < WRITES; index += 1) quiet.push(await write());
    const swept: number[] = [];
    time.skip(HOUR);
    const start = performance.now();
    do swept.push(await write());
    while (swept.length % 10 > 0 || (expired.get(clock.now()) as number) > 0);
    turns.push({
      quiet: quantile(quiet, 0.99),
      swept: quantile(swept, 0.99),
      writes: swept.length,
      took: performance.now() - start,
      worst: Math.max(...swept),
    });
  }
  file.close();
  const of = (what: keyof (typeof turns)[number]): number => median(turns.map((turn) => turn[what]));
  return [
    {
      what: `a write while ${EXPIRED} of ${FACTS} facts are swept`,
      figure: median(turns.map(({ quiet, swept }) => swept / quiet)),
      unit: 'times as long at p99',
      bar: { atMost: 2 },
      from: `${of('quiet').toFixed(2)} ms without, ${of('swept').toFixed(2)} ms with, longest ${of('worst').toFixed(1)} ms; swept in ${of('took').toFixed(0)} ms beside ${of('writes')} writes`,
    },
  ];
}

/** Runs like the system clock, and can jump forward. */
function skippingClock(): { clock: Clock; skip(ms: number): void } {
  let skipped = 0;
  return {
    clock: {
      now: () => systemClock.now() + skipped,
      steady: () => systemClock.steady() + skipped,
      uptime: () => systemClock.uptime() + skipped,
      uptimeOrigin: () => undefined,
      synchronized: () => systemClock.synchronized(),
      after: (ms, action) => systemClock.after(ms, action),
    },
    skip(ms) {
      skipped += ms;
    },
  };
}
