import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { asFailure, Failure, type FailureCode } from '../../contract/failure.ts';
import { PIPELINE } from '../../contract/limits.ts';
import type { PipelineDefinition, PipelineRun, PipelineRuns, RunPipelineInput } from '../../contract/pipeline.ts';
import type { Authorship } from '../access/authorship.ts';
import { authorOf, type Caller, hasScope, signatures } from '../access/caller.ts';
import { mayEnd, mayTakePlace } from '../access/fair-share.ts';
import { requireKey } from '../crypto/require-key.ts';
import type { CallContext } from '../operations/call-context.ts';
import { type Audit, learnableInputs } from '../packs/audit.ts';
import type { PackEngine } from '../packs/engine.ts';
import { whyPrivate } from '../packs/private-output.ts';
import type { Author, MemoryStore } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { formatTime } from '../time/format-time.ts';
import { type ActiveRun, lookUp, type RunInProgress, type RunStep, snapshotOf } from './active-run.ts';
import { ADOPTION_NEEDED, DefinitionStore, type AttributedDefinition } from './definition-store.ts';
import { interruptedRun, PipelineStore, type RunRecord } from './pipeline-store.ts';
import { fillReferences } from './references.ts';
import { SharedRuns, type StoredRun } from './shared-runs.ts';
import { resolveInputs, validateDefinition } from './validate-definition.ts';

interface Deps {
  readonly store: MemoryStore;
  readonly engine: PackEngine;
  readonly audit: Audit;
  readonly authorship: Authorship;
  readonly clock: Clock;
  /** Called when the end of a run could not be recorded. A later clean-up records the end. */
  readonly reportError: (error: unknown) => void;
}

/** The pipeline of a run, the client that started the run, and the client that is responsible for the definition. */
export interface RunOrigin {
  readonly pipeline: string;
  readonly client: string;
  readonly definedBy: string;
}

interface RunStart {
  /** The inputs that the caller sent, without the defaults of the pipeline's author. */
  readonly sent: Readonly<Record<string, unknown>>;
  readonly caller: Caller;
  /** The caller, with only the rights that the pipeline's author also has. */
  readonly acting: Caller;
  readonly kept: AttributedDefinition;
  readonly inputs: Map<string, unknown>;
  readonly context: CallContext;
}

export const DEFINITION_CHANGED = 'The pipeline was changed or deleted during this run, so the run was cancelled.';

type RunEnd = Pick<PipelineRun, 'failure'> & { readonly status: Exclude<PipelineRun['status'], 'running'> };

/**
 * Runs the packs of a pipeline in order. The input of a step can contain the run's inputs and earlier outputs. A run continues
 * after the caller disconnects.
 */
