import type * as z from 'zod';
import type { ConsentEffect } from '../../contract/effect.ts';
import { explainIssue } from '../../contract/explain.ts';
import { asFailure, Failure } from '../../contract/failure.ts';
import { PACK } from '../../contract/limits.ts';
import type { PackResult, RunPackInput } from '../../contract/pack.ts';
import type { Caller } from '../access/caller.ts';
import { askConsent, type CallContext } from '../operations/call-context.ts';
import type { Clock } from '../time/clock.ts';
import { formatTime } from '../time/format-time.ts';
import type { Catalogue } from './catalogue.ts';
import type { RunResult, PackHook, CachedResult, HookRun } from './hook.ts';
import type { Artifact, ArtifactStore, Pack } from './pack.ts';

/** More than that are not left to be written down behind their answers. */
const MOST_NOTED = 256;

interface Deps {
  readonly catalogue: Catalogue;
  /** In this order before a run, and in the opposite one after it. */
  readonly hooks: readonly PackHook[];
  readonly clock: Clock;
  /** What a pack says while it runs. */
  readonly log?: (pack: string, text: string) => void;
  /** A hook failed after a run, which changes nothing for its caller. */
  readonly trouble: (pack: string) => void;
}

interface Asked {
  readonly pack: Pack;
  readonly caller: Caller;
  readonly session: string | undefined;
  readonly input: unknown;
  readonly during: CallContext;
}

type Outcome = Answered | { readonly failure: Failure };

interface Answered {
  readonly ready: CachedResult | undefined;
  readonly output: unknown;
  readonly artifacts: readonly Artifact[];
}

/** Runs packs: input, hooks before, handler, output, hooks after. What goes wrong in one is told in the words of the failure table. */
export class PackEngine {
  readonly catalogue: Catalogue;
  readonly #deps: Deps;
  readonly #underWay = new Map<string, number>();
  readonly #running = new Set<{ readonly caller: Caller; readonly limit: TimeLimit }>();
  /** Runs that are being written down. */
  #noting = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.catalogue = deps.catalogue;
  }

  async run(caller: Caller, { name, input: given, session }: RunPackInput, during: CallContext = {}): Promise<PackResult> {
    const pack = this.catalogue.find(name);
    const unavailable = pack.unavailable?.();
    if (unavailable !== undefined) throw new Failure('handler_failed', unavailable);
    const parsed = pack.input.safeParse(given);
    if (!parsed.success) throw new Failure('invalid_input', explainInput(pack, parsed.error), { cause: parsed.error });
    const effect = effectOfPack(pack);
    if (effect) {
      const input = { name, input: given, ...(session !== undefined && { session }) };
      await askConsent(during, { caller, name: 'runPack', input, effect });
    }
    using _place = this.#place(caller.subject);
    return await this.#run({ pack, caller, session, input: parsed.data, during });
  }

  /** What runs for a token ends when nobody may come with that any more (R-PACK-32). */
  cancelRunsOf(token: string, why: Failure): void {
    for (const { caller, limit } of this.#running) if (caller.token === token) limit.cancel(why);
  }

  /** Ends every run and withholds its answer, also one that is only being recorded (R-LOCK-03). */
  cancelAllRuns(why: Failure): void {
    for (const { limit } of this.#running) limit.withhold(why);
  }

  async #run({ pack, caller, session, input, during }: Asked): Promise<PackResult> {
    const { clock, hooks } = this.#deps;
    const began = clock.steady();
    using limit = timeLimit(clock, pack, during.signal);
    using _running = this.#listed({ caller, limit });
    const run = this.#begin({ pack, caller, session, input, during }, limit);
    const begun: PackHook[] = [];
    const outcome = await this.#outcome(run, hooks, begun, limit.signal);
    const durationMs = Math.max(0, Math.round(clock.steady() - began));
    const noted = this.#after(run, begun, endingOf(outcome, durationMs));
    // An answer that was there already does not wait until it is written down that it was given.
    if ('failure' in outcome || !outcome.ready || this.#noting > MOST_NOTED) await noted;
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

  #begin({ pack, caller, session, input, during }: Asked, limit: TimeLimit): HookRun {
    const { log } = this.#deps;
    const { signal } = limit;
    const { consent } = during;
    let forThisOnce = false;
    return {
      pack,
      caller,
      ...(session !== undefined && { session }),
      input,
      get uncacheable() {
        return forThisOnce;
      },
      context: {
        input,
        caller,
        ...(session !== undefined && { session }),
        signal,
        callContext: { signal, ...(consent && { consent: (request) => limit.suspended(() => consent(request)) }) },
        progress(done, of, saying) {
          // A handler may ignore its signal and go on.
          if (!signal.aborted) during.progress?.(done, of, saying);
        },
        log: (text) => log?.(pack.name, text),
        doNotCache: () => {
          forThisOnce = true;
        },
      },
    };
  }

  async #outcome(run: HookRun, hooks: readonly PackHook[], begun: PackHook[], signal: AbortSignal): Promise<Outcome> {
    try {
      for (const hook of hooks) {
        begun.push(hook);
        // A hook that has nothing to wait for costs no turn.
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
      if (run.context.artifacts) run.context.artifacts = noting(run, run.context.artifacts, artifacts);
      const output = fitting(run.pack, await orAborted(signal, run.pack.handler(run.context)));
      return { ready: undefined, output, artifacts };
    } catch (error) {
      return { failure: asHandlerFailure(error) };
    }
  }

  /** Never fails: nobody may wait for it. */
  async #after(run: HookRun, begun: readonly PackHook[], ending: RunResult): Promise<void> {
    this.#noting += 1;
    for (const hook of begun.toReversed()) {
      try {
        const work = hook.after?.(run, ending);
        if (work instanceof Promise) await work;
      } catch {
        this.#deps.trouble(run.pack.name);
      }
    }
    this.#noting -= 1;
  }

  #listed(running: { readonly caller: Caller; readonly limit: TimeLimit }): Disposable {
    this.#running.add(running);
    return { [Symbol.dispose]: () => void this.#running.delete(running) };
  }

  /** One subject's flood leaves room for the others'. */
  #place(subject: string): Disposable {
    const count = this.#underWay.get(subject) ?? 0;
    if (count >= PACK.atOnce) {
      throw new Failure('rate_limited', `${PACK.atOnce} packs are running for this caller; wait for some of them.`, {
        retryAfter: 1,
      });
    }
    this.#underWay.set(subject, count + 1);
    return {
      [Symbol.dispose]: () => {
        const left = (this.#underWay.get(subject) ?? 1) - 1;
        if (left === 0) this.#underWay.delete(subject);
        else this.#underWay.set(subject, left);
      },
    };
  }
}

