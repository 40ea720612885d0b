import type { Clock } from '../../core/time/clock.ts';
import { embeddingAbandoned, embeddingTimedOut } from './states.ts';

interface Limit extends Disposable {
  /** Aborted with the failure that says why. */
  readonly signal: AbortSignal;
}

/** How long a question is worked on: until its time is over, or whoever asked gives up. */
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
