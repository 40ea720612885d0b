import { type FactId, FactIndex, type IndexedFact, type NameFilter, type SearchableFact } from './fact-index.ts';
import { type FactMatch, FactReader, type Span, highestNearness, namesOfFields, spellingOf } from './fact-reader.ts';
import { type Alternative, type ParsedQuery, parseQuery, weightOfUnique } from './parsed-query.ts';
import { type Extent, type RankedFact, Ranking } from './ranking.ts';
import type { FactPredicate } from './tables.ts';
import type { NameCount } from './text-pages.ts';
import { foldText, isUnspaced, TERM_UNITS } from './words.ts';

export interface SearchQuery extends Filter {
  /**
   * The text to search for. Several texts are variants of one query, and their hits are merged. If all texts are blank, finds the
   * newest facts.
   */
  readonly text: string | readonly string[];
  readonly limit: number;
}

/** The conditions of a search. A fact must meet all of them to be found. */
export interface Filter extends NameFilter {
  readonly category?: string;
  /** If set, finds only facts that expire before this time, in milliseconds since 1970. */
  readonly expiresBefore?: number;
  /** If set, excludes facts that expire at or before this time, in milliseconds since 1970. */
  readonly now?: number;
}

/**
 * A ranked full-text index of facts, in RAM only. Adding or removing a fact takes bounded time, so the caller can index many
 * facts in small steps. A fact can be found as soon as it is added.
 */
export class SearchIndex {
  #facts: FactIndex;
  #ranking: Ranking;

  /** With `newestFirst`, each fact that is added before `endBuild` is called is older than those before it. */
  constructor({ newestFirst }: { newestFirst: boolean } = { newestFirst: false }) {
    this.#facts = new FactIndex(newestFirst);
    this.#ranking = new Ranking(this.#facts);
  }

  get size(): number {
    return this.#facts.size;
  }

  /** Bytes of memory that the index uses, nearly all of them outside the JavaScript heap. */
  get bytes(): number {
    return this.#facts.bytes + this.#ranking.bytes;
  }

  /** Adds a fact, or replaces the fact with the same id. Returns true if the index had to allocate memory. */
  add(fact: SearchableFact & { readonly id: FactId }): boolean {
    const before = this.#facts.bytes;
    this.#facts.add(fact.id, fact);
    return this.#facts.bytes > before;
  }

  /** Ends the build of an index that was filled newest first. Facts that are added later are newer. */
  endBuild(): void {
    this.#facts.endBuild();
  }

  /** Adds a fact again that was written during the build, so that it counts as newer than the facts before. */
  renew(id: FactId): void {
    this.#facts.renew(id);
  }

  has(id: FactId): boolean {
    return this.#facts.has(id);
  }

  remove(id: FactId): boolean {
    return this.#facts.remove(id);
  }

  /** Removes all facts. Overwrites their texts and terms in memory first. */
  clear(): void {
    this.#facts.clear();
    this.#facts = new FactIndex();
    this.#ranking = new Ranking(this.#facts);
  }

