import { statfs } from 'node:fs/promises';
import { freemem } from 'node:os';
import type { EmbeddingsReport, SetEmbeddingsInput } from '../../contract/embeddings.ts';
import { Failure } from '../../contract/failure.ts';
import { EMBEDDING } from '../../contract/limits.ts';
import type { SidecarState } from '../../contract/status.ts';
import type { Embeddings, Vectors } from '../../core/operations/embeddings-port.ts';
import type { Clock } from '../../core/time/clock.ts';
import { formatTime } from '../../core/time/format-time.ts';
import type { HostMachine, OllamaSettings } from '../config/config.ts';
import { type EmbeddingsChoice, saveChoice, readChoice } from './choice.ts';
import { EmbeddingQueue } from './embedding-queue.ts';
import { InstalledOllama, isApproved } from './installed.ts';
import { DimensionCheck, includesModel, knownModel } from './models.ts';
import { createAdoptedClient, ModelNotFound, type OllamaClient } from './ollama-client.ts';
import { OllamaRun } from './ollama-run.ts';
import { freePort } from './port-owner.ts';
import { pullModel, asPullFailure, requireDiskSpace } from './pull-model.ts';
import { SidecarFailure } from './sidecar-failure.ts';
import { startOwnOllama } from './start-own.ts';
import { ASLEEP, failedState, isHealthy, noModelState, OFF, failureOf, unapprovedState } from './states.ts';
import { requestTimeout, SIDECAR_TIMEOUTS, type SidecarTimeouts } from './timeouts.ts';
import { isOlder, MINIMUM_VERSION } from './version.ts';

/** Consecutive failed responses before a restart. A single failure may be caused by its request. */
const BROKEN = 3;
/** Failures after which Ollama keeps running, so that the model can be downloaded again. */
const STAYS: ReadonlySet<string> = new Set(['pull_failed', 'wrong_dimension']);

export interface SidecarOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly settings: OllamaSettings;
  readonly machine: HostMachine;
  readonly onStateChange?: ((state: SidecarState) => void) | undefined;
  readonly timeouts?: Partial<SidecarTimeouts>;
  /** For tests: chooses the port. */
  readonly choosePort?: () => Promise<number>;
}

/**
 * Starts or adopts an Ollama, monitors it and ends it. Acts only on requests and when Ollama exits, so it costs nothing while
 * idle.
 */
export class Sidecar implements Embeddings, AsyncDisposable {
  readonly #options: SidecarOptions;
  readonly #times: SidecarTimeouts;
  readonly #installed: InstalledOllama;
  readonly #fitting: DimensionCheck;
  readonly #line = new EmbeddingQueue();
  #choice: EmbeddingsChoice;
  #state: SidecarState;
  /** Whether the program has started, rather than a command that only reads the state. */
  #awake = false;
  #life: OllamaRun | undefined;
  #ending: Promise<void> = Promise.resolve();
  #turn: Promise<void> = Promise.resolve();
  #again: Disposable | undefined;
  #failures = 0;
  #unsafe: string | undefined;

  constructor(options: SidecarOptions) {
    this.#options = options;
    this.#times = { ...SIDECAR_TIMEOUTS, ...options.timeouts };
    this.#installed = new InstalledOllama(options);
    this.#fitting = new DimensionCheck(options.settings.model);
    this.#choice = readChoice(options.folder);
    this.#state = this.#choice.on ? ASLEEP : OFF;
  }

  get state(): SidecarState {
    return this.#state;
  }

  get model(): string {
    return this.#options.settings.model;
  }

