import type { Clock } from './clock.ts';
import type { CommitQueue } from './commit-queue.ts';
import type { Connection } from './connection.ts';
import { KEPT_CLOCK, type KeyKeeper } from './key-keeper.ts';
import { Timekeeper } from './timekeeper.ts';

/** How far the clock may run ahead of what the file remembers of it, in case the program is killed. */
const WHILE_WRITING_MS = 60_000;
/** The same when nobody writes. */
const AT_LEAST_MS = 3_600_000;

interface Deps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly queue: CommitQueue;
  readonly clock: Clock;
}

/** The time a store goes by, as the file remembers it from one run to the next. What it remembers is sealed. */
export class KeptClock {
  readonly #deps: Deps;
  readonly #time: Timekeeper;
  #kept = 0;
  #learnt = false;
  #keeping = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    // Until it can be read, nothing that seems expired is destroyed.
    this.#time = new Timekeeper(deps.clock, deps.connection.meta(KEPT_CLOCK) === undefined ? undefined : 0);
  }

  now(): number {
    return this.#time.now();
  }

  /** Milliseconds until expired bytes may be destroyed. */
  held(): number {
    return this.#time.held();
  }

  /** As soon as there is a key. */
  learn(): void {
    if (this.#learnt) return;
    const kept = this.#deps.keys.secret(KEPT_CLOCK)?.readDoubleBE();
    if (kept !== undefined) this.#time.learn(kept);
    this.#kept = kept ?? 0;
    this.#learnt = true;
  }

  /** The latest moment that is not in doubt. */
  trusted(): number {
    return this.#time.trusted();
  }

  /** What only the passing of time asks for; it is noticed when somebody comes by. */
  tick(): void {
    if (!this.#deps.keys.custody || this.#keeping || this.trusted() - this.#kept < AT_LEAST_MS) return;
    this.#keeping = true;
    // If it cannot be kept now, the next one who comes by tries again.
    const done = (): boolean => (this.#keeping = false);
    this.#deps.queue.run(() => this.keep()).then(done, done);
  }

  /** Inside a transaction that somebody else began. */
  keepAlong(): void {
    if (this.trusted() - this.#kept >= WHILE_WRITING_MS) this.keep();
  }

  /** Inside a transaction. A moment still in doubt is not kept. */
  keep(): void {
    const bytes = Buffer.alloc(8);
    this.#kept = this.trusted();
    bytes.writeDoubleBE(this.#kept);
    this.#deps.keys.keepSecret(KEPT_CLOCK, bytes);
  }
}
