import { Failure } from '../../../contract/failure.ts';
import { MASTER_KEY_BYTES } from '../key-ring.ts';

/** `next` holds a key from the start of a rotation until its end. */
export type KeySlot = 'current' | 'next';

/** A place that cannot be read is never told as one that is empty: nobody may make a new key because of it. */
export type KeyReading =
  | { at: 'found'; key: Buffer }
  | { at: 'absent' }
  | { at: 'locked'; why: string }
  | { at: 'unavailable'; why: string };

/** A place where a master key is kept. */
export interface KeySource {
  /** As it is told to the owner: "the OS keychain". */
  readonly name: string;
  /** Throws a failure that names the place if what stands there is not a key. */
  read(slot: KeySlot): Promise<KeyReading>;
  /** Absent where the owner alone writes, as in the environment. Fulfils only when the key reads back the same. */
  readonly save?: (slot: KeySlot, key: Buffer) => Promise<void>;
  readonly remove?: (slot: KeySlot) => Promise<void>;
  /** Whether a first start may make a key here without being asked. */
  readonly createsOnFirstStart: boolean;
}

/** 64 hexadecimal characters, or a failure that names where they were expected but never what stood there. */
export function parseKey(text: string, where: string): Buffer {
  if (!/^[0-9a-f]{64}$/i.test(text)) {
    throw new Failure(
      'key_unavailable',
      `${where} must hold exactly ${MASTER_KEY_BYTES * 2} hexadecimal characters; put the right key there, or make one with: openssl rand -hex ${MASTER_KEY_BYTES}.`,
    );
  }
  return Buffer.from(text, 'hex');
}
