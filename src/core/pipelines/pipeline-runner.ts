import { randomUUID } from 'node:crypto';
import { asFailure, Failure, type FailureCode } from '../../contract/failure.ts';
import { PIPELINE } from '../../contract/limits.ts';
import type { PipelineDefinition, PipelineRun, PipelineRuns, RunPipelineInput } from '../../contract/pipeline.ts';
import type { Authorship, DefinitionAuthor } from '../access/authorship.ts';
import { authorOf, type Caller, hasScope } from '../access/caller.ts';
import { requireKey } from '../crypto/require-key.ts';
import type { CallContext } from '../operations/call-context.ts';
import { findSecret } from '../operations/secret-guard.ts';
import { type Audit, learnableInputs } from '../packs/audit.ts';
import type { PackEngine } from '../packs/engine.ts';
import { signatures } from '../store/signatures.ts';
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
  /** The end of a run could not be recorded; it is made up for later. */
  readonly trouble: () => void;
}

type RunStep = PipelineRun['steps'][number];

/** A run in this process. */
interface Active {
  readonly caller: Caller;
  readonly author: DefinitionAuthor;
  /** Signs the record of the run: the caller, and the author beside them. */
  readonly signature: Author;
  readonly definition: PipelineDefinition;
  readonly inputs: Map<string, unknown>;
  readonly learned: Readonly<Record<string, string>> | undefined;
  /** As it is told; it changes as the run goes on. */
  readonly run: Omit<PipelineRun, 'steps'> & { readonly steps: RunStep[] };
  /** What later steps may refer to. */
  readonly outputs: Map<string, unknown>;
  readonly cancelling: AbortController;
  /** Aborted when it is cancelled, or by who waits for it. */
  readonly signal: AbortSignal;
  readonly during: CallContext;
  readonly began: number;
  /** Bytes that outputs may still take, and of which the record may show so many. */
  room: number;
  shown: number;
}

interface Running {
  readonly active: Active;
  /** How it ended; undefined where that could not be recorded. */
  readonly ended: Promise<PipelineRun | undefined>;
}

/** What a run is made of. */
interface Begun {
  readonly caller: Caller;
  /** The caller with the rights of the author as well. */
  readonly acting: Caller;
  readonly kept: AttributedDefinition;
  readonly inputs: Map<string, unknown>;
  readonly during: CallContext;
}

const LEGACY =
  'This pipeline was made before authors were recorded, so it cannot run. Ask the owner of this memory to look at it and adopt it.';

type Ended = Pick<PipelineRun, 'failure'> & { readonly status: Exclude<PipelineRun['status'], 'running'> };

