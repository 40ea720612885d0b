import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import type { CredentialList, SetCredentialInput } from '../../contract/credential.ts';
import { Failure, type FailureCode } from '../../contract/failure.ts';
import { lazy, type SchemaOutput } from '../../contract/lazy.ts';
import type { KeychainItems } from '../crypto/keys/keychain.ts';
import type { MemoryStore } from '../store/store.ts';
import { CREDENTIAL } from '../store/vault.ts';
import type { Clock } from '../time/clock.ts';
import { formatTime } from '../time/format-time.ts';
import { forgetCachedOutputs } from './cache.ts';
import type { CredentialProvider } from './credentials.ts';
import type { Credential, Pack } from './pack.ts';

/** How long a secret is reused. Keychains are slow to read and may prompt the owner. */
const HELD_MS = 60_000;

/** Stored in the vault: where the keychain item is. Without this record the keychain is not read. */
const Whereabouts = lazy(() => z.object({ place: z.string(), at: z.int() }));
type Whereabouts = SchemaOutput<typeof Whereabouts>;

/** Stored in the keychain. */
const Item = lazy(() => z.object({ id: z.string().min(1), secret: z.string().min(1) }));

export interface CredentialSources {
  /** Absent if no keychain is available. */
  readonly keychain?: KeychainItems;
  /** Secrets from the program's settings, by name. These take precedence over the keychain. */
  readonly provided?: Readonly<Record<string, string>>;
}

interface Deps extends CredentialSources {
  readonly store: MemoryStore;
  readonly clock: Clock;
  /** All packs. Each names the credential it uses. */
  packs(): readonly Pack[];
}

interface Held extends Credential {
  revoked: boolean;
  until: number;
}

/**
 * The owner's credentials (R-PACK-16). Each secret is kept in the OS keychain or comes from a setting, and is stored nowhere
 * else.
 */
