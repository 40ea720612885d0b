import { isExplicitCategory, type SearchableFact } from './fact-index.ts';
import type { ParsedQuery } from './parsed-query.ts';
import { TermFilter, type Word, characterBoundary, foldText, wordsOf } from './words.ts';

type Field = 'key' | 'tags' | 'category' | 'value';

/** The place where a word of the query occurs in the value. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** The index of the word in the query. */
  readonly word: number;
}

/** The best term that a fact contains for a word of the query. */
interface Finding {
  readonly term: string;
  readonly weight: number;
  readonly fields: Field[];
}

export interface FactMatch {
  /** The field that contains the exact phrase, if there is such a field. */
  readonly phrase: Field | undefined;
  /** From 0 to 1; it is 1 if all words that are adjacent in the query are also adjacent in the fact. */
  readonly nearness: number;
  readonly findings: ReadonlyMap<number, Finding>;
  readonly spans: readonly Span[];
}

/** Maximum characters that are read from a value. From a longer value, the part around the rarest query word is read. */
const WINDOW = 2000;
/** Maximum characters that are read from a value after the query has used up its limit of characters. */
const SMALL_WINDOW = 250;
/** Factor by which searching a text for a word is faster than splitting the text into words. */
const SEARCH_SPEEDUP = 20;
/**
 * Maximum characters of a value that is folded before it is searched. Longer values are only lowercased, because folding is slow.
 */
const MAX_FOLDED = 8000;
const MAX_SPANS = 64;
const MAX_NEAR_DISTANCE = 3;

interface Meaning {
  readonly word: number;
  readonly weight: number;
}

/** Compares candidate facts with one query. After reading `characters` characters in total, reads a smaller part of each fact. */
export class FactReader {
  readonly #query: ParsedQuery;
  readonly #meanings = new Map<string, Meaning[]>();
  readonly #filter = new TermFilter();
  /** True if the query has only stop words. Otherwise `spans` contains no stop words. */
  readonly #onlyStopWords: boolean;
  #left: number;

  constructor(query: ParsedQuery, characters: number) {
    this.#query = query;
    this.#left = characters;
    for (const [word, { alternatives }] of query.words.entries()) {
      for (const { term, weight } of alternatives) {
        this.#filter.add(term);
        const known = this.#meanings.get(term);
        if (known) known.push({ word, weight });
        else this.#meanings.set(term, [{ word, weight }]);
      }
    }
    // The words of the phrase are added separately, because `words` lacks some of them if the query is long.
    for (const { term } of query.phrase) this.#filter.add(term);
    this.#onlyStopWords = query.words.every(({ isStopWord }) => isStopWord);
  }

  /** Reads a fact. Looks for the exact phrase only if the fact may contain it. */
  read({ key, category, tags, value }: SearchableFact, mayContainPhrase = true): FactMatch {
    const phrase = mayContainPhrase ? this.#query.phrase : NO_PHRASE;
    const reading = new FactReading(this.#query, phrase, this.#meanings, this.#filter, this.#onlyStopWords);
    const { text, start } = this.#partOf(value);
    reading.readField('value', text, start);
    reading.readField('key', key);
    for (const tag of tags) reading.readField('tags', tag);
    if (isExplicitCategory(category)) reading.readField('category', category);
    return reading.match();
  }

  #partOf(value: string): { text: string; start: number } {
    const most = this.#left > 0 ? WINDOW : SMALL_WINDOW;
    if (value.length <= most) {
      this.#left -= value.length;
      return { text: value, start: 0 };
    }
    const start = this.#left > 0 ? windowStart(value, rarestTerms(this.#query)) : 0;
    this.#left -= most + value.length / SEARCH_SPEEDUP;
    return { text: value.slice(start, start + most), start };
  }
}

const NO_PHRASE: readonly Word[] = [];

