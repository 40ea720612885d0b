import { createHash } from 'node:crypto';
import { BrokenSeal, type KeyRing, openBytes, sealBytes, type SealingKey } from '../crypto/cipher.ts';
import type { Namespace } from './store.ts';

/** Number of bytes of a model number. The number fits into a JavaScript number. */
const MODEL_BYTES = 6;

/** The unencrypted columns of a vector and of its fact. The seal authenticates them: a vector of another fact does not open. */
export interface VectorPlace {
  readonly namespace: Namespace;
  readonly row: number;
  readonly model: number;
  /** Update time of the fact. */
  readonly version: number;
  /** Hash of the fact's key. */
  readonly keyHash: Buffer;
}

/** Returns the number that represents a model in the database. The number is a hash, so no table of models is needed. */
export const modelNumber = (model: string): number => createHash('sha256').update(model).digest().readUIntBE(0, MODEL_BYTES);

export const sealVector = (key: SealingKey, place: VectorPlace, vector: Uint8Array): Buffer =>
  sealBytes(key, placeOf(place), Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength));

/** Returns undefined if the seal is broken. */
export function openVector(ring: KeyRing, place: VectorPlace, sealed: unknown): Buffer | undefined {
  // Check the types, because a damaged page can return types that the schema does not allow.
  if (!Buffer.isBuffer(place.keyHash) || !Buffer.isBuffer(sealed)) return undefined;
  try {
    return openBytes(ring, placeOf(place), sealed);
  } catch (error) {
    if (error instanceof BrokenSeal) return undefined;
    throw error;
  }
}

const placeOf = ({ namespace: { subject, session }, row, model, version, keyHash }: VectorPlace): (string | Buffer)[] => [
  'vector',
  subject,
  session ?? '',
  `${row}`,
  `${model}`,
  `${version}`,
  keyHash,
];
