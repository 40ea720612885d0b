import type * as z from 'zod';
import { asFailure, Failure } from '../../contract/failure.ts';
import { PACK } from '../../contract/limits.ts';
import type { ConsentEffect } from '../../contract/operations.ts';
import type { PackResult, RunPackInput } from '../../contract/pack.ts';
import { explainIssue } from '../../contract/schema.ts';
import type { Caller } from '../access/caller.ts';
import { askConsent, type CallContext, orAborted } from '../operations/call-context.ts';
import type { Clock } from '../time/clock.ts';
import { formatTime } from '../time/format-time.ts';
import type { Catalogue } from './catalogue.ts';
import type { RunResult, PackHook, CachedResult, HookRun } from './hook.ts';
import type { Artifact, ArtifactStore, Pack } from './pack.ts';

/** At most this many cached outputs are returned before their audit rows are written. */
const MOST_UNRECORDED = 256;

interface Deps {
  readonly catalogue: Catalogue;
  /** Run in this order before a run and in reverse order after it. */
  readonly hooks: readonly PackHook[];
  readonly clock: Clock;
  /** Receives what a pack logs while it runs. */
  readonly log?: (pack: string, text: string) => void;
  /** Called when a hook fails after a run. The caller's result does not change. */
  readonly reportError: (pack: string, error: unknown) => void;
}

interface RunRequest {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly session: string | undefined;
  readonly input: unknown;
  readonly during: CallContext;
}

type Outcome = Answer | { readonly failure: Failure };

interface Answer {
  readonly ready: CachedResult | undefined;
  readonly output: unknown;
  readonly artifacts: readonly Artifact[];
}

/**
 * Runs packs: validates the input, runs the hooks and the handler, validates the output. Every error becomes a failure with a
 * known code.
 */
