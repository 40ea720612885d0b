import { EMBEDDING } from '../../contract/limits.ts';
import type { Clock } from '../../core/time/clock.ts';
import { embeddingAbandoned, embeddingTimedOut } from './states.ts';

const SECOND = 1000;

/** In milliseconds. */
export interface SidecarTimeouts {
  /** From start until it listens on its port. */
  readonly ready: number;
  /** For quick checks. */
  readonly check: number;
  /** For one batch of a request. */
  readonly embed: number;
  readonly request: number;
  /** For a download without progress. */
  readonly pullIdle: number;
  /** From the stop request until it is killed. */
  readonly stopGrace: number;
  /** Delays before restarts; the last one repeats. At most 5 restarts in 10 minutes. */
  readonly retryDelays: readonly number[];
  /** After running this long, earlier failures no longer count. */
  readonly resetFailuresAfter: number;
}

export const SIDECAR_TIMEOUTS: SidecarTimeouts = {
  ready: 20 * SECOND,
  check: 5 * SECOND,
  embed: EMBEDDING.batchTimeout * SECOND,
  request: EMBEDDING.requestTimeout * SECOND,
  pullIdle: 60 * SECOND,
  stopGrace: 3 * SECOND,
  retryDelays: [1, 5, 30, 120, 300].map((seconds) => seconds * SECOND),
  resetFailuresAfter: 600 * SECOND,
};

interface Limit extends Disposable {
  /** Aborted with the failure to report. */
  readonly signal: AbortSignal;
}

/** Limits how long a request is processed. Also aborts when the caller cancels. */
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
