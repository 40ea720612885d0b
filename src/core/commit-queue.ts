/** What the queue needs of a database. */
export interface Transactions {
  begin(): void;
  commit(): void;
  /** Also when the database has already rolled back by itself. */
  rollback(): void;
  savepoint(): void;
  release(): void;
  rollbackToSavepoint(): void;
  /** False after the database gave up the whole transaction by itself. */
  readonly open: boolean;
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

/**
 * Writes that arrive in the same tick share one transaction and one flush of the disk; each keeps its own fate.
 * A promise fulfils only after the commit that holds its bytes (R-DUR).
 */
export class CommitQueue {
  readonly #transactions: Transactions;
  readonly #failed: (error: unknown) => { told: unknown; doubtful: boolean };
  #waiting: Job[] = [];
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

  run<T>(job: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ run: job, resolve, reject });
      this.#scheduled ??= setImmediate(() => this.#flush());
    });
  }

  /** Fulfils when nothing waits. */
  idle(): Promise<void> {
    return this.#scheduled ? new Promise((resolve) => this.#idle.push(resolve)) : Promise.resolve();
  }

  #flush(): void {
    const jobs = this.#waiting.slice(0, MOST_AT_ONCE);
    this.#waiting = this.#waiting.slice(MOST_AT_ONCE);
    this.#commit(jobs);
    this.#scheduled = this.#waiting.length > 0 ? setImmediate(() => this.#flush()) : undefined;
    if (!this.#scheduled) for (const resolve of this.#idle.splice(0)) resolve();
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
      this.#transactions.release();
      return tell;
    } catch (error) {
      if (!this.#transactions.open) throw error;
      this.#transactions.rollbackToSavepoint();
      const { told, doubtful } = this.#failed(error);
      if (doubtful) throw new Doubt(told);
      return () => job.reject(told);
    }
  }
}
