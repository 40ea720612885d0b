import type { ClockState } from '../../contract/status.ts';
import { type KeyKeeper, STORED_CLOCK } from '../crypto/key-keeper.ts';
import type { CommitQueue } from '../store/commit-queue.ts';
import type { Connection } from '../store/connection.ts';
import type { Clock } from './clock.ts';
import { formatTime } from './format-time.ts';
import { type ClockReading, type StoredTime, Timekeeper } from './timekeeper.ts';

/**
 * Maximum milliseconds between two saves of the time while there are writes. The program can be killed at any moment, and the
 * stored time must not be older than this.
 */
const WRITE_INTERVAL_MS = 60_000;
/** Maximum milliseconds between two saves of the time without writes. */
const IDLE_INTERVAL_MS = 3_600_000;
/** Name of a mark in the `meta` table. If the mark exists, some entries may have been written while the clock was in doubt. */
const DOUBTFUL_WRITES = 'written in doubt';

/**
 * Byte offsets in the encrypted clock state: trusted time ‖ start and kind of the doubt ‖ uptime ‖ id of the uptime counter.
 * Absent parts at the end are omitted.
 */
const SINCE_AT = 8;
const KIND_AT = SINCE_AT + 8;
const UPTIME_AT = KIND_AT + 1;
const ORIGIN_AT = UPTIME_AT + 8;
const NO_DOUBT = 0xff;

function encode({ trusted, doubt, uptime }: StoredTime): Buffer {
  const origin = Buffer.from(uptime?.origin ?? '');
  const bytes = Buffer.alloc(uptime ? ORIGIN_AT + origin.length : doubt ? UPTIME_AT : SINCE_AT);
  bytes.writeDoubleBE(trusted);
  if (bytes.length > SINCE_AT) {
    bytes.writeDoubleBE(doubt?.since ?? 0, SINCE_AT);
    bytes.writeUInt8(doubt ? Number(doubt.atStart) : NO_DOUBT, KIND_AT);
  }
  if (uptime) {
    bytes.writeDoubleBE(uptime.ms, UPTIME_AT);
    bytes.set(origin, ORIGIN_AT);
  }
  return bytes;
}

function decode(bytes: Buffer): StoredTime {
  const hasDoubt = bytes.length >= UPTIME_AT && bytes[KIND_AT] !== NO_DOUBT;
  return {
    trusted: bytes.readDoubleBE(),
    doubt: hasDoubt ? { since: bytes.readDoubleBE(SINCE_AT), atStart: bytes[KIND_AT] === 1 } : undefined,
    uptime:
      bytes.length > ORIGIN_AT ? { ms: bytes.readDoubleBE(UPTIME_AT), origin: bytes.toString('utf8', ORIGIN_AT) } : undefined,
  };
}

interface Deps {
  readonly connection: Pick<Connection, 'meta' | 'setMeta' | 'deleteMeta'>;
  readonly keys: KeyKeeper;
  readonly queue: Pick<CommitQueue, 'run'>;
  readonly clock: Clock;
  /** Called when a doubt ends, or when the clock is set back during a doubt. */
  corrected(): void;
}

/** The clock of a store. Its time is saved, encrypted, in the database file for the next run. */
export class StoredClock {
  readonly #deps: Deps;
  readonly #time: Timekeeper;
  readonly #hasEarlierTime: boolean;
  #savedTime = 0;
  #loaded = false;
  #saving = false;
  /**
   * Whether a doubt began or changed and is not saved yet. A doubt is saved without waiting for a write. Otherwise, after a
   * restart, the clock's jump would look like time during which the program was not running.
   */
  #hasUnsavedDoubt = false;
  #doubtfulWrites: boolean;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#hasEarlierTime = deps.connection.meta(STORED_CLOCK) !== undefined;
    this.#doubtfulWrites = deps.connection.meta(DOUBTFUL_WRITES) !== undefined;
    const suspected = (): void => {
      this.#hasUnsavedDoubt = true;
      if (this.#loaded) this.saveWhenDue();
    };
    // Until the stored time can be read, the trusted time is 0. So the clock is in doubt, and no entry is deleted as expired.
    this.#time = new Timekeeper(deps.clock, this.#hasEarlierTime ? 0 : undefined, () => deps.corrected(), suspected);
  }

  /** Reads the clocks and returns the time. Saves a doubt that begins, and calls `corrected` when a doubt ends. */
  now(): number {
    return this.#time.update();
  }

  /** Like `now`, but returns whether the clock is in doubt. During a doubt, entries that seem expired are not deleted. */
  get inDoubt(): boolean {
    return this.#time.checkDoubt();
  }

  get state(): ClockState {
    return this.#hasEarlierTime && !this.#loaded ? CLOCK_UNCHECKED : clockStateOf(this.#time.read());
  }

  /** Milliseconds until `review` can end the doubt; undefined if only the owner can end it. */
  get reviewIn(): number | undefined {
    const reading = this.#time.read();
    return reading.at === 'ahead' ? reading.reviewIn : undefined;
  }

  review(): Promise<void> {
    return this.#time.review();
  }