/** Runs packs one after the other, fed by inputs and by earlier outputs. A run goes on when who started it has left. */
export class PipelineRunner implements Disposable {
  readonly #deps: Deps;
  readonly definitions: DefinitionStore;
  readonly #shelf: PipelineStore;
  /** By run, in every subject. */
  readonly #running = new Map<string, Running>();
  #closed = false;
  #clearing: Promise<void> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.definitions = new DefinitionStore(deps.store);
    this.#shelf = new PipelineStore(deps.store);
  }

  /** Whatever else is asked of a definition comes after this: it says that its depth has an end. */
  validate(definition: PipelineDefinition): void {
    const packs = new Set(this.#deps.engine.catalogue.all.map(({ name }) => name));
    validateDefinition(definition, (name) => packs.has(name));
  }

  /** Answers when the run has begun. */
  async startRun(caller: Caller, asked: RunPipelineInput, { consent }: CallContext = {}): Promise<PipelineRun> {
    // The run outlives the call: giving that up does not stop it, and nobody hears its progress.
    const { active } = await this.#start(caller, asked, { ...(consent && { consent }) });
    return told(active);
  }

  /** Answers when the run has ended; one that did not succeed is a failure. */
  async runToEnd(caller: Caller, asked: RunPipelineInput, during: CallContext): Promise<PipelineRun> {
    const { active, ended } = await this.#start(caller, asked, during);
    const run = (await ended) ?? (await this.getRun(caller, active.run.run_id));
    requireKey(this.#deps.store);
    if (run.status === 'succeeded') return run;
    const {
      error = 'cancelled',
      message = 'The run was cancelled; start it again if it is still wanted.',
      step,
    } = run.failure ?? {};
    // Nothing but codes is written there.
    throw new Failure(error as FailureCode, step === undefined ? message : `In the step ${step}: ${message}`);
  }

  async #start(caller: Caller, { id, inputs: sent }: RunPipelineInput, during: CallContext = {}): Promise<Running> {
    const { audit } = this.#deps;
    audit.requireRecordable();
    const { subject } = caller;
    const kept = await this.definitions.get(subject, id);
    const acting = await this.#acting(caller, kept);
    const active = this.#begin({ caller, acting, kept, inputs: resolveInputs(kept.definition, sent), during });
    const { promise: ended, resolve: end } = Promise.withResolvers<PipelineRun | undefined>();
    const running = { active, ended };
    this.#running.set(active.run.run_id, running);
    try {
      await this.#keep(active);
    } catch (error) {
      this.#running.delete(active.run.run_id);
      end(undefined);
      throw error;
    }
    void this.#work(active).then(end);
    void this.definitions
      .renew(subject, authorOf(caller), id)
      .then(() => this.#endLeftoversOf(subject))
      .catch(() => this.#trouble());
    return running;
  }

  /** The one that moved on last comes first. */
  async listRuns({ subject }: Caller, limit: number): Promise<PipelineRuns['runs']> {
    const found = new Map<string, { readonly at: number; readonly run: PipelineRuns['runs'][number] }>();
    // In this order: one that ends meanwhile is met twice rather than missed.
    for (const state of ['running', 'ended'] as const) {
      let left = limit;
      for await (const { entry, kept } of this.#shelf.runs(subject, state)) {
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
    // Read first: it refuses while the memory is locked, whatever this process still holds.
    const found = await this.#shelf.run(subject, runId);
    const running = this.#of(subject, runId);
    if (running) return told(running.active);
    if (!found) throw new Failure('not_found', 'There is no such run, or it is longer ago than a week; start another.');
    return this.#now(subject, found.kept);
  }

  async cancelRun(caller: Caller, runId: string): Promise<PipelineRun> {
    const running = this.#of(caller.subject, runId);
    running?.active.cancelling.abort();
    await running?.ended;
    return await this.getRun(caller, runId);
  }

  /** What runs for a token ends when nobody may come with that any more (R-PACK-32). */
  cancelRunsOf(token: string, why: Failure): void {
    for (const { active } of this.#running.values()) if (active.caller.token === token) active.cancelling.abort(why);
  }

  /** Ends what runs by a definition whose author has no valid token any more: one was just revoked or paused (R-DEFINE-02). */
  async cancelOrphanedRuns(): Promise<void> {
    for (const { active } of this.#running.values()) {
      const { caller, author } = active;
      await this.#acting(caller, { author, legacy: false }).catch((why: unknown) => {
        if (why instanceof Failure && why.code === 'insufficient_scope') active.cancelling.abort(why);
      });
    }
  }

  /** Ends every run and drops what it holds of the memory (R-LOCK-03). Unlocking records how it ended. */
  cancelAllRuns(why: Failure): void {
    for (const { active } of this.#running.values()) {
      active.cancelling.abort(why);
      active.inputs.clear();
      active.outputs.clear();
      for (const step of active.run.steps) delete step.output;
    }
  }

  /** Ends, and records, what was cut short by the end of an earlier start, or of which the end could not be recorded. */
  async endInterruptedRuns(): Promise<void> {
    for (const { namespace } of await this.#deps.store.namespaces('pack')) {
      if (namespace.session === undefined) await this.#endLeftoversOf(namespace.subject);
    }
  }

  /** What is under way is cut short; the next start says so. */
  [Symbol.dispose](): void {
    this.#closed = true;
    for (const { active } of this.#running.values()) active.cancelling.abort();
  }

  /** What a record says, seen from now: nothing runs any more that does not run in this process. */
  #now(subject: string, kept: RunRecord): PipelineRun {
    const { run } = kept;
    if (run.status !== 'running') return run;
    const running = this.#of(subject, run.run_id);
    return running ? told(running.active) : interrupted(kept);
  }

  #of(subject: string, runId: string): Running | undefined {
    const running = this.#running.get(runId);
    return running?.active.caller.subject === subject ? running : undefined;
  }

  /** Who runs a step: the caller, with the rights that the author has now as well. */
  async #acting(caller: Caller, { author, legacy }: Pick<AttributedDefinition, 'author' | 'legacy'>): Promise<Caller> {
    if (legacy) throw new Failure('insufficient_scope', LEGACY);
    const acting = await this.#deps.authorship.effectiveCaller(caller, author);
    if (hasScope(acting, 'packs:run')) return acting;
    throw new Failure(
      'insufficient_scope',
      `Its author, ${author.client}, has no token with the scope packs:run any more. Ask the owner of this memory to adopt the pipeline.`,
    );
  }

  #begin({ caller, acting, kept, inputs, during }: Begun): Active {
    const { store, clock } = this.#deps;
    const { definition, author } = kept;
    const count = [...this.#running.values()].filter(({ active }) => active.caller.subject === caller.subject).length;
    if (count >= PIPELINE.atOnce) {
      throw new Failure('rate_limited', `${PIPELINE.atOnce} pipelines are running for this caller; wait for one of them.`, {
        retryAfter: 1,
      });
    }
    const cancelling = new AbortController();
    return {
      caller,
      author,
      signature: authorOf(acting),
      definition,
      inputs,
      learned: learnableInputs(Object.fromEntries(inputs)),
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
      began: clock.steady(),
      room: PIPELINE.outputBytes,
      shown: PIPELINE.shownBytes,
    };
  }

  async #work(active: Active): Promise<PipelineRun | undefined> {
    try {
      return await this.#end(active, await this.#steps(active));
    } catch {
      this.#trouble();
      return undefined;
    } finally {
      this.#running.delete(active.run.run_id);
    }
  }

  async #steps(active: Active): Promise<Ended> {
    const { signal } = active;
    for (const [index, step] of active.run.steps.entries()) {
      if (signal.aborted) return cancelled(signal);
      step.status = 'running';
      active.during.progress?.(index, active.run.steps.length, step.id);
      const began = this.#deps.clock.steady();
      try {
        await this.#keep(active);
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
        step.duration_ms = this.#since(began);
      }
    }
    return { status: 'succeeded' };
  }

  async #step(active: Active, index: number, step: RunStep): Promise<void> {
    const { engine } = this.#deps;
    const { caller, author, definition, outputs, signal } = active;
    const acting = await this.#acting(caller, { author, legacy: false });
    const asked = definition.steps[index]?.input;
    const input = fillReferences(asked, (reference) => lookUp(active, step.id, reference)) as Record<string, unknown>;
    const during: CallContext = {
      signal,
      ...(active.during.consent && { consent: active.during.consent }),
      // A step that says how far it is moves the whole as far.
      progress: (done, of, saying) =>
        active.during.progress?.(index + partOf(done, of), active.run.steps.length, saying ?? step.id),
    };
    const { output, cached } = await engine.run(acting, { name: step.pack, input }, during);
    step.cached = cached;
    const text = JSON.stringify(output);
    const bytes = Buffer.byteLength(text);
    active.room -= bytes;
    if (active.room < 0) {
      throw new Failure(
        'invalid_output',
        `The outputs of a run are ${PIPELINE.outputBytes / 1024} KiB at most; ask its steps for less.`,
      );
    }
    outputs.set(step.id, output);
    if (bytes > active.shown) step.note = 'This output is left out: the record of a run holds no more.';
    else if (findSecret(text)) step.note = 'This output is left out: it looks like a credential, which no record keeps.';
    else {
      active.shown -= bytes;
      step.output = output;
    }
  }

  async #end(active: Active, { status, failure }: Ended): Promise<PipelineRun | undefined> {
    // What is closing takes no more; the next start ends this run.
    if (this.#closed) return undefined;
    const { store } = this.#deps;
    const { run, caller, signature, learned } = active;
    const ended: PipelineRun = {
      ...run,
      status,
      ended_at: formatTime(store.now()),
      duration_ms: this.#since(active.began),
      steps: run.steps.map((step) => (step.status === 'waiting' ? { ...step, status: 'skipped' } : step)),
      ...(failure && { failure }),
    };
    await this.#keepEnd(caller.subject, signature, { run: ended, learned });
    await this.#shelf.trimEndedRuns(caller.subject);
    return ended;
  }

  /** In one go: a run has ended when its row is there. */
  async #keepEnd(subject: string, author: Author, kept: RunRecord): Promise<void> {
    const { run, learned } = kept;
    await Promise.all([
      this.#deps.audit.recordPipelineRun(subject, author, {
        pipeline: run.pipeline,
        run_id: run.run_id,
        outcome: run.status === 'running' ? 'failed' : run.status,
        ...(run.duration_ms !== undefined && { duration_ms: run.duration_ms }),
        ...(learned && { learn_inputs: learned }),
      }),
      this.#shelf.saveEndedRun(subject, author, kept),
    ]);
  }

  /** How far it is, without outputs: so much is there after a crash. */
  async #keep({ caller, signature, run, learned }: Active): Promise<void> {
    const steps = run.steps.map(({ output: _output, ...step }) => step);
    await this.#shelf.saveRun(caller.subject, signature, { run: { ...run, steps }, learned });
  }

  /** One after the other, so that no run is ended twice. */
  #endLeftoversOf(subject: string): Promise<void> {
    const cleared = this.#clearing.then(() => this.#endEachOf(subject));
    this.#clearing = cleared.catch(() => undefined);
    return cleared;
  }

  async #endEachOf(subject: string): Promise<void> {
    for (const runId of await this.#shelf.runningIds(subject)) {
      if (this.#running.has(runId)) continue;
      // Looked at again: it may have come to its own end while those before it were ended.
      const left = await this.#shelf.run(subject, runId);
      if (left?.kept.run.status !== 'running') continue;
      const run = interrupted(left.kept);
      await this.#keepEnd(subject, left.entry.author, { ...left.kept, run });
    }
  }

  /** Where everything ends, nothing is missing that the next start will not make up for. */
  #trouble(): void {
    if (!this.#closed) this.#deps.trouble();
  }

  #since(began: number): number {
    return Math.max(0, Math.round(this.#deps.clock.steady() - began));
  }
}

