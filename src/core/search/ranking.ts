import { type FactIndex, WEIGHT_LEVELS } from './fact-index.ts';
import { type Alternative, type ParsedQuery, isOneIdentifier, rarestOfPhrase } from './parsed-query.ts';
import { BestFacts, type FactPredicate, fromEitherEnd, growTo } from './tables.ts';

export interface RankedFact {
  readonly number: number;
  /** The weight of the fact as a fraction of the highest possible weight, from 0 to 1. */
  readonly share: number;
  /** The number of query words that the fact contains, or may contain. */
  readonly words: number;
  /** A bit for each of the first 32 query words that the fact contains, or may contain. */
  readonly mask: number;
}

/** How many facts a search needs, and how much work it can do to find them. */
export interface Extent {
  /** The number of hits. Facts that cannot be among them may be left out. */
  readonly limit: number;
  /** The maximum number of facts to return as the best ones, from which the hits are chosen by reading their text. */
  readonly most: number;
  /** The maximum number of facts to return because they may contain the phrase. */
  readonly phrases: number;
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
/** While the rest of the words weighs less than this fraction of a word, facts with only that word stay in order of its weight. */
const LAST_WORD = 0.1;
/** Of the facts with only such a word, this many times the wanted number are read. */
const SPARE = 2;
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
  /** Whether facts were found since that weight was computed. */
  readonly isStale: boolean;
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
  /** The highest weights that `#leastHit` has found, highest first. */
  #best = new Float32Array(0);

  constructor(facts: FactIndex) {
    this.#facts = facts;
  }