  /** Reads the stored time. Call this as soon as the key is available. */
  load(): void {
    if (this.#loaded) return;
    const bytes = this.#deps.keys.readSecret(STORED_CLOCK);
    const stored = bytes && decode(bytes);
    if (stored) {
      // Until the stored time is known, every clock seems to be in doubt. Only a doubt that `restore` finds must be saved.
      this.#hasUnsavedDoubt = false;
      this.#time.restore(stored);
    }
    this.#savedTime = stored?.trusted ?? 0;
    this.#loaded = true;
    // A new memory stores its time immediately. Otherwise, a restart with a wrong clock would have no stored time to compare that
    // clock with.
    if (this.#hasUnsavedDoubt || !this.#hasEarlierTime) this.saveWhenDue();
  }

  /**
   * Follows the time that another process has saved. Accepts it if that process was not in doubt, or if the owner has confirmed it
   * there, which can also set the time back.
   */
  follow(isConfirmed: boolean): void {
    if (!this.#loaded) return;
    this.#doubtfulWrites = this.#deps.connection.meta(DOUBTFUL_WRITES) !== undefined;
    const bytes = this.#deps.keys.readSecret(STORED_CLOCK);
    const stored = bytes && decode(bytes);
    if (!stored || stored.doubt) return;
    const endsDoubt = this.inDoubt && this.now() - stored.trusted <= IDLE_INTERVAL_MS;
    if (!isConfirmed && !endsDoubt) return;
    this.#time.restore(stored);
    this.#savedTime = stored.trusted;
    this.#hasUnsavedDoubt = false;
    this.#deps.corrected();
  }

  trusted(): number {
    return this.#time.trusted();
  }

  /** Saves the time if the last save was more than an hour ago, or if a doubt is unsaved. Called by every read and write. */
  saveWhenDue(): void {
    if (!this.#deps.keys.heldKeys || this.#saving) return;
    if (this.trusted() - this.#savedTime < IDLE_INTERVAL_MS && !this.#hasUnsavedDoubt) return;
    this.#saving = true;
    const hadDoubt = this.#hasUnsavedDoubt;
    this.#hasUnsavedDoubt = false;
    // After a failed save, the next read or write tries again.
    const done = (): boolean => (this.#saving = false);
    const failed = (): void => {
      this.#hasUnsavedDoubt ||= hadDoubt;
      done();
    };
    this.#deps.queue.run(() => this.save()).then(done, failed);
  }

  /**
   * Saves the time if the last save was more than a minute ago, and marks writes during a doubt. Call it in the transaction of a
   * write.
   */
  saveIfDue(): void {
    if (this.trusted() - this.#savedTime >= WRITE_INTERVAL_MS) this.save();
    if (!this.#doubtfulWrites && this.inDoubt) this.#markDoubtfulWrites();
  }

  /** Saves the trusted time, never a time in doubt. Call it in a transaction. */
  save(): void {
    const stored = this.#time.toStore();
    this.#savedTime = stored.trusted;
    this.#deps.keys.saveSecret(STORED_CLOCK, encode(stored));
  }

  /**
   * Accepts the wall clock, and records that dates written with the earlier, wrong time need correction. Call it in a
   * transaction.
   */
  trustWall(): void {
    this.#time.trustWall();
    this.save();
    this.#markDoubtfulWrites();
  }

  /** Whether some entries may still have dates that were written while the clock was in doubt. */
  get hasUntrustedDates(): boolean {
    return this.#doubtfulWrites;
  }

  /**
   * Deletes the mark of untrusted dates, unless the clock is in doubt. Call it in a transaction, after the dates were corrected.
   */
  clearUntrustedDates(): void {
    if (this.inDoubt) return;
    this.#deps.connection.deleteMeta(DOUBTFUL_WRITES);
    this.#doubtfulWrites = false;
  }

  #markDoubtfulWrites(): void {
    this.#deps.connection.setMeta(DOUBTFUL_WRITES, 1);
    this.#doubtfulWrites = true;
  }
}

/** The state while there is no key. The time of the last run cannot be read then, so the clock cannot be checked. */
const CLOCK_UNCHECKED: ClockState = { at: 'unchecked' };

function clockStateOf(reading: ClockReading): ClockState {
  if (reading.at === 'ok') return reading;
  const machine = formatTime(reading.wall);
  if (reading.at === 'behind') {
    const memory = formatTime(reading.trusted);
    return {
      at: 'behind',
      machine,
      memory,
      why: `the clock of this machine says ${dayOf(machine)}, but this memory has already recorded ${dayOf(memory)}`,
      remedy: `If the clock is wrong, set it. If the clock is right, ${confirm}.`,
    };
  }
  const { trusted, atStart, reviewIn } = reading;
  // If the stored time cannot be read, the trusted time begins at 0, in 1970.
  const memory = trusted < YEAR_2000 ? undefined : formatTime(trusted);
  return {
    at: 'ahead',
    machine,
    ...(memory !== undefined && { memory }),
    why: whyAhead(machine, memory, atStart),
    remedy:
      reviewIn === undefined
        ? `If the clock is wrong, set it. If the clock is right, ${confirm}.`
        : `If the clock is wrong, set it. If the clock is right, ${confirm}, or wait: a clock that the system reports as synchronized is accepted after an hour.`,
    ...(reviewIn !== undefined && { review_in_seconds: Math.ceil(reviewIn / 1000) }),
  };
}

const YEAR_2000 = Date.UTC(2000);

const confirm = 'confirm it in the window, or with: helmdeck-memory clock trust';

const dayOf = (at: string): string => at.slice(0, 10);

function whyAhead(machine: string, memory: string | undefined, atStart: boolean): string {
  const claim = `the clock of this machine says ${dayOf(machine)}`;
  if (memory === undefined) return `${claim}, and the stored time of this memory cannot be read`;
  const last = atStart
    ? `this memory was last used on ${dayOf(memory)}`
    : `according to the time that has passed since the last check, the date is ${dayOf(memory)}`;
  return `${claim}, but ${last}. Until the clock is set or confirmed, expired facts are hidden and not deleted`;
}
