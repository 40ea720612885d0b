import { spawnSync } from 'node:child_process';
import { onTestFinished } from 'vitest';
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
