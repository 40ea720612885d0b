import type { EmbeddingsReport, SetEmbeddingsInput } from '../../contract/embeddings.ts';
import { EMBEDDING } from '../../contract/limits.ts';
import type { SidecarState } from '../../contract/status.ts';
import { SECOND_MS } from '../../contract/units.ts';
import type { Embeddings, Vectors } from '../../core/operations/embeddings-port.ts';
import type { Clock } from '../../core/time/clock.ts';
import { EmbeddingQueue } from '../sidecar/embedding-queue.ts';
import type { LazySidecar } from '../sidecar/lazy-sidecar.ts';
import { requestTimeout } from '../sidecar/timeouts.ts';
import { BUNDLED_NAME } from './bundled-model.ts';
import type { ChosenModel } from './chosen-model.ts';

/** Serves `/v1/embeddings` with Ollama, or with the bundled model while Ollama is off (R-MEAN-28). */
export class ServedEmbeddings implements Embeddings {
  readonly #sidecar: LazySidecar;
  readonly #meaning: ChosenModel;
  readonly #clock: Clock;
  readonly #queue = new EmbeddingQueue();

  constructor(sidecar: LazySidecar, meaning: ChosenModel, clock: Clock) {
    this.#sidecar = sidecar;
    this.#meaning = meaning;
    this.#clock = clock;
  }

  get state(): SidecarState {
    return this.#isBundled && this.#meaning.model ? READY : this.#sidecar.state;
  }

  get model(): string {
    return this.#isBundled ? BUNDLED_NAME : this.#sidecar.model;
  }

  async report(): Promise<EmbeddingsReport> {
    const report = await this.#sidecar.report();
    return this.#isBundled ? { ...report, state: this.state, model: { name: this.model } } : report;
  }

  configure(choice: SetEmbeddingsInput): Promise<void> {
    return this.#sidecar.configure(choice);
  }

  approve(sha256: string): Promise<void> {
    return this.#sidecar.approve(sha256);
  }

  pull(): Promise<void> {
    return this.#sidecar.pull();
  }

  cancelPull(): Promise<void> {
    return this.#sidecar.cancelPull();
  }

  async embed(subject: string, texts: readonly string[], signal?: AbortSignal): Promise<Vectors> {
    if (!this.#isBundled) return this.#sidecar.embed(subject, texts, signal);
    using _place = this.#queue.reserve(subject);
    using limit = requestTimeout(this.#clock, EMBEDDING.requestTimeout * SECOND_MS, signal);
    const vectors: (readonly number[])[] = [];
    for (const text of texts) {
      const step = () => this.#meaning.embed([text], { urgent: false, signal: limit.signal });
      const [vector] = await this.#queue.runInTurn(subject, limit.signal, step);
      vectors.push(Array.from(vector ?? []));
    }
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    return { vectors, tokens: Math.ceil(characters / CHARACTERS_PER_TOKEN) };
  }

  get #isBundled(): boolean {
    return this.#sidecar.state.at === 'off' && this.#meaning.choice === 'bundled';
  }
}

const READY: SidecarState = { at: 'ready', model: BUNDLED_NAME, whose: 'bundled' };

/** The number of tokens is estimated, because the bundled model does not report it. */
const CHARACTERS_PER_TOKEN = 4;
