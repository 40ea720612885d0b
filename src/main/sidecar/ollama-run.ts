import type { Clock } from '../../core/time/clock.ts';
import { LogTail } from './log-tail.ts';
import type { OllamaClient } from './ollama-client.ts';
import type { OllamaProcess } from './ollama-process.ts';

/** One try with an Ollama, from its start to its end. What outlives it is only the end of what it said. */
export class OllamaRun {
  readonly log: LogTail;
  /** Present once it may be asked. */
  client: OllamaClient | undefined;
  version: string | undefined;
  healthySince: number | undefined;
  /** Answers in a row that were failures of its own. */
  failedResponses = 0;
  logFlooded = false;
  readonly #over = new AbortController();
  #child: OllamaProcess | undefined;
  #pull: { cancel: AbortController; ended: PromiseWithResolvers<void> } | undefined;

  constructor(clock: Clock, before?: LogTail) {
    this.log = before ?? new LogTail(() => clock.steady());
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  readLog(chunk: Buffer): boolean {
    const within = this.log.append(chunk);
    if (!within) this.logFlooded = true;
    return within;
  }

  attach(child: OllamaProcess): void {
    this.#child = child;
  }

  /** Aborted with this life, or by whoever asked. */
  withSignal(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([this.signal, signal]);
  }

  beginPull(): AbortSignal {
    const pull = { cancel: new AbortController(), ended: Promise.withResolvers<void>() };
    this.#pull = pull;
    return AbortSignal.any([this.signal, pull.cancel.signal]);
  }

  endPull(): void {
    this.#pull?.ended.resolve();
    this.#pull = undefined;
  }

  /** Fulfils when nothing is fetched any more. */
  async cancelPull(): Promise<void> {
    const pull = this.#pull;
    pull?.cancel.abort();
    await pull?.ended.promise;
  }

  /** Fulfils at once, unless a fetch that was cancelled has not ended yet. */
  async awaitCancelledPull(): Promise<void> {
    if (this.#pull?.cancel.signal.aborted) await this.#pull.ended.promise;
  }

  /** Fulfils when nothing of it is left. */
  async end(): Promise<void> {
    this.#over.abort();
    await this.#child?.stop();
  }
}
