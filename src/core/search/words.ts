import { foldCase, lazy } from '../../contract/schema.ts';
import { growTo } from './tables.ts';

/** Maximum length of a term in UTF-16 code units. Longer terms, such as encoded data, are truncated. */
export const TERM_UNITS = 64;

/**
 * Maximum number of parts of a name. A name with more parts, for example a hash, is split only at hyphens, underscores and
 * points.
 */
const MAX_PARTS = 8;

export interface Word {
  /** The text of the word as `foldText` returns it. */
  readonly term: string;
  readonly start: number;
  readonly end: number;
  /** The number of words before this word. A whole name has the position of its first part. */
  readonly position: number;
  /** The number of parts of a whole name, for example 2 for `useCart`; 0 for a simple word or for a part of a name. */
  readonly parts: number;
}

/**
 * Receives each word of a text in order. A word of an ASCII text is a part of a source, so that no string is created for words that
 * the handler skips. Any other word is a term. The other parameters have the same meaning as the fields of `Word`.
 */
export interface WordHandler<Source extends string | Buffer> extends TermHandler {
  /** The word is the part of the source between `from` and `to`, and begins at `start` in the text. */
  onPart(source: Source, from: number, to: number, start: number, position: number): void;
}

interface TermHandler {
  readonly filter: TermFilter;
  onTerm(term: string, start: number, end: number, position: number, parts: number): void;
}

/** Rejects most of the terms that a handler skips by their first character and length, so that they need no call. */
export class TermFilter {
  /** For each first character, in either case, a bit for each length. */
  readonly #lengths = new Uint32Array(32);

  static readonly all = new TermFilter().addAll();

  add(first: number, length: number): void {
    this.#lengths[first & 31] = (this.#lengths[first & 31] ?? 0) | (1 << (length & 31));
  }

  addAll(): this {
    this.#lengths.fill(~0);
    return this;
  }

