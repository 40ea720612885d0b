import type { Clock } from '../../core/time/clock.ts';
import { LogTail } from './log-tail.ts';
import type { OllamaClient } from './ollama-client.ts';
import type { OllamaProcess } from './ollama-process.ts';

/** One run of Ollama, from its start to its end. The next run continues the same log. */
export class OllamaRun {
  readonly log: LogTail;
  /** Defined as soon as requests can be sent. */
  client: OllamaClient | undefined;
  version: string | undefined;
  healthySince: number | undefined;
  failedResponses = 0;
  logFlooded = false;
  readonly #ended = new AbortController();
  #child: OllamaProcess | undefined;
  #pull: { cancel: AbortController; ended: PromiseWithResolvers<void> } | undefined;

  constructor(clock: Clock, before?: LogTail) {
    this.log = before ?? new LogTail(() => clock.steady());
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  readLog(chunk: Buffer): boolean {
    const within = this.log.append(chunk);
    if (!within) this.logFlooded = true;
    return within;
  }

  attach(child: OllamaProcess): void {
    this.#child = child;
  }

  /** Returns a signal that is aborted when this run ends or the given signal is aborted. */
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

  /** Cancels the running download, if any. Resolves when the download has stopped. */
  async cancelPull(): Promise<void> {
    const pull = this.#pull;
    pull?.cancel.abort();
    await pull?.ended.promise;
  }

  /** Waits for a cancelled download to stop. Returns immediately if no download was cancelled. */
  async awaitCancelledPull(): Promise<void> {
    if (this.#pull?.cancel.signal.aborted) await this.#pull.ended.promise;
  }

  /** Ends the run. Resolves when all processes of the run have exited. */
  async end(): Promise<void> {
    this.#ended.abort();
    await this.#child?.stop();
  }
}
