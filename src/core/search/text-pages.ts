import { encodeFrame, decodeFrame } from '../crypto/frame.ts';

const PAGE = 1 << 20;
/** The number of the owner and the length of what follows. */
const HEADER = 8;
const NOBODY = 0xffffffff;
const NOTHING = Buffer.alloc(0);

/**
 * What the index was told of each fact, in bytes outside the heap: half of what strings take where they hold a single
 * character beyond Latin-1, and overwritten when it is forgotten, as a string cannot be.
 */
export class TextPages {
  readonly #pages: { bytes: Buffer; used: number; live: number }[] = [];
  readonly #empty: number[] = [];
  readonly #moved: (owner: number, address: number) => void;
  readonly #page: number;
  #current = -1;

  /** `moved` hears of every text that gets another address. No text is as long as a page. */
  constructor(moved: (owner: number, address: number) => void, page = PAGE) {
    this.#moved = moved;
    this.#page = page;
  }

  get bytes(): number {
    return (this.#pages.length - this.#empty.length) * this.#page;
  }

  /** Says where it is kept. */
  add(owner: number, fields: readonly string[]): number {
    return this.#append(owner, encodeFrame(fields));
  }

  /** The first so many fields. */
  read(address: number, most = Infinity): string[] {
    const { bytes } = this.#pageAt(Math.floor(address / this.#page));
    const at = address % this.#page;
    return decodeFrame(bytes, at + HEADER, at + HEADER + bytes.readUInt32LE(at + 4), most);
  }

  remove(address: number): void {
    const number = Math.floor(address / this.#page);
    const page = this.#pageAt(number);
    const length = HEADER + page.bytes.readUInt32LE((address % this.#page) + 4);
    // The header stays: it leads to the next text of the page.
    page.bytes.fill(0, (address % this.#page) + HEADER, (address % this.#page) + length);
    page.live -= length;
    page.bytes.writeUInt32LE(NOBODY, address % this.#page);
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

  /** Moves what still lives on a page that is mostly empty. */
  #vacate(number: number): void {
    const page = this.#pageAt(number);
    for (let at = 0; at < page.used;) {
      const owner = page.bytes.readUInt32LE(at);
      const end = at + HEADER + page.bytes.readUInt32LE(at + 4);
      if (owner !== NOBODY) this.#moved(owner, this.#append(owner, page.bytes.subarray(at + HEADER, end)));
      at = end;
    }
    page.bytes.fill(0);
    this.#pages[number] = { bytes: NOTHING, used: 0, live: 0 };
    this.#empty.push(number);
  }

  #pageAt(number: number): { bytes: Buffer; used: number; live: number } {
    const page = this.#pages[number];
    if (page === undefined) throw new RangeError('A text lies outside its pages.');
    return page;
  }
}
