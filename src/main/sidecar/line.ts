import { Failure } from '../../contract/failure.ts';
import { EMBEDDING } from '../../contract/limits.ts';

/** One question at a time, in their order: Ollama does the work of the machine, and more at once would be no faster. */
export class Line {
  readonly #waiting = new Map<string, number>();
  #all = 0;
  #last: Promise<unknown> = Promise.resolve();

  async inTurn<T>(subject: string, ask: () => Promise<T>): Promise<T> {
    const own = this.#waiting.get(subject) ?? 0;
    if (own >= EMBEDDING.waitingOfOne || this.#all >= EMBEDDING.waiting) {
      throw new Failure('rate_limited', 'Too many texts wait to be embedded; try again in a second.', { retryAfter: 1 });
    }
    this.#waiting.set(subject, own + 1);
    this.#all += 1;
    const turn = this.#last.then(ask);
    this.#last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.#all -= 1;
      const left = (this.#waiting.get(subject) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(subject);
      else this.#waiting.set(subject, left);
    }
  }
}
