import { asFailure } from '../../contract/failure.ts';
import type { ListeningState } from '../../contract/status.ts';
import type { Listener } from '../../listeners/listener.ts';

/** Starts and stops the server. A port conflict is a state that the owner can fix, not a fatal error. */
export class ListenerSwitch implements AsyncDisposable {
  readonly #start: () => Promise<Listener>;
  readonly #hear: (state: ListeningState) => void;
  #listener: Listener | undefined;
  #state: ListeningState = { at: 'paused' };
  #turn: Promise<void> = Promise.resolve();

  constructor(start: () => Promise<Listener>, hear: (state: ListeningState) => void = () => undefined) {
    this.#start = start;
    this.#hear = hear;
  }

  get state(): ListeningState {
    return this.#state;
  }

  get listener(): Listener | undefined {
    return this.#listener;
  }

  /** Starts accepting connections. On failure, both the state and the thrown error say why. */
  resume(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#listener) return;
      try {
        this.#listener = await this.#start();
        this.#become({ at: 'listening', url: this.#listener.url });
      } catch (error) {
        this.#become({ at: 'failed', why: asFailure(error).message });
        throw error;
      }
    });
  }

  /** Stops accepting connections. */
  pause(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#listener?.close();
      this.#listener = undefined;
      this.#become({ at: 'paused' });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#inTurn(async () => {
      await this.#listener?.close();
      this.#listener = undefined;
    });
  }

  #become(state: ListeningState): void {
    this.#state = state;
    this.#hear(state);
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(step);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }
}
