import { Failure } from '../../contract/failure.ts';
import { EMBEDDING } from '../../contract/limits.ts';

/** Functions that start the waiting steps of one subject, in order of arrival. */
type WaitingSteps = Set<() => void>;

/**
 * Runs one step at a time, because Ollama uses the whole machine and parallel steps would not be faster. Subjects take turns
 * after each step, so that a long request delays other subjects by one step at most.
 */
export class EmbeddingQueue {
  readonly #requests = new Map<string, number>();
  #all = 0;
  /** WaitingSteps steps by subject. The subject whose turn is next is first. */
  readonly #waiting = new Map<string, WaitingSteps>();
  #busy = false;

  /** Reserves a place in the queue until the returned object is disposed. Throws if the queue is full. */
  reserve(subject: string): Disposable {
    const own = this.#requests.get(subject) ?? 0;
    if (own >= EMBEDDING.queuedPerSubject || this.#all >= EMBEDDING.queued) {
      throw new Failure('rate_limited', 'Too many requests for embeddings are waiting; try again in a second.', {
        retryAfter: 1,
      });
    }
    this.#requests.set(subject, own + 1);
    this.#all += 1;
    return {
      [Symbol.dispose]: () => {
        this.#all -= 1;
        const left = (this.#requests.get(subject) ?? 1) - 1;
        if (left === 0) this.#requests.delete(subject);
        else this.#requests.set(subject, left);
      },
    };
  }

  /** Runs a step when the subject's turn comes. If the signal is aborted before that, rejects with the signal's reason. */
  async runInTurn<T>(subject: string, signal: AbortSignal, step: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#busy) await this.#waitForTurn(subject, signal);
    this.#busy = true;
    try {
      return await step();
    } finally {
      this.#next();
    }
  }

  #waitForTurn(subject: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: WaitingSteps = this.#waiting.get(subject) ?? new Set();
    this.#waiting.set(subject, waiting.add(resolve));
    const leave = (): void => {
      // If the turn was already granted, ignore the abort and let the step run.
      if (waiting.delete(resolve)) reject(signal.reason as Error);
    };
    signal.addEventListener('abort', leave, { once: true });
    return promise.finally(() => signal.removeEventListener('abort', leave));
  }

  #next(): void {
    for (const [subject, waiting] of this.#waiting) {
      this.#waiting.delete(subject);
      const [grant] = waiting;
      if (!grant) continue;
      waiting.delete(grant);
      if (waiting.size > 0) this.#waiting.set(subject, waiting);
      grant();
      return;
    }
    this.#busy = false;
  }
}