  /** Returns the tags and the clients with the most facts, at most `most` of each. */
  names(most: number): { readonly tags: NameCount[]; readonly clients: NameCount[] } {
    return { tags: this.#facts.tags.mostUsed(most), clients: this.#facts.clients.mostUsed(most) };
  }

  /** Returns the hits, best first. Hits with equal scores are ordered newest first. */
  search({ text, limit, ...filter }: SearchQuery): Hit[] {
    const texts = typeof text === 'string' ? [text] : [...new Set(text)];
    const queries = texts.filter((one) => one.trim() !== '');
    const tests = this.#tests(filter);
    if (tests === undefined) return [];
    const accepts: FactPredicate = (fact) => tests.every((matches) => matches(fact));
    const narrowed = tests.length > 1;
    // The probability of the best hit depends on the second one.
    const most = Math.max(2, limit);
    const run = new SearchRun({
      facts: this.#facts,
      ranking: this.#ranking,
      accepts,
      narrowed,
      limit: most,
      texts: queries.length,
    });
    const [only, ...more] = queries;
    if (only === undefined) return run.newest().slice(0, limit);
    const found = more.length === 0 ? run.search(only) : fuseHits(queries.map((one) => run.search(one)));
    return withProbabilities(found).slice(0, limit);
  }

  /** Returns those of the facts that are indexed and meet the conditions, at most the first `most`. */
  read(ids: readonly FactId[], filter: Filter, most: number): IndexedFact[] {
    const tests = this.#tests(filter) ?? [() => false];
    const found: IndexedFact[] = [];
    for (const id of ids) {
      if (found.length === most) break;
      const number = this.#facts.find(id);
      if (number !== undefined && tests.every((matches) => matches(number))) found.push(this.#facts.factAt(number));
    }
    return found;
  }

  /** Returns the tests that a fact must pass, or undefined if no fact is in the category. */
  #tests({ category, tag, client, expiresBefore, now = -Infinity }: Filter): FactPredicate[] | undefined {
    const facts = this.#facts;
    const tests: FactPredicate[] = [(fact) => facts.expiresAt(fact) > now];
    if (expiresBefore !== undefined) tests.push((fact) => facts.expiresAt(fact) < expiresBefore);
    if (category !== undefined) {
      const number = facts.findCategory(category);
      if (number === undefined) return undefined;
      tests.push((fact) => facts.isInCategory(fact, number));
    }
    if (tag !== undefined || client !== undefined) tests.push(facts.matchesNames({ tag, client }));
    return tests;
  }
}

export interface Hit {
  readonly id: FactId;
  /** The score from 0 to 1, which can be compared across queries. */
  readonly score: number;
  /** The share of the information in the query that the fact covers, from 0 to 1. Words that no fact contains count in full. */
  readonly coverage: number;
  /** The information that the fact shares with the query. A word that no other fact contains counts as 1, and a common word less. */
  readonly information: number;
  /** How similar the meanings of the fact and the question are: 1 if equal, 0 as unrelated texts. Undefined by words alone. */
  readonly similarity?: number;
  /** The probability from 0 to 1 that the fact answers the query. It is 0 if the query is blank. */
  readonly probability: number;
  /** True if the words alone show that the fact is meant: it contains the phrase, or most words of a query that is no sentence. */
  readonly isSure: boolean;
  /** Text that says which words were found in which fields. */
  readonly why: string;
  readonly spans: readonly Span[];
  readonly fact: IndexedFact['fact'];
}

interface ReadFact {
  readonly number: number;
  readonly updatedAt: number;
  readonly score: number;
  readonly match: FactMatch;
}

/** Lowest score of a fact that contains the exact phrase, and highest score of any other fact. */
const PHRASE_SCORE = 0.75;
/** Fraction of the score that depends on how near the query words are to each other in the fact. */
const NEARNESS_FRACTION = 0.1;
/** Exponent below 1 that raises low scores, because a fact with half of the words of a query is already a good hit. */
const SCORE_EXPONENT = 0.6;
const NEWEST_SCORE = 0.5;
const UNASKED = { coverage: 0, information: 0, probability: 0, isSure: false };
/** A query without stop words is a list of words, not a sentence. A fact that covers this share of the list is meant. */
const SURE_COVERAGE = 0.75;

/** In a memory of one fact, each of its words says less than a word that distinguishes facts. */
const MIN_SIZE = 2;

const MAX_READ_CANDIDATES = 64;
const MAX_PHRASE_CANDIDATES = 512;
/** Maximum facts that may contain a phrase of identifiers, spelled as several words. */
const MAX_SPELLED_APART = 64;
/** Maximum number of words of the phrase that are compared before a fact is read. */
const MAX_COMPARED_WORDS = 32;

/** Limits on the work for one text of a query. The more texts the query has, the lower the limits are. */
interface Effort {
  readonly words: number;
  readonly postings: number;
  /** Maximum characters that are searched for the phrase, and maximum characters that are read to score facts. */
  readonly characters: number;
}

const effortOf = (texts: number): Effort => ({
  words: Math.max(8, Math.floor(128 / texts)),
  postings: Math.max(4000, Math.floor(100_000 / texts)),
  characters: Math.floor(200_000 / texts),
});

interface RunOptions {
  readonly facts: FactIndex;
  readonly ranking: Ranking;
  readonly accepts: FactPredicate;
  /** True if the filter checks more than whether a fact has expired. */
  readonly narrowed: boolean;
  readonly limit: number;
  readonly texts: number;
}

/** One search with its filter and limits. It decodes each fact only once, even if several texts find the fact. */
class SearchRun {
  readonly #facts: FactIndex;
  readonly #ranking: Ranking;
  readonly #accepts: FactPredicate;
  readonly #narrowed: boolean;
  readonly #limit: number;
  readonly #effort: Effort;
  readonly #opened = new Map<number, IndexedFact>();

