import { CATEGORY as DEFAULT_CATEGORY } from '../../contract/limits.ts';
import { HASH_SEED, HashChains, NOT_FOUND, PostingLists, growTo, hash } from './tables.ts';
import { CategoryTable, NameTable, TextPages } from './text-pages.ts';
import { Vocabulary } from './vocabulary.ts';
import { type WordHandler, readWords } from './words.ts';

export type FactId = number | string;

/** The searchable fields of a fact. */
export interface SearchableFact {
  readonly key: string;
  readonly category: string;
  readonly tags: readonly string[];
  /** The client that wrote it last. It can be filtered by, but is not searched as text. */
  readonly client?: string;
  /** The client whose definition wrote it in the name of `client`. */
  readonly definedBy?: string | undefined;
  readonly value: string;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  /** A fact without it never expires. */
  readonly expiresAt?: number;
}

/** Names that a fact must have to be found. */
export interface NameFilter {
  readonly tag?: string | undefined;
  readonly client?: string | undefined;
}

/** A fact as it was added. */
export interface IndexedFact {
  readonly id: FactId;
  readonly fact: SearchableFact & { readonly expiresAt: number; readonly client: string };
}

/** The words of the default category are not indexed, or "what do I use" would find every fact in `user_facts`. */
export const isExplicitCategory = (category: string): boolean => category !== DEFAULT_CATEGORY.default;

/** Weights of the fields. The key names the fact, and a category is shared by many facts. */
const KEY = 2.2;
const TAG = 1.4;
const CATEGORY = 0.7;

/** A word in a long value weighs less. The average length is fixed, so that a weight does not depend on other facts. */
const AVERAGE_WORDS = 60;
const LENGTH_FACTOR = 0.6;
/** How soon a repeated word adds nothing more, as k in BM25. */
const SATURATION = 0.8;

/** Only the first terms of a fact are indexed, so that a fact of random text does not slow down everything else. */
const MAX_TERMS = 4096;

/** A posting is the number of a fact, with the weight of the term in its lowest byte. */
export const WEIGHT_LEVELS = 256;
const MAX_FACTS = 1 << 24;
const NO_ADDRESS = 0xffffffff;

