import { rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { MIB } from '../../contract/units.ts';
import type { Clock } from '../time/clock.ts';

/** Bytes of free space that are left to other programs. */
const MIN_FREE_BYTES = 100 * MIB;
/**
 * Minimum size of a disk that is treated as shared with other programs. A smaller disk is treated as dedicated to the memory, so
 * the memory can fill it.
 */
const SHARED_DISK_BYTES = 1024 * MIB;
const CHECK_EVERY_MS = 1000;

export type StatDisk = (folder: string) => { readonly bsize: number; readonly bavail: number; readonly blocks: number };

/** Checks whether the remaining disk space must be left to other programs (R-DUR-03). */
export class FreeSpace {
  readonly #folder: string;
  readonly #clock: Pick<Clock, 'steady'>;
  readonly #statDisk: StatDisk;
  #checkedAt = -Infinity;
  #low = false;

  constructor(folder: string, clock: Pick<Clock, 'steady'>, statDisk: StatDisk = statfsSync) {
    this.#folder = folder;
    this.#clock = clock;
    this.#statDisk = statDisk;
  }

  /** Whether free space is low. The value is at most one second old. */
  get isLow(): boolean {
    const now = this.#clock.steady();
    if (now - this.#checkedAt < CHECK_EVERY_MS) return this.#low;
    this.#checkedAt = now;
    this.#low = this.#check();
    return this.#low;
  }

  #check(): boolean {
    try {
      const { bsize, bavail, blocks } = this.#statDisk(this.#folder);
      return blocks * bsize >= SHARED_DISK_BYTES && bavail * bsize < MIN_FREE_BYTES;
    } catch {
      // The free space is unknown, so report that it is not low. If the disk is full, the write itself fails.
      return false;
    }
  }
}

export const lowDiskSpace = (): Failure =>
  new Failure(
    'disk_full',
    'The disk has less than 100 MiB of free space, which is reserved for other programs; free some space and try again. Reading and forgetting still work.',
  );

const RESERVE_BYTES = MIB;
const MIN_RESERVE_BYTES = 128 * 1024;

/**
 * A file that reserves disk space. If a forget finds no free space, the file is deleted, so that the log of the forget fits on
 * the disk.
 */
export class DiskReserve {
  readonly #file: string;
  #full = false;

  constructor(folder: string) {
    this.#file = join(folder, 'reserve');
    this.refill();
  }

  get isFull(): boolean {
    return this.#full;
  }

  release(): void {
    rmSync(this.#file, { force: true });
    this.#full = false;
  }

  /** Recreates the reserve with as much space as the disk has, up to the full size. */
  refill(): void {
    this.#full ||= statSync(this.#file, { throwIfNoEntry: false })?.size === RESERVE_BYTES;
    for (let bytes = RESERVE_BYTES; !this.#full && bytes >= MIN_RESERVE_BYTES; bytes /= 2) {
      this.release();
      if (!this.#allocate(bytes)) continue;
      this.#full = bytes === RESERVE_BYTES;
      return;
    }
  }

  #allocate(bytes: number): boolean {
    try {
      writeFileSync(this.#file, Buffer.alloc(bytes), { mode: 0o600, flag: 'wx' });
      return true;
    } catch {
      // Delete the partly written file, because it would only waste disk space.
      this.release();
      return false;
    }
  }
}
