import type { Connection } from './connection.ts';
import type { KeyKeeper } from './key-keeper.ts';
import type { Vault } from './store.ts';
import { VAULT } from './vault-names.ts';

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
    return this.#deps.read(() => this.#deps.keys.secret(VAULT + name)?.toString());
  }

  keep(name: string, text: string): Promise<void> {
    return this.#deps.write(() => this.#deps.keys.keepSecret(VAULT + name, Buffer.from(text)));
  }

  drop(name: string): Promise<void> {
    return this.#deps.writeUnopened(() => this.#deps.keys.dropSecret(VAULT + name));
  }

  names(): Promise<readonly string[]> {
    return this.#deps.readUnopened(() => {
      const names = this.#deps.connection.sql.metaNames.all(VAULT, AFTER) as string[];
      return names.map((name) => name.slice(VAULT.length));
    });
  }

  revoke(id: string, until: number): Promise<void> {
    return this.#deps.writeUnopened(() => {
      const { sql } = this.#deps.connection;
      sql.dropOldRevocations.run(this.#deps.now());
      sql.keepRevocation.run(id, until);
    });
  }

  revoked(): Promise<readonly string[]> {
    return this.#deps.readUnopened(() => this.#deps.connection.sql.revoked.all(this.#deps.now()) as string[]);
  }
}

interface RamDeps {
  step<T>(job: () => T): Promise<T>;
  now(): number;
}

/** The same for a memory that ends with the program. */
export class RamVault implements Vault {
  readonly #deps: RamDeps;
  readonly #texts = new Map<string, string>();
  readonly #revoked = new Map<string, number>();

  constructor(deps: RamDeps) {
    this.#deps = deps;
  }

  read(name: string): Promise<string | undefined> {
    return this.#deps.step(() => this.#texts.get(name));
  }

  keep(name: string, text: string): Promise<void> {
    return this.#deps.step(() => void this.#texts.set(name, text));
  }

  drop(name: string): Promise<void> {
    return this.#deps.step(() => void this.#texts.delete(name));
  }

  names(): Promise<readonly string[]> {
    return this.#deps.step(() => [...this.#texts.keys()].toSorted());
  }

  revoke(id: string, until: number): Promise<void> {
    return this.#deps.step(() => {
      for (const [old, end] of this.#revoked) if (end <= this.#deps.now()) this.#revoked.delete(old);
      this.#revoked.set(id, Math.max(until, this.#revoked.get(id) ?? until));
    });
  }

  revoked(): Promise<readonly string[]> {
    return this.#deps.step(() =>
      [...this.#revoked]
        .filter(([, until]) => until > this.#deps.now())
        .map(([id]) => id)
        .toSorted(),
    );
  }
}
