import { Failure } from '../../contract/failure.ts';
import { EGRESS } from '../../contract/limits.ts';
import type { Clock } from '../../core/time/clock.ts';

/** How long is waited for one errand. */
export interface EgressTimeouts extends Disposable {
  /** Aborted with the failure that says why. */
  readonly signal: AbortSignal;
  /** Something came: silence begins anew. */
  resetIdle(): void;
}

/** At most so long in all, and so long without a sign of life; less when the caller gives up. */
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