function lookUp({ inputs, outputs }: Active, step: string, reference: Reference): unknown {
  if (reference.to === 'input') return inputs.get(reference.name);
  const found = valueAt(outputs.get(reference.step), reference.path);
  if (found !== undefined) return found;
  throw new Failure(
    'invalid_input',
    `The step ${step} asks for ${reference.spelled}, which is not in that output; compare it with what the pack answers.`,
  );
}

const partOf = (done: number, of: number | undefined): number =>
  of !== undefined && of > 0 ? Math.max(0, Math.min(done / of, 1)) : 0;

/** Why is said where it was not whoever asked that gave it up. */
const cancelled = ({ reason }: AbortSignal): Ended => ({
  status: 'cancelled',
  ...(reason instanceof Failure && { failure: { error: reason.code, message: reason.message } }),
});

/** A copy: the run goes on. */
const told = ({ run }: Active): PipelineRun => ({ ...run, steps: run.steps.map((step) => ({ ...step })) });

/** Nobody saw the end of this run, so its end and its duration are left out rather than guessed from its last record. */
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
      message: 'The program ended or was locked before this run had ended; start it again if it is still wanted.',
      ...(step !== undefined && { step }),
    },
  };
}

/** Why a pipeline cannot run until the owner adopts it. */
export function whyAdoptionNeeded(
  { author, legacy }: AttributedDefinition,
  stands: (author: DefinitionAuthor) => boolean,
): string | undefined {
  if (legacy) return LEGACY;
  return stands(author)
    ? undefined
    : `Its author, ${author.client}, has no valid token any more, so it cannot run until the owner of this memory adopts it.`;
}
