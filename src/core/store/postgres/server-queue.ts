import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type KeyKeeper, NewKeyNeeded } from '../../crypto/key-keeper.ts';
import { takeFairly } from '../commit-queue.ts';
import type { ChangeFeed } from './change-feed.ts';
import { type Counters, NotLoaded, type Reads } from './change-set.ts';
import { databaseFailure, isAboutValues, isConflict, isConnectionLost, isRefused } from './database-failure.ts';
import type { Database, RunQuery } from './database.ts';
import { flush, isEmpty, RolledBack } from './flush.ts';
import type { ServerRows } from './rows.ts';
import { isCommitted, type UncertainCommit } from './server-transaction.ts';
import type { SharedSignals } from './shared-signals.ts';
import { BEGIN_WRITING, NEWEST_CHANGE } from './sql.ts';
import type { WorkingSet } from './working-set.ts';

interface Job {
  run(): unknown;
  readonly reads: Reads;
  resolve(value: never): void;
  reject(error: unknown): void;
}

interface Deps {
  readonly database: Database;
  readonly set: WorkingSet;
  readonly rows: ServerRows;
  readonly feed: ChangeFeed;
  readonly keys: KeyKeeper;
  readonly signals: SharedSignals;
}

/** Maximum jobs in one transaction. */
const MAX_JOBS = 256;
const RETRY_MS = 50;
/** Rounds of missing rows for one job. A job needs a few, or some hundred while it evicts rows. */
const MAX_LOADS = 1000;

/** The connection was lost during a COMMIT, and the database has shown that nothing was committed. */
class NotCommitted extends Error {
  constructor(cause: unknown) {
    super('The batch was not committed.', { cause });
  }
}

/**
 * Commits writes. Writes that arrive while another batch commits share the next transaction. The lock of the table `writer_lock` puts the
 * commits of all processes in one order. If one write fails, the others still succeed.
 */
export class ServerQueue {
  readonly #database: Database;
  readonly #set: WorkingSet;
  readonly #rows: ServerRows;
  readonly #feed: ChangeFeed;
  readonly #keys: KeyKeeper;
  readonly #signals: SharedSignals;
  readonly #lanes = new Map<string, Job[]>();
  #running: Promise<void> | undefined;
  /** Whether this process has changed the memory. */
  hasCommitted = false;

  constructor({ database, set, rows, feed, keys, signals }: Deps) {
    this.#database = database;
    this.#set = set;
    this.#rows = rows;
    this.#feed = feed;
    this.#keys = keys;
    this.#signals = signals;
  }

  /** Runs a job in a shared transaction. Jobs of one lane run in order, and lanes take turns (R-FACT-17). */
  run<T>(job: () => T, lane = '', reads: Reads = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const queued: Job = { run: job, reads, resolve, reject };
      const waiting = this.#lanes.get(lane);
      if (waiting) waiting.push(queued);
      else this.#lanes.set(lane, [queued]);
      this.#running ??= this.#pump();
    });
  }

  async whenIdle(): Promise<void> {
    await this.#running;
  }

  async #pump(): Promise<void> {
    // Wait one turn, so that writes that arrive together share the first transaction.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#lanes.size > 0) await this.#commit(takeFairly(this.#lanes, MAX_JOBS));
    this.#running = undefined;
  }

  async #commit(jobs: readonly Job[]): Promise<void> {
    const until = performance.now() + this.#database.reconnectMs;
    for (;;) {
      try {
        const outcomes = await this.#attempt(jobs);
        for (const settle of outcomes) settle();
        return;
      } catch (error) {
        if (error instanceof NewKeyNeeded) {
          // The lock has been released, so no other process waits for the owner.
          await this.#feed.readNewKey();
          continue;
        }
        const isTransient = error instanceof NotCommitted || isConnectionLost(error) || isConflict(error);
        const retry = isTransient && performance.now() < until;
        if (!retry) return this.#failed(jobs, error);
      }
      await delay(RETRY_MS);
    }
  }

  /** Nothing was committed. If the values of one job can be the cause, retries each job alone. */
  async #failed(jobs: readonly Job[], error: unknown): Promise<void> {
    if (jobs.length > 1 && isAboutValues(error)) for (const job of jobs) await this.#commit([job]);
    else for (const job of jobs) job.reject(databaseFailure(error instanceof NotCommitted ? error.cause : error));
  }

  async #attempt(jobs: readonly Job[]): Promise<(() => void)[]> {
    const client = await this.#database.writer();
    const { run, query } = this.#database.on(client);
    const mark = randomBytes(16);
    try {
      const [, [counters]] = await Promise.all([
        query(BEGIN_WRITING),
        run<Counters & { mark: Buffer }>(NEWEST_CHANGE),
        this.#load(run, jobs),
      ]);
      if (!counters) throw new Error('The change log is empty.');
      return await this.#feed.exclusively(async () => {
        await this.#feed.requireCurrent(run, counters.change, counters.mark);
        this.#signals.requireHere();
        this.#keys.follow();
        this.#set.begin(counters);
        const outcomes: (() => void)[] = [];
        for (const job of jobs) outcomes.push(await this.#run(job, run));
        const changes = this.#set.changes();
        if (isEmpty(changes)) await query('ROLLBACK');
        else {
          await flush(client, run, { changes, counters: this.#set.counters, mark, channel: this.#database.channel }).catch(
            async (error: unknown) => {
              // Only the server's own answer proves that nothing was committed.
              if (isRefused(error) || error instanceof RolledBack) throw error;
              this.#database.dropWriter(client);
              if (!(await isCommitted(this.#database, counters.change + 1, mark))) throw new NotCommitted(error);
            },
          );
          this.#feed.committed(counters.change + 1, mark);
          this.hasCommitted = true;
        }
        this.#set.committed();
        return outcomes;
      });
    } catch (error) {
      this.#set.rollback();
      if (isConnectionLost(error) || error instanceof NotCommitted) this.#database.dropWriter(client);
      else await query('ROLLBACK').catch(() => this.#database.dropWriter(client));
      throw error;
    }
  }

  async #load(run: RunQuery, jobs: readonly Job[]): Promise<void> {
    const targets = jobs.flatMap(({ reads }) => (reads.target ? [reads.target] : []));
    await Promise.all([this.#rows.load(run, targets), ...jobs.map(({ reads }) => reads.load?.(run))]);
  }

  /** Runs a job. If the job needs rows that were not read, reads them and runs it again. */
  async #run(job: Job, run: RunQuery): Promise<() => void> {
    for (let loads = 0; ; loads += 1) {
      try {
        const value = this.#set.run(() => job.run()) as never;
        return () => job.resolve(value);
      } catch (error) {
        if (!(error instanceof NotLoaded) || loads === MAX_LOADS) return () => job.reject(databaseFailure(error));
        await error.load(run);
      }
    }
  }

  /** Whether an uncertain commit took place. True if the change log does not contain its number any more. */
  async mayBeCommitted({ change, mark }: UncertainCommit): Promise<boolean> {
    let mayBe = true;
    const load = async (run: RunQuery): Promise<void> => {
      // The lock of the writers was taken, so the uncertain transaction has ended. Another commit can have its number since.
      const [found] = await run<{ same: boolean | null; newest: number }>(
        'SELECT (SELECT mark = $2 FROM change_log WHERE number = $1) AS same, max(number) AS newest FROM change_log',
        [change, mark],
      );
      mayBe = found?.same ?? (found === undefined || found.newest >= change);
    };
    return this.run(() => mayBe, '', { load });
  }
}
