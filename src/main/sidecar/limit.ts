import type { Clock } from '../../core/time/clock.ts';
import { embeddingAbandoned, embeddingTimedOut } from './states.ts';

interface Limit extends Disposable {
  /** Aborted with the failure to report. */
  readonly signal: AbortSignal;
}

/** Limits how long a request is processed. Also aborts when the caller cancels. */
export function requestTimeout(clock: Clock, ms: number, given: AbortSignal | undefined): Limit {
  const controller = new AbortController();
  const giveUp = (): void => controller.abort(embeddingAbandoned());
  if (given?.aborted) giveUp();
  else given?.addEventListener('abort', giveUp, { once: true });
  const timer = clock.after(ms, () => controller.abort(embeddingTimedOut(Math.round(ms / 1000))));
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      timer[Symbol.dispose]();
      given?.removeEventListener('abort', giveUp);
    },
  };
}
