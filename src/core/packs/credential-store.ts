import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import type { CredentialList, SetCredentialInput } from '../../contract/credential.ts';
import { Failure, type FailureCode } from '../../contract/failure.ts';
import { lazy, type SchemaOutput } from '../../contract/schema.ts';
import type { KeychainItems } from '../crypto/keys/keychain.ts';
import type { MemoryStore } from '../store/store.ts';
import { CREDENTIAL } from '../store/vault.ts';
import type { Clock } from '../time/clock.ts';
import { formatTime } from '../time/format-time.ts';
import { forgetCachedOutputs } from './cache.ts';
import type { PackHook } from './hook.ts';
import type { Credential, Pack } from './pack.ts';

/** Milliseconds for which a secret is cached, because keychains are slow to read and may prompt the owner. */
const CACHE_MS = 60_000;

/** The record in the vault that says where the keychain item is. Without this record, the keychain is not read. */
const Location = lazy(() => z.object({ place: z.string(), at: z.int() }));
type Location = SchemaOutput<typeof Location>;

const KeychainItem = lazy(() => z.object({ id: z.string().min(1), secret: z.string().min(1) }));

export interface CredentialSources {
  readonly keychain?: KeychainItems;
  /** Secrets from the program's settings, by name. They take precedence over secrets in the keychain. */
  readonly provided?: Readonly<Record<string, string>>;
}

/** Reads the owner's credentials for external services, by name. Packs cannot list the credentials. */
export interface CredentialProvider {
  read(name: string): Promise<Credential | undefined>;
}

/** Gives a pack only the credential that the pack names. */
export const credentialHook = (credentials: CredentialProvider): PackHook => ({
  before: ({ pack, context }) =>
    pack.credential === undefined
      ? undefined
      : credentials.read(pack.credential).then((credential) => {
          if (credential) context.credential = credential;
          return undefined;
        }),
});

interface Deps extends CredentialSources {
  readonly store: MemoryStore;
  readonly clock: Clock;
  packs(): readonly Pack[];
}

interface CachedCredential extends Credential {
  revoked: boolean;
  until: number;
}

/**
 * The owner's credentials (R-PACK-16). Each secret is either stored in the OS keychain or comes from a setting, and is not stored
 * anywhere else.
 */
