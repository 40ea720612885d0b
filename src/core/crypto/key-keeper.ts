import { randomBytes } from 'node:crypto';
import { Failure } from '../../contract/failure.ts';
import { type KeyState, describeMissingKey } from '../../contract/status.ts';
import type { Connection } from '../store/connection.ts';
import type { Clock } from '../time/clock.ts';
import { BrokenSeal, openBytes, sealBytes } from './cipher.ts';
import { excludeFromCoreDumps } from './core-dumps.ts';
import { type HeldKeys, findKeys, type KeyRecord, createFirstKey } from './find-keys.ts';
import type { KeyRing, SealingKey } from './key-ring.ts';
import type { KeySource } from './keys/key-source.ts';
import { WRAPPED_KEY_NAMES } from './recovery-key.ts';

/** A key's place is not asked again sooner than this: a keyring may answer by asking its owner on the screen. */
const ASK_AGAIN_MS = 2000;
const TOMBSTONE_KEY = 'tombstone key';
export const STORED_CLOCK = 'clock';

type WithoutKey = Exclude<KeyState, { at: 'ok' | 'ephemeral' }>;

/**
 * Holds the keys while they may be held, and says where they stand. Everything that seals or opens asks here, so
 * dropping them here is locking the memory.
 */
export class KeyKeeper {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly sources: readonly KeySource[];
  #custody: HeldKeys | undefined;
  #state: WithoutKey = { at: 'locked', why: 'its key has not been asked for yet', remedy: 'Try again.' };
  #lockedByOwner = false;
  #locks = 0;
  #askedAt = -Infinity;
  #asking: { locks: number; answer: Promise<KeyState> } | undefined;
  readonly #broken = new Set<string>();

  constructor(connection: Connection, clock: Clock, sources: readonly KeySource[]) {
    this.#connection = connection;
    this.#clock = clock;
    this.sources = sources;
    excludeFromCoreDumps();
  }

  get state(): KeyState {
    return this.#custody ? { at: 'ok', source: this.#custody.source.name } : this.#state;
  }

  /** The keys, or the failure that says where they are and what to do. */
  get ring(): KeyRing {
    return this.requireKeys().ring;
  }

  get heldKeys(): HeldKeys | undefined {
    return this.#custody;
  }

