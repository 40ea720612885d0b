import { Chains, NONE } from './chains.ts';
import { reaching } from './columns.ts';
import { hash, SECRET } from './hash.ts';
import { Texts } from './texts.ts';

export interface NameCount {
  readonly name: string;
  /** Facts that have it. */
  readonly count: number;
}

/** They are few and short. */
const PAGE = 1 << 16;

/** Names that facts have, and how many have each. They are sealed where they lie, so here too they stand outside the heap. */
export class Names {
  readonly #texts = new Texts((number, address) => {
    this.#addresses[number] = address;
  }, PAGE);
  readonly #numbers = new Chains();
  readonly #spare: number[] = [];
  #top = 0;
  #addresses = new Uint32Array(0);
  #counts = new Uint32Array(0);

  get bytes(): number {
    return this.#texts.bytes + this.#numbers.bytes + 8 * this.#addresses.length;
  }

  /** One fact more has it. */
  enter(name: string): void {
    const number = this.#find(name) ?? this.#learn(name);
    this.#counts[number] = (this.#counts[number] ?? 0) + 1;
  }

  /** One fact less has it. */
  leave(name: string): void {
    const number = this.#find(name);
    if (number === undefined) return;
    const left = (this.#counts[number] ?? 0) - 1;
    this.#counts[number] = left;
    if (left > 0) return;
    this.#numbers.remove(number);
    this.#texts.drop(this.#addresses[number] ?? 0);
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
    let number = this.#numbers.first(hash(name, SECRET));
    while (number !== NONE && this.#name(number) !== name) number = this.#numbers.after(number);
    return number === NONE ? undefined : number;
  }

  #learn(name: string): number {
    const number = this.#spare.pop() ?? this.#top++;
    this.#addresses = reaching(this.#addresses, number);
    this.#counts = reaching(this.#counts, number);
    this.#addresses[number] = this.#texts.keep(number, [name]);
    this.#numbers.add(number, hash(name, SECRET));
    return number;
  }

  #name(number: number): string {
    return this.#texts.read(this.#addresses[number] ?? 0, 1)[0] ?? '';
  }
}