export class CredentialStore implements CredentialProvider {
  readonly #deps: Deps;
  readonly #held = new Map<string, Held>();
  #working: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps) {
    this.#deps = deps;
    for (const [name, secret] of Object.entries(deps.provided ?? {})) this.#hold(name, { id: newId(), secret }, Infinity);
  }

  async read(name: string): Promise<Credential | undefined> {
    return this.#atHand(name) ?? this.#inTurn(async () => this.#atHand(name) ?? this.#fromKeychain(name));
  }

  async list(): Promise<CredentialList> {
    const { store, provided: handedIn = {} } = this.#deps;
    const kept = new Set(await store.vault.names());
    const credentials: CredentialList['credentials'] = [];
    for (const name of this.#names()) {
      const packs = this.#packsWith(name);
      if (Object.hasOwn(handedIn, name)) credentials.push({ name, packs, kept_in: 'settings' });
      else if (!kept.has(CREDENTIAL + name)) credentials.push({ name, packs });
      else credentials.push({ name, packs, kept_in: 'keychain', ...setAt(await this.#whereabouts(name)) });
    }
    return { credentials };
  }

  set({ name, secret }: SetCredentialInput): Promise<void> {
    return this.#inTurn(async () => {
      this.#requireChangeable(name);
      const { store } = this.#deps;
      const before = await this.#whereabouts(name);
      const place = before?.place ?? randomBytes(8).toString('hex');
      const reading = await this.#keychain.read(accountOf(name, place));
      if (reading.at === 'locked') throw closed('key_unavailable', name, reading.why);
      if (reading.at === 'unavailable') throw nowhere(reading.why);
      // Record the location before writing the keychain item, so that a crash leaves no item that cannot be found and removed.
      if (!before) await this.#note(name, place);
      try {
        await this.#keychain.save(accountOf(name, place), JSON.stringify({ id: newId(), secret }));
      } catch (error) {
        if (!before) await store.vault.delete(CREDENTIAL + name);
        throw error;
      }
      await this.#note(name, place);
      await this.#end(name);
    });
  }

  delete(name: string): Promise<void> {
    return this.#inTurn(async () => {
      this.#requireChangeable(name);
      const whereabouts = await this.#whereabouts(name);
      if (!whereabouts)
        throw new Failure('not_found', 'There is no credential with this name; list the credentials to see their names.');
      const account = accountOf(name, whereabouts.place);
      const reading = await this.#keychain.read(account);
      // An unavailable keychain must not prevent deletion. A locked one still holds the item.
      if (reading.at === 'locked') throw closed('key_unavailable', name, reading.why);
      if (reading.at === 'found') await this.#keychain.remove(account);
      await this.#deps.store.vault.delete(CREDENTIAL + name);
      await this.#end(name);
    });
  }

  #atHand(name: string): Credential | undefined {
    const held = this.#held.get(name);
    return held && held.until > this.#deps.clock.steady() ? held : undefined;
  }

  async #fromKeychain(name: string): Promise<Credential | undefined> {
    const found = await this.#found(name);
    const held = this.#held.get(name);
    const until = this.#deps.clock.steady() + HELD_MS;
    if (held && held.id === found?.id) held.until = until;
    else {
      // The keychain item was changed outside the program.
      if (held) await this.#end(name);
      if (found) this.#hold(name, found, until);
    }
    return this.#held.get(name);
  }

  async #found(name: string): Promise<SchemaOutput<typeof Item> | undefined> {
    const whereabouts = await this.#whereabouts(name);
    if (!whereabouts) return undefined;
    const reading = await this.#keychain.read(accountOf(name, whereabouts.place));
    if (reading.at === 'absent') return undefined;
    if (reading.at !== 'found') throw closed('handler_failed', name, reading.why);
    const item = itemOf(reading.text);
    if (item) return item;
    throw new Failure(
      'handler_failed',
      `The credential ${name} in the OS keychain was changed outside this program; set it again with: helmdeck-memory credential set ${name}.`,
    );
  }

  #hold(name: string, { id, secret }: SchemaOutput<typeof Item>, until: number): void {
    this.#held.set(name, { id, secret, until, revoked: false, reportRejected: () => this.#refused(name, id) });
  }

  #letGo(name: string): void {
    const held = this.#held.get(name);
    if (held) held.revoked = true;
    this.#held.delete(name);
  }

  /** Drops the secret and all outputs cached with it. Runs in progress that use it are not cached. */
  async #end(name: string): Promise<void> {
    this.#letGo(name);
    await forgetCachedOutputs(this.#deps.store, this.#packsWith(name));
  }

  async #refused(name: string, id: string): Promise<void> {
    const held = this.#held.get(name);
    // A new secret was set in the meantime; the rejection concerns the old one.
    if (held?.id !== id) return;
    await this.#end(name);
    if (held.until === Infinity) this.#hold(name, held, Infinity);
  }

  async #whereabouts(name: string): Promise<Whereabouts | undefined> {
    const text = await this.#deps.store.vault.read(CREDENTIAL + name);
    return text === undefined ? undefined : Whereabouts().parse(JSON.parse(text));
  }

  #note(name: string, place: string): Promise<void> {
    const { vault } = this.#deps.store;
    return vault.write(CREDENTIAL + name, JSON.stringify({ place, at: this.#deps.store.now() } satisfies Whereabouts));
  }

  get #keychain(): KeychainItems {
    const { keychain } = this.#deps;
    if (keychain) return keychain;
    throw nowhere('none is used');
  }

  #requireChangeable(name: string): void {
    const { store, provided: handedIn = {} } = this.#deps;
    if (!this.#names().includes(name)) {
      throw new Failure('not_found', 'No pack uses a credential with this name; list the credentials to see their names.');
    }
    if (Object.hasOwn(handedIn, name)) {
      throw new Failure('invalid_input', `The credential ${name} comes from a setting, which takes precedence; change it there.`);
    }
    if (store.status().kept === 'memory') {
      throw new Failure(
        'key_unavailable',
        'This memory is in RAM only, so the credential would be lost; create a key first with: helmdeck-memory key init.',
      );
    }
  }

  /** Sorted by name. */
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

  #inTurn<T>(job: () => Promise<T>): Promise<T> {
    const done = this.#working.then(job);
    this.#working = done.catch(() => undefined);
    return done;
  }
}

const newId = (): string => randomBytes(16).toString('hex');

const accountOf = (name: string, place: string): string => `credential ${name} ${place}`;

const setAt = (known: Whereabouts | undefined): { set_at?: string } => (known ? { set_at: formatTime(known.at) } : {});

function itemOf(text: string): SchemaOutput<typeof Item> | undefined {
  try {
    return Item().safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

const nowhere = (why: string): Failure =>
  new Failure('key_unavailable', `No OS keychain is available to store the credential: ${why}; provide it by a setting instead.`);

const closed = (code: FailureCode, name: string, why: string): Failure =>
  new Failure(
    code,
    `The credential ${name} is in the OS keychain, which cannot be read: ${why}; unlock the keychain and try again.`,
  );
