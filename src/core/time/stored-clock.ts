import type { ClockState } from '../../contract/status.ts';
import { type KeyKeeper, STORED_CLOCK } from '../crypto/key-keeper.ts';
import type { CommitQueue } from '../store/commit-queue.ts';
import type { Connection } from '../store/connection.ts';
import type { Clock } from './clock.ts';
import { formatTime } from './format-time.ts';
import { type ClockReading, type StoredTime, Timekeeper } from './timekeeper.ts';

/** During writes, the stored time is at most this old, in case the program is killed. */
const WRITE_INTERVAL_MS = 60_000;
/** The same without writes. */
const IDLE_INTERVAL_MS = 3_600_000;
/** A mark in the file: some entries may have been written while the clock was in doubt. */
const DOUBTFUL_WRITES = 'written in doubt';

/** The sealed layout: the trusted time ‖ start and kind of a doubt ‖ uptime ‖ its origin. Empty parts at the end are left out. */
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
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  readonly queue: CommitQueue;
  readonly clock: Clock;
  /** Called when the clock was set back after a doubt, or when a doubt has ended otherwise. */
  corrected(): void;
}

/** The time that a store uses. The file stores it, sealed, from one run to the next. */
export class StoredClock {
  readonly #deps: Deps;
  readonly #time: Timekeeper;
  /** The file contains a time from an earlier run. */
  readonly #hasEarlierTime: boolean;
  #savedTime = 0;
  #loaded = false;
  #saving = false;
  /** A doubt began or changed. It must be saved without waiting for a write, or the next run would take the jump for an absence. */
  #hasUnsavedDoubt = false;
  #doubtfulWrites: boolean;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#hasEarlierTime = deps.connection.meta(STORED_CLOCK) !== undefined;
    this.#doubtfulWrites = deps.connection.meta(DOUBTFUL_WRITES) !== undefined;
    // Until the stored time can be read, the clock is in doubt, so that nothing is deleted because it seems expired.
    const suspected = (): void => {
      this.#hasUnsavedDoubt = true;
      if (this.#loaded) this.saveWhenDue();
    };
    this.#time = new Timekeeper(deps.clock, this.#hasEarlierTime ? 0 : undefined, () => deps.corrected(), suspected);
  }

  now(): number {
    return this.#time.update();
  }

  /** While true, nothing may be deleted because it seems expired. */
  get inDoubt(): boolean {
    return this.#time.inDoubt;
  }

  get state(): ClockState {
    return this.#hasEarlierTime && !this.#loaded ? CLOCK_UNCHECKED : clockStateOf(this.#time.read());
  }

  /** Milliseconds until a review may end the doubt; undefined if only the owner can. */
  get reviewIn(): number | undefined {
    const reading = this.#time.read();
    return reading.at === 'ahead' ? reading.reviewIn : undefined;
  }

  review(): Promise<void> {
    return this.#time.review();
  }

  /** Reads the stored time. Call it as soon as the key is available. */
  load(): void {
    if (this.#loaded) return;
    const bytes = this.#deps.keys.readSecret(STORED_CLOCK);
    const stored = bytes && decode(bytes);
    if (stored) this.#time.restore(stored);
    this.#savedTime = stored?.trusted ?? 0;
    this.#loaded = true;
    // A new memory stores its time at once, or a start with a wrong clock would find nothing to compare that clock with.
    if (this.#hasUnsavedDoubt || !this.#hasEarlierTime) this.saveWhenDue();
  }

  /** The latest time that is not in doubt. */
  trusted(): number {
    return this.#time.trusted();
  }

  /** Saves a time that is older than an hour, or a new doubt. Called by every read and write. */
  saveWhenDue(): void {
    if (!this.#deps.keys.heldKeys || this.#saving) return;
    if (this.trusted() - this.#savedTime < IDLE_INTERVAL_MS && !this.#hasUnsavedDoubt) return;
    this.#saving = true;
    const hadDoubt = this.#hasUnsavedDoubt;
    this.#hasUnsavedDoubt = false;
    // After a failure, the next read or write tries again.
    const done = (): boolean => (this.#saving = false);
    const failed = (): void => {
      this.#hasUnsavedDoubt ||= hadDoubt;
      done();
    };
    this.#deps.queue.run(() => this.save()).then(done, failed);
  }

  /** Call it in the transaction of a write. */
  saveIfDue(): void {
    if (this.trusted() - this.#savedTime >= WRITE_INTERVAL_MS) this.save();
    if (!this.#doubtfulWrites && this.inDoubt) this.#markDoubtfulWrites();
  }

  /** Call it in a transaction. Saves the trusted time, never one in doubt. */
  save(): void {
    const stored = this.#time.toStore();
    this.#savedTime = stored.trusted;
    this.#deps.keys.saveSecret(STORED_CLOCK, encode(stored));
  }

  /** Call it in a transaction. Marks the entries of an earlier, wrong time for correction. */
  trustWall(): void {
    this.#time.trustWall();
    this.save();
    this.#markDoubtfulWrites();
  }

  /** Whether some entries may still have dates of a clock in doubt. */
  get hasUntrustedDates(): boolean {
    return this.#doubtfulWrites;
  }

  /** Call it in a transaction, after the correction. Keeps the mark while the clock is in doubt. */
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

/** Without the key, the time of the last run cannot be read, so there is nothing to compare the clock with. */
const CLOCK_UNCHECKED: ClockState = { at: 'unchecked' };

/** Describes the state of the clock to the owner. */
function clockStateOf(reading: ClockReading): ClockState {
  if (reading.at === 'ok') return reading;
  const machine = formatTime(reading.wall);
  if (reading.at === 'behind') {
    const memory = formatTime(reading.trusted);
    return {
      at: 'behind',
      machine,
      memory,
      why: `the clock of this machine says ${dayOf(machine)}, but this memory has already seen ${dayOf(memory)}`,
      remedy: `If the clock is wrong, set it. If it is right, ${confirm}.`,
    };
  }
  const { trusted, atStart, reviewIn } = reading;
  // A stored time that cannot be read counts as 1970.
  const memory = trusted < YEAR_2000 ? undefined : formatTime(trusted);
  return {
    at: 'ahead',
    machine,
    ...(memory !== undefined && { memory }),
    why: whyAhead(machine, memory, atStart),
    remedy:
      reviewIn === undefined
        ? `If the clock is wrong, set it. If it is right, ${confirm}.`
        : `If the clock is wrong, set it. If it is right, ${confirm}, or leave it: a clock that the system reports as synchronized is accepted after an hour.`,
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
    : `by the time that has passed it should be ${dayOf(memory)}`;
  return `${claim}, but ${last}. Until the clock is set or confirmed, expired facts are hidden and not deleted`;
}
