import type { RequestId } from '@modelcontextprotocol/sdk/types.js';
import type { CallContext } from '../../core/operations/call-context.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { Session } from './session.ts';

/** One call is told of no more often. */
const PAUSE_MS = 100;
const MOST_CHARACTERS = 500;

interface Called {
  readonly session: Session;
  /** Of the request, as the session numbers it. */
  readonly number: RequestId;
  readonly token: string | number | undefined;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** A call as a pack sees it: whoever asked with a progress token hears how far it is (R-PACK-27). */
export function callContextOf({ session, number, token, signal, clock }: Called): CallContext {
  // Many may be under way at once, over as many connections.
  const asker = signal;
  if (token === undefined) return { requester: asker, signal };
  let furthest = -Infinity;
  let toldAt = -Infinity;
  return {
    requester: asker,
    signal,
    progress(done, of, saying) {
      const now = clock.steady();
      // The protocol wants each to be more than the one before, and JSON has no other numbers.
      if (!Number.isFinite(done) || done <= furthest || now - toldAt < PAUSE_MS) return;
      furthest = done;
      toldAt = now;
      session.sendProgress(Number(number), {
        progressToken: token,
        progress: done,
        ...(of !== undefined && Number.isFinite(of) && { total: of }),
        ...(saying !== undefined && { message: saying.slice(0, MOST_CHARACTERS).toWellFormed() }),
      });
    },
  };
}
