import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { tempFolder } from './temp-folder.ts';

export interface SmallDisk {
  readonly folder: string;
  /** Gives the disk more space. */
  grow(mebibytes: number): void;
}

/** Mounts a small disk for the running test. Undefined if this user may not mount. */
export function mountDisk(mebibytes: number): SmallDisk | undefined {
  const folder = tempFolder();
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=0777`, 'tmpfs', folder]).status !== 0) return undefined;
  onTestFinished(() => void spawnSync('umount', ['-l', folder]));
  return {
    folder,
    grow(size) {
      const { status, stderr } = spawnSync('mount', ['-o', `remount,size=${size}m`, folder]);
      if (status !== 0) throw new Error(`The disk cannot grow: ${String(stderr)}`);
    },
  };
}

/** Starts a server for the running test that keeps its tables on a small disk. */
export async function startOnSmallDisk(disk: SmallDisk): Promise<PostgresServer> {
  const own = await startPostgres();
  onTestFinished(() => own[Symbol.asyncDispose]());
  const space = join(disk.folder, 'space');
  mkdirSync(space);
  const { uid, gid } = statSync(own.folder);
  chownSync(space, uid, gid);
  await own.query(`CREATE TABLESPACE small LOCATION '${space}'`);
  await own.query('ALTER ROLE owner SET default_tablespace = small');
  return own;
}
