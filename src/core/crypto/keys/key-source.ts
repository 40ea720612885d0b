import { Failure } from '../../../contract/failure.ts';
import { MASTER_KEY_BYTES } from '../cipher.ts';

/** A place for one key in a source. The `next` slot is used only during a rotation. */
export type KeySlot = 'current' | 'next';

/**
 * Result of reading a key source. A source that cannot be read must never be reported as `absent`, because a new key would then
 * be created.
 */
export type KeyReading =
  | { at: 'found'; key: Buffer }
  | { at: 'absent' }
  | { at: 'locked'; why: string }
  | { at: 'unavailable'; why: string };

/** A place that stores master keys. */
export interface KeySource {
  /** Name in messages to the owner, such as "the OS keychain". */
  readonly name: string;
  /** Reads the key of a slot. If the content is not a key, throws a failure that names the source. */
  read(slot: KeySlot): Promise<KeyReading>;
  /** Stores a key. Resolves only after the key was read back unchanged. Absent for read-only sources such as the environment. */
  readonly save?: (slot: KeySlot, key: Buffer) => Promise<void>;
  readonly remove?: (slot: KeySlot) => Promise<void>;
  /** Whether the first startup is allowed to create a key in this source without asking the owner. */
  readonly createsOnFirstStart: boolean;
  /** Whether the source has one key for all memories. Then another key in it can belong to another memory. */
  readonly isShared?: boolean;
}

/** Returns the key sources in the order in which they are read. `memory` identifies one of several memories on a machine. */
export type KeySources = (memory: string) => readonly KeySource[];

/** Parses a key of 64 hexadecimal characters. The failure names the place of the text (`where`) but never quotes the text. */
export function parseKey(text: string, where: string, code: 'key_unavailable' | 'invalid_config' = 'key_unavailable'): Buffer {
  if (!/^[0-9a-f]{64}$/i.test(text)) {
    throw new Failure(
      code,
      `${where} must contain exactly ${MASTER_KEY_BYTES * 2} hexadecimal characters; enter the correct key there, or create a new key with: openssl rand -hex ${MASTER_KEY_BYTES}.`,
    );
  }
  return Buffer.from(text, 'hex');
}
