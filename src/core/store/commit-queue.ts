import type { DiskFailure } from '../file/disk-failure.ts';
import type { Connection } from './connection.ts';

type Transactions = Pick<
  Connection,
  'begin' | 'commit' | 'rollback' | 'savepoint' | 'releaseSavepoint' | 'rollbackToSavepoint' | 'inTransaction'
>;

interface Host {
  /** Called before each transaction. Throws if the file is not open. */
  readonly require?: () => void;
  /** Returns the failure for the callers, and whether the error leaves the contents of the disk in doubt. */
  readonly explain: (error: unknown) => Pick<DiskFailure, 'doubtful'> & { readonly failure: unknown };
  /** Called after each commit. */
  readonly committed?: () => void;
}

interface Job {
  run(): unknown;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/** Ends the whole transaction, because a job met an error after which the contents of the disk are in doubt. */
class DoubtfulDisk extends Error {
  readonly failure: unknown;
  readonly doubtful = true;

  constructor(failure: unknown) {
    super('The contents of the disk are in doubt.');
    this.failure = failure;
  }
}

/** Larger transactions would delay readers. */
const MAX_JOBS = 256;
/** While other jobs wait, background jobs pause for this many times as long as the last one took. */
const BACKGROUND_PAUSE = 14;

/**
 * Writes that arrive in the same event loop turn share one transaction and one flush of the disk. If one fails, the others do
 * not. A promise resolves after the commit that makes its write durable (R-DUR-01).
 */
export class CommitQueue {
  readonly #transactions: Transactions;
  readonly #host: Host;
  readonly #lanes = new Map<string, Job[]>();
  readonly #background: ((isAlone: boolean) => Job)[] = [];
  #backgroundPausedUntil = 0;
  /** Jobs in the lanes, now and one turn ago. */
  #waiting = 0;
  #waitingBefore = 0;
  #collectUntil = 0;
  /** How long the last commit took, in milliseconds. */
  #commitMs = 0;
  #scheduled: NodeJS.Immediate | undefined;
  #idle: (() => void)[] = [];

  constructor(transactions: Transactions, host: Host) {
    this.#transactions = transactions;
    this.#host = host;
  }

  /** Jobs of one lane run in order. Lanes take turns, so that a client with many writes does not delay others (R-FACT-17). */
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
   * Runs a job that is not urgent, one per transaction and for a small part of the time while others wait. `isAlone` is
   * true if it is alone in its transaction; otherwise it should do less.
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
      this.#backgroundPausedUntil = now + BACKGROUND_PAUSE * (now - start);
    }
  }

  /** Resolves when the queue is empty. */
  whenIdle(): Promise<void> {
    return this.#scheduled ? new Promise((resolve) => this.#idle.push(resolve)) : Promise.resolve();
  }

  #begin(): void {
    this.#waitingBefore = 0;
    this.#collectUntil = performance.now() + this.#commitMs;
    this.#collect();
  }

  /**
   * Clients that were answered together write again within the next few turns. Waiting one more turn is cheaper than one more
   * flush, as long as each turn brings more jobs and the wait is no longer than a flush.
   */
  #collect(): void {
    const more = this.#waiting > this.#waitingBefore && this.#waiting < MAX_JOBS;
    if (!more || performance.now() >= this.#collectUntil) return this.#flush();
    this.#waitingBefore = this.#waiting;
    this.#scheduled = setImmediate(() => this.#collect());
  }

  #flush(): void {
    const start = performance.now();
    this.#commit(this.#next());
    this.#commitMs = performance.now() - start;
    this.#scheduled = this.#lanes.size > 0 || this.#background.length > 0 ? setImmediate(() => this.#flush()) : undefined;
    if (!this.#scheduled) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Takes an equal share from each lane. A lane with jobs left moves behind the others. */
  #next(): Job[] {
    const share = Math.max(1, Math.floor(MAX_JOBS / this.#lanes.size));
    const jobs: Job[] = [];
    for (const [lane, waiting] of Array.from(this.#lanes)) {
      if (jobs.length >= MAX_JOBS) break;
      this.#lanes.delete(lane);
      jobs.push(...waiting.slice(0, share));
      if (waiting.length > share) this.#lanes.set(lane, waiting.slice(share));
    }
    this.#waiting -= jobs.length;
    const isAlone = jobs.length === 0;
    if (isAlone || performance.now() >= this.#backgroundPausedUntil) {
      jobs.push(...this.#background.splice(0, 1).map((job) => job(isAlone)));
    }
    return jobs;
  }

  #commit(jobs: readonly Job[]): void {
    const outcomes: (() => void)[] = [];
    try {
      this.#host.require?.();
      this.#transactions.begin();
      for (const job of jobs) outcomes.push(jobs.length === 1 ? this.#run(job) : this.#runInSavepoint(job));
      this.#transactions.commit();
      this.#host.committed?.();
    } catch (error) {
      this.#rollback();
      const { failure, doubtful } = error instanceof DoubtfulDisk ? error : this.#host.explain(error);
      // One job can use up a resource of all, such as disk space. Nothing was committed, so each job is tried alone. A failed flush
      // is never repeated, because the disk may have lost the first attempt without saying so.
      if (jobs.length > 1 && !doubtful) for (const job of jobs) this.#commit([job]);
      else for (const job of jobs) job.reject(failure);
      return;
    }
    for (const settle of outcomes) settle();
  }

  #rollback(): void {
    try {
      this.#transactions.rollback();
    } catch {
      // The connection lost the transaction. Callers get the error that ended it.
    }
  }

  #run(job: Job): () => void {
    const value = job.run() as never;
    return () => job.resolve(value);
  }

  /** A job that fails rolls back its own changes only. */
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
