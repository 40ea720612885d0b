import { type FactIndex, WEIGHT_LEVELS } from './fact-index.ts';
import type { Alternative, ParsedQuery } from './parsed-query.ts';
import { growTo } from './tables.ts';

export interface RankedFact {
  readonly number: number;
  /** The weight of the fact as a fraction of the highest possible weight, from 0 to 1. */
  readonly share: number;
  /** The number of query words that the fact contains. */
  readonly words: number;
}

/** Whether the filter of a search accepts the fact with this number. */
export type FactPredicate = (number: number) => boolean;

/**
 * Ranks facts by the total weight of the query words that they contain. Reads the postings of the rarest word first, and stops
 * after a limit, because common words distinguish facts the least. If the filter then leaves fewer facts than requested, reads
 * all postings.
 */
export class Ranking {
  readonly #facts: FactIndex;
  /** For each fact, one plus its index in the columns below, or 0 if no query word was found in the fact. */
  #places = new Uint32Array(0);
  #numbers = new Uint32Array(0);
  #sums = new Float32Array(0);
  /** For each fact, the weight that the last query word found in the fact has added. */
  #latest = new Float32Array(0);
  #latestWord = new Uint8Array(0);
  #words = new Uint8Array(0);
  #count = 0;

  constructor(facts: FactIndex) {
    this.#facts = facts;
  }

  get bytes(): number {
    return 4 * this.#places.length + 14 * this.#numbers.length;
  }

