import { characterBoundary } from './characters.ts';
import { HashChains, NOT_FOUND } from './hash-chains.ts';
import { hash, HASH_SEED } from './hash.ts';
import { growTo } from './typed-arrays.ts';
import { TERM_UNITS } from './words.ts';

const PAGE = 1 << 15;
/** A UTF-16 unit takes up to three bytes of UTF-8. */
const MOST_BYTES = 3 * TERM_UNITS;

/** The term being looked for, in bytes: only ever used within one call. */
const sought = Buffer.alloc(MOST_BYTES);

/**
 * Numbers for terms, and back. It takes far less room than a Map of strings, and what is forgotten is overwritten,
 * as it cannot be in a string.
 */
export class Lexicon {
  readonly #pages: Buffer[] = [];
  #pageUsed = PAGE;
  /** Addresses given back, by length. */
  readonly #free: number[][] = Array.from({ length: MOST_BYTES + 1 }, () => []);
  #addresses = new Uint32Array(0);
  #lengths = new Uint8Array(0);
  readonly #chains = new HashChains();
  readonly #spare: number[] = [];
  #used = 0;

  get size(): number {
    return this.#chains.size;
  }

  /** No number handed out is higher. */
  get top(): number {
    return this.#used;
  }

  get bytes(): number {
    return this.#pages.length * PAGE + this.#addresses.length * 5 + this.#chains.bytes;
  }

  /** The number of what stands there in a text. */
  find(text: string, from = 0, to = text.length): number | undefined {
    let id = this.#chains.first(hash(text, HASH_SEED, from, to));
    while (id !== NOT_FOUND && !this.#is(id, text, from, to)) id = this.#chains.after(id);
    return id === NOT_FOUND ? undefined : id;
  }

  /** The number of a term that has none yet; it is at most `TERM_UNITS` long. */
  add(term: string): number {
    const id = this.#spare.pop() ?? this.#used++;
    this.#addresses = growTo(this.#addresses, id);
    this.#lengths = growTo(this.#lengths, id);
    const length = sought.write(term);
    this.#addresses[id] = this.#take(length);
    this.#lengths[id] = length;
    sought.copy(this.#pageOf(id), this.#at(id), 0, length);
    this.#chains.add(id, hash(term, HASH_SEED));
    return id;
  }

  text(id: number): string {
    return this.#pageOf(id).toString('utf8', this.#at(id), this.#at(id) + this.#length(id));
  }

  /** Of the first so many, the terms that begin as much like a word, or hold it: few do, and only those are worth a string. */
  like(word: string, much: number, ids: Uint32Array, count: number): number[] {
    const length = sought.write(word);
    const head = word.length <= much ? length : Buffer.byteLength(word.slice(0, characterBoundary(word, much)));
    const findSimilar: number[] = [];
    for (let index = 0; index < count; index += 1) {
      const id = ids[index] ?? 0;
      const page = this.#pageOf(id);
      const start = this.#at(id);
      const end = start + this.#length(id);
      if (standsAt(page, start, end, head) || standsBehind(page, start, end, length)) findSimilar.push(id);
    }
    return findSimilar;
  }

  /** Takes the term away and overwrites it. The number stays taken until `recycle`. */
  erase(id: number): void {
    this.#chains.remove(id);
    this.#pageOf(id).fill(0, this.#at(id), this.#at(id) + this.#length(id));
    this.#free[this.#length(id)]?.push(this.#addresses[id] ?? 0);
    this.#lengths[id] = 0;
  }

  /** Nothing refers to an erased number any more. */
  recycle(id: number): void {
    this.#spare.push(id);
  }

  clear(): void {
    for (const page of this.#pages) page.fill(0);
    this.#chains.clear();
    sought.fill(0);
  }

  #at(id: number): number {
    return (this.#addresses[id] ?? 0) % PAGE;
  }

  #length(id: number): number {
    return this.#lengths[id] ?? 0;
  }

  /** What is no ASCII is made a string of; most terms are, and are not. */
  #is(id: number, text: string, from: number, to: number): boolean {
    const page = this.#pageOf(id);
    const start = this.#at(id) - from;
    for (let at = from; at < to; at += 1) {
      const unit = text.charCodeAt(at);
      if (unit > 0x7f) return this.text(id) === text.slice(from, to);
      if (page[start + at] !== unit) return false;
    }
    return this.#length(id) === to - from;
  }

  #pageOf(id: number): Buffer {
    const page = this.#pages[Math.floor((this.#addresses[id] ?? 0) / PAGE)];
    if (page === undefined) throw new RangeError('A term lies outside its pages.');
    return page;
  }

  #take(length: number): number {
    const free = this.#free[length]?.pop();
    if (free !== undefined) return free;
    if (this.#pageUsed + length > PAGE) {
      this.#pages.push(Buffer.alloc(PAGE));
      this.#pageUsed = 0;
    }
    const address = (this.#pages.length - 1) * PAGE + this.#pageUsed;
    this.#pageUsed += length;
    return address;
  }
}

/** So many bytes of what is sought. */
function standsAt(page: Buffer, start: number, end: number, length: number): boolean {
  if (start + length > end) return false;
  for (let at = 0; at < length; at += 1) if (page[start + at] !== sought[at]) return false;
  return true;
}

function standsBehind(page: Buffer, start: number, end: number, length: number): boolean {
  for (let at = start + 1; at + length <= end; at += 1) if (standsAt(page, at, end, length)) return true;
  return false;
}
