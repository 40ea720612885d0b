import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { killAfter, startWorker } from './child.ts';
import { Disk } from './disk.ts';
import { type Check, mustBeEmpty, type Surroundings } from './lane.ts';
import { openKeptStore } from './memory.ts';
import { valueOf } from './ops.ts';
import { Oracle } from './oracle.ts';
import { type Random, randomFrom } from './random.ts';

/** A new memory starts after this many cuts, so that first starts lose their power too. */
const CUTS_PER_MEMORY = 10;

/** Writes to a memory until the power is cut, then opens the state of the disk. */
export const powerCut: Check = {
  name: 'R-DUR-02 power cut at random moments under eight writers',
  run: (here) => cutPower(here, here.large ? 500 : 60, () => undefined),
};

export const powerCutAfterFailedFlush: Check = {
  name: 'R-DUR-02 R-DUR-04 power cut after flushes that failed',
  run: (here) => cutPower(here, here.large ? 400 : 20, (random) => `${random.between(40, 120)}-${random.between(1, 8)}`),
};

/** The control: without any lost write, the two checks above would prove nothing. */
export const powerCutIsReal: Check = {
  name: 'R-DUR-02 the power cut does lose writes that were never flushed',
  async run({ seed, folder, large }) {
    const disk = new Disk(folder);
    const random = randomFrom(seed);
    let acknowledged = 0;
    let kept = 0;
    for (let cut = 1; cut <= (large ? 50 : 5); cut += 1) {
      const ids: number[] = [];
      disk.begin();
      const worker = await startWorker(
        'write without flushing',
        { folder: disk.live, seed, firstId: 1 },
        {
          environment: disk.environment,
          hear: (line) => void (line.says === 'kept' && ids.push(line.id)),
        },
      );
      await killAfter(worker, random.between(100, 400));
      const file = join(disk.afterCut('only flushed data', random), 'careless.db');
      acknowledged += ids.length;
      if (existsSync(file))
        kept += written(file).filter((value, index) => value === valueOf({ id: index + 1, size: 100 })).length;
    }
    if (acknowledged === 0 || kept >= acknowledged)
      throw new Error(`${acknowledged} writes with synchronous = NORMAL and all survived`);
    return `synchronous = NORMAL lost ${acknowledged - kept} of ${acknowledged} acknowledged writes`;
  },
};

async function cutPower(
  { seed, folder }: Surroundings,
  cuts: number,
  failing: (random: Random) => string | undefined,
): Promise<string> {
  const random = randomFrom(seed);
  const disk = new Disk(folder);
  const violations: string[] = [];
  const refused = new Map<string, number>();
  let acknowledged = 0;
  let oracle = new Oracle();
  for (let cut = 0; cut < cuts && violations.length === 0; cut += 1) {
    if (cut % CUTS_PER_MEMORY === 0) {
      oracle = new Oracle();
      disk.begin();
    }
    const fails = failing(random);
    const given = {
      folder: join(disk.live, 'memory'),
      seed: random.between(1, 1e9),
      firstId: oracle.lastId + 1,
      load: fails && random.chance(70) ? 'no forgets' : 'mixed',
    };
    const worker = await startWorker('write until killed', given, {
      environment: { ...disk.environment, ...(fails && { FAILING: fails }) },
      hear: (line) => oracle.hear(line),
    });
    const ended = await killAfter(worker, random.between(0, 600));
    if (ended.signal !== 'SIGKILL' && !fails) violations.push(`the worker exited before the kill: ${ended.stderr.slice(-500)}`);
    oracle.lostSight();
    const survived = random.one(['only flushed data', 'flushed data and a random part of the rest'] as const);
    const memory = join(disk.afterCut(survived, random), 'memory');
    try {
      await using store = await openKeptStore(memory);
      await oracle.examine(store);
    } catch (error) {
      violations.push(`the memory does not open: ${String(error)}`);
    }
    violations.push(
      ...oracle.violations.map((violation) => `cut ${cut + 1} (${survived}${fails ? `, failing ${fails}` : ''}): ${violation}`),
    );
    if (cut % CUTS_PER_MEMORY === CUTS_PER_MEMORY - 1 || cut === cuts - 1 || violations.length > 0) {
      acknowledged += oracle.acknowledged;
      for (const [code, times] of oracle.refused) refused.set(code, (refused.get(code) ?? 0) + times);
    }
  }
  const figures = `${cuts} cuts, ${acknowledged} writes acknowledged, refused: ${[...refused].map(([code, times]) => `${times} ${code}`).join(', ') || 'none'}, seed ${seed}`;
  mustBeEmpty(
    [...violations, ...[...refused.keys()].filter((code) => code !== 'store_unavailable').map((code) => `refused with ${code}`)],
    figures,
  );
  return `${figures}: 0 lost, 0 wrong, all opened`;
}

function written(file: string): string[] {
  const db = new Sqlite(file);
  try {
    return db.prepare('SELECT value FROM kept ORDER BY id').pluck().all() as string[];
  } catch {
    // Even the table is missing.
    return [];
  } finally {
    db.close();
  }
}
