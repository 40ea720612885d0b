import { Failure } from '../../contract/failure.ts';
import type { ConsentEffect, OperationInput, OperationName } from '../../contract/operations.ts';
import type { Caller } from '../access/caller.ts';

export interface CallContext {
  /**
   * Identifies the sender. Calls on one connection pass the same object; concurrent calls pass different objects. The program's
   * own calls pass none.
   */
  readonly requester?: object;
  /** Aborted when the caller cancels. */
  readonly signal?: AbortSignal;
  progress?(done: number, of?: number, saying?: string): void;
  /**
   * Asks the owner before an effect that needs their consent. Every nested call must pass this function on; otherwise a hostile
   * page could avoid the question by calling through a pack. Absent for agents, because the scopes of their token decide what
   * they can do.
   */
  readonly consent?: Consent;
  /** True if the owner accepted a write that was held. The write was counted for the write limit when it was held. */
  readonly isAccepted?: true;
  /** The id of the pipeline run that makes this call, if any. */
  readonly pipelineRun?: string;
}

/** An operation that waits for the owner's consent, with its parsed input. */
export type ConsentRequest = {
  readonly [Name in OperationName]: {
    readonly caller: Caller;
    readonly name: Name;
    readonly input: OperationInput<Name>;
    readonly effect: ConsentEffect;
  };
}[OperationName];

type Consent = (request: ConsentRequest) => Promise<boolean>;

/** Throws unless the owner agrees. If the caller cancels while the question is open, a later answer has no effect. */
export async function askConsent({ consent, signal }: CallContext, request: ConsentRequest): Promise<void> {
  if (consent === undefined) return;
  const agreed = await orAborted(signal, consent(request)).catch((error: unknown) => {
    if (!signal?.aborted || error instanceof Failure) throw error;
    throw new Failure('cancelled', 'The request was cancelled before you agreed, so nothing was done.', { cause: error });
  });
  if (!agreed) throw new Failure('declined', 'You did not agree, so nothing was done.');
}

/**
 * Settles as `work` does, or rejects as soon as the signal is aborted. It therefore does not wait for work that ignores the
 * signal.
 */
export function orAborted<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (!signal) return work;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const abort = (): void => reject(signal.reason as Error);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  return promise;
}
