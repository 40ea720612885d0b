import { foldCase, lazy } from '../../contract/schema.ts';

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
 * Receives each word of a text in order. The term is the part of `source` between `from` and `to`, so that no string is created
 * for terms that the handler skips. The other parameters have the same meaning as the fields of `Word`.
 */
export interface WordHandler {
  onWord(source: string, from: number, to: number, start: number, end: number, position: number, parts: number): void;
}

const isLetterOrDigit = (kind: number): boolean => kind === LOWER || kind === UPPER || kind === DIGIT;

interface Reading {
  readonly text: string;
  /** The folded text if `text` is ASCII, because indexes in both are then equal; otherwise undefined. */
  readonly folded: string | undefined;
  readonly handler: WordHandler;
  position: number;
}

/** A fast filter for a set of terms. It compares only the first character and the length, which rejects most other terms. */
export class TermFilter {
  #firstCharacters = 0;
  #lengths = 0;

  add(term: string): void {
    this.#firstCharacters |= 1 << (term.charCodeAt(0) & 31);
    this.#lengths |= 1 << (term.length & 31);
  }

  /** Returns false only if this part of the text is definitely not a term in the set. */
  mayContain(text: string, from: number, to: number): boolean {
    return ((this.#firstCharacters >>> (text.charCodeAt(from) & 31)) & (this.#lengths >>> ((to - from) & 31)) & 1) === 1;
  }
}

class WordList implements WordHandler {
  readonly words: Word[] = [];
  readonly #filter: TermFilter | undefined;

  constructor(filter: TermFilter | undefined) {
    this.#filter = filter;
  }

  onWord(source: string, from: number, to: number, start: number, end: number, position: number, parts: number): void {
    if (this.#filter?.mayContain(source, from, to) === false) return;
    this.words.push({ term: source.slice(from, to), start, end, position, parts });
  }
}

/**
 * Returns the words of a text. With a filter, returns only words that the filter accepts, some of which may not be in its set.
 */
export function wordsOf(text: string, filter?: TermFilter): Word[] {
  const list = new WordList(filter);
  readWords(text, list);
  return list.words;
}

/**
 * Calls the handler for each word of a text. Names in camel, kebab or snake case, names with digits, and version numbers are
 * reported as their parts and then as the whole name without separators. Text in a script without spaces is reported as pairs of
 * adjacent characters.
 */
export function readWords(text: string, handler: WordHandler): void {
  const reading: Reading = { text, folded: foldAscii(text), handler, position: 0 };
  if (reading.folded === undefined) readUnicode(reading);
  else readAscii(reading, reading.folded);
}

/** Reads ASCII text, with a fast path for simple words: one letter followed by lower-case letters, or digits only. */
function readAscii(reading: Reading, folded: string): void {
  const { text, handler } = reading;
  const { length } = text;
  for (let at = 0; at < length;) {
    const first = asciiKinds[text.charCodeAt(at)];
    if (first === SEPARATOR) {
      at += 1;
      continue;
    }
    const rest = first === DIGIT ? DIGIT : LOWER;
    let end = at + 1;
    while (end < length && asciiKinds[text.charCodeAt(end)] === rest) end += 1;
    if (end < length && continuesName(text, end, rest)) at = readName(reading, at);
    else {
      handler.onWord(folded, at, end - at > TERM_UNITS ? at + TERM_UNITS : end, at, end, reading.position, 0);
      reading.position += 1;
      at = end;
    }
  }
}

function continuesName(text: string, at: number, last: number): boolean {
  const kind = asciiKinds[text.charCodeAt(at)] ?? SEPARATOR;
  if (kind !== SEPARATOR) return true;
  return at + 1 < text.length && joins(text.charCodeAt(at), last, asciiKinds[text.charCodeAt(at + 1)] ?? SEPARATOR);
}

function readUnicode(reading: Reading): void {
  const { text } = reading;
  for (let at = 0; at < text.length;) {
    const kind = characterKindAt(text, at);
    if (kind === UNSPACED) at = readUnspaced(reading, at);
    else if (isLetterOrDigit(kind)) at = readName(reading, at);
    else at += 1;
  }
}

/** Reports a word, unless the term is empty. A term is empty if the word consists of marks only. */
function emitWord(reading: Reading, term: string, start: number, end: number): void {
  if (term === '') return;
  reading.handler.onWord(term, 0, term.length, start, end, reading.position, 0);
  reading.position += 1;
}

function readUnspaced(reading: Reading, start: number): number {
  const { text } = reading;
  let end = start + 1;
  while (end < text.length && (characterKindAt(text, end) === UNSPACED || characterKindAt(text, end) === MARK)) end += 1;
  const run = foldText(text.slice(start, end));
  // Folding can change the length of the text, for example for half-width kana. Then the exact position of a pair is unknown.
  const exact = run.length === end - start;
  const characters = Array.from(run);
  const pairs = Math.max(1, characters.length - 1);
  let at = start;
  for (let index = 0; index < pairs; index += 1) {
    const term = (characters[index] ?? '') + (characters[index + 1] ?? '');
    if (exact) emitWord(reading, term, at, at + term.length);
    else emitWord(reading, term, start, end);
    at += characters[index]?.length ?? 0;
  }
  return end;
}

interface Part {
  readonly start: number;
  readonly end: number;
  /** True if a hyphen, an underscore or the point of a version number precedes this part. */
  readonly joined: boolean;
}

const termAt = ({ text, folded: known }: Reading, start: number, end: number): string =>
  truncated(known === undefined ? foldText(text.slice(start, end)) : known.slice(start, end));

function readName(reading: Reading, start: number): number {
  const { text, position } = reading;
  const { parts, end } = partsOfName(text, start);
  const used = parts.length <= MAX_PARTS ? parts : splitAtSeparators(parts);
  for (const part of used) {
    // Skip a single letter in a name, such as the v of v2, because it has no meaning on its own.
    if (used.length > 1 && part.end - part.start === 1 && characterKindAt(text, part.start) !== DIGIT) continue;
    emitWord(reading, termAt(reading, part.start, part.end), part.start, part.end);
  }
  const term = used.length > 1 ? wholeName(text, parts) : '';
  if (term !== '') {
    reading.handler.onWord(term, 0, term.length, start, end, position, Math.max(1, reading.position - position));
    reading.position = Math.max(reading.position, position + 1);
  }
  return end;
}

const truncated = (term: string): string => term.slice(0, characterBoundary(term, TERM_UNITS));

function partsOfName(text: string, start: number): { parts: Part[]; end: number } {
  const parts: Part[] = [];
  let begin = start;
  let joined = false;
  let last = characterKindAt(text, start);
  let at = start + 1;
  for (; at < text.length; at += 1) {
    const kind = characterKindAt(text, at);
    if (kind === MARK) continue;
    if (isLetterOrDigit(kind)) {
      if (startsPart(last, kind, text, at)) {
        parts.push({ start: begin, end: at, joined });
        begin = at;
        joined = false;
      }
      last = kind;
      continue;
    }
    const next = at + 1 < text.length ? characterKindAt(text, at + 1) : SEPARATOR;
    if (!joins(text.charCodeAt(at), last, next)) break;
    parts.push({ start: begin, end: at, joined });
    begin = at + 1;
    joined = true;
    last = next;
    at += 1;
  }
  parts.push({ start: begin, end: at, joined });
  return { parts, end: at };
}

/** Whether a new part of a name starts here, as at the B of fooBar, the S of HTTPServer and the 1 of abc123. */
const startsPart = (last: number, kind: number, text: string, at: number): boolean =>
  (last === LOWER && kind === UPPER) ||
  (last === UPPER && kind === UPPER && at + 1 < text.length && characterKindAt(text, at + 1) === LOWER) ||
  (last === DIGIT) !== (kind === DIGIT);

const HYPHEN = 0x2d;
const UNDERSCORE = 0x5f;
const POINT = 0x2e;

const joins = (unit: number, last: number, next: number): boolean =>
  unit === POINT ? last === DIGIT && next === DIGIT : (unit === HYPHEN || unit === UNDERSCORE) && isLetterOrDigit(next);

/** Merges parts, so that the name is split only at its separators. */
function splitAtSeparators(parts: readonly Part[]): Part[] {
  const merged: Part[] = [];
  for (const part of parts) {
    const open = merged.at(-1);
    if (open && !part.joined) merged[merged.length - 1] = { ...open, end: part.end };
    else merged.push(part);
  }
  return merged;
}

/** Returns the name without separators, but with the points of a version number, because 1.11 must not equal 11.1. */
function wholeName(text: string, parts: readonly Part[]): string {
  let whole = '';
  for (const part of parts) {
    if (part.joined && text.charCodeAt(part.start - 1) === POINT) whole += '.';
    whole += text.slice(part.start, part.end);
  }
  return truncated(foldText(whole));
}

const SEPARATOR = 0;
const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
/** A character of a script without spaces between words, or a pictograph. */
const UNSPACED = 4;
/** A combining mark or invisible character. */
const MARK = 5;

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
const kinds = new Uint8Array(0x10000).fill(UNKNOWN).fill(SEPARATOR, 0, 0x80);
kinds.fill(DIGIT, 0x30, 0x3a).fill(UPPER, 0x41, 0x5b).fill(LOWER, 0x61, 0x7b);

const asciiKinds: Readonly<Uint8Array> = kinds.subarray(0, 0x80);

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** Returns the kind of the character at an index. The second half of a surrogate pair counts as a mark. */
function characterKindAt(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const known = kinds[unit] ?? UNKNOWN;
  if (known !== UNKNOWN) return known;
  if (isLow(unit)) return MARK;
  if (isHigh(unit)) return kindOf(text.codePointAt(at) ?? unit);
  const kind = kindOf(unit);
  kinds[unit] = kind;
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
