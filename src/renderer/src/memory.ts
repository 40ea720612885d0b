import { Failure } from '../../contract/failure.ts';
import type { OperationName, Output, Request } from '../../contract/operations.ts';
import type { Bridge, Client } from '../../contract/window.ts';

/** One subject's memory through the bridge; a failure is thrown with its code. */
export const clientOf =
  (bridge: Bridge, subject: string): Client =>
  async <Name extends OperationName>(name: Name, input: Request<Name>, signal?: AbortSignal): Promise<Output<Name>> => {
    const crossed = await bridge.call(subject, name, input, signal);
    if (!crossed.ok) throw new Failure(crossed.code, crossed.message);
    // What answers has the same table of operations.
    return crossed.value as Output<Name>;
  };
