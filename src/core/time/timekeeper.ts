import { DAY_MS, HOUR_MS, SECOND_MS } from '../../contract/units.ts';
import type { Clock } from './clock.ts';

/** Milliseconds by which the wall clock can be ahead of the expected time before it is in doubt. */
const JUMP = DAY_MS;
/**
 * Milliseconds that a clock in doubt must run without another jump before the system's report of synchronization can end the
 * doubt.
 */
const PROBATION = HOUR_MS;
/** Longest sleep, or time between two runs, that is accepted without the owner's confirmation, in milliseconds. */
const MAX_UNCONFIRMED = 30 * DAY_MS;
/** If the clock changes by at least this many milliseconds during a doubt, `PROBATION` starts again. */
const ADJUSTMENT = 5 * 60 * SECOND_MS;

/** A doubt about the wall clock: the clock is later than the expected time and not yet confirmed. */
interface Doubt {
  /** Time of the wall clock's last jump, by the steady clock. */
  readonly since: number;
  /** Milliseconds by which the wall clock is ahead of the expected time. */
  readonly ahead: number;
  /**
   * Whether the doubt was found at startup. The wall clock may then be right, because time can have passed while the program was
   * not running.
   */
  readonly atStart: boolean;
}

interface StoredDoubt {
  /** Wall clock time when the doubt began. */
  readonly since: number;
  readonly atStart: boolean;
}

/** The clock state that a run stores for the next run. */
export interface StoredTime {
  /** The latest time that was not in doubt. */
  readonly trusted: number;
  readonly doubt?: StoredDoubt | undefined;
  /** System uptime when the state was stored. Undefined if a later run could not compare it with its own uptime. */
  readonly uptime?: { readonly origin: string; readonly ms: number } | undefined;
}

export type ClockReading =
  | { readonly at: 'ok' }
  | {
      readonly at: 'ahead';
      readonly wall: number;
      readonly trusted: number;
      readonly atStart: boolean;
      /** Milliseconds until the clock can be accepted without the owner; undefined if the owner must confirm it. */
      readonly reviewIn: number | undefined;
    }
  | { readonly at: 'behind'; readonly wall: number; readonly trusted: number };

/**
 * Keeps the time that every read and write uses (R-TIME).
 *
 * - The time never runs behind the latest trusted time, so setting the clock back extends no lifetime.
 * - The time follows the wall clock forward immediately, so entries that seem expired are hidden.
 * - While the wall clock is in doubt, nothing irreversible is allowed, and the trusted time advances by elapsed time only. When
 *   the clock is corrected, the hidden entries are visible again.
 *
 * Every public method first reads the clocks, which can begin or end a doubt and so call `suspected` or `corrected`.
 *
 * ADRs 0062 and 0072 explain which events end a doubt, and why.
 */
export class Timekeeper {
  readonly #clock: Clock;
  readonly #corrected: () => void;
  readonly #suspected: () => void;
  #trusted: number;
  #trustedAt: number;
  /** Uptime minus the steady clock at the last reading, in milliseconds. The difference grows while the machine sleeps. */
  #asleep: number;
  #doubt: Doubt | undefined;
  #starting = true;
  /** The time and the uptime at the start of this run, so that several clock steps of less than a day can be added up. */
  #anchor: { readonly moment: number; readonly uptime: number };

  /**
   * `trusted` is the latest time known from earlier runs: undefined for a new memory, 0 if it cannot be read yet. `corrected` is
   * called when a doubt ends, or when the wall clock is set back during a doubt. `suspected` is called when a
   * doubt begins or changes.
   */
  constructor(
    clock: Clock,
    trusted: number | undefined,
    corrected: () => void = () => undefined,
    suspected: () => void = () => undefined,
  ) {
    this.#clock = clock;
    this.#corrected = corrected;
    this.#suspected = suspected;
    this.#trusted = trusted ?? clock.now();
    this.#trustedAt = clock.steady();
    this.#asleep = clock.uptime() - this.#trustedAt;
    this.#anchor = { moment: this.#trusted, uptime: clock.uptime() };
    if (trusted !== 0) this.update();
  }

  /** Reads the clocks, begins or ends a doubt, and returns the current time. */
  update(): number {
    const wall = this.#clock.now();
    const expected = this.#elapsed(wall);
    if (wall - expected > JUMP || this.#hasDrifted(wall, expected)) {
      this.#suspect(wall - expected);
      return wall;
    }
    return this.#trust(Math.max(wall, Math.floor(expected)));
  }

  /** Reads the clocks and returns whether they are in doubt. During a doubt, entries that seem expired are not deleted. */
  checkDoubt(): boolean {
    this.update();
    return this.#doubt !== undefined;
  }

