import { randomBytes } from 'node:crypto';
import { Failure } from '../../contract/failure.ts';
import { type KeyState, type StoreStatus, describeMissingKey } from '../../contract/status.ts';
import type { Clock } from '../time/clock.ts';
import { BrokenSeal, KeyRing, type SealingKey, openBytes, sealBytes } from './cipher.ts';
import { excludeFromCoreDumps } from './core-dumps.ts';
import { type HeldKeys, findKeys, type KeyRecord, createFirstKey } from './find-keys.ts';
import type { KeySource } from './keys/key-source.ts';
import { WRAPPED_KEY_NAMES } from './recovery-key.ts';

/**
 * Minimum milliseconds between two automatic reads of the key sources, because a keychain can show a dialog on the owner's screen
 * at each read.
 */
const RETRY_MS = 2000;
const TOMBSTONE_KEY = 'tombstone key';
export const STORED_CLOCK = 'clock';

/** Another process has rotated the key, and the new key must be read with `readNewKey`. */
export class NewKeyNeeded extends Error {
  constructor() {
    super('The key was rotated by another process, and the new key has not been read yet.');
  }
}

type WithoutKey = Exclude<KeyState, { at: 'ok' | 'ephemeral' }>;

/** The tables of a database that the keys need. The methods are synchronous, so a server's tables are mirrored in RAM. */
export interface KeyTables {
  /** Called when a transaction or a savepoint is rolled back. */
  onRollback: (() => void) | undefined;
  meta(name: string): unknown;
  setMeta(name: string, value: number | Buffer | string): void;
  deleteMeta(name: string): void;
  /** Names of the encrypted secrets and of the wrapped keys. */
  secretNames(): string[];
  keyRecords(): (KeyRecord & { segment: number })[];
  insertKeyRecord(record: KeyRecord): void;
  setSegment(keyId: Buffer, segment: number): void;
  transaction<T>(step: () => T): T | Promise<T>;
}

/**
 * Holds the keys while the memory is unlocked. Everything that encrypts or decrypts uses these keys, so dropping them locks the
 * memory.
 */
export class KeyKeeper {
  readonly #connection: KeyTables;
  readonly #clock: Clock;
  readonly sources: readonly KeySource[];
  rotation: StoreStatus['rotation'] = { at: 'none' };
  readonly #broken = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #keys: HeldKeys | undefined;
  #state: WithoutKey = { at: 'locked', why: 'the key has not been read yet', remedy: 'Try again.' };
  #announced: KeyState['at'] = 'locked';
  #lockedByOwner = false;
  #lockCount = 0;
  #readAt = -Infinity;
  #pendingRead: Promise<void> | undefined;
  #pendingUnlock: { lockCount: number; result: Promise<KeyState> } | undefined;

  constructor(connection: KeyTables, clock: Clock, sources: readonly KeySource[]) {
    this.#connection = connection;
    this.#clock = clock;
    this.sources = sources;
    connection.onRollback = () => this.abandonSegment();
    excludeFromCoreDumps();
  }

  get state(): KeyState {
    return this.#keys ? { at: 'ok', source: this.#keys.source.name } : this.#state;
  }

