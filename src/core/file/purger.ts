import type { Clock } from '../time/clock.ts';

/** Deleted bytes must be purged within a second (R-PURGE-02). One flush serves all deletes of half a second. */
const SOON_MS = 500;

/**
 * Removes deleted bytes from the write-ahead log. `secure_delete` overwrites them in their pages, but the log holds earlier copies
 * of these pages until it is truncated (R-PURGE-01).
 */
export class Purger {
  readonly #truncateLog: () => boolean;
  readonly #clock: Clock;
  #scheduled: Disposable | undefined;
  #stopped = false;

  /** `truncateLog` returns false while another connection reads the log. */
  constructor(truncateLog: () => boolean, clock: Clock) {
    this.#truncateLog = truncateLog;
    this.#clock = clock;
  }

  /** True once no deleted byte is left. Otherwise it is tried again soon. */
  purgeNow(): boolean {
    this.#cancel();
    const purged = this.#tryToTruncate();
    if (!purged) this.purgeSoon();
    return purged;
  }

  get isDue(): boolean {
    return this.#scheduled !== undefined;
  }

  purgeSoon(): void {
    if (this.#stopped) return;
    this.#scheduled ??= this.#clock.after(SOON_MS, () => {
      this.#scheduled = undefined;
      this.purgeNow();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #cancel(): void {
    this.#scheduled?.[Symbol.dispose]();
    this.#scheduled = undefined;
  }

  #tryToTruncate(): boolean {
    try {
      return this.#truncateLog();
    } catch {
      // The disk is full or fails. The commit is durable, and the log is truncated later.
      return false;
    }
  }
}
