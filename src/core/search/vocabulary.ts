import { isUnspaced } from './characters.ts';
import { hash } from './hash.ts';
import { Lexicon } from './lexicon.ts';
import { PostingLists } from './posting-lists.ts';
import { stemOf } from './stem.ts';
import { growTo } from './typed-arrays.ts';

const STEMS = 1 << 15;
const GRAMS = 1 << 15;
const HEAD_PIECES = 2;
/** Words that begin with as much in common may be one word. */
const HEAD = 4;
/** Stand before and behind a term, so that its beginning and its end are told from its middle. */
export const TERM_START = '\u0002';
const END = '\u0003';

/**
 * Every term that some fact holds, and the ways to come upon one: by itself, by its stem, by three characters of it.
 * A pattern of characters is looked for among the terms, not among the facts: there are fewer of them, and they repeat.
 */
export class Vocabulary {
  readonly #lexicon = new Lexicon();
  /** How many lists of grams still hold a term. */
  #held = new Uint16Array(0);
  #alive = new Uint8Array(0);
  readonly #grams = new PostingLists({
    isLive: (id) => this.#alive[id] === 1,
    left: (id) => this.#leave(id),
  });
  readonly #stems = new PostingLists({
    isLive: (id) => this.#alive[id] === 1,
    left: (id) => this.#leave(id),
  });

  get bytes(): number {
    return this.#lexicon.bytes + this.#grams.bytes + this.#stems.bytes + this.#held.length * 3;
  }

  get size(): number {
    return this.#lexicon.size;
  }

  get top(): number {
    return this.#lexicon.top;
  }

  /** The number of what stands there in a text. */
  find(text: string, from?: number, to?: number): number | undefined {
    return this.#lexicon.find(text, from, to);
  }

  text(id: number): string {
    return this.#lexicon.text(id);
  }

  add(term: string): number {
    const known = this.#lexicon.find(term);
    if (known !== undefined) return known;
    const id = this.#lexicon.add(term);
    this.#held = growTo(this.#held, id);
    this.#alive = growTo(this.#alive, id);
    this.#alive[id] = 1;
    const grams = gramsOf(term);
    for (const gram of grams) this.#grams.add(gram, id);
    const stemmed = hasStem(term);
    if (stemmed) this.#stems.add(stemNumber(stemOf(term)), id);
    this.#held[id] = grams.length + (stemmed ? 1 : 0);
    return id;
  }

  remove(id: number): void {
    const term = this.#lexicon.text(id);
    this.#alive[id] = 0;
    this.#lexicon.erase(id);
    for (const gram of gramsOf(term)) this.#grams.markDead(gram);
    if (hasStem(term)) this.#stems.markDead(stemNumber(stemOf(term)));
  }

  /** Other terms with the same stem as a term, which may be none of these itself. */
  withSameStem(term: string, self: number | undefined): number[] {
    if (!hasStem(term)) return [];
    const stem = stemOf(term);
    // All but the last letter of a stem stands in its forms as it is.
    return this.#like(stem.slice(0, -1), Infinity, this.#stems, stemNumber(stem), Infinity).filter(
      (id) => id !== self && stemOf(this.#lexicon.text(id)) === stem,
    );
  }

  /** How many terms may hold this gram; others of the same hash are counted with them. */
  countWithGram(gram: string): number {
    return this.#grams.size(gramNumber(gram));
  }

  /** Terms that may hold this gram, the newest so many. */
  withGram(gram: string, most: number): number[] {
    return this.#living(gramNumber(gram), most);
  }

  /** Of these, those that begin as a word does, or hold it. */
  similarTo(word: string, gram: string, most: number): number[] {
    return this.#like(word, HEAD, this.#grams, gramNumber(gram), most);
  }

  clear(): void {
    this.#lexicon.clear();
  }

  #like(word: string, much: number, lists: PostingLists, list: number, most: number): number[] {
    const count = lists.read(list, most);
    return this.#lexicon.like(word, much, lists.entries, count).filter((id) => this.#alive[id] === 1);
  }

  #living(list: number, most: number): number[] {
    const ids: number[] = [];
    const count = this.#grams.read(list, most);
    for (let index = 0; index < count; index += 1) {
      const id = this.#grams.entries[index] ?? 0;
      if (this.#alive[id] === 1) ids.push(id);
    }
    return ids;
  }

  #leave(id: number): void {
    const held = (this.#held[id] ?? 0) - 1;
    this.#held[id] = held;
    if (held === 0) this.#lexicon.recycle(id);
  }
}

const gramNumber = (gram: string): number => hash(gram) % GRAMS;

/** Neither numbers nor names with numbers in them have other forms, nor does a script without letters. */
const hasStem = (term: string): boolean => !isUnspaced(term) && !digit.test(term);

const stemNumber = (stem: string): number => hash(stem) % STEMS;

const digit = /\d/;

/** Three characters each, with the ends marked; a script of many characters is found by every single one. */
export function gramsOfTerm(term: string): string[] {
  if (isUnspaced(term)) return Array.from(term);
  const marked = TERM_START + term + END;
  const pieces: string[] = [];
  for (let at = 0; at + 3 <= marked.length; at += 1) pieces.push(marked.slice(at, at + 3));
  return pieces;
}

/** What a term is listed under. Names with numbers in them are often in one fact only, and are asked for from their beginning. */
function gramsOf(term: string): number[] {
  const numbers: number[] = [];
  const pieces = gramsOfTerm(term);
  const most = digit.test(term) ? Math.min(HEAD_PIECES, pieces.length) : pieces.length;
  for (let at = 0; at < most; at += 1) {
    const number = gramNumber(pieces[at] ?? '');
    if (!numbers.includes(number)) numbers.push(number);
  }
  return numbers;
}
