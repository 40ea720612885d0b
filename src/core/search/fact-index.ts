import { CATEGORY as DEFAULT_CATEGORY } from '../../contract/limits.ts';
import { CategoryTable } from './category-table.ts';
import { HashChains, NOT_FOUND } from './hash-chains.ts';
import { hash, HASH_SEED } from './hash.ts';
import { NameTable } from './name-table.ts';
import { PostingLists } from './posting-lists.ts';
import { TextPages } from './text-pages.ts';
import { growTo } from './typed-arrays.ts';
import { Vocabulary } from './vocabulary.ts';
import { type WordHandler, readWords } from './words.ts';

export type FactId = number | string;

/** What can be searched of a fact. */
export interface SearchableFact {
  readonly key: string;
  readonly category: string;
  readonly tags: readonly string[];
  /** Who wrote it last. It is no word of the fact. */
  readonly client?: string;
  /** The client whose definition wrote it for the one above. */
  readonly definedBy?: string | undefined;
  readonly value: string;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  /** From then on it is not found; without it, always is. */
  readonly expiresAt?: number;
}

/** A name that a fact may have to have. */
export interface NameFilter {
  readonly tag?: string | undefined;
  readonly client?: string | undefined;
}

/** A fact as it was told. */
export interface IndexedFact {
  readonly id: FactId;
  readonly fact: SearchableFact & { readonly expiresAt: number; readonly client: string };
}

/** Nobody chose the default category, so its words say nothing about a fact: else "what do I use" would find all of `user_facts`. */
export const isExplicitCategory = (category: string): boolean => category !== DEFAULT_CATEGORY.default;

/** How much a word counts where it stands: the key names the fact, a category is shared by many. */
const KEY = 2.2;
const TAG = 1.4;
const CATEGORY = 0.7;

/** A word says less about a long text. Fixed, so that one fact's weight does not hang on all the others. */
const USUAL_WORDS = 60;
const LENGTH_MATTERS = 0.6;
/** How soon saying a word again adds nothing. */
const SATURATION = 0.8;

/** Of a fact of more different terms, the first are found: a fact of noise must not hold up everything else. */
const MOST_TERMS = 4096;

/** A posting is the number of a fact and, in its lowest byte, how much the term weighs there. */
export const WEIGHT_LEVELS = 256;
const MOST_FACTS = 1 << 24;
const NOWHERE = 0xffffffff;

