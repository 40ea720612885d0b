import { EMBEDDING } from '../../contract/limits.ts';
import { SECOND_MS } from '../../contract/units.ts';
import type { Clock } from '../../core/time/clock.ts';
import { embeddingAbandoned, embeddingTimedOut } from './states.ts';

/** Time limits in milliseconds. */
export interface SidecarTimeouts {
  /** Time that Ollama has to start listening on its port. */
  readonly ready: number;
  /** Time limit of a request that only checks Ollama's version or models. */
  readonly check: number;
  /** Time limit for embedding one batch of a request's texts. */
  readonly embed: number;
  readonly request: number;
  /** Maximum time without progress during a download. */
  readonly pullIdle: number;
  /** Time between the signal to stop and the kill of the process. */
  readonly stopGrace: number;
  /** Delays before each restart. The last delay is repeated. Limits restarts to 5 in 10 minutes. */
  readonly retryDelays: readonly number[];
  /** If Ollama has run without failure for this time, earlier failures no longer lengthen the delay. */
  readonly resetFailuresAfter: number;
}

export const SIDECAR_TIMEOUTS: SidecarTimeouts = {
  ready: 20 * SECOND_MS,
  check: 5 * SECOND_MS,
  embed: EMBEDDING.batchTimeout * SECOND_MS,
  request: EMBEDDING.requestTimeout * SECOND_MS,
  pullIdle: 60 * SECOND_MS,
  stopGrace: 3 * SECOND_MS,
  retryDelays: [1, 5, 30, 120, 300].map((seconds) => seconds * SECOND_MS),
  resetFailuresAfter: 600 * SECOND_MS,
};

interface Limit extends Disposable {
  /** When this signal is aborted, its reason is the error to report. */
  readonly signal: AbortSignal;
}

/** Starts the time limit of a request. Its signal is also aborted when the caller cancels. */
export function requestTimeout(clock: Clock, ms: number, callerSignal: AbortSignal | undefined): Limit {
  const controller = new AbortController();
  const abort = (): void => controller.abort(embeddingAbandoned());
  if (callerSignal?.aborted) abort();
  else callerSignal?.addEventListener('abort', abort, { once: true });
  const timer = clock.after(ms, () => controller.abort(embeddingTimedOut(Math.round(ms / 1000))));
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      timer[Symbol.dispose]();
      callerSignal?.removeEventListener('abort', abort);
    },
  };
}