  /** Calls `listener` after the key became available, was lost or was locked, for any reason. */
  onChange(listener: () => void): Disposable {
    // Wrap the listener, so that the `Set` can contain the same listener twice.
    const entry = (): void => listener();
    this.#listeners.add(entry);
    return { [Symbol.dispose]: () => void this.#listeners.delete(entry) };
  }

  /** The keys that are held. If no key is held, throws a failure with the key state and its remedy. */
  get ring(): KeyRing {
    return this.requireKeys().ring;
  }

  get heldKeys(): HeldKeys | undefined {
    return this.#keys;
  }

  /** Returns the keys that are held, with their source. Throws like `ring` if no key is held. */
  requireKeys(): HeldKeys {
    if (this.#keys) return this.#keys;
    throw refusal(this.#state);
  }

  /**
   * Reads the key sources again, unless the owner locked the memory. So after the owner unlocks the keychain, no restart is
   * needed.
   */
  async retryUnlock(): Promise<void> {
    if (this.#keys || this.#lockedByOwner) return;
    if (this.#pendingUnlock || this.#clock.steady() - this.#readAt >= RETRY_MS) await this.unlock();
  }

  lock(why = 'the owner locked it'): void {
    this.#lockCount += 1;
    this.#keys = undefined;
    this.#lockedByOwner = true;
    this.#state = { at: 'locked', why, remedy: 'Unlock the memory in the window, or with: helmdeck-memory unlock.' };
    this.#announce();
  }

  unlock(): Promise<KeyState> {
    if (this.#pendingUnlock?.lockCount === this.#lockCount) return this.#pendingUnlock.result;
    // Wait for an earlier attempt, during which the owner locked the memory. That attempt will not unlock the memory, so start
    // another one.
    const earlier = this.#pendingUnlock?.result.catch(() => undefined);
    const pending = {
      lockCount: this.#lockCount,
      result: Promise.resolve(earlier)
        .then(() => this.#readKeys())
        .finally(() => {
          if (this.#pendingUnlock === pending) this.#pendingUnlock = undefined;
          this.#announce();
        }),
    };
    this.#pendingUnlock = pending;
    return pending.result;
  }

  /**
   * Returns a key whose open segment can encrypt at least one more record. Call it in a transaction, because it may open a
   * segment.
   */
  sealingKey(): SealingKey {
    const key = this.ring.current;
    if (key.recordsLeft === 0) {
      const stored = this.records().find((record) => record.id.equals(key.id))?.segment ?? 0;
      const segment = Math.max(stored, key.currentSegment) + 1;
      this.#connection.setSegment(key.id, segment);
      key.openSegment(segment);
    }
    return key;
  }

  /** Stops using the open segment. Called when the transaction that may have opened it was rolled back. */
  abandonSegment(): void {
    this.#keys?.ring.current.abandonSegment();
  }

  records(): (KeyRecord & { segment: number })[] {
    return this.#connection.keyRecords();
  }

  /** Replaces the held keys during a rotation. Throws if the memory was locked meanwhile. */
  replaceKeys(keys: HeldKeys): void {
    this.requireKeys();
    this.#keys = keys;
  }

  /**
   * Follows a rotation of another process, whose key records are in the tables. Throws `NewKeyNeeded` if the key sources must be read.
   * That can take as long as the owner needs for a dialog, so the caller must first give up what others wait for.
   */
  follow(): void {
    const [held, records] = [this.#keys, this.records()];
    const idOf = (role: KeyRecord['role']): Buffer | undefined => records.find((record) => record.role === role)?.id;
    const [current, retiring] = [idOf('current'), idOf('retiring')];
    if (!held || !current) return;
    if (isKey(held.ring.current, current) && isKey(held.ring.retiring, retiring)) return;
    if (isKey(held.ring.current, current) && !retiring)
      return this.replaceKeys({ ...held, ring: new KeyRing(held.ring.current) });
    throw new NewKeyNeeded();
  }

  /**
   * Reads the keys of a rotation by another process. If this process cannot read the new key, it drops the old key, because it must
   * not write with it. `readRecords` reads the key records again, because the rotation can end while the owner is asked.
   */
  readNewKey(readRecords: () => Promise<void>): Promise<void> {
    this.#pendingRead ??= this.#readNewKey(readRecords).finally(() => (this.#pendingRead = undefined));
    return this.#pendingRead;
  }

  async #readNewKey(readRecords: () => Promise<void>): Promise<void> {
    const [held, lockCount] = [this.#keys, this.#lockCount];
    if (!held) return;
    for (let records = this.records(), known = ''; known !== idsOf(records); records = this.records()) {
      known = idsOf(records);
      const found = await findKeys(records, this.sources).catch(() => undefined);
      await readRecords();
      if (lockCount !== this.#lockCount || this.#keys !== held) return;
      if (found?.at === 'ok') return this.replaceKeys(found.keys);
    }
    this.#keys = undefined;
    this.#state = {
      at: 'mismatch',
      why: `another process has rotated the key, and ${held.source.name} of this process does not have the new key`,
      remedy: 'Provide the new key to this process too, for example as HELMDECK_MEMORY_KEY_NEXT_FILE, and start it again.',
    };
    this.#announce();
  }

  /**
   * Decrypts one of the database's own secrets, each of which is bound to its name. Undefined if the secret is missing or its
   * seal is broken.
   */
  readSecret(name: string): Buffer | undefined {
    const sealed = this.#connection.meta(name);
    if (!Buffer.isBuffer(sealed)) return undefined;
    try {
      const secret = openBytes(this.ring, ['secret', name], sealed);
      this.#broken.delete(name);
      return secret;
    } catch (error) {
      if (!(error instanceof BrokenSeal)) throw error;
      this.#broken.add(name);
      return undefined;
    }
  }

  get brokenSecretCount(): number {
    return this.#broken.size;
  }

  /** Counts the secrets that cannot be decrypted in `connection`, which can be a backup. */
  countBrokenSecrets(connection: KeyTables): number {
    const names = connection.secretNames().filter((name) => !WRAPPED_KEY_NAMES.has(name));
    return names.filter((name) => !opens(this.ring, name, connection.meta(name))).length;
  }

  /**
   * Returns the HMAC key for the names of forgotten facts. Rotations keep this key, so that tombstones still match old backups.
   * Call it in a transaction, because the first call creates the key.
   */
  tombstoneKey(): Buffer | undefined {
    const stored = this.readSecret(TOMBSTONE_KEY);
    // Do not replace a key with a broken seal, because existing tombstones would not match a new key.
    if (stored || this.#broken.has(TOMBSTONE_KEY)) return stored;
    const created = randomBytes(32);
    this.saveSecret(TOMBSTONE_KEY, created);
    return created;
  }

  /** Encrypts a secret and stores it under its name. Call it in a transaction. */
  saveSecret(name: string, secret: Buffer): void {
    this.#connection.setMeta(name, sealBytes(this.sealingKey(), ['secret', name], secret));
  }

  /** Deletes a secret. Works without the master key. Call it in a transaction. */
  deleteSecret(name: string): void {
    this.#connection.deleteMeta(name);
    this.#broken.delete(name);
  }

  /**
   * Encrypts every secret with the current key. Skips wrapped keys, which only the recovery key can decrypt, and secrets with a
   * broken seal. Call it in a transaction.
   */
  resealSecrets(): void {
    for (const name of this.#connection.secretNames()) {
      const secret = WRAPPED_KEY_NAMES.has(name) ? undefined : this.readSecret(name);
      if (secret) this.saveSecret(name, secret);
    }
  }

  async #readKeys(): Promise<KeyState> {
    this.#readAt = this.#clock.steady();
    const lockCount = this.#lockCount;
    const records = this.records();
    const found = await findKeys(records, this.sources);
    const keys = found.at === 'ok' ? found.keys : found.at === 'none' ? await createFirstKey(this.sources) : undefined;
    // Stay locked if the owner locked the memory while the sources were read.
    if (lockCount !== this.#lockCount) return this.state;
    if (keys) {
      this.#lockedByOwner = false;
      this.#keys = keys;
      // Another process can record its key at the same time. Then only that key is right.
      if (records.length > 0) await finishRotation(keys);
      else if (!(await this.#recordFirstKey(keys))) return this.#readKeys();
    } else {
      this.#keys = undefined;
      this.#state = found.at === 'none' || found.at === 'ok' ? NO_KEY : found;
    }
    return this.state;
  }

  /** Records the first key. Afterwards, only this key opens the memory. Returns false if there is a key already. */
  async #recordFirstKey({ ring, source }: HeldKeys): Promise<boolean> {
    try {
      return await this.#connection.transaction(() => {
        if (this.records().length > 0) return false;
        const { id } = ring.current;
        this.#connection.insertKeyRecord({ id, role: 'current', proof: ring.current.proof(), source: source.name });
        this.tombstoneKey();
        return true;
      });
    } catch (error) {
      this.#keys = undefined;
      throw error;
    }
  }

  #announce(): void {
    const { at } = this.state;
    if (at === this.#announced) return;
    this.#announced = at;
    for (const listener of this.#listeners) listener();
  }
}

const idsOf = (records: readonly KeyRecord[]): string =>
  records
    .map(({ id, role }) => `${role} ${id.toString('hex')}`)
    .toSorted()
    .join();

const isKey = (key: SealingKey | undefined, id: Buffer | undefined): boolean => (id ? key?.id.equals(id) === true : !key);

function opens(ring: KeyRing, name: string, sealed: unknown): boolean {
  if (!Buffer.isBuffer(sealed)) return false;
  try {
    openBytes(ring, ['secret', name], sealed);
    return true;
  } catch (error) {
    if (error instanceof BrokenSeal) return false;
    throw error;
  }
}

/** Completes a rotation that ended in the database but not in the key source, where the new key is still in the `next` slot. */
async function finishRotation({ ring, source, slot }: HeldKeys): Promise<void> {
  if (ring.retiring || !source.save) return;
  const bytes = ring.current.export();
  try {
    const next = await source.read('next');
    if (next.at !== 'found' || !next.key.equals(bytes)) return;
    if (slot === 'next') await source.save('current', bytes);
    await source.remove?.('next');
  } catch {
    // Ignore the error, because the next startup tries again if the source is busy or locked.
  } finally {
    bytes.fill(0);
  }
}

const NO_KEY: WithoutKey = {
  at: 'absent',
  remedy: 'Create a key with: helmdeck-memory key init --file, or provide one with HELMDECK_MEMORY_KEY.',
};

const refusal = (state: WithoutKey): Failure => new Failure('key_unavailable', describeMissingKey(state));
