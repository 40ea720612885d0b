import { CATEGORY as DEFAULT_CATEGORY } from '../../contract/categories.ts';
import { PostingLists, growTo } from './tables.ts';
import {
  CategoryTable,
  HASH_SEED,
  HashChains,
  NOT_FOUND,
  NameTable,
  TextPages,
  fieldOf,
  hash,
  type LocatedText,
} from './text-pages.ts';
import { Vocabulary } from './vocabulary.ts';
import { TERM_UNITS, TermFilter, type WordHandler, readWords } from './words.ts';

export type FactId = number | string;

export interface SearchableFact {
  readonly key: string;
  readonly category: string;
  readonly tags: readonly string[];
  /** The client that wrote the fact last. A search can filter by this client, but query words do not match its name. */
  readonly client?: string;
  /** The client that defined the pipeline, if a pipeline wrote this fact on behalf of `client`. */
  readonly definedBy?: string | undefined;
  readonly value: string;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  /** Milliseconds since 1970. A fact without this field never expires. */
  readonly expiresAt?: number;
}

export interface NameFilter {
  readonly tag?: string | undefined;
  readonly client?: string | undefined;
}

export interface IndexedFact {
  readonly id: FactId;
  readonly fact: SearchableFact & { readonly expiresAt: number; readonly client: string };
}

/**
 * Whether the words of a category are indexed. The default category is not indexed; otherwise "what do I use" would find every
 * fact in `user_facts`.
 */
export const isExplicitCategory = (category: string): boolean => category !== DEFAULT_CATEGORY.default;

/**
 * Weight of a word in the key. It is the highest, because the key names the fact. A category has a low weight, because many facts
 * share it.
 */
const KEY = 2.2;
const TAG = 1.4;
const CATEGORY = 0.7;

/**
 * Average number of words of a value. A word in a longer value weighs less. The average is a constant, so that a weight does not
 * depend on other facts.
 */
const AVERAGE_WORDS = 60;
const LENGTH_FACTOR = 0.6;
/** Controls how soon repetitions of a word stop adding weight, as k in BM25. */
const SATURATION = 0.8;

/** Maximum number of terms that are indexed for a fact, so that a fact of random text does not slow down the whole index. */
const MAX_TERMS = 4096;

/** Number of weight levels in a posting. A posting is the number of a fact, with the weight of the term in its lowest byte. */
export const WEIGHT_LEVELS = 256;
const MAX_FACTS = 1 << 24;
/** The fields of the text of a fact: its key, its id, the two clients, its tags, and its value as the last field. */
const KEY_FIELD = 0;
const ID_FIELD = 1;
const CLIENT_FIELD = 2;
const DEFINER_FIELD = 3;
const FIRST_TAG_FIELD = 4;
const NO_ADDRESS = 0xffffffff;

/** The places of the fields that are searched, in the bounds of a fact's text. */
export const placesOf = ({
  count,
}: LocatedText): { readonly key: number; readonly firstTag: number; readonly value: number } => ({
  key: 2 * KEY_FIELD,
  firstTag: 2 * FIRST_TAG_FIELD,
  value: 2 * (count - 1),
});

/**
 * Assigns a number to each fact, and lists the facts that contain each term. The number of a removed fact is reused once no
 * posting list contains it.
 */
