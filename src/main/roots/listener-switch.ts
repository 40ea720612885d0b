import { asFailure } from '../../contract/failure.ts';
import type { ListeningState } from '../../contract/status.ts';
import type { Listener } from '../../listeners/listener.ts';

/**
 * Starts and stops the server. If the server cannot start, the program keeps running, so that the owner can fix a port conflict.
 */
export class ListenerSwitch implements AsyncDisposable {
  readonly #start: () => Promise<Listener>;
  readonly #onChange: (state: ListeningState) => void;
  #listener: Listener | undefined;
  #state: ListeningState = { at: 'paused' };
  #queue: Promise<void> = Promise.resolve();

  constructor(start: () => Promise<Listener>, onChange: (state: ListeningState) => void = () => undefined) {
    this.#start = start;
    this.#onChange = onChange;
  }

  get state(): ListeningState {
    return this.#state;
  }

  get listener(): Listener | undefined {
    return this.#listener;
  }

  /** Starts the server. If that fails, throws the error and sets the state to `failed` with the reason. */
  resume(): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#listener) return;
      try {
        this.#listener = await this.#start();
        const { url, serverUrl } = this.#listener;
        this.#setState({ at: 'listening', url, ...(serverUrl !== undefined && { server_url: serverUrl }) });
      } catch (error) {
        this.#setState({ at: 'failed', why: asFailure(error).message });
        throw error;
      }
    });
  }

  pause(): Promise<void> {
    return this.#enqueue(async () => {
      await this.#close();
      this.#setState({ at: 'paused' });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#enqueue(() => this.#close());
  }

  async #close(): Promise<void> {
    await this.#listener?.close();
    this.#listener = undefined;
  }

  #setState(state: ListeningState): void {
    this.#state = state;
    this.#onChange(state);
  }

  /** Runs `step` after all earlier steps are done. */
  #enqueue(step: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(step);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}
