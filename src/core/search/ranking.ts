import { type FactIndex, WEIGHT_LEVELS } from './fact-index.ts';
import { type Alternative, type ParsedQuery, isOneIdentifier, rarestOfPhrase } from './parsed-query.ts';
import { growTo } from './tables.ts';

export interface RankedFact {
  readonly number: number;
  /** The weight of the fact as a fraction of the highest possible weight, from 0 to 1. */
  readonly share: number;
  /** The number of query words that the fact contains, or may contain. */
  readonly words: number;
  /** A bit for each of the first 32 query words that the fact contains, or may contain. */
  readonly mask: number;
}

/** Whether the filter of a search accepts the fact with this number. */
export type FactPredicate = (number: number) => boolean;

/** How many facts a search needs, and how much work it can do to find them. */
export interface Extent {
  /** The number of hits. Facts that cannot be among them may be left out. */
  readonly limit: number;
  /** The maximum number of facts to return: the best ones, from which the hits are chosen by reading their text. */
  readonly most: number;
  /** Maximum number of postings to read. */
  readonly postings: number;
  /** True if the filter checks more than expiry. */
  readonly narrowed: boolean;
}

/**
 * A fact with less than this fraction of a hit's weight cannot replace the hit when the text of both is read, because nearness
 * changes the weight by at most a tenth.
 */
const REPLACEABLE = 0.89;
/**
 * A word with less than this fraction of the highest weight finds no facts by itself, only together with another word. The word
 * is in most facts, or is a stop word.
 */
const NEGLIGIBLE = 0.01;
/** A word with less than this fraction of the highest weight is not looked up at all, as if every fact could contain it. */
const WORTHLESS = 0.001;
/** Facts are dropped only if the words to look up weigh less than this fraction of the last hit. */
const PRUNABLE = 0.5;
/** Maximum number of facts that are looked up without dropping those that cannot become hits first. */
const MAX_LOOKED_UP = 64;
/** Maximum number of facts that are found by one part of an identifier after facts with the whole identifier were found. */
const MAX_PART_POSTINGS = 128;
/** Maximum number of facts that are found by a word of the phrase because they may spell an identifier as several words. */
const MAX_PHRASE_POSTINGS = 1024;
/** Maximum number of facts that are returned in addition, because they may contain the phrase without an identifier. */
const MAX_SPELLED_APART = 64;
/** More words than any query has. */
const MAX_WORDS = 255;
/** Number of postings that can be read in the time that it takes to look up one fact in a posting list. */
const LOOKUP_COST = 12;

/** One word of a query, with its place among the words and the highest weight that it can add to a fact. */
interface RankedWord {
  readonly word: ParsedQuery['words'][number];
  readonly mark: number;
  readonly bound: number;
}

interface LookUp extends Pick<Extent, 'limit' | 'postings'> {
  readonly accepts: FactPredicate;
  /** The number of query words that a fact with the exact phrase can lack. */
  readonly missable: number;
  /** The highest weight that the words to look up can add to a fact. */
  readonly remaining: number;
  /** The weight of the last hit so far, or 0 if it is unknown. */
  readonly least: number;
}

