import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto';
import type { Author, Kind, Namespace } from '../store/store.ts';
import { encodeFrame, decodeFrame } from './frame.ts';
import { KEY_ID_BYTES, type KeyRing, type SealingKey } from './key-ring.ts';

/**
 * A sealed entry is: format ‖ key id ‖ segment ‖ nonce ‖ ciphertext ‖ tag.
 *
 * Format, key id and segment are readable without the key, and authenticated with everything else (R-SEAL).
 */
const FORMAT = 1;
/** The format of an entry whose author has one more field, `definedBy`. All other entries use the first format. */
const DEFINED_FORMAT = 2;
const NONCE_BYTES = 12;
const RANDOM_BYTES = 16;
const TAG_BYTES = 16;
const SEGMENT_AT = 1 + KEY_ID_BYTES;
const NONCE_AT = SEGMENT_AT + 4;
const BODY_AT = NONCE_AT + NONCE_BYTES;

/** The unencrypted columns of an entry. They are authenticated: if one is changed, the seal does not open. */
export interface SealContext {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly keyHash: Buffer;
  readonly category: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number;
}

/** The encrypted fields of an entry. */
export interface EntryContent {
  readonly key: string;
  readonly value: string;
  readonly tags: readonly string[];
  readonly author: Author;
}

/** The seal does not match its row: the row was edited, moved or cut, or sealed with a key that we do not have. */
export class BrokenSeal extends Error {
  override readonly name = 'BrokenSeal';
}

export function sealEntry(key: SealingKey, place: SealContext, body: EntryContent): Buffer {
  const { key: name, value, tags, author } = body;
  const { client, transport, token, definedBy } = author;
  if (definedBy === undefined)
    return sealBytes(key, placeOf(place), encodeFrame([name, value, client, transport, token, ...tags]));
  return sealBytes(key, placeOf(place), encodeFrame([name, value, client, transport, token, definedBy, ...tags]), DEFINED_FORMAT);
}

export function openEntry(ring: KeyRing, place: SealContext, sealed: Buffer): EntryContent {
  // A damaged page can return columns of types that the schema does not allow.
  if (!Buffer.isBuffer(place.keyHash) || typeof place.category !== 'string' || !Buffer.isBuffer(sealed)) {
    throw new BrokenSeal('This is not a row of ours.');
  }
  const plain = openBytes(ring, placeOf(place), sealed);
  const [key, value, client, transport, token, ...rest] = decodeFrame(plain, 0, plain.length, Infinity);
  if (key === undefined || value === undefined || client === undefined || transport === undefined || token === undefined) {
    throw new BrokenSeal('The sealed fields are incomplete.');
  }
  const author = { client, transport, token };
  if (sealed[0] !== DEFINED_FORMAT) return { key, value, tags: rest, author };
  const [definedBy, ...tags] = rest;
  if (definedBy === undefined) throw new BrokenSeal('The sealed fields are incomplete.');
  return { key, value, tags, author: { ...author, definedBy } };
}

/** Seals a secret that is not an entry, and binds it to `place`. */
export function sealBytes(key: SealingKey, place: readonly (string | Buffer)[], plain: Buffer, format = FORMAT): Buffer {
  const { segment, secret } = key.nextSegment();
  const sealed = Buffer.allocUnsafe(BODY_AT + plain.length + TAG_BYTES);
  sealed.writeUInt8(format, 0);
  sealed.set(key.id, 1);
  sealed.writeUInt32BE(segment, SEGMENT_AT);
  const aad = encodeFrame([sealed.subarray(0, SEGMENT_AT), ...place]);
  key.nonce([nextRandom(), aad, plain]).copy(sealed, NONCE_AT, 0, NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', secret, sealed.subarray(NONCE_AT, BODY_AT), { authTagLength: TAG_BYTES });
  cipher.setAAD(aad);
  sealed.set(cipher.update(plain), BODY_AT);
  cipher.final();
  sealed.set(cipher.getAuthTag(), BODY_AT + plain.length);
  return sealed;
}

export function openBytes(ring: KeyRing, place: readonly (string | Buffer)[], sealed: Buffer): Buffer {
  const known = sealed[0] === FORMAT || sealed[0] === DEFINED_FORMAT;
  if (sealed.length < BODY_AT + TAG_BYTES || !known) throw new BrokenSeal('This is not a sealed entry.');
  const key = ring.find(sealed.subarray(1, SEGMENT_AT));
  if (!key) throw new BrokenSeal('It was sealed with another key.');
  // By default Node accepts tags of 4 bytes, which can be guessed in hours.
  const decipher = createDecipheriv(
    'aes-256-gcm',
    key.segment(sealed.readUInt32BE(SEGMENT_AT)),
    sealed.subarray(NONCE_AT, BODY_AT),
    {
      authTagLength: TAG_BYTES,
    },
  );
  decipher.setAAD(encodeFrame([sealed.subarray(0, SEGMENT_AT), ...place]));
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  const plain = decipher.update(sealed.subarray(BODY_AT, sealed.length - TAG_BYTES));
  try {
    decipher.final();
  } catch (cause) {
    throw new BrokenSeal('The seal is broken.', { cause });
  }
  return plain;
}

/** The id of the key in the header of a sealed entry. It is proved only by opening the entry. Empty for a damaged row. */
export const keyIdOf = (sealed: Buffer): Buffer => (Buffer.isBuffer(sealed) ? sealed.subarray(1, SEGMENT_AT) : Buffer.alloc(0));

const placeOf = (place: SealContext): (string | Buffer)[] => {
  const times = Buffer.allocUnsafe(24);
  // Doubles hold every millisecond exactly, and accept any number from an edited column without throwing.
  times.writeDoubleBE(place.createdAt, 0);
  times.writeDoubleBE(place.updatedAt, 8);
  times.writeDoubleBE(place.expiresAt, 16);
  const { subject, session } = place.namespace;
  return [
    place.kind,
    subject,
    session ?? '',
    place.keyHash,
    place.category,
    times.subarray(0, 8),
    times.subarray(8, 16),
    times.subarray(16),
  ];
};

/** One system call fills the whole pool, which is faster than one call for each nonce. */
const pool = Buffer.alloc(RANDOM_BYTES * 1024);
let used = pool.length;

/**
 * The random part of a nonce. Two copies of one running machine can draw the same bytes, so the nonce also depends on the
 * sealed text. A repeated nonce then means the same text in the same place, which reveals nothing new.
 */
function nextRandom(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool.subarray(used, (used += RANDOM_BYTES));
}
