import { randomInt } from 'node:crypto';
import { encodeFrame, locateFields } from '../crypto/cipher.ts';
import { growTo } from './tables.ts';

/** Bytes of a page. A longer text gets a page of its own length. */
const PAGE = 1 << 16;
/**
 * Bytes of the header of a text: the number of its fact or name, and its length in bytes, four bytes each. The highest bit of the
 * length is 1 if all fields are ASCII.
 */
const HEADER = 8;
const ASCII_BIT = 0x80000000;
const LENGTH_BITS = 0x7fffffff;
const NO_OWNER = 0xffffffff;
const NO_BYTES = Buffer.alloc(0);

/** The bytes of a text, until the next text is located, added or removed. */
export interface LocatedText {
  bytes: Buffer;
  isAscii: boolean;
  /** The number of fields. */
  count: number;
  /** The start and the end of each field in `bytes`. */
  readonly bounds: number[];
}

/**
 * Stores texts as UTF-8 bytes outside the JavaScript heap. Such bytes often need half the memory of a string, which uses two
 * bytes for each character if one character is outside Latin-1. Unlike a string, bytes can also be overwritten when a fact is
 * forgotten.
 */
export class TextPages {
  readonly #pages: { bytes: Buffer; used: number; live: number }[] = [];
  readonly #empty: number[] = [];
  readonly #moved: (owner: number, address: number) => void;
  readonly #page: number;
  #bytes = 0;
  #current = -1;
  /** Used again for each text, because a search locates many of them. */
  readonly #located: LocatedText = { bytes: NO_BYTES, isAscii: true, count: 0, bounds: [] };

