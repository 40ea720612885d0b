import type { DiskFailure } from '../file/disk-failure.ts';
import type { Connection } from './connection.ts';

type Transactions = Pick<
  Connection,
  'begin' | 'commit' | 'rollback' | 'savepoint' | 'releaseSavepoint' | 'rollbackToSavepoint' | 'inTransaction'
>;

interface Host {
  /** Called before each transaction. Throws if the database file is not open. */
  readonly require?: () => void;
  /**
   * Converts an error to the failure that callers receive. `doubtful` is true if the error leaves the contents of the disk
   * uncertain.
   */
  readonly explain: (error: unknown) => Pick<DiskFailure, 'doubtful'> & { readonly failure: unknown };
  readonly committed?: () => void;
}

interface Job {
  run(): unknown;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/** Thrown to roll back the whole transaction when the error of one job leaves the contents of the disk uncertain. */
class DoubtfulDisk extends Error {
  readonly failure: unknown;
  readonly doubtful = true;

  constructor(failure: unknown) {
    super('The contents of the disk are in doubt.');
    this.failure = failure;
  }
}

/** Maximum jobs in one transaction. Larger transactions would delay readers. */
const MAX_JOBS = 256;
/** Number of commits with a savepoint for each job after a job failed, because more jobs may fail soon. */
const CAREFUL_COMMITS = 64;
/** Length of the pause after a background job while other jobs wait, as a multiple of the background job's duration. */
const BACKGROUND_PAUSE_FACTOR = 14;

/**
 * Commits writes. Writes that arrive in the same event loop turn share one transaction and one disk flush. If one write fails,
 * the others still succeed. The promise of a write resolves after the commit that makes the write durable (R-DUR-01).
 */
export class CommitQueue {
  readonly #transactions: Transactions;
  readonly #host: Host;
  readonly #lanes = new Map<string, Job[]>();
  readonly #background: ((isAlone: boolean) => Job)[] = [];
  #backgroundPausedUntil = 0;
  /** Number of jobs in the lanes, now and one event loop turn ago. */
  #waiting = 0;
  #waitingBefore = 0;
  #collectUntil = 0;
  #commitMs = 0;
  #carefulCommits = 0;
  #scheduled: NodeJS.Immediate | undefined;
  #idle: (() => void)[] = [];

  constructor(transactions: Transactions, host: Host) {
    this.#transactions = transactions;
    this.#host = host;
  }

