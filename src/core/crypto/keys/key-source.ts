import { Failure } from '../../../contract/failure.ts';
import { MASTER_KEY_BYTES } from '../cipher.ts';

/** The `next` slot holds a key during a rotation. */
export type KeySlot = 'current' | 'next';

/** An unreadable source must never look empty, because then a new key would be created. */
export type KeyReading =
  | { at: 'found'; key: Buffer }
  | { at: 'absent' }
  | { at: 'locked'; why: string }
  | { at: 'unavailable'; why: string };

/** A place that stores a master key. */
export interface KeySource {
  /** The name shown to the owner, such as "the OS keychain". */
  readonly name: string;
  /** Throws a failure that names the source if its content is not a key. */
  read(slot: KeySlot): Promise<KeyReading>;
  /** Absent for read-only sources such as the environment. Resolves only when the key reads back the same. */
  readonly save?: (slot: KeySlot, key: Buffer) => Promise<void>;
  readonly remove?: (slot: KeySlot) => Promise<void>;
  /** Whether the first start may create a key here without asking. */
  readonly createsOnFirstStart: boolean;
}

/** Parses 64 hexadecimal characters. The failure names where they were expected, and never quotes them. */
export function parseKey(text: string, where: string, code: 'key_unavailable' | 'invalid_config' = 'key_unavailable'): Buffer {
  if (!/^[0-9a-f]{64}$/i.test(text)) {
    throw new Failure(
      code,
      `${where} must hold exactly ${MASTER_KEY_BYTES * 2} hexadecimal characters; put the right key there, or make one with: openssl rand -hex ${MASTER_KEY_BYTES}.`,
    );
  }
  return Buffer.from(text, 'hex');
}
