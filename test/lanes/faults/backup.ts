import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import { killAfter, runWorker, startWorker } from './child.ts';
import { Disk } from './disk.ts';
import { type Check, mustBeEmpty } from './lane.ts';
import { openKeptStore } from './memory.ts';
import { randomFrom } from './random.ts';

/* Some kills are timed from the first backup, so that at least one backup completes on a slow machine. */

const ROWS = 5000;
const FEW_ROWS = 200;
const FINAL = /^memory-\d+\.db$/;

export const backupKilled: Check = {
  name: 'R-DUR-10 a backup killed at random moments',
  async run({ large, seed, folder }) {
    const random = randomFrom(seed);
    const kills = large ? 300 : 12;
    const memory = join(folder, 'memory');
    const wrong: string[] = [];
    const examined = new Set<string>();
    const made: string[] = [];
    await runWorker('fill for rotation', { folder: memory, rows: ROWS });
    for (let kill = 1; kill <= kills; kill += 1) {
      const first = Promise.withResolvers<void>();
      const worker = await startWorker(
        'back up until killed',
        { folder: memory },
        {
          hear(line) {
            if (line.says !== 'done') return;
            made.push(String(line.figures['file']));
            first.resolve();
          },
        },
      );
      if (kill % 5 === 0) await Promise.race([first.promise, worker.ended]);
      const ended = await killAfter(worker, random.between(0, 250));
      if (ended.signal !== 'SIGKILL') wrong.push(`the worker exited before the kill: ${ended.stderr.slice(-500)}`);
      const backups = join(memory, 'backups');
      const names = existsSync(backups) ? readdirSync(backups).filter((name) => FINAL.test(name)) : [];
      const newest = made.at(-1);
      if (newest !== undefined && !names.includes(newest)) wrong.push(`${newest} was acknowledged and is missing`);
      for (const name of names.filter((one) => !examined.has(one))) {
        examined.add(name);
        const problem = await broken(join(backups, name), memory, join(folder, `copy-${examined.size}`), ROWS);
        if (problem !== undefined) wrong.push(`${name}: ${problem}`);
      }
    }
    const figures = `${kills} kills, ${made.length} backups acknowledged, ${examined.size} examined, seed ${seed}`;
    mustBeEmpty(wrong, figures);
    return `${figures}: each complete and authentic`;
  },
};

/** The first backup creates the folder. Each backup must still have its name after a cut. */
export const backupSurvives: Check = {
  name: 'R-DUR-02 R-DUR-10 an acknowledged backup survives a power cut',
  async run({ large, seed, folder }) {
    const random = randomFrom(seed);
    const disk = new Disk(folder);
    const cuts = large ? 50 : 6;
    const wrong: string[] = [];
    let acknowledged = 0;
    for (let cut = 1; cut <= cuts; cut += 1) {
      disk.begin();
      await runWorker('fill for rotation', { folder: join(disk.live, 'memory'), rows: FEW_ROWS });
      let newest: string | undefined;
      const first = Promise.withResolvers<void>();
      const worker = await startWorker(
        'back up until killed',
        { folder: join(disk.live, 'memory') },
        {
          environment: disk.environment,
          hear(line) {
            if (line.says !== 'done') return;
            newest = String(line.figures['file']);
            first.resolve();
          },
        },
      );
      if (cut % 2 === 0) await Promise.race([first.promise, worker.ended]);
      await killAfter(worker, random.between(50, 400));
      if (newest === undefined) continue;
      acknowledged += 1;
      const memory = join(disk.afterCut('only flushed data', random), 'memory');
      const file = join(memory, 'backups', newest);
      const problem = existsSync(file)
        ? await broken(file, memory, join(folder, `copy-${cut}`), FEW_ROWS)
        : 'the file is missing';
      if (problem !== undefined) wrong.push(`cut ${cut}: ${newest}: ${problem}`);
    }
    if (acknowledged === 0) throw new Error('no backup was acknowledged');
    mustBeEmpty(wrong, `${cuts} cuts`);
    return `${cuts} cuts, ${acknowledged} of them after a backup: each found and authentic`;
  },
};

/** Opens a copy of the backup as a separate memory. */
async function broken(backup: string, memory: string, copy: string, rows: number): Promise<string | undefined> {
  mkdirSync(copy, { mode: 0o700 });
  copyFileSync(backup, join(copy, 'memory.db'));
  copyFileSync(join(memory, 'memory.key'), join(copy, 'memory.key'));
  try {
    await using store = await openKeptStore(copy, fileSource(copy));
    const verified = await store.upkeep?.verify();
    const sound = verified?.entries === rows && verified.broken === 0 && verified.structure.length === 0;
    return sound ? undefined : JSON.stringify(verified);
  } catch (error) {
    return String(error);
  }
}
