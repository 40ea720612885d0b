import { reaching } from './columns.ts';

const NONE = -1;

const SMALLEST = 256;

/**
 * A hash table of numbers in two arrays. What a number stands for is kept elsewhere: whoever asks compares. It grows by
 * one chain at a time (linear hashing), so that no single step has to move everything.
 */
export class Chains {
  readonly #hashOf: (number: number) => number;
  #heads = new Int32Array(SMALLEST).fill(NONE);
  /** Chains in use: a power of two, and as many of the next as have been split off. */
  #count = SMALLEST;
  #mask = SMALLEST - 1;
  #nexts = new Int32Array(0);
  #size = 0;

  constructor(hashOf: (number: number) => number) {
    this.#hashOf = hashOf;
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return 4 * (this.#heads.length + this.#nexts.length);
  }

  find(hashed: number, is: (number: number) => boolean): number | undefined {
    let number = this.#heads[this.#chainOf(hashed)] ?? NONE;
    while (number !== NONE && !is(number)) number = this.#nexts[number] ?? NONE;
    return number === NONE ? undefined : number;
  }

  /** A number that can already be asked for its hash. */
  add(number: number): void {
    if (this.#size >= this.#count) this.#split();
    this.#nexts = reaching(this.#nexts, number);
    this.#link(number);
    this.#size += 1;
  }

  /** A number that can still be asked for its hash. */
  remove(number: number): void {
    const chain = this.#chainOf(this.#hashOf(number));
    const next = this.#nexts[number] ?? NONE;
    let before = this.#heads[chain] ?? NONE;
    if (before === number) this.#heads[chain] = next;
    else {
      while (this.#nexts[before] !== number) before = this.#nexts[before] ?? NONE;
      this.#nexts[before] = next;
    }
    this.#size -= 1;
  }

  #chainOf(hashed: number): number {
    const chain = hashed & (2 * this.#mask + 1);
    return chain < this.#count ? chain : hashed & this.#mask;
  }

  #link(number: number): void {
    const chain = this.#chainOf(this.#hashOf(number));
    this.#nexts[number] = this.#heads[chain] ?? NONE;
    this.#heads[chain] = number;
  }

  #split(): void {
    const old = this.#count & this.#mask;
    this.#heads = reaching(this.#heads, this.#count);
    this.#heads[this.#count] = NONE;
    this.#count += 1;
    let number = this.#heads[old] ?? NONE;
    this.#heads[old] = NONE;
    while (number !== NONE) {
      const next = this.#nexts[number] ?? NONE;
      this.#link(number);
      number = next;
    }
    if (this.#count > 2 * this.#mask + 1) this.#mask = 2 * this.#mask + 1;
  }
}