export class FactIndex {
  readonly vocabulary = new Vocabulary();
  readonly #postings = new PostingLists({
    isLive: (posting) => this.isLive(posting >>> 8),
    onRemoved: (posting) => this.#release(posting >>> 8),
  });
  readonly #texts = new TextPages((fact, address) => {
    this.#addresses[fact] = address;
  });
  readonly #numbers = new HashChains();
  #top = 0;
  /** Facts with a lower number were added newest first, and are older than the others. Their numbers are never reused. */
  #reversed: number;
  readonly #spare: number[] = [];
  readonly #categories = new CategoryTable();
  readonly tags = new NameTable();
  readonly clients = new NameTable();
  #addresses = new Uint32Array(0);
  #updatedAt = new Float64Array(0);
  #expiresAt = new Float64Array(0);
  #category = new Uint32Array(0);
  /**
   * A 32-bit Bloom filter of each fact's tags and clients. A filter by name decodes only the facts that pass this Bloom filter.
   */
  #nameBits = new Uint32Array(0);
  /** For each fact, the number of posting lists that still contain the fact. */
  #held = new Uint16Array(0);

  constructor(newestFirst = false) {
    this.#reversed = newestFirst ? Infinity : 0;
  }

  get size(): number {
    return this.#numbers.size;
  }

  /** An upper bound: the number of every fact is lower than this. */
  get top(): number {
    return this.#top;
  }

  /** Bytes of memory that the index uses outside the JavaScript heap. */
  get bytes(): number {
    const columns = 30 * this.#addresses.length;
    const names = this.tags.bytes + this.clients.bytes;
    return this.vocabulary.bytes + this.#postings.bytes + this.#texts.bytes + this.#numbers.bytes + columns + names;
  }

  add(id: FactId, fact: SearchableFact): void {
    this.remove(id);
    const number = this.#spare.pop() ?? this.#top++;
    if (number >= MAX_FACTS) throw new RangeError('The search index cannot hold more facts.');
    if (number >= this.#addresses.length) this.#grow(number);
    const spelled = id === fact.key ? '' : spell(id);
    const { client = '', definedBy = '' } = fact;
    const texts = [fact.key, spelled, client, definedBy, ...fact.tags, fact.value];
    this.#addresses[number] = this.#texts.add(number, texts);
    const writers = clientBit(client) | (definedBy === '' ? 0 : clientBit(definedBy));
    this.#nameBits[number] = fact.tags.reduce((marks, tag) => marks | tagBit(tag), writers);
    for (const tag of fact.tags) this.tags.retain(tag);
    this.clients.retain(client);
    this.#numbers.add(number, hash(spell(id), HASH_SEED));
    this.#updatedAt[number] = fact.updatedAt;
    this.#expiresAt[number] = fact.expiresAt ?? Infinity;
    this.#category[number] = this.#categories.retain(fact.category);
    this.#held[number] = termWeights.weigh(this.vocabulary, fact, true, (term, weight) => {
      // The lowest level is 1, because a posting of 0 means that a fact does not contain the term.
      const level = Math.max(1, Math.round((WEIGHT_LEVELS - 1) * (weight / (weight + SATURATION))));
      this.#postings.add(term, number * WEIGHT_LEVELS + level);
    });
  }

  /** Removes a fact. Returns false if no fact has this id. */
  remove(id: FactId): boolean {
    const number = this.find(id);
    if (number === undefined) return false;
    const { fact } = this.factAt(number);
    for (const tag of fact.tags) this.tags.release(tag);
    this.clients.release(fact.client ?? '');
    this.#numbers.remove(number);
    this.#texts.remove(this.#addresses[number] ?? 0);
    this.#addresses[number] = NO_ADDRESS;
    this.#categories.release(this.#category[number] ?? 0);
    const terms = termWeights.weigh(this.vocabulary, fact, false, (term) => {
      this.#postings.markDead(term);
      if (this.#postings.size(term) === 0) this.vocabulary.remove(term);
    });
    if (terms === 0) this.#spareNumber(number);
    return true;
  }

  /** Declares that facts which are added from now on are newer than all facts before. */
  endBuild(): void {
    this.#reversed = Math.min(this.#reversed, this.#top);
  }

  /** Adds a fact again, so that it counts as newer than the facts before. Does nothing if no fact has this id. */
  renew(id: FactId): void {
    const number = this.find(id);
    if (number !== undefined) this.add(id, this.factAt(number).fact);
  }

  /** Overwrites every text in memory. The index cannot be used afterwards. */
  clear(): void {
    this.#texts.clear();
    this.#numbers.clear();
    this.tags.clear();
    this.clients.clear();
    this.vocabulary.clear();
  }

  has(id: FactId): boolean {
    return this.find(id) !== undefined;
  }

  /** Returns false if the number is free, or if its fact was removed. */
  isLive(number: number): boolean {
    return this.#addresses[number] !== NO_ADDRESS;
  }

  idOf(number: number): FactId {
    const text = this.locate(number);
    return idIn(text) ?? fieldOf(text, KEY_FIELD);
  }

  updatedAt(number: number): number {
    return this.#updatedAt[number] ?? 0;
  }

  expiresAt(number: number): number {
    return this.#expiresAt[number] ?? 0;
  }

  /** Returns the bytes of a fact's texts, until the next fact is located, added or removed. */
  locate(number: number): LocatedText {
    return this.#texts.locate(this.#addresses[number] ?? 0);
  }

  categoryOf(number: number): string {
    return this.#categories.name(this.#category[number] ?? 0);
  }

  factAt(number: number): IndexedFact {
    const text = this.locate(number);
    const last = text.count - 1;
    const tags: string[] = [];
    for (let field = FIRST_TAG_FIELD; field < last; field += 1) tags.push(fieldOf(text, field));
    const [key, definedBy] = [fieldOf(text, KEY_FIELD), fieldOf(text, DEFINER_FIELD)];
    const fact = {
      key,
      category: this.categoryOf(number),
      value: fieldOf(text, last),
      tags,
      client: fieldOf(text, CLIENT_FIELD),
      updatedAt: this.updatedAt(number),
      expiresAt: this.expiresAt(number),
    };
    return { id: idIn(text) ?? key, fact: definedBy === '' ? fact : { ...fact, definedBy } };
  }

  matchesNames({ tag, client }: NameFilter): (number: number) => boolean {
    const marks = (tag === undefined ? 0 : tagBit(tag)) | (client === undefined ? 0 : clientBit(client));
    return (number) => {
      if (((this.#nameBits[number] ?? 0) & marks) !== marks) return false;
      const text = this.locate(number);
      const isWriter = client === undefined || fieldOf(text, CLIENT_FIELD) === client || fieldOf(text, DEFINER_FIELD) === client;
      if (tag === undefined || !isWriter) return isWriter;
      for (let field = FIRST_TAG_FIELD; field < text.count - 1; field += 1) if (fieldOf(text, field) === tag) return true;
      return false;
    };
  }

  isInCategory(number: number, category: number): boolean {
    return this.#category[number] === category;
  }

  findCategory(category: string): number | undefined {
    return this.#categories.find(category);
  }

  count(term: number): number {
    return this.#postings.size(term);
  }

  /** Copies the newest postings of a term, at most `most`, to `postings`. Returns how many were copied. */
  readPostings(term: number, most: number): number {
    return this.#postings.read(term, most, this.#reversed * WEIGHT_LEVELS);
  }

  get postings(): Uint32Array {
    return this.#postings.entries;
  }

  /** Whether the postings of a term are in the order of fact numbers, so that `findPostings` can be used. */
  isSorted(term: number): boolean {
    return this.#postings.isSorted(term);
  }

  /**
   * Looks up single facts among the postings of a term. Each of the first `count` limits is the highest posting that its fact can
   * have, in ascending order. It is replaced with the highest posting that is not above it, which may belong to another fact.
   */
  findPostings(term: number, limits: Uint32Array, count: number): void {
    this.#postings.findBelow(term, limits, count);
  }

  #grow(number: number): void {
    this.#addresses = growTo(this.#addresses, number);
    this.#updatedAt = growTo(this.#updatedAt, number);
    this.#expiresAt = growTo(this.#expiresAt, number);
    this.#category = growTo(this.#category, number);
    this.#nameBits = growTo(this.#nameBits, number);
    this.#held = growTo(this.#held, number);
  }

  /** Returns the number of a fact, or undefined if it is not indexed. */
  find(id: FactId): number | undefined {
    let number = this.#numbers.first(hash(spell(id), HASH_SEED));
    while (number !== NOT_FOUND && this.idOf(number) !== id) number = this.#numbers.after(number);
    return number === NOT_FOUND ? undefined : number;
  }

  #spareNumber(number: number): void {
    if (number >= this.#reversed) this.#spare.push(number);
  }

  #release(number: number): void {
    const held = (this.#held[number] ?? 0) - 1;
    this.#held[number] = held;
    if (held === 0) this.#spareNumber(number);
  }
}

/** Converts an id to text, in which the number 7 differs from the text "7". */
const spell = (id: FactId): string => (typeof id === 'number' ? `#${id}` : `=${id}`);
const unspell = (spelled: string): FactId => (spelled.startsWith('#') ? Number(spelled.slice(1)) : spelled.slice(1));

const NUMBER_SIGN = 0x23;
const DIGIT_ZERO = 0x30;

/** Returns the id that a field spells. Reads digits from the bytes, because nearly all ids are row numbers. */
function idIn(text: LocatedText): FactId | undefined {
  const { bytes, bounds } = text;
  const [start = 0, end = 0] = [bounds[2 * ID_FIELD], bounds[2 * ID_FIELD + 1]];
  if (start === end) return undefined;
  let id = bytes[start] === NUMBER_SIGN ? 0 : NaN;
  for (let at = start + 1; at < end; at += 1) {
    const digit = (bytes[at] ?? 0) - DIGIT_ZERO;
    id = digit >= 0 && digit <= 9 ? 10 * id + digit : NaN;
  }
  return Number.isNaN(id) ? unspell(fieldOf(text, ID_FIELD)) : id;
}

const bitOf = (name: string): number => 1 << (hash(name, HASH_SEED) & 31);
const tagBit = (tag: string): number => bitOf(`tag ${tag}`);
const clientBit = (client: string): number => bitOf(`client ${client}`);

/**
 * Computes the terms of a fact and their weights. To save time, it creates no string for a term that is already in the
 * vocabulary. All indexes share one object, because its columns are used only during a call.
 */
class TermWeights implements WordHandler<string> {
  readonly filter = TermFilter.all;
  /** The vocabulary of the running call. */
  #vocabulary: Vocabulary | undefined;
  #addsTerms = false;
  /** For each term, one plus its index in the columns below, or 0 if the fact does not contain the term. */
  #places = new Uint16Array(0);
  readonly #terms = new Uint32Array(MAX_TERMS);
  readonly #weights = new Float64Array(MAX_TERMS);
  #count = 0;
  /**
   * How often each term occurs in the current text. Weights are computed after the whole text was read, because they depend on
   * the number of its words.
   */
  readonly #occurrences = new Uint32Array(MAX_TERMS);
  #words = 0;

  /**
   * Calls `onTerm` for each term of the fact, and returns the number of terms. Adds unknown terms to the vocabulary only if
   * `addsTerms` is true.
   */
  weigh(
    vocabulary: Vocabulary,
    { key, category, tags, value }: SearchableFact,
    addsTerms: boolean,
    onTerm: (term: number, weight: number) => void,
  ): number {
    this.#reset();
    this.#vocabulary = vocabulary;
    this.#addsTerms = addsTerms;
    this.#read(key, () => KEY);
    if (isExplicitCategory(category)) this.#read(category, () => CATEGORY);
    for (const tag of tags) this.#read(tag, () => TAG);
    this.#read(value, (words) => 1 / (1 - LENGTH_FACTOR + (LENGTH_FACTOR * words) / AVERAGE_WORDS));
    this.#vocabulary = undefined;
    for (let place = 0; place < this.#count; place += 1) {
      onTerm(this.#terms[place] ?? 0, this.#weights[place] ?? 0);
    }
    return this.#count;
  }

  onTerm(term: string): void {
    this.onPart(term, 0, term.length);
  }

  onPart(source: string, from: number, end: number): void {
    const to = Math.min(end, from + TERM_UNITS);
    this.#words += 1;
    const known = this.#vocabulary?.find(source, from, to);
    const place = known === undefined ? 0 : (this.#places[known] ?? 0);
    if (place > 0) this.#occurrences[place - 1] = (this.#occurrences[place - 1] ?? 0) + 1;
    else if (this.#count < MAX_TERMS) {
      const term = known ?? (this.#addsTerms ? this.#vocabulary?.add(source.slice(from, to)) : undefined);
      if (term !== undefined) this.#enter(term);
    }
  }

  #enter(term: number): void {
    if (term >= this.#places.length) this.#places = growTo(this.#places, term);
    this.#terms[this.#count] = term;
    this.#weights[this.#count] = 0;
    this.#occurrences[this.#count] = 1;
    this.#count += 1;
    this.#places[term] = this.#count;
  }

  /** Clears the state of the previous fact, even if reading that fact failed halfway. */
  #reset(): void {
    for (let place = 0; place < this.#count; place += 1) {
      this.#places[this.#terms[place] ?? 0] = 0;
      this.#occurrences[place] = 0;
    }
    this.#count = 0;
  }

  #read(text: string, weightOf: (words: number) => number): void {
    this.#words = 0;
    readWords(text, this);
    const weight = weightOf(this.#words);
    for (let place = 0; place < this.#count; place += 1) {
      this.#weights[place] = (this.#weights[place] ?? 0) + weight * (this.#occurrences[place] ?? 0);
      this.#occurrences[place] = 0;
    }
  }
}

const termWeights = new TermWeights();
