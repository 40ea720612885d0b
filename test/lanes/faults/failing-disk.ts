import { join } from 'node:path';
import { runWorker } from './child.ts';
import { type Check, mustBeEmpty } from './lane.ts';
import { openKeptStore } from './memory.ts';
import { Oracle } from './oracle.ts';
import { randomFrom } from './random.ts';
import { counted, counting, failing, needStrace } from './strace.ts';

const STEPS = 400;
const PUTS = 200;
const FAULTS = [
  ['fsync', 'EIO'],
  ['pwrite64', 'EIO'],
  ['fsync', 'ENOSPC'],
  ['pwrite64', 'ENOSPC'],
  ['ftruncate', 'EIO'],
  ['fdatasync', 'EIO'],
] as const;
/** A run takes a few seconds, and more on a busy machine. */
const PATIENCE_MS = 60_000;

export const flushesCounted: Check = {
  name: 'R-DUR-02 every acknowledged commit is flushed',
  async run({ folder }) {
    needStrace();
    const count = async (puts: number): Promise<number> => {
      const file = join(folder, `flushes-${puts}`);
      const inside = counting(file, ['fsync', 'fdatasync']);
      await runWorker('put in sequence', { folder: join(folder, `memory-${puts}`), puts }, { inside });
      return [...counted(file).values()].reduce((sum, calls) => sum + calls, 0);
    };
    // The first put can share its commit with a background job of the start, so it is part of both runs.
    const first = await count(1);
    const flushes = (await count(1 + PUTS)) - first;
    if (flushes < PUTS) throw new Error(`${flushes} flushes for ${PUTS} puts`);
    return `${flushes} flushes for ${PUTS} sequential puts, and ${first} for start, first put and close`;
  },
};

/** Each run makes one kind of system call fail for a while. */
export const diskFails: Check = {
  name: 'R-DUR-03 R-DUR-04 flush, write and truncate fail for a while',
  async run({ large, seed, folder }) {
    needStrace();
    const random = randomFrom(seed);
    const runs = large ? 400 : 42;
    const file = join(folder, 'calls');
    const start = { seed: random.between(1, 1e9), firstId: 1, steps: STEPS };
    await runWorker(
      'write during faults',
      { ...start, folder: join(folder, 'counted') },
      {
        inside: counting(
          file,
          FAULTS.map(([call]) => call),
        ),
      },
    );
    const calls = counted(file);
    const violations: string[] = [];
    const refused = new Map<string, number>();
    let acknowledged = 0;
    for (let run = 0; run < runs && violations.length < 5; run += 1) {
      const [call, error] = FAULTS[run % FAULTS.length] ?? FAULTS[0];
      const most = calls.get(call) ?? 0;
      if (most === 0) throw new Error(`${call} is never called, so the lane injects faults into the wrong calls`);
      const place = (Math.floor(run / FAULTS.length) + 0.5) / Math.ceil(runs / FAULTS.length);
      const from = Math.max(1, Math.round(place * most));
      const to = from + random.between(0, 12);
      const oracle = new Oracle();
      const memory = join(folder, `memory-${run}`);
      const name = `${error} at ${call} ${from}..${to}`;
      const odd = new Map<string, number>();
      try {
        const ended = await runWorker(
          'write during faults',
          { ...start, folder: memory },
          {
            inside: failing(call, error, from, to),
            patience: PATIENCE_MS,
            hear(line) {
              oracle.hear(line);
              if (line.says === 'refused' && line.code !== 'store_unavailable' && line.code !== 'disk_full') {
                odd.set(`${line.code}: ${line.why}`, (odd.get(`${line.code}: ${line.why}`) ?? 0) + 1);
              }
              if (line.says === 'refused') refused.set(line.code, (refused.get(line.code) ?? 0) + 1);
            },
          },
        );
        if (ended.figures['file'] !== 'open') violations.push(`${name}: the file stays ${ended.figures['file']}`);
      } catch (problem) {
        violations.push(`${name}: ${String(problem)}`);
      }
      oracle.lostSight();
      await using store = await openKeptStore(memory);
      await oracle.examine(store);
      acknowledged += oracle.acknowledged;
      violations.push(...oracle.violations.map((violation) => `${name}: ${violation}`));
      violations.push(...[...odd].map(([what, times]) => `${name}: ${times} times refused with ${what}`));
    }
    const figures = `${runs} runs, ${acknowledged} writes acknowledged, refused: ${[...refused].map(([code, times]) => `${times} ${code}`).join(', ')}, seed ${seed}`;
    mustBeEmpty(violations, figures);
    return `${figures}: 0 lost, 0 wrong, 0 hung, all recovered`;
  },
};
