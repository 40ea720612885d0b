import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { asFailure, Failure, type FailureCode } from '../../contract/failure.ts';
import { PIPELINE } from '../../contract/limits.ts';
import type { PipelineDefinition, PipelineRun, PipelineRuns, RunPipelineInput } from '../../contract/pipeline.ts';
import type { Authorship, DefinitionAuthor } from '../access/authorship.ts';
import { authorOf, type Caller, hasScope } from '../access/caller.ts';
import { mayEnd, mayTakePlace } from '../access/fair-share.ts';
import { requireKey } from '../crypto/require-key.ts';
import type { CallContext } from '../operations/call-context.ts';
import { type Audit, learnableInputs } from '../packs/audit.ts';
import type { PackEngine } from '../packs/engine.ts';
import { whyPrivate } from '../packs/private-output.ts';
import { signatures } from '../store/entry.ts';
import type { Author, MemoryStore } from '../store/store.ts';
import type { Clock } from '../time/clock.ts';
import { formatTime } from '../time/format-time.ts';
import { DefinitionStore, type AttributedDefinition } from './definition-store.ts';
import { type RunRecord, PipelineStore } from './pipeline-store.ts';
import { valueAt, fillReferences, type Reference } from './references.ts';
import { resolveInputs, validateDefinition } from './validate-definition.ts';

interface Deps {
  readonly store: MemoryStore;
  readonly engine: PackEngine;
  readonly audit: Audit;
  readonly authorship: Authorship;
  readonly clock: Clock;
  /** Called when the end of a run could not be recorded. A later clean-up records it. */
  readonly reportError: (error: unknown) => void;
}

type RunStep = PipelineRun['steps'][number];

/** A run in this process. */
interface Active {
  readonly caller: Caller;
  readonly author: DefinitionAuthor;
  /** Author of the run's record: the caller, with the pipeline's author beside them. */
  readonly signature: Author;
  readonly definition: PipelineDefinition;
  readonly inputs: Map<string, unknown>;
  readonly learned: Readonly<Record<string, string>> | undefined;
  /** The state shown to callers; updated as the run proceeds. */
  readonly run: Omit<PipelineRun, 'steps'> & { readonly steps: RunStep[] };
  /** Outputs that later steps may refer to. */
  readonly outputs: Map<string, unknown>;
  readonly cancelling: AbortController;
  /** Aborted when the run is cancelled, or when the caller waiting for it cancels. */
  readonly signal: AbortSignal;
  readonly during: CallContext;
  readonly startedAt: number;
  /** Bytes left for outputs, and for outputs shown in the record. */
  room: number;
  shown: number;
}

interface Running {
  readonly active: Active;
  /** The final state; undefined if it could not be recorded. */
  readonly ended: Promise<PipelineRun | undefined>;
}

/** Which pipeline a run executes, who started it, and who is responsible for its definition. */
export interface RunOrigin {
  readonly pipeline: string;
  readonly client: string;
  readonly definedBy: string;
}

interface RunStart {
  /** The inputs without the defaults, which the pipeline's author chose. */
  readonly sent: Readonly<Record<string, unknown>>;
  readonly caller: Caller;
  /** The caller, limited to the rights that the author also has. */
  readonly acting: Caller;
  readonly kept: AttributedDefinition;
  readonly inputs: Map<string, unknown>;
  readonly during: CallContext;
}

const LEGACY =
  'This pipeline was made before authors were recorded, so it cannot run. Ask the owner of this memory to review and adopt it.';

export const DEFINITION_CHANGED = 'The pipeline was changed or deleted during this run, so the run was cancelled.';

type RunEnd = Pick<PipelineRun, 'failure'> & { readonly status: Exclude<PipelineRun['status'], 'running'> };

