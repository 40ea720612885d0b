import type { Clock } from '../time/clock.ts';
import type { SweepResult } from './store.ts';

/** Entries removed in one commit, at most. */
const SLICE = 200;
/** After a failure, a full disk for instance. */
const AGAIN_MS = 60_000;

interface Deps {
  sweep(limit: number): Promise<SweepResult>;
  now(): number;
  readonly clock: Clock;
}

/** Removes what has expired when it expires. Between one expiry and the next it sleeps. */
export class Sweeper {
  readonly #deps: Deps;
  #planned: { at: number; timer: Disposable } | undefined;
  #sweeping = false;
  /** A sweep was due during the present one, which may have passed over its entries already. */
  #again = false;
  #stopped = false;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Something ends at this moment. */
  scheduleAt(moment: number): void {
    if (this.#stopped || (this.#planned && this.#planned.at <= moment)) return;
    this.#planned?.timer[Symbol.dispose]();
    const timer = this.#deps.clock.after(Math.max(0, moment - this.#deps.now()), () => this.#start());
    this.#planned = { at: moment, timer };
  }

  #start(): void {
    this.#planned?.timer[Symbol.dispose]();
    this.#planned = undefined;
    void this.#sweep();
  }

  /** It is later than the timer knows: the machine slept, or its clock was set forward. */
  catchUp(now: number): void {
    if (this.#planned && this.#planned.at < now) this.#start();
  }

  stop(): void {
    this.#stopped = true;
    this.#planned?.timer[Symbol.dispose]();
  }

  async #sweep(): Promise<void> {
    this.#again = this.#sweeping;
    if (this.#sweeping) return;
    this.#sweeping = true;
    try {
      let swept: SweepResult;
      let more: boolean;
      do {
        this.#again = false;
        swept = await this.#deps.sweep(SLICE);
        more = swept.removed > 0 && swept.next !== undefined && swept.next <= this.#deps.now();
      } while ((more || this.#again) && !this.#stopped);
      if (swept.next !== undefined) this.scheduleAt(swept.next);
    } catch {
      this.scheduleAt(this.#deps.now() + AGAIN_MS);
    } finally {
      this.#sweeping = false;
    }
  }
}