/** The memory packs have none here: what they ask of the memory is decided where it is performed. */
function effectOfPack({ usesNetwork, own, changes }: Pack): ConsentEffect | undefined {
  if (usesNetwork) return 'discloses';
  return own && changes === 'destroys' ? 'destroys' : undefined;
}

/** Our own schemas bring their words with them; others' are told with the library's, and with where. */
function explainInput({ own }: Pack, error: z.ZodError): string {
  const [first] = error.issues;
  if (!own || first === undefined) return explainIssue(error);
  const field = first.path.map(String).join('.') || 'The request';
  const what = first.code === 'unrecognized_keys' ? 'has a field that the pack does not know' : `does not fit: ${first.message}`;
  return `${field} ${what}; compare it with the input schema of the pack.`;
}

/** What the caller gave up, or may not wait for any more. */
class Cancelled extends Failure {
  constructor(why?: Failure) {
    super(why?.code ?? 'cancelled', why?.message ?? 'The run was cancelled; start it again if it is still wanted.');
  }
}

interface TimeLimit extends Disposable {
  /** Aborted with the failure that says why. */
  readonly signal: AbortSignal;
  cancel(why?: Failure): void;
  /** Stops the time while this is awaited, then grants the pack its whole time again. */
  suspended<T>(work: () => Promise<T>): Promise<T>;
  /** Cancels the run, and keeps back an answer that is there already. */
  withhold(why: Failure): void;
  readonly withheld: Failure | undefined;
}

function timeLimit(clock: Clock, { name, seconds = PACK.timeout }: Pack, given: AbortSignal | undefined): TimeLimit {
  const controller = new AbortController();
  let withheld: Failure | undefined;
  const cancel = (why?: Failure): void => controller.abort(new Cancelled(why));
  const giveUp = (): void => cancel();
  if (given?.aborted) giveUp();
  else given?.addEventListener('abort', giveUp, { once: true });
  const start = (): Disposable =>
    clock.after(seconds * 1000, () =>
      controller.abort(new Failure('timeout', `${name} took longer than its ${seconds} s; ask it for less, or try again later.`)),
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
      given?.removeEventListener('abort', giveUp);
    },
  };
}

/** A handler that does not heed its signal is left behind; what becomes of it concerns nobody. */
function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const abort = (): void => reject(signal.reason as Failure);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  return promise;
}

/** What was made is told with the answer, and the answer without it would be another: it is for this once. */
function noting({ pack, context }: HookRun, place: ArtifactStore, made: Artifact[]): ArtifactStore {
  return {
    async put(name, mediaType, body) {
      try {
        const artifact = await place.put(name, mediaType, body);
        made.push(artifact);
        context.doNotCache();
        return artifact;
      } catch (cause) {
        if (cause instanceof Failure) throw cause;
        throw new Failure('artifact_failed', `What ${pack.name} made could not be put anywhere; try again later.`, { cause });
      }
    },
  };
}

/** What is not as the pack's author promised is not handed on. */
function fitting({ name, output }: Pack, answer: unknown): unknown {
  const { success, data } = output.safeParse(answer);
  if (success && fitsJson(data)) return data;
  throw new Failure(
    'invalid_output',
    success
      ? `${name} answered more than ${PACK.outputBytes / 1024} KiB, or what JSON cannot hold; ask it for less.`
      : `${name} answered what its own schema does not allow; tell its author.`,
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

/** A failure that names itself is one of the table; anything else was the handler's, and its text may hold what it saw. */
const asHandlerFailure = (error: unknown): Failure =>
  error instanceof Failure
    ? error
    : new Failure('handler_failed', 'The pack failed in a way that its author did not foresee; tell them.', { cause: error });

function endingOf(outcome: Outcome, durationMs: number): RunResult {
  if ('failure' in outcome) {
    const { failure } = outcome;
    return { outcome: failure instanceof Cancelled ? 'cancelled' : failure.code, failure, durationMs };
  }
  return { outcome: 'ok', output: outcome.output, ...(outcome.ready && { cachedUntil: outcome.ready.expiresAt }), durationMs };
}
