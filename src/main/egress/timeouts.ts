import { Failure } from '../../contract/failure.ts';
import { EGRESS } from '../../contract/limits.ts';
import type { Clock } from '../../core/time/clock.ts';

export interface EgressTimeouts extends Disposable {
  /** Aborted with the failure to report. */
  readonly signal: AbortSignal;
  /** Restarts the idle timeout. */
  resetIdle(): void;
}

/** Limits the total time and the idle time of a request. Also aborts when the caller cancels. */
export function createTimeouts(host: string, clock: Clock, given: AbortSignal): EgressTimeouts {
  const controller = new AbortController();
  const giveUp = (): void => controller.abort(given.reason);
  const tooLong = (seconds: number, what: string) => (): void =>
    controller.abort(new Failure('timeout', `${host} ${what} ${seconds} s; try again later.`));
  given.addEventListener('abort', giveUp, { once: true });
  const whole = clock.after(EGRESS.timeout * 1000, tooLong(EGRESS.timeout, 'took longer than'));
  const silent = (): Disposable => clock.after(EGRESS.idleTimeout * 1000, tooLong(EGRESS.idleTimeout, 'was silent for'));
  let silence = silent();
  return {
    signal: controller.signal,
    resetIdle() {
      silence[Symbol.dispose]();
      silence = silent();
    },
    [Symbol.dispose]() {
      given.removeEventListener('abort', giveUp);
      whole[Symbol.dispose]();
      silence[Symbol.dispose]();
    },
  };
}