export class PackEngine {
  readonly catalogue: Catalogue;
  readonly #deps: Deps;
  readonly #runCounts = new Map<string, number>();
  readonly #running = new Set<{ readonly caller: Caller; readonly limit: TimeLimit }>();
  /** Runs whose audit rows are being written. */
  #unrecorded = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.catalogue = deps.catalogue;
  }

  async run(caller: Caller, { name, input: given, session }: RunPackInput, during: CallContext = {}): Promise<PackResult> {
    const pack = this.catalogue.find(name);
    const unavailable = pack.unavailable?.();
    if (unavailable !== undefined) throw new Failure('unavailable', unavailable);
    const parsed = pack.input.safeParse(given);
    if (!parsed.success) throw new Failure('invalid_input', explainInput(pack, parsed.error), { cause: parsed.error });
    const effect = effectOfPack(pack);
    if (effect) {
      const input = { name, input: given, ...(session !== undefined && { session }) };
      await askConsent(during, { caller, name: 'runPack', input, effect });
    }
    using _place = this.#takePlace(caller.subject);
    return await this.#run({ pack, caller, session, input: parsed.data, during });
  }

  /** Cancels the runs of a token that was revoked or paused (R-PACK-32). */
  cancelRunsOf(token: string, why: Failure): void {
    for (const { caller, limit } of this.#running) if (caller.token === token) limit.cancel(why);
  }

  /** Cancels every run and withholds its output, even if only its audit row is still to be written (R-LOCK-03). */
  cancelAllRuns(why: Failure): void {
    for (const { limit } of this.#running) limit.withhold(why);
  }

  async #run({ pack, caller, session, input, during }: RunRequest): Promise<PackResult> {
    const { clock, hooks } = this.#deps;
    const startedAt = clock.steady();
    using limit = timeLimit(clock, pack, during.signal);
    using _running = this.#register({ caller, limit });
    const run = this.#begin({ pack, caller, session, input, during }, limit);
    const begun: PackHook[] = [];
    const outcome = await this.#outcome(run, hooks, begun, limit.signal);
    const durationMs = Math.max(0, Math.round(clock.steady() - startedAt));
    const recorded = this.#after(run, begun, resultOf(outcome, durationMs));
    // A cached output is returned without waiting for its audit row.
    if ('failure' in outcome || !outcome.ready || this.#unrecorded > MOST_UNRECORDED) await recorded;
    if ('failure' in outcome) throw outcome.failure;
    if (limit.withheld) throw limit.withheld;
    const { ready, output, artifacts } = outcome;
    return {
      pack: pack.name,
      version: pack.version,
      output,
      cached: ready !== undefined,
      ...(ready && { cached_until: formatTime(ready.expiresAt) }),
      ...(artifacts.length > 0 && { artifacts: [...artifacts] }),
      duration_ms: durationMs,
      ...(session !== undefined && { session_id: session }),
    };
  }

  #begin({ pack, caller, session, input, during }: RunRequest, limit: TimeLimit): HookRun {
    const { log } = this.#deps;
    const { signal } = limit;
    const { consent, pipelineRun } = during;
    let uncacheable = false;
    return {
      pack,
      caller,
      ...(session !== undefined && { session }),
      input,
      get uncacheable() {
        return uncacheable;
      },
      context: {
        input,
        caller,
        ...(session !== undefined && { session }),
        signal,
        callContext: {
          signal,
          ...(consent && { consent: (request) => limit.suspended(() => consent(request)) }),
          ...(pipelineRun !== undefined && { pipelineRun }),
        },
        progress(done, of, saying) {
          // A handler may ignore its signal and continue.
          if (!signal.aborted) during.progress?.(done, of, saying);
        },
        log: (text) => log?.(pack.name, text),
        doNotCache: () => {
          uncacheable = true;
        },
      },
    };
  }

  async #outcome(run: HookRun, hooks: readonly PackHook[], begun: PackHook[], signal: AbortSignal): Promise<Outcome> {
    try {
      for (const hook of hooks) {
        begun.push(hook);
        // A synchronous hook costs no event loop turn.
        const answer = hook.before?.(run);
        const ready = answer instanceof Promise ? await orAborted(signal, answer) : answer;
        if (ready) return { ready, output: ready.output, artifacts: [] };
      }
    } catch (error) {
      return { failure: asFailure(error) };
    }
    try {
      signal.throwIfAborted();
      const artifacts: Artifact[] = [];
      if (run.context.artifacts) run.context.artifacts = recordingArtifacts(run, run.context.artifacts, artifacts);
      const output = validatedOutput(run.pack, await orAborted(signal, run.pack.handler(run.context)));
      return { ready: undefined, output, artifacts };
    } catch (error) {
      return { failure: asHandlerFailure(error) };
    }
  }

  /** Never rejects, because the caller may not await it. */
  async #after(run: HookRun, begun: readonly PackHook[], result: RunResult): Promise<void> {
    this.#unrecorded += 1;
    for (const hook of begun.toReversed()) {
      try {
        const work = hook.after?.(run, result);
        if (work instanceof Promise) await work;
      } catch (error) {
        this.#deps.reportError(run.pack.name, error);
      }
    }
    this.#unrecorded -= 1;
  }

  #register(running: { readonly caller: Caller; readonly limit: TimeLimit }): Disposable {
    this.#running.add(running);
    return { [Symbol.dispose]: () => void this.#running.delete(running) };
  }

  /** Limits concurrent runs per subject, so that one subject leaves capacity for others. */
  #takePlace(subject: string): Disposable {
    const count = this.#runCounts.get(subject) ?? 0;
    if (count >= PACK.atOnce) {
      throw new Failure('rate_limited', `${PACK.atOnce} packs are already running for this caller; wait until one ends.`, {
        retryAfter: 1,
      });
    }
    this.#runCounts.set(subject, count + 1);
    return {
      [Symbol.dispose]: () => {
        const left = (this.#runCounts.get(subject) ?? 1) - 1;
        if (left === 0) this.#runCounts.delete(subject);
        else this.#runCounts.set(subject, left);
      },
    };
  }
}

/** The memory packs need no consent here: the operations they call ask for it. */
function effectOfPack({ usesNetwork, own, changes }: Pack): ConsentEffect | undefined {
  if (usesNetwork) return 'discloses';
  return own && changes === 'destroys' ? 'destroys' : undefined;
}

