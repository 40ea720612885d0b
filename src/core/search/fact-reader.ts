import { type FactIndex, isExplicitCategory, placesOf, type SearchableFact } from './fact-index.ts';
import { type ParsedQuery, soughtTexts } from './parsed-query.ts';
import { type LocatedText, fieldOf } from './text-pages.ts';
import {
  TermFilter,
  characterBoundary,
  foldText,
  TERM_UNITS,
  type Word,
  type WordHandler,
  readAscii,
  readUnicode,
} from './words.ts';

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
  /** The index of the word in the query. */
  readonly word: number;
  term: string;
  weight: number;
  /** The fields that contain the term, as the sum of their bits. */
  fields: number;
  /** The place of the term in the first of these fields, which is `field`. */
  field: Field;
  start: number;
  end: number;
}

export interface FactMatch {
  /** The field that contains the exact phrase, if there is such a field. */
  readonly phrase: Field | undefined;
  /** From 0 to 1; it is 1 if all words that are adjacent in the query are also adjacent in the fact. */
  readonly nearness: number;
  readonly findings: readonly Finding[];
  readonly spans: readonly Span[];
}

const FIELDS: readonly Field[] = ['value', 'key', 'tags', 'category'];
const BITS: Readonly<Record<Field, number>> = { value: 1, key: 2, tags: 4, category: 8 };

/** Returns the fields of a finding, as text for a person. */
export const namesOfFields = (fields: number): string => NAMES_OF_FIELDS[fields] ?? '';

const NAMES_OF_FIELDS: readonly string[] = Array.from({ length: 1 << FIELDS.length }, (_, fields) =>
  FIELDS.filter((field) => (fields & BITS[field]) !== 0).join(', '),
);

