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
import { DimensionCheck, findInstalled, knownModel } from './models.ts';
import { createAdoptedClient, ModelNotFound, type OllamaClient } from './ollama-client.ts';
import { OllamaRun } from './ollama-run.ts';
import { freePort } from './port-owner.ts';
import { pullModel, asPullFailure, requireDiskSpace } from './pull-model.ts';
import { SidecarFailure } from './sidecar-failure.ts';
import { startOwnOllama } from './start-own.ts';
import { ASLEEP, failedState, isHealthy, noModelState, OFF, failureOf, unapprovedState } from './states.ts';
import { requestTimeout, SIDECAR_TIMEOUTS, type SidecarTimeouts } from './timeouts.ts';
import { isOlder, MINIMUM_VERSION } from './version.ts';

/** Number of consecutive failed responses after which Ollama is restarted. A single failure may be caused by its request. */
const MAX_FAILED_RESPONSES = 3;
/** Failures after which Ollama keeps running, so that the model can be downloaded again. */
const KEEP_RUNNING: ReadonlySet<string> = new Set(['pull_failed', 'wrong_dimension']);

export interface SidecarOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly settings: OllamaSettings;
  readonly machine: HostMachine;
  readonly onStateChange?: ((state: SidecarState) => void) | undefined;
  readonly timeouts?: Partial<SidecarTimeouts>;
  /** Chooses the port. Set only by tests. */
  readonly choosePort?: () => Promise<number>;
}

/**
 * Starts Ollama, or adopts an Ollama that is already running. Monitors and stops Ollama. Acts only on requests and when Ollama
 * exits, so that the sidecar needs no processor time while idle.
 */
export class Sidecar implements Embeddings, AsyncDisposable {
  readonly #options: SidecarOptions;
  readonly #times: SidecarTimeouts;
  readonly #installed: InstalledOllama;
  #dimensionCheck: DimensionCheck;
  readonly #queue = new EmbeddingQueue();
  #choice: EmbeddingsChoice;
  #state: SidecarState;
  /** True in the running program. False in a command that only reads the state. */
  #awake = false;
  #run: OllamaRun | undefined;
  #ended: Promise<void> = Promise.resolve();
  #turn: Promise<void> = Promise.resolve();
  #retry: Disposable | undefined;
  #failures = 0;
  #unsafe: string | undefined;
  #digest: string | undefined;

  constructor(options: SidecarOptions) {
    this.#options = options;
    this.#times = { ...SIDECAR_TIMEOUTS, ...options.timeouts };
    this.#installed = new InstalledOllama(options);
    this.#dimensionCheck = new DimensionCheck(options.settings.model);
    this.#choice = readChoice(options.folder);
    this.#state = this.#choice.on ? ASLEEP : OFF;
  }

  get state(): SidecarState {
    return this.#state;
  }

  get model(): string {
    return this.#options.settings.model;
  }

  /** Digest of the model that Ollama serves. Undefined if it is unknown. */
  get digest(): string | undefined {
    return this.#digest;
  }

