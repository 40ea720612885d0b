import { Failure } from '../../contract/failure.ts';
import type { MeaningState } from '../../contract/status.ts';
import { MINUTE_MS, SECOND_MS } from '../../contract/units.ts';
import type { EmbeddingModel, EmbedOptions } from '../../core/meaning/embedder.ts';
import type { Clock } from '../../core/time/clock.ts';
import { formatTime } from '../../core/time/format-time.ts';
import { BUNDLED_MODEL, BUNDLED_NAME } from './bundled-model.ts';
import type { EmbeddingSource } from './embedding-source.ts';
import { CRASHED, ModelError, type ModelTrouble, NOT_INSTALLED, released, unavailable } from './model-failure.ts';
import type { LaunchModel, ModelFiles } from './model-messages.ts';
import { RunningModel } from './running-model.ts';
import { type Job, TextQueue } from './text-queue.ts';

/** After this time without a text, the process ends, because it needs 260 MB. */
const IDLE_MS = 5 * MINUTE_MS;
/** Delays before the model is started again after two failures in a row. The last delay is repeated. */
const RETRY_DELAYS_MS = [5, 30, 120, 300].map((seconds) => seconds * SECOND_MS);
/** Failures that only the owner can solve. */
const PERMANENT: ReadonlySet<string> = new Set(['not_installed', 'damaged']);

interface Options {
  readonly clock: Clock;
  /** Undefined if the model is not installed. */
  readonly files: ModelFiles | undefined;
  readonly launch: LaunchModel;
  readonly onChange: () => void;
}

/** The model that is installed with this program. Starts its process on first use, and ends it when it is idle (R-MEAN-21). */
export class BundledEmbedder implements EmbeddingSource {
  readonly #options: Options;
  readonly #queue = new TextQueue(
    (job) => this.#embed(job),
    () => this.#endWhenIdle(),
  );
  #running: RunningModel | undefined;
  #trouble: ModelTrouble | undefined;
  #retryAt: number | undefined;
  #retry: Disposable | undefined;
  #idle: Disposable | undefined;
  /** Number of failures since the last vector. */
  #failures = 0;

  constructor(options: Options) {
    this.#options = options;
    if (!options.files) this.#trouble = NOT_INSTALLED;
  }

  get model(): EmbeddingModel | undefined {
    return this.#trouble ? undefined : BUNDLED_MODEL;
  }

  get state(): MeaningState {
    if (!this.#trouble) return { at: 'ready', source: 'bundled', model: BUNDLED_NAME };
    const retry = this.#retryAt === undefined ? {} : { retry_at: formatTime(this.#retryAt) };
    return { at: 'failed', source: 'bundled', ...this.#trouble, ...retry };
  }

  async embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]> {
    if (this.#trouble) throw this.#failure(this.#trouble);
    return this.#queue.add(texts, options);
  }

  release(): void {
    this.#queue.rejectAll(released());
    this.#end(released());
  }

  [Symbol.dispose](): void {
    this.#retry?.[Symbol.dispose]();
    this.release();
  }

  async #embed(job: Job): Promise<void> {
    this.#idle?.[Symbol.dispose]();
    try {
      const running = (this.#running ??= this.#start());
      job.resolve(await running.embed(job.text));
      this.#failures = 0;
    } catch (error) {
      if (error instanceof Failure) job.reject(error);
      else this.#fail(job, error instanceof ModelError ? error : new ModelError(CRASHED));
    }
  }

  #endWhenIdle(): void {
    if (this.#running) this.#idle = this.#options.clock.after(IDLE_MS, () => this.#end(released()));
  }

  #start(): RunningModel {
    const { files, launch, clock } = this.#options;
    if (!files) throw new ModelError(NOT_INSTALLED);
    return new RunningModel({ files, launch, clock });
  }

  #end(reason: Error): void {
    this.#idle?.[Symbol.dispose]();
    this.#running?.end(reason);
    this.#running = undefined;
  }

  /** Tries the text once more in a new process. After a second failure in a row, waits before the next start. */
  #fail(job: Job, error: ModelError): void {
    const { trouble } = error;
    this.#end(error);
    this.#failures += 1;
    const permanent = PERMANENT.has(trouble.trouble);
    if (!permanent && this.#failures === 1) {
      this.#queue.retry(job);
      return;
    }
    this.#trouble = trouble;
    if (!permanent) this.#retryLater();
    const failure = this.#failure(trouble);
    job.reject(failure);
    this.#queue.rejectAll(failure);
    this.#options.onChange();
  }

  #retryLater(): void {
    const { clock } = this.#options;
    const delay = RETRY_DELAYS_MS[Math.min(this.#failures - 2, RETRY_DELAYS_MS.length - 1)] ?? 0;
    this.#retryAt = clock.now() + delay;
    this.#retry = clock.after(delay, () => {
      this.#trouble = undefined;
      this.#retryAt = undefined;
      this.#options.onChange();
    });
  }

  #failure(trouble: ModelTrouble): Failure {
    const wait = this.#retryAt === undefined ? undefined : (this.#retryAt - this.#options.clock.now()) / SECOND_MS;
    return unavailable(trouble, wait === undefined ? undefined : Math.max(1, Math.ceil(wait)));
  }
}