  /** The same, and where they came from. */
  requireKeys(): HeldKeys {
    if (this.#custody) return this.#custody;
    throw refusal(this.#state);
  }

  /** Asks the key's place once more if it was closed before: an unlocked keyring needs no restart of ours. */
  async retryUnlock(): Promise<void> {
    if (this.#custody || this.#lockedByOwner) return;
    if (this.#asking || this.#clock.steady() - this.#askedAt >= ASK_AGAIN_MS) await this.unlock();
  }

  lock(why = 'its owner locked it'): void {
    this.#locks += 1;
    this.#custody = undefined;
    this.#lockedByOwner = true;
    this.#state = {
      at: 'locked',
      why,
      remedy: 'Unlock it in the window, or with: helmdeck-memory unlock.',
    };
  }

  unlock(): Promise<KeyState> {
    if (this.#asking?.locks === this.#locks) return this.#asking.answer;
    // An answer to what was asked before the owner locked is no answer any more.
    const before = this.#asking?.answer.catch(() => undefined);
    const asking = {
      locks: this.#locks,
      answer: Promise.resolve(before)
        .then(() => this.#ask())
        .finally(() => {
          if (this.#asking === asking) this.#asking = undefined;
        }),
    };
    this.#asking = asking;
    return asking.answer;
  }

  /** The key to seal with, with room for at least one record. Only inside a transaction: it may open a segment. */
  sealingKey(): SealingKey {
    const key = this.ring.current;
    if (key.recordsLeft === 0) {
      const kept = this.records().find((record) => record.id.equals(key.id))?.segment ?? 0;
      const segment = Math.max(kept, key.currentSegment) + 1;
      this.#connection.sql.updateSegment.run(segment, key.id);
      key.openSegment(segment);
    }
    return key;
  }

  /** The transaction that may have opened a segment did not hold. */
  abandonSegment(): void {
    this.#custody?.ring.current.abandonSegment();
  }

  records(): (KeyRecord & { segment: number })[] {
    return this.#connection.sql.keyRecords.all() as (KeyRecord & { segment: number })[];
  }

  /** Takes over new keys, as a rotation brings them; not if the memory was locked meanwhile. */
  replaceKeys(custody: HeldKeys): void {
    this.requireKeys();
    this.#custody = custody;
  }

  /** A secret of the database's own, sealed with the key and bound to its name. Undefined if it is not there or broken. */
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

  /** Secrets whose seal was found broken. */
  get brokenSecretCount(): number {
    return this.#broken.size;
  }

  /** How many secrets do not open in this file or in a copy of it. */
  countBrokenSecrets(connection: Connection): number {
    const names = (connection.sql.metaBlobs.all() as string[]).filter((name) => !WRAPPED_KEY_NAMES.has(name));
    return names.filter((name) => !opens(this.ring, name, connection.meta(name))).length;
  }

  /** What hashes the names of the forgotten. Rotations hand it on, so that old backups stay covered. Only inside a transaction. */
  tombstoneKey(): Buffer | undefined {
    const kept = this.readSecret(TOMBSTONE_KEY);
    // A new one in the place of a broken one would not know the names that the old one hashed.
    if (kept || this.#broken.has(TOMBSTONE_KEY)) return kept;
    const made = randomBytes(32);
    this.saveSecret(TOMBSTONE_KEY, made);
    return made;
  }

  /** Only inside a transaction. */
  saveSecret(name: string, secret: Buffer): void {
    this.#connection.setMeta(name, sealBytes(this.sealingKey(), ['secret', name], secret));
  }

  /** Needs no key. Only inside a transaction. */
  deleteSecret(name: string): void {
    this.#connection.deleteMeta(name);
    this.#broken.delete(name);
  }

  /**
   * Hands every secret on to the key that seals now, whatever it is for. What only the recovery key opens is no secret of
   * ours, and a broken one stays as it is. Only inside a transaction.
   */
  resealSecrets(): void {
    for (const name of this.#connection.sql.metaBlobs.all() as string[]) {
      const secret = WRAPPED_KEY_NAMES.has(name) ? undefined : this.readSecret(name);
      if (secret) this.saveSecret(name, secret);
    }
  }

  async #ask(): Promise<KeyState> {
    this.#askedAt = this.#clock.steady();
    const locks = this.#locks;
    const records = this.records();
    const found = await findKeys(records, this.sources);
    const custody = found.at === 'ok' ? found.custody : found.at === 'none' ? await createFirstKey(this.sources) : undefined;
    // Locked while the key's place was asked: that was the owner's later word.
    if (locks !== this.#locks) return this.state;
    if (custody) {
      this.#lockedByOwner = false;
      this.#custody = custody;
      if (records.length === 0) this.#begin(custody);
      else await settle(custody);
    } else {
      this.#custody = undefined;
      this.#state = found.at === 'none' || found.at === 'ok' ? NO_KEY : found;
    }
    return this.state;
  }

  /** From now on this memory has a key, and nothing else will do. */
  #begin({ ring, source }: HeldKeys): void {
    try {
      this.#connection.begin();
      this.#connection.sql.insertKeyRecord.run(ring.current.id, 'current', ring.current.proof(), source.name);
      this.tombstoneKey();
      this.#connection.commit();
    } catch (error) {
      this.#connection.rollback();
      this.abandonSegment();
      this.#custody = undefined;
      throw error;
    }
  }
}

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

/** A rotation that ended in the database but not yet in the key's place ends here. Until it does, the next slot serves. */
async function settle({ ring, source, slot }: HeldKeys): Promise<void> {
  if (ring.retiring || !source.save) return;
  const bytes = ring.current.export();
  try {
    const next = await source.read('next');
    if (next.at !== 'found' || !next.key.equals(bytes)) return;
    if (slot === 'next') await source.save('current', bytes);
    await source.remove?.('next');
  } catch {
    // The place is busy or closed just now; the next start tries again.
  } finally {
    bytes.fill(0);
  }
}

const NO_KEY: WithoutKey = {
  at: 'absent',
  remedy: 'Make a key with: helmdeck-memory key init --file, or hand one in with HELMDECK_MEMORY_KEY.',
};

const refusal = (state: WithoutKey): Failure => new Failure('key_unavailable', describeMissingKey(state));
