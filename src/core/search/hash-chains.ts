import { growTo } from './typed-arrays.ts';

export const NOT_FOUND = -1;

const SMALLEST = 256;

/**
 * A hash table of numbers in three arrays. What a number stands for is kept elsewhere: whoever asks compares. It grows by
 * one chain at a time (linear hashing), so that no single step has to move everything.
 */
export class HashChains {
  #heads = new Int32Array(SMALLEST).fill(NOT_FOUND);
  /** Chains in use: a power of two, and as many of the next as have been split off. */
  #count = SMALLEST;
  #mask = SMALLEST - 1;
  #nexts = new Int32Array(0);
  /** Of each number: kept, because making it anew would mean to read what the number stands for. */
  #hashes = new Uint32Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return 4 * (this.#heads.length + this.#nexts.length + this.#hashes.length);
  }

  /** The first number with this hash, or `NONE`. */
  first(hashed: number): number {
    return this.#from(this.#heads[this.#chainOf(hashed)] ?? NOT_FOUND, hashed);
  }

  /** The next one with the same hash, or `NONE`. */
  after(number: number): number {
    return this.#from(this.#nexts[number] ?? NOT_FOUND, this.#hashes[number] ?? 0);
  }

  add(number: number, hashed: number): void {
    if (this.#size >= this.#count) this.#split();
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

  /** Overwrites what tells of the texts behind the numbers. Nothing may be asked any more. */
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
