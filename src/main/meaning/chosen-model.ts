import type { MeaningChoice, MeaningState } from '../../contract/status.ts';
import type { EmbeddingModel, EmbedOptions } from '../../core/meaning/embedder.ts';
import type { MeaningModel } from '../../core/operations/meaning-port.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { LazySidecar } from '../sidecar/lazy-sidecar.ts';
import { BundledEmbedder } from './bundled-embedder.ts';
import { findModel } from './bundled-model.ts';
import type { EmbeddingSource } from './embedding-source.ts';
import { meaningOff } from './model-failure.ts';
import type { LaunchModel, ModelFiles } from './model-messages.ts';
import { OllamaEmbedder } from './ollama-embedder.ts';

interface Options {
  readonly clock: Clock;
  readonly sidecar: LazySidecar;
  readonly launch: LaunchModel;
  /** The setting. Undefined means the bundled model if it is installed. */
  readonly choice: MeaningChoice | undefined;
  /** The files of the bundled model. Set only by tests. */
  readonly files?: () => ModelFiles | undefined;
}

/** The model that the owner chose for search by meaning. */
export class ChosenModel implements MeaningModel, Disposable {
  readonly #options: Options;
  readonly #listeners = new Set<() => void>();
  #choice: MeaningChoice;
  #source: EmbeddingSource | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#choice = options.choice ?? this.#usual;
    this.#source = this.#open();
  }

  get choice(): MeaningChoice {
    return this.#choice;
  }

  get state(): MeaningState {
    return this.#source?.state ?? { at: 'off' };
  }

  get installed(): boolean {
    return this.#files() !== undefined;
  }

  get model(): EmbeddingModel | undefined {
    return this.#source?.model;
  }

  /** Undefined restores the default. */
  choose(choice: MeaningChoice | undefined): void {
    this.#source?.[Symbol.dispose]();
    this.#choice = choice ?? this.#usual;
    this.#source = this.#open();
    this.#changed();
  }

  async embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]> {
    if (!this.#source) throw meaningOff();
    return this.#source.embed(texts, options);
  }

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  release(): void {
    this.#source?.release();
  }

  [Symbol.dispose](): void {
    this.#listeners.clear();
    this.#source?.[Symbol.dispose]();
  }

  get #usual(): MeaningChoice {
    return this.installed ? 'bundled' : 'off';
  }

  #files(): ModelFiles | undefined {
    return (this.#options.files ?? findModel)();
  }

  #open(): EmbeddingSource | undefined {
    const { clock, launch, sidecar } = this.#options;
    const onChange = (): void => this.#changed();
    if (this.#choice === 'off') return undefined;
    if (this.#choice === 'ollama') return new OllamaEmbedder(sidecar, clock, onChange);
    return new BundledEmbedder({ clock, launch, files: this.#files(), onChange });
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
