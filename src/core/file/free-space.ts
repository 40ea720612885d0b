import { statfsSync } from 'node:fs';
import { Failure } from '../../contract/failure.ts';
import type { Clock } from '../time/clock.ts';

const MIB = 1024 * 1024;
/** Left to everything else on the machine. */
const LEFT_BYTES = 100 * MIB;
/** A disk that is smaller was made for this memory, or for little else. */
const SHARED_BYTES = 1024 * MIB;
const LOOK_MS = 1000;

export type StatDisk = (folder: string) => { readonly bsize: number; readonly bavail: number; readonly blocks: number };

/** Whether what is left of the disk is wanted for other things than facts. */
export class FreeSpace {
  readonly #folder: string;
  readonly #clock: Pick<Clock, 'steady'>;
  readonly #look: StatDisk;
  #lookedAt = -Infinity;
  #scarce = false;

  constructor(folder: string, clock: Pick<Clock, 'steady'>, look: StatDisk = statfsSync) {
    this.#folder = folder;
    this.#clock = clock;
    this.#look = look;
  }

  /** As it was within the last second. */
  get isLow(): boolean {
    const now = this.#clock.steady();
    if (now - this.#lookedAt < LOOK_MS) return this.#scarce;
    this.#lookedAt = now;
    this.#scarce = this.#isScarce();
    return this.#scarce;
  }

  #isScarce(): boolean {
    try {
      const { bsize, bavail, blocks } = this.#look(this.#folder);
      return blocks * bsize >= SHARED_BYTES && bavail * bsize < LEFT_BYTES;
    } catch {
      // A disk that does not say is not taken for full.
      return false;
    }
  }
}

export const lowDiskSpace = (): Failure =>
  new Failure(
    'disk_full',
    'Less than 100 MiB are free on the disk, and those are left to everything else on this machine; free some space and try again. Reading and forgetting still work.',
  );