/**
 * Ranks facts by the total weight of the query words that they contain, with the MaxScore algorithm. Reads the postings of the
 * rarest word first. Once the remaining words together cannot lift another fact among the best, they are only looked up in the
 * facts that were already found.
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
  #masks = new Uint32Array(0);
  #count = 0;
  #limits = new Uint32Array(0);

  constructor(facts: FactIndex) {
    this.#facts = facts;
  }

  get bytes(): number {
    return 4 * (this.#places.length + this.#limits.length) + 18 * this.#numbers.length;
  }

  /** Returns the best facts that the filter accepts, best first. Facts with equal weights are ordered newest first. */
  best(query: ParsedQuery, accepts: FactPredicate, extent: Extent): RankedFact[] {
    this.#places = growTo(this.#places, this.#facts.top);
    try {
      const { words, skipped } = rarestFirst(query, isExhaustive(extent));
      const collected = this.#collect(query, words, accepts, extent);
      const chosen = this.#choose(query, accepts, extent.most, collected === 'limited' ? 'unknown' : skipped);
      const enough = extent.narrowed ? extent.most : collected === 'limited' ? extent.limit : 1;
      if ((collected === 'complete' && skipped.length === 0) || chosen.length >= enough) return chosen;
    } finally {
      for (let at = 0; at < this.#count; at += 1) this.#places[this.#numbers[at] ?? 0] = 0;
      this.#count = 0;
    }
    return this.best(query, accepts, { ...extent, postings: Infinity });
  }

  /**
   * Adds up the weights of the facts that can become hits. The result is `shortened` if facts that contain only common words were
   * left out, and `limited` if the limit of postings was reached.
   */
  #collect(
    query: ParsedQuery,
    words: readonly RankedWord[],
    accepts: FactPredicate,
    extent: Extent,
  ): 'complete' | 'shortened' | 'limited' {
    // No fact contains a phrase with an unknown word.
    const unknown = query.words.some(({ alternatives }) => alternatives.length === 0);
    const missable = unknown ? -Infinity : query.words.length - query.phraseWords;
    const exhaustive = isExhaustive(extent);
    const phraseWord = missable > 0 ? rarestOfPhrase(query, this.#facts, MAX_PHRASE_POSTINGS) : undefined;
    const sought = words.findIndex(({ word }) => word === phraseWord);
    const all = words.reduce((sum, { bound }) => sum + bound, 0);
    let remaining = all;
    let left = extent.postings;
    let least = 0;
    let result: 'complete' | 'shortened' | 'limited' = 'complete';
    let at = 0;
    for (; at < words.length; at += 1) {
      const ranked = words[at] as RankedWord;
      const found = this.#count > 0;
      if (found && !exhaustive && ranked.bound < NEGLIGIBLE * (words[0]?.bound ?? 0)) {
        result = 'shortened';
        break;
      }
      // No hit weighs more than the words that were read, so that the weight of the last hit need not be computed each time.
      const likely = this.#count >= extent.limit && remaining < REPLACEABLE * (all - remaining);
      least = likely ? this.#leastHit(accepts, extent.limit) : 0;
      if (remaining < REPLACEABLE * least) break;
      const isBounded = found && !exhaustive && ranked.word.role === 'part';
      const most = isBounded ? Math.min(left, at === sought ? MAX_PHRASE_POSTINGS : MAX_PART_POSTINGS) : left;
      const read = this.#addWord(ranked, most);
      left -= read;
      remaining -= ranked.bound;
      if (left <= 0) {
        result = 'limited';
        at += 1;
        break;
      }
      if (read === most) result = 'shortened';
    }
    const unread = words.slice(at);
    // A fact with the phrase has each plain word. Facts with the only identifier of a query contain the phrase, and weigh more.
    const isFound =
      words.slice(0, at).some(({ word }) => word.role === 'plain') || (at === 1 && least > 0 && isOneIdentifier(query));
    const [ranked] = sought >= at && left > 0 && !isFound ? unread.splice(sought - at, 1) : [];
    if (ranked !== undefined) {
      this.#addWord(ranked, Math.min(left, MAX_PHRASE_POSTINGS));
      remaining -= ranked.bound;
    }
    return this.#lookUp(unread, words.length - unread.length, { ...extent, accepts, missable, remaining, least })
      ? result
      : 'limited';
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
    return sorted.map(({ number, sum }) => ({ number, share: (weight * sum) / (WEIGHT_LEVELS - 1), words: 1, mask: 1 }));
  }

  /** Adds the weight of a word to every fact that contains it. Returns the number of postings that were read. */
  #addWord({ word, mark }: RankedWord, most: number): number {
    let read = 0;
    for (const { id, weight } of word.alternatives) {
      if (read >= most) break;
      const worth = weight * word.weight;
      // If only the newest postings are read, look up the facts that were already found among the others.
      if (this.#facts.count(id) > most - read) this.#lookUpTerm(id, worth, mark);
      const listed = this.#facts.readPostings(id, most - read);
      this.#grow(this.#count + listed);
      this.#apply(this.#facts.postings, listed, worth, mark);
      read += listed;
    }
    return read;
  }

  /**
   * Adds the weights of the unread words to the facts that were found, and drops facts that cannot become hits. Returns false if
   * the limit of postings was reached.
   */
  #lookUp(
    unread: readonly RankedWord[],
    read: number,
    { accepts, limit, missable, remaining, postings, ...rest }: LookUp,
  ): boolean {
    let [open, left, at, least] = [remaining, postings, 0, rest.least];
    for (; at <= unread.length && left > 0; at += 1) {
      // Few facts could be dropped while the words to look up weigh nearly as much as a hit.
      if (this.#count > Math.max(limit, MAX_LOOKED_UP) && (least === 0 || open < PRUNABLE * least)) {
        least = this.#leastHit(accepts, limit);
        this.#prune(REPLACEABLE * least - open, read + at - missable);
      }
      const ranked = unread[at];
      if (ranked === undefined) return true;
      for (const { id, weight } of ranked.word.alternatives)
        left -= this.#lookUpTerm(id, weight * ranked.word.weight, ranked.mark);
      open -= ranked.bound;
    }
    return at >= unread.length;
  }

  /** Adds the weight of a term to the facts that were found. Returns the work that it took, as a number of postings. */
  #lookUpTerm(id: number, worth: number, mark: number): number {
    const count = this.#count;
    if (!this.#facts.isSorted(id) || this.#facts.count(id) <= LOOKUP_COST * count) {
      const listed = this.#facts.readPostings(id, Infinity);
      this.#applyToFound(this.#facts.postings, listed, worth, mark);
      return listed;
    }
    this.#limits = growTo(this.#limits, count);
    for (let at = 0; at < count; at += 1) this.#limits[at] = (this.#numbers[at] ?? 0) * WEIGHT_LEVELS + WEIGHT_LEVELS - 1;
    this.#limits.subarray(0, count).sort();
    this.#facts.findPostings(id, this.#limits, count);
    this.#applyToFound(this.#limits, count, worth, mark);
    return LOOKUP_COST * count;
  }

  /** Adds a term's weight to the facts of its postings. */
  #apply(postings: Uint32Array, listed: number, worth: number, mark: number): void {
    const [places, numbers, sums] = [this.#places, this.#numbers, this.#sums];
    const [latest, latestWord, words, masks] = [this.#latest, this.#latestWord, this.#words, this.#masks];
    const full = worth / (WEIGHT_LEVELS - 1);
    const bit = maskOf(mark);
    let count = this.#count;
    for (let index = 0; index < listed; index += 1) {
      const posting = postings[index] ?? 0;
      const number = posting >>> 8;
      const place = places[number] ?? 0;
      if (place > 0) {
        this.#gain(place - 1, full * (posting % WEIGHT_LEVELS), mark);
        continue;
      }
      const gain = full * (posting % WEIGHT_LEVELS);
      numbers[count] = number;
      sums[count] = gain;
      latest[count] = gain;
      latestWord[count] = mark;
      words[count] = 1;
      masks[count] = bit;
      count += 1;
      places[number] = count;
    }
    this.#count = count;
  }

  /** Adds a term's weight to those facts of its postings that were already found. A posting can occur several times. */
  #applyToFound(postings: Uint32Array, listed: number, worth: number, mark: number): void {
    const places = this.#places;
    const full = worth / (WEIGHT_LEVELS - 1);
    for (let index = 0; index < listed; index += 1) {
      const posting = postings[index] ?? 0;
      const place = places[posting >>> 8] ?? 0;
      if (place > 0 && posting > 0) this.#gain(place - 1, full * (posting % WEIGHT_LEVELS), mark);
    }
  }

  /** Adds a weight to a fact. A word counts only once for each fact, with its best alternative. */
  #gain(at: number, gain: number, mark: number): void {
    const known = this.#latestWord[at] === mark ? (this.#latest[at] ?? 0) : 0;
    if (known === 0) {
      this.#words[at] = (this.#words[at] ?? 0) + 1;
      this.#masks[at] = (this.#masks[at] ?? 0) | maskOf(mark);
    }
    if (gain <= known) return;
    this.#sums[at] = (this.#sums[at] ?? 0) + gain - known;
    this.#latest[at] = gain;
    this.#latestWord[at] = mark;
  }

  /** Returns the weight of the last of the best facts, or 0 if fewer facts than the limit were found. */
  #leastHit(accepts: FactPredicate, limit: number): number {
    const best = new Best(this.#facts, limit);
    const [numbers, sums, count] = [this.#numbers, this.#sums, this.#count];
    let least = 0;
    for (let at = 0; at < count; at += 1) {
      const sum = sums[at] ?? 0;
      // Facts with equal weights need not be ordered by age here.
      if (sum <= least) continue;
      best.offer(numbers[at] ?? 0, sum, accepts);
      least = best.least;
    }
    return best.least;
  }

  /** Drops the facts with less than this weight, except facts with at least this number of words, which may contain the phrase. */
  #prune(least: number, phraseWords: number): void {
    let kept = 0;
    for (let at = 0; at < this.#count; at += 1) {
      const number = this.#numbers[at] ?? 0;
      if ((this.#sums[at] ?? 0) < least && (this.#words[at] ?? 0) < phraseWords) {
        this.#places[number] = 0;
        continue;
      }
      this.#numbers[kept] = number;
      this.#sums[kept] = this.#sums[at] ?? 0;
      this.#latest[kept] = this.#latest[at] ?? 0;
      this.#latestWord[kept] = this.#latestWord[at] ?? 0;
      this.#words[kept] = this.#words[at] ?? 0;
      this.#masks[kept] = this.#masks[at] ?? 0;
      kept += 1;
      this.#places[number] = kept;
    }
    this.#count = kept;
  }

  #grow(count: number): void {
    if (count <= this.#numbers.length) return;
    this.#numbers = growTo(this.#numbers, count);
    this.#sums = growTo(this.#sums, count);
    this.#latest = growTo(this.#latest, count);
    this.#latestWord = growTo(this.#latestWord, count);
    this.#words = growTo(this.#words, count);
    this.#masks = growTo(this.#masks, count);
  }

  /** Returns the best facts, then facts that may contain the phrase although they lack an identifier. */
  #choose(query: ParsedQuery, accepts: FactPredicate, most: number, skipped: readonly RankedWord[] | 'unknown'): RankedFact[] {
    const best = new Best(this.#facts, most);
    const apart = new Best(this.#facts, MAX_SPELLED_APART);
    const [more, bits] =
      skipped === 'unknown' ? [MAX_WORDS, ~0] : [skipped.length, skipped.reduce((mask, { mark }) => mask | maskOf(mark), 0)];
    for (let seen = 0; seen < this.#count; seen += 1) {
      const at = fromEitherEnd(seen, this.#count);
      best.offer(this.#numbers[at] ?? 0, this.#sums[at] ?? 0, accepts);
      const words = (this.#words[at] ?? 0) + more;
      if (words >= query.phraseWords && words < query.words.length)
        apart.offer(this.#numbers[at] ?? 0, this.#sums[at] ?? 0, accepts);
    }
    const chosen = best.sorted();
    const others = apart.sorted().filter((one) => !chosen.some(({ number }) => number === one.number));
    return [...chosen, ...others].map(({ number, sum }) => {
      const at = (this.#places[number] ?? 0) - 1;
      const [words = 0, mask = 0] = [this.#words[at], this.#masks[at]];
      return { number, share: Math.min(1, sum / query.maxWeight), words: words + more, mask: mask | bits };
    });
  }

  newest(accepts: FactPredicate, most: number): number[] {
    const best = new Best(this.#facts, most);
    const { top } = this.#facts;
    for (let seen = 0; seen < top; seen += 1) best.offer(fromEitherEnd(seen, top), 0, accepts);
    return best.sorted().map(({ number }) => number);
  }
}

const isExhaustive = ({ narrowed, postings }: Extent): boolean => narrowed || postings === Infinity;

const maskOf = (mark: number): number => (mark > 32 ? 0 : 1 << (mark - 1));

/** Returns the words of which the index contains an alternative, the rarest word first, and the words to skip. */
function rarestFirst({ words }: ParsedQuery, exhaustive: boolean): { words: RankedWord[]; skipped: RankedWord[] } {
  const known = words
    .map((word, index) => ({ word, mark: index + 1, bound: word.weight * (word.alternatives[0]?.weight ?? 0) }))
    .filter(({ bound }) => bound > 0)
    .toSorted((one, other) => other.word.weight - one.word.weight);
  const least = exhaustive ? 0 : WORTHLESS * (known[0]?.bound ?? 0);
  return { words: known.filter(({ bound }) => bound >= least), skipped: known.filter(({ bound }) => bound < least) };
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

  /** The weight of the last fact, or 0 if there are fewer facts than wanted. */
  get least(): number {
    return Math.max(0, this.#least);
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
