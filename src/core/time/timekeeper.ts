import type { Clock } from './clock.ts';

const SECOND = 1000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** A wall clock that runs ahead of the elapsed time by more than this is in doubt. */
const JUMP = DAY;
/** How long a clock in doubt must run without another jump before the system's report of synchronization counts. */
const PROBATION = HOUR;
/** A longer absence or sleep must be confirmed by the owner. */
const ORDINARY = 30 * DAY;
/** A correction of this size or more during the probation starts it again. */
const ADJUSTMENT = 5 * 60 * SECOND;

/** The wall clock is ahead of what this memory knows, and nothing vouches for it yet. */
interface Doubt {
  /** The steady time of the last jump of the wall clock. */
  readonly since: number;
  /** How far it is ahead. */
  readonly ahead: number;
  /** Found at the start, so it may be an absence: time that passed while the program was not running. */
  readonly atStart: boolean;
}

/** A doubt as it is stored for the next run. */
interface StoredDoubt {
  /** The wall clock at its beginning. */
  readonly since: number;
  readonly atStart: boolean;
}

/** What a run stores for the next one. */
export interface StoredTime {
  /** The latest time that was not in doubt. */
  readonly trusted: number;
  readonly doubt?: StoredDoubt | undefined;
  /** The uptime at that time, if a later run can compare its own with it. */
  readonly uptime?: { readonly origin: string; readonly ms: number } | undefined;
}

/** How the wall clock compares with the time that this memory trusts. */
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
 * The time that every read and write uses (R-TIME).
 *
 * - It never runs behind the latest trusted time, so setting the clock back extends no lifetime.
 * - It follows the wall clock forward at once, so entries that seem expired are hidden.
 * - While the wall clock is in doubt, nothing irreversible may happen, and the trusted time advances by elapsed time only.
 *   When the clock is corrected, everything is visible again.
 *
 * What ends a doubt, and why, is in ADRs 0062 and 0072.
 */
export class Timekeeper {
  readonly #clock: Clock;
  readonly #corrected: () => void;
  readonly #suspected: () => void;
  #trusted: number;
  #trustedAt: number;
  /** Uptime minus the steady clock at the last reading. The difference grows by the time that the machine sleeps. */
  #asleep: number;
  #doubt: Doubt | undefined;
  #starting = true;
  /** The time and the uptime at the start of this run, so that steps of less than a day add up. */
  #anchor: { readonly moment: number; readonly uptime: number };

  /**
   * `trusted` is the latest time known from earlier runs: undefined for a new memory, 0 if it cannot be read yet. `corrected` is
   * called when the wall clock was set back after a doubt, or a doubt has ended otherwise; `suspected` when a doubt begins or changes.
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

  /** Reads the clocks, begins or ends a doubt, and returns the time. */
  update(): number {
    const wall = this.#clock.now();
    const expected = this.#elapsed(wall);
    if (wall - expected > JUMP || this.#hasDrifted(wall, expected)) {
      this.#suspect(wall - expected);
      return wall;
    }
    return this.#trust(Math.max(wall, Math.floor(expected)));
  }

  /** While true, nothing may be deleted because it seems expired. */
  get inDoubt(): boolean {
    this.update();
    return this.#doubt !== undefined;
  }

  /** The latest time that is not in doubt. The next run starts from it. */
  trusted(): number {
    return this.inDoubt ? Math.floor(this.#expected()) : this.#trusted;
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
        reviewIn: doubt.ahead > ORDINARY ? undefined : this.#probation(doubt),
      };
    }
    return trusted - wall > JUMP ? { at: 'behind', wall, trusted } : { at: 'ok' };
  }

  /**
   * Continues from the time that an earlier run stored, which can be read only with the key. Its doubt continues too, so that
   * an hour of short runs can end it, and so that a restart does not turn a jump into an absence.
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

  /** The state to store for the next run. */
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
   * system reports nothing, only the owner can end it.
   */
  async review(): Promise<void> {
    if (!this.#passedProbation()) return;
    const synchronized = await this.#clock.synchronized();
    if (synchronized && this.#passedProbation()) this.trustWall();
  }

  /** The owner has confirmed the wall clock, so the trusted time is set to it, forward or backward. */
  trustWall(): void {
    this.#starting = true;
    this.#trust(this.#clock.now());
  }

  #passedProbation(): Doubt | undefined {
    this.update();
    const doubt = this.#doubt;
    return doubt && doubt.ahead <= ORDINARY && this.#probation(doubt) === 0 ? doubt : undefined;
  }

  /** Milliseconds until a review may end the doubt. */
  #probation({ since }: Doubt): number {
    return Math.max(0, PROBATION - (this.#clock.steady() - since));
  }

  #suspect(ahead: number): void {
    const before = this.#doubt;
    const change = before ? ahead - before.ahead : 0;
    if (before && Math.abs(change) < ADJUSTMENT) return;
    // The rest of an absence after a correction of the clock is still an absence.
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

  /** Whether the steps of this run add up to a jump, each too small to be one. The first reading may follow an absence of up to a day. */
  #hasDrifted(wall: number, expected: number): boolean {
    if (this.#starting || wall - expected <= SECOND) return false;
    return wall - this.#anchor.moment - (this.#clock.uptime() - this.#anchor.uptime) > JUMP;
  }

  /**
   * How long the program was not running, by the uptime. Zero if the uptime cannot prove it, so that a wrong wall clock is in
   * doubt. Never more than the wall clock shows, so that the trusted time cannot run ahead of it.
   */
  #absenceSince({ trusted, uptime }: StoredTime): number {
    if (uptime === undefined || uptime.origin !== this.#clock.uptimeOrigin()) return 0;
    const passed = this.#clock.uptime() - uptime.ms;
    return passed > ORDINARY ? 0 : Math.max(0, Math.min(passed, this.#clock.now() - trusted));
  }

  #expected(): number {
    return this.#trusted + (this.#clock.steady() - this.#trustedAt);
  }

  /**
   * The trusted time plus the time that has passed since, including a sleep of up to 30 days. After a sleep, most systems read
   * the uptime from the hardware clock, so a longer sleep may be a fault of that clock. Reads the uptime only if the wall clock is ahead.
   */
  #elapsed(wall: number): number {
    const expected = this.#expected();
    if (wall - expected <= SECOND) return expected;
    const asleep = this.#clock.uptime() - this.#clock.steady();
    const slept = Math.max(0, asleep - this.#asleep);
    // Never past the wall clock, because some systems report the uptime in whole seconds.
    if (slept <= ORDINARY) this.#trusted += Math.min(slept, wall - expected);
    this.#asleep = asleep;
    return this.#expected();
  }
}
