import type { ClockState } from '../../contract/status.ts';
import { STORED_CLOCK, type KeyKeeper } from '../crypto/key-keeper.ts';
import type { CommitQueue } from '../store/commit-queue.ts';
import type { Connection } from '../store/connection.ts';
import { clockStateOf, CLOCK_UNCHECKED } from './clock-state.ts';
import type { Clock } from './clock.ts';
import { type StoredTime, Timekeeper } from './timekeeper.ts';

/** How far the clock may run ahead of what the file remembers of it, in case the program is killed. */
const WHILE_WRITING_MS = 60_000;
/** The same when nobody writes. */
const AT_LEAST_MS = 3_600_000;
/** Stands in the file while it may hold entries that were written by a clock in doubt. */
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
  /** The clock was set back after a doubt, or a doubt has ended otherwise. */
  corrected(): void;
}

/** The time a store goes by, as the file remembers it from one run to the next. What it remembers is sealed. */
export class StoredClock {
  readonly #deps: Deps;
  readonly #time: Timekeeper;
  /** The file holds a time from an earlier run. */
  readonly #expected: boolean;
  #kept = 0;
  #learnt = false;
  #keeping = false;
  /** A doubt began or changed. The next run must learn of it even if nobody writes, or it would take the jump for an absence. */
  #hasUnsavedDoubt = false;
  #doubtfulWrites: boolean;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#expected = deps.connection.meta(STORED_CLOCK) !== undefined;
    this.#doubtfulWrites = deps.connection.meta(DOUBTFUL_WRITES) !== undefined;
    // Until it can be read, nothing that seems expired is destroyed.
    const suspected = (): void => {
      this.#hasUnsavedDoubt = true;
      if (this.#learnt) this.saveWhenDue();
    };
    this.#time = new Timekeeper(deps.clock, this.#expected ? 0 : undefined, () => deps.corrected(), suspected);
  }

  now(): number {
    return this.#time.now();
  }

  /** Whether nothing irreversible may happen now. */
  get inDoubt(): boolean {
    return this.#time.inDoubt;
  }

  get state(): ClockState {
    return this.#expected && !this.#learnt ? CLOCK_UNCHECKED : clockStateOf(this.#time.read());
  }

  /** Milliseconds until a review may end the doubt; undefined if only the owner can. */
  get reviewIn(): number | undefined {
    const reading = this.#time.read();
    return reading.at === 'ahead' ? reading.reviewIn : undefined;
  }

  review(): Promise<void> {
    return this.#time.review();
  }

  /** As soon as there is a key. */
  load(): void {
    if (this.#learnt) return;
    const bytes = this.#deps.keys.readSecret(STORED_CLOCK);
    const stored = bytes && decode(bytes);
    if (stored) this.#time.restore(stored);
    this.#kept = stored?.trusted ?? 0;
    this.#learnt = true;
    // A new memory stores its time at once, or a start with a wrong clock would find nothing to compare that clock with.
    if (this.#hasUnsavedDoubt || !this.#expected) this.saveWhenDue();
  }

  /** The latest moment that is not in doubt. */
  trusted(): number {
    return this.#time.trusted();
  }

  /** What only the passing of time asks for; it is noticed when somebody comes by. */
  saveWhenDue(): void {
    if (!this.#deps.keys.heldKeys || this.#keeping) return;
    if (this.trusted() - this.#kept < AT_LEAST_MS && !this.#hasUnsavedDoubt) return;
    this.#keeping = true;
    const hadDoubt = this.#hasUnsavedDoubt;
    this.#hasUnsavedDoubt = false;
    // If it cannot be kept now, the next one who comes by tries again.
    const done = (): boolean => (this.#keeping = false);
    const failed = (): void => {
      this.#hasUnsavedDoubt ||= hadDoubt;
      done();
    };
    this.#deps.queue.run(() => this.save()).then(done, failed);
  }

  /** Inside a transaction that somebody else began. */
  saveIfDue(): void {
    if (this.trusted() - this.#kept >= WHILE_WRITING_MS) this.save();
    if (!this.#doubtfulWrites && this.inDoubt) this.#markDoubtfulWrites();
  }

  /** Inside a transaction. A moment still in doubt is not kept. */
  save(): void {
    const stored = this.#time.toStore();
    this.#kept = stored.trusted;
    this.#deps.keys.saveSecret(STORED_CLOCK, encode(stored));
  }

  /** Inside a transaction. What was written by an earlier, wrong time is corrected afterwards. */
  trustWall(): void {
    this.#time.trustWall();
    this.save();
    this.#markDoubtfulWrites();
  }

  /** Whether there may be entries that a clock in doubt has written, and that wait to be corrected. */
  get hasUntrustedDates(): boolean {
    return this.#doubtfulWrites;
  }

  /** Inside a transaction. While the clock is in doubt there may be more of them. */
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
