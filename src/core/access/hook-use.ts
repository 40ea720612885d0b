import { DAY_MS } from '../../contract/units.ts';
import type { Vault } from '../store/store.ts';
import { HOOK_USE } from '../store/vault.ts';
import type { Caller } from './caller.ts';
import type { TokenRegistry } from './token-registry.ts';

/** After this time without a brief, the hooks of a client no longer count as working. */
const SPEAKS_MS = 7 * DAY_MS;
/** Minimum milliseconds between two stored uses of one token. */
const STORE_MS = DAY_MS;

interface Use {
  readonly token: string;
  readonly subject: string;
  readonly client: string;
  readonly at: number;
}

/**
 * Knows which clients have hooks that work, so that the same facts are not put before a model twice: by a hook and by the instructions
 * of the MCP server. A hook works if its token asked for a brief in the last seven days.
 */
export class HookUse {
  readonly #vault: Vault;
  readonly #tokens: Pick<TokenRegistry, 'isUsable'>;
  readonly #now: () => number;
  /** When the use of each token was last stored. */
  readonly #stored = new Map<string, number>();

  constructor(vault: Vault, tokens: Pick<TokenRegistry, 'isUsable'>, now: () => number) {
    this.#vault = vault;
    this.#tokens = tokens;
    this.#now = now;
  }

  /** Stores that the hook of a client asked for a brief, at most once a day. Errors are ignored; a later use tries again. */
  record({ token, subject, client }: Caller): void {
    const now = this.#now();
    // The absolute value also handles a clock that was set back.
    if (Math.abs(now - (this.#stored.get(token) ?? -Infinity)) < STORE_MS) return;
    this.#stored.set(token, now);
    const use: Use = { token, subject, client, at: now };
    this.#vault
      .update(HOOK_USE, (known) => JSON.stringify([...this.#recent(known).filter((other) => other.token !== token), use]))
      .catch(() => this.#stored.delete(token));
  }

  /** Whether hooks of this client tell its models what is worth knowing. */
  async speaksFor({ subject, client }: Caller): Promise<boolean> {
    const uses = this.#recent(await this.#vault.read(HOOK_USE));
    return uses.some((use) => use.subject === subject && use.client === client && this.#tokens.isUsable(use.token));
  }

  #recent(text: string | undefined): readonly Use[] {
    // This cast is safe, because decryption proves that this program wrote the text.
    const uses = text === undefined ? [] : (JSON.parse(text) as Use[]);
    return uses.filter(({ at }) => at > this.#now() - SPEAKS_MS);
  }
}