  /** Called after startup. Only from then on is the sidecar allowed to start Ollama. */
  wake(): void {
    this.#awake = true;
    if (this.#choice.on) this.#startRun();
  }

  configure(choice: SetEmbeddingsInput): Promise<void> {
    return this.#inTurn(() => this.#choose(choice));
  }

  approve(sha256: string): Promise<void> {
    return this.#inTurn(() => this.#approve(sha256));
  }

  async pull(): Promise<void> {
    await this.#run?.awaitCancelledPull();
    if (this.#isPulling()) return;
    // Skip the check for an adopted Ollama, because the disk space for its models is unknown.
    if (!this.#choice.adopt) requireDiskSpace(this.model, (await this.report()).free);
    // Check again: meanwhile the run may have ended, or another download may have started.
    const run = this.#run;
    if (this.#isPulling() || !run?.client) return;
    this.#setState({ at: 'pulling', model: this.model, done: 0, of: 0 });
    void this.#pullModel(run, run.client);
  }

  async cancelPull(): Promise<void> {
    await this.#run?.cancelPull();
  }

  async embed(subject: string, texts: readonly string[], signal?: AbortSignal): Promise<Vectors> {
    const { clock } = this.#options;
    if (this.#state.at !== 'ready') throw failureOf(this.#state, clock);
    using _slot = this.#queue.reserve(subject);
    using limit = requestTimeout(clock, this.#times.request, signal);
    const vectors: (readonly number[])[] = [];
    let tokens = 0;
    for (let at = 0; at < texts.length; at += EMBEDDING.batch) {
      const some = texts.slice(at, at + EMBEDDING.batch);
      const part = await this.#queue.runInTurn(subject, limit.signal, () => this.#embedSome(some, limit.signal));
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
    const { version, log } = this.#run ?? {};
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
      await this.#recheckModel();
      return;
    }
    this.#saveChoice({ ...this.#choice, on, adopt });
    this.#failures = 0;
    // The owner may have replaced the model by one with vectors of another length.
    this.#dimensionCheck = new DimensionCheck(this.model);
    const ended = this.#end();
    // Set the new state before waiting for the old run to end, so that requests see the new state meanwhile.
    if (!on) this.#setState(OFF);
    else if (this.#awake) this.#startRun();
    else this.#setState(ASLEEP);
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
        'hash does not match the Ollama that was found; get the embeddings status again and send the hash from that status.',
      );
    }
    this.#saveChoice({ ...this.#choice, approved: binary });
    if (this.#state.at !== 'unapproved' || !this.#awake) return;
    await this.#end();
    this.#startRun();
  }

  #saveChoice(choice: EmbeddingsChoice): void {
    saveChoice(this.#options.folder, choice);
    this.#choice = choice;
  }

  #setState(state: SidecarState): void {
    this.#state = state;
    this.#options.onStateChange?.(state);
  }

  #startRun(): void {
    const run = new OllamaRun(this.#options.clock, this.#run?.log);
    this.#run = run;
    this.#setState({ at: 'starting' });
    void this.#connect(run);
  }

  async #connect(run: OllamaRun): Promise<void> {
    const { settings, clock } = this.#options;
    try {
      await this.#ended;
      run.signal.throwIfAborted();
      run.client = this.#choice.adopt ? createAdoptedClient(settings.url, clock) : await this.#startOwn(run);
      if (run.client) await this.#checkOllama(run, run.client);
    } catch (error) {
      this.#fail(run, error);
    }
  }

  /** Starts Ollama. Returns undefined if the owner must approve the program first. */
  async #startOwn(run: OllamaRun): Promise<OllamaClient | undefined> {
    const { folder, clock, machine, choosePort = freePort } = this.#options;
    this.#unsafe = undefined;
    const binary = await this.#installed.find();
    run.signal.throwIfAborted();
    if (!isApproved(binary, this.#choice)) {
      this.#setState(unapprovedState(this.#choice.approved !== undefined));
      return undefined;
    }
    const port = await choosePort();
    run.signal.throwIfAborted();
    const onEnd = (why: SidecarFailure): void => this.#fail(run, why);
    return startOwnOllama(run, { path: binary.path, port, folder, clock, machine, times: this.#times, onEnd });
  }

  /** Checks Ollama's version and whether the model is installed. */
  async #checkOllama(run: OllamaRun, client: OllamaClient): Promise<void> {
    const { check: timeout } = this.#times;
    run.version = await client.version(timeout, run.signal);
    if (isOlder(run.version, MINIMUM_VERSION)) throw new SidecarFailure('too_old');
    const models = await client.models(timeout, run.signal);
    if (this.#run !== run) return;
    run.healthySince = this.#options.clock.steady();
    const { model } = this;
    const whose = this.#choice.adopt ? 'adopted' : 'own';
    const found = findInstalled(model, models);
    this.#digest = found?.digest;
    this.#setState(found ? { at: 'ready', model, whose } : noModelState(model));
  }

  /** Checks again whether the model is installed, because Ollama does not report that the owner downloaded the model by hand. */
  async #recheckModel(): Promise<void> {
    const run = this.#run;
    if (this.#state.at !== 'no_model' || !run?.client) return;
    await this.#checkOllama(run, run.client).catch((error: unknown) => this.#fail(run, error));
  }

  /** True if a download is running. Throws if no download can be started, for example because the run has failed. */
  #isPulling(): boolean {
    const { at } = this.#state;
    if (!this.#run?.client || this.#run.signal.aborted || at === 'starting') throw failureOf(this.#state, this.#options.clock);
    return at === 'pulling';
  }

  async #pullModel(run: OllamaRun, client: OllamaClient): Promise<void> {
    const { model } = this;
    const cancel = run.beginPull();
    try {
      for await (const far of pullModel(client, {
        model,
        clock: this.#options.clock,
        timeoutMs: this.#times.pullIdle,
        cancel,
      })) {
        if (this.#run === run) this.#setState({ at: 'pulling', model, ...far });
      }
    } catch (error) {
      if (!run.signal.aborted && !cancel.aborted) this.#fail(run, asPullFailure(error));
    }
    if (this.#state.at === 'pulling' && this.#run === run)
      await this.#checkOllama(run, client).catch((error: unknown) => this.#fail(run, error));
    // Report the end only after the new state is set: a caller that waits for the end may start another download immediately.
    run.endPull();
  }

  async #embedSome(texts: readonly string[], signal: AbortSignal): Promise<Vectors> {
    const run = this.#run;
    // Check the state again, because it may have changed while the step waited in the queue.
    if (this.#state.at !== 'ready' || !run?.client) throw failureOf(this.#state, this.#options.clock);
    try {
      const answer = await run.client.embed(this.model, texts, this.#times.embed, run.withSignal(signal));
      this.#dimensionCheck.require(answer.vectors, texts.length);
      run.failedResponses = 0;
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#handleFailure(run, error);
    }
  }

  #handleFailure(run: OllamaRun, error: unknown): Failure {
    if (this.#run !== run || run.signal.aborted) return failureOf(this.#state, this.#options.clock);
    if (error instanceof ModelNotFound) {
      this.#setState(noModelState(this.model));
      return failureOf(this.#state);
    }
    if (error instanceof SidecarFailure && error.code === 'broken' && (run.failedResponses += 1) < MAX_FAILED_RESPONSES) {
      return failureOf(failedState(error));
    }
    this.#fail(run, error);
    return failureOf(this.#state, this.#options.clock);
  }

  #fail(run: OllamaRun, error: unknown): void {
    // Ignore failures of a run that has already ended.
    if (this.#run !== run || run.signal.aborted) return;
    // Stopping a run that floods its log also makes its open requests fail. Report the flooding as their cause.
    const failure = run.logFlooded ? new SidecarFailure('flooding') : this.#asSidecarFailure(error);
    this.#unsafe = failure.path;
    const { clock } = this.#options;
    if (run.client && KEEP_RUNNING.has(failure.code)) {
      this.#setState(failedState(failure));
      return;
    }
    if (run.healthySince !== undefined && clock.steady() - run.healthySince >= this.#times.resetFailuresAfter) this.#failures = 0;
    void this.#endRun(run);
    if (failure.permanent) {
      this.#setState(failedState(failure));
      return;
    }
    const { retryDelays: delays } = this.#times;
    const ms = delays[Math.min(this.#failures, delays.length - 1)] ?? 0;
    this.#failures += 1;
    this.#retry = clock.after(ms, () => {
      this.#retry = undefined;
      this.#startRun();
    });
    this.#setState({ ...failedState(failure), retry_at: formatTime(clock.now() + ms) });
  }

  #asSidecarFailure(error: unknown): SidecarFailure {
    if (error instanceof SidecarFailure) return error;
    if (error instanceof ModelNotFound) return new SidecarFailure('broken');
    return new SidecarFailure(this.#choice.adopt ? 'gone' : 'crashed', {}, { cause: error });
  }

  async #end(): Promise<void> {
    this.#retry?.[Symbol.dispose]();
    this.#retry = undefined;
    const run = this.#run;
    this.#run = undefined;
    if (run) await this.#endRun(run);
    await this.#ended;
  }

  /** Ends a run. The next run waits until all processes of this run have exited. */
  #endRun(run: OllamaRun): Promise<void> {
    return (this.#ended = Promise.all([this.#ended, run.end()]).then(() => undefined));
  }
}
