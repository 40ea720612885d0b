import type { Caller } from '../../core/access/caller.ts';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Perform } from '../../core/operations/perform.ts';
import type { MemoryStore } from '../../core/store/store.ts';
import type { Clock } from '../../core/time/clock.ts';

const MINUTE_MS = 60_000;

interface Deps {
  readonly store: Pick<MemoryStore, 'status' | 'lock' | 'onKeyChange'>;
  readonly clock: Clock;
  readonly minutes: number;
  /** Milliseconds since the owner last used this computer. Absent where the system cannot tell; then idle means no calls. */
  readonly ownerIdleMs?: (() => number) | undefined;
}

/**
 * Locks the memory when it is idle. On a desktop, it is idle while the owner is away, even if agents are active. On a server, it is
 * idle while there are no calls. Runs one timer, and none while the memory is locked.
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

  /** Counts every call as use, except `status`. */
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

  /** Locks at once, because the computer sleeps or its screen was locked. */
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
    const idle = ownerIdleMs ? 'its owner was away' : 'it was not used';
    this.lock(`${idle} for ${minutes === 1 ? 'a minute' : `${minutes} minutes`}`);
  }

  #idleMs(): number {
    const { ownerIdleMs, clock } = this.#deps;
    if (ownerIdleMs) return ownerIdleMs();
    return this.#activeCalls > 0 ? 0 : clock.steady() - this.#lastUse;
  }
}
