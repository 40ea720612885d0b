import type { KeyKeeper } from '../../crypto/key-keeper.ts';
import type { StoredClock } from '../../time/stored-clock.ts';
import type { Vault } from '../store.ts';
import { VAULT_PREFIX } from '../vault.ts';
import type { Database } from './database.ts';
import type { WorkingSet } from './working-set.ts';

/** Functions with which the vault reads and writes. The `unopened` variants work without the master key. */
interface Access {
  write<T>(job: () => T): Promise<T>;
  writeUnopened<T>(job: () => T): Promise<T>;
  read<T>(query: () => T): Promise<T>;
  readUnopened<T>(query: () => T | Promise<T>): Promise<T>;
}

interface Deps {
  readonly database: Database;
  readonly set: WorkingSet;
  readonly keys: KeyKeeper;
  readonly time: Pick<StoredClock, 'now' | 'trusted'>;
}

/** Stores texts, encrypted like the other secrets of the database, and the ids of revoked tokens, which are not encrypted. */
export class ServerVault implements Vault {
  readonly revision: () => Promise<number>;
  readonly onForeignChange: (listener: () => void) => Disposable;
  readonly #deps: Deps;
  readonly #access: Access;

  constructor(deps: Deps, access: Access & Required<Pick<Vault, 'revision' | 'onForeignChange'>>) {
    this.revision = access.revision;
    this.onForeignChange = access.onForeignChange;
    this.#deps = deps;
    this.#access = access;
  }

  read(name: string): Promise<string | undefined> {
    return this.#access.read(() => this.#deps.keys.readSecret(VAULT_PREFIX + name)?.toString());
  }

  write(name: string, text: string): Promise<void> {
    return this.#access.write(() => this.#deps.keys.saveSecret(VAULT_PREFIX + name, Buffer.from(text)));
  }

  update(name: string, change: (known: string | undefined) => string): Promise<string> {
    return this.#access.write(() => {
      const { keys } = this.#deps;
      const known = keys.readSecret(VAULT_PREFIX + name)?.toString();
      const text = change(known);
      if (text !== known) keys.saveSecret(VAULT_PREFIX + name, Buffer.from(text));
      return text;
    });
  }

  delete(name: string): Promise<void> {
    return this.#access.writeUnopened(() => this.#deps.keys.deleteSecret(VAULT_PREFIX + name));
  }

  names(): Promise<readonly string[]> {
    return this.#access.readUnopened(() => {
      const names = this.#deps.set.secrets.secretNames().filter((name) => name.startsWith(VAULT_PREFIX));
      return names.map((name) => name.slice(VAULT_PREFIX.length)).toSorted();
    });
  }

  revokeToken(id: string, until: number): Promise<void> {
    return this.#access.writeUnopened(() => {
      const { set } = this.#deps;
      set.addStatement('DELETE FROM revoked_token WHERE expires_at <= $1', [this.#now()], 'revocations');
      set.addStatement(
        `INSERT INTO revoked_token (id, expires_at) VALUES ($1, $2)
           ON CONFLICT (id) DO UPDATE SET expires_at = greatest(revoked_token.expires_at, excluded.expires_at)`,
        [id, Math.ceil(until)],
      );
    });
  }

  revokedTokens(): Promise<readonly string[]> {
    return this.#access.readUnopened(async () => {
      const sql = 'SELECT id FROM revoked_token WHERE expires_at > $1 ORDER BY id';
      return (await this.#deps.database.read<{ id: string }>(sql, [this.#now()])).map(({ id }) => id);
    });
  }

  /** The current time, but never a time that is in doubt. With a wrong clock, revoked tokens would seem expired. */
  #now(): number {
    const { time } = this.#deps;
    return Math.min(time.now(), time.trusted());
  }
}
