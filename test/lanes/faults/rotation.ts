import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { type Ended, killAfter, runWorker, startWorker } from './child.ts';
import { type Check, mustBeEmpty } from './lane.ts';
import { type Random, randomFrom } from './random.ts';
import type { Moment } from './tasks/rotating.ts';

const ROWS = 20_000;
/** The longest time before a kill. A rotation takes several starts. */
const LIFE_MS = 400;

/** Rotates one memory repeatedly. Each rotation is killed until it completes. */
export const rotationKilled: Check = {
  name: 'R-KEY-09 R-DUR-01 a rotation killed at random moments',
  async run({ large, seed, folder }) {
    const random = randomFrom(seed);
    const wanted = large ? 200 : 50;
    await runWorker('fill for rotation', { folder, rows: ROWS });
    let kills = 0;
    let rotations = 0;
    while (kills < wanted) {
      const worker = await startWorker('rotate', given(folder, ROWS, random));
      const ended = await killAfter(worker, random.between(0, LIFE_MS));
      if (ended.signal === 'SIGKILL') kills += 1;
      else {
        rotations += 1;
        mustHaveRotated(folder, ended);
      }
      // After many kills, let the rotation complete.
      if (kills % 10 === 0) {
        mustHaveRotated(folder, await runWorker('rotate', given(folder, ROWS, random)));
        rotations += 1;
      }
    }
    return `${kills} kills in ${rotations} rotations of ${ROWS} rows, seed ${seed}: every row read and authentic, none under an old key`;
  },
};

/** Moments that random kills would miss: between the database and the key source. */
export const rotationKilledAtItsEnds: Check = {
  name: 'R-KEY-09 a rotation killed between the database and the key source',
  async run({ seed, folder }) {
    const random = randomFrom(seed);
    const rows = 200;
    const violations: string[] = [];
    const moments = (['before', 'after'] as const).flatMap((when): Moment[] => [
      `${when} keep next`,
      `${when} keep current`,
      `${when} remove next`,
    ]);
    for (const moment of moments) {
      const memory = join(folder, moment.replaceAll(' ', '-'));
      await runWorker('fill for rotation', { folder: memory, rows });
      const worker = await startWorker('rotate', { ...given(memory, rows, random), dieAt: moment });
      const { signal, stderr } = await worker.ended;
      if (signal !== 'SIGKILL') throw new Error(`the worker was not killed ${moment}: ${stderr}`);
      try {
        // The first start after the kill, and a later rotation: both must end with one key.
        for (let rotation = 0; rotation < 2; rotation += 1)
          mustHaveRotated(memory, await runWorker('rotate', given(memory, rows, random)));
      } catch (problem) {
        violations.push(`killed ${moment}: ${String(problem)}`);
      }
    }
    mustBeEmpty(violations, `${moments.length} moments`);
    return `${moments.length} moments, each followed by two rotations`;
  },
};

const given = (folder: string, rows: number, random: Random) => ({ folder, rows, seed: random.between(1, 1e9) });

/** Examines the closed file. */
function mustHaveRotated(folder: string, { code, stderr, figures }: Ended): void {
  if (code !== 0) throw new Error(`the worker broke: ${stderr.slice(-1500)}`);
  if (figures['broken'] !== 0 || figures['structure'] !== '') throw new Error(`verification reported ${JSON.stringify(figures)}`);
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  try {
    const keys = db.prepare('SELECT id FROM master_key').pluck().all() as Buffer[];
    const foreign =
      'SELECT count(*) FROM (SELECT sealed FROM entry UNION ALL SELECT sealed FROM author UNION ALL SELECT value FROM meta WHERE name = ?) WHERE substr(sealed, 2, 4) <> ?';
    const old = db.prepare(foreign).pluck().get('tombstone key', keys[0]) as number;
    if (keys.length !== 1 || old !== 0)
      throw new Error(`${keys.length} keys are recorded, and ${old} rows are not sealed with the first`);
  } finally {
    db.close();
  }
  if (!existsSync(join(folder, 'memory.key')) || existsSync(join(folder, 'memory.key.next'))) {
    throw new Error(
      `the key's place holds ${readdirSync(folder)
        .filter((name) => name.startsWith('memory.key'))
        .join(' and ')}`,
    );
  }
}