  /**
   * Runs a job in a shared transaction. Jobs of one lane run in order. Lanes take turns, so that a client with many writes does
   * not delay other clients (R-FACT-17).
   */
  run<T>(job: () => T, lane = ''): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiting = this.#lanes.get(lane);
      if (waiting) waiting.push({ run: job, resolve, reject });
      else this.#lanes.set(lane, [{ run: job, resolve, reject }]);
      this.#waiting += 1;
      this.#scheduled ??= setImmediate(() => this.#begin());
    });
  }

  /**
   * Runs a job that is not urgent: one per transaction, and only for a small part of the time while other jobs wait. `isAlone`
   * is false if the job shares its transaction with other jobs and should therefore do less work.
   */
  runInBackground<T>(job: (isAlone: boolean) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#background.push((isAlone) => ({ run: () => this.#measure(() => job(isAlone)), resolve, reject }));
      this.#scheduled ??= setImmediate(() => this.#flush());
    });
  }

  #measure<T>(job: () => T): T {
    const start = performance.now();
    try {
      return job();
    } finally {
      const now = performance.now();
      this.#backgroundPausedUntil = now + BACKGROUND_PAUSE_FACTOR * (now - start);
    }
  }

  whenIdle(): Promise<void> {
    return this.#scheduled ? new Promise((resolve) => this.#idle.push(resolve)) : Promise.resolve();
  }

  #begin(): void {
    this.#waitingBefore = 0;
    this.#collectUntil = performance.now() + this.#commitMs;
    this.#collect();
  }

  /**
   * Waits for more jobs before the commit. Clients that received their responses together usually write again within a few event
   * loop turns, and waiting one turn is cheaper than one more flush. Stops waiting when a turn brings no more jobs, or when the
   * wait has lasted as long as the last flush.
   */
  #collect(): void {
    const more = this.#waiting > this.#waitingBefore && this.#waiting < MAX_JOBS;
    if (!more || performance.now() >= this.#collectUntil) return this.#flush();
    this.#waitingBefore = this.#waiting;
    this.#scheduled = setImmediate(() => this.#collect());
  }

  #flush(): void {
    const start = performance.now();
    this.#commit(this.#next(), this.#carefulCommits > 0);
    if (this.#carefulCommits > 0) this.#carefulCommits -= 1;
    this.#commitMs = performance.now() - start;
    this.#scheduled = this.#lanes.size > 0 || this.#background.length > 0 ? setImmediate(() => this.#flush()) : undefined;
    if (!this.#scheduled) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #next(): Job[] {
    const jobs = takeFairly(this.#lanes, MAX_JOBS);
    this.#waiting -= jobs.length;
    const isAlone = jobs.length === 0;
    if (isAlone || performance.now() >= this.#backgroundPausedUntil) {
      jobs.push(...this.#background.splice(0, 1).map((job) => job(isAlone)));
    }
    return jobs;
  }

  /**
   * Runs the jobs in one transaction. Savepoints cost about 3 µs a write, so they are used only if `careful` is true.
   * Otherwise, if a job fails, all jobs run again with savepoints.
   */
  #commit(jobs: readonly Job[], careful: boolean): void {
    const outcomes: (() => void)[] = [];
    const savepoints = careful && jobs.length > 1;
    try {
      this.#host.require?.();
      this.#transactions.begin();
      for (const job of jobs) outcomes.push(savepoints ? this.#runInSavepoint(job) : this.#run(job));
      this.#transactions.commit();
      this.#host.committed?.();
    } catch (error) {
      this.#rollback();
      const { failure, doubtful } = error instanceof DoubtfulDisk ? error : this.#host.explain(error);
      // A failed flush is never repeated, because the disk may have lost data of the first attempt without reporting it.
      if (jobs.length === 1 || doubtful) for (const job of jobs) job.reject(failure);
      // Nothing was committed. One job can exhaust a shared resource, such as disk space, so retry each job alone.
      else if (careful) for (const job of jobs) this.#commit([job], careful);
      else {
        this.#carefulCommits = CAREFUL_COMMITS;
        this.#commit(jobs, true);
      }
      return;
    }
    for (const settle of outcomes) settle();
  }

  #rollback(): void {
    try {
      this.#transactions.rollback();
    } catch {
      // SQLite has already rolled back. Callers receive the error that caused the rollback.
    }
  }

  #run(job: Job): () => void {
    const value = job.run() as never;
    return () => job.resolve(value);
  }

  /** Runs a job in a savepoint, so that a failed job rolls back only its own changes. */
  #runInSavepoint(job: Job): () => void {
    this.#transactions.savepoint();
    try {
      const settle = this.#run(job);
      this.#transactions.releaseSavepoint();
      return settle;
    } catch (error) {
      if (!this.#transactions.inTransaction) throw error;
      this.#transactions.rollbackToSavepoint();
      const { failure, doubtful } = this.#host.explain(error);
      if (doubtful) throw new DoubtfulDisk(failure);
      return () => job.reject(failure);
    }
  }
}

/** Takes at most `most` jobs, an equal number from each lane. A lane with jobs left moves behind the others. */
export function takeFairly<T>(lanes: Map<string, T[]>, most: number): T[] {
  const share = Math.max(1, Math.floor(most / lanes.size));
  const jobs: T[] = [];
  for (const [lane, waiting] of Array.from(lanes)) {
    if (jobs.length >= most) break;
    lanes.delete(lane);
    jobs.push(...waiting.slice(0, share));
    if (waiting.length > share) lanes.set(lane, waiting.slice(share));
  }
  return jobs;
}