export class PipelineRunner implements Disposable {
  readonly #deps: Deps;
  readonly definitions: DefinitionStore;
  readonly #runs: PipelineStore;
  readonly #shared: SharedRuns;
  /** The runs in progress of all subjects, by run id. */
  readonly #running = new Map<string, RunInProgress>();
  #closed = false;
  #cleanUp: Promise<void> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.definitions = new DefinitionStore(deps.store);
    this.#runs = new PipelineStore(deps.store);
    this.#shared = new SharedRuns({
      ...deps,
      runs: this.#runs,
      cancelHere: (runId, why) =>
        this.#running.get(runId)?.active.cancelling.abort(why === '' ? undefined : new Failure('cancelled', why)),
      renew: async () => {
        await Promise.all([...this.#running.values()].map(({ active }) => this.#saveProgress(active)));
        return this.#running.size > 0;
      },
    });
  }

  /**
   * Throws if a definition could never run. Checks the nesting depth first, so call it before any other function that walks the
   * definition.
   */
  validate(definition: PipelineDefinition): void {
    const packs = new Set(this.#deps.engine.catalogue.all.map(({ name }) => name));
    validateDefinition(definition, (name) => packs.has(name));
  }

  /** Starts a run, and resolves once the run has started. */
  async startRun(caller: Caller, request: RunPipelineInput, { consent }: CallContext = {}): Promise<PipelineRun> {
    // The run continues after the call, so the call's signal does not cancel the run, and the run reports no progress to the
    // call.
    const { active } = await this.#start(caller, request, { ...(consent && { consent }) });
    return snapshotOf(active);
  }

  /** Starts a run, and resolves once the run has ended. Throws if the run did not succeed. */
  async runToEnd(caller: Caller, request: RunPipelineInput, context: CallContext): Promise<PipelineRun> {
    const { active, ended } = await this.#start(caller, request, context);
    const run = (await ended) ?? (await this.getRun(caller, active.run.run_id));
    requireKey(this.#deps.store);
    if (run.status === 'succeeded') return run;
    const {
      error = 'cancelled',
      message = 'The run was cancelled. If its result is still needed, start it again.',
      step,
    } = run.failure ?? {};
    // This cast is safe, because records contain only known codes.
    throw new Failure(error as FailureCode, step === undefined ? message : `In the step ${step}: ${message}`);
  }

  async #start(caller: Caller, { id, inputs: sent }: RunPipelineInput, context: CallContext = {}): Promise<RunInProgress> {
    const { audit } = this.#deps;
    audit.requireRecordable();
    const { subject } = caller;
    const kept = await this.definitions.get(subject, id);
    const acting = await this.#acting(caller, kept);
    const active = this.#createRun({ caller, acting, kept, sent, inputs: resolveInputs(kept.definition, sent), context });
    const { promise: ended, resolve: end } = Promise.withResolvers<PipelineRun | undefined>();
    const running = { active, ended };
    this.#running.set(active.run.run_id, running);
    try {
      await this.#saveProgress(active);
    } catch (error) {
      this.#running.delete(active.run.run_id);
      end(undefined);
      throw error;
    }
    void this.#execute(active).then(end);
    this.#shared.keepRenewing();
    // A quarantined client must not change how long a definition is stored.
    const renewed = acting.quarantined ? Promise.resolve() : this.definitions.renew(subject, authorOf(caller), id);
    void renewed.then(() => this.#endLeftoversOf(subject)).catch((error: unknown) => this.#reportError(error));
    return running;
  }

  /** Returns the runs that the caller can read, most recently updated first. */
  async listRuns(caller: Caller, limit: number): Promise<PipelineRuns['runs']> {
    const { subject } = caller;
    const found = new Map<string, { readonly at: number; readonly run: PipelineRuns['runs'][number] }>();
    // Read running runs first, so that a run that ends in the meantime is read twice rather than missed.
    for (const state of ['running', 'ended'] as const) {
      let left = limit;
      for await (const { entry, kept } of this.#runs.runs(subject, state)) {
        if (!mayRead(caller, { entry, kept })) continue;
        const { steps: _steps, ...run } = this.#now(subject, { entry, kept });
        found.set(run.run_id, { at: entry.updatedAt, run });
        left -= 1;
        if (left === 0) break;
      }
    }
    const newest = [...found.values()].toSorted((one, other) => other.at - one.at);
    return newest.slice(0, limit).map(({ run }) => run);
  }

  async getRun(caller: Caller, runId: string): Promise<PipelineRun> {
    const { subject } = caller;
    // Read the record first, because reading fails while the memory is locked.
    const found = await this.#runs.run(subject, runId);
    if (found && !mayRead(caller, found)) throw unknownRun();
    const running = this.#of(subject, runId);
    if (running) return snapshotOf(running.active);
    if (!found) throw unknownRun();
    return this.#now(subject, found);
  }

  /**
   * Cancels a run. Only the owner and the client that started the run are allowed to cancel it. For other clients, the result is
   * the same as for an unknown run.
   */
  async cancelRun(caller: Caller, runId: string): Promise<PipelineRun> {
    const found = await this.#runs.run(caller.subject, runId);
    if (!found || !mayEnd(caller, found.entry.author)) throw unknownRun();
    const running = this.#of(caller.subject, runId);
    running?.active.cancelling.abort();
    await running?.ended;
    if (!running) await this.#shared.cancelElsewhere(caller.subject, ({ kept: { run } }) => run.run_id === runId, '');
    return await this.getRun(caller, runId);
  }

  /**
   * Cancels the matching runs of a subject, and waits until they have ended. The runs do not write anything after that. If the
   * call comes from a run itself, that run is not cancelled.
   */
  async cancelRuns(subject: string, matches: (run: RunOrigin) => boolean, why: string, from?: CallContext): Promise<void> {
    const chosen = [...this.#running.values()].filter(
      ({ active: { caller, author, run } }) =>
        caller.subject === subject &&
        run.run_id !== from?.pipelineRun &&
        matches({ pipeline: run.pipeline, client: caller.client, definedBy: author.client }),
    );
    for (const { active } of chosen) active.cancelling.abort(new Failure('cancelled', why));
    const isChosen = ({ entry, kept: { run } }: StoredRun): boolean => {
      const { client, definedBy = client } = entry.author;
      const isHere = this.#running.has(run.run_id) || run.run_id === from?.pipelineRun;
      return !isHere && matches({ pipeline: run.pipeline, client, definedBy });
    };
    await Promise.all([...chosen.map(({ ended }) => ended), this.#shared.cancelElsewhere(subject, isChosen, why)]);
  }

  /** Cancels the runs of a token that was revoked or paused (R-PACK-32). */
  cancelRunsOf(token: string, why: Failure): void {
    for (const { active } of this.#running.values()) if (active.caller.token === token) active.cancelling.abort(why);
  }

  /** Cancels the runs of pipelines whose author no longer has a valid token (R-DEFINE-02). */
  async cancelOrphanedRuns(): Promise<void> {
    for (const { active } of this.#running.values()) {
      const { caller, author } = active;
      await this.#acting(caller, { author, legacy: false }).catch((why: unknown) => {
        if (why instanceof Failure && why.code === 'insufficient_scope') active.cancelling.abort(why);
      });
    }
  }

  /**
   * Cancels every run and drops the data that it has in memory (R-LOCK-03). The ends of the runs are recorded after the memory is
   * unlocked.
   */
  cancelAllRuns(why: Failure): void {
    for (const { active } of this.#running.values()) {
      active.cancelling.abort(why);
      active.inputs.clear();
      active.outputs.clear();
      for (const step of active.run.steps) delete step.output;
    }
  }

  /** Ends and records the runs that an earlier process left unfinished, and the runs whose end could not be recorded. */
  async endInterruptedRuns(): Promise<void> {
    for (const { namespace } of await this.#deps.store.namespaces('pack')) {
      if (namespace.session === undefined) await this.#endLeftoversOf(namespace.subject);
    }
  }

  /** Cancels all runs. The next process records that the runs were interrupted. */
  [Symbol.dispose](): void {
    this.#closed = true;
    this.#shared[Symbol.dispose]();
    for (const { active } of this.#running.values()) active.cancelling.abort();
  }

  /**
   * Returns the current state of a run. A record that says "running" is outdated, unless the run is in progress in this process, or
   * in another process that shares the memory.
   */
  #now(subject: string, { entry, kept }: StoredRun): PipelineRun {
    const { run } = kept;
    if (run.status !== 'running' || (!this.#running.has(run.run_id) && this.#shared.isHeld(entry))) return run;
    const running = this.#of(subject, run.run_id);
    return running ? snapshotOf(running.active) : interruptedRun(kept);
  }

  #of(subject: string, runId: string): RunInProgress | undefined {
    const running = this.#running.get(runId);
    return running?.active.caller.subject === subject ? running : undefined;
  }

  /** Returns the caller of a step: the run's caller, with only the rights that the author also has at this moment. */
  async #acting(caller: Caller, { author, legacy }: Pick<AttributedDefinition, 'author' | 'legacy'>): Promise<Caller> {
    if (legacy) throw new Failure('insufficient_scope', ADOPTION_NEEDED);
    const acting = await this.#deps.authorship.effectiveCaller(caller, author);
    if (hasScope(acting, 'packs:run')) return acting;
    throw new Failure(
      'insufficient_scope',
      `The author of this pipeline, ${author.client}, has no token with the scope packs:run any more. Ask the owner of this memory to adopt the pipeline.`,
    );
  }

  #createRun({ caller, acting, kept, sent, inputs, context }: RunStart): ActiveRun {
    const { store, clock } = this.#deps;
    const { definition, author } = kept;
    const running = [...this.#running.values()].filter(({ active }) => active.caller.subject === caller.subject);
    const starters = running.map(({ active }) => active.caller);
    if (!mayTakePlace(caller, starters, PIPELINE.atOnce)) {
      throw new Failure(
        'rate_limited',
        `Too many pipelines of this client are running: the clients of a memory can run ${PIPELINE.atOnce} at once in total; wait until a run ends.`,
        { retryAfter: 1 },
      );
    }
    const cancelling = new AbortController();
    return {
      caller,
      author,
      recordAuthor: authorOf(acting),
      quarantined: acting.quarantined,
      definition,
      inputs,
      learned: learnableInputs(acting, sent),
      run: {
        run_id: randomUUID(),
        pipeline: definition.id,
        status: 'running',
        ...signatures(authorOf(acting)),
        started_at: formatTime(store.now()),
        steps: definition.steps.map(({ id, pack }) => ({ id, pack, status: 'waiting' })),
      },
      outputs: new Map(),
      cancelling,
      signal: context.signal ? AbortSignal.any([cancelling.signal, context.signal]) : cancelling.signal,
      context,
      startedAt: clock.steady(),
      outputBytesLeft: PIPELINE.outputBytes,
      shownBytesLeft: PIPELINE.shownBytes,
    };
  }

  async #execute(active: ActiveRun): Promise<PipelineRun | undefined> {
    try {
      return await this.#end(active, await this.#steps(active));
    } catch (error) {
      this.#reportError(error);
      return undefined;
    } finally {
      this.#running.delete(active.run.run_id);
    }
  }

  async #steps(active: ActiveRun): Promise<RunEnd> {
    const { signal } = active;
    for (const [index, step] of active.run.steps.entries()) {
      if (signal.aborted) return cancelled(signal);
      step.status = 'running';
      active.context.progress?.(index, active.run.steps.length, step.id);
      const startedAt = this.#deps.clock.steady();
      try {
        await this.#saveProgress(active);
        signal.throwIfAborted();
        await this.#step(active, index, step);
        step.status = 'succeeded';
      } catch (error) {
        if (signal.aborted) {
          step.status = 'cancelled';
          return cancelled(signal);
        }
        step.status = 'failed';
        const { code, message } = asFailure(error);
        return { status: 'failed', failure: { error: code, message, step: step.id } };
      } finally {
        step.duration_ms = this.#since(startedAt);
      }
    }
    return { status: 'succeeded' };
  }

  async #step(active: ActiveRun, index: number, step: RunStep): Promise<void> {
    const { engine } = this.#deps;
    const { caller, author, definition, outputs, signal } = active;
    const { run } = active;
    const present = await this.definitions.get(caller.subject, definition.id);
    if (!isDeepStrictEqual([present.definition, present.author], [definition, author])) {
      active.cancelling.abort(new Failure('cancelled', DEFINITION_CHANGED));
      signal.throwIfAborted();
    }
    const acting = await this.#acting(caller, { author, legacy: false });
    const request = definition.steps[index]?.input;
    const input = fillReferences(request, (reference) => lookUp(active, step.id, reference)) as Record<string, unknown>;
    const stepContext: CallContext = {
      signal,
      pipelineRun: run.run_id,
      ...(active.context.consent && { consent: active.context.consent }),
      // Convert the progress of the step to the progress of the whole pipeline.
      progress: (done, of, saying) =>
        active.context.progress?.(index + fractionOf(done, of), active.run.steps.length, saying ?? step.id),
    };
    const { output, cached } = await engine.run(acting, { name: step.pack, input }, stepContext);
    step.cached = cached;
    const text = JSON.stringify(output);
    const bytes = Buffer.byteLength(text);
    active.outputBytesLeft -= bytes;
    if (active.outputBytesLeft < 0) {
      throw new Failure(
        'invalid_output',
        `The outputs of the run exceed ${PIPELINE.outputBytes / 1024} KiB in total; make its steps return less data.`,
      );
    }
    outputs.set(step.id, output);
    const why = bytes > active.shownBytesLeft ? 'the record of the run is full' : whyPrivate(text);
    if (why !== undefined) step.note = `This output is left out, because ${why}.`;
    else {
      active.shownBytesLeft -= bytes;
      step.output = output;
    }
  }

  async #end(active: ActiveRun, { status, failure }: RunEnd): Promise<PipelineRun | undefined> {
    // Do not write anything while the program exits. The next process records the end of this run.
    if (this.#closed) return undefined;
    const { store } = this.#deps;
    const { run, caller, recordAuthor, learned, quarantined } = active;
    const ended: PipelineRun = {
      ...run,
      status,
      ended_at: formatTime(store.now()),
      duration_ms: this.#since(active.startedAt),
      steps: run.steps.map((step) => (step.status === 'waiting' ? { ...step, status: 'skipped' } : step)),
      ...(failure && { failure }),
    };
    await this.#saveEnd(caller.subject, recordAuthor, { run: ended, learned, quarantined });
    await this.#runs.trimEndedRuns(caller.subject);
    return ended;
  }

  /** Writes the run's final record and its audit row at the same time. */
  async #saveEnd(subject: string, author: Author, kept: RunRecord): Promise<void> {
    const { run, learned } = kept;
    await Promise.all([
      this.#deps.audit.recordPipelineRun(subject, author, {
        pipeline: run.pipeline,
        run_id: run.run_id,
        outcome: run.status === 'running' ? 'failed' : run.status,
        ...(run.duration_ms !== undefined && { duration_ms: run.duration_ms }),
        ...(learned && { learn_inputs: learned }),
      }),
      this.#runs.saveEndedRun(subject, author, kept),
    ]);
  }

  /** Saves the progress of a run, without outputs, which are not needed to end the run after a crash. */
  async #saveProgress({ caller, recordAuthor, run, learned, quarantined }: ActiveRun): Promise<void> {
    const steps = run.steps.map(({ output: _output, ...step }) => step);
    await this.#runs.saveRun(caller.subject, recordAuthor, { run: { ...run, steps }, learned, quarantined });
  }

  /** Ends the unfinished runs of a subject. Clean-ups run one at a time, so that no run is ended twice. */
  #endLeftoversOf(subject: string): Promise<void> {
    const done = this.#cleanUp.then(() => this.#endEachOf(subject));
    this.#cleanUp = done.catch(() => undefined);
    return done;
  }

  async #endEachOf(subject: string): Promise<void> {
    for (const runId of await this.#runs.runningIds(subject)) {
      if (this.#running.has(runId)) continue;
      // Read the record again, because the run may have ended while earlier runs were processed.
      const left = await this.#runs.run(subject, runId);
      if (left?.kept.run.status !== 'running' || this.#shared.isHeld(left.entry)) continue;
      const run = interruptedRun(left.kept);
      await this.#saveEnd(subject, left.entry.author, { ...left.kept, run });
    }
  }

  /** Reports an error, unless the program exits, because the next process repairs the records. */
  #reportError(error: unknown): void {
    if (!this.#closed) this.#deps.reportError(error);
  }

  #since(startedAt: number): number {
    return Math.max(0, Math.round(this.#deps.clock.steady() - startedAt));
  }
}

/** Whether the caller may read a record. It can contain text of a quarantined client, which other clients must not read. */
const mayRead = (caller: Caller, { entry, kept }: StoredRun): boolean =>
  kept.quarantined !== true || mayEnd(caller, entry.author);

const unknownRun = (): Failure =>
  new Failure('not_found', 'There is no such run, or it ended more than a week ago; start a new run.');

const fractionOf = (done: number, of: number | undefined): number =>
  of !== undefined && of > 0 ? Math.max(0, Math.min(done / of, 1)) : 0;

/** Returns the end of a cancelled run. The failure is set if the run was cancelled by anyone other than its caller. */
const cancelled = ({ reason }: AbortSignal): RunEnd => ({
  status: 'cancelled',
  ...(reason instanceof Failure && { failure: { error: reason.code, message: reason.message } }),
});
