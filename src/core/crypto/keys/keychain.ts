import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { type KeyReading, type KeySource, parseKey, type KeySlot } from './key-source.ts';

/** The safe functions of keytar. Excludes `findCredentials`, which crashes the process if the keychain is locked. */
export interface Keychain {
  getPassword(service: string, account: string): Promise<string | null>;
  setPassword(service: string, account: string, password: string): Promise<void>;
  deletePassword(service: string, account: string): Promise<boolean>;
}

const SERVICE = 'helmdeck-memory';
const CANARY = 'canary';
/** Milliseconds to wait for the keychain, which may be waiting for the owner to answer a dialog. */
const TIMEOUT_MS = 5000;

const waiting = 'it is waiting for you to unlock it';

/**
 * Loads keytar on first use. Returns undefined if its system library is missing, so that Helmdeck Memory runs without a
 * keychain.
 */
export async function loadKeychain(): Promise<Keychain | undefined> {
  try {
    return (await import('keytar')).default;
  } catch {
    return undefined;
  }
}

/** Result of reading a keychain item. A keychain that cannot be read must never be reported as `absent`. */
type ItemReading =
  | { readonly at: 'found'; readonly text: string }
  | { readonly at: 'absent' }
  | { readonly at: 'locked'; readonly why: string }
  | { readonly at: 'unavailable'; readonly why: string };

export interface KeychainItems {
  read(account: string): Promise<ItemReading>;
  /** Stores a text. Resolves only after the text was read back unchanged. */
  save(account: string, text: string): Promise<void>;
  remove(account: string): Promise<void>;
}

export interface KeychainOptions {
  readonly load?: typeof loadKeychain;
  readonly timeoutMs?: number;
  /** Returns whether a keychain can be reached. Called before each keychain call. */
  readonly isReachable?: () => boolean;
}

/**
 * Whether the keychain can be reached. On Linux it needs the D-Bus of a desktop session. Services and SSH sessions have no D-Bus
 * session, so the large keychain library is not loaded for them.
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
 * Opens the OS keychain. A locked keychain reports "no item", exactly like an empty keychain. So Helmdeck Memory also stores a
 * canary item, which contains no secret: "no item" means absent only if the canary can be read or written (R-KEY). The canary is
 * read first, because reading it can show the dialog in which the owner unlocks the keychain.
 */
export function openKeychainItems(
  what: string,
  { load = loadKeychain, timeoutMs = TIMEOUT_MS, isReachable: reachable = () => true }: KeychainOptions = {},
): KeychainItems {
  const keychain = async (): Promise<Keychain> => {
    if (!reachable()) throw new KeychainUnavailable('this process has no desktop session');
    const loaded = await load();
    if (!loaded) throw new KeychainUnavailable('its system library is not installed');
    return loaded;
  };

  /** Returns why the keychain shows no items, or undefined if it is unlocked. */
  const whyClosed = async (chain: Keychain): Promise<string | undefined> => {
    const canary = await callWithTimeout(chain, timeoutMs, () => chain.getPassword(SERVICE, CANARY));
    if (canary === timedOut) return waiting;
    if (canary !== null) return undefined;
    try {
      const written = await callWithTimeout(chain, timeoutMs, () => chain.setPassword(SERVICE, CANARY, 'here'));
      return written === timedOut ? waiting : undefined;
    } catch {
      return 'it does not store new items';
    }
  };

  return {
    async read(account) {
      try {
        const chain = await keychain();
        const why = await whyClosed(chain);
        if (why !== undefined) return { at: 'locked', why };
        const found = await callWithTimeout(chain, timeoutMs, () => chain.getPassword(SERVICE, account));
        if (found === timedOut) return { at: 'locked', why: waiting };
        return found === null ? { at: 'absent' } : { at: 'found', text: found };
      } catch (error) {
        return { at: 'unavailable', why: error instanceof KeychainUnavailable ? error.message : 'it does not respond' };
      }
    },
    async save(account, text) {
      await requireSuccess(`did not store ${what}`, async () => {
        const chain = await keychain();
        const stored = await callWithTimeout(chain, timeoutMs, () => chain.setPassword(SERVICE, account, text));
        return (
          stored !== timedOut && (await callWithTimeout(chain, timeoutMs, () => chain.getPassword(SERVICE, account))) === text
        );
      });
    },
    async remove(account) {
      await requireSuccess(`did not remove ${what}`, async () => {
        const chain = await keychain();
        return (await callWithTimeout(chain, timeoutMs, () => chain.deletePassword(SERVICE, account))) !== timedOut;
      });
    },
  };
}

/**
 * Returns the source for keys in the OS keychain. Each memory has its own items, so that rotating the key of one memory does not
 * affect another memory.
 */
export function keychainSource(
  memory: string,
  { creates, ...options }: KeychainOptions & { creates: boolean },
): Required<KeySource> {
  const items = openKeychainItems('the key', options);
  const account = (slot: KeySlot) => `${slot === 'current' ? 'master-key' : 'next-master-key'} ${memory}`;
  return {
    name: 'the OS keychain',
    createsOnFirstStart: creates,
    isShared: false,
    async read(slot): Promise<KeyReading> {
      const reading = await items.read(account(slot));
      if (reading.at !== 'found') return reading;
      return { at: 'found', key: parseKey(reading.text, 'The Helmdeck Memory item in the OS keychain') };
    },
    save: (slot, key) => items.save(account(slot), key.toString('hex')),
    remove: (slot) => items.remove(account(slot)),
  };
}

/**
 * Runs a step that must return true. Otherwise throws a failure that tells the owner what to do. The keychain's own error is
 * attached as the cause, for developers.
 */
async function requireSuccess(what: string, step: () => Promise<boolean>): Promise<void> {
  const failure = (options?: ErrorOptions) =>
    new Failure('key_unavailable', `The OS keychain ${what}; unlock it and try again.`, options);
  const succeeded = await step().catch((cause: unknown) => {
    throw failure({ cause });
  });
  if (!succeeded) throw failure();
}

const timedOut = Symbol('timedOut');

/** Keychains with a call that timed out and is still running. */
const busy = new WeakSet<Keychain>();

/**
 * Calls the keychain with a timeout. The call itself continues after the timeout. Until it ends, no other call starts, because
 * each call would block a thread of Node and show another dialog to the owner.
 */
async function callWithTimeout<T>(chain: Keychain, timeoutMs: number, call: () => Promise<T>): Promise<T | typeof timedOut> {
  if (busy.has(chain)) return timedOut;
  const answer = call();
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<typeof timedOut>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, timedOut);
  });
  try {
    const first = await Promise.race([answer, limit]);
    if (first === timedOut) {
      busy.add(chain);
      const answered = () => void busy.delete(chain);
      answer.then(answered, answered);
    }
    return first;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The keychain cannot be used, for a reason whose message is safe to show. Messages of the keychain itself are not shown, because
 * they can contain paths.
 */
class KeychainUnavailable extends Error {}
