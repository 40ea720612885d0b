import type { OperationName, Output, Request } from './operations.ts';
/** The same with types, for one memory. */
export type Client = <Name extends OperationName>(
  name: Name,
  input: Request<Name>,
  signal?: AbortSignal,
) => Promise<Output<Name>>;
