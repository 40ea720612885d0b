import { reaching } from './columns.ts';
import { type FactIndex, WEIGHTS } from './fact-index.ts';
import type { Question } from './question.ts';

export interface Candidate {
  /** The fact's number. */
  readonly number: number;
  /** How much of what the question is worth it has, 0 to 1. */
  readonly share: number;
  /** How many of the question's words it has. */
  readonly words: number;
}

/** Which facts may be found. */
export type Wanted = (number: number) => boolean;

/**
 * Adds up what each fact has of a question's words. The rarest come first; once as many postings as allowed have been
 * read, what is left of the commoner words is not, which decides little: they tell facts apart the least.
 */
export class Ranking {
  readonly #facts: FactIndex;
  #sums = new Float32Array(0);
  /** What the fact has of the word being added. */
  #latest = new Float32Array(0);
  #latestWord = new Uint8Array(0);
  #words = new Uint8Array(0);
  #touched = new Uint32Array(0);
  #count = 0;

  constructor(facts: FactIndex) {
    this.#facts = facts;
  }

  get bytes(): number {
    return 14 * this.#sums.length;
  }

  /** The best of the wanted facts, the best first; among equals the newest. */
  best(question: Question, wanted: Wanted, most: number, postings: number): Candidate[] {
    const last = this.#facts.top;
    this.#sums = reaching(this.#sums, last);
    this.#latest = reaching(this.#latest, last);
    this.#latestWord = reaching(this.#latestWord, last);
    this.#words = reaching(this.#words, last);
    this.#touched = reaching(this.#touched, last);
    try {
      this.#add(question, postings);
      const chosen = this.#choose(wanted, most);
      return chosen.map(({ number, share, words }) => ({ number, share: Math.min(1, share / question.ideal), words }));
    } finally {
      this.#reset();
    }
  }

  #reset(): void {
    for (let index = 0; index < this.#count; index += 1) {
      const number = this.#touched[index] ?? 0;
      this.#sums[number] = 0;
      this.#latestWord[number] = 0;
      this.#words[number] = 0;
    }
    this.#count = 0;
  }

  #add({ words }: Question, postings: number): void {
    const rarestFirst = words.map((word, index) => ({ word, index })).toSorted((one, other) => other.word.worth - one.word.worth);
    let left = postings;
    for (const { word, index } of rarestFirst) {
      for (const { id, weight } of word.alternatives) {
        if (left <= 0) return;
        left -= this.#addTerm(id, weight * word.worth, index + 1, left);
      }
    }
  }

  #addTerm(term: number, worth: number, word: number, most: number): number {
    const count = this.#facts.read(term, most);
    const { postings } = this.#facts;
    for (let index = 0; index < count; index += 1) {
      const posting = postings[index] ?? 0;
      const number = posting >>> 8;
      const gain = (worth * (posting % WEIGHTS)) / (WEIGHTS - 1);
      if (this.#latestWord[number] === word) {
        // A word counts once, as the surest of what stands for it.
        const known = this.#latest[number] ?? 0;
        if (gain <= known) continue;
        this.#sums[number] = (this.#sums[number] ?? 0) + gain - known;
      } else {
        if (this.#latestWord[number] === 0) {
          this.#touched[this.#count] = number;
          this.#count += 1;
        }
        this.#latestWord[number] = word;
        this.#words[number] = (this.#words[number] ?? 0) + 1;
        this.#sums[number] = (this.#sums[number] ?? 0) + gain;
      }
      this.#latest[number] = gain;
    }
    return count;
  }

  #choose(wanted: Wanted, most: number): Candidate[] {
    const heap = new Heap(most);
    for (let index = 0; index < this.#count; index += 1) {
      const number = this.#touched[index] ?? 0;
      this.#offer(heap, number, this.#sums[number] ?? 0, wanted);
    }
    return heap.sorted();
  }

  /** The newest of the wanted facts, the newest first. */
  newest(wanted: Wanted, most: number): number[] {
    const heap = new Heap(most);
    for (let number = this.#facts.top - 1; number >= 0; number -= 1) this.#offer(heap, number, 0, wanted);
    return heap.sorted().map(({ number }) => number);
  }

  #offer(heap: Heap, number: number, share: number, wanted: Wanted): void {
    if (share < heap.least || !this.#facts.lives(number)) return;
    const updatedAt = this.#facts.updatedAt(number);
    if (share === heap.least && updatedAt < heap.oldest) return;
    if (wanted(number)) heap.push({ number, share, words: this.#words[number] ?? 0, updatedAt });
  }
}

interface Ranked extends Candidate {
  readonly updatedAt: number;
}

const before = (one: Ranked, other: Ranked): boolean =>
  one.share === other.share
    ? one.updatedAt === other.updatedAt
      ? one.number > other.number
      : one.updatedAt > other.updatedAt
    : one.share > other.share;

/** The best so far, the worst of them on top, so that most candidates cost one comparison. */
class Heap {
  readonly #most: number;
  readonly #items: Ranked[] = [];
  /** Below this share, or at it and before this moment, nothing is taken any more. */
  least = -Infinity;
  oldest = -Infinity;

  constructor(most: number) {
    this.#most = most;
  }

  push(item: Ranked): void {
    const items = this.#items;
    if (items.length < this.#most) {
      items.push(item);
      this.#rise(items.length - 1);
    } else if (items[0] && before(item, items[0])) {
      items[0] = item;
      this.#sink(0);
    }
    if (items.length < this.#most) return;
    this.least = items[0]?.share ?? -Infinity;
    this.oldest = items[0]?.updatedAt ?? -Infinity;
  }

  sorted(): Ranked[] {
    return this.#items.toSorted((one, other) => (before(one, other) ? -1 : 1));
  }

  #rise(from: number): void {
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!this.#swapped(above, at)) return;
      at = above;
    }
  }

  #sink(from: number): void {
    let at = from;
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      if (left >= this.#items.length) return;
      const [one, other] = [this.#items[left], this.#items[right]];
      const worse = one && other && before(one, other) ? right : left;
      if (!this.#swapped(at, worse)) return;
      at = worse;
    }
  }

  /** Puts the worse of the two above. */
  #swapped(above: number, below: number): boolean {
    const [upper, lower] = [this.#items[above], this.#items[below]];
    if (!upper || !lower || !before(upper, lower)) return false;
    this.#items[above] = lower;
    this.#items[below] = upper;
    return true;
  }
}
