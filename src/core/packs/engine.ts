import type * as z from 'zod';
import { asFailure, Failure } from '../../contract/failure.ts';
import { PACK } from '../../contract/limits.ts';
import type { ConsentEffect } from '../../contract/operations.ts';
import type { PackResult, RunPackInput } from '../../contract/pack.ts';
import { explainIssue } from '../../contract/schema.ts';
import type { Caller } from '../access/caller.ts';
import { isOffered } from '../access/pack-offers.ts';
import { askConsent, type CallContext, orAborted } from '../operations/call-context.ts';
import type { Clock } from '../time/clock.ts';
import { formatTime } from '../time/format-time.ts';
import type { Catalogue } from './catalogue.ts';
import type { RunResult, PackHook, CachedResult, HookRun } from './hook.ts';
import type { Artifact, ArtifactStore, Pack } from './pack.ts';

/** Maximum number of cached outputs that are returned before their audit rows are written. */
const MAX_UNRECORDED = 256;

interface Deps {
  readonly catalogue: Catalogue;
  /** The hooks, in the order in which they run before a run of a pack. After the run, the order is reversed. */
  readonly hooks: readonly PackHook[];
  readonly clock: Clock;
  readonly log?: (pack: string, text: string) => void;
  /** Called when a hook fails after a run. The error does not change the caller's result. */
  readonly reportError: (pack: string, error: unknown) => void;
}

interface RunRequest {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly session: string | undefined;
  readonly input: unknown;
  readonly callContext: CallContext;
}

type Outcome = Answer | { readonly failure: Failure };

interface Answer {
  readonly ready: CachedResult | undefined;
  readonly output: unknown;
  readonly artifacts: readonly Artifact[];
}

/**
 * Runs packs: validates the input, runs the hooks and the handler, and validates the output. Every error becomes a failure with a
 * known code.
 */
