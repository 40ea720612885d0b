import type { PackOffer } from '../../contract/client.ts';
import { MEMORY_PACKS } from '../../contract/limits.ts';
import type { Vault } from '../store/store.ts';
import { OFFERED_PACKS } from '../store/vault.ts';
import type { Caller } from './caller.ts';

/** The packs that a client is offered, by name. Undefined means all packs, also packs that are added later. */
export type OfferedPacks = ReadonlySet<string> | undefined;

type Offers = ReadonlyMap<string, ReadonlySet<string>>;

/** Used while the owner's choices cannot be read, for example because the memory has been locked since startup. */
const NO_PACKS: ReadonlySet<string> = new Set();

/** Whether the caller's client is offered the pack. */
export const isOffered = ({ packs }: Caller, { name }: { readonly name: string }): boolean =>
  packs === undefined || packs.has(name) || MEMORY_PACKS.has(name);

/**
 * Stores which packs the owner offers to which client (R-CONN-14). All clients are stored in one encrypted text, because names of
 * clients must not be stored in plaintext. A client without an entry is offered all packs.
 */
export class PackOffers {
  readonly #vault: Vault;
  readonly #listeners = new Set<(client: string) => void>();
  #offers: Offers | undefined;
  /** Number of changes by this process. */
  #changes = 0;

  constructor(vault: Vault) {
    this.#vault = vault;
  }

  get isLoaded(): boolean {
    return this.#offers !== undefined;
  }

  /** Reads the choices unless they were read before. They may be unreadable, because the memory may be locked. */
  async prepare(): Promise<void> {
    if (!this.#offers) await this.reload();
  }

  /** Reads the choices again, because another process may have changed them. */
  async reload(): Promise<void> {
    const before = this.#changes;
    const offers = await this.#vault.read(OFFERED_PACKS).then(parse, () => undefined);
    // A change may have been stored during the read. It is newer.
    if (this.#changes === before) this.#offers = offers;
  }

  of(client: string): OfferedPacks {
    return this.#offers ? this.#offers.get(client) : NO_PACKS;
  }

  /**
   * Stores the owner's choice for one client. Calls must not overlap. The choices for other clients are read in the same transaction,
   * because another process may have changed them.
   */
  async change({ client, packs }: PackOffer): Promise<PackOffer> {
    const text = await this.#vault.update(OFFERED_PACKS, (known) => {
      const changed = new Map(parse(known));
      if (packs === 'all') changed.delete(client);
      else changed.set(client, new Set(packs));
      return JSON.stringify([...changed].map(([name, offered]) => [name, [...offered]]));
    });
    this.#changes += 1;
    this.#offers = parse(text);
    for (const callback of this.#listeners) callback(client);
    return { client, packs };
  }

  /** Calls `callback` with the client's name after each change of the packs that a client is offered. */
  onChange(callback: (client: string) => void): Disposable {
    const listener = (client: string): void => callback(client);
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }
}

function parse(text: string | undefined): Offers {
  // This cast is safe, because decryption proves that this program wrote the text.
  const stored = text === undefined ? [] : (JSON.parse(text) as [client: string, packs: string[]][]);
  return new Map(stored.map(([client, packs]) => [client, new Set(packs)]));
}