  /** Returns the best facts that the filter accepts, best first. Facts with equal weights are ordered newest first. */
  best(query: ParsedQuery, accepts: FactPredicate, most: number, postings: number): RankedFact[] {
    this.#places = growTo(this.#places, this.#facts.top);
    try {
      const whole = this.#add(query, postings);
      const chosen = this.#choose(accepts, most, query.maxWeight);
      if (whole || chosen.length === most) return chosen;
    } finally {
      for (let at = 0; at < this.#count; at += 1) this.#places[this.#numbers[at] ?? 0] = 0;
      this.#count = 0;
    }
    return this.best(query, accepts, most, Infinity);
  }

  /**
   * Returns the best facts for each alternative of a query with a single word. Sums are not needed, because the score of a fact
   * is that of its best alternative. The best facts for the word are therefore all in these lists.
   */
  bestOfEach(alternatives: readonly Alternative[], accepts: FactPredicate, most: number, postings: number): RankedFact[][] {
    let left = postings;
    const lists: RankedFact[][] = [];
    for (const alternative of alternatives) {
      if (left <= 0 && lists.some((list) => list.length === most)) break;
      lists.push(this.#bestOf(alternative, accepts, most, Math.max(left, most)));
      left -= this.#facts.count(alternative.id);
    }
    return lists;
  }

  #bestOf(term: Alternative, accepts: FactPredicate, most: number, read: number): RankedFact[] {
    const { id, weight } = term;
    const best = new Best(this.#facts, most);
    const count = this.#facts.readPostings(id, read);
    const { postings } = this.#facts;
    for (let seen = 0; seen < count; seen += 1) {
      const posting = postings[fromEitherEnd(seen, count)] ?? 0;
      best.offer(posting >>> 8, posting % WEIGHT_LEVELS, accepts);
    }
    const sorted = best.sorted();
    if (sorted.length < most && count < this.#facts.count(id)) return this.#bestOf(term, accepts, most, Infinity);
    return sorted.map(({ number, sum }) => ({ number, share: (weight * sum) / (WEIGHT_LEVELS - 1), words: 1 }));
  }

  /** Adds the weights of all query words to the sums. Returns false if the limit was reached before all postings were read. */
  #add({ words }: ParsedQuery, postings: number): boolean {
    const rarestFirst = words
      .map((word, index) => ({ word, index }))
      .toSorted((one, other) => other.word.weight - one.word.weight);
    let left = postings;
    for (const { word, index } of rarestFirst) {
      for (const { id, weight } of word.alternatives) {
        if (left <= 0) return false;
        const listed = this.#addTerm(id, weight * word.weight, index + 1, left);
        if (listed < this.#facts.count(id)) return false;
        left -= listed;
      }
    }
    return true;
  }

  #addTerm(term: number, worth: number, word: number, most: number): number {
    const listed = this.#facts.readPostings(term, most);
    this.#grow(this.#count + listed);
    const { postings } = this.#facts;
    const [places, numbers, sums] = [this.#places, this.#numbers, this.#sums];
    const [latest, latestWord, words] = [this.#latest, this.#latestWord, this.#words];
    const full = worth / (WEIGHT_LEVELS - 1);
    let count = this.#count;
    for (let index = 0; index < listed; index += 1) {
      const posting = postings[index] ?? 0;
      const number = posting >>> 8;
      const gain = full * (posting % WEIGHT_LEVELS);
      const place = places[number] ?? 0;
      const at = place - 1;
      if (place === 0) {
        numbers[count] = number;
        sums[count] = gain;
        latest[count] = gain;
        latestWord[count] = word;
        words[count] = 1;
        count += 1;
        places[number] = count;
      } else if (latestWord[at] !== word) {
        sums[at] = (sums[at] ?? 0) + gain;
        latest[at] = gain;
        latestWord[at] = word;
        words[at] = (words[at] ?? 0) + 1;
      } else if (gain > (latest[at] ?? 0)) {
        // A word counts only once for each fact, with its best alternative.
        sums[at] = (sums[at] ?? 0) + gain - (latest[at] ?? 0);
        latest[at] = gain;
      }
    }
    this.#count = count;
    return listed;
  }

  #grow(count: number): void {
    if (count <= this.#numbers.length) return;
    this.#numbers = growTo(this.#numbers, count);
    this.#sums = growTo(this.#sums, count);
    this.#latest = growTo(this.#latest, count);
    this.#latestWord = growTo(this.#latestWord, count);
    this.#words = growTo(this.#words, count);
  }

  #choose(accepts: FactPredicate, most: number, maxWeight: number): RankedFact[] {
    const best = new Best(this.#facts, most);
    for (let seen = 0; seen < this.#count; seen += 1) {
      const at = fromEitherEnd(seen, this.#count);
      best.offer(this.#numbers[at] ?? 0, this.#sums[at] ?? 0, accepts);
    }
    return best.sorted().map(({ number, sum }) => ({
      number,
      share: Math.min(1, sum / maxWeight),
      words: this.#words[(this.#places[number] ?? 0) - 1] ?? 0,
    }));
  }

  newest(accepts: FactPredicate, most: number): number[] {
    const best = new Best(this.#facts, most);
    const { top } = this.#facts;
    for (let seen = 0; seen < top; seen += 1) best.offer(fromEitherEnd(seen, top), 0, accepts);
    return best.sorted().map(({ number }) => number);
  }
}

/**
 * Returns the index to visit next: the first, the last, the second, and so on. Facts are often sorted by age. Visited in order,
 * each fact could be better than all facts before it, which is the slowest case for the heap.
 */
const fromEitherEnd = (seen: number, count: number): number => (seen % 2 === 0 ? seen >> 1 : count - 1 - (seen >> 1));

/** A bounded heap of the best facts. The worst of them is on top, so that rejecting another fact takes one comparison. */
class Best {
  readonly #facts: FactIndex;
  readonly #most: number;
  readonly #numbers: number[] = [];
  readonly #sums: number[] = [];
  readonly #moments: number[] = [];
  /** Lowest accepted sum. A fact with a lower sum is rejected, as is a fact with this sum and a date before `#oldest`. */
  #least = -Infinity;
  #oldest = -Infinity;

  constructor(facts: FactIndex, most: number) {
    this.#facts = facts;
    this.#most = most;
  }

  offer(number: number, sum: number, accepts: FactPredicate): void {
    if (sum < this.#least) return;
    const moment = this.#facts.updatedAt(number);
    if (sum === this.#least && moment < this.#oldest) return;
    this.#take(number, sum, moment, accepts);
  }

  #take(number: number, sum: number, moment: number, accepts: FactPredicate): void {
    const full = this.#numbers.length === this.#most;
    if (full && !this.#beats(0, number, sum, moment)) return;
    if (!this.#facts.isLive(number) || !accepts(number)) return;
    if (full) this.#sink(number, sum, moment);
    else this.#rise(number, sum, moment);
    if (this.#numbers.length < this.#most) return;
    this.#least = this.#sums[0] ?? 0;
    this.#oldest = this.#moments[0] ?? 0;
  }

  sorted(): { number: number; sum: number }[] {
    return this.#numbers
      .map((number, at) => ({ number, sum: this.#sums[at] ?? 0, moment: this.#moments[at] ?? 0 }))
      .toSorted((one, other) => other.sum - one.sum || other.moment - one.moment || other.number - one.number);
  }

  /** Whether a fact is better than the fact at this index. Of two facts with equal sums, the newer one is better. */
  #beats(at: number, number: number, sum: number, moment: number): boolean {
    const known = this.#sums[at] ?? 0;
    if (sum !== known) return sum > known;
    const before = this.#moments[at] ?? 0;
    return moment === before ? number > (this.#numbers[at] ?? 0) : moment > before;
  }

  #put(at: number, number: number, sum: number, moment: number): void {
    this.#numbers[at] = number;
    this.#sums[at] = sum;
    this.#moments[at] = moment;
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#numbers[from] ?? 0, this.#sums[from] ?? 0, this.#moments[from] ?? 0);
  }

  #rise(number: number, sum: number, moment: number): void {
    let at = this.#numbers.length;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#beats(above, number, sum, moment)) break;
      this.#move(above, at);
      at = above;
    }
    this.#put(at, number, sum, moment);
  }

  #sink(number: number, sum: number, moment: number): void {
    let at = 0;
    for (let below = 1; below < this.#most; below = 2 * at + 1) {
      if (below + 1 < this.#most && this.#worse(below + 1, below)) below += 1;
      if (!this.#beats(below, number, sum, moment)) break;
      this.#move(below, at);
      at = below;
    }
    this.#put(at, number, sum, moment);
  }

  #worse(one: number, other: number): boolean {
    return !this.#beats(other, this.#numbers[one] ?? 0, this.#sums[one] ?? 0, this.#moments[one] ?? 0);
  }
}
