import { Failure } from '../../contract/failure.ts';
import { EGRESS } from '../../contract/limits.ts';
import type { Clock } from '../../core/time/clock.ts';

export interface EgressTimeouts extends Disposable {
  /** Aborted after a timeout, or when the caller cancels. The reason of the signal is the error to report. */
  readonly signal: AbortSignal;
  resetIdle(): void;
}

/** Starts the total timeout and the idle timeout of a request. */
export function createTimeouts(host: string, clock: Clock, callerSignal: AbortSignal): EgressTimeouts {
  const controller = new AbortController();
  const abort = (): void => controller.abort(callerSignal.reason);
  const tooLong = (seconds: number, what: string) => (): void =>
    controller.abort(new Failure('timeout', `${host} ${what} ${seconds} seconds; try again later.`));
  callerSignal.addEventListener('abort', abort, { once: true });
  const total = clock.after(EGRESS.timeout * 1000, tooLong(EGRESS.timeout, 'took longer than'));
  const startIdle = (): Disposable => clock.after(EGRESS.idleTimeout * 1000, tooLong(EGRESS.idleTimeout, 'sent no data for'));
  let idle = startIdle();
  return {
    signal: controller.signal,
    resetIdle() {
      idle[Symbol.dispose]();
      idle = startIdle();
    },
    [Symbol.dispose]() {
      callerSignal.removeEventListener('abort', abort);
      total[Symbol.dispose]();
      idle[Symbol.dispose]();
    },
  };
}
