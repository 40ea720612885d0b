import type { EmbedOptions } from '../../core/meaning/embedder.ts';

/** One text that waits for its vector. */
export interface Job {
  readonly text: string;
  /** True after the call has ended, for example because it was cancelled. The text must not be sent to the model again. */
  isOver: boolean;
  resolve(vector: Float32Array): void;
  reject(error: unknown): void;
}

/** After this number of urgent texts in a row, one other text goes first, so that many questions do not stop the embedding of facts. */
const URGENT_IN_A_ROW = 8;

/**
 * The texts that wait for the model. Urgent texts come first. The other calls take turns after every text, so that a call with
 * many texts delays another call by one text only.
 */
export class TextQueue {
  readonly #urgent = new Set<Job[]>();
  readonly #background = new Set<Job[]>();
  readonly #embed: (job: Job) => Promise<void>;
  readonly #onIdle: () => void;
  #working = false;
  #urgentInARow = 0;

  /** `embed` settles one text and never rejects. `onIdle` is called when no text is left. */
  constructor(embed: (job: Job) => Promise<void>, onIdle: () => void = () => undefined) {
    this.#embed = embed;
    this.#onIdle = onIdle;
  }

  /** Adds the texts of one call. The promise resolves when all texts have vectors, and rejects when one of them fails. */
  add(texts: readonly string[], { urgent, signal }: EmbedOptions): Promise<readonly Float32Array[]> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const calls = urgent ? this.#urgent : this.#background;
    const jobs: Job[] = [];
    const vectors = texts.map((text) => {
      const { promise, resolve, reject } = Promise.withResolvers<Float32Array>();
      jobs.push({ text, isOver: false, resolve, reject });
      return promise;
    });
    if (jobs.length === 0) return Promise.resolve([]);
    const all = [...jobs];
    calls.add(jobs);
    void this.#work();
    const stopped = Promise.withResolvers<never>();
    const abort = (): void => stopped.reject(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    return Promise.race([Promise.all(vectors), stopped.promise]).finally(() => {
      signal?.removeEventListener('abort', abort);
      // Drop the texts that are left of a call that was cancelled or has failed.
      for (const job of all) job.isOver = true;
      jobs.length = 0;
      calls.delete(jobs);
    });
  }

  /** Puts a text back, as the next text, unless its call has ended. */
  retry(job: Job): void {
    if (job.isOver) return;
    const waiting = [...this.#urgent];
    this.#urgent.clear();
    for (const jobs of [[job], ...waiting]) this.#urgent.add(jobs);
  }

  rejectAll(error: Error): void {
    for (const calls of [this.#urgent, this.#background]) {
      for (const jobs of calls) for (const job of jobs) job.reject(error);
      calls.clear();
    }
  }

  async #work(): Promise<void> {
    if (this.#working) return;
    this.#working = true;
    for (let job = this.#next(); job; job = this.#next()) await this.#embed(job);
    this.#working = false;
    this.#onIdle();
  }

  #next(): Job | undefined {
    const urgent = this.#urgentInARow < URGENT_IN_A_ROW ? nextOf(this.#urgent) : undefined;
    this.#urgentInARow = urgent ? this.#urgentInARow + 1 : 0;
    return urgent ?? nextOf(this.#background) ?? nextOf(this.#urgent);
  }
}

/** Takes the next text of the call that waits longest. */
function nextOf(calls: Set<Job[]>): Job | undefined {
  for (const jobs of calls) {
    const job = jobs.shift();
    if (!job) continue;
    calls.delete(jobs);
    if (jobs.length > 0) calls.add(jobs);
    return job;
  }
  return undefined;
}
