import { createHmac, createSecretKey, hkdfSync, timingSafeEqual, type KeyObject } from 'node:crypto';
import type { Namespace } from '../store/store.ts';
import { encodeFrame } from './frame.ts';

export const MASTER_KEY_BYTES = 32;
export const KEY_ID_BYTES = 4;
const KEY_HASH_BYTES = 16;

/**
 * Records sealed with one derived key. The limit keeps a repeated random nonce implausible (R-SEAL).
 * @internal
 */
export const SEGMENT_RECORDS = 2 ** 20;
/** Size of the cache of derived keys. Each start opens a new segment, so there can be many. */
const SEGMENTS_AT_HAND = 1024;

/** All keys derived from one master key, which itself seals nothing. Counts the records left in the open segment. */
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

  /** Lets the database recognize this key. The key cannot be derived from it. */
  proof(): Buffer {
    return derive(this.#master, 'proof', 32);
  }

  matchesProof(proof: Uint8Array): boolean {
    const own = this.proof();
    return own.length === proof.length && timingSafeEqual(own, proof);
  }

  /** Replaces a key on disk. It depends on the namespace, so equal keys of two subjects look unrelated. */
  hash(namespace: Namespace, key: string): Buffer {
    // A write looks up the row and then seals it, so the same hash is needed twice in a row.
    if (key === this.#hashed?.key && namespace === this.#hashed.namespace) return this.#hashed.hash;
    const { subject, session } = namespace;
    const hash = createHmac('sha256', this.#hashes)
      .update(encodeFrame([subject, session ?? '', key]))
      .digest()
      .subarray(0, KEY_HASH_BYTES);
    this.#hashed = { namespace, key, hash };
    return hash;
  }

  /** Derives pseudorandom bytes from the parts and their lengths. */
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
    if (this.#segments.size >= SEGMENTS_AT_HAND) this.#segments.delete(this.#segments.keys().next().value ?? number);
    this.#segments.set(number, secret);
    return secret;
  }

  /** Records that the open segment can still take. */
  get recordsLeft(): number {
    return this.#left;
  }

  openSegment(number: number): void {
    this.#current = number;
    this.#left = SEGMENT_RECORDS;
  }

  /** After a failed commit the stored segment number is unknown, so the segment is not used again. */
  abandonSegment(): void {
    this.#left = 0;
  }

  get currentSegment(): number {
    return this.#current;
  }

  nextSegment(): { segment: number; secret: KeyObject } {
    if (this.#left <= 0) throw new Error('No segment is open to seal into.');
    this.#left -= 1;
    return { segment: this.#current, secret: this.segment(this.#current) };
  }

  /** The master key, for storing it in another source. */
  export(): Buffer {
    return this.#master.export();
  }
}

/** The current key, and during a rotation also the old one. */
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

  /** The hashes under which a key may be stored; the current one first. */
  hashes(namespace: Namespace, key: string): Buffer[] {
    const hashes = [this.current.hash(namespace, key)];
    if (this.retiring) hashes.push(this.retiring.hash(namespace, key));
    return hashes;
  }
}

const derive = (master: KeyObject, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', master, '', `helmdeck-memory/1 ${purpose}`, bytes));
