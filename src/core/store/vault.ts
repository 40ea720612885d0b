import type { KeyKeeper } from '../crypto/key-keeper.ts';
import type { Connection } from './connection.ts';
import type { Vault } from './store.ts';

/** Marks the vault's texts among the secrets of the database. */
export const VAULT_PREFIX = 'vault ';
/** Names in the vault. A restore decides by them which state of the replaced memory survives. */
export const SIGNING_SECRET = 'signing secret';
export const TOKEN_RECORD = 'token ';
/** Beside the record, so that a start learns of the pause by the name alone. */
export const PAUSED_TOKEN = 'paused token ';
export const CREDENTIAL = 'credential ';

/** The first name after all of those. */
const AFTER = 'vault!';

interface Deps {
  readonly connection: Connection;
  readonly keys: KeyKeeper;
  write<T>(job: () => T): Promise<T>;
  writeUnopened<T>(job: () => T): Promise<T>;
  read<T>(query: () => T): Promise<T>;
  readUnopened<T>(query: () => T): Promise<T>;
  /** A moment that is not in doubt: by any other a wrong clock would let revoked tokens in again. */
  now(): number;
}

/** Texts sealed like the database's own secrets, and the tokens that were taken back, in clear. */
export class SqliteVault implements Vault {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  read(name: string): Promise<string | undefined> {
    return this.#deps.read(() => this.#deps.keys.readSecret(VAULT_PREFIX + name)?.toString());
  }

  write(name: string, text: string): Promise<void> {
    return this.#deps.write(() => this.#deps.keys.saveSecret(VAULT_PREFIX + name, Buffer.from(text)));
  }

  delete(name: string): Promise<void> {
    return this.#deps.writeUnopened(() => this.#deps.keys.deleteSecret(VAULT_PREFIX + name));
  }

  names(): Promise<readonly string[]> {
    return this.#deps.readUnopened(() => {
      const names = this.#deps.connection.sql.metaNames.all(VAULT_PREFIX, AFTER) as string[];
      return names.map((name) => name.slice(VAULT_PREFIX.length));
    });
  }

  revokeToken(id: string, until: number): Promise<void> {
    return this.#deps.writeUnopened(() => {
      const { sql } = this.#deps.connection;
      sql.deleteOldRevocations.run(this.#deps.now());
      sql.insertRevocation.run(id, until);
    });
  }

  revokedTokens(): Promise<readonly string[]> {
    return this.#deps.readUnopened(() => this.#deps.connection.sql.revokedTokens.all(this.#deps.now()) as string[]);
  }
}