  /** Returns false only if no term with this first character and length was added. */
  passes(first: number, length: number): boolean {
    return (((this.#lengths[first & 31] ?? 0) >>> (length & 31)) & 1) === 1;
  }
}

class WordList implements WordHandler<string> {
  readonly filter = TermFilter.all;
  readonly words: Word[] = [];

  onPart(source: string, from: number, to: number, start: number, position: number): void {
    this.onTerm(truncated(source.slice(from, to)), start, start + to - from, position, 0);
  }

  onTerm(term: string, start: number, end: number, position: number, parts: number): void {
    this.words.push({ term, start, end, position, parts });
  }
}

export function wordsOf(text: string): Word[] {
  const list = new WordList();
  readWords(text, list);
  return list.words;
}

/**
 * Calls the handler for each word of a text. Names in camel, kebab or snake case, names with digits, and version numbers are
 * reported as their parts and then as the whole name without separators. Text in a script without spaces is reported as pairs of
 * adjacent characters. The source of an ASCII text is the folded text.
 */
export function readWords(text: string, handler: WordHandler<string>): void {
  const folded = foldAscii(text);
  if (folded === undefined) return readUnicode(text, handler);
  classify(text);
  scanFolded(folded, handler);
}

/**
 * Like `readWords`, for a part of a buffer that contains only ASCII. The source is that buffer. Stores the kinds of characters only
 * for names, because most words are simple: one letter and lower-case letters, or digits only.
 */
export function readAscii(bytes: Buffer, from: number, to: number, handler: WordHandler<Buffer>): void {
  kinds = growTo(kinds, to - from);
  const table = asciiKinds;
  const { filter } = handler;
  let position = 0;
  for (let at = from; at < to;) {
    const kind = table[bytes[at] ?? 0] ?? SEPARATOR;
    if (!isLetterOrDigit(kind)) {
      at += 1;
      continue;
    }
    const rest = kind === DIGIT ? DIGIT : LOWER;
    let end = at + 1;
    while (end < to && table[bytes[end] ?? 0] === rest) end += 1;
    const next = end < to ? (table[bytes[end] ?? 0] ?? SEPARATOR) : SEPARATOR;
    const afterNext = end + 1 < to ? (table[bytes[end + 1] ?? 0] ?? SEPARATOR) : SEPARATOR;
    if (next === SEPARATOR || !(isLetterOrDigit(next) || joins(next, rest, afterNext))) {
      if (filter.passes(bytes[at] ?? 0, Math.min(end - at, TERM_UNITS))) handler.onPart(bytes, at, end, at - from, position);
      position += 1;
    } else {
      classifyName(bytes, from, at, to);
      end = from + splitName(at - from);
      position = onAsciiName(bytes, from, at - from, end - from, position, handler);
    }
    at = end;
  }
}

/** Stores the kinds of the characters of a name, which ends before the next separator. */
function classifyName(bytes: Buffer, from: number, start: number, to: number): void {
  let kind = UNKNOWN;
  for (let at = start; kind !== SEPARATOR; at += 1) {
    kind = at < to ? (asciiKinds[bytes[at] ?? 0] ?? SEPARATOR) : SEPARATOR;
    kinds[at - from] = kind;
  }
}

/** Like `readWords`, for a text with other characters than ASCII. Reports every word as a term. */
export function readUnicode(text: string, handler: TermHandler): void {
  classify(text);
  let position = 0;
  for (let at = 0; at < text.length;) {
    const kind = kinds[at] ?? SEPARATOR;
    if (kind !== UNSPACED && !isLetterOrDigit(kind)) at += 1;
    else {
      const end = kind === UNSPACED ? endOfUnspaced(at) : splitName(at);
      position = kind === UNSPACED ? onUnspaced(text, at, end, position, handler) : onName(text, at, end, position, handler);
      at = end;
    }
  }
}

/** The kind of each character of the text that is being read, and `SEPARATOR` after its last character. */
let kinds = new Uint8Array(4096);

function classify(text: string): void {
  kinds = growTo(kinds, text.length);
  for (let at = 0; at < text.length; at += 1) kinds[at] = characterKindAt(text, at);
  kinds[text.length] = SEPARATOR;
}

/** Has a fast path for simple words: one letter and lower-case letters, or digits only. */
function scanFolded(source: string, handler: WordHandler<string>): void {
  const known = kinds;
  const { filter } = handler;
  let position = 0;
  for (let at = 0; at < source.length;) {
    const kind = known[at] ?? SEPARATOR;
    if (!isLetterOrDigit(kind)) {
      at += 1;
      continue;
    }
    const rest = kind === DIGIT ? DIGIT : LOWER;
    let end = at + 1;
    while (known[end] === rest) end += 1;
    if (known[end] === SEPARATOR || !continuesName(end, rest)) {
      if (filter.passes(source.charCodeAt(at), Math.min(end - at, TERM_UNITS))) handler.onPart(source, at, end, at, position);
      position += 1;
    } else {
      end = splitName(at);
      position = onAsciiName(source, 0, at, end, position, handler);
    }
    at = end;
  }
}

const unitAt = (source: string | Buffer, at: number): number =>
  typeof source === 'string' ? source.charCodeAt(at) : (source[at] ?? 0);

const continuesName = (at: number, last: number): boolean =>
  isLetterOrDigit(kinds[at] ?? SEPARATOR) || joins(kinds[at] ?? SEPARATOR, last, kinds[at + 1] ?? SEPARATOR);

function endOfUnspaced(start: number): number {
  let end = start + 1;
  while (kinds[end] === UNSPACED || kinds[end] === MARK) end += 1;
  return end;
}

/** Reports a term, unless it is empty because the word consists of marks only. Returns the position of the next word. */
function onTerm(term: string, start: number, end: number, position: number, handler: TermHandler): number {
  if (term === '') return position;
  handler.onTerm(term, start, end, position, 0);
  return position + 1;
}

function onUnspaced(text: string, start: number, end: number, first: number, handler: TermHandler): number {
  const run = foldText(text.slice(start, end));
  // Folding can change the length of the text, for example for half-width kana. Then the exact position of a pair is unknown.
  const exact = run.length === end - start;
  const characters = Array.from(run);
  const pairs = Math.max(1, characters.length - 1);
  let [at, position] = [start, first];
  for (let index = 0; index < pairs; index += 1) {
    const term = (characters[index] ?? '') + (characters[index + 1] ?? '');
    position = exact ? onTerm(term, at, at + term.length, position, handler) : onTerm(term, start, end, position, handler);
    at += characters[index]?.length ?? 0;
  }
  return position;
}

/** The parts of one name, in arrays that are used again for each name, because most texts have many names. */
class NameParts {
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  /** For each part, the kind of the character before it if it joins the part to the one before, otherwise `SEPARATOR`. */
  readonly joints: number[] = [];
  count = 0;

  add(start: number, end: number, joint: number): void {
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.joints[this.count] = joint;
    this.count += 1;
  }

  /** The number of parts if the name is split only at its separators. */
  get separated(): number {
    let count = 1;
    for (let part = 1; part < this.count; part += 1) if (this.joints[part] !== SEPARATOR) count += 1;
    return count;
  }

  /** Merges parts, so that the name is split only at its separators. */
  merge(): void {
    let last = 0;
    for (let part = 1; part < this.count; part += 1) {
      if (this.joints[part] !== SEPARATOR) {
        last += 1;
        this.starts[last] = this.starts[part] ?? 0;
      }
      this.ends[last] = this.ends[part] ?? 0;
    }
    this.count = last + 1;
  }

  /** Whether this part is a word. A single letter in a name, such as the v of v2, has no meaning on its own. */
  isWord(part: number): boolean {
    const start = this.starts[part] ?? 0;
    return this.count === 1 || (this.ends[part] ?? 0) - start > 1 || kinds[start] === DIGIT;
  }

  /** The length of the whole name, without separators but with the points of a version number. */
  get length(): number {
    let length = 0;
    for (let part = 0; part < this.count; part += 1) {
      length += (this.ends[part] ?? 0) - (this.starts[part] ?? 0) + (this.joints[part] === POINT ? 1 : 0);
    }
    return length;
  }

  /**
   * Returns the name without separators, but with the points of a version number, because 1.11 must not equal 11.1. The name is in
   * a text that begins at `from`.
   */
  whole(source: string | Buffer, from: number): string {
    let whole = '';
    for (let part = 0; part < this.count; part += 1) {
      if (this.joints[part] === POINT) whole += '.';
      const [start, end] = [from + (this.starts[part] ?? 0), from + (this.ends[part] ?? 0)];
      whole += typeof source === 'string' ? source.slice(start, end) : source.toString('latin1', start, end);
    }
    return truncated(foldText(whole));
  }
}

const name = new NameParts();

function onAsciiName<Source extends string | Buffer>(
  source: Source,
  from: number,
  start: number,
  end: number,
  first: number,
  handler: WordHandler<Source>,
): number {
  const used = name.count <= MAX_PARTS ? name.count : name.separated;
  const isUsed = used > 1 && handler.filter.passes(unitAt(source, from + start), Math.min(name.length, TERM_UNITS));
  const whole = isUsed ? name.whole(source, from) : '';
  if (used < name.count) name.merge();
  let position = first;
  for (let part = 0; part < used; part += 1) {
    if (!name.isWord(part)) continue;
    const [at, to] = [name.starts[part] ?? start, name.ends[part] ?? end];
    if (handler.filter.passes(unitAt(source, from + at), Math.min(to - at, TERM_UNITS)))
      handler.onPart(source, from + at, from + to, at, position);
    position += 1;
  }
  if (isUsed) handler.onTerm(whole, start, end, first, Math.max(1, position - first));
  return Math.max(position, first + 1);
}

function onName(text: string, start: number, end: number, first: number, handler: TermHandler): number {
  const used = name.count <= MAX_PARTS ? name.count : name.separated;
  const whole = used > 1 ? name.whole(text, 0) : '';
  if (used < name.count) name.merge();
  let position = first;
  for (let part = 0; part < used; part += 1) {
    if (!name.isWord(part)) continue;
    const [at, to] = [name.starts[part] ?? start, name.ends[part] ?? end];
    position = onTerm(truncated(foldText(text.slice(at, to))), at, to, position, handler);
  }
  if (whole === '') return position;
  handler.onTerm(whole, start, end, first, Math.max(1, position - first));
  return Math.max(position, first + 1);
}

const truncated = (term: string): string =>
  term.length > TERM_UNITS ? term.slice(0, characterBoundary(term, TERM_UNITS)) : term;

/** Splits the name that starts here into parts. Returns the index after its last character. */
function splitName(start: number): number {
  name.count = 0;
  let [begin, joint] = [start, SEPARATOR];
  let last = kinds[start] ?? SEPARATOR;
  let at = start + 1;
  for (; ; at += 1) {
    const kind = kinds[at] ?? SEPARATOR;
    if (kind === MARK) continue;
    if (isLetterOrDigit(kind)) {
      if (startsPart(last, kind, at)) {
        name.add(begin, at, joint);
        [begin, joint] = [at, SEPARATOR];
      }
      last = kind;
      continue;
    }
    const next = kinds[at + 1] ?? SEPARATOR;
    if (kind === SEPARATOR || !joins(kind, last, next)) break;
    name.add(begin, at, joint);
    at += 1;
    [begin, joint, last] = [at, kind, next];
  }
  name.add(begin, at, joint);
  return at;
}

/** Whether a new part of a name starts here, as at the B of fooBar, the S of HTTPServer and the 1 of abc123. */
const startsPart = (last: number, kind: number, at: number): boolean =>
  (last === LOWER && kind === UPPER) ||
  (last === UPPER && kind === UPPER && kinds[at + 1] === LOWER) ||
  (last === DIGIT) !== (kind === DIGIT);

const joins = (kind: number, last: number, next: number): boolean =>
  kind === POINT ? last === DIGIT && next === DIGIT : kind === DASH && isLetterOrDigit(next);

const SEPARATOR = 0;
const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
/** A character of a script without spaces between words, or a pictograph. */
const UNSPACED = 4;
/** A combining mark or invisible character. */
const MARK = 5;
/** A hyphen or an underscore. */
const DASH = 6;
const POINT = 7;

const isLetterOrDigit = (kind: number): boolean => kind >= LOWER && kind <= DIGIT;

/** Regular expressions for character classes. They are compiled on first use, because compiling Unicode classes is slow. */
const classes = lazy(() => ({
  dense:
    /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}\p{Extended_Pictographic}]/u,
  letter: /[\p{L}\p{Extended_Pictographic}]/u,
  capital: /[\p{Lu}\p{Lt}]/u,
  digit: /\p{N}/u,
  mark: /[\p{M}\p{Default_Ignorable_Code_Point}]/u,
}));

function kindOf(point: number): number {
  const { dense, letter, capital, digit, mark } = classes();
  const character = String.fromCodePoint(point);
  if (mark.test(character)) return MARK;
  if (letter.test(character)) {
    if (dense.test(character)) return UNSPACED;
    return capital.test(character) ? UPPER : LOWER;
  }
  return digit.test(character) ? DIGIT : SEPARATOR;
}

const UNKNOWN = 255;
/**
 * Cache of the kind of each UTF-16 code unit. It is filled on use, because classifying all 65,536 code units would delay the
 * startup.
 */
const unitKinds = new Uint8Array(0x10000).fill(UNKNOWN).fill(SEPARATOR, 0, 0x80);
unitKinds.fill(DIGIT, 0x30, 0x3a).fill(UPPER, 0x41, 0x5b).fill(LOWER, 0x61, 0x7b);
unitKinds.fill(DASH, 0x2d, 0x2e).fill(POINT, 0x2e, 0x2f).fill(DASH, 0x5f, 0x60);

const asciiKinds: Readonly<Uint8Array> = unitKinds.subarray(0, 0x80);

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** Returns the kind of the character at an index. The second half of a surrogate pair counts as a mark. */
function characterKindAt(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const known = unitKinds[unit] ?? UNKNOWN;
  if (known !== UNKNOWN) return known;
  if (isLow(unit)) return MARK;
  if (isHigh(unit)) return kindOf(text.codePointAt(at) ?? unit);
  const kind = kindOf(unit);
  unitKinds[unit] = kind;
  return kind;
}

export const isUnspaced = (term: string): boolean => characterKindAt(term, 0) === UNSPACED;

/** Returns `at`, or `at - 1` if `at` is inside a surrogate pair. */
export const characterBoundary = (text: string, at: number): number =>
  at > 0 && at < text.length && isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1)) ? at - 1 : at;