/** Facts by number, and for each term the facts it stands in. A number is free again once no list holds it. */
export class FactIndex {
  readonly vocabulary = new Vocabulary();
  readonly #postings = new PostingLists({
    isLive: (posting) => this.isLive(posting >>> 8),
    left: (posting) => this.#leave(posting >>> 8),
  });
  readonly #texts = new TextPages((fact, address) => {
    this.#addresses[fact] = address;
  });
  readonly #numbers = new HashChains();
  readonly #terms = new Terms(this.vocabulary);
  #top = 0;
  readonly #spare: number[] = [];
  readonly #categories = new CategoryTable();
  readonly tags = new NameTable();
  readonly clients = new NameTable();
  #addresses = new Uint32Array(0);
  #updatedAt = new Float64Array(0);
  #expiresAt = new Float64Array(0);
  #category = new Uint32Array(0);
  /** A bit for each name a fact has, so that most that have another are not opened to be told. */
  #marks = new Uint32Array(0);
  /** How many lists still hold a fact. */
  #held = new Uint16Array(0);

  /** Living facts. */
  get size(): number {
    return this.#numbers.size;
  }

  /** No fact's number is as high. */
  get top(): number {
    return this.#top;
  }

  /** All of it is outside the heap. */
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
    if (number >= MOST_FACTS) throw new RangeError('There are more facts than can be told apart.');
    if (number >= this.#addresses.length) this.#makeRoom(number);
    const spelled = id === fact.key ? '' : spell(id);
    const { client = '', definedBy = '' } = fact;
    const texts = [fact.key, spelled, client, definedBy, JSON.stringify(fact.tags), fact.value];
    this.#addresses[number] = this.#texts.add(number, texts);
    const writers = clientMark(client) | (definedBy === '' ? 0 : clientMark(definedBy));
    this.#marks[number] = fact.tags.reduce((marks, tag) => marks | tagMark(tag), writers);
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

  /** False when there is no such fact. */
  remove(id: FactId): boolean {
    const number = this.#find(id);
    if (number === undefined) return false;
    const { fact } = this.factAt(number);
    for (const tag of fact.tags) this.tags.release(tag);
    this.clients.release(fact.client ?? '');
    this.#numbers.remove(number);
    this.#texts.remove(this.#addresses[number] ?? 0);
    this.#addresses[number] = NOWHERE;
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

  /** False for a number that is free, or will be. */
  isLive(number: number): boolean {
    return this.#addresses[number] !== NOWHERE;
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

  /** Tells the facts that have these names. */
  matchesNames({ tag, client }: NameFilter): (number: number) => boolean {
    const marks = (tag === undefined ? 0 : tagMark(tag)) | (client === undefined ? 0 : clientMark(client));
    return (number) => {
      if (((this.#marks[number] ?? 0) & marks) !== marks) return false;
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

  /** The number of a category that some fact is in. */
  findCategory(category: string): number | undefined {
    return this.#categories.find(category);
  }

  /** In how many facts a term stands. */
  count(term: number): number {
    return this.#postings.size(term);
  }

  /** Shows the newest postings of a term, at most so many, in `postings`; says how many. */
  readPostings(term: number, most: number): number {
    return this.#postings.read(term, most);
  }

  get postings(): Uint32Array {
    return this.#postings.entries;
  }

  #makeRoom(number: number): void {
    this.#addresses = growTo(this.#addresses, number);
    this.#updatedAt = growTo(this.#updatedAt, number);
    this.#expiresAt = growTo(this.#expiresAt, number);
    this.#category = growTo(this.#category, number);
    this.#marks = growTo(this.#marks, number);
    this.#held = growTo(this.#held, number);
  }

  #find(id: FactId): number | undefined {
    let number = this.#numbers.first(hash(spell(id), HASH_SEED));
    while (number !== NOT_FOUND && this.idOf(number) !== id) number = this.#numbers.after(number);
    return number === NOT_FOUND ? undefined : number;
  }

  #leave(number: number): void {
    const held = (this.#held[number] ?? 0) - 1;
    this.#held[number] = held;
    if (held === 0) this.#spare.push(number);
  }
}

/** The number 7 is not the text "7". */
const spell = (id: FactId): string => (typeof id === 'number' ? `#${id}` : `=${id}`);
const unspell = (spelled: string): FactId => (spelled.startsWith('#') ? Number(spelled.slice(1)) : spelled.slice(1));

const markOf = (name: string): number => 1 << (hash(name, HASH_SEED) & 31);
const tagMark = (tag: string): number => markOf(`tag ${tag}`);
const clientMark = (client: string): number => markOf(`client ${client}`);

/** Tells the terms of one fact after the other, and how much it is about each. Nothing is made for a term that is known. */
class Terms implements WordHandler {
  readonly #vocabulary: Vocabulary;
  #learning = false;
  /** Where a term stands in the columns below, counted from one; for all others nothing. */
  #places = new Uint16Array(0);
  readonly #terms = new Uint32Array(MOST_TERMS);
  readonly #weights = new Float64Array(MOST_TERMS);
  #count = 0;
  /** Of the text being read, how often each term was said; added up when it is known how long the text is. */
  readonly #said = new Uint32Array(MOST_TERMS);
  #words = 0;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  get bytes(): number {
    return 2 * this.#places.length + 16 * MOST_TERMS;
  }

  /** Says how many. Of a fact that is not to be learned all are known. */
  weigh({ key, category, tags, value }: SearchableFact, learning: boolean, tell: (term: number, weight: number) => void): number {
    this.#forget();
    this.#learning = learning;
    this.#read(key, () => KEY);
    if (isExplicitCategory(category)) this.#read(category, () => CATEGORY);
    for (const tag of tags) this.#read(tag, () => TAG);
    this.#read(value, (words) => 1 / (1 - LENGTH_MATTERS + (LENGTH_MATTERS * words) / USUAL_WORDS));
    for (let place = 0; place < this.#count; place += 1) {
      tell(this.#terms[place] ?? 0, this.#weights[place] ?? 0);
    }
    return this.#count;
  }

  onWord(source: string, from: number, to: number): void {
    this.#words += 1;
    const known = this.#vocabulary.find(source, from, to);
    const place = known === undefined ? 0 : (this.#places[known] ?? 0);
    if (place > 0) this.#said[place - 1] = (this.#said[place - 1] ?? 0) + 1;
    else if (this.#count < MOST_TERMS) {
      const term = known ?? (this.#learning ? this.#vocabulary.add(source.slice(from, to)) : undefined);
      if (term !== undefined) this.#enter(term);
    }
  }

  #enter(term: number): void {
    if (term >= this.#places.length) this.#places = growTo(this.#places, term);
    this.#terms[this.#count] = term;
    this.#weights[this.#count] = 0;
    this.#said[this.#count] = 1;
    this.#count += 1;
    this.#places[term] = this.#count;
  }

  /** What is there of the fact before, also where that one could not be told to its end. */
  #forget(): void {
    for (let place = 0; place < this.#count; place += 1) {
      this.#places[this.#terms[place] ?? 0] = 0;
      this.#said[place] = 0;
    }
    this.#count = 0;
  }

  #read(text: string, weightOf: (words: number) => number): void {
    this.#words = 0;
    readWords(text, this);
    const weight = weightOf(this.#words);
    for (let place = 0; place < this.#count; place += 1) {
      this.#weights[place] = (this.#weights[place] ?? 0) + weight * (this.#said[place] ?? 0);
      this.#said[place] = 0;
    }
  }
}