export class PackEngine {
  readonly catalogue: Catalogue;
  readonly #deps: Deps;
  readonly #runCounts = new Map<string, number>();
  readonly #running = new Set<{ readonly caller: Caller; readonly limit: TimeLimit }>();
  /** Number of runs whose audit rows are being written. */
  #unrecorded = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.catalogue = deps.catalogue;
  }

  async run(caller: Caller, { name, input: given, session }: RunPackInput, callContext: CallContext = {}): Promise<PackResult> {
    const pack = this.catalogue.find(name);
    if (!isOffered(caller, pack)) throw notOffered(caller, pack);
    const unavailable = pack.unavailable?.();
    if (unavailable !== undefined) throw new Failure('unavailable', unavailable);
    const parsed = pack.input.safeParse(given);
    if (!parsed.success) throw new Failure('invalid_input', explainInput(pack, parsed.error), { cause: parsed.error });
    const effect = effectOfPack(pack);
    if (effect) {
      const input = { name, input: given, ...(session !== undefined && { session }) };
      await askConsent(callContext, { caller, name: 'runPack', input, effect });
    }
    using _place = this.#takePlace(caller.subject);
    return await this.#run({ pack, caller, session, input: parsed.data, callContext });
  }

  /** Cancels the runs of a token that was revoked or paused (R-PACK-32). */
  cancelRunsOf(token: string, why: Failure): void {
    for (const { caller, limit } of this.#running) if (caller.token === token) limit.cancel(why);
  }

  /**
   * Cancels every run and withholds its output, even if the run has ended and only its audit row is not written yet (R-LOCK-03).
   */
  cancelAllRuns(why: Failure): void {
    for (const { limit } of this.#running) limit.withhold(why);
  }

  async #run({ pack, caller, session, input, callContext }: RunRequest): Promise<PackResult> {
    const { clock, hooks } = this.#deps;
    const startedAt = clock.steady();
    using limit = timeLimit(clock, pack, callContext.signal);
    using _running = this.#register({ caller, limit });
    const run = this.#begin({ pack, caller, session, input, callContext }, limit);
    const begun: PackHook[] = [];
    const outcome = await this.#outcome(run, hooks, begun, limit.signal);
    const durationMs = Math.max(0, Math.round(clock.steady() - startedAt));
    const recorded = this.#after(run, begun, resultOf(outcome, durationMs));
    // A cached output is returned without waiting until its audit row is written.
    if ('failure' in outcome || !outcome.ready || this.#unrecorded > MAX_UNRECORDED) await recorded;
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

  #begin({ pack, caller, session, input, callContext }: RunRequest, limit: TimeLimit): HookRun {
    const { log } = this.#deps;
    const { signal } = limit;
    const { consent, pipelineRun } = callContext;
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
          // Ignore progress after the end, because a handler can ignore its signal and continue.
          if (!signal.aborted) callContext.progress?.(done, of, saying);
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
        // Do not await the result of a synchronous hook, so that it costs no event loop turn.
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

  /** Calls the `after` hooks. Never rejects, because the caller does not always await the result. */
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

  /**
   * Counts a run of the subject. Throws if the subject has too many concurrent runs, so that other subjects can run packs too.
   */
  #takePlace(subject: string): Disposable {
    const count = this.#runCounts.get(subject) ?? 0;
    if (count >= PACK.atOnce) {
      throw new Failure('rate_limited', `${PACK.atOnce} packs are already running for this caller; wait until a run ends.`, {
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

/**
 * Returns the effect for which a pack needs the owner's consent. The memory packs have no such effect, because the operations
 * that they call ask for consent.
 */
function effectOfPack({ usesNetwork, own, changes }: Pack): ConsentEffect | undefined {
  if (usesNetwork) return 'discloses';
  return own && changes === 'destroys' ? 'destroys' : undefined;
}

/**
 * Explains an invalid input. The schemas of built-in packs contain readable messages. For an owner's pack, the message of the
 * schema library is used, with the field added.
 */
function notOffered({ client }: Caller, { name }: Pack): Failure {
  const argument = client.includes(' ') ? `"${client}"` : client;
  return new Failure(
    'insufficient_scope',
    `The owner of this memory does not offer the pack ${name} to ${client}. The owner can offer all packs with: helmdeck-memory connect ${argument} --packs all.`,
  );
}

function explainInput({ own }: Pack, error: z.ZodError): string {
  const [first] = error.issues;
  if (!own || first === undefined) return explainIssue(error);
  const field = first.path.map(String).join('.') || 'The request';
  const what = first.code === 'unrecognized_keys' ? 'has an unknown field' : `is invalid: ${first.message}`;
  return `${field} ${what}; compare the input with the input schema of the pack.`;
}

/** Reports that the caller cancelled the run, or is no longer allowed to wait for the run. */
class Cancelled extends Failure {
  constructor(why?: Failure) {
    super(why?.code ?? 'cancelled', why?.message ?? 'The run was cancelled. If its result is still needed, start it again.');
  }
}

interface TimeLimit extends Disposable {
  /** Aborted when the run must stop. The abort reason is the error that is reported. */
  readonly signal: AbortSignal;
  cancel(why?: Failure): void;
  /** Stops the timer while `work` runs. Afterwards, the timer starts again with the full time limit. */
  suspended<T>(work: () => Promise<T>): Promise<T>;
  /** Cancels the run, and withholds its output even if the handler has already returned. */
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
        new Failure('timeout', `${name} exceeded its time limit of ${seconds} s; request less data, or try again later.`),
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

/** Adds new artifacts to the result. An output with artifacts is not cached, because the cache cannot store artifacts. */
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
        throw new Failure('artifact_failed', `A file created by ${pack.name} could not be saved; try again later.`, { cause });
      }
    },
  };
}

/** Returns the output as parsed by the pack's schema. Throws if the output does not match the schema. */
function validatedOutput({ name, output }: Pack, answer: unknown): unknown {
  const { success, data } = output.safeParse(answer);
  if (success && fitsJson(data)) return data;
  throw new Failure(
    'invalid_output',
    success
      ? `${name} returned more than ${PACK.outputBytes / 1024} KiB, or a value that JSON cannot represent; request less data.`
      : `${name} returned output that does not match its schema; report this to the author of the pack.`,
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

/** Returns a `Failure` unchanged. Hides the text of any other error, because the text may contain private data. */
const asHandlerFailure = (error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure('handler_failed', 'The pack failed with an unexpected error; report this to the author of the pack.', {
        cause: error,
      });

function resultOf(outcome: Outcome, durationMs: number): RunResult {
  if ('failure' in outcome) {
    const { failure } = outcome;
    return { outcome: failure instanceof Cancelled ? 'cancelled' : failure.code, failure, durationMs };
  }
  return { outcome: 'ok', output: outcome.output, ...(outcome.ready && { cachedUntil: outcome.ready.expiresAt }), durationMs };
}