  constructor({ facts, ranking, accepts, narrowed, limit, texts }: RunOptions) {
    this.#facts = facts;
    this.#ranking = ranking;
    this.#accepts = accepts;
    this.#narrowed = narrowed;
    this.#limit = limit;
    this.#effort = effortOf(texts);
  }

  newest(): Hit[] {
    return this.#ranking
      .newest(this.#accepts, this.#limit)
      .map((number) => ({ ...this.#open(number), score: NEWEST_SCORE, ...UNASKED, why: 'newest', spans: [] }));
  }

  search(text: string): Hit[] {
    const query = parseQuery(text, this.#facts, { words: this.#effort.words, narrowed: this.#narrowed });
    if (query.words.length === 0) return [];
    const reader = new FactReader(query, this.#facts, this.#effort.characters);
    const found: ReadFact[] = [];
    for (const candidate of this.#worthReading(query)) {
      const { number, share } = candidate;
      if (this.#isBeaten(candidate, query, found)) continue;
      const match = reader.read(number, mayContainPhrase(query, candidate));
      const nearness = isIncomplete(query, candidate) ? 0 : match.nearness;
      found.push({ number, updatedAt: this.#facts.updatedAt(number), match, score: score(share, match.phrase, nearness) });
      this.#moveLastIntoPlace(found);
      if (found.length > this.#limit) found.pop();
    }
    const unique = weightOfUnique(Math.max(MIN_SIZE, this.#facts.size));
    const isList = query.words.every(({ isStopWord }) => !isStopWord);
    return found.map(({ number, match, score: scored }) => {
      const { id, fact } = this.#open(number);
      const { coverage, found: shared } = coverageOf(query, match);
      const isSure = match.phrase !== undefined || (isList && coverage >= SURE_COVERAGE);
      return {
        id,
        score: scored,
        coverage,
        information: shared / unique,
        probability: 0,
        isSure,
        why: explainHit(query, match, fact),
        spans: match.spans,
        fact,
      };
    });
  }

  /** Whether the fact cannot become a hit, even if its words are next to each other. */
  #isBeaten(candidate: RankedFact, query: ParsedQuery, found: readonly ReadFact[]): boolean {
    const last = found[this.#limit - 1];
    if (last === undefined) return false;
    const { number, share } = candidate;
    const phrase = mayContainPhrase(query, candidate) ? 'value' : undefined;
    const most = score(share, phrase, isIncomplete(query, candidate) ? 0 : highestNearness(query, candidate.mask));
    return most < last.score || (most === last.score && this.#facts.updatedAt(number) < last.updatedAt);
  }

  /** Moves the last element to its sorted place. The move is usually short, because candidates arrive nearly sorted. */
  #moveLastIntoPlace(found: ReadFact[]): void {
    for (let at = found.length - 1; at > 0; at -= 1) {
      const [above, below] = [found[at - 1], found[at]];
      if (!above || !below || !this.#isBetter(below, above)) return;
      found[at - 1] = below;
      found[at] = above;
    }
  }

  #isBetter(one: ReadFact, other: ReadFact): boolean {
    if (one.score !== other.score) return one.score > other.score;
    if (one.updatedAt !== other.updatedAt) return one.updatedAt > other.updatedAt;
    return this.#open(one.number).fact.key < this.#open(other.number).fact.key;
  }

  /**
   * Returns the candidates to read: those that could become hits if their query words are near each other, and those that contain
   * the words of the query in order, with any punctuation.
   */
  #worthReading(query: ParsedQuery): RankedFact[] {
    const most = Math.max(MAX_READ_CANDIDATES, this.#limit);
    if (query.words.length === 1) return this.#aboutOneWord(query, most);
    const phrases = query.onlyIdentifiers ? MAX_SPELLED_APART : MAX_PHRASE_CANDIDATES;
    const candidates = this.#ranking.best(query, this.#accepts, this.#extent(most, phrases));
    const least = (1 - NEARNESS_FRACTION) * (candidates[this.#limit - 1]?.share ?? 0);
    const likely = candidates.slice(0, most).filter(({ share }) => share >= least);
    const unsure = candidates.filter(
      (candidate, at) => candidate.words >= query.phraseWords && (at >= likely.length || isIncomplete(query, candidate)),
    );
    const containing = new Set(this.#containing(query, unsure));
    // A fact that spells an identifier as several words counts as if it contained the identifier.
    const complete = [...containing].map((candidate) => ({ ...candidate, words: query.words.length }));
    return [...likely.filter((candidate) => !containing.has(candidate)), ...complete];
  }

  /**
   * Returns the candidates for a query of one word. Includes facts with the word itself even if facts with other forms of the
   * word rank higher.
   */
  #aboutOneWord(query: ParsedQuery, most: number): RankedFact[] {
    const alternatives = query.words[0]?.alternatives ?? [];
    const [surest, ...others] = alternatives;
    if (!surest) return [];
    const best = (some: readonly Alternative[]): RankedFact[][] =>
      this.#ranking.bestOfEach(some, this.#accepts, most, this.#effort.postings);
    // A filter by name or category is slow, so it must not check the same fact again for each form of the word.
    const apart = others.length === 0 || !this.#narrowed;
    const lists = apart ? best(alternatives) : [];
    const candidates = apart ? this.#bestOf(lists).slice(0, most) : this.#ranking.best(query, this.#accepts, this.#extent(most));
    if (candidates.length < most || others.length === 0 || surest.kind !== 'same') return candidates;
    const known = new Set(candidates.map(({ number }) => number));
    const [itself = []] = apart ? lists : best([surest]);
    return [...candidates, ...itself.filter(({ number }) => !known.has(number))];
  }

  #extent(most: number, phrases = 0): Extent {
    return { limit: this.#limit, most, phrases, postings: this.#effort.postings, narrowed: this.#narrowed };
  }

  /** Returns each fact once with its highest share, best first. Facts with equal shares are ordered newest first. */
  #bestOf(lists: readonly RankedFact[][]): RankedFact[] {
    const [only = [], ...more] = lists;
    if (more.length === 0) return only;
    const byNumber = new Map<number, RankedFact>();
    for (const candidate of lists.flat()) {
      const known = byNumber.get(candidate.number);
      if (!known || candidate.share > known.share) byNumber.set(candidate.number, candidate);
    }
    const moment = ({ number }: RankedFact): number => this.#facts.updatedAt(number);
    return [...byNumber.values()].toSorted(
      (one, other) => other.share - one.share || moment(other) - moment(one) || other.number - one.number,
    );
  }

  #containing({ text, phrase }: ParsedQuery, candidates: readonly RankedFact[]): RankedFact[] {
    if (candidates.length === 0) return [];
    const literal = foldText(text);
    const terms = phrase.slice(0, MAX_COMPARED_WORDS).map(({ term }) => term);
    const contains = (field: string): boolean => {
      const folded = foldText(field);
      return folded.includes(literal) || containsInOrder(folded, terms);
    };
    let left = this.#effort.characters;
    const containing = candidates.filter(({ number }) => {
      if (left <= 0) return false;
      const { key, value } = this.#open(number).fact;
      left -= value.length;
      return left >= 0 && (contains(value) || contains(key));
    });
    return containing.slice(0, this.#limit);
  }

  #open(number: number): IndexedFact {
    const known = this.#opened.get(number);
    if (known) return known;
    const fact = this.#facts.factAt(number);
    this.#opened.set(number, fact);
    return fact;
  }
}

const score = (share: number, phrase: FactMatch['phrase'], nearness: number): number =>
  phrase === undefined
    ? PHRASE_SCORE * (share * (1 - NEARNESS_FRACTION + NEARNESS_FRACTION * nearness)) ** SCORE_EXPONENT
    : PHRASE_SCORE + (1 - PHRASE_SCORE) * share;

/** Rare words carry more information than common ones, and a similar term carries less than the word itself. */
function coverageOf(
  { words }: ParsedQuery,
  { phrase, findings }: FactMatch,
): { readonly coverage: number; readonly found: number } {
  let [all, found] = [0, 0];
  for (const { weight } of words) all += weight;
  if (phrase !== undefined) return { coverage: 1, found: all };
  for (const { word, weight } of findings) found += weight * (words[word]?.weight ?? 0);
  return { coverage: all === 0 ? 0 : Math.min(1, found / all), found };
}

/**
 * Whether a fact lacks an identifier of a query of nothing else, and does not spell it as several words. The order of the parts in
 * the fact does not change its score, so that it is read only if it becomes a hit.
 */
const isIncomplete = ({ words, onlyIdentifiers }: ParsedQuery, found: RankedFact): boolean =>
  onlyIdentifiers && found.words < words.length;

const letterOrDigit = /[\p{L}\p{N}]/u;

/** Whether a folded text contains these words in order, with nothing but punctuation or spaces between them. */
function containsInOrder(text: string, [first = '', ...others]: readonly string[]): boolean {
  for (let start = text.indexOf(first); start >= 0; start = text.indexOf(first, start + 1)) {
    let at = start + first.length;
    const follows = (term: string): boolean => {
      while (at < text.length && !text.startsWith(term, at)) {
        if (letterOrDigit.test(text.charAt(at))) return false;
        at += 1;
      }
      at += term.length;
      return at <= text.length;
    };
    if (others.every(follows)) return true;
  }
  return false;
}

const mayContainPhrase = (query: ParsedQuery, found: RankedFact): boolean =>
  found.words >= query.phraseWords && !isIncomplete(query, found);

const best = (one: Hit, other: Hit): number =>
  other.score - one.score || other.fact.updatedAt - one.fact.updatedAt || (one.fact.key < other.fact.key ? -1 : 1);

/** Fraction of a merged score that comes from the best hit. The rest is the mean score over all texts. */
const BEST_FRACTION = 0.8;

/**
 * Merges the hits of several query texts. The score of a fact depends mostly on its best hit, and is higher if more texts found
 * the fact.
 */
function fuseHits(found: readonly Hit[][]): Hit[] {
  const byId = new Map<FactId, Hit[]>();
  for (const hit of found.flat()) {
    const known = byId.get(hit.id);
    if (known) known.push(hit);
    else byId.set(hit.id, [hit]);
  }
  const fused = [...byId.values()].flatMap((hits) => {
    const [first] = hits.toSorted(best);
    const mean = hits.reduce((sum, hit) => sum + hit.score, 0) / found.length;
    return first ? [{ ...first, score: BEST_FRACTION * first.score + (1 - BEST_FRACTION) * mean }] : [];
  });
  return fused.toSorted(best);
}

/** Weights of the probability by words alone, fitted to questions with and without an answer (ADR 0116). */
const ANSWER = { base: -8.01, coverage: 7.97, lead: 9.88 };

/** A hit that covers most of the query, and is much better than all others, probably answers it. */
const withProbabilities = (hits: readonly Hit[]): Hit[] =>
  hits.map((hit, place) => {
    const lead = hit.score - ((place === 0 ? hits[1] : hits[0])?.score ?? 0);
    return { ...hit, probability: 1 / (1 + Math.exp(-(ANSWER.base + ANSWER.coverage * hit.coverage + ANSWER.lead * lead))) };
  });

const MAX_WORDS = 8;

/** Characters that are not visible, and could change how the text around them is shown. */
const invisible = /\p{Default_Ignorable_Code_Point}/gu;
const ascii = /^[\0-\x7f]*$/;

/** Returns a term as the query or the fact writes it. The term of a pair of characters has no spelling of its own. */
const shownAs = (term: string, spelling: string = term): string =>
  isUnspaced(term) || spelling.length > TERM_UNITS ? term : ascii.test(spelling) ? spelling : spelling.replace(invisible, '');

/** Describes which words were found in which fields, as in `"deploy" in key, value; "kubernetes" for "kuberntes" in value`. */
function explainHit({ words, spellings }: ParsedQuery, { phrase, findings }: FactMatch, fact: SearchableFact): string {
  const meaningful = findings.filter(({ word }) => words[word]?.isStopWord === false);
  const shown = meaningful.length > 0 ? meaningful : [...findings];
  if (shown.length > 1) shown.sort((one, other) => (words[other.word]?.weight ?? 0) - (words[one.word]?.weight ?? 0));
  let why = phrase === undefined ? '' : `exact phrase in ${phrase}`;
  for (const finding of shown.slice(0, MAX_WORDS)) {
    const { word, term, fields } = finding;
    const queried = words[word]?.term ?? '';
    const asked = shownAs(queried, spellings.get(queried));
    const named = term === queried ? `"${asked}"` : `"${shownAs(term, spellingOf(fact, finding))}" for "${asked}"`;
    why += `${why === '' ? '' : '; '}${named} in ${namesOfFields(fields)}`;
  }
  return why;
}
