import { asFailure } from '../contract/failure.ts';
import type { ListeningState } from '../contract/status.ts';
import type { Listener } from '../listeners/listener.ts';

/** The listener as its owner switches it: a port that is taken is a state with a remedy, and no end of the program. */
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

  /** Agents can come. Where they cannot, the state says why, and so does what is thrown. */
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

  /** Agents are turned away; what they stored stays. */
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
