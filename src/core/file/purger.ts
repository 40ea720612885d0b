import type { Clock } from '../time/clock.ts';

/**
 * Milliseconds from a delete to its purge. The delay lets one flush purge all deletes of half a second, within the promised
 * second (R-PURGE-02).
 */
const SOON_MS = 500;
/** Milliseconds from the eviction of surplus rows to their purge. No promise covers these bytes, and a purge slows down writes. */
const LATER_MS = 30_000;

/**
 * Removes deleted bytes from the write-ahead log. `secure_delete` overwrites the bytes in their pages, but the log contains
 * earlier copies of these pages until it is truncated (R-PURGE-01).
 */
export class Purger {
  readonly #truncateLog: () => boolean;
  readonly #clock: Clock;
  #scheduled: { readonly delay: number; readonly timer: Disposable } | undefined;
  #stopped = false;

  /** `truncateLog` must return false while another connection reads the log. */
  constructor(truncateLog: () => boolean, clock: Clock) {
    this.#truncateLog = truncateLog;
    this.#clock = clock;
  }

  /** Purges now. Returns true if no deleted byte is left in the log; otherwise schedules another attempt. */
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
    this.#schedule(SOON_MS);
  }

  purgeLater(): void {
    this.#schedule(LATER_MS);
  }

  #schedule(delay: number): void {
    if (this.#stopped || (this.#scheduled && this.#scheduled.delay <= delay)) return;
    this.#cancel();
    const timer = this.#clock.after(delay, () => {
      this.#scheduled = undefined;
      this.purgeNow();
    });
    this.#scheduled = { delay, timer };
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #cancel(): void {
    this.#scheduled?.timer[Symbol.dispose]();
    this.#scheduled = undefined;
  }

  #tryToTruncate(): boolean {
    try {
      return this.#truncateLog();
    } catch {
      // The disk is full or reports an error. The commit is durable, so the log can be truncated later.
      return false;
    }
  }
}
