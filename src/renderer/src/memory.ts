import { Failure } from '../../contract/failure.ts';
import type { OperationName, OperationOutput, OperationRequest } from '../../contract/operations.ts';
import type { Bridge, MemoryClient } from '../../contract/window.ts';

/** One subject's memory through the bridge; a failure is thrown with its code. */
export const clientOf =
  (bridge: Bridge, subject: string): MemoryClient =>
  async <Name extends OperationName>(
    name: Name,
    input: OperationRequest<Name>,
    signal?: AbortSignal,
  ): Promise<OperationOutput<Name>> => {
    const crossed = await bridge.call(subject, name, input, signal);
    if (!crossed.ok) throw new Failure(crossed.code, crossed.message);
    // What answers has the same table of operations.
    return crossed.value as OperationOutput<Name>;
  };
