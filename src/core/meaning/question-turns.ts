/** Maximum questions of one subject that are at the model at the same time. With two, the model never waits for the next one. */
const AT_THE_MODEL = 2;
/** Maximum questions of one subject that wait. Words answer the others. */
const MAX_WAITING = 16;

interface Queue {
  running: number;
  readonly waiting: Set<(granted: boolean) => void>;
}

/** Limits the questions of each subject, so that a subject that asks many questions does not delay those of the others. */
export class QuestionTurns {
  readonly #queues = new Map<string, Queue>();

  /** Runs `ask` when it is its turn. Returns undefined if too many questions of the subject wait, or if the signal is aborted first. */
  async run<T>(subject: string, signal: AbortSignal, ask: () => Promise<T>): Promise<T | undefined> {
    if (signal.aborted) return undefined;
    const queue = this.#queueOf(subject);
    if (queue.running < AT_THE_MODEL) queue.running += 1;
    else if (queue.waiting.size >= MAX_WAITING || !(await turnIn(queue, signal))) return undefined;
    try {
      return await ask();
    } finally {
      const [next] = queue.waiting;
      if (next) {
        queue.waiting.delete(next);
        next(true);
      } else {
        queue.running -= 1;
        if (queue.running === 0) this.#queues.delete(subject);
      }
    }
  }

  #queueOf(subject: string): Queue {
    const known = this.#queues.get(subject);
    if (known) return known;
    const queue: Queue = { running: 0, waiting: new Set() };
    this.#queues.set(subject, queue);
    return queue;
  }
}

/** Waits until a question ends and hands its place over. Resolves to false if the signal is aborted first. */
async function turnIn({ waiting }: Queue, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  waiting.add(resolve);
  const leave = (): void => {
    if (waiting.delete(resolve)) resolve(false);
  };
  signal.addEventListener('abort', leave, { once: true });
  return promise.finally(() => signal.removeEventListener('abort', leave));
}