/**
 * Accents, vowel points and invisible characters, which search ignores. Marks of other scripts are not removed, because they
 * change the letter, as do the vowels of Devanagari and the voicing of kana.
 */
const accents =
  /[\u{300}-\u{36f}]|[\u{591}-\u{5bd}\u{5bf}\u{5c1}\u{5c2}\u{5c4}\u{5c5}\u{5c7}]|[\u{610}-\u{61a}\u{640}\u{64b}-\u{65f}\u{670}]|\p{Default_Ignorable_Code_Point}/gu;

/** Letters that Unicode does not decompose, with the letters that readers consider equal to them. */
const equivalents: Record<string, string> = {
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ħ: 'h',
  ς: 'σ',
  ى: 'ي',
  ة: 'ه',
};
const letters = /[æœøłđðþħςىة]/g;

const ascii = /^[\0-\x7f]*$/;

/** Removes differences of diacritics, letter case and character width, so that spelling variants match. */
export const foldText = (text: string): string =>
  foldAscii(text) ??
  foldCase(text.normalize('NFKD').replace(accents, '')).replace(letters, (letter) => equivalents[letter] ?? letter);

/** Folds ASCII text, in which every character keeps its index. Returns undefined for any other text. */
const foldAscii = (text: string): string | undefined => (ascii.test(text) ? text.toLowerCase() : undefined);

export function commonPrefixLength(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let at = 0;
  while (at < most && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  return at;
}

/**
 * Returns the number of letters to change, delete, insert or swap with a neighbour (Damerau-Levenshtein). Returns `most + 1` if
 * the number is higher than `most`.
 */
export function editDistance(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 1; row <= one.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const same = one[row - 1] === other[column - 1];
      let edits = Math.min((last[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1, (last[column - 1] ?? 0) + (same ? 0 : 1));
      const swapped = row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      if (swapped) edits = Math.min(edits, (before[column - 2] ?? 0) + 1);
      next.push(edits);
    }
    if (Math.min(...next) > most) return most + 1;
    before = last;
    last = next;
  }
  return Math.min(last[other.length] ?? 0, most + 1);
}