/** Numbers facts, and lists for each term the facts that contain it. A number is used again once no list contains it. */
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
  readonly #terms = new TermWeights(this.vocabulary);
  #top = 0;
  readonly #spare: number[] = [];
  readonly #categories = new CategoryTable();
  readonly tags = new NameTable();
  readonly clients = new NameTable();
  #addresses = new Uint32Array(0);
  #updatedAt = new Float64Array(0);
  #expiresAt = new Float64Array(0);
  #category = new Uint32Array(0);
  /** A 32-bit Bloom filter of each fact's names, so that most other facts are not decoded to check them. */
  #nameBits = new Uint32Array(0);
  /** The number of lists that still contain each fact. */
  #held = new Uint16Array(0);

  /** The number of live facts. */
  get size(): number {
    return this.#numbers.size;
  }

  /** All numbers in use are lower. */
  get top(): number {
    return this.#top;
  }

  /** The memory outside the JavaScript heap. */
  get bytes(): number {
    const columns = 30 * this.#addresses.length;
    const names = this.tags.bytes + this.clients.bytes;
    return (
      this.vocabulary.bytes + this.#postings.bytes + this.#texts.bytes + this.#numbers.bytes + this.#terms.bytes + columns + names
    );
  }

  add(id: FactId, fact: SearchableFact): void {
    this.remove(id);
    const number = this.#spare.pop() ?? this.#top++;
    if (number >= MAX_FACTS) throw new RangeError('The search index cannot hold more facts.');
    if (number >= this.#addresses.length) this.#grow(number);
    const spelled = id === fact.key ? '' : spell(id);
    const { client = '', definedBy = '' } = fact;
    const texts = [fact.key, spelled, client, definedBy, JSON.stringify(fact.tags), fact.value];
    this.#addresses[number] = this.#texts.add(number, texts);
    const writers = clientBit(client) | (definedBy === '' ? 0 : clientBit(definedBy));
    this.#nameBits[number] = fact.tags.reduce((marks, tag) => marks | tagBit(tag), writers);
    for (const tag of fact.tags) this.tags.retain(tag);
    this.clients.retain(client);
    this.#numbers.add(number, hash(spell(id), HASH_SEED));
    this.#updatedAt[number] = fact.updatedAt;
    this.#expiresAt[number] = fact.expiresAt ?? Infinity;
    this.#category[number] = this.#categories.retain(fact.category);
    this.#held[number] = this.#terms.weigh(fact, true, (term, weight) => {
      this.#postings.add(term, number * WEIGHT_LEVELS + Math.round((WEIGHT_LEVELS - 1) * (weight / (weight + SATURATION))));
    });
  }

  /** Returns false if there is no such fact. */
  remove(id: FactId): boolean {
    const number = this.#find(id);
    if (number === undefined) return false;
    const { fact } = this.factAt(number);
    for (const tag of fact.tags) this.tags.release(tag);
    this.clients.release(fact.client ?? '');
    this.#numbers.remove(number);
    this.#texts.remove(this.#addresses[number] ?? 0);
    this.#addresses[number] = NO_ADDRESS;
    this.#categories.release(this.#category[number] ?? 0);
    const terms = this.#terms.weigh(fact, false, (term) => {
      this.#postings.markDead(term);
      if (this.#postings.size(term) === 0) this.vocabulary.remove(term);
    });
    if (terms === 0) this.#spare.push(number);
    return true;
  }

  /** Overwrites every text. Nothing may be asked of this index any more. */
  clear(): void {
    this.#texts.clear();
    this.#numbers.clear();
    this.tags.clear();
    this.clients.clear();
    this.vocabulary.clear();
  }

  has(id: FactId): boolean {
    return this.#find(id) !== undefined;
  }

  /** False for a free number, and for the number of a removed fact. */
  isLive(number: number): boolean {
    return this.#addresses[number] !== NO_ADDRESS;
  }

  idOf(number: number): FactId {
    const [key = '', spelled = ''] = this.#texts.read(this.#addresses[number] ?? 0, 2);
    return spelled === '' ? key : unspell(spelled);
  }

  updatedAt(number: number): number {
    return this.#updatedAt[number] ?? 0;
  }

  expiresAt(number: number): number {
    return this.#expiresAt[number] ?? 0;
  }

  factAt(number: number): IndexedFact {
    const texts = this.#texts.read(this.#addresses[number] ?? 0);
    const [key = '', spelled = '', client = '', definedBy = '', tagged = '', value = ''] = texts;
    const tags = JSON.parse(tagged) as string[];
    const category = this.#categories.name(this.#category[number] ?? 0);
    const [updatedAt, expiresAt] = [this.updatedAt(number), this.expiresAt(number)];
    const fact = { key, category, value, tags, client, ...(definedBy !== '' && { definedBy }), updatedAt, expiresAt };
    return { id: spelled === '' ? key : unspell(spelled), fact };
  }

  /** Returns a filter for facts with these names. */
  matchesNames({ tag, client }: NameFilter): (number: number) => boolean {
    const marks = (tag === undefined ? 0 : tagBit(tag)) | (client === undefined ? 0 : clientBit(client));
    return (number) => {
      if (((this.#nameBits[number] ?? 0) & marks) !== marks) return false;
      const [, , writer, definer, tagged = ''] = this.#texts.read(this.#addresses[number] ?? 0, 5);
      return (
        (client === undefined || writer === client || definer === client) &&
        (tag === undefined || (JSON.parse(tagged) as string[]).includes(tag))
      );
    };
  }

  isInCategory(number: number, category: number): boolean {
    return this.#category[number] === category;
  }

  /** The number of a category; undefined if no fact is in it. */
  findCategory(category: string): number | undefined {
    return this.#categories.find(category);
  }

  /** The number of facts that contain a term. */
  count(term: number): number {
    return this.#postings.size(term);
  }

  /** Copies the newest postings of a term, at most `most`, to `postings`. Returns their number. */
  readPostings(term: number, most: number): number {
    return this.#postings.read(term, most);
  }

  get postings(): Uint32Array {
    return this.#postings.entries;
  }

  #grow(number: number): void {
    this.#addresses = growTo(this.#addresses, number);
    this.#updatedAt = growTo(this.#updatedAt, number);
    this.#expiresAt = growTo(this.#expiresAt, number);
    this.#category = growTo(this.#category, number);
    this.#nameBits = growTo(this.#nameBits, number);
    this.#held = growTo(this.#held, number);
  }

  #find(id: FactId): number | undefined {
    let number = this.#numbers.first(hash(spell(id), HASH_SEED));
    while (number !== NOT_FOUND && this.idOf(number) !== id) number = this.#numbers.after(number);
    return number === NOT_FOUND ? undefined : number;
  }

  #release(number: number): void {
    const held = (this.#held[number] ?? 0) - 1;
    this.#held[number] = held;
    if (held === 0) this.#spare.push(number);
  }
}

