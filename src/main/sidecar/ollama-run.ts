import type { Clock } from '../../core/time/clock.ts';
import { LogTail } from './log-tail.ts';
import type { OllamaClient } from './ollama-client.ts';
import type { OllamaProcess } from './ollama-process.ts';

/** One Ollama run, from start to end. Only its log outlives it. */
export class OllamaRun {
  readonly log: LogTail;
  /** Set once requests may be sent. */
  client: OllamaClient | undefined;
  version: string | undefined;
  healthySince: number | undefined;
  /** Consecutive failed responses. */
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

  /** Aborted when this run ends or the caller cancels. */
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

  /** Resolves once no download is running. */
  async cancelPull(): Promise<void> {
    const pull = this.#pull;
    pull?.cancel.abort();
    await pull?.ended.promise;
  }

  /** Waits for a cancelled download to end. Returns immediately if there is none. */
  async awaitCancelledPull(): Promise<void> {
    if (this.#pull?.cancel.signal.aborted) await this.#pull.ended.promise;
  }

  /** Resolves once all its processes have exited. */
  async end(): Promise<void> {
    this.#over.abort();
    await this.#child?.stop();
  }
}
