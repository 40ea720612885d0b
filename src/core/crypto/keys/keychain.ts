import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { type KeyReading, type KeySource, parseKey, type KeySlot } from './key-source.ts';

/** The three calls of keytar that are safe. `findCredentials` ends the process on a locked keyring; it is not here. */
export interface Keychain {
  getPassword(service: string, account: string): Promise<string | null>;
  setPassword(service: string, account: string, password: string): Promise<void>;
  deletePassword(service: string, account: string): Promise<boolean>;
}

const SERVICE = 'helmdeck-memory';
const CANARY = 'canary';
/** A keyring that asks its owner on the screen answers when the owner does. The program does not wait for that. */
const PATIENCE_MS = 5000;

const waiting = 'it is waiting for you to unlock it';

/** Loaded when first needed: where the system's library is missing the program runs without it. */
export async function loadKeychain(): Promise<Keychain | undefined> {
  try {
    return (await import('keytar')).default;
  } catch {
    return undefined;
  }
}

/** A keychain that cannot be read is never told as one that is empty. */
type ItemReading =
  | { readonly at: 'found'; readonly text: string }
  | { readonly at: 'absent' }
  | { readonly at: 'locked'; readonly why: string }
  | { readonly at: 'unavailable'; readonly why: string };

/** Secret texts in the OS keychain, by account. */
export interface KeychainItems {
  read(account: string): Promise<ItemReading>;
  /** Fulfils only when the text reads back the same. */
  save(account: string, text: string): Promise<void>;
  remove(account: string): Promise<void>;
}

export interface KeychainOptions {
  readonly load?: typeof loadKeychain;
  readonly timeoutMs?: number;
  /** Whether anything leads to it; looked at each time it is asked. */
  readonly isReachable?: () => boolean;
}

/**
 * Whether anything leads to a keychain from here. On Linux it is reached over the bus of a desktop session; where there is none, as
 * for a service or over SSH, the libraries that would say so are large.
 */
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
 * A locked keyring says "nothing here" exactly like an empty one. So an item of ours with no secret in it, the canary,
 * stands beside the others: only where it can be seen, or written, does "nothing" mean absent (R-KEY). It is looked for
 * first, because the question itself may make the owner unlock the keyring.
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

  /** Why it shows nothing; undefined if it shows what it holds. */
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

/** The OS keychain. Each memory has items of its own, so that rotating one does not lock another out. */
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

/** What the keychain itself says against it is for developers; the owner is told what to do. */
async function done(what: string, step: () => Promise<boolean>): Promise<void> {
  const told = (options?: ErrorOptions) =>
    new Failure('key_unavailable', `The OS keychain ${what}; unlock it and try again.`, options);
  const fulfilled = await step().catch((cause: unknown) => {
    throw told({ cause });
  });
  if (!fulfilled) throw told();
}

const late = Symbol('late');

/** Keychains that still owe an answer nobody waits for any more. */
const owing = new WeakSet<Keychain>();

/**
 * The call goes on; only the waiting ends. Until it is answered no other one is made: each would hold one of Node's
 * few threads, and put one more question on the owner's screen.
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

/**
 * The reasons we can name. What a keychain says itself is not passed on: it may hold paths, and words that clients
 * take for something else.
 */
class OutOfReach extends Error {}
