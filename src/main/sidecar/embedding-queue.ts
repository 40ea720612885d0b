import { Failure } from '../../contract/failure.ts';
import { EMBEDDING } from '../../contract/limits.ts';

/** Those of one subject that wait, in their order. */
type Waiting = Set<() => void>;

/**
 * One step at a time: Ollama does the work of the machine, and more at once would be no faster. Subjects take turns after each
 * step, so a long question holds nobody up for longer than one of its steps takes.
 */
export class EmbeddingQueue {
  readonly #questions = new Map<string, number>();
  #all = 0;
  /** The next one first. */
  readonly #waiting = new Map<string, Waiting>();
  #taken = false;

  /** A place for a question, until it is answered. */
  reserve(subject: string): Disposable {
    const own = this.#questions.get(subject) ?? 0;
    if (own >= EMBEDDING.queuedPerSubject || this.#all >= EMBEDDING.queued) {
      throw new Failure('rate_limited', 'Too many texts wait to be embedded; try again in a second.', { retryAfter: 1 });
    }
    this.#questions.set(subject, own + 1);
    this.#all += 1;
    return {
      [Symbol.dispose]: () => {
        this.#all -= 1;
        const left = (this.#questions.get(subject) ?? 1) - 1;
        if (left === 0) this.#questions.delete(subject);
        else this.#questions.set(subject, left);
      },
    };
  }

  /** Rejects with the signal's reason when that comes first. */
  async runInTurn<T>(subject: string, signal: AbortSignal, step: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#taken) await this.#turn(subject, signal);
    this.#taken = true;
    try {
      return await step();
    } finally {
      this.#next();
    }
  }

  #turn(subject: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = this.#waiting.get(subject) ?? new Set();
    this.#waiting.set(subject, waiting.add(resolve));
    const leave = (): void => {
      // Whose turn it is already takes it.
      if (waiting.delete(resolve)) reject(signal.reason as Error);
    };
    signal.addEventListener('abort', leave, { once: true });
    return promise.finally(() => signal.removeEventListener('abort', leave));
  }

  #next(): void {
    for (const [subject, waiting] of this.#waiting) {
      this.#waiting.delete(subject);
      const [come] = waiting;
      if (!come) continue;
      waiting.delete(come);
      if (waiting.size > 0) this.#waiting.set(subject, waiting);
      come();
      return;
    }
    this.#taken = false;
  }
}
