import { asFailure } from '../../contract/failure.ts';
import type { ListeningState } from '../../contract/status.ts';
import type { Listener } from '../../listeners/listener.ts';

/** Starts and stops the server. A port conflict is a state that the owner can fix, not a fatal error. */
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

  /** Starts accepting connections. On failure, both the state and the thrown error say why. */
  resume(): Promise<void> {
    return this.#enqueue(async () => {
      if (this.#listener) return;
      try {
        this.#listener = await this.#start();
        this.#setState({ at: 'listening', url: this.#listener.url });
      } catch (error) {
        this.#setState({ at: 'failed', why: asFailure(error).message });
        throw error;
      }
    });
  }

  /** Stops accepting connections. */
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

  /** Runs the steps one after another. */
  #enqueue(step: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(step);
    this.#queue = done.catch(() => undefined);
    return done;
  }
}
