import { PostingLists, growTo } from './tables.ts';
import { HASH_SEED, HashChains, NOT_FOUND, hash } from './text-pages.ts';
import { characterBoundary, isUnspaced, TERM_UNITS } from './words.ts';

const STEMS = 1 << 15;
const GRAMS = 1 << 15;
/** Number of n-grams, from the start of a term with digits, under which the term is indexed. */
const HEAD_GRAMS = 2;
/** Number of first characters that two terms must share to be possible forms of one word. */
const HEAD = 4;
/** Marks the start of a term in its first n-gram, so that it differs from n-grams inside a term. `TERM_END` marks the end. */
export const TERM_START = '\u0002';
const TERM_END = '\u0003';

/**
 * All terms of the indexed facts. A term can be found by its exact text, by its stem, or by three characters that it contains.
 * The index looks for similar words among the terms rather than in the facts, because there are fewer terms than facts.
 */
export class Vocabulary {
  readonly #lexicon = new Lexicon();
  /** For each term, the number of posting lists that still contain the term. */
  #held = new Uint8Array(0);
  /** For each term, the number of n-grams that it shares with the word of the current call. All are 0 between calls. */
  #shared = new Uint8Array(0);
  readonly #grams = new PostingLists({
    isLive: (id) => this.#lexicon.has(id),
    onRemoved: (id) => this.#release(id),
  });
  readonly #stems = new PostingLists({
    isLive: (id) => this.#lexicon.has(id),
    onRemoved: (id) => this.#release(id),
  });

  get bytes(): number {
    return this.#lexicon.bytes + this.#grams.bytes + this.#stems.bytes + this.#held.length + this.#shared.length;
  }

  get size(): number {
    return this.#lexicon.size;
  }

  get top(): number {
    return this.#lexicon.top;
  }

  /** Returns the number of the term that equals this part of the text, or undefined if the term is unknown. */
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
    const grams = gramsOf(term);
    for (const gram of grams) this.#grams.add(gram, id);
    const stemmed = hasStem(term);
    if (stemmed) this.#stems.add(stemNumber(stemOf(term)), id);
    this.#held[id] = grams.length + (stemmed ? 1 : 0);
    return id;
  }

  remove(id: number): void {
    const term = this.#lexicon.text(id);
    this.#lexicon.erase(id);
    for (const gram of gramsOf(term)) this.#grams.markDead(gram);
    if (hasStem(term)) this.#stems.markDead(stemNumber(stemOf(term)));
  }

  /** Returns the other terms with the same stem. The given term itself may be unknown. */
  withSameStem(term: string, self: number | undefined): number[] {
    if (!hasStem(term)) return [];
    const stem = stemOf(term);
    // Every form of a word contains its stem without the last letter.
    const count = this.#stems.read(stemNumber(stem), Infinity);
    if (count === 0 || (count === 1 && this.#stems.entries[0] === self)) return [];
    return this.#liveSimilar(stem.slice(0, -1), Infinity, this.#stems.entries, count).filter(
      (id) => id !== self && stemOf(this.#lexicon.text(id)) === stem,
    );
  }

  /** Returns the number of terms that contain these characters, or other characters with the same hash. */
  countWithGram(gram: string): number {
    return this.#grams.size(gramNumber(gram));
  }

  /** Returns the newest terms, at most `most`, with these characters or with others of the same hash. */
  withGram(gram: string, most: number): number[] {
    return this.#liveWithGram(gramNumber(gram), most);
  }

  /** Returns the terms with this n-gram that contain the word or share its first characters. */
  similarTo(word: string, gram: string, most: number): number[] {
    const count = this.#grams.read(gramNumber(gram), most);
    // All of these terms contain the first three characters. Comparing numbers is faster than reading the terms.
    const first = word.slice(0, 3);
    const other = gramNumber(first);
    const useful = count > MIN_INTERSECTED && first.length === 3 && first !== gram && !isUnspaced(word);
    if (!useful || !this.#grams.isSorted(gramNumber(gram)) || !this.#grams.isSorted(other))
      return this.#liveSimilar(word, HEAD, this.#grams.entries, count);
    const ids = this.#grams.entries.slice(0, count);
    const found = ids.slice();
    this.#grams.findBelow(other, found, count);
    let both = 0;
    for (let at = 0; at < count; at += 1) if (ids[at] === found[at]) ids[both++] = ids[at] ?? 0;
    return this.#liveSimilar(word, HEAD, ids, both);
  }

  /**
   * Returns the terms that share the most n-grams with these, at most `most`, and the number of n-grams that they share. Reads the
   * newest terms with each n-gram, at most `scanned`.
   */
  sharingGrams(grams: Iterable<string>, scanned: number, most: number): [id: number, shared: number][] {
    this.#shared = growTo(this.#shared, this.#lexicon.top);
    const shared = this.#shared;
    const ids: number[] = [];
    for (const gram of grams) {
      const count = this.#grams.read(gramNumber(gram), scanned);
      for (let index = 0; index < count; index += 1) {
        const id = this.#grams.entries[index] ?? 0;
        const known = shared[id] ?? 0;
        if (known === 0) ids.push(id);
        shared[id] = known + 1;
      }
    }
    const byShared: number[][] = [];
    for (const id of ids) if (this.#lexicon.has(id)) (byShared[shared[id] ?? 0] ??= []).push(id);
    const best = byShared.flatMap((some, count) => some.toReversed().map((id): [number, number] => [id, count]));
    for (const id of ids) shared[id] = 0;
    return best.slice(-most).toReversed();
  }

  clear(): void {
    this.#lexicon.clear();
  }

  #liveSimilar(word: string, head: number, ids: Uint32Array, count: number): number[] {
    return this.#lexicon.similarTo(word, head, ids, count).filter((id) => this.#lexicon.has(id));
  }

  #liveWithGram(list: number, most: number): number[] {
    const ids: number[] = [];
    const count = this.#grams.read(list, most);
    for (let index = 0; index < count; index += 1) {
      const id = this.#grams.entries[index] ?? 0;
      if (this.#lexicon.has(id)) ids.push(id);
    }
    return ids;
  }

  #release(id: number): void {
    const held = (this.#held[id] ?? 0) - 1;
    this.#held[id] = held;
    if (held === 0) this.#lexicon.recycle(id);
  }
}

/** Minimum number of terms with an n-gram that are worth comparing with another list. */
const MIN_INTERSECTED = 32;

const gramNumber = (gram: string): number => hash(gram) % GRAMS;

/** Whether the index stores a stem for the term. Terms with digits and terms of scripts without spaces have no other forms. */
const hasStem = (term: string): boolean => !isUnspaced(term) && !digit.test(term);

const stemNumber = (stem: string): number => hash(stem) % STEMS;

const digit = /\d/;

/**
 * Returns all sequences of three characters of a term, with its ends marked. A term of a script without spaces is split into
 * single characters.
 */
export function gramsOfTerm(term: string): string[] {
  if (isUnspaced(term)) return Array.from(term);
  const marked = TERM_START + term + TERM_END;
  const pieces: string[] = [];
  for (let at = 0; at + 3 <= marked.length; at += 1) pieces.push(marked.slice(at, at + 3));
  return pieces;
}

/**
 * Returns the numbers of the n-gram lists under which a term is listed. A name with digits is listed under its first n-grams
 * only, because such names are numerous and clients search for their start.
 */
function gramsOf(term: string): number[] {
  const numbers: number[] = [];
  const pieces = gramsOfTerm(term);
  const most = digit.test(term) ? Math.min(HEAD_GRAMS, pieces.length) : pieces.length;
  for (let at = 0; at < most; at += 1) {
    const number = gramNumber(pieces[at] ?? '');
    if (!numbers.includes(number)) numbers.push(number);
  }
  return numbers;
}

const PAGE_BITS = 15;
const PAGE = 1 << PAGE_BITS;
/** Maximum bytes of a term, because a UTF-16 code unit takes up to three bytes of UTF-8. */
const MAX_TERM_BYTES = 3 * TERM_UNITS;

/** A buffer for the term that the current call looks for or adds. */
const termBytes = Buffer.alloc(MAX_TERM_BYTES);

/**
 * Maps terms to numbers and back. It uses far less memory than a Map of strings. It can also overwrite a forgotten term in
 * memory, which is impossible with a string.
 * @internal
 */
export class Lexicon {
  readonly #pages: Buffer[] = [];
  #pageUsed = PAGE;
  /** Addresses of free space, by length in bytes. */
  readonly #free: number[][] = Array.from({ length: MAX_TERM_BYTES + 1 }, () => []);
  #addresses = new Uint32Array(0);
  #lengths = new Uint8Array(0);
  readonly #chains = new HashChains();
  readonly #freeIds: number[] = [];
  #used = 0;

  get size(): number {
    return this.#chains.size;
  }

  /** An upper bound: the number of every term is lower than this. */
  get top(): number {
    return this.#used;
  }

  get bytes(): number {
    return this.#pages.length * PAGE + this.#addresses.length * 5 + this.#chains.bytes;
  }

  /** Returns the number of the term that equals this part of the text, or undefined if the term is unknown. */
  find(text: string, from = 0, to = text.length): number | undefined {
    let id = this.#chains.first(hash(text, HASH_SEED, from, to));
    while (id !== NOT_FOUND && !this.#is(id, text, from, to)) id = this.#chains.after(id);
    return id === NOT_FOUND ? undefined : id;
  }

  add(term: string): number {
    const id = this.#freeIds.pop() ?? this.#used++;
    this.#addresses = growTo(this.#addresses, id);
    this.#lengths = growTo(this.#lengths, id);
    const length = termBytes.write(term);
    this.#addresses[id] = this.#allocate(length);
    this.#lengths[id] = length;
    termBytes.copy(this.#pageOf(id), this.#at(id), 0, length);
    this.#chains.add(id, hash(term, HASH_SEED));
    return id;
  }

  text(id: number): string {
    return this.#pageOf(id).toString('utf8', this.#at(id), this.#at(id) + this.#length(id));
  }

  /**
   * Of the first `count` terms in `ids`, returns those that contain `word` or share its first `headUnits` characters. Compares
   * bytes, because decoding each term is slow.
   */
  similarTo(word: string, headUnits: number, ids: Uint32Array, count: number): number[] {
    const length = termBytes.write(word);
    const head = word.length <= headUnits ? length : Buffer.byteLength(word.slice(0, characterBoundary(word, headUnits)));
    const similar: number[] = [];
    for (let index = 0; index < count; index += 1) {
      const id = ids[index] ?? 0;
      const page = this.#pageOf(id);
      const start = this.#at(id);
      const end = start + this.#length(id);
      if (matchesAt(page, start, end, head) || containsAfterStart(page, start, end, length)) similar.push(id);
    }
    return similar;
  }

  /** Whether the number belongs to a term that was not erased. No term is empty. */
  has(id: number): boolean {
    return this.#length(id) > 0;
  }

  /** Removes the term and overwrites its text. The term's number stays in use until `recycle` is called. */
  erase(id: number): void {
    this.#chains.remove(id);
    this.#pageOf(id).fill(0, this.#at(id), this.#at(id) + this.#length(id));
    this.#free[this.#length(id)]?.push(this.#addresses[id] ?? 0);
    this.#lengths[id] = 0;
  }

  /** Frees the number of an erased term for reuse. Call this when no posting list contains the number any more. */
  recycle(id: number): void {
    this.#freeIds.push(id);
  }

  clear(): void {
    for (const page of this.#pages) page.fill(0);
    this.#chains.clear();
    termBytes.fill(0);
  }

  #at(id: number): number {
    return (this.#addresses[id] ?? 0) & (PAGE - 1);
  }

  #length(id: number): number {
    return this.#lengths[id] ?? 0;
  }

  /** Whether the term with this number equals this part of the text. Compares ASCII byte by byte, and decodes any other term. */
  #is(id: number, text: string, from: number, to: number): boolean {
    const page = this.#pageOf(id);
    const start = this.#at(id) - from;
    for (let at = from; at < to; at += 1) {
      const unit = text.charCodeAt(at);
      if (unit > 0x7f) return this.text(id) === text.slice(from, to);
      if (page[start + at] !== unit) return false;
    }
    return this.#length(id) === to - from;
  }

  #pageOf(id: number): Buffer {
    const page = this.#pages[(this.#addresses[id] ?? 0) >>> PAGE_BITS];
    if (page === undefined) throw new RangeError('A term address is outside the pages.');
    return page;
  }

  #allocate(length: number): number {
    const free = this.#free[length]?.pop();
    if (free !== undefined) return free;
    if (this.#pageUsed + length > PAGE) {
      this.#pages.push(Buffer.alloc(PAGE));
      this.#pageUsed = 0;
    }
    const address = (this.#pages.length - 1) * PAGE + this.#pageUsed;
    this.#pageUsed += length;
    return address;
  }
}

/** Whether the page contains the first `length` bytes of `termBytes` at `start`. */
function matchesAt(page: Buffer, start: number, end: number, length: number): boolean {
  if (start + length > end) return false;
  for (let at = 0; at < length; at += 1) if (page[start + at] !== termBytes[at]) return false;
  return true;
}

function containsAfterStart(page: Buffer, start: number, end: number, length: number): boolean {
  const first = termBytes[0];
  for (let at = start + 1; at + length <= end; at += 1) if (page[at] === first && matchesAt(page, at, end, length)) return true;
  return false;
}

/** Endings of words in Russian and related languages, without accents, longest first. */
const cyrillic =
  /(?:ами|ями|ого|его|ому|ему|ыми|ими|иях|ах|ях|ои|еи|ыи|ии|ая|яя|ое|ее|ые|ие|ия|ию|ов|ев|ом|ем|ам|ям|ую|юю|ых|их|а|я|о|е|и|ы|у|ю|ь)$/;
const arabicArticle = /^(?:وال|بال|كال|فال|ال|لل)/;
const arabicEnding = /(?:ات|ان|ون|ين|ها|يه|ه|ي)$/;
const hebrewArticle = /^ה/;

/**
 * Returns the part that the forms of a word share. Handles common inflections only; the search for similar terms finds other
 * forms.
 */
export function stemOf(term: string): string {
  const first = term.charCodeAt(0);
  if (first >= 0x61 && first <= 0x7a) return latin(term);
  if (first >= 0x400 && first < 0x530) return cut(term, cyrillic, 3);
  if (first >= 0x600 && first < 0x700) return cut(cut(term, arabicArticle, 3), arabicEnding, 3);
  if (first >= 0x590 && first < 0x600) return cut(term, hebrewArticle, 3);
  return term;
}

function cut(term: string, ending: RegExp, least: number): string {
  const stem = term.replace(ending, '');
  return stem.length >= least ? stem : term;
}

const vowel = /[aeiouy]/;
const sibilantPlural = /(?:s|x|z|ch|sh)es$/;
const doubled = /([bdfgmnprt])\1$/;

const endings = ['ing', 'ed', 'ment', 'ly'];

/** Stems a word by the rules of English, the most common language of facts. The plural rule also works for French and Spanish. */
function latin(term: string): string {
  if (term.length < 4) return term;
  let stem = singular(term);
  for (const ending of endings) {
    if (!stem.endsWith(ending)) continue;
    const rest = stem.slice(0, -ending.length);
    if (rest.length < 3 || !vowel.test(rest)) continue;
    stem = rest.replace(doubled, '$1');
    break;
  }
  if (stem.length > 5 && (stem.endsWith('sion') || stem.endsWith('tion'))) stem = stem.slice(0, -3);
  if (stem.length > 3 && stem.endsWith('e')) stem = stem.slice(0, -1);
  return stem.length > 2 && stem.endsWith('y') ? `${stem.slice(0, -1)}i` : stem;
}

function singular(term: string): string {
  if (!term.endsWith('s')) return term;
  if (term.endsWith('ies')) return term.length > 4 ? `${term.slice(0, -3)}y` : term.slice(0, -1);
  if (sibilantPlural.test(term)) return term.slice(0, -2);
  return /[^sui]s$/.test(term) ? term.slice(0, -1) : term;
}
