import { HashChains, NOT_FOUND } from './hash-chains.ts';
import { hash, HASH_SEED } from './hash.ts';
import { TextPages } from './text-pages.ts';
import { growTo } from './typed-arrays.ts';

export interface NameCount {
  readonly name: string;
  /** Facts that have it. */
  readonly count: number;
}

/** They are few and short. */
const PAGE = 1 << 16;

/** Names that facts have, and how many have each. They are sealed where they lie, so here too they stand outside the heap. */
export class NameTable {
  readonly #texts = new TextPages((number, address) => {
    this.#addresses[number] = address;
  }, PAGE);
  readonly #numbers = new HashChains();
  readonly #spare: number[] = [];
  #top = 0;
  #addresses = new Uint32Array(0);
  #counts = new Uint32Array(0);

  get bytes(): number {
    return this.#texts.bytes + this.#numbers.bytes + 8 * this.#addresses.length;
  }

  /** One fact more has it. */
  retain(name: string): void {
    const number = this.#find(name) ?? this.#learn(name);
    this.#counts[number] = (this.#counts[number] ?? 0) + 1;
  }

  /** One fact less has it. */
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

  /** At most so many, those that most facts have. */
  mostUsed(most: number): NameCount[] {
    return [...this.#counts.subarray(0, this.#top).entries()]
      .filter(([, count]) => count > 0)
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, most)
      .map(([number, count]) => ({ name: this.#name(number), count }));
  }

  /** Overwrites every name. */
  clear(): void {
    this.#texts.clear();
    this.#numbers.clear();
  }

  #find(name: string): number | undefined {
    let number = this.#numbers.first(hash(name, HASH_SEED));
    while (number !== NOT_FOUND && this.#name(number) !== name) number = this.#numbers.after(number);
    return number === NOT_FOUND ? undefined : number;
  }

  #learn(name: string): number {
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
