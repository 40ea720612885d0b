import type { StoreContext } from './store-context.ts';
import type { Vault } from './store.ts';

/** Prefix of the vault's names in the `meta` table, which also stores other secrets. */
export const VAULT_PREFIX = 'vault ';
/** Names of vault texts. A restore uses these names to decide which state of the replaced memory to keep. */
export const SIGNING_SECRET = 'signing secret';
export const TOKEN_RECORD = 'token ';
/**
 * Prefix of marks for paused tokens. The mark is separate from the encrypted token record, so that paused tokens can be found by
 * name at startup without the master key.
 */
export const PAUSED_TOKEN = 'paused token ';
export const CREDENTIAL = 'credential ';
/** The packs that each client is offered. */
export const OFFERED_PACKS = 'offered packs';
/** The clients for which facts from prompts are proposed. */
export const CAPTURE_CHOICES = 'capture choices';
/** When the hooks of each client last asked for a brief. */
export const HOOK_USE = 'hook use';

/** Upper bound of the vault's names: sorts after all names that begin with `VAULT_PREFIX`. */
const AFTER = 'vault!';

/** Functions with which the vault reads and writes. The `unopened` variants work without the master key. */
interface Access {
  write<T>(job: () => T): Promise<T>;
  writeUnopened<T>(job: () => T): Promise<T>;
  read<T>(query: () => T): Promise<T>;
  readUnopened<T>(query: () => T): Promise<T>;
}

/** Stores texts, encrypted like the other secrets of the database, and the ids of revoked tokens, which are not encrypted. */
export class SqliteVault implements Vault {
  readonly #context: Pick<StoreContext, 'connection' | 'keys' | 'time'>;
  readonly #access: Access;

  constructor(context: Pick<StoreContext, 'connection' | 'keys' | 'time'>, access: Access) {
    this.#context = context;
    this.#access = access;
  }

  read(name: string): Promise<string | undefined> {
    return this.#access.read(() => this.#context.keys.readSecret(VAULT_PREFIX + name)?.toString());
  }

  write(name: string, text: string): Promise<void> {
    return this.#access.write(() => this.#context.keys.saveSecret(VAULT_PREFIX + name, Buffer.from(text)));
  }

  update(name: string, change: (known: string | undefined) => string): Promise<string> {
    return this.#access.write(() => {
      const { keys } = this.#context;
      const known = keys.readSecret(VAULT_PREFIX + name)?.toString();
      const text = change(known);
      if (text !== known) keys.saveSecret(VAULT_PREFIX + name, Buffer.from(text));
      return text;
    });
  }

  delete(name: string): Promise<void> {
    return this.#access.writeUnopened(() => this.#context.keys.deleteSecret(VAULT_PREFIX + name));
  }

  names(): Promise<readonly string[]> {
    return this.#access.readUnopened(() => {
      const names = this.#context.connection.sql.metaNames.all(VAULT_PREFIX, AFTER) as string[];
      return names.map((name) => name.slice(VAULT_PREFIX.length));
    });
  }

  revokeToken(id: string, until: number): Promise<void> {
    return this.#access.writeUnopened(() => {
      const { sql } = this.#context.connection;
      sql.deleteOldRevocations.run(this.#now());
      sql.insertRevocation.run(id, until);
    });
  }

  revokedTokens(): Promise<readonly string[]> {
    return this.#access.readUnopened(() => this.#context.connection.sql.revokedTokens.all(this.#now()) as string[]);
  }

  /**
   * Returns the current time, but never a time that is in doubt. With a wrong clock, revoked tokens would seem expired, and
   * their revocations would be deleted.
   */
  #now(): number {
    const { time } = this.#context;
    return Math.min(time.now(), time.trusted());
  }
}
