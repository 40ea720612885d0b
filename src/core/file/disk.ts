import { asFailure, Failure } from '../../contract/failure.ts';
import { type FileState, describeFileFailure } from '../../contract/status.ts';
import type { Transactions } from '../store/commit-queue.ts';
import type { Connection } from '../store/connection.ts';
import type { EntryEvents } from '../store/events.ts';
import type { YieldTurn } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { type DiskFailure, diskFailureOf } from './disk-failure.ts';
import type { DiskReserve } from './disk-space.ts';
import { Purger } from './purger.ts';

/** Asking a full disk for space costs as much as a write. */
const RESERVE_EVERY_MS = 100;
/** Whoever is there at a start comes first; deleted bytes have a second. */
const SURVEY_MS = 200;

interface Deps {
  readonly connection: Connection;
  /** Absent for a memory in RAM. */
  readonly folder?: string;
  readonly reserve?: DiskReserve;
  readonly clock: Clock;
  /** A transaction, or a job of it, was taken back. */
  takenBack(): void;
  readonly journal: EntryEvents;
}

/**
 * The file under the store, and what may go wrong with it: errors that leave in doubt what it holds, a disk that is full,
 * a log that grows, deleted bytes that still stand somewhere.
 */
export class Disk {
  readonly #deps: Deps;
  readonly #purger: Purger;
  #state: FileState = { at: 'open' };
  /** Whether the file has been looked through for what an earlier run left. */
  #surveyed: Promise<boolean> | undefined;
  #isSurveyed = false;
  readonly #planned: Disposable | undefined;
  #keepingLog = false;
  #refilledAt = -Infinity;
  #closed = false;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#purger = new Purger(() => deps.connection.truncateLog(), deps.clock);
    // What a killed program left in the log may have been deleted since, and what it left in the file was not cleared.
    this.#purger.purgeNow();
    if (deps.folder !== undefined) this.#planned = deps.clock.after(SURVEY_MS, () => void this.#survey());
  }

  get state(): FileState {
    return this.#state;
  }

  /** Runs a step on the file; whatever goes wrong is told as what it means. */
  attempt<T>(step: () => T): T {
    this.require();
    try {
      return step();
    } catch (error) {
      throw this.explain(error).told;
    }
  }

  /** What an error means to a caller. If it leaves in doubt what the disk holds, the file has been opened anew. */
  explain(error: unknown): DiskFailure {
    const trouble = diskFailureOf(error, this.#deps.folder ?? '.') ?? { told: asFailure(error), doubtful: false };
    if (trouble.doubtful) this.#reopen();
    return trouble;
  }

  /** The file is open, or can be opened again. */
  require(): void {
    if (this.#state.at === 'open') return;
    this.#reopen();
    if (this.#state.at === 'failed') {
      throw new Failure('store_unavailable', describeFileFailure(this.#state));
    }
  }

  transactions(): Transactions {
    const { connection, journal } = this.#deps;
    const takenBack = (): void => this.#deps.takenBack();
    return {
      begin: () => {
        // A job of the same turn may have met the error that closed it.
        this.require();
        connection.begin();
        // A trigger of another program could keep or bring back each row that is deleted. From here on it cannot add one.
        connection.requireOwnSchema();
      },
      commit: () => {
        connection.commit();
        journal.publish();
        this.#keepLogShortSoon();
      },
      rollback: () => {
        takenBack();
        journal.rollback();
        connection.rollback();
      },
      savepoint: () => {
        journal.savepoint();
        connection.savepoint();
      },
      releaseSavepoint: () => connection.releaseSavepoint(),
      rollbackToSavepoint: () => {
        takenBack();
        journal.rollbackToSavepoint();
        connection.rollbackToSavepoint();
      },
      get inTransaction() {
        return connection.inTransaction;
      },
    };
  }

  /**
   * True once no deleted byte is left. On a full disk the reserve makes room for the purge. Where nothing was deleted and no
   * earlier purge is due, it costs nothing, because every other request waits for a flush of the file.
   */
  async purge(hasDeleted: boolean): Promise<boolean> {
    if (!hasDeleted && this.#isSurveyed && !this.#purger.isDue) return true;
    const surveyed = await this.#survey();
    if (this.#closed) return false;
    if (this.#purger.purgeNow()) return surveyed;
    this.#deps.reserve?.release();
    const gone = this.#purger.purgeNow();
    this.#deps.reserve?.refill();
    return gone && surveyed;
  }

  /**
   * A transaction on a full disk. The reserve gives the room for its log, and the log is empty again before other writers
   * can take that room.
   */
  commitInReserve<T>(step: () => T): T {
    const { connection, reserve, journal } = this.#deps;
    const commit = (): T => {
      reserve?.release();
      try {
        this.#tryToEmptyLog();
        connection.begin();
        connection.requireOwnSchema();
        const result = step();
        connection.commit();
        journal.publish();
        this.#tryToEmptyLog();
        return result;
      } catch (error) {
        this.#deps.takenBack();
        journal.rollback();
        connection.rollback();
        throw error;
      } finally {
        reserve?.refill();
      }
    };
    return this.attempt(() => connection.withoutPreallocation(commit));
  }

  /** What the log holds may need room in the file itself; then it stays, and the commit that follows tells whether there is room. */
  #tryToEmptyLog(): void {
    try {
      this.#deps.connection.truncateLog();
    } catch {
      // See above.
    }
  }

  /** Empties the log once it has so many pages, in two steps. What fails is left to the next purge. */
  async shortenLog(pages: number, between: YieldTurn): Promise<void> {
    if (!this.#quietly(() => this.#deps.connection.checkpointLogFrom(pages))) return;
    await between();
    this.#quietly(() => this.#deps.connection.truncateLog());
  }

  purgeSoon(): void {
    this.#purger.purgeSoon();
  }

  /** What a full disk took is taken back when there is space, before writers use that up. */
  refillReserve(): void {
    const { reserve, clock } = this.#deps;
    if (!reserve || reserve.isFull || clock.steady() - this.#refilledAt < RESERVE_EVERY_MS) return;
    this.#refilledAt = clock.steady();
    reserve.refill();
  }

  /** Leaves the file without a log, if it can; the next start empties what is left. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#purger.stop();
    this.#planned?.[Symbol.dispose]();
    await this.#surveyed;
    try {
      this.#deps.connection.truncateLog();
    } catch {
      // A disk that fails now has kept everything that was acknowledged.
    }
    this.#deps.connection.close();
  }

  /** After the commit, and each step in a turn of its own, so that others come in between. */
  #keepLogShortSoon(): void {
    if (this.#keepingLog) return;
    this.#keepingLog = true;
    setImmediate(() => {
      this.#keepingLog = false;
      const manyChanged = this.#quietly(() => this.#deps.connection.checkpointLongLog());
      if (manyChanged) setImmediate(() => this.#quietly(() => this.#deps.connection.truncateLog()));
    });
  }

  #quietly(step: () => boolean): boolean {
    if (this.#closed) return false;
    try {
      return step();
    } catch {
      // What was committed is on the disk; whatever is wrong with it meets the next one who writes.
      return false;
    }
  }

  /** Once for each time that the file was opened. */
  #survey(): Promise<boolean> {
    return (this.#surveyed ??= this.#lookThrough());
  }

  async #lookThrough(): Promise<boolean> {
    try {
      if (await this.#deps.connection.scanForRemnants()) this.#purger.purgeSoon();
      this.#isSurveyed = true;
      return true;
    } catch {
      return false;
    }
  }

  #reopen(): void {
    this.#deps.journal.publishReset();
    try {
      this.#deps.connection.reopen();
      this.#state = { at: 'open' };
      this.#isSurveyed = false;
      this.#surveyed = this.#lookThrough();
    } catch {
      this.#state = {
        at: 'failed',
        why: 'the disk reports errors',
        remedy: 'Check the disk; the program goes on by itself when it works again.',
      };
    }
  }
}
