import type { Caller } from '../core/access/caller.ts';
import type { CallContext } from '../core/operations/call-context.ts';
import type { Perform } from '../core/operations/perform.ts';
import type { MemoryStore } from '../core/store/store.ts';
import type { Clock } from '../core/time/clock.ts';

const MINUTE_MS = 60_000;

interface Deps {
  readonly store: Pick<MemoryStore, 'status' | 'lock'>;
  readonly clock: Clock;
  readonly minutes: number;
  /** For how many milliseconds the owner has been away, where the system knows; else it is what is asked here that counts. */
  readonly ownerIdleMs?: (() => number) | undefined;
  /** Hears that the memory was locked. */
  readonly onLock: () => void;
}

/**
 * Takes the key away when nobody needs it. On a desktop that is when its owner is away, whatever agents do meanwhile; where no owner
 * sits, when nothing has been asked. One timer, and none while there is no key to take away.
 */
export class AutoLock implements Disposable {
  readonly #deps: Deps;
  readonly #ms: number;
  #asked: number;
  #underWay = 0;
  #timer: Disposable | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#ms = deps.minutes * MINUTE_MS;
    this.#asked = deps.clock.steady();
    this.#watch();
  }

  /** The same door, and what goes through it is use. Whoever asks only how things stand does not use the memory. */
  trackUse(perform: Perform): Perform {
    return async (caller: Caller, name: string, input: unknown, during?: CallContext): Promise<never> => {
      const used = name !== 'status';
      if (used) this.#underWay += 1;
      try {
        return (await perform(caller, name, input, during)) as never;
      } finally {
        if (used) {
          this.#underWay -= 1;
          this.#asked = this.#deps.clock.steady();
        }
        // Whatever was asked may have brought the key back.
        this.#watch();
      }
    };
  }

  /** At once: the machine sleeps, or its screen was locked. */
  lock(why: string): void {
    const { store, onLock } = this.#deps;
    if (store.status().key.at !== 'ok') return;
    store.lock(`${why} (HELMDECK_LOCK_AFTER)`);
    onLock();
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
  }

  #watch(): void {
    if (this.#timer || this.#deps.store.status().key.at !== 'ok') return;
    this.#timer = this.#deps.clock.after(Math.max(this.#ms - this.#unused(), 0), () => this.#look());
  }

  #look(): void {
    this.#timer = undefined;
    const { ownerIdleMs: away, minutes } = this.#deps;
    if (this.#unused() < this.#ms) this.#watch();
    else
      this.lock(
        `${away ? 'its owner was away' : 'nothing was asked of it'} for ${minutes === 1 ? 'a minute' : `${minutes} minutes`}`,
      );
  }

  #unused(): number {
    const { ownerIdleMs: away, clock } = this.#deps;
    if (away) return away();
    return this.#underWay > 0 ? 0 : clock.steady() - this.#asked;
  }
}
