import type { Clock } from './clock.ts';

const HOUR = 3_600_000;
/** A clock that moved further than this against the steady one has jumped, and may be wrong. */
const JUMP = 24 * HOUR;
/** How long it must then run steadily before we believe it enough to destroy what it says has expired. */
const TRUST = HOUR;

/**
 * The moment every read and write goes by (R-TIME).
 *
 * - It never runs behind the latest moment that was trusted, so a clock set back prolongs no lifetime.
 * - It follows the wall clock forward at once, so what should have expired is not shown.
 * - After a jump forward of more than a day nothing may be destroyed for an hour: if the clock was wrong and is
 *   put right meanwhile, everything is there again.
 */
export class Timekeeper {
  readonly #clock: Clock;
  #trusted: number;
  #trustedAt: number;
  #heldSince: number | undefined;

  /** `trusted` is the latest moment known from earlier runs: undefined for a new memory, 0 if it cannot be read. */
  constructor(clock: Clock, trusted: number | undefined) {
    this.#clock = clock;
    this.#trusted = trusted ?? clock.now();
    this.#trustedAt = clock.steady();
    this.now();
  }

  now(): number {
    const wall = this.#clock.now();
    const steady = this.#clock.steady();
    const expected = this.#trusted + (steady - this.#trustedAt);
    if (wall - expected > JUMP) {
      this.#heldSince ??= steady;
      if (steady - this.#heldSince < TRUST) return wall;
    }
    this.#heldSince = undefined;
    this.#trusted = Math.max(wall, Math.floor(expected));
    this.#trustedAt = steady;
    return this.#trusted;
  }

  /** Milliseconds until expired bytes may be destroyed; 0 when nothing speaks against it. */
  held(): number {
    this.now();
    return this.#heldSince === undefined ? 0 : TRUST - (this.#clock.steady() - this.#heldSince);
  }

  /** What an earlier run knew, learnt late. */
  learn(trusted: number): void {
    if (trusted <= this.#trusted) return;
    this.#trusted = trusted;
    this.#trustedAt = this.#clock.steady();
    this.now();
  }

  /** What the next run should start from. A moment still in doubt is not handed on. */
  trusted(): number {
    this.now();
    return this.#trusted;
  }
}
