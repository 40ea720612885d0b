import type { StoreContext } from './store-context.ts';
import type { Vault } from './store.ts';

/** Marks the vault's texts among the secrets of the database. */
export const VAULT_PREFIX = 'vault ';
/** Names in the vault. By these a restore decides which state of the replaced memory to keep. */
export const SIGNING_SECRET = 'signing secret';
export const TOKEN_RECORD = 'token ';
/** Separate from the token record, so that a start finds paused tokens by name, without the key. */
export const PAUSED_TOKEN = 'paused token ';
export const CREDENTIAL = 'credential ';

/** Sorts after all names with the prefix. */
const AFTER = 'vault!';

/** How the vault reads and writes. The unopened variants need no key. */
interface Access {
  write<T>(job: () => T): Promise<T>;
  writeUnopened<T>(job: () => T): Promise<T>;
  read<T>(query: () => T): Promise<T>;
  readUnopened<T>(query: () => T): Promise<T>;
}

/** Texts, sealed like the secrets of the database, and the ids of revoked tokens, which are not sealed. */
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

  /** A time that is not in doubt. By a wrong clock revoked tokens would be accepted again. */
  #now(): number {
    const { time } = this.#context;
    return Math.min(time.now(), time.trusted());
  }
}