  /** The program has started, so Ollama may run. */
  wake(): void {
    this.#awake = true;
    if (this.#choice.on) this.#begin();
  }

  configure(choice: SetEmbeddingsInput): Promise<void> {
    return this.#inTurn(() => this.#choose(choice));
  }

  approve(sha256: string): Promise<void> {
    return this.#inTurn(() => this.#approve(sha256));
  }

  async pull(): Promise<void> {
    await this.#life?.awaitCancelledPull();
    if (this.#fetches()) return;
    // The disk space of an adopted Ollama's model folder is unknown.
    if (!this.#choice.adopt) requireDiskSpace(this.model, (await this.report()).free);
    // Check again: the run may have ended or another pull may have started.
    const life = this.#life;
    if (this.#fetches() || !life?.client) return;
    this.#become({ at: 'pulling', model: this.model, done: 0, of: 0 });
    void this.#fetch(life, life.client);
  }

  async cancelPull(): Promise<void> {
    await this.#life?.cancelPull();
  }

  async embed(subject: string, texts: readonly string[], signal?: AbortSignal): Promise<Vectors> {
    const { clock } = this.#options;
    if (this.#state.at !== 'ready') throw failureOf(this.#state, clock);
    using _place = this.#line.reserve(subject);
    using limit = requestTimeout(clock, this.#times.request, signal);
    const vectors: (readonly number[])[] = [];
    let tokens = 0;
    for (let at = 0; at < texts.length; at += EMBEDDING.batch) {
      const some = texts.slice(at, at + EMBEDDING.batch);
      const part = await this.#line.runInTurn(subject, limit.signal, () => this.#embedSome(some, limit.signal));
      vectors.push(...part.vectors);
      tokens += part.tokens;
    }
    return { vectors, tokens };
  }

  async report(): Promise<EmbeddingsReport> {
    const { folder, settings } = this.#options;
    const known = knownModel(settings.model);
    const disk = await statfs(folder).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => undefined,
    );
    const { version, log } = this.#life ?? {};
    const { binary } = this.#installed;
    return {
      state: this.#state,
      on: this.#choice.on,
      adopt: this.#choice.adopt,
      adoptable: settings.url.origin,
      ...(binary && { ollama: { ...binary, approved: isApproved(binary, this.#choice) } }),
      ...(this.#unsafe !== undefined && { ollama: { path: this.#unsafe, approved: false } }),
      ...(version !== undefined && { version }),
      model: { name: settings.model, ...(known && { disk: known.disk, memory: known.memory }) },
      free: { ...(disk !== undefined && { disk }), memory: freemem() },
      log: [...(log?.lines ?? [])],
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#awake = false;
    await this.#inTurn(() => this.#end());
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(step);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #choose({ on, adopt = this.#choice.adopt }: SetEmbeddingsInput): Promise<void> {
    const same = on && this.#choice.on && adopt === this.#choice.adopt;
    if (same && isHealthy(this.#state)) {
      await this.#lookForModel();
      return;
    }
    this.#keep({ ...this.#choice, on, adopt });
    this.#failures = 0;
    const ended = this.#end();
    // Set the new state before waiting for the end, so that requests see it.
    if (!on) this.#become(OFF);
    else if (this.#awake) this.#begin();
    else this.#become(ASLEEP);
    await ended;
  }

  async #approve(sha256: string): Promise<void> {
    this.#unsafe = undefined;
    const binary = await this.#installed.find().catch((error: unknown) => {
      throw error instanceof SidecarFailure ? failureOf(failedState(error)) : error;
    });
    if (binary.sha256 !== sha256) {
      throw new Failure(
        'invalid_input',
        'hash does not match the Ollama that was found; check it again and send the hash shown.',
      );
    }
    this.#keep({ ...this.#choice, approved: binary });
    if (this.#state.at !== 'unapproved' || !this.#awake) return;
    await this.#end();
    this.#begin();
  }

  #keep(choice: EmbeddingsChoice): void {
    saveChoice(this.#options.folder, choice);
    this.#choice = choice;
  }

  #become(state: SidecarState): void {
    this.#state = state;
    this.#options.onStateChange?.(state);
  }

  #begin(): void {
    const life = new OllamaRun(this.#options.clock, this.#life?.log);
    this.#life = life;
    this.#become({ at: 'starting' });
    void this.#live(life);
  }

  async #live(life: OllamaRun): Promise<void> {
    const { settings, clock } = this.#options;
    try {
      await this.#ending;
      life.signal.throwIfAborted();
      life.client = this.#choice.adopt ? createAdoptedClient(settings.url, clock) : await this.#startOwn(life);
      if (life.client) await this.#look(life, life.client);
    } catch (error) {
      this.#fail(life, error);
    }
  }

  /** Undefined if the owner must approve the program first. */
  async #startOwn(life: OllamaRun): Promise<OllamaClient | undefined> {
    const { folder, clock, machine, choosePort = freePort } = this.#options;
    this.#unsafe = undefined;
    const binary = await this.#installed.find();
    life.signal.throwIfAborted();
    if (!isApproved(binary, this.#choice)) {
      this.#become(unapprovedState(this.#choice.approved !== undefined));
      return undefined;
    }
    const port = await choosePort();
    life.signal.throwIfAborted();
    const onEnd = (why: SidecarFailure): void => this.#fail(life, why);
    return startOwnOllama(life, { path: binary.path, port, folder, clock, machine, times: this.#times, onEnd });
  }

  /** Checks the version and whether the model is installed. */
  async #look(life: OllamaRun, wire: OllamaClient): Promise<void> {
    const { check: look } = this.#times;
    life.version = await wire.version(look, life.signal);
    if (isOlder(life.version, MINIMUM_VERSION)) throw new SidecarFailure('too_old');
    const names = await wire.models(look, life.signal);
    if (this.#life !== life) return;
    life.healthySince = this.#options.clock.steady();
    const { model } = this;
    const whose = this.#choice.adopt ? 'adopted' : 'own';
    this.#become(includesModel(model, names) ? { at: 'ready', model, whose } : noModelState(model));
  }

  /** The owner may have downloaded the model by hand, which sends no notification. */
  async #lookForModel(): Promise<void> {
    const life = this.#life;
    if (this.#state.at !== 'no_model' || !life?.client) return;
    await this.#look(life, life.client).catch((error: unknown) => this.#fail(life, error));
  }

  /** Whether a download is running; throws if none can be started. A failed run remains visible but starts no download. */
  #fetches(): boolean {
    const { at } = this.#state;
    if (!this.#life?.client || this.#life.signal.aborted || at === 'starting') throw failureOf(this.#state, this.#options.clock);
    return at === 'pulling';
  }

  async #fetch(life: OllamaRun, wire: OllamaClient): Promise<void> {
    const { model } = this;
    const cancel = life.beginPull();
    try {
      for await (const far of pullModel(wire, {
        model,
        clock: this.#options.clock,
        timeoutMs: this.#times.pullIdle,
        cancel,
      })) {
        if (this.#life === life) this.#become({ at: 'pulling', model, ...far });
      }
    } catch (error) {
      if (!life.signal.aborted && !cancel.aborted) this.#fail(life, asPullFailure(error));
    }
    if (this.#state.at === 'pulling' && this.#life === life)
      await this.#look(life, wire).catch((error: unknown) => this.#fail(life, error));
    // Only after the state is known: the caller waiting for this may start another pull at once.
    life.endPull();
  }

  async #embedSome(texts: readonly string[], signal: AbortSignal): Promise<Vectors> {
    const life = this.#life;
    // The state may have changed while waiting in the queue.
    if (this.#state.at !== 'ready' || !life?.client) throw failureOf(this.#state, this.#options.clock);
    try {
      const answer = await life.client.embed(this.model, texts, this.#times.embed, life.withSignal(signal));
      this.#fitting.require(answer.vectors, texts.length);
      life.failedResponses = 0;
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#whyNot(life, error);
    }
  }

  #whyNot(life: OllamaRun, error: unknown): Failure {
    if (this.#life !== life || life.signal.aborted) return failureOf(this.#state, this.#options.clock);
    if (error instanceof ModelNotFound) {
      this.#become(noModelState(this.model));
      return failureOf(this.#state);
    }
    if (error instanceof SidecarFailure && error.code === 'broken' && (life.failedResponses += 1) < BROKEN) {
      return failureOf(failedState(error));
    }
    this.#fail(life, error);
    return failureOf(this.#state, this.#options.clock);
  }

  #fail(life: OllamaRun, error: unknown): void {
    // Ignore failures of a run that is already over.
    if (this.#life !== life || life.signal.aborted) return;
    // A run ended for flooding also fails its open requests; report the flooding.
    const trouble = life.logFlooded ? new SidecarFailure('flooding') : this.#asTrouble(error);
    this.#unsafe = trouble.path;
    const { clock } = this.#options;
    if (life.client && STAYS.has(trouble.code)) {
      this.#become(failedState(trouble));
      return;
    }
    if (life.healthySince !== undefined && clock.steady() - life.healthySince >= this.#times.resetFailuresAfter)
      this.#failures = 0;
    void this.#endLife(life);
    if (trouble.permanent) {
      this.#become(failedState(trouble));
      return;
    }
    const { retryDelays: again } = this.#times;
    const ms = again[Math.min(this.#failures, again.length - 1)] ?? 0;
    this.#failures += 1;
    this.#again = clock.after(ms, () => {
      this.#again = undefined;
      this.#begin();
    });
    this.#become({ ...failedState(trouble), retry_at: formatTime(clock.now() + ms) });
  }

  #asTrouble(error: unknown): SidecarFailure {
    if (error instanceof SidecarFailure) return error;
    if (error instanceof ModelNotFound) return new SidecarFailure('broken');
    return new SidecarFailure(this.#choice.adopt ? 'gone' : 'crashed', {}, { cause: error });
  }

  async #end(): Promise<void> {
    this.#again?.[Symbol.dispose]();
    this.#again = undefined;
    const life = this.#life;
    this.#life = undefined;
    if (life) await this.#endLife(life);
    await this.#ending;
  }

  /** The next run starts once all processes of this run have exited. */
  #endLife(life: OllamaRun): Promise<void> {
    return (this.#ending = Promise.all([this.#ending, life.end()]).then(() => undefined));
  }
}
