import { setTimeout as delay } from 'node:timers/promises';
import { PIPELINE } from '../../contract/limits.ts';
import { isKeyAvailable } from '../../contract/status.ts';
import type { Entry, EntryEvent, MemoryStore } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import type { PipelineStore, RunRecord } from './pipeline-store.ts';

/** Milliseconds after which a run of another process counts as interrupted, unless that process has renewed its record. */
const LEASE_MS = 60_000;
const RENEW_MS = LEASE_MS / 3;
/** Milliseconds for which a cancellation waits for the process that runs the pipeline. */
const CANCEL_WAIT_MS = 10_000;
const POLL_MS = 100;
const CANCELLATIONS = 'pipeline-cancellations/';

interface Deps {
  readonly store: MemoryStore;
  readonly clock: Clock;
  readonly runs: PipelineStore;
  /** Cancels a run of this process. `why` is empty if its caller cancelled it. */
  readonly cancelHere: (runId: string, why: string) => void;
  /** Saves the records of all runs of this process. Returns false if there are none. */
  readonly renew: () => Promise<boolean>;
}

export interface StoredRun {
  readonly entry: Entry;
  readonly kept: RunRecord;
}

/**
 * Follows the runs of other processes, if several processes share the memory. Each process renews the records of its runs, so that
 * other processes do not take them for interrupted. To cancel a run of another process, an entry is stored which that process sees.
 */
export class SharedRuns implements Disposable {
  readonly #deps: Deps;
  readonly #isShared: boolean;
  readonly #subscription: Disposable | undefined;
  #timer: Disposable | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#isShared = deps.store.refresh !== undefined;
    this.#subscription = this.#isShared ? deps.store.onEntryEvent((event) => this.#follow(event)) : undefined;
  }

  /** Whether another process may be running the pipeline of a record that says "running". Call it only for such records. */
  isHeld({ expiresAt }: Pick<Entry, 'expiresAt'>): boolean {
    if (!this.#isShared) return false;
    // A renewal changes only the expiry.
    const savedAt = expiresAt - PIPELINE.runTtl * 1000;
    return this.#deps.store.now() - savedAt < LEASE_MS;
  }

  /** Renews the records of this process from now on, until no run is left. */
  keepRenewing(): void {
    if (!this.#isShared || this.#timer) return;
    this.#timer = this.#deps.clock.after(RENEW_MS, () => {
      this.#timer = undefined;
      void this.#deps.renew().then(
        (again) => again && this.keepRenewing(),
        () => this.keepRenewing(),
      );
    });
  }

  /** Cancels the matching runs of other processes, and waits until they have ended. */
  async cancelElsewhere(subject: string, matches: (run: StoredRun) => boolean, why: string): Promise<void> {
    const { store, runs } = this.#deps;
    // Without the key, no record can be read. Then this process can only cancel its own runs.
    if (!this.#isShared || !isKeyAvailable(store.status().key)) return;
    const chosen: StoredRun[] = [];
    for await (const run of runs.runs(subject, 'running')) if (this.isHeld(run.entry) && matches(run)) chosen.push(run);
    await Promise.all(chosen.map((run) => this.#cancel(subject, run, why)));
  }

  async #cancel(subject: string, { entry, kept }: StoredRun, why: string): Promise<void> {
    const { store, runs } = this.#deps;
    const runId = kept.run.run_id;
    await store.space({ subject }, 'pack').put({
      key: CANCELLATIONS + runId,
      value: JSON.stringify({ why }),
      category: 'pipeline:cancelling',
      tags: [],
      author: entry.author,
      lifetime: LEASE_MS,
    });
    const until = performance.now() + CANCEL_WAIT_MS;
    while (performance.now() < until) {
      const found = await runs.run(subject, runId);
      if (found?.kept.run.status !== 'running' || !this.isHeld(found.entry)) return;
      await delay(POLL_MS);
    }
  }

  #follow(event: EntryEvent): void {
    if (event.what !== 'stored' || event.kind !== 'pack' || !event.entry.key.startsWith(CANCELLATIONS)) return;
    const { why } = JSON.parse(event.entry.value) as { why: string };
    this.#deps.cancelHere(event.entry.key.slice(CANCELLATIONS.length), why);
  }

  [Symbol.dispose](): void {
    this.#subscription?.[Symbol.dispose]();
    this.#timer?.[Symbol.dispose]();
  }
}
