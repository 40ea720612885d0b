import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { PIPELINE } from '../../contract/limits.ts';
import type { PipelineRun } from '../../contract/pipeline.ts';
import { allEntries } from '../packs/all-entries.ts';
import { putFairly } from '../packs/fair-quota.ts';
import { collectPage } from '../store/collect-page.ts';
import { clientId } from '../store/entry.ts';
import { fairEviction } from '../store/fair-eviction.ts';
import type { Author, Entry, MemoryStore, Space } from '../store/store.ts';

/**
 * Categories and key prefix of run records. Packs cannot write such entries: a pack's categories have no colon, and its keys
 * start with a name that contains a dot.
 */
const RUN = { running: 'pipeline:running', ended: 'pipeline:ended', begin: 'pipeline-runs/' } as const;

/**
 * Number of runs that are decrypted in one turn of the event loop. It is small, because runs can be large and other callers wait.
 */
const RUN_SLICE = 4;

/**
 * Number of the oldest ended runs that are compared when one of them must be deleted. Comparing more runs would take too long,
 * because each run must be decrypted.
 */
const EVICTION_WINDOW = 40;

export interface RunRecord {
  readonly run: PipelineRun;
  readonly learned?: Readonly<Record<string, string>> | undefined;
  /** True if the caller or the author was quarantined. Only the client that started the run and the owner read its record. */
  readonly quarantined?: true | undefined;
}

export class PipelineStore {
  readonly #store: MemoryStore;

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  async saveRun(subject: string, author: Author, kept: RunRecord): Promise<void> {
    const draft = {
      key: RUN.begin + kept.run.run_id,
      value: JSON.stringify(kept),
      category: kept.run.status === 'running' ? RUN.running : RUN.ended,
      tags: [],
      author,
      lifetime: PIPELINE.runTtl * 1000,
    };
    await putFairly(this.#store, subject, author, () => this.#space(subject).put(draft));
  }

  /**
   * Stores the record of an ended run. If the subject's quota is used up, deletes older runs, then the outputs of this run, then
   * its record. Otherwise a record that still says "running" would be ended again at every startup.
   */
  async saveEndedRun(subject: string, author: Author, kept: RunRecord): Promise<void> {
    while (!(await this.#fits(subject, author, kept))) {
      if (await this.#dropOldest(subject)) continue;
      const steps = kept.run.steps.map(({ output: _output, ...step }) => step);
      if (await this.#fits(subject, author, { ...kept, run: { ...kept.run, steps } })) return;
      await this.#store.forget(subject, { kinds: ['pack'], key: RUN.begin + kept.run.run_id, session: '' });
      return;
    }
  }

  async run(subject: string, runId: string): Promise<{ readonly entry: Entry; readonly kept: RunRecord } | undefined> {
    const entry = await this.#space(subject).get(RUN.begin + runId);
    return entry && { entry, kept: runIn(entry) };
  }

  /** Returns the runs in this state, most recently written first. */
  async *runs(subject: string, state: 'running' | 'ended'): AsyncGenerator<{ readonly entry: Entry; readonly kept: RunRecord }> {
    const query = { sort: 'updated', category: RUN[state], limit: RUN_SLICE } as const;
    for await (const entry of allEntries(this.#space(subject), query)) yield { entry, kept: runIn(entry) };
  }

  async runningIds(subject: string): Promise<string[]> {
    const query = { sort: 'oldest', category: RUN.running, limit: PIPELINE.runs } as const;
    const { entries } = await collectPage(this.#space(subject), query, { between: nextTurn });
    return entries.map(({ key }) => key.slice(RUN.begin.length));
  }

  async trimEndedRuns(subject: string): Promise<void> {
    if ((await this.#space(subject).count(RUN.ended)) > PIPELINE.runs) await this.#dropOldest(subject);
  }

  async #fits(subject: string, author: Author, kept: RunRecord): Promise<boolean> {
    try {
      await this.saveRun(subject, author, kept);
      return true;
    } catch (error) {
      if (error instanceof Failure && error.code === 'quota_exceeded') return false;
      throw error;
    }
  }

  /**
   * Deletes one of the oldest ended runs, of the client with most of these runs, so that no client displaces all runs of another.
   * Returns false if there is no ended run.
   */
  async #dropOldest(subject: string): Promise<boolean> {
    const query = { sort: 'oldest', category: RUN.ended, limit: EVICTION_WINDOW } as const;
    const { entries } = await collectPage(this.#space(subject), query, { between: nextTurn });
    const clients = entries.map(({ author }) => clientId(author));
    for (const position of fairEviction(clients, 1)) {
      const key = entries[position]?.key ?? '';
      await this.#store.forget(subject, { kinds: ['pack'], key, session: '' });
    }
    return entries.length > 0;
  }

  #space(subject: string): Space {
    return this.#store.space({ subject }, 'pack');
  }
}

const runIn = ({ value }: Entry): RunRecord => JSON.parse(value) as RunRecord;

/**
 * Returns the failed state of a run that was interrupted. The end of the run was not observed, so the end time and duration are
 * left out.
 */
export function interruptedRun({ run }: RunRecord): PipelineRun {
  const step = run.steps.find(({ status }) => status === 'running')?.id;
  return {
    ...run,
    status: 'failed',
    steps: run.steps.map((each) => ({
      ...each,
      status: each.status === 'running' ? 'failed' : each.status === 'waiting' ? 'skipped' : each.status,
    })),
    failure: {
      error: 'cancelled',
      message:
        'The program stopped or the memory was locked before this run ended. If its result is still needed, start it again.',
      ...(step !== undefined && { step }),
    },
  };
}
