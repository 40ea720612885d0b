import { decodeFrame, encodeFrame } from '../crypto/cipher.ts';
import { HASH_SEED, HashChains, NOT_FOUND, growTo, hash } from './tables.ts';

const PAGE = 1 << 20;
/** Bytes of the header of a text: the number of its fact or name, and its length in bytes, four bytes each. */
const HEADER = 8;
const NO_OWNER = 0xffffffff;
const NO_BYTES = Buffer.alloc(0);

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
  #current = -1;

  /** Calls `moved` when the address of a text changes. Every text must be shorter than a page. */
  constructor(moved: (owner: number, address: number) => void, page = PAGE) {
    this.#moved = moved;
    this.#page = page;
  }

  get bytes(): number {
    return (this.#pages.length - this.#empty.length) * this.#page;
  }

  /** Stores the fields as one text and returns its address. `owner` identifies the text in calls of `moved`. */
  add(owner: number, fields: readonly string[]): number {
    return this.#append(owner, encodeFrame(fields));
  }

  read(address: number, most = Infinity): string[] {
    const { bytes } = this.#pageAt(Math.floor(address / this.#page));
    const at = address % this.#page;
    return decodeFrame(bytes, at + HEADER, at + HEADER + bytes.readUInt32LE(at + 4), most);
  }

  remove(address: number): void {
    const number = Math.floor(address / this.#page);
    const page = this.#pageAt(number);
    const length = HEADER + page.bytes.readUInt32LE((address % this.#page) + 4);
    // Keep the header, because the length in it is needed to find the next text of the page.
    page.bytes.fill(0, (address % this.#page) + HEADER, (address % this.#page) + length);
    page.live -= length;
    page.bytes.writeUInt32LE(NO_OWNER, address % this.#page);
    if (number !== this.#current && 2 * page.live < page.used) this.#vacate(number);
  }

  clear(): void {
    for (const page of this.#pages) page.bytes.fill(0);
  }

  #append(owner: number, body: Buffer): number {
    const length = HEADER + body.length;
    let page = this.#pages[this.#current];
    if (page === undefined || page.used + length > this.#page) {
      this.#current = this.#empty.pop() ?? this.#pages.length;
      page = { bytes: Buffer.alloc(this.#page), used: 0, live: 0 };
      this.#pages[this.#current] = page;
    }
    const at = page.used;
    page.bytes.writeUInt32LE(owner, at);
    page.bytes.writeUInt32LE(body.length, at + 4);
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
      const end = at + HEADER + page.bytes.readUInt32LE(at + 4);
      if (owner !== NO_OWNER) this.#moved(owner, this.#append(owner, page.bytes.subarray(at + HEADER, end)));
      at = end;
    }
    page.bytes.fill(0);
    this.#pages[number] = { bytes: NO_BYTES, used: 0, live: 0 };
    this.#empty.push(number);
  }

  #pageAt(number: number): { bytes: Buffer; used: number; live: number } {
    const page = this.#pages[number];
    if (page === undefined) throw new RangeError('A text address is outside the pages.');
    return page;
  }
}

export interface NameCount {
  readonly name: string;
  /** The number of facts with this name. */
  readonly count: number;
}

/** Bytes of a page of names. It is small, because names are few and short. */
const NAMES_PAGE = 1 << 16;

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
