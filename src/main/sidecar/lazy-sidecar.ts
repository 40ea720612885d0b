import type { EmbeddingsReport, SetEmbeddingsInput } from '../../contract/embeddings.ts';
import type { SidecarState } from '../../contract/status.ts';
import type { Embeddings, Vectors } from '../../core/operations/embeddings-port.ts';
import { readChoice } from './choice.ts';
import type { SidecarOptions, Sidecar } from './sidecar.ts';
import { ASLEEP, OFF } from './states.ts';

/** Loads the sidecar on first use, or at startup if embeddings are on. If embeddings are off, startup is not delayed. */
export class LazySidecar implements Embeddings, AsyncDisposable {
  readonly #options: SidecarOptions;
  readonly #isOn: boolean;
  #loading: Promise<Sidecar> | undefined;
  #sidecar: Sidecar | undefined;
  #awake = false;
  readonly #listeners = new Set<() => void>();

  constructor(options: SidecarOptions) {
    const onStateChange = (state: SidecarState): void => {
      options.onStateChange?.(state);
      for (const listener of this.#listeners) listener();
    };
    this.#options = { ...options, onStateChange };
    this.#isOn = readChoice(options.folder).on;
  }

  get state(): SidecarState {
    return this.#sidecar?.state ?? (this.#isOn ? ASLEEP : OFF);
  }

  get model(): string {
    return this.#options.settings.model;
  }

  /** Digest of the model that Ollama serves. Undefined if it is unknown. */
  get digest(): string | undefined {
    return this.#sidecar?.digest;
  }

  /** Calls the listener after each change of the state. */
  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Called after startup. Only from then on is the sidecar allowed to start Ollama. */
  async wake(): Promise<void> {
    this.#awake = true;
    if (this.#sidecar) this.#sidecar.wake();
    else if (this.#isOn) await this.#loaded();
  }

  async report(): Promise<EmbeddingsReport> {
    return (await this.#loaded()).report();
  }

  async configure(choice: SetEmbeddingsInput): Promise<void> {
    await (await this.#loaded()).configure(choice);
  }

  async approve(sha256: string): Promise<void> {
    await (await this.#loaded()).approve(sha256);
  }

  async pull(): Promise<void> {
    await (await this.#loaded()).pull();
  }

  async cancelPull(): Promise<void> {
    await (await this.#loaded()).cancelPull();
  }

  async embed(subject: string, texts: readonly string[], signal?: AbortSignal): Promise<Vectors> {
    return (await this.#loaded()).embed(subject, texts, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#awake = false;
    await (await this.#loading)?.[Symbol.asyncDispose]();
  }

  #loaded(): Promise<Sidecar> {
    return (this.#loading ??= this.#load());
  }

  async #load(): Promise<Sidecar> {
    const { Sidecar } = await import('./sidecar.ts');
    this.#sidecar = new Sidecar(this.#options);
    if (this.#awake) this.#sidecar.wake();
    return this.#sidecar;
  }
}
