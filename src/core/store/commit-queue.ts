/** What the queue needs of a database. */
export interface Transactions {
  begin(): void;
  commit(): void;
  /** Also when the database has already rolled back by itself. */
  rollback(): void;
  savepoint(): void;
  releaseSavepoint(): void;
  rollbackToSavepoint(): void;
  /** False after the database gave up the whole transaction by itself. */
  readonly inTransaction: boolean;
}

interface Job {
  run(): unknown;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/** A job met an error after which the whole transaction is in doubt, and its meaning is known already. */
class Doubt extends Error {
  readonly told: unknown;
  readonly doubtful = true;

  constructor(told: unknown) {
    super('The disk is in doubt.');
    this.told = told;
  }
}

/** More would keep readers waiting. */
const MOST_AT_ONCE = 256;
/** What runs behind rests so many times as long as it took, while others wait. */
const REST = 14;

/**
 * Writes that arrive in the same tick share one transaction and one flush of the disk; each keeps its own fate.
 * A promise fulfils only after the commit that holds its bytes (R-DUR).
 */
export class CommitQueue {
  readonly #transactions: Transactions;
  readonly #failed: (error: unknown) => { told: unknown; doubtful: boolean };
  readonly #lanes = new Map<string, Job[]>();
  readonly #behind: ((alone: boolean) => Job)[] = [];
  #restsUntil = 0;
  /** Jobs in the lanes, and how many of them were there a turn ago. */
  #waiting = 0;
  #waited = 0;
  #gathersUntil = 0;
  /** How long the last commit took, in milliseconds. */
  #took = 0;
  #scheduled: NodeJS.Immediate | undefined;
  #idle: (() => void)[] = [];

  /**
   * `failed` is told of every error that ended a transaction. It says what its callers are told, and whether it is in
   * doubt what the disk holds.
   */
  constructor(transactions: Transactions, failed: (error: unknown) => { told: unknown; doubtful: boolean }) {
    this.#transactions = transactions;
    this.#failed = failed;
  }

  /** Jobs of one lane keep their order; lanes take turns, so that whoever has many keeps nobody else waiting (R-FACT-17). */
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
   * For what has time. Such jobs take their turn one by one, and while others have jobs waiting, a small part of the time;
   * a job is told whether it is alone, so that it may do less if it is not.
   */
  runInBackground<T>(job: (alone: boolean) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#behind.push((alone) => ({ run: () => this.#measure(() => job(alone)), resolve, reject }));
      this.#scheduled ??= setImmediate(() => this.#flush());
    });
  }

  #measure<T>(job: () => T): T {
    const start = performance.now();
    try {
      return job();
    } finally {
      const now = performance.now();
      this.#restsUntil = now + REST * (now - start);
    }
  }

  /** Fulfils when nothing waits. */
  whenIdle(): Promise<void> {
    return this.#scheduled ? new Promise((resolve) => this.#idle.push(resolve)) : Promise.resolve();
  }

  #begin(): void {
    this.#waited = 0;
    this.#gathersUntil = performance.now() + this.#took;
    this.#gather();
  }

  /**
   * Writers who were answered together ask again one after the other. As long as each turn brings more of them, another turn
   * costs less than another flush; but nobody waits longer for the others than for the flush itself.
   */
  #gather(): void {
    const more = this.#waiting > this.#waited && this.#waiting < MOST_AT_ONCE;
    if (!more || performance.now() >= this.#gathersUntil) return this.#flush();
    this.#waited = this.#waiting;
    this.#scheduled = setImmediate(() => this.#gather());
  }

  #flush(): void {
    const start = performance.now();
    this.#commit(this.#next());
    this.#took = performance.now() - start;
    this.#scheduled = this.#lanes.size > 0 || this.#behind.length > 0 ? setImmediate(() => this.#flush()) : undefined;
    if (!this.#scheduled) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** As many from each lane as fit; a lane that is left with some waits its turn behind the others. */
  #next(): Job[] {
    const share = Math.max(1, Math.floor(MOST_AT_ONCE / this.#lanes.size));
    const jobs: Job[] = [];
    for (const [lane, waiting] of Array.from(this.#lanes)) {
      if (jobs.length >= MOST_AT_ONCE) break;
      this.#lanes.delete(lane);
      jobs.push(...waiting.slice(0, share));
      if (waiting.length > share) this.#lanes.set(lane, waiting.slice(share));
    }
    this.#waiting -= jobs.length;
    const alone = jobs.length === 0;
    if (alone || performance.now() >= this.#restsUntil) jobs.push(...this.#behind.splice(0, 1).map((job) => job(alone)));
    return jobs;
  }

  #commit(jobs: readonly Job[]): void {
    const [alone] = jobs;
    const outcomes: (() => void)[] = [];
    try {
      this.#transactions.begin();
      for (const job of jobs) outcomes.push(job === alone && jobs.length === 1 ? this.#run(job) : this.#runApart(job));
      this.#transactions.commit();
    } catch (error) {
      this.#takeBack();
      const { told, doubtful } = error instanceof Doubt ? error : this.#failed(error);
      // One job can exhaust what all needed, the disk for instance. Nothing of them was kept, so each may try alone; but
      // a flush that failed is never tried again as if nothing had been.
      if (jobs.length > 1 && !doubtful) for (const job of jobs) this.#commit([job]);
      else for (const job of jobs) job.reject(told);
      return;
    }
    for (const tell of outcomes) tell();
  }

  /** Where even that fails the transaction is lost with its connection. */
  #takeBack(): void {
    try {
      this.#transactions.rollback();
    } catch {
      // What ended the transaction is told; this would say no more.
    }
  }

  #run(job: Job): () => void {
    const value = job.run() as never;
    return () => job.resolve(value);
  }

  /** Inside a savepoint: a job that fails takes back its own changes and nobody else's. */
  #runApart(job: Job): () => void {
    this.#transactions.savepoint();
    try {
      const tell = this.#run(job);
      this.#transactions.releaseSavepoint();
      return tell;
    } catch (error) {
      if (!this.#transactions.inTransaction) throw error;
      this.#transactions.rollbackToSavepoint();
      const { told, doubtful } = this.#failed(error);
      if (doubtful) throw new Doubt(told);
      return () => job.reject(told);
    }
  }
}
