import { asFailure } from '../../contract/failure.ts';
import type { MeaningState, SidecarState } from '../../contract/status.ts';
import { SECOND_MS } from '../../contract/units.ts';
import type { EmbeddingModel, EmbedOptions } from '../../core/meaning/embedder.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { LazySidecar } from '../sidecar/lazy-sidecar.ts';
import { knownModel } from '../sidecar/models.ts';
import type { EmbeddingSource } from './embedding-source.ts';
import { meaningOff, released, unavailable } from './model-failure.ts';
import { type Job, TextQueue } from './text-queue.ts';

/** No token can have this subject, so the texts of this program take turns with those of clients. */
const SUBJECT = '';
/** Longer vectors would need too much memory. The vectors of the largest models are half as long. */
const MAX_DIMENSIONS = 8192;
/** Time until the next attempt to learn the dimensions of the model. */
const RETRY_MS = 30 * SECOND_MS;

/**
 * Computes vectors with the Ollama that the owner approved or chose. Sends one text at a time, so that a question waits for the text
 * of one fact at most.
 */
export class OllamaEmbedder implements EmbeddingSource {
  readonly #sidecar: LazySidecar;
  readonly #onChange: () => void;
  readonly #queue = new TextQueue((job) => this.#embed(job));
  #cancel = new AbortController();
  #model: EmbeddingModel | undefined;
  /** The state to which `#model` belongs. */
  #identified: SidecarState | undefined;
  /** Why the model is not usable although Ollama is ready. */
  #trouble: MeaningState | undefined;
  #retry: Disposable | undefined;
  readonly #ended = new AbortController();
  readonly #clock: Clock;
  readonly #subscription: Disposable;

  constructor(sidecar: LazySidecar, clock: Clock, onChange: () => void) {
    this.#sidecar = sidecar;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#subscription = sidecar.onChange(() => this.#identify());
    this.#identify();
  }

  get model(): EmbeddingModel | undefined {
    return this.#sidecar.state === this.#identified ? this.#model : undefined;
  }

  get state(): MeaningState {
    const { state, model } = this.#sidecar;
    switch (state.at) {
      case 'ready':
        return this.model ? { at: 'ready', source: 'ollama', model } : (this.#trouble ?? STARTING);
      case 'starting':
      case 'pulling':
        return STARTING;
      case 'off':
        return failed('Ollama is off.', 'Turn Ollama on with: helmdeck-memory embeddings on');
      case 'asleep':
      case 'unapproved':
      case 'no_model':
        return failed('Ollama is not ready.', state.remedy);
      case 'failed':
        return {
          ...failed(state.why, state.remedy),
          ...(state.retry_at !== undefined && { retry_at: state.retry_at }),
        };
    }
  }

  async embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]> {
    const { state } = this;
    if (state.at === 'failed') throw unavailable(state);
    if (!this.model) throw unavailable({ why: 'Ollama is starting.', remedy: 'Try again in a moment.' }, 2);
    return this.#queue.add(texts, options);
  }

  /** Forgets the waiting texts. Ollama frees its memory by itself after five minutes. */
  release(): void {
    this.#queue.rejectAll(released());
    this.#cancel.abort(released());
    this.#cancel = new AbortController();
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
    this.#retry?.[Symbol.dispose]();
    this.#ended.abort(released());
    this.release();
  }

  async #embed(job: Job): Promise<void> {
    const { model } = this;
    try {
      if (!model) throw meaningOff();
      const { vectors } = await this.#sidecar.embed(SUBJECT, [job.text], this.#cancel.signal);
      const [vector = []] = vectors;
      // The model was replaced while the text was embedded.
      if (vector.length !== model.dimensions || this.model?.id !== model.id) throw released();
      job.resolve(unitLength(vector));
    } catch (error) {
      job.reject(asFailure(error));
    }
  }

  /** Learns which model Ollama serves, each time that it becomes ready. */
  #identify(): void {
    const { state } = this.#sidecar;
    const had = this.#model;
    this.#retry?.[Symbol.dispose]();
    this.#model = undefined;
    this.#trouble = undefined;
    this.#identified = state;
    if (had) this.#onChange();
    if (state.at !== 'ready') return;
    void this.#modelOf(state.model).then(
      (model) => {
        if (this.#identified !== state) return;
        if (model.dimensions <= MAX_DIMENSIONS) this.#model = model;
        else this.#trouble = TOO_LONG;
        this.#onChange();
      },
      () => {
        // If the state of Ollama has changed, it has the reason, and its next change tries again.
        if (this.#identified !== state || this.#ended.signal.aborted) return;
        this.#retry = this.#clock.after(RETRY_MS, () => this.#identify());
      },
    );
  }

  /** The digest changes when the owner downloads another version of the model, whose vectors cannot be compared. */
  async #modelOf(name: string): Promise<EmbeddingModel> {
    const dimensions = knownModel(name)?.dimensions ?? (await this.#measure());
    const digest = this.#sidecar.digest?.replace(/^sha256:/, '').slice(0, DIGEST_LENGTH);
    return { id: ['ollama', name, ...(digest === undefined ? [] : [digest]), dimensions].join(':'), dimensions };
  }

  async #measure(): Promise<number> {
    const { vectors } = await this.#sidecar.embed(SUBJECT, ['dimensions'], this.#ended.signal);
    return vectors[0]?.length ?? 0;
  }
}

const DIGEST_LENGTH = 16;
const STARTING: MeaningState = { at: 'starting', source: 'ollama' };

const failed = (why: string, remedy: string) => ({ at: 'failed', source: 'ollama', trouble: 'ollama', why, remedy }) as const;

const TOO_LONG = failed(
  `The vectors of the model in Ollama have more than ${MAX_DIMENSIONS} numbers.`,
  'Choose another model with the setting HELMDECK_EMBEDDINGS_MODEL, or the bundled model: helmdeck-memory meaning on',
);

function unitLength(vector: readonly number[]): Float32Array {
  const length = Math.hypot(...vector);
  return Float32Array.from(vector, (value) => (length === 0 ? 0 : value / length));
}
