import type { Caller } from '../core/access/caller.ts';
import type { CallContext } from '../core/operations/call-context.ts';
import type { Perform } from '../core/operations/perform.ts';
import type { MemoryStore } from '../core/store/store.ts';

/** Tells when the key came or went, whoever asked for it: another surface than that one shows it. */
export class KeyWatch {
  readonly #store: Pick<MemoryStore, 'status'>;
  readonly #hearers = new Set<() => void>();
  #known: string;

  constructor(store: Pick<MemoryStore, 'status'>) {
    this.#store = store;
    this.#known = store.status().key.at;
  }

  onChange(hear: () => void): Disposable {
    this.#hearers.add(hear);
    return { [Symbol.dispose]: () => void this.#hearers.delete(hear) };
  }

  /** The same door. */
  watching(perform: Perform): Perform {
    return async (caller: Caller, name: string, input: unknown, during?: CallContext): Promise<never> => {
      try {
        return (await perform(caller, name, input, during)) as never;
      } finally {
        this.look();
      }
    };
  }

  look(): void {
    const { at } = this.#store.status().key;
    if (at === this.#known) return;
    this.#known = at;
    for (const hear of this.#hearers) hear();
  }
}
