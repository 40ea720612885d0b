import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { type KeyReading, type KeySource, parseKey, type KeySlot } from './key-source.ts';

/** The safe calls of keytar. `findCredentials` is left out, because it ends the process on a locked keychain. */
export interface Keychain {
  getPassword(service: string, account: string): Promise<string | null>;
  setPassword(service: string, account: string, password: string): Promise<void>;
  deletePassword(service: string, account: string): Promise<boolean>;
}

const SERVICE = 'helmdeck-memory';
const CANARY = 'canary';
/** Timeout for a keychain that waits for the owner to answer a dialog. */
const PATIENCE_MS = 5000;

const waiting = 'it is waiting for you to unlock it';

/** Loaded on first use. The program also runs where the system library is missing. */
export async function loadKeychain(): Promise<Keychain | undefined> {
  try {
    return (await import('keytar')).default;
  } catch {
    return undefined;
  }
}

/** An unreadable keychain must never look empty. */
type ItemReading =
  | { readonly at: 'found'; readonly text: string }
  | { readonly at: 'absent' }
  | { readonly at: 'locked'; readonly why: string }
  | { readonly at: 'unavailable'; readonly why: string };

/** Secrets in the OS keychain, by account. */
export interface KeychainItems {
  read(account: string): Promise<ItemReading>;
  /** Resolves only when the text reads back the same. */
  save(account: string, text: string): Promise<void>;
  remove(account: string): Promise<void>;
}

export interface KeychainOptions {
  readonly load?: typeof loadKeychain;
  readonly timeoutMs?: number;
  /** Whether a keychain can be reached; checked before each call. */
  readonly isReachable?: () => boolean;
}

/** On Linux the keychain needs the bus of a desktop session. Services and SSH sessions have none, so the large library is not loaded. */
export function hasSessionBus(
  environment: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform = process.platform,
): boolean {
  if (platform !== 'linux') return true;
  const { DBUS_SESSION_BUS_ADDRESS: address, XDG_RUNTIME_DIR: folder, DISPLAY: display, SECRET_BACKEND: backend } = environment;
  if (address || display || backend) return true;
  return folder !== undefined && existsSync(join(folder, 'bus'));
}

/**
 * A locked keychain answers "no item" exactly like an empty one. So we also store a canary item without a secret: only when it
 * can be read or written does "no item" mean absent (R-KEY). It is read first, because that may let the owner unlock.
 */
export function openKeychainItems(
  what: string,
  { load = loadKeychain, timeoutMs: patience = PATIENCE_MS, isReachable: reachable = () => true }: KeychainOptions = {},
): KeychainItems {
  const keychain = async (): Promise<Keychain> => {
    if (!reachable()) throw new OutOfReach('no desktop session leads to it');
    const loaded = await load();
    if (!loaded) throw new OutOfReach('its system library is not installed');
    return loaded;
  };

  /** Why the keychain shows no items; undefined if it is open. */
  const whyClosed = async (chain: Keychain): Promise<string | undefined> => {
    const canary = await ask(chain, patience, () => chain.getPassword(SERVICE, CANARY));
    if (canary === late) return waiting;
    if (canary !== null) return undefined;
    try {
      const written = await ask(chain, patience, () => chain.setPassword(SERVICE, CANARY, 'here'));
      return written === late ? waiting : undefined;
    } catch {
      return 'it keeps nothing';
    }
  };

  return {
    async read(account) {
      try {
        const chain = await keychain();
        const why = await whyClosed(chain);
        if (why !== undefined) return { at: 'locked', why };
        const found = await ask(chain, patience, () => chain.getPassword(SERVICE, account));
        if (found === late) return { at: 'locked', why: waiting };
        return found === null ? { at: 'absent' } : { at: 'found', text: found };
      } catch (error) {
        return { at: 'unavailable', why: error instanceof OutOfReach ? error.message : 'it does not answer' };
      }
    },
    async save(account, text) {
      await done(`did not keep ${what}`, async () => {
        const chain = await keychain();
        const kept = await ask(chain, patience, () => chain.setPassword(SERVICE, account, text));
        return kept !== late && (await ask(chain, patience, () => chain.getPassword(SERVICE, account))) === text;
      });
    },
    async remove(account) {
      await done(`did not remove ${what}`, async () => {
        const chain = await keychain();
        return (await ask(chain, patience, () => chain.deletePassword(SERVICE, account))) !== late;
      });
    },
  };
}

/** Each memory has its own items, so that rotating one key does not affect another memory. */
export function keychainSource(
  memory: string,
  { creates, ...options }: KeychainOptions & { creates: boolean },
): Required<KeySource> {
  const items = openKeychainItems('the key', options);
  const account = (slot: KeySlot) => `${slot === 'current' ? 'master-key' : 'next-master-key'} ${memory}`;
  return {
    name: 'the OS keychain',
    createsOnFirstStart: creates,
    async read(slot): Promise<KeyReading> {
      const reading = await items.read(account(slot));
      if (reading.at !== 'found') return reading;
      return { at: 'found', key: parseKey(reading.text, 'The item of Helmdeck Memory in the OS keychain') };
    },
    save: (slot, key) => items.save(account(slot), key.toString('hex')),
    remove: (slot) => items.remove(account(slot)),
  };
}

/** The owner learns what to do. The keychain's own error is kept as the cause, for developers. */
async function done(what: string, step: () => Promise<boolean>): Promise<void> {
  const told = (options?: ErrorOptions) =>
    new Failure('key_unavailable', `The OS keychain ${what}; unlock it and try again.`, options);
  const fulfilled = await step().catch((cause: unknown) => {
    throw told({ cause });
  });
  if (!fulfilled) throw told();
}

const late = Symbol('late');

/** Keychains with a call that timed out and is still pending. */
const owing = new WeakSet<Keychain>();

/**
 * The call continues after the timeout. No other call starts until it ends, because each would block a thread of Node and show
 * another dialog to the owner.
 */
async function ask<T>(chain: Keychain, patience: number, question: () => Promise<T>): Promise<T | typeof late> {
  if (owing.has(chain)) return late;
  const answer = question();
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<typeof late>((resolve) => {
    timer = setTimeout(resolve, patience, late);
  });
  try {
    const first = await Promise.race([answer, limit]);
    if (first === late) {
      owing.add(chain);
      const answered = () => void owing.delete(chain);
      answer.then(answered, answered);
    }
    return first;
  } finally {
    clearTimeout(timer);
  }
}

/** A reason that we can name. The keychain's own message is not passed on, because it may contain paths. */
class OutOfReach extends Error {}
