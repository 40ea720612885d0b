import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto';
import type { Author, Kind, Namespace } from '../store/store.ts';
import { encodeFrame, decodeFrame } from './frame.ts';
import { KEY_ID_BYTES, type KeyRing, type SealingKey } from './key-ring.ts';

/**
 * format ‖ key id ‖ segment ‖ nonce ‖ ciphertext ‖ tag
 *
 * The first two are read before anything is opened and are sealed in with everything else (R-SEAL).
 */
const FORMAT = 1;
/** An entry whose author has one more field, the client that defined it. Every other entry keeps the first format. */
const DEFINED_FORMAT = 2;
const NONCE_BYTES = 12;
const RANDOM_BYTES = 16;
const TAG_BYTES = 16;
const SEGMENT_AT = 1 + KEY_ID_BYTES;
const NONCE_AT = SEGMENT_AT + 4;
const BODY_AT = NONCE_AT + NONCE_BYTES;

/** Everything about an entry that stands beside its seal. Changed anywhere, the seal will not open. */
export interface SealContext {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly keyHash: Buffer;
  readonly category: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number;
}

/** What only the key opens. */
export interface EntryContent {
  readonly key: string;
  readonly value: string;
  readonly tags: readonly string[];
  readonly author: Author;
}

/** The seal does not fit its place: the row was edited, moved, cut or sealed with a key we do not hold. */
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
  // A damaged page holds columns of types that its table does not allow, and the same bytes as another type bind the same.
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

/** The same seal for the few secrets that are not entries, bound to their name. */
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
  // Node takes tags of 4 bytes unless told otherwise; those fall to a few hours of guessing.
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

/** Which key a blob says it was sealed with; what it says is proved only by opening it. A damaged page may hold none. */
export const keyIdOf = (sealed: Buffer): Buffer => (Buffer.isBuffer(sealed) ? sealed.subarray(1, SEGMENT_AT) : Buffer.alloc(0));

const placeOf = (place: SealContext): (string | Buffer)[] => {
  const times = Buffer.allocUnsafe(24);
  // Doubles hold every millisecond we write exactly, and take whatever an edited column may hold without throwing.
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

/** Random bytes cost less by the page than by the dozen. */
const pool = Buffer.alloc(RANDOM_BYTES * 1024);
let used = pool.length;

/**
 * The random part of a nonce. Two copies of one running machine draw the same bytes here, so a nonce is also derived from
 * what it seals: it repeats only where the same text is sealed for the same place, which tells nothing new.
 */
function nextRandom(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool.subarray(used, (used += RANDOM_BYTES));
}