/** Runs the packs of a pipeline in order, fed by inputs and earlier outputs. A run continues after the caller disconnects. */
export class PipelineRunner implements Disposable {
  readonly #deps: Deps;
  readonly definitions: DefinitionStore;
  readonly #runs: PipelineStore;
  /** By run id, for all subjects. */
  readonly #running = new Map<string, Running>();
  #closed = false;
  #cleanUp: Promise<void> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.definitions = new DefinitionStore(deps.store);
    this.#runs = new PipelineStore(deps.store);
  }

  /** Checks nesting depth first. Call before anything else that walks the definition. */
  validate(definition: PipelineDefinition): void {
    const packs = new Set(this.#deps.engine.catalogue.all.map(({ name }) => name));
    validateDefinition(definition, (name) => packs.has(name));
  }

  /** Returns once the run has started. */
  async startRun(caller: Caller, request: RunPipelineInput, { consent }: CallContext = {}): Promise<PipelineRun> {
    // The run outlives the call, so cancelling the call does not stop it, and it reports no progress.
    const { active } = await this.#start(caller, request, { ...(consent && { consent }) });
    return snapshotOf(active);
  }

  /** Returns once the run has ended. Throws if it did not succeed. */
  async runToEnd(caller: Caller, request: RunPipelineInput, during: CallContext): Promise<PipelineRun> {
    const { active, ended } = await this.#start(caller, request, during);
    const run = (await ended) ?? (await this.getRun(caller, active.run.run_id));
    requireKey(this.#deps.store);
    if (run.status === 'succeeded') return run;
    const { error = 'cancelled', message = 'The run was cancelled. Start it again if needed.', step } = run.failure ?? {};
    // Safe: records contain only known codes.
    throw new Failure(error as FailureCode, step === undefined ? message : `In the step ${step}: ${message}`);
  }

  async #start(caller: Caller, { id, inputs: sent }: RunPipelineInput, during: CallContext = {}): Promise<Running> {
    const { audit } = this.#deps;
    audit.requireRecordable();
    const { subject } = caller;
    const kept = await this.definitions.get(subject, id);
    const acting = await this.#acting(caller, kept);
    const active = this.#createRun({ caller, acting, kept, sent, inputs: resolveInputs(kept.definition, sent), during });
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
    void this.definitions
      .renew(subject, authorOf(caller), id)
      .then(() => this.#endLeftoversOf(subject))
      .catch((error: unknown) => this.#reportError(error));
    return running;
  }

  /** Most recently updated first. */
  async listRuns({ subject }: Caller, limit: number): Promise<PipelineRuns['runs']> {
    const found = new Map<string, { readonly at: number; readonly run: PipelineRuns['runs'][number] }>();
    // Running first: a run that ends meanwhile is then seen twice rather than missed.
    for (const state of ['running', 'ended'] as const) {
      let left = limit;
      for await (const { entry, kept } of this.#runs.runs(subject, state)) {
        const { steps: _steps, ...run } = this.#now(subject, kept);
        found.set(run.run_id, { at: entry.updatedAt, run });
        left -= 1;
        if (left === 0) break;
      }
    }
    const newest = [...found.values()].toSorted((one, other) => other.at - one.at);
    return newest.slice(0, limit).map(({ run }) => run);
  }

  async getRun({ subject }: Caller, runId: string): Promise<PipelineRun> {
    // Read the record first: this fails while the memory is locked.
    const found = await this.#runs.run(subject, runId);
    const running = this.#of(subject, runId);
    if (running) return snapshotOf(running.active);
    if (!found) throw unknownRun();
    return this.#now(subject, found.kept);
  }

  /** Only the client that started a run and the owner may cancel it. To other clients it looks like an unknown run. */
  async cancelRun(caller: Caller, runId: string): Promise<PipelineRun> {
    const found = await this.#runs.run(caller.subject, runId);
    if (!found || !mayEnd(caller, found.entry.author)) throw unknownRun();
    const running = this.#of(caller.subject, runId);
    running?.active.cancelling.abort();
    await running?.ended;
    return await this.getRun(caller, runId);
  }

  /**
   * Cancels the runs of a subject that match, and waits until they have ended. They write nothing after that. Leaves out the run
   * that makes this call.
   */
  async cancelRuns(subject: string, matches: (run: RunOrigin) => boolean, why: string, from?: CallContext): Promise<void> {
    const chosen = [...this.#running.values()].filter(
      ({ active: { caller, author, run } }) =>
        caller.subject === subject &&
        run.run_id !== from?.pipelineRun &&
        matches({ pipeline: run.pipeline, client: caller.client, definedBy: author.client }),
    );
    for (const { active } of chosen) active.cancelling.abort(new Failure('cancelled', why));
    await Promise.all(chosen.map(({ ended }) => ended));
  }

  /** Cancels the runs of a token that was revoked or paused (R-PACK-32). */
  cancelRunsOf(token: string, why: Failure): void {
    for (const { active } of this.#running.values()) if (active.caller.token === token) active.cancelling.abort(why);
  }

  /** Cancels runs whose pipeline's author no longer has a valid token (R-DEFINE-02). */
  async cancelOrphanedRuns(): Promise<void> {
    for (const { active } of this.#running.values()) {
      const { caller, author } = active;
      await this.#acting(caller, { author, legacy: false }).catch((why: unknown) => {
        if (why instanceof Failure && why.code === 'insufficient_scope') active.cancelling.abort(why);
      });
    }
  }

  /** Cancels every run and drops the data it holds (R-LOCK-03). The end is recorded after unlocking. */
  cancelAllRuns(why: Failure): void {
    for (const { active } of this.#running.values()) {
      active.cancelling.abort(why);
      active.inputs.clear();
      active.outputs.clear();
      for (const step of active.run.steps) delete step.output;
    }
  }

  /** Ends and records runs that an earlier start left unfinished, or whose end could not be recorded. */
  async endInterruptedRuns(): Promise<void> {
    for (const { namespace } of await this.#deps.store.namespaces('pack')) {
      if (namespace.session === undefined) await this.#endLeftoversOf(namespace.subject);
    }
  }

  /** Cancels all runs. The next start records that they were interrupted. */
  [Symbol.dispose](): void {
    this.#closed = true;
    for (const { active } of this.#running.values()) active.cancelling.abort();
  }

  /** The run as of now: a record that says "running" is stale unless the run is in this process. */
  #now(subject: string, kept: RunRecord): PipelineRun {
    const { run } = kept;
    if (run.status !== 'running') return run;
    const running = this.#of(subject, run.run_id);
    return running ? snapshotOf(running.active) : interrupted(kept);
  }

  #of(subject: string, runId: string): Running | undefined {
    const running = this.#running.get(runId);
    return running?.active.caller.subject === subject ? running : undefined;
  }

  /** The caller of a step: limited to the rights that the author also has at this moment. */
  async #acting(caller: Caller, { author, legacy }: Pick<AttributedDefinition, 'author' | 'legacy'>): Promise<Caller> {
    if (legacy) throw new Failure('insufficient_scope', LEGACY);
    const acting = await this.#deps.authorship.effectiveCaller(caller, author);
    if (hasScope(acting, 'packs:run')) return acting;
    throw new Failure(
      'insufficient_scope',
      `Its author, ${author.client}, has no token with the scope packs:run any more. Ask the owner of this memory to adopt the pipeline.`,
    );
  }

  #createRun({ caller, acting, kept, sent, inputs, during }: RunStart): Active {
    const { store, clock } = this.#deps;
    const { definition, author } = kept;
    const running = [...this.#running.values()].filter(({ active }) => active.caller.subject === caller.subject);
    const starters = running.map(({ active }) => active.caller);
    if (!mayTakePlace(caller, starters, PIPELINE.atOnce)) {
      throw new Failure(
        'rate_limited',
        `Too many pipelines of this client are running: a memory runs ${PIPELINE.atOnce} at once, which its clients share; wait until one ends.`,
        { retryAfter: 1 },
      );
    }
    const cancelling = new AbortController();
    return {
      caller,
      author,
      signature: authorOf(acting),
      definition,
      inputs,
      learned: learnableInputs(sent),
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
      signal: during.signal ? AbortSignal.any([cancelling.signal, during.signal]) : cancelling.signal,
      during,
      startedAt: clock.steady(),
      room: PIPELINE.outputBytes,
      shown: PIPELINE.shownBytes,
    };
  }

  async #execute(active: Active): Promise<PipelineRun | undefined> {
    try {
      return await this.#end(active, await this.#steps(active));
    } catch (error) {
      this.#reportError(error);
      return undefined;
    } finally {
      this.#running.delete(active.run.run_id);
    }
  }

  async #steps(active: Active): Promise<RunEnd> {
    const { signal } = active;
    for (const [index, step] of active.run.steps.entries()) {
      if (signal.aborted) return cancelled(signal);
      step.status = 'running';
      active.during.progress?.(index, active.run.steps.length, step.id);
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

  async #step(active: Active, index: number, step: RunStep): Promise<void> {
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
    const during: CallContext = {
      signal,
      pipelineRun: run.run_id,
      ...(active.during.consent && { consent: active.during.consent }),
      // Maps the step's progress onto the pipeline's.
      progress: (done, of, saying) =>
        active.during.progress?.(index + fractionOf(done, of), active.run.steps.length, saying ?? step.id),
    };
    const { output, cached } = await engine.run(acting, { name: step.pack, input }, during);
    step.cached = cached;
    const text = JSON.stringify(output);
    const bytes = Buffer.byteLength(text);
    active.room -= bytes;
    if (active.room < 0) {
      throw new Failure(
        'invalid_output',
        `The outputs of the run exceed ${PIPELINE.outputBytes / 1024} KiB in total; ask its steps for less.`,
      );
    }
    outputs.set(step.id, output);
    const why = bytes > active.shown ? 'the record of the run is full' : whyPrivate(text);
    if (why !== undefined) step.note = `This output is left out: ${why}.`;
    else {
      active.shown -= bytes;
      step.output = output;
    }
  }

  async #end(active: Active, { status, failure }: RunEnd): Promise<PipelineRun | undefined> {
    // Write nothing while closing. The next start ends this run.
    if (this.#closed) return undefined;
    const { store } = this.#deps;
    const { run, caller, signature, learned } = active;
    const ended: PipelineRun = {
      ...run,
      status,
      ended_at: formatTime(store.now()),
      duration_ms: this.#since(active.startedAt),
      steps: run.steps.map((step) => (step.status === 'waiting' ? { ...step, status: 'skipped' } : step)),
      ...(failure && { failure }),
    };
    await this.#saveEnd(caller.subject, signature, { run: ended, learned });
    await this.#runs.trimEndedRuns(caller.subject);
    return ended;
  }

  /** Writes the run's record and its audit row together. */
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

  /** Saves progress without outputs, which is enough after a crash. */
  async #saveProgress({ caller, signature, run, learned }: Active): Promise<void> {
    const steps = run.steps.map(({ output: _output, ...step }) => step);
    await this.#runs.saveRun(caller.subject, signature, { run: { ...run, steps }, learned });
  }

  /** Runs one at a time, so that no run is ended twice. */
  #endLeftoversOf(subject: string): Promise<void> {
    const done = this.#cleanUp.then(() => this.#endEachOf(subject));
    this.#cleanUp = done.catch(() => undefined);
    return done;
  }

  async #endEachOf(subject: string): Promise<void> {
    for (const runId of await this.#runs.runningIds(subject)) {
      if (this.#running.has(runId)) continue;
      // Read again: the run may have ended while earlier ones were processed.
      const left = await this.#runs.run(subject, runId);
      if (left?.kept.run.status !== 'running') continue;
      const run = interrupted(left.kept);
      await this.#saveEnd(subject, left.entry.author, { ...left.kept, run });
    }
  }

  /** Errors while closing are not reported: the next start repairs the records. */
  #reportError(error: unknown): void {
    if (!this.#closed) this.#deps.reportError(error);
  }

  #since(startedAt: number): number {
    return Math.max(0, Math.round(this.#deps.clock.steady() - startedAt));
  }
}