  /** Returns the latest time that is not in doubt. The next run starts with this time. */
  trusted(): number {
    return this.checkDoubt() ? Math.floor(this.#expected()) : this.#trusted;
  }

  read(): ClockReading {
    const trusted = this.trusted();
    const wall = this.#clock.now();
    const doubt = this.#doubt;
    if (doubt) {
      return {
        at: 'ahead',
        wall,
        trusted,
        atStart: doubt.atStart,
        reviewIn: doubt.ahead > MAX_UNCONFIRMED ? undefined : this.#probation(doubt),
      };
    }
    return trusted - wall > JUMP ? { at: 'behind', wall, trusted } : { at: 'ok' };
  }

  /**
   * Continues from the time that an earlier run stored. Called later than the constructor, because the stored time can be read
   * only with the key. A doubt of the earlier run continues too. So the probation can span several short runs, and a restart does
   * not make a jump look like time between two runs.
   */
  restore(stored: StoredTime): void {
    const { doubt: before } = stored;
    this.#doubt = undefined;
    this.#starting = true;
    this.#trusted = stored.trusted + this.#absenceSince(stored);
    this.#trustedAt = this.#clock.steady();
    this.#asleep = this.#clock.uptime() - this.#trustedAt;
    this.#anchor = { moment: this.#trusted, uptime: this.#clock.uptime() };
    const wall = this.update();
    const doubt = this.#doubt as Doubt | undefined;
    if (!doubt || !before || before.since > wall) return;
    this.#doubt = { ...doubt, since: doubt.since - (wall - before.since), atStart: before.atStart };
  }

  toStore(): StoredTime {
    const trusted = this.trusted();
    const doubt = this.#doubt;
    const origin = this.#clock.uptimeOrigin();
    return {
      trusted,
      doubt: doubt && { since: this.#clock.now() - (this.#clock.steady() - doubt.since), atStart: doubt.atStart },
      uptime: origin === undefined ? undefined : { origin, ms: this.#clock.uptime() },
    };
  }

  /**
   * Ends a doubt of at most 30 days after an hour without another jump, if the system reports its clock as synchronized. If the
   * system does not report this, only the owner can end the doubt.
   */
  async review(): Promise<void> {
    if (!this.#passedProbation()) return;
    const synchronized = await this.#clock.synchronized();
    if (synchronized && this.#passedProbation()) this.trustWall();
  }

  /** Sets the trusted time to the wall clock, forward or backward. Call it after the owner has confirmed the wall clock. */
  trustWall(): void {
    this.#starting = true;
    this.#trust(this.#clock.now());
  }

  #passedProbation(): Doubt | undefined {
    this.update();
    const doubt = this.#doubt;
    return doubt && doubt.ahead <= MAX_UNCONFIRMED && this.#probation(doubt) === 0 ? doubt : undefined;
  }

  /** Returns the milliseconds until `review` can end the doubt. */
  #probation({ since }: Doubt): number {
    return Math.max(0, PROBATION - (this.#clock.steady() - since));
  }

  #suspect(ahead: number): void {
    const before = this.#doubt;
    const change = before ? ahead - before.ahead : 0;
    if (before && Math.abs(change) < ADJUSTMENT) return;
    // After a clock correction, the remaining difference can still be time during which the program was not running.
    const atStart = before ? before.atStart && change <= JUMP : this.#starting;
    this.#doubt = { since: this.#clock.steady(), ahead, atStart };
    this.#starting = false;
    this.#suspected();
    if (change < -JUMP) this.#corrected();
  }

  #trust(moment: number): number {
    const doubted = this.#doubt !== undefined;
    this.#doubt = undefined;
    if (this.#starting) this.#anchor = { moment, uptime: this.#clock.uptime() };
    this.#starting = false;
    this.#trusted = moment;
    this.#trustedAt = this.#clock.steady();
    if (doubted) this.#corrected();
    return moment;
  }

  /**
   * Whether several clock steps in this run, each too small to count as a jump, add up to a jump. Not checked at startup, because
   * the program may not have been running for up to a day.
   */
  #hasDrifted(wall: number, expected: number): boolean {
    if (this.#starting || wall - expected <= SECOND_MS) return false;
    return wall - this.#anchor.moment - (this.#clock.uptime() - this.#anchor.uptime) > JUMP;
  }

  /**
   * Returns for how many milliseconds the program was not running, measured by the uptime. Returns 0 if the uptime cannot prove
   * this time, so that a wrong wall clock is in doubt. The result never exceeds the time measured by the wall clock, so that the
   * trusted time cannot run ahead of the wall clock.
   */
  #absenceSince({ trusted, uptime }: StoredTime): number {
    if (uptime === undefined || uptime.origin !== this.#clock.uptimeOrigin()) return 0;
    const passed = this.#clock.uptime() - uptime.ms;
    return passed > MAX_UNCONFIRMED ? 0 : Math.max(0, Math.min(passed, this.#clock.now() - trusted));
  }

  #expected(): number {
    return this.#trusted + (this.#clock.steady() - this.#trustedAt);
  }

  /**
   * Returns the trusted time plus the elapsed time, including a sleep of up to 30 days. On most systems, the uptime after a sleep
   * comes from the hardware clock, so a longer sleep may be a fault of that clock. Reads the uptime only if the wall clock is
   * ahead.
   */
  #elapsed(wall: number): number {
    const expected = this.#expected();
    if (wall - expected <= SECOND_MS) return expected;
    const asleep = this.#clock.uptime() - this.#clock.steady();
    const slept = Math.max(0, asleep - this.#asleep);
    // Do not exceed the wall clock, because some systems report the uptime in whole seconds.
    if (slept <= MAX_UNCONFIRMED) this.#trusted += Math.min(slept, wall - expected);
    this.#asleep = asleep;
    return this.#expected();
  }
}
