import {
  type KeyObject,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomFillSync,
  timingSafeEqual,
} from 'node:crypto';
import type { Author, FormerKey, Kind, Namespace } from '../store/store.ts';

/**
 * Encodes fields, each preceded by its length. Different lists of fields always give different bytes, so encrypted bytes can be
 * decoded in only one way (R-SEAL).
 */
export function encodeFrame(fields: readonly (string | Uint8Array)[]): Buffer {
  const lengths: number[] = [];
  let total = 0;
  for (const field of fields) {
    const length = typeof field === 'string' ? Buffer.byteLength(field) : field.length;
    lengths.push(length);
    total += length + lengthBytes(length);
  }
  const bytes = Buffer.allocUnsafe(total);
  let at = 0;
  let index = 0;
  for (const field of fields) {
    const length = lengths[index] ?? 0;
    index += 1;
    at = writeLength(bytes, at, length);
    if (typeof field !== 'string') bytes.set(field, at);
    else if (length > 0) bytes.write(field, at);
    at += length;
  }
  return bytes;
}

/**
 * Writes the start and the end of each field between two offsets to `bounds`. Returns the number of fields. Throws if a field
 * extends past the end offset.
 */
export function locateFields(bytes: Buffer, from: number, to: number, bounds: number[]): number {
  let count = 0;
  for (let at = from; at < to; count += 1) {
    const first = bytes[at] ?? 0;
    let start = at + 1;
    let length = first;
    if (first >= 0xc0) {
      length = bytes.readUInt32BE(start);
      start = at + 5;
    } else if (first >= 0x80) {
      length = ((first & 0x3f) << 8) | (bytes[start] ?? 0);
      start = at + 2;
    }
    at = start + length;
    if (at > to) throw new RangeError('A frame ends inside a field.');
    bounds[2 * count] = start;
    bounds[2 * count + 1] = at;
  }
  return count;
}

/**
 * Decodes at most `most` fields between two offsets. Throws if a field extends past the end offset.
 * @internal
 */
export function decodeFrame(bytes: Buffer, from: number, to: number, most: number): string[] {
  const bounds: number[] = [];
  const count = Math.min(most, locateFields(bytes, from, to, bounds));
  const texts: string[] = [];
  for (let field = 0; field < count; field += 1) {
    const [start = 0, end = 0] = [bounds[2 * field], bounds[2 * field + 1]];
    texts.push(start === end ? '' : bytes.toString('utf8', start, end));
  }
  return texts;
}

const lengthBytes = (length: number): number => (length < 0x80 ? 1 : length < 0x4000 ? 2 : 5);

/**
 * Writes a length as one byte below 128, two bytes below 16,384, otherwise five bytes. Each length has exactly one encoding.
 * Returns the offset after the length.
 */
function writeLength(bytes: Buffer, at: number, length: number): number {
  if (length < 0x80) {
    bytes[at] = length;
    return at + 1;
  }
  if (length < 0x4000) return bytes.writeUInt16BE(length | 0x8000, at);
  bytes[at] = 0xc0;
  return bytes.writeUInt32BE(length, at + 1);
}

export const MASTER_KEY_BYTES = 32;
const KEY_ID_BYTES = 4;
const KEY_HASH_BYTES = 16;

/**
 * Maximum records encrypted with one derived key, so that a repeated random nonce is very unlikely (R-SEAL).
 * @internal
 */
export const SEGMENT_RECORDS = 2 ** 20;
const MAX_CACHED_SEGMENTS = 1024;

/**
 * Derives all keys from one master key, which itself encrypts nothing. Counts the records that the open segment can still
 * encrypt.
 */
export class SealingKey {
  readonly id: Buffer;
  readonly #master: KeyObject;
  readonly #hashes: KeyObject;
  readonly #nonces: KeyObject;
  readonly #segments = new Map<number, KeyObject>();
  #hashed: { namespace: Namespace; key: string; hash: Buffer } | undefined;
  #current = 0;
  #left = 0;