/** Distinguishes the number 7 from the text "7". */
const spell = (id: FactId): string => (typeof id === 'number' ? `#${id}` : `=${id}`);
const unspell = (spelled: string): FactId => (spelled.startsWith('#') ? Number(spelled.slice(1)) : spelled.slice(1));

const bitOf = (name: string): number => 1 << (hash(name, HASH_SEED) & 31);
const tagBit = (tag: string): number => bitOf(`tag ${tag}`);
const clientBit = (client: string): number => bitOf(`client ${client}`);

/** Computes the terms of a fact and their weights. It makes no string for a known term. */
class TermWeights implements WordHandler {
  readonly #vocabulary: Vocabulary;
  #addsTerms = false;
  /** The index of each term in the columns below, plus one; 0 if it has none. */
  #places = new Uint16Array(0);
  readonly #terms = new Uint32Array(MAX_TERMS);
  readonly #weights = new Float64Array(MAX_TERMS);
  #count = 0;
  /** How often each term occurs in the current text. The weights are added when the length of the text is known. */
  readonly #occurrences = new Uint32Array(MAX_TERMS);
  #words = 0;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  get bytes(): number {
    return 2 * this.#places.length + 16 * MAX_TERMS;
  }

  /** Calls `onTerm` for each term, and returns their number. Unknown terms are added only if `addsTerms`. */
  weigh(
    { key, category, tags, value }: SearchableFact,
    addsTerms: boolean,
    onTerm: (term: number, weight: number) => void,
  ): number {
    this.#reset();
    this.#addsTerms = addsTerms;
    this.#read(key, () => KEY);
    if (isExplicitCategory(category)) this.#read(category, () => CATEGORY);
    for (const tag of tags) this.#read(tag, () => TAG);
    this.#read(value, (words) => 1 / (1 - LENGTH_FACTOR + (LENGTH_FACTOR * words) / AVERAGE_WORDS));
    for (let place = 0; place < this.#count; place += 1) {
      onTerm(this.#terms[place] ?? 0, this.#weights[place] ?? 0);
    }
    return this.#count;
  }

  onWord(source: string, from: number, to: number): void {
    this.#words += 1;
    const known = this.#vocabulary.find(source, from, to);
    const place = known === undefined ? 0 : (this.#places[known] ?? 0);
    if (place > 0) this.#occurrences[place - 1] = (this.#occurrences[place - 1] ?? 0) + 1;
    else if (this.#count < MAX_TERMS) {
      const term = known ?? (this.#addsTerms ? this.#vocabulary.add(source.slice(from, to)) : undefined);
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

  /** Clears the state of the previous fact, also if it failed halfway. */
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