/** Returns how the fact writes the term of a finding, or the term itself if its place is not known. */
export function spellingOf(fact: SearchableFact, { term, field, start, end }: Finding): string {
  for (const text of field === 'tags' ? fact.tags : [fact[field]]) {
    const spelling = text.slice(start, end);
    if (spelling === term || foldText(spelling).replaceAll(/[-_]/g, '') === term) return spelling;
  }
  return term;
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

interface SoughtTerm {
  readonly text: string;
  readonly meanings: Meaning[];
}

/** The terms that a query looks for. */
class SoughtTerms {
  readonly filter = new TermFilter();
  /** The terms by their first character. */
  readonly #terms: SoughtTerm[][] = [];

  add(text: string): SoughtTerm {
    const first = text.charCodeAt(0) & 31;
    const some = (this.#terms[first] ??= []);
    for (const known of some) if (known.text === text) return known;
    const term: SoughtTerm = { text, meanings: [] };
    some.push(term);
    this.filter.add(first, text.length);
    return term;
  }

  find(text: string): SoughtTerm | undefined {
    return this.#terms[text.charCodeAt(0) & 31]?.find((term) => term.text === text);
  }

  /** Returns the term that equals these letters and digits of ASCII, in either case. */
  findAscii(bytes: Buffer, from: number, to: number): SoughtTerm | undefined {
    for (const term of this.#terms[(bytes[from] ?? 0) & 31] ?? []) {
      if (term.text.length === to - from && equalsFolded(bytes, from, term.text)) return term;
    }
    return undefined;
  }
}

function equalsFolded(bytes: Buffer, from: number, term: string): boolean {
  for (let at = 0; at < term.length; at += 1) {
    const byte = bytes[from + at] ?? 0;
    if (term.charCodeAt(at) !== (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte)) return false;
  }
  return true;
}

interface FoundWord {
  readonly term: string;
  readonly position: number;
  readonly parts: number;
}

/** Compares candidate facts with one query. After reading `characters` characters in total, reads a smaller part of each fact. */
export class FactReader implements WordHandler<Buffer> {
  readonly #facts: FactIndex;
  readonly #query: ParsedQuery;
  readonly #terms = new SoughtTerms();
  readonly filter = this.#terms.filter;
  /** True if the query has only stop words. Otherwise `spans` contains no stop words. */
  readonly #onlyStopWords: boolean;
  /** What to look for in a long value. Undefined until the first long value is read. */
  #sought: readonly (string | RegExp)[] | undefined;
  #left: number;

  /** The state of the fact and of the field that is being read. */
  #field: Field = 'value';
  #offset = 0;
  #findings: Finding[] = [];
  #spans: Span[] = [];
  /** For each word of the query, its finding in this fact, or nothing. */
  readonly #found: (Finding | undefined)[];
  /** For each word of the query, how near it is to the previous query word: 1 if the two are adjacent in the fact. */
  readonly #near: Float64Array;
  readonly #nearOf = (word: number): number => this.#near[word] ?? 0;
  /** For each word of the query, its last position in the current field. */
  readonly #seen: Float64Array;
  #phrase: Field | undefined;
  /** The sought terms of the field, or undefined if the phrase is not looked for. */
  #words: FoundWord[] | undefined;

  constructor(query: ParsedQuery, facts: FactIndex, characters: number) {
    this.#query = query;
    this.#facts = facts;
    this.#left = characters;
    let word = 0;
    for (const { alternatives } of query.words) {
      for (const { term, weight } of alternatives) this.#terms.add(term).meanings.push({ word, weight });
      word += 1;
    }
    // The words of the phrase are added separately, because `words` lacks some of them if the query is long.
    for (const { term } of query.phrase) this.#terms.add(term);
    this.#onlyStopWords = query.words.every(({ isStopWord }) => isStopWord);
    const { length } = query.words;
    this.#found = Array.from({ length });
    this.#near = new Float64Array(length);
    this.#seen = new Float64Array(length + 1);
  }

  /** Reads the fact with this number. Looks for the exact phrase only if the fact may contain it. */
  read(number: number, mayContainPhrase = true): FactMatch {
    this.#findings = [];
    this.#spans = [];
    this.#found.fill(undefined);
    this.#near.fill(0);
    this.#phrase = undefined;
    const wanted = mayContainPhrase && this.#query.phrase.length > 0;
    const text = this.#facts.locate(number);
    const { key, firstTag, value } = placesOf(text);
    this.#readValue(text, value, wanted);
    this.#readField('key', text, key, wanted);
    for (let tag = firstTag; tag < value; tag += 2) this.#readField('tags', text, tag, wanted);
    const category = this.#facts.categoryOf(number);
    if (isExplicitCategory(category)) this.#readText('category', category, wanted);
    const nearness = meanNearness(this.#query, this.#nearOf);
    return { phrase: this.#phrase, nearness, findings: this.#findings, spans: this.#spans };
  }

  #readValue(text: LocatedText, place: number, wanted: boolean): void {
    const length = (text.bounds[place + 1] ?? 0) - (text.bounds[place] ?? 0);
    if (text.isAscii && length <= this.#most()) {
      this.#left -= length;
      this.#readField('value', text, place, wanted);
    } else {
      const part = this.#partOf(fieldOf(text, place / 2));
      this.#readText('value', part.text, wanted, part.start);
    }
  }

  /** Reads ASCII from the bytes, without creating a string. */
  #readField(field: Field, text: LocatedText, place: number, wanted: boolean): void {
    if (!text.isAscii) return this.#readText(field, fieldOf(text, place / 2), wanted);
    this.#begin(field, wanted, 0);
    readAscii(text.bytes, text.bounds[place] ?? 0, text.bounds[place + 1] ?? 0, this);
    this.#end();
  }

  #readText(field: Field, text: string, wanted: boolean, offset = 0): void {
    this.#begin(field, wanted, offset);
    const bytes = Buffer.from(text);
    if (bytes.length === text.length) readAscii(bytes, 0, bytes.length, this);
    else readUnicode(text, this);
    this.#end();
  }

  #begin(field: Field, wanted: boolean, offset: number): void {
    this.#field = field;
    this.#offset = offset;
    this.#seen.fill(-Infinity);
    this.#words = wanted && this.#phrase === undefined ? [] : undefined;
  }

  #end(): void {
    if (this.#words && containsPhrase(this.#words, this.#query.phrase)) this.#phrase = this.#field;
  }

  onPart(bytes: Buffer, from: number, to: number, start: number, position: number): void {
    const found = this.#terms.findAscii(bytes, from, Math.min(to, from + TERM_UNITS));
    if (found !== undefined) this.#onFound(found, start, start + to - from, position, 0);
  }

  onTerm(term: string, start: number, end: number, position: number, parts: number): void {
    const found = this.#terms.find(term);
    if (found !== undefined) this.#onFound(found, start, end, position, parts);
  }

  #onFound({ text, meanings }: SoughtTerm, start: number, end: number, position: number, parts: number): void {
    this.#words?.push({ term: text, position, parts });
    for (const { word, weight } of meanings) {
      this.#note(text, word, weight, start, end);
      if (parts === 0 && this.#field === 'value') this.#mark(start, end, word);
      // The first word of the query has no word before it.
      const distance = word === 0 ? Infinity : position - (this.#seen[word - 1] ?? 0);
      const near = distance > 0 && distance <= MAX_NEAR_DISTANCE ? weight / distance : 0;
      if (near > (this.#near[word] ?? 0)) this.#near[word] = near;
      this.#seen[word] = position;
    }
  }

  #note(term: string, word: number, weight: number, start: number, end: number): void {
    const known = this.#found[word];
    const field = this.#field;
    const fields = BITS[field];
    if (known !== undefined && known.weight >= weight) {
      if (known.term === term) known.fields |= fields;
      return;
    }
    const [from, to] = [start + this.#offset, end + this.#offset];
    if (known === undefined) {
      this.#findings.push((this.#found[word] = { word, term, weight, fields, field, start: from, end: to }));
      return;
    }
    known.term = term;
    known.weight = weight;
    known.fields = fields;
    known.field = field;
    known.start = from;
    known.end = to;
  }

  #mark(start: number, end: number, word: number): void {
    if (this.#spans.length === MAX_SPANS) return;
    if (!this.#onlyStopWords && this.#query.words[word]?.isStopWord === true) return;
    this.#spans.push({ start: start + this.#offset, end: end + this.#offset, word });
  }

  #most(): number {
    return this.#left > 0 ? WINDOW : SMALL_WINDOW;
  }

  #partOf(value: string): { text: string; start: number } {
    const most = this.#most();
    if (value.length <= most) {
      this.#left -= value.length;
      return { text: value, start: 0 };
    }
    const start = this.#left > 0 ? windowStart(value, (this.#sought ??= soughtTexts(this.#query))) : 0;
    this.#left -= most + value.length / SEARCH_SPEEDUP;
    return { text: value.slice(start, start + most), start };
  }
}

/**
 * Returns the mean nearness of all pairs of consecutive words of the query. Each pair is weighted by the lower weight of its two
 * words.
 */
function meanNearness({ words, phraseWords }: ParsedQuery, nearOf: (word: number) => number): number {
  let sum = 0;
  let most = 0;
  let before = words[0]?.weight ?? 0;
  for (let word = 1; word < phraseWords; word += 1) {
    const weight = words[word]?.weight ?? 0;
    const pairWeight = weight < before ? weight : before;
    before = weight;
    most += pairWeight;
    sum += pairWeight * nearOf(word);
  }
  return most === 0 ? 0 : sum / most;
}

/** Returns the highest nearness of a fact that contains only the words of this mask, and may contain the words after the 32nd. */
export const highestNearness = (query: ParsedQuery, mask: number): number =>
  meanNearness(query, (word) => (word >= 32 || ((mask >>> (word - 1)) & 3) === 3 ? 1 : 0));

/** Whether the words contain the phrase. Whole names are skipped, because their parts are compared instead. */
function containsPhrase(words: readonly FoundWord[], phrase: readonly Word[]): boolean {
  for (let at = 0; at < words.length; at += 1) if (startsPhrase(words, at, phrase)) return true;
  return false;
}

function startsPhrase(words: readonly FoundWord[], from: number, phrase: readonly Word[]): boolean {
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

function windowStart(value: string, sought: readonly (string | RegExp)[]): number {
  const folded = value.length > MAX_FOLDED ? value.toLowerCase() : foldText(value);
  // If folding changed the length, positions in the folded text are not positions in the value.
  const text = folded.length === value.length ? folded : value.toLowerCase();
  for (const one of sought) {
    const at = typeof one === 'string' ? text.indexOf(one) : text.search(one);
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