export class CredentialStore implements CredentialProvider {
  readonly #deps: Deps;
  readonly #cache = new Map<string, CachedCredential>();
  #latestJob: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    for (const [name, secret] of Object.entries(deps.provided ?? {})) this.#addToCache(name, { id: newId(), secret }, Infinity);
  }

  async read(name: string): Promise<Credential | undefined> {
    return this.#cached(name) ?? this.#serialize(async () => this.#cached(name) ?? this.#fromKeychain(name));
  }

  async list(): Promise<CredentialList> {
    const { store, provided = {} } = this.#deps;
    const kept = new Set(await store.vault.names());
    const credentials: CredentialList['credentials'] = [];
    for (const name of this.#names()) {
      const packs = this.#packsWith(name);
      if (Object.hasOwn(provided, name)) credentials.push({ name, packs, kept_in: 'settings' });
      else if (!kept.has(CREDENTIAL + name)) credentials.push({ name, packs });
      else credentials.push({ name, packs, kept_in: 'keychain', ...setAt(await this.#location(name)) });
    }
    return { credentials };
  }

  set({ name, secret }: SetCredentialInput): Promise<void> {
    return this.#serialize(async () => {
      this.#requireChangeable(name);
      const { store } = this.#deps;
      const before = await this.#location(name);
      const place = before?.place ?? randomBytes(8).toString('hex');
      const reading = await this.#keychain.read(accountOf(name, place));
      if (reading.at === 'locked') throw unreadable('key_unavailable', name, reading.why);
      if (reading.at === 'unavailable') throw noKeychain(reading.why);
      // Record the location before writing the keychain item. Otherwise a crash could leave an item that cannot be found and
      // removed.
      if (!before) await this.#saveLocation(name, place);
      try {
        await this.#keychain.save(accountOf(name, place), JSON.stringify({ id: newId(), secret }));
      } catch (error) {
        if (!before) await store.vault.delete(CREDENTIAL + name);
        throw error;
      }
      await this.#saveLocation(name, place);
      await this.#invalidate(name);
    });
  }

  delete(name: string): Promise<void> {
    return this.#serialize(async () => {
      this.#requireChangeable(name);
      const location = await this.#location(name);
      if (!location)
        throw new Failure('not_found', 'There is no credential with this name; list the credentials to see their names.');
      const account = accountOf(name, location.place);
      const reading = await this.#keychain.read(account);
      // An unavailable keychain must not prevent deletion, but a locked keychain must, because it still contains the item.
      if (reading.at === 'locked') throw unreadable('key_unavailable', name, reading.why);
      if (reading.at === 'found') await this.#keychain.remove(account);
      await this.#deps.store.vault.delete(CREDENTIAL + name);
      await this.#invalidate(name);
    });
  }

  #cached(name: string): Credential | undefined {
    const cached = this.#cache.get(name);
    return cached && cached.until > this.#deps.clock.steady() ? cached : undefined;
  }

  async #fromKeychain(name: string): Promise<Credential | undefined> {
    const found = await this.#found(name);
    const cached = this.#cache.get(name);
    const until = this.#deps.clock.steady() + CACHE_MS;
    if (cached && cached.id === found?.id) cached.until = until;
    else {
      // If another secret is cached, another program changed the keychain item.
      if (cached) await this.#invalidate(name);
      if (found) this.#addToCache(name, found, until);
    }
    return this.#cache.get(name);
  }

  async #found(name: string): Promise<SchemaOutput<typeof KeychainItem> | undefined> {
    const location = await this.#location(name);
    if (!location) return undefined;
    const reading = await this.#keychain.read(accountOf(name, location.place));
    if (reading.at === 'absent') return undefined;
    if (reading.at !== 'found') throw unreadable('unavailable', name, reading.why);
    const item = itemOf(reading.text);
    if (item) return item;
    throw new Failure(
      'invalid_config',
      `The credential ${name} in the OS keychain was changed by another program; set the credential again with: helmdeck-memory credential set ${name}.`,
    );
  }

  #addToCache(name: string, { id, secret }: SchemaOutput<typeof KeychainItem>, until: number): void {
    this.#cache.set(name, { id, secret, until, revoked: false, reportRejected: () => this.#rejected(name, id) });
  }

  #drop(name: string): void {
    const cached = this.#cache.get(name);
    if (cached) cached.revoked = true;
    this.#cache.delete(name);
  }

  /**
   * Drops the secret from the cache, and deletes all outputs that were cached with it. Outputs of runs in progress that use the
   * secret are not cached.
   */
  async #invalidate(name: string): Promise<void> {
    this.#drop(name);
    await forgetCachedOutputs(this.#deps.store, this.#packsWith(name));
  }

  async #rejected(name: string, id: string): Promise<void> {
    const cached = this.#cache.get(name);
    // If a new secret was set in the meantime, ignore the rejection, which concerns the old secret.
    if (cached?.id !== id) return;
    await this.#invalidate(name);
    if (cached.until === Infinity) this.#addToCache(name, cached, Infinity);
  }

  async #location(name: string): Promise<Location | undefined> {
    const text = await this.#deps.store.vault.read(CREDENTIAL + name);
    return text === undefined ? undefined : Location().parse(JSON.parse(text));
  }

  #saveLocation(name: string, place: string): Promise<void> {
    const { vault } = this.#deps.store;
    return vault.write(CREDENTIAL + name, JSON.stringify({ place, at: this.#deps.store.now() } satisfies Location));
  }

  get #keychain(): KeychainItems {
    const { keychain } = this.#deps;
    if (keychain) return keychain;
    throw noKeychain('this program uses no keychain');
  }

  #requireChangeable(name: string): void {
    const { store, provided = {} } = this.#deps;
    if (!this.#names().includes(name)) {
      throw new Failure('not_found', 'No pack uses a credential with this name; list the credentials to see their names.');
    }
    if (Object.hasOwn(provided, name)) {
      throw new Failure(
        'invalid_input',
        `The credential ${name} comes from a setting, which takes precedence; change the setting instead.`,
      );
    }
    if (store.status().kept === 'memory') {
      throw new Failure(
        'key_unavailable',
        'This memory is in RAM only, so the credential would be lost; create a key first with: helmdeck-memory key init.',
      );
    }
  }

  /** Returns the names of all credentials that packs use, sorted. */
  #names(): string[] {
    const names = this.#deps.packs().flatMap(({ credential }) => (credential === undefined ? [] : [credential]));
    return [...new Set(names)].toSorted();
  }

  #packsWith(credential: string): string[] {
    return this.#deps
      .packs()
      .filter((pack) => pack.credential === credential)
      .map(({ name }) => name);
  }

  #serialize<T>(job: () => Promise<T>): Promise<T> {
    const done = this.#latestJob.then(job);
    this.#latestJob = done.catch(() => undefined);
    return done;
  }
}

const newId = (): string => randomBytes(16).toString('hex');

const accountOf = (name: string, place: string): string => `credential ${name} ${place}`;

const setAt = (known: Location | undefined): { set_at?: string } => (known ? { set_at: formatTime(known.at) } : {});

function itemOf(text: string): SchemaOutput<typeof KeychainItem> | undefined {
  try {
    return KeychainItem().safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

const noKeychain = (reason: string): Failure =>
  new Failure(
    'key_unavailable',
    `No OS keychain is available to store the credential: ${reason}; provide the credential in a setting instead.`,
  );

const unreadable = (code: FailureCode, name: string, reason: string): Failure =>
  new Failure(
    code,
    `The credential ${name} is in the OS keychain, which cannot be read: ${reason}; unlock the keychain and try again.`,
  );