  get bytes(): number {
    return 4 * (this.#places.length + this.#limits.length + this.#best.length) + 18 * this.#numbers.length;
  }

  /** Returns the best facts that the filter accepts, best first. Facts with equal weights are ordered newest first. */
  best(query: ParsedQuery, accepts: FactPredicate, extent: Extent): RankedFact[] {
    this.#places = growTo(this.#places, this.#facts.top);
    try {
      const { words, skipped } = rarestFirst(query, isExhaustive(extent));
      const collected = this.#collect(query, words, accepts, extent);
      const chosen = this.#choose(query, accepts, extent, collected === 'limited' ? 'unknown' : skipped);
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
    let isStale = false;
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
      isStale = false;
      if (remaining < REPLACEABLE * least) break;
      const isBounded = found && !exhaustive && ranked.word.role === 'part';
      const most = isBounded ? Math.min(left, at === sought ? MAX_PHRASE_POSTINGS : MAX_PART_POSTINGS) : left;
      remaining -= ranked.bound;
      isStale = true;
      const isLast = !exhaustive && remaining < LAST_WORD * ranked.bound && (unknown || isFound(words, at));
      const read = isLast ? this.#addStrongest(ranked, most, accepts, SPARE * extent.most) : this.#addWord(ranked, most);
      left -= read;
      if (left <= 0) {
        result = 'limited';
        at += 1;
        break;
      }
      if (read === most) result = 'shortened';
    }
    const unread = words.slice(at);
    // A fact with the phrase has each plain word. Facts with the only identifier of a query contain the phrase, and weigh more.
    const phraseFound = isFound(words, at) || (at === 1 && least > 0 && isOneIdentifier(query));
    const [ranked] = sought >= at && left > 0 && !phraseFound ? unread.splice(sought - at, 1) : [];
    if (ranked !== undefined) {
      this.#addWord(ranked, Math.min(left, MAX_PHRASE_POSTINGS));
      remaining -= ranked.bound;
      isStale = true;
    }
    return this.#lookUp(unread, words.length - unread.length, { ...extent, accepts, missable, remaining, least, isStale })
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
    const best = new BestFacts(this.#facts, most);
    const count = this.#facts.readPostings(id, read);
    best.offerPostings(this.#facts.postings, count, accepts);
    const sorted = best.takeAll();
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
   * Adds the weight of a word to the facts that were found, and to the best of the facts that contain only this word. Other facts
   * cannot become hits, because the rest of the words weighs little.
   */
  #addStrongest({ word, mark }: RankedWord, most: number, accepts: FactPredicate, wanted: number): number {
    let read = 0;
    for (const { id, weight } of word.alternatives) {
      if (read >= most) break;
      const worth = weight * word.weight;
      this.#lookUpTerm(id, worth, mark);
      const strongest = new BestFacts(this.#facts, wanted);
      const listed = this.#facts.readPostings(id, most - read);
      strongest.offerPostings(this.#facts.postings, listed, accepts);
      this.#limits = growTo(this.#limits, wanted);
      const chosen = strongest.takeAll();
      for (const [at, { number, sum }] of chosen.entries()) this.#limits[at] = number * WEIGHT_LEVELS + sum;
      this.#grow(this.#count + chosen.length);
      this.#apply(this.#limits, chosen.length, worth, mark);
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
    let { isStale } = rest;
    for (; at <= unread.length && left > 0; at += 1) {
      // Few facts could be dropped while the words to look up weigh nearly as much as a hit.
      if (this.#count > Math.max(limit, MAX_LOOKED_UP) && (least === 0 || open < PRUNABLE * least)) {
        if (isStale || least === 0) least = this.#leastHit(accepts, limit);
        this.#prune(REPLACEABLE * least - open, read + at - missable);
      }
      const ranked = unread[at];
      if (ranked === undefined) return true;
      for (const { id, weight } of ranked.word.alternatives)
        left -= this.#lookUpTerm(id, weight * ranked.word.weight, ranked.mark);
      open -= ranked.bound;
      isStale = true;
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
    const best = (this.#best = growTo(this.#best, limit)).fill(0, 0, limit);
    const [numbers, sums, count, last] = [this.#numbers, this.#sums, this.#count, limit - 1];
    let least = 0;
    for (let at = 0; at < count; at += 1) {
      const sum = sums[at] ?? 0;
      if (sum <= least) continue;
      const number = numbers[at] ?? 0;
      if (!this.#facts.isLive(number) || !accepts(number)) continue;
      let place = last;
      for (; place > 0 && (best[place - 1] ?? 0) < sum; place -= 1) best[place] = best[place - 1] ?? 0;
      best[place] = sum;
      least = best[last] ?? 0;
    }
    return least;
  }

  /** Drops the facts with less than this weight, except facts with at least this number of words, which may contain the phrase. */
  #prune(least: number, phraseWords: number): void {
    const [places, numbers, sums] = [this.#places, this.#numbers, this.#sums];
    const [latest, latestWord, words, masks] = [this.#latest, this.#latestWord, this.#words, this.#masks];
    let kept = 0;
    for (let at = 0; at < this.#count; at += 1) {
      const number = numbers[at] ?? 0;
      const sum = sums[at] ?? 0;
      if (sum < least && (words[at] ?? 0) < phraseWords) {
        places[number] = 0;
        continue;
      }
      numbers[kept] = number;
      sums[kept] = sum;
      latest[kept] = latest[at] ?? 0;
      latestWord[kept] = latestWord[at] ?? 0;
      words[kept] = words[at] ?? 0;
      masks[kept] = masks[at] ?? 0;
      kept += 1;
      places[number] = kept;
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

  /** Returns the best facts, then other facts that may contain the phrase. */
  #choose(
    query: ParsedQuery,
    accepts: FactPredicate,
    { most, phrases }: Extent,
    skipped: readonly RankedWord[] | 'unknown',
  ): RankedFact[] {
    const best = new BestFacts(this.#facts, most);
    const others = new BestFacts(this.#facts, phrases);
    const [more, bits] =
      skipped === 'unknown' ? [MAX_WORDS, ~0] : [skipped.length, skipped.reduce((mask, { mark }) => mask | maskOf(mark), 0)];
    // Facts with the identifier of such a query weigh the most. The others may spell it as several words.
    const fewer = query.onlyIdentifiers ? query.words.length : Infinity;
    for (let seen = 0; seen < this.#count; seen += 1) {
      const at = fromEitherEnd(seen, this.#count);
      best.offer(this.#numbers[at] ?? 0, this.#sums[at] ?? 0, accepts);
      const words = (this.#words[at] ?? 0) + more;
      if (words >= query.phraseWords && words < fewer) others.offer(this.#numbers[at] ?? 0, this.#sums[at] ?? 0, accepts);
    }
    const chosen = best.takeAll();
    const known = new Set(chosen.map(({ number }) => number));
    for (const other of others.takeAll()) if (!known.has(other.number)) chosen.push(other);
    return chosen.map(({ number, sum }) => {
      const at = (this.#places[number] ?? 0) - 1;
      const [words = 0, mask = 0] = [this.#words[at], this.#masks[at]];
      return { number, share: Math.min(1, sum / query.maxWeight), words: words + more, mask: mask | bits };
    });
  }

  newest(accepts: FactPredicate, most: number): number[] {
    const best = new BestFacts(this.#facts, most);
    const { top } = this.#facts;
    for (let seen = 0; seen < top; seen += 1) best.offer(fromEitherEnd(seen, top), 0, accepts);
    return best.takeAll().map(({ number }) => number);
  }
}

/** Whether a plain word is among the first words. Its postings include each fact with the phrase. */
const isFound = (words: readonly RankedWord[], count: number): boolean =>
  words.slice(0, count).some(({ word }) => word.role === 'plain');

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