function lookUp({ inputs, outputs }: Active, step: string, reference: Reference): unknown {
  if (reference.to === 'input') return inputs.get(reference.name);
  const found = valueAt(outputs.get(reference.step), reference.path);
  if (found !== undefined) return found;
  throw new Failure(
    'invalid_input',
    `The step ${step} refers to ${reference.source}, which is not in that output; compare it with the output of the pack.`,
  );
}

const unknownRun = (): Failure =>
  new Failure('not_found', 'There is no such run, or it ended more than a week ago; start another.');

const fractionOf = (done: number, of: number | undefined): number =>
  of !== undefined && of > 0 ? Math.max(0, Math.min(done / of, 1)) : 0;

/** The failure is set if someone other than the caller cancelled the run. */
const cancelled = ({ reason }: AbortSignal): RunEnd => ({
  status: 'cancelled',
  ...(reason instanceof Failure && { failure: { error: reason.code, message: reason.message } }),
});

/** A copy, because the run continues to change. */
const snapshotOf = ({ run }: Active): PipelineRun => ({ ...run, steps: run.steps.map((step) => ({ ...step })) });

/** The end of this run was not observed, so the end time and duration are left out. */
function interrupted({ run }: RunRecord): PipelineRun {
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
      message: 'The program stopped or was locked before this run ended. Start it again if needed.',
      ...(step !== undefined && { step }),
    },
  };
}

/** Why the pipeline cannot run until the owner adopts it. */
export function whyAdoptionNeeded(
  { author, legacy }: AttributedDefinition,
  isRunnable: (author: DefinitionAuthor) => boolean,
): string | undefined {
  if (legacy) return LEGACY;
  return isRunnable(author)
    ? undefined
    : `Its author, ${author.client}, has no valid token any more, so it cannot run until the owner of this memory adopts it.`;
}
