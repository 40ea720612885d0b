import type { Clock } from '../time/clock.ts';

/** Overwritten and expired bytes are gone within a second; one flush serves all that came meanwhile. */
const SOON_MS = 500;

/**
 * Gets deleted bytes out of the write-ahead log. `secure_delete` has overwritten them in their pages, but the log still
 * holds the pages as they were until it is emptied (R-PURGE).
 */
export class Purger {
  readonly #emptyLog: () => boolean;
  readonly #clock: Clock;
  #planned: Disposable | undefined;
  #stopped = false;

  /** `emptyLog` answers false while somebody still reads the log. */
  constructor(emptyLog: () => boolean, clock: Clock) {
    this.#emptyLog = emptyLog;
    this.#clock = clock;
  }

  /** True once nothing deleted is left. If not now, then as soon as it can be. */
  purgeNow(): boolean {
    this.#cancel();
    const gone = this.#tryToEmpty();
    if (!gone) this.purgeSoon();
    return gone;
  }

  get isDue(): boolean {
    return this.#planned !== undefined;
  }

  purgeSoon(): void {
    if (this.#stopped) return;
    this.#planned ??= this.#clock.after(SOON_MS, () => {
      this.#planned = undefined;
      this.purgeNow();
    });
  }

  /** Nothing is planned any more, now or later. */
  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #cancel(): void {
    this.#planned?.[Symbol.dispose]();
    this.#planned = undefined;
  }

  #tryToEmpty(): boolean {
    try {
      return this.#emptyLog();
    } catch {
      // A full or failing disk: what was committed stays committed, and the log is emptied when it can be.
      return false;
    }
  }
}
