import { asFailure, Failure } from '../../contract/failure.ts';
import { type FileState, describeFileFailure } from '../../contract/status.ts';
import type { Connection } from '../store/connection.ts';
import type { YieldTurn } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { type DiskFailure, diskFailureOf } from './disk-failure.ts';
import type { DiskReserve } from './disk-space.ts';
import { Purger } from './purger.ts';

/** On a full disk an attempt to refill the reserve costs as much as a write. */
const REFILL_EVERY_MS = 100;
/** The scan after a start waits for the first requests. */
const SCAN_AFTER_MS = 200;

interface Deps {
  readonly connection: Connection;
  /** Absent for a memory in RAM. */
  readonly folder?: string;
  readonly reserve?: DiskReserve;
  readonly clock: Clock;
}

/** The file of the store on its disk: errors, a full disk, the length of the log, and the purge of deleted bytes. */
export class Disk {
  readonly #deps: Deps;
  readonly #purger: Purger;
  #state: FileState = { at: 'open' };
  /** The scan for deleted bytes that an earlier run left in the file. False if it failed. */
  #scan: Promise<boolean> | undefined;
  #scanned = false;
  readonly #scheduledScan: Disposable | undefined;
  #isShorteningLog = false;
  #refilledAt = -Infinity;
  #closed = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#purger = new Purger(() => deps.connection.truncateLog(), deps.clock);
    // An earlier run may have been killed after a delete and before the purge.
    this.#purger.purgeNow();
    if (deps.folder !== undefined) this.#scheduledScan = deps.clock.after(SCAN_AFTER_MS, () => void this.#scanOnce());
  }

  get state(): FileState {
    return this.#state;
  }

  /** Runs a step on the file. Throws a failure with the meaning of an error. */
  attempt<T>(step: () => T): T {
    this.require();
    try {
      return step();
    } catch (error) {
      throw this.explain(error).failure;
    }
  }

  /** Returns the failure for the callers. Reopens the file if its contents are in doubt. */
  explain(error: unknown): DiskFailure {
    const failure = diskFailureOf(error, this.#deps.folder ?? '.') ?? { failure: asFailure(error), doubtful: false };
    if (failure.doubtful) this.#reopen();
    return failure;
  }

  /** Reopens the file if an error closed it. Throws if that fails. */
  require(): void {
    if (this.#state.at === 'open') return;
    this.#reopen();
    if (this.#state.at === 'failed') {
      throw new Failure('store_unavailable', describeFileFailure(this.#state));
    }
  }

  /** After a commit, keeps the log short. Each step runs in a separate event loop turn, so that requests run in between. */
  committed(): void {
    if (this.#isShorteningLog) return;
    this.#isShorteningLog = true;
    setImmediate(() => {
      this.#isShorteningLog = false;
      const manyChanged = this.#tryStep(() => this.#deps.connection.checkpointLongLog());
      if (manyChanged) setImmediate(() => this.#tryStep(() => this.#deps.connection.truncateLog()));
    });
  }

  /**
   * True once no deleted byte is left. On a full disk the reserve makes room for the purge. If nothing was deleted and no earlier
   * purge is due, it does nothing, because a purge flushes the file while other requests wait.
   */
  async purge(hasDeleted: boolean): Promise<boolean> {
    if (!hasDeleted && this.#scanned && !this.#purger.isDue) return true;
    const scanned = await this.#scanOnce();
    if (this.#closed) return false;
    if (this.#purger.purgeNow()) return scanned;
    this.#deps.reserve?.release();
    const purged = this.#purger.purgeNow();
    this.#deps.reserve?.refill();
    return purged && scanned;
  }

  purgeSoon(): void {
    this.#purger.purgeSoon();
  }

  /**
   * Runs a step in a transaction on a full disk. The reserve makes room for its log. The log is truncated before other writers can
   * take that room.
   */
  commitInReserve<T>(step: () => T): T {
    const { connection, reserve } = this.#deps;
    const commit = (): T => {
      reserve?.release();
      try {
        this.#tryStep(() => connection.truncateLog());
        const result = connection.transaction(step);
        this.#tryStep(() => connection.truncateLog());
        return result;
      } finally {
        reserve?.refill();
      }
    };
    return this.attempt(() => connection.withoutPreallocation(commit));
  }

  /** Truncates a log of at least this many pages, in two steps. If one fails, the next purge does it. */
  async shortenLog(pages: number, yieldTurn: YieldTurn): Promise<void> {
    if (!this.#tryStep(() => this.#deps.connection.checkpointLogFrom(pages))) return;
    await yieldTurn();
    this.#tryStep(() => this.#deps.connection.truncateLog());
  }

  /** Refills the reserve when there is space again, before writers use it up. */
  refillReserve(): void {
    const { reserve, clock } = this.#deps;
    if (!reserve || reserve.isFull || clock.steady() - this.#refilledAt < REFILL_EVERY_MS) return;
    this.#refilledAt = clock.steady();
    reserve.refill();
  }

  /** Truncates the log if it can; otherwise the next start does. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#purger.stop();
    this.#scheduledScan?.[Symbol.dispose]();
    await this.#scan;
    try {
      this.#deps.connection.truncateLog();
    } catch {
      // Everything acknowledged is durable already.
    }
    this.#deps.connection.close();
  }

  /** False if the step failed. Everything acknowledged is durable, and the next write meets the error. */
  #tryStep(step: () => boolean): boolean {
    if (this.#closed) return false;
    try {
      return step();
    } catch {
      return false;
    }
  }

  /** Scans once each time the file is opened. */
  #scanOnce(): Promise<boolean> {
    return (this.#scan ??= this.#scanForRemnants());
  }

  async #scanForRemnants(): Promise<boolean> {
    try {
      if (await this.#deps.connection.scanForRemnants()) this.#purger.purgeSoon();
      this.#scanned = true;
      return true;
    } catch {
      return false;
    }
  }

  #reopen(): void {
    this.#deps.connection.events.publishReset();
    try {
      this.#deps.connection.reopen();
      this.#state = { at: 'open' };
      this.#scanned = false;
      this.#scan = this.#scanForRemnants();
    } catch {
      this.#state = {
        at: 'failed',
        why: 'the disk reports errors',
        remedy: 'Check the disk. The program resumes when the disk works again.',
      };
    }
  }
}