  /** Calls `moved` when the address of a text changes. */
  constructor(moved: (owner: number, address: number) => void, page = PAGE) {
    this.#moved = moved;
    this.#page = page;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Stores the fields as one text and returns its address. `owner` identifies the text in calls of `moved`. */
  add(owner: number, fields: readonly string[]): number {
    const body = encodeFrame(fields);
    return this.#append(owner, body, fields.every((field) => Buffer.byteLength(field) === field.length) ? ASCII_BIT : 0);
  }

  locate(address: number): LocatedText {
    const { bytes } = this.#pageAt(Math.floor(address / this.#page));
    const at = address % this.#page;
    const length = bytes.readUInt32LE(at + 4);
    const located = this.#located;
    located.bytes = bytes;
    located.isAscii = length >= ASCII_BIT;
    located.count = locateFields(bytes, at + HEADER, at + HEADER + (length & LENGTH_BITS), located.bounds);
    return located;
  }

  /** Returns at most `most` fields of a text. */
  read(address: number, most = Infinity): string[] {
    const located = this.locate(address);
    return Array.from({ length: Math.min(located.count, most) }, (_, field) => fieldOf(located, field));
  }

  remove(address: number): void {
    const number = Math.floor(address / this.#page);
    const page = this.#pageAt(number);
    const length = HEADER + (page.bytes.readUInt32LE((address % this.#page) + 4) & LENGTH_BITS);
    // Keep the header, because the length in it is needed to find the next text of the page.
    page.bytes.fill(0, (address % this.#page) + HEADER, (address % this.#page) + length);
    page.live -= length;
    page.bytes.writeUInt32LE(NO_OWNER, address % this.#page);
    if (number !== this.#current && 2 * page.live < page.used) this.#vacate(number);
  }

  clear(): void {
    for (const page of this.#pages) page.bytes.fill(0);
  }

  #append(owner: number, body: Buffer, ascii: number): number {
    const length = HEADER + body.length;
    let page = this.#pages[this.#current];
    if (page === undefined || page.used + length > this.#page) {
      this.#current = this.#empty.pop() ?? this.#pages.length;
      page = { bytes: Buffer.alloc(Math.max(this.#page, length)), used: 0, live: 0 };
      this.#bytes += page.bytes.length;
      this.#pages[this.#current] = page;
    }
    const at = page.used;
    page.bytes.writeUInt32LE(owner, at);
    page.bytes.writeUInt32LE(body.length + ascii, at + 4);
    body.copy(page.bytes, at + HEADER);
    page.used += length;
    page.live += length;
    return this.#current * this.#page + at;
  }

  /** Moves the remaining texts of a page that is mostly empty, and frees that page. */
  #vacate(number: number): void {
    const page = this.#pageAt(number);
    for (let at = 0; at < page.used;) {
      const owner = page.bytes.readUInt32LE(at);
      const length = page.bytes.readUInt32LE(at + 4);
      const end = at + HEADER + (length & LENGTH_BITS);
      const ascii = length >= ASCII_BIT ? ASCII_BIT : 0;
      if (owner !== NO_OWNER) this.#moved(owner, this.#append(owner, page.bytes.subarray(at + HEADER, end), ascii));
      at = end;
    }
    page.bytes.fill(0);
    this.#bytes -= page.bytes.length;
    this.#pages[number] = { bytes: NO_BYTES, used: 0, live: 0 };
    this.#empty.push(number);
  }

  #pageAt(number: number): { bytes: Buffer; used: number; live: number } {
    const page = this.#pages[number];
    if (page === undefined) throw new RangeError('A text address is outside the pages.');
    return page;
  }
}

export function fieldOf({ bytes, isAscii, bounds }: LocatedText, field: number): string {
  const [start = 0, end = 0] = [bounds[2 * field], bounds[2 * field + 1]];
  if (start === end) return '';
  return bytes.toString(isAscii ? 'latin1' : 'utf8', start, end);
}

export interface NameCount {
  readonly name: string;
  /** The number of facts with this name. */
  readonly count: number;
}

/** Bytes of a page of names, which are few and short. */
const NAMES_PAGE = 1 << 12;

/**
 * Counts the facts that have each tag or client. Names can be overwritten like other texts, because the database encrypts names
 * too.
 */
export class NameTable {
  readonly #texts = new TextPages((number, address) => {
    this.#addresses[number] = address;
  }, NAMES_PAGE);
  readonly #numbers = new HashChains();
  readonly #spare: number[] = [];
  #top = 0;
  #addresses = new Uint32Array(0);
  #counts = new Uint32Array(0);

  get bytes(): number {
    return this.#texts.bytes + this.#numbers.bytes + 8 * this.#addresses.length;
  }

  retain(name: string): void {
    const number = this.#find(name) ?? this.#create(name);
    this.#counts[number] = (this.#counts[number] ?? 0) + 1;
  }

  /**
   * Subtracts one from the count of facts with this name. When no fact has the name any more, the name is overwritten in memory.
   */
  release(name: string): void {
    const number = this.#find(name);
    if (number === undefined) return;
    const left = (this.#counts[number] ?? 0) - 1;
    this.#counts[number] = left;
    if (left > 0) return;
    this.#numbers.remove(number);
    this.#texts.remove(this.#addresses[number] ?? 0);
    this.#spare.push(number);
  }

  mostUsed(most: number): NameCount[] {
    return [...this.#counts.subarray(0, this.#top).entries()]
      .filter(([, count]) => count > 0)
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, most)
      .map(([number, count]) => ({ name: this.#name(number), count }));
  }

  clear(): void {
    this.#texts.clear();
    this.#numbers.clear();
  }

  #find(name: string): number | undefined {
    let number = this.#numbers.first(hash(name, HASH_SEED));
    while (number !== NOT_FOUND && this.#name(number) !== name) number = this.#numbers.after(number);
    return number === NOT_FOUND ? undefined : number;
  }

  #create(name: string): number {
    const number = this.#spare.pop() ?? this.#top++;
    this.#addresses = growTo(this.#addresses, number);
    this.#counts = growTo(this.#counts, number);
    this.#addresses[number] = this.#texts.add(number, [name]);
    this.#numbers.add(number, hash(name, HASH_SEED));
    return number;
  }

  #name(number: number): string {
    return this.#texts.read(this.#addresses[number] ?? 0, 1)[0] ?? '';
  }
}

/**
 * Assigns numbers to the categories in use. Categories are stored as strings here, because the database stores them unencrypted
 * anyway.
 */
export class CategoryTable {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #facts: number[] = [];
  readonly #spare: number[] = [];

  find(name: string): number | undefined {
    return this.#numbers.get(name);
  }

  name(number: number): string {
    return this.#names[number] ?? '';
  }

  /** Adds one to the count of facts in this category, and returns the category's number. */
  retain(name: string): number {
    const number = this.#numbers.get(name) ?? this.#spare.pop() ?? this.#names.length;
    this.#numbers.set(name, number);
    this.#names[number] = name;
    this.#facts[number] = (this.#facts[number] ?? 0) + 1;
    return number;
  }

  /** Subtracts one from the count of facts in a category. When no fact is in the category any more, its number can be reused. */
  release(number: number): void {
    const left = (this.#facts[number] ?? 0) - 1;
    this.#facts[number] = left;
    if (left > 0) return;
    this.#numbers.delete(this.name(number));
    this.#names[number] = '';
    this.#spare.push(number);
  }
}

/** Random seed for hash tables, so that a client cannot choose facts whose hashes collide. */
export const HASH_SEED = randomInt(2 ** 32);

/** Hashes the UTF-16 code units of a text with FNV-1a, which is not a cryptographic hash. */
export function hash(text: string, start = 0x811c9dc5, from = 0, to = text.length): number {
  let hashed = start;
  for (let at = from; at < to; at += 1) hashed = Math.imul(hashed ^ text.charCodeAt(at), 0x01000193);
  return (hashed ^ (hashed >>> 15)) >>> 0;
}

export const NOT_FOUND = -1;

const FIRST_CHAINS = 256;
/** Average number of items in a chain. The items of other hashes are skipped without reading them, so a second one costs little. */
const ITEMS_OF_CHAIN = 2;

/**
 * A hash table of numbers in three arrays. Each number identifies an item that the caller stores, so the caller also compares
 * items. The table grows by one chain at a time (linear hashing), so that no single insertion has to rehash the whole table.
 */
export class HashChains {
  #heads = new Int32Array(FIRST_CHAINS).fill(NOT_FOUND);
  /** The number of chains: a power of two, plus a chain for each split after the last doubling. */
  #count = FIRST_CHAINS;
  #mask = FIRST_CHAINS - 1;
  #nexts = new Int32Array(0);
  /** The hash of the item of each number. It is stored, because only the caller has the item and could compute it again. */
  #hashes = new Uint32Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return 4 * (this.#heads.length + this.#nexts.length + this.#hashes.length);
  }

  first(hashed: number): number {
    return this.#from(this.#heads[this.#chainOf(hashed)] ?? NOT_FOUND, hashed);
  }

  after(number: number): number {
    return this.#from(this.#nexts[number] ?? NOT_FOUND, this.#hashes[number] ?? 0);
  }

  add(number: number, hashed: number): void {
    if (this.#size >= ITEMS_OF_CHAIN * this.#count) this.#split();
    this.#nexts = growTo(this.#nexts, number);
    this.#hashes = growTo(this.#hashes, number);
    this.#hashes[number] = hashed;
    this.#link(number);
    this.#size += 1;
  }

  remove(number: number): void {
    const chain = this.#chainOf(this.#hashes[number] ?? 0);
    const next = this.#nexts[number] ?? NOT_FOUND;
    let before = this.#heads[chain] ?? NOT_FOUND;
    if (before === number) this.#heads[chain] = next;
    else {
      while (this.#nexts[before] !== number) before = this.#nexts[before] ?? NOT_FOUND;
      this.#nexts[before] = next;
    }
    this.#hashes[number] = 0;
    this.#size -= 1;
  }

  /** Overwrites the hashes, because they reveal something about the texts. Afterwards the table cannot be used any more. */
  clear(): void {
    this.#hashes.fill(0);
  }

  #from(number: number, hashed: number): number {
    let found = number;
    while (found !== NOT_FOUND && this.#hashes[found] !== hashed) found = this.#nexts[found] ?? NOT_FOUND;
    return found;
  }

  #chainOf(hashed: number): number {
    const chain = hashed & (2 * this.#mask + 1);
    return chain < this.#count ? chain : hashed & this.#mask;
  }

  #link(number: number): void {
    const chain = this.#chainOf(this.#hashes[number] ?? 0);
    this.#nexts[number] = this.#heads[chain] ?? NOT_FOUND;
    this.#heads[chain] = number;
  }

  #split(): void {
    const old = this.#count & this.#mask;
    this.#heads = growTo(this.#heads, this.#count);
    this.#heads[this.#count] = NOT_FOUND;
    this.#count += 1;
    let number = this.#heads[old] ?? NOT_FOUND;
    this.#heads[old] = NOT_FOUND;
    while (number !== NOT_FOUND) {
      const next = this.#nexts[number] ?? NOT_FOUND;
      this.#link(number);
      number = next;
    }
    if (this.#count > 2 * this.#mask + 1) this.#mask = 2 * this.#mask + 1;
  }
}
