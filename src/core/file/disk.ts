import { asFailure, Failure } from '../../contract/failure.ts';
import { type FileState, describeFileFailure } from '../../contract/status.ts';
import type { Connection } from '../store/connection.ts';
import type { YieldTurn } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { type DiskFailure, diskFailureOf } from './disk-failure.ts';
import type { DiskReserve } from './disk-space.ts';
import { Purger } from './purger.ts';

/** Minimum milliseconds between attempts to refill the reserve, because on a full disk each attempt costs as much as a write. */
const REFILL_EVERY_MS = 100;
/** Milliseconds from startup to the scan for deleted bytes, so that the scan does not delay the first requests. */
const SCAN_AFTER_MS = 200;

interface Deps {
  readonly connection: Connection;
  /** `folder` and `reserve` are absent for a memory in RAM. */
  readonly folder?: string;
  readonly reserve?: DiskReserve;
  readonly clock: Clock;
}

/** Manages the database file on its disk: errors, a full disk, the length of the log, and the purge of deleted bytes. */
export class Disk {
  readonly #deps: Deps;
  readonly #purger: Purger;
  #state: FileState = { at: 'open' };
  /** The scan for deleted bytes that an earlier run left in the file. Resolves to false if the scan failed. */
  #scan: Promise<boolean> | undefined;
  #scanned = false;
  readonly #scheduledScan: Disposable | undefined;
  #isShorteningLog = false;
  #refilledAt = -Infinity;
  #closed = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#purger = new Purger(() => deps.connection.truncateLog(), deps.clock);
    // Purge at startup, because an earlier run may have been killed between a delete and its purge.
    this.#purger.purgeNow();
    if (deps.folder !== undefined) this.#scheduledScan = deps.clock.after(SCAN_AFTER_MS, () => void this.#scanOnce());
  }

  get state(): FileState {
    return this.#state;
  }

  /** Runs a step on the database file. Converts its error to a failure for the caller. */
  attempt<T>(step: () => T): T {
    this.require();
    try {
      return step();
    } catch (error) {
      throw this.explain(error).failure;
    }
  }

  /** Converts an error to the failure for the callers. Reopens the file if its contents are in doubt. */
  explain(error: unknown): DiskFailure {
    const failure = diskFailureOf(error, this.#deps.folder ?? '.') ?? { failure: asFailure(error), doubtful: false };
    if (failure.doubtful) this.#reopen();
    return failure;
  }

  /** Reopens the file if an earlier error closed it. Throws if the file cannot be reopened. */
  require(): void {
    if (this.#state.at === 'open') return;
    this.#reopen();
    if (this.#state.at === 'failed') {
      throw new Failure('store_unavailable', describeFileFailure(this.#state));
    }
  }

  /**
   * Keeps the log short. Called after each commit. Each step runs in a separate event loop turn, so that requests run in between.
   */
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
   * Purges deleted bytes. Returns true if no deleted byte is left. On a full disk, the reserve provides space for the purge. If
   * nothing was deleted and no earlier purge is pending, does nothing, because a purge flushes the file while other requests
   * wait.
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

  /** Purges the bytes of evicted surplus rows, which no promise covers, less often than other deleted bytes. */
  purgeLater(): void {
    this.#purger.purgeLater();
  }

  /**
   * Runs a step in a transaction on a full disk. The reserve provides space for the log. The log is truncated immediately, before
   * other writers can use that space.
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

  /** Truncates the log in two steps if it has at least `pages` pages. If a step fails, the next purge truncates the log. */
  async shortenLog(pages: number, yieldTurn: YieldTurn): Promise<void> {
    if (!this.#tryStep(() => this.#deps.connection.checkpointLogFrom(pages))) return;
    await yieldTurn();
    this.#tryStep(() => this.#deps.connection.truncateLog());
  }

  /** Refills the reserve when the disk has space again, before writers use that space. */
  refillReserve(): void {
    const { reserve, clock } = this.#deps;
    if (!reserve || reserve.isFull || clock.steady() - this.#refilledAt < REFILL_EVERY_MS) return;
    this.#refilledAt = clock.steady();
    reserve.refill();
  }

  /** Closes the file. Truncates the log if possible; otherwise the next startup truncates it. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#purger.stop();
    this.#scheduledScan?.[Symbol.dispose]();
    await this.#scan;
    try {
      this.#deps.connection.truncateLog();
    } catch {
      // Ignore the error, because every acknowledged write is already durable.
    }
    this.#deps.connection.close();
  }

  /**
   * Runs a step and ignores its error. Returns false if the step failed. Every acknowledged write is already durable, and the
   * next write will report the disk error.
   */
  #tryStep(step: () => boolean): boolean {
    if (this.#closed) return false;
    try {
      return step();
    } catch {
      return false;
    }
  }

  /** Returns the running or finished scan, or starts one. The file is scanned once each time it is opened. */
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
        remedy: 'Check the disk. Helmdeck Memory resumes when the disk works again.',
      };
    }
  }
}
