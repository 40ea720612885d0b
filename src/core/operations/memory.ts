import type { Input, OperationName, Output } from '../../contract/operations.ts';
import type { Caller } from '../caller.ts';
import type { Finder } from '../finder.ts';
import type { MemoryStore } from '../store.ts';
import type { Tokens } from '../tokens.ts';

/** Exactly what the table of operations says can be asked; the compiler compares. */
export type Memory = { readonly [Name in OperationName]: (caller: Caller, input: Input<Name>) => Promise<Output<Name>> };

/** What the use cases need. */
export interface MemoryDeps {
  readonly store: MemoryStore;
  readonly tokens: Tokens;
  readonly finder: Finder;
  /** What happens to a value that looks like a credential. */
  readonly secrets: 'refuse' | 'warn';
}