class FactReading {
  readonly #query: ParsedQuery;
  readonly #wanted: readonly Word[];
  readonly #meanings: ReadonlyMap<string, readonly Meaning[]>;
  readonly #filter: TermFilter;
  readonly #onlyStopWords: boolean;
  readonly #findings = new Map<number, Finding>();
  readonly #spans: Span[] = [];
  /** For each word of the query, how near it is to the previous query word: 1 if the two are adjacent in the fact. */
  readonly #near: number[] = [];
  /** For each word of the query, its last position in the current field. */
  #seen: number[] = [];
  #phrase: Field | undefined;

  constructor(
    query: ParsedQuery,
    phrase: readonly Word[],
    meanings: ReadonlyMap<string, readonly Meaning[]>,
    filter: TermFilter,
    onlyStopWords: boolean,
  ) {
    this.#query = query;
    this.#wanted = phrase;
    this.#meanings = meanings;
    this.#filter = filter;
    this.#onlyStopWords = onlyStopWords;
  }

  readField(field: Field, text: string, offset = 0): void {
    const words = wordsOf(text, this.#filter);
    const wanted = this.#phrase === undefined && this.#wanted.length > 0;
    if (wanted && containsPhrase(words, this.#wanted)) this.#phrase = field;
    this.#seen = [];
    for (const found of words) {
      const meanings = this.#meanings.get(found.term);
      if (meanings === undefined) continue;
      for (const meaning of meanings) {
        this.#note(found.term, meaning, field);
        if (field === 'value') this.#mark(found, meaning.word, offset);
        const distance = found.position - (this.#seen[meaning.word - 1] ?? -Infinity);
        const near = distance > 0 && distance <= MAX_NEAR_DISTANCE ? meaning.weight / distance : 0;
        this.#near[meaning.word] = Math.max(this.#near[meaning.word] ?? 0, near);
        this.#seen[meaning.word] = found.position;
      }
    }
  }

  match(): FactMatch {
    return { phrase: this.#phrase, nearness: this.#nearness(), findings: this.#findings, spans: this.#spans };
  }

  #note(term: string, { word, weight }: Meaning, field: Field): void {
    const known = this.#findings.get(word);
    if (known === undefined || known.weight < weight) this.#findings.set(word, { term, weight, fields: [field] });
    else if (known.term === term && !known.fields.includes(field)) known.fields.push(field);
  }

  #mark({ start, end, parts }: Word, word: number, offset: number): void {
    if (parts > 0 || this.#spans.length === MAX_SPANS) return;
    if (!this.#onlyStopWords && this.#query.words[word]?.isStopWord === true) return;
    this.#spans.push({ start: start + offset, end: end + offset, word });
  }

  #nearness(): number {
    return meanNearness(this.#query, (word) => this.#near[word] ?? 0);
  }
}

/**
 * Returns the mean nearness of all pairs of consecutive words of the query. Each pair is weighted by the lower weight of its two
 * words.
 */
function meanNearness({ words, phraseWords }: ParsedQuery, near: (word: number) => number): number {
  let sum = 0;
  let most = 0;
  for (let word = 1; word < phraseWords; word += 1) {
    const pairWeight = Math.min(words[word]?.weight ?? 0, words[word - 1]?.weight ?? 0);
    most += pairWeight;
    sum += pairWeight * near(word);
  }
  return most === 0 ? 0 : sum / most;
}

/** Returns the highest nearness of a fact that contains only the words of this mask, and may contain the words after the 32nd. */
export const highestNearness = (query: ParsedQuery, mask: number): number =>
  meanNearness(query, (word) => (word >= 32 || ((mask >>> (word - 1)) & 3) === 3 ? 1 : 0));

/** Whether the words contain the phrase. Whole names are skipped, because their parts are compared instead. */
function containsPhrase(words: readonly Word[], phrase: readonly Word[]): boolean {
  for (let at = 0; at < words.length; at += 1) if (startsPhrase(words, at, phrase)) return true;
  return false;
}

function startsPhrase(words: readonly Word[], from: number, phrase: readonly Word[]): boolean {
  if (words[from]?.term !== phrase[0]?.term) return false;
  const offset = (words[from]?.position ?? 0) - (phrase[0]?.position ?? 0);
  let next = 0;
  for (let at = from; at < words.length; at += 1) {
    const [word, expected] = [words[at], phrase[next]];
    if (expected === undefined) return true;
    if (word === undefined) continue;
    const isWhole = word.parts > 0;
    if (word.position === expected.position + offset && word.term === expected.term && isWhole === expected.parts > 0) next += 1;
    else if (!isWhole) return false;
  }
  return next === phrase.length;
}

/** Returns the best alternatives of the query's words. Alternatives of the rarest word come first. */
function rarestTerms({ words }: ParsedQuery): string[] {
  const rarestFirst = words.toSorted((one, other) => other.weight - one.weight);
  return rarestFirst.flatMap(({ alternatives }) => alternatives.slice(0, 2).map(({ term }) => term)).slice(0, 16);
}

function windowStart(value: string, terms: readonly string[]): number {
  const folded = value.length > MAX_FOLDED ? value.toLowerCase() : foldText(value);
  // If folding changed the length, positions in the folded text are not positions in the value.
  const text = folded.length === value.length ? folded : value.toLowerCase();
  for (const term of terms) {
    const at = text.indexOf(term);
    if (at >= 0) return characterBoundary(value, Math.max(0, Math.min(at - WINDOW / 4, value.length - WINDOW)));
  }
  return 0;
}

export interface Snippet {
  readonly text: string;
  /** Index in the value at which the snippet starts. `end` is the index after its last character. */
  readonly start: number;
  readonly end: number;
}

const space = /\s/;
/** Maximum characters by which the start or the end of a snippet moves to reach a space. */
const MAX_SHIFT = 24;

/** Returns the part of a value that contains the highest number of distinct query words, at most `most` characters long. */
export function snippetOf(value: string, spans: readonly Span[], most: number): Snippet {
  if (value.length <= most) return { text: value, start: 0, end: value.length };
  const { first, last } = densest(spans, most);
  // Centre the words, if there is enough text on both sides.
  const spare = Math.max(0, most - (last - first));
  const wanted = Math.max(0, Math.min(first - (spare >> 1), value.length - most));
  const start = wanted === 0 ? 0 : afterSpace(value, wanted, first);
  const limit = Math.min(value.length, start + most);
  const end = limit === value.length ? limit : beforeSpace(value, limit, last);
  return { text: value.slice(start, end), start, end };
}

/** Returns the first range of `most` characters with the highest number of distinct words. */
function densest(spans: readonly Span[], most: number): { first: number; last: number } {
  const ordered = spans.toSorted((one, other) => one.start - other.start);
  const inside = new Map<number, number>();
  let best = { words: 0, first: 0, last: 0 };
  let from = 0;
  for (const span of ordered) {
    inside.set(span.word, (inside.get(span.word) ?? 0) + 1);
    for (let oldest = ordered[from]; oldest && span.end - oldest.start > most && oldest !== span; oldest = ordered[from]) {
      const left = (inside.get(oldest.word) ?? 0) - 1;
      if (left === 0) inside.delete(oldest.word);
      else inside.set(oldest.word, left);
      from += 1;
    }
    if (inside.size > best.words) best = { words: inside.size, first: ordered[from]?.start ?? 0, last: span.end };
  }
  return best;
}

function afterSpace(value: string, at: number, latest: number): number {
  const most = Math.min(at + MAX_SHIFT, latest);
  for (let place = at; place < most; place += 1) if (space.test(value.charAt(place))) return place + 1;
  return characterBoundary(value, at);
}

function beforeSpace(value: string, at: number, earliest: number): number {
  const least = Math.max(at - MAX_SHIFT, earliest);
  for (let place = at; place > least; place -= 1) if (space.test(value.charAt(place))) return place;
  return characterBoundary(value, at);
}
