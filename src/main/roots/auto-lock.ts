import { MINUTE_MS } from '../../contract/units.ts';
import type { Caller } from '../../core/access/caller.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { MemoryStore } from '../../core/store/store.ts';
import type { Clock } from '../../core/time/clock.ts';

interface Deps {
  readonly store: Pick<MemoryStore, 'status' | 'lock' | 'onKeyChange'>;
  readonly clock: Clock;
  readonly minutes: number;
  /** Returns the milliseconds since the owner last used this computer. If absent, the time since the last call counts. */
  readonly ownerIdleMs?: (() => number) | undefined;
}

/**
 * Locks the memory after HELMDECK_LOCK_AFTER minutes without use. On a desktop, only the owner's use of the computer counts as
 * use, not the calls of agents. On a server, every call counts. Runs at most one timer, and no timer while the memory is locked.
 */
export class AutoLock implements Disposable {
  readonly #deps: Deps;
  readonly #limitMs: number;
  readonly #subscription: Disposable;
  #lastUse: number;
  #activeCalls = 0;
  #timer: Disposable | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#limitMs = deps.minutes * MINUTE_MS;
    this.#lastUse = deps.clock.steady();
    this.#subscription = deps.store.onKeyChange(() => this.#startTimer());
    this.#startTimer();
  }

  /** Wraps `perform`, so that every call except `status` counts as use. */
  trackUse(perform: Perform): Perform {
    return async (caller: Caller, name: string, input: unknown, context?: CallContext): Promise<never> => {
      if (name === 'status') return (await perform(caller, name, input, context)) as never;
      this.#activeCalls += 1;
      try {
        return (await perform(caller, name, input, context)) as never;
      } finally {
        this.#activeCalls -= 1;
        this.#lastUse = this.#deps.clock.steady();
      }
    };
  }

  /** Locks the memory immediately. `why` is shown to the owner, such as "the screen was locked". */
  lock(why: string): void {
    const { store } = this.#deps;
    if (store.status().key.at === 'ok') store.lock(`${why} (HELMDECK_LOCK_AFTER)`);
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
    this.#timer?.[Symbol.dispose]();
  }

  #startTimer(): void {
    if (this.#timer || this.#deps.store.status().key.at !== 'ok') return;
    this.#timer = this.#deps.clock.after(Math.max(this.#limitMs - this.#idleMs(), 0), () => this.#check());
  }

  #check(): void {
    this.#timer = undefined;
    const { ownerIdleMs, minutes } = this.#deps;
    if (this.#idleMs() < this.#limitMs) return this.#startTimer();
    const idle = ownerIdleMs ? 'the owner was away' : 'the memory was not used';
    this.lock(`${idle} for ${minutes === 1 ? 'a minute' : `${minutes} minutes`}`);
  }

  #idleMs(): number {
    const { ownerIdleMs, clock } = this.#deps;
    if (ownerIdleMs) return ownerIdleMs();
    return this.#activeCalls > 0 ? 0 : clock.steady() - this.#lastUse;
  }
}
