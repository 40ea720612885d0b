import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runWorker } from './child.ts';
import { type Check, Missing, mustBeEmpty } from './lane.ts';
import { randomFrom } from './random.ts';

const MIB = 1024 * 1024;

/** A tmpfs in the worker's own mount namespace. It disappears with the worker. */
export const fullDisk: Check = {
  name: 'R-DUR-03 R-PURGE-01 a full disk',
  async run({ large, seed, folder }) {
    const random = randomFrom(seed);
    const disks = large ? 60 : 8;
    const wrong: string[] = [];
    let acknowledged = 0;
    let refused = 0;
    let started = 0;
    needDisk(folder);
    for (let disk = 1; disk <= disks; disk += 1) {
      const mount = join(folder, `disk-${disk}`);
      mkdirSync(mount);
      const size = random.between(8 * MIB, 16 * MIB);
      const { figures } = await runWorker(
        'fill the disk',
        { disk: mount, seed: random.between(1, 1e9) },
        { inside: diskOf(size, mount) },
      );
      acknowledged += Number(figures['acknowledged']);
      refused += Number(figures['refused']);
      if (figures['started'] === 'worked') started += 1;
      if (figures['wrong'] !== '') wrong.push(`a disk of ${size} bytes: ${figures['wrong']}`);
    }
    const figures = `${disks} disks of 8 to 16 MiB, ${acknowledged} writes acknowledged, ${refused} refused with disk_full, ${started} of ${disks} starts on the full disk, seed ${seed}`;
    mustBeEmpty(wrong, figures);
    return `${figures}: 0 lost; reads, forgets, purges and closes worked, and writes worked again within 1 s`;
  },
};

const alone = process.getuid?.() === 0 ? ['unshare', '-m'] : ['unshare', '-rm'];

const diskOf = (size: number, at: string): string[] => [
  ...alone,
  'sh',
  '-c',
  `mount -t tmpfs -o size=${size} helmdeck "$1" && shift && exec "$@"`,
  'sh',
  at,
];

function needDisk(folder: string): void {
  const [command, ...rest] = [...diskOf(MIB, folder), 'true'];
  const { error, status, stderr } = spawnSync(command, rest);
  if (error) throw new Missing('unshare');
  if (status !== 0) throw new Missing(`permission to mount a tmpfs (${stderr.toString().trim()})`);
}