  constructor(master: Uint8Array) {
    if (master.length !== MASTER_KEY_BYTES) throw new RangeError(`A master key has ${MASTER_KEY_BYTES} bytes.`);
    this.#master = createSecretKey(master);
    this.id = derive(this.#master, 'key id', KEY_ID_BYTES);
    this.#hashes = createSecretKey(derive(this.#master, 'key hash', 32));
    this.#nonces = createSecretKey(derive(this.#master, 'nonce', 32));
  }

  /** Returns bytes that the database stores to recognize this key. The key cannot be derived from these bytes. */
  proof(): Buffer {
    return derive(this.#master, 'proof', 32);
  }

  matchesProof(proof: Uint8Array): boolean {
    const own = this.proof();
    return own.length === proof.length && timingSafeEqual(own, proof);
  }

  /**
   * Returns the hash that represents an entry's key on disk. The hash depends on the namespace, so equal keys of two subjects
   * look unrelated.
   */
  hash(namespace: Namespace, key: string): Buffer {
    // Reuse the last hash, because a write looks up the row and then encrypts it with the same hash.
    if (key === this.#hashed?.key && namespace === this.#hashed.namespace) return this.#hashed.hash;
    const { subject, session } = namespace;
    const hash = createHmac('sha256', this.#hashes)
      .update(encodeFrame([subject, session ?? '', key]))
      .digest()
      .subarray(0, KEY_HASH_BYTES);
    this.#hashed = { namespace, key, hash };
    return hash;
  }

  /** Derives pseudorandom bytes from `parts` and their lengths. */
  nonce(parts: readonly Buffer[]): Buffer {
    const lengths = Buffer.allocUnsafe(4 * parts.length);
    for (const [at, { length }] of parts.entries()) lengths.writeUInt32BE(length, 4 * at);
    const hmac = createHmac('sha256', this.#nonces).update(lengths);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  }

  segment(number: number): KeyObject {
    const known = this.#segments.get(number);
    if (known) return known;
    const secret = createSecretKey(derive(this.#master, `segment ${number}`, 32));
    if (this.#segments.size >= MAX_CACHED_SEGMENTS) this.#segments.delete(this.#segments.keys().next().value ?? number);
    this.#segments.set(number, secret);
    return secret;
  }

  get recordsLeft(): number {
    return this.#left;
  }

  openSegment(number: number): void {
    this.#current = number;
    this.#left = SEGMENT_RECORDS;
  }

  /** Stops using the open segment. Called after a failed commit, because the stored segment number is then unknown. */
  abandonSegment(): void {
    this.#left = 0;
  }

  get currentSegment(): number {
    return this.#current;
  }

  nextSegment(): { segment: number; secret: KeyObject } {
    if (this.#left <= 0) throw new Error('No segment is open.');
    this.#left -= 1;
    return { segment: this.#current, secret: this.segment(this.#current) };
  }

  /** Returns the master key itself, for storing or wrapping it. */
  export(): Buffer {
    return this.#master.export();
  }
}

export class KeyRing {
  readonly current: SealingKey;
  readonly retiring: SealingKey | undefined;

  constructor(current: SealingKey, retiring?: SealingKey) {
    this.current = current;
    this.retiring = retiring;
  }

  find(id: Uint8Array): SealingKey | undefined {
    if (this.current.id.equals(id)) return this.current;
    return this.retiring?.id.equals(id) ? this.retiring : undefined;
  }

  /** Returns the hashes under which an entry's key can be stored, beginning with the hash of the current master key. */
  hashes(namespace: Namespace, key: string): Buffer[] {
    const hashes = [this.current.hash(namespace, key)];
    if (this.retiring) hashes.push(this.retiring.hash(namespace, key));
    return hashes;
  }
}

const derive = (master: KeyObject, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', master, '', `helmdeck-memory/1 ${purpose}`, bytes));

/**
 * Layout of an encrypted entry: format ‖ key id ‖ segment ‖ nonce ‖ ciphertext ‖ tag.
 *
 * Format, key id and segment can be read without the key, and are authenticated together with everything else (R-SEAL).
 */
const FORMAT = 1;
/** Format of an entry that contains its author, and whose author has the field `definedBy`. */
const DEFINED_FORMAT = 2;
/** Format of an entry that contains the number of its author. The segment is as short as possible, like the length of a field. */
const NUMBERED_FORMAT = 3;
/**
 * Added to the format of a version that belonged to a superseded fact. Its first field has the former keys. The second number also
 * marks the version that was current, so that superseded facts can be counted without the key.
 */
const SUPERSEDED = 0x10;
const SUPERSEDED_FACT = 0x30;
const FORMATS: ReadonlySet<number | undefined> = new Set(
  [FORMAT, DEFINED_FORMAT, NUMBERED_FORMAT].flatMap((format) => [format, format | SUPERSEDED, format | SUPERSEDED_FACT]),
);
/** The formats of versions that were the current versions of superseded facts. */
export const SUPERSEDED_FACT_FORMATS: readonly number[] = [FORMAT, DEFINED_FORMAT, NUMBERED_FORMAT].map(
  (format) => format | SUPERSEDED_FACT,
);
/** Returns the format of sealed bytes without the marks of superseded facts. */
const baseFormatOf = (sealed: Buffer): number => (sealed[0] ?? 0) & 0x0f;
const NONCE_BYTES = 12;
const RANDOM_BYTES = 16;
const TAG_BYTES = 16;
/** Length of the number of an author, before the fields of an entry. */
const AUTHOR_BYTES = 5;
/** The numbers of authors are lower. */
export const AUTHOR_NUMBERS = 2 ** (8 * AUTHOR_BYTES);
const SEGMENT_AT = 1 + KEY_ID_BYTES;
const SEGMENT_BYTES = 4;
/** Length of the shortest sealed bytes: those of an empty text, with a segment of one byte. */
const MIN_BYTES = SEGMENT_AT + 1 + NONCE_BYTES + TAG_BYTES;
/** Returns the author of an entry whose author cannot be read. No token can have this client name (R-AUTH-12). */
export const unreadableAuthor = (): Author => ({ client: 'unreadable-author', origin: '', token: '' });

/** The unencrypted columns of an entry. The seal authenticates these columns: if a column is changed, the seal does not open. */
export interface SealContext {
  readonly namespace: Namespace;
  readonly kind: Kind;
  readonly keyHash: Buffer;
  readonly category: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number;
}

export interface EntryContent {
  readonly key: string;
  readonly value: string;
  readonly tags: readonly string[];
  readonly author: Author;
  readonly formerKeys?: readonly FormerKey[];
}

/** The seal does not match its row, because the row was edited, moved, truncated, or encrypted with an unknown key. */
export class BrokenSeal extends Error {
  override readonly name = 'BrokenSeal';
}

/** Seals an entry. With `author`, the entry contains only this number, and the caller stores who has the number. */
export function sealEntry(key: SealingKey, place: SealContext, body: EntryContent, author?: number): Buffer {
  const { key: name, value, tags, formerKeys } = body;
  const former = formerKeys ? [JSON.stringify(formerKeys)] : [];
  const mark = markOf(formerKeys);
  if (author !== undefined) {
    const number = Buffer.alloc(AUTHOR_BYTES);
    number.writeUIntBE(author, 0, AUTHOR_BYTES);
    const plain = Buffer.concat([number, encodeFrame([...former, name, value, ...tags])]);
    return sealBytes(key, placeOf(place), plain, NUMBERED_FORMAT | mark);
  }
  const { client, origin, token, definedBy } = body.author;
  const names = definedBy === undefined ? [client, origin, token] : [client, origin, token, definedBy];
  const format = definedBy === undefined ? FORMAT : DEFINED_FORMAT;
  return sealBytes(key, placeOf(place), encodeFrame([...former, name, value, ...names, ...tags]), format | mark);
}

function markOf(formerKeys: readonly FormerKey[] | undefined): number {
  if (!formerKeys) return 0;
  return formerKeys.at(-1)?.row === undefined ? SUPERSEDED : SUPERSEDED_FACT;
}

/** Opens an entry. `authorOf` returns the author with a number. Without `authorOf`, the author is unreadable. */
export function openEntry(
  ring: KeyRing,
  place: SealContext,
  sealed: Buffer,
  authorOf?: (number: number) => Author,
): EntryContent {
  // Check the types, because a damaged page can return types that the schema does not allow.
  if (!Buffer.isBuffer(place.keyHash) || typeof place.category !== 'string' || !Buffer.isBuffer(sealed)) {
    throw new BrokenSeal('The row was not written by Helmdeck Memory.');
  }
  const plain = decrypt(ring, sealed, (header) => entryPlaceOf(header, place));
  const hasNumber = isNumbered(sealed);
  const fields = decodeFrame(plain, hasNumber ? AUTHOR_BYTES : 0, plain.length, Infinity);
  // The cast is safe: only `sealEntry` writes this field, and the seal proves that it is unchanged.
  const former = isOfSupersededFact(sealed)
    ? { formerKeys: JSON.parse(fields.shift() ?? '') as readonly FormerKey[] }
    : undefined;
  const [key, value, ...rest] = fields;
  if (key === undefined || value === undefined) throw incomplete();
  if (hasNumber) {
    const author = authorOf?.(plain.readUIntBE(0, AUTHOR_BYTES)) ?? unreadableAuthor();
    return former ? { key, value, tags: rest, author, ...former } : { key, value, tags: rest, author };
  }
  const size = baseFormatOf(sealed) === DEFINED_FORMAT ? 4 : 3;
  return { key, value, tags: rest.slice(size), author: authorFrom(rest.slice(0, size)), ...former };
}

const incomplete = (): BrokenSeal => new BrokenSeal('The sealed fields are incomplete.');

function authorFrom([client, origin, token, definedBy]: readonly string[]): Author {
  if (client === undefined || origin === undefined || token === undefined) throw incomplete();
  return { client, origin, token, ...(definedBy !== undefined && { definedBy }) };
}

/** The unencrypted columns of the row of a numbered author, and its number. The seal authenticates them. */
export interface AuthorPlace {
  readonly namespace: Namespace;
  readonly number: number;
  readonly expiresAt: number;
}

export const sealAuthor = (key: SealingKey, place: AuthorPlace, { client, origin, token, definedBy }: Author): Buffer =>
  sealBytes(
    key,
    authorPlaceOf(place),
    encodeFrame(definedBy === undefined ? [client, origin, token] : [client, origin, token, definedBy]),
  );

export function openAuthor(ring: KeyRing, place: AuthorPlace, sealed: Buffer): Author {
  if (!Buffer.isBuffer(sealed)) throw new BrokenSeal('The row was not written by Helmdeck Memory.');
  const plain = openBytes(ring, authorPlaceOf(place), sealed);
  return authorFrom(decodeFrame(plain, 0, plain.length, Infinity));
}

const authorPlaceOf = ({ namespace: { subject, session }, number, expiresAt }: AuthorPlace): string[] => [
  'author',
  subject,
  session ?? '',
  `${number}`,
  `${expiresAt}`,
];

/** Encrypts bytes and binds them to `place`: they can be decrypted only with the same `place`. */
export function sealBytes(key: SealingKey, place: readonly (string | Buffer)[], plain: Buffer, format = FORMAT): Buffer {
  const { segment, secret } = key.nextSegment();
  const isShort = (format & 0x0f) === NUMBERED_FORMAT;
  const nonceAt = SEGMENT_AT + (isShort ? lengthBytes(segment) : SEGMENT_BYTES);
  const bodyAt = nonceAt + NONCE_BYTES;
  const sealed = Buffer.allocUnsafe(bodyAt + plain.length + TAG_BYTES);
  sealed.writeUInt8(format, 0);
  sealed.set(key.id, 1);
  if (isShort) writeLength(sealed, SEGMENT_AT, segment);
  else sealed.writeUInt32BE(segment, SEGMENT_AT);
  const aad = encodeFrame([headerOf(sealed, nonceAt), ...place]);
  key.nonce([nextRandom(), aad, plain]).copy(sealed, nonceAt, 0, NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', secret, sealed.subarray(nonceAt, bodyAt), { authTagLength: TAG_BYTES });
  cipher.setAAD(aad);
  sealed.set(cipher.update(plain), bodyAt);
  cipher.final();
  sealed.set(cipher.getAuthTag(), bodyAt + plain.length);
  return sealed;
}

export const openBytes = (ring: KeyRing, place: readonly (string | Buffer)[], sealed: Buffer): Buffer =>
  decrypt(ring, sealed, (header) => encodeFrame([header, ...place]));

/** Decrypts bytes. `placeAfter` returns the bytes that the seal authenticates: the frame of the header and the place. */
function decrypt(ring: KeyRing, sealed: Buffer, placeAfter: (header: Buffer) => Buffer): Buffer {
  if (sealed.length < MIN_BYTES || !FORMATS.has(sealed[0])) throw new BrokenSeal('The bytes are not an encrypted entry.');
  const key = ring.find(sealed.subarray(1, SEGMENT_AT));
  if (!key) throw new BrokenSeal('The entry was encrypted with another key.');
  const { segment, nonceAt } = segmentOf(sealed);
  const bodyAt = nonceAt + NONCE_BYTES;
  if (sealed.length < bodyAt + TAG_BYTES) throw new BrokenSeal('The bytes are not an encrypted entry.');
  // Require the full tag length, because by default Node accepts tags of 4 bytes, which an attacker can guess in hours.
  const decipher = createDecipheriv('aes-256-gcm', key.segment(segment), sealed.subarray(nonceAt, bodyAt), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(placeAfter(headerOf(sealed, nonceAt)));
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  const plain = decipher.update(sealed.subarray(bodyAt, sealed.length - TAG_BYTES));
  try {
    decipher.final();
  } catch (cause) {
    throw new BrokenSeal('The seal is broken.', { cause });
  }
  return plain;
}

/**
 * Returns the header bytes that the seal authenticates. The older formats leave out the segment, which decides the derived key. A
 * short segment could be written in a longer way, so the newer format includes its bytes.
 */
const headerOf = (sealed: Buffer, nonceAt: number): Buffer => sealed.subarray(0, isNumbered(sealed) ? nonceAt : SEGMENT_AT);

function segmentOf(sealed: Buffer): { segment: number; nonceAt: number } {
  const first = sealed[SEGMENT_AT] ?? 0;
  if (!isNumbered(sealed)) {
    return { segment: sealed.readUInt32BE(SEGMENT_AT), nonceAt: SEGMENT_AT + SEGMENT_BYTES };
  }
  if (first < 0x80) return { segment: first, nonceAt: SEGMENT_AT + 1 };
  if (first < 0xc0) return { segment: sealed.readUInt16BE(SEGMENT_AT) & 0x3fff, nonceAt: SEGMENT_AT + 2 };
  return { segment: sealed.readUInt32BE(SEGMENT_AT + 1), nonceAt: SEGMENT_AT + 5 };
}

/**
 * Returns the id of the key in the header of an encrypted entry, or an empty buffer for a damaged row. Anyone can write a false
 * id; only decrypting the entry proves the id.
 */
export const keyIdOf = (sealed: Buffer): Buffer => (Buffer.isBuffer(sealed) ? sealed.subarray(1, SEGMENT_AT) : Buffer.alloc(0));

/** Whether an encrypted entry contains the number of its author, and not the author. */
export const isNumbered = (sealed: Buffer): boolean => baseFormatOf(sealed) === NUMBERED_FORMAT;

/** Whether an encrypted version belonged to a fact that was superseded. Only decrypting the version proves it. */
export const isOfSupersededFact = (sealed: Buffer): boolean => Buffer.isBuffer(sealed) && ((sealed[0] ?? 0) & SUPERSEDED) !== 0;

/** Whether an encrypted version was the current version of a fact that was superseded. */
export const isSupersededFact = (sealed: Buffer): boolean =>
  Buffer.isBuffer(sealed) && ((sealed[0] ?? 0) & SUPERSEDED_FACT) === SUPERSEDED_FACT;

const placeOf = (place: SealContext): (string | Buffer)[] => {
  const times = Buffer.allocUnsafe(24);
  // Write times as doubles, which represent every millisecond exactly and accept any number from an edited column without
  // throwing.
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

let scratch = Buffer.allocUnsafe(1024);
let lastSpace: { namespace: Namespace; kind: Kind; frame: Buffer } | undefined;

/**
 * Returns the same bytes as `encodeFrame([header, ...placeOf(place)])`, for many entries of one namespace with fewer allocations. The
 * bytes are valid until the next call.
 */
function entryPlaceOf(header: Buffer, place: SealContext): Buffer {
  const { namespace, kind, keyHash, category } = place;
  if (lastSpace?.namespace !== namespace || lastSpace.kind !== kind) {
    const { subject, session } = namespace;
    lastSpace = { namespace, kind, frame: encodeFrame([kind, subject, session ?? '']) };
  }
  const { frame } = lastSpace;
  const categoryBytes = Buffer.byteLength(category);
  // A length takes at most 5 bytes. Three times follow, of 8 bytes each.
  const most = header.length + frame.length + keyHash.length + categoryBytes + 3 * 5 + 3 * 9;
  if (scratch.length < most) scratch = Buffer.allocUnsafe(most);
  let at = writeLength(scratch, 0, header.length);
  scratch.set(header, at);
  scratch.set(frame, (at += header.length));
  at = writeLength(scratch, at + frame.length, keyHash.length);
  scratch.set(keyHash, at);
  at = writeLength(scratch, at + keyHash.length, categoryBytes);
  scratch.write(category, at);
  at += categoryBytes;
  for (const time of [place.createdAt, place.updatedAt, place.expiresAt]) {
    at = scratch.writeDoubleBE(time, writeLength(scratch, at, 8));
  }
  return scratch.subarray(0, at);
}

/** Pool of random bytes. One system call fills the whole pool, which is faster than one call for each nonce. */
const pool = Buffer.alloc(RANDOM_BYTES * 1024);
let used = pool.length;

/**
 * Returns the random part of a nonce. Two copies of a running virtual machine can generate the same bytes, so the nonce also
 * depends on the encrypted text. A repeated nonce then means the same text in the same place, which reveals nothing new.
 */
function nextRandom(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool.subarray(used, (used += RANDOM_BYTES));
}