/** Our own schemas carry readable messages. For an owner's pack, use the library's message and add the field. */
function explainInput({ own }: Pack, error: z.ZodError): string {
  const [first] = error.issues;
  if (!own || first === undefined) return explainIssue(error);
  const field = first.path.map(String).join('.') || 'The request';
  const what = first.code === 'unrecognized_keys' ? 'has an unknown field' : `is invalid: ${first.message}`;
  return `${field} ${what}; compare it with the input schema of the pack.`;
}

/** The caller cancelled the run or is no longer allowed to wait for it. */
class Cancelled extends Failure {
  constructor(why?: Failure) {
    super(why?.code ?? 'cancelled', why?.message ?? 'The run was cancelled. Start it again if needed.');
  }
}

interface TimeLimit extends Disposable {
  /** Aborted with the failure to report. */
  readonly signal: AbortSignal;
  cancel(why?: Failure): void;
  /** Stops the timer while `work` runs, then restarts it with the full time. */
  suspended<T>(work: () => Promise<T>): Promise<T>;
  /** Cancels the run and withholds an output that is already there. */
  withhold(why: Failure): void;
  readonly withheld: Failure | undefined;
}

function timeLimit(clock: Clock, { name, seconds = PACK.timeout }: Pack, given: AbortSignal | undefined): TimeLimit {
  const controller = new AbortController();
  let withheld: Failure | undefined;
  const cancel = (why?: Failure): void => controller.abort(new Cancelled(why));
  const cancelRun = (): void => cancel();
  if (given?.aborted) cancelRun();
  else given?.addEventListener('abort', cancelRun, { once: true });
  const start = (): Disposable =>
    clock.after(seconds * 1000, () =>
      controller.abort(
        new Failure('timeout', `${name} exceeded its time limit of ${seconds} s; ask for less, or try again later.`),
      ),
    );
  let timer = start();
  let ended = false;
  return {
    signal: controller.signal,
    cancel,
    async suspended(work) {
      timer[Symbol.dispose]();
      try {
        return await work();
      } finally {
        if (!ended) timer = start();
      }
    },
    withhold(why) {
      withheld = why;
      cancel(why);
    },
    get withheld() {
      return withheld;
    },
    [Symbol.dispose]() {
      ended = true;
      timer[Symbol.dispose]();
      given?.removeEventListener('abort', cancelRun);
    },
  };
}

/** Lists new artifacts in the result. Such an output is not cached, because the cache holds no artifacts. */
function recordingArtifacts({ pack, context }: HookRun, place: ArtifactStore, made: Artifact[]): ArtifactStore {
  return {
    async put(name, mediaType, body) {
      try {
        const artifact = await place.put(name, mediaType, body);
        made.push(artifact);
        context.doNotCache();
        return artifact;
      } catch (cause) {
        if (cause instanceof Failure) throw cause;
        throw new Failure('artifact_failed', `A file made by ${pack.name} could not be saved; try again later.`, { cause });
      }
    },
  };
}

/** Refuses output that does not match the pack's schema. */
function validatedOutput({ name, output }: Pack, answer: unknown): unknown {
  const { success, data } = output.safeParse(answer);
  if (success && fitsJson(data)) return data;
  throw new Failure(
    'invalid_output',
    success
      ? `${name} returned more than ${PACK.outputBytes / 1024} KiB, or a value JSON cannot represent; ask for less.`
      : `${name} returned output that does not match its schema; tell its author.`,
  );
}

function fitsJson(data: unknown): boolean {
  try {
    const text = JSON.stringify(data) as string | undefined;
    return text !== undefined && Buffer.byteLength(text) <= PACK.outputBytes;
  } catch {
    return false;
  }
}

/** A `Failure` passes through. The text of any other error may contain private data, so it is not passed on. */
const asHandlerFailure = (error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure('handler_failed', 'The pack failed with an unexpected error; tell its author.', { cause: error });

function resultOf(outcome: Outcome, durationMs: number): RunResult {
  if ('failure' in outcome) {
    const { failure } = outcome;
    return { outcome: failure instanceof Cancelled ? 'cancelled' : failure.code, failure, durationMs };
  }
  return { outcome: 'ok', output: outcome.output, ...(outcome.ready && { cachedUntil: outcome.ready.expiresAt }), durationMs };
}
