import { setImmediate as nextTurn } from 'node:timers/promises';
import { Failure } from '../../contract/failure.ts';
import { PIPELINE } from '../../contract/limits.ts';
import type { PipelineDefinition, PipelineRun } from '../../contract/pipeline.ts';
import type { Author, Entry, MemoryStore, Put, Space } from '../store.ts';
import { wholePage } from '../whole-page.ts';

/** No pack can name a category with a colon, nor a key that does not begin with its own name, which has a dot. */
const DEFINITION = { category: 'pipeline:definition', begin: 'pipelines/' } as const;
const RUN = { running: 'pipeline:running', ended: 'pipeline:ended', begin: 'pipeline-runs/' } as const;

/** Definitions opened in one turn: few enough that nobody waiting behind them notices. */
const SLICE = 20;
/** The same of runs, which may hold far more. */
const RUN_SLICE = 4;

/** A definition as it is kept. */
export interface Kept {
  readonly definition: PipelineDefinition;
  readonly updatedAt: number;
  readonly expiresAt: number;
}

/** A run as it is kept. */
export interface KeptRun {
  readonly run: PipelineRun;
  readonly learned?: Readonly<Record<string, string>> | undefined;
}

/** Pipelines and their runs, sealed in their subject's memory like everything else. */
export class Shelf {
  readonly #store: MemoryStore;

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  async put(subject: string, author: Author, definition: PipelineDefinition): Promise<Put> {
    const space = this.#space(subject);
    const key = DEFINITION.begin + definition.id;
    // None goes by itself to make room: somebody may rely on it.
    if ((await space.count(DEFINITION.category)) >= PIPELINE.most && !(await space.get(key))) {
      throw new Failure('quota_exceeded', `${PIPELINE.most} pipelines are kept already; delete one first.`);
    }
    const value = JSON.stringify(definition);
    return await space.put({ key, value, category: DEFINITION.category, tags: [], author, lifetime: PIPELINE.ttl * 1000 });
  }

  async get(subject: string, id: string): Promise<Kept> {
    const entry = await this.#space(subject).get(DEFINITION.begin + id);
    if (entry) return keptIn(entry);
    throw unknownPipeline();
  }

  /** A to Z. */
  async all(subject: string): Promise<Kept[]> {
    const all: Kept[] = [];
    for await (const entry of this.#newest(subject, DEFINITION.category, SLICE)) all.push(keptIn(entry));
    return all.toSorted((one, other) => (one.definition.id < other.definition.id ? -1 : 1));
  }

  async delete(subject: string, id: string): Promise<void> {
    const selection = { kinds: ['pack'], key: DEFINITION.begin + id, session: '' } as const;
    const { deleted } = await this.#store.forget(subject, selection);
    if (deleted === 0) throw unknownPipeline();
  }

  /** What is used stays. */
  async renew(subject: string, author: Author, id: string): Promise<void> {
    await this.#space(subject).change(DEFINITION.begin + id, { author, lifetime: PIPELINE.ttl * 1000 });
  }

  async keepRun(subject: string, author: Author, kept: KeptRun): Promise<void> {
    await this.#space(subject).put({
      key: RUN.begin + kept.run.run_id,
      value: JSON.stringify(kept),
      category: kept.run.status === 'running' ? RUN.running : RUN.ended,
      tags: [],
      author,
      lifetime: PIPELINE.runTtl * 1000,
    });
  }

  /**
   * Where the share of its subject is used up, older runs make room, then its own outputs do, and in the end it goes itself: a run
   * that could not say that it ended would be ended again at every start.
   */
  async keepEnded(subject: string, author: Author, kept: KeptRun): Promise<void> {
    while (!(await this.#fits(subject, author, kept))) {
      if (await this.#dropOldest(subject)) continue;
      const steps = kept.run.steps.map(({ output: _output, ...step }) => step);
      if (await this.#fits(subject, author, { ...kept, run: { ...kept.run, steps } })) return;
      await this.#store.forget(subject, { kinds: ['pack'], key: RUN.begin + kept.run.run_id, session: '' });
      return;
    }
  }

  async run(subject: string, runId: string): Promise<{ readonly entry: Entry; readonly kept: KeptRun } | undefined> {
    const entry = await this.#space(subject).get(RUN.begin + runId);
    return entry && { entry, kept: runIn(entry) };
  }

  /** The one written last comes first. */
  async *runs(subject: string, state: 'running' | 'ended'): AsyncGenerator<{ readonly entry: Entry; readonly kept: KeptRun }> {
    for await (const entry of this.#newest(subject, RUN[state], RUN_SLICE)) yield { entry, kept: runIn(entry) };
  }

  /** Ids of runs that have not ended, or could not say so. */
  async running(subject: string): Promise<string[]> {
    const query = { sort: 'oldest', category: RUN.running, limit: PIPELINE.runs } as const;
    const { entries } = await wholePage(this.#space(subject), query, { between: nextTurn });
    return entries.map(({ key }) => key.slice(RUN.begin.length));
  }

  /** The oldest that has ended makes room for the one that just did. */
  async trim(subject: string): Promise<void> {
    if ((await this.#space(subject).count(RUN.ended)) > PIPELINE.runs) await this.#dropOldest(subject);
  }

  async #fits(subject: string, author: Author, kept: KeptRun): Promise<boolean> {
    try {
      await this.keepRun(subject, author, kept);
      return true;
    } catch (error) {
      if (error instanceof Failure && error.code === 'quota_exceeded') return false;
      throw error;
    }
  }

  /** Whether there was one. */
  async #dropOldest(subject: string): Promise<boolean> {
    const query = { sort: 'oldest', category: RUN.ended, limit: 1 } as const;
    const { entries } = await wholePage(this.#space(subject), query, { between: nextTurn });
    for (const { key } of entries) await this.#store.forget(subject, { kinds: ['pack'], key, session: '' });
    return entries.length > 0;
  }

  /** So many in one turn. */
  async *#newest(subject: string, category: string, limit: number): AsyncGenerator<Entry> {
    for (let after = {}; ;) {
      const { entries, next } = await this.#space(subject).page({ sort: 'updated', category, limit, ...after });
      yield* entries;
      if (!next) return;
      after = { after: next };
      await nextTurn();
    }
  }

  #space(subject: string): Space {
    return this.#store.space({ subject }, 'pack');
  }
}

const keptIn = ({ value, updatedAt, expiresAt }: Entry): Kept => ({
  definition: JSON.parse(value) as PipelineDefinition,
  updatedAt,
  expiresAt,
});

const runIn = ({ value }: Entry): KeptRun => JSON.parse(value) as KeptRun;

const unknownPipeline = (): Failure =>
  new Failure('not_found', 'There is no such pipeline; list the pipelines to see which there are.');
