import { asciiKinds, characterBoundary, UPPER, UNSPACED, DIGIT, SEPARATOR, characterKindAt, MARK, LOWER } from './characters.ts';
import { foldText, foldAscii } from './fold-text.ts';

/** Longer ones, as in encoded data, are told apart by their beginning. */
export const TERM_UNITS = 64;

/** Names of more parts, as in paths of hashes, are not taken apart further. */
const MOST_PARTS = 8;

export interface Word {
  /** As it is compared: see `plain`. */
  readonly term: string;
  readonly start: number;
  readonly end: number;
  /** Counts the words before it. A name as a whole stands where its first part does. */
  readonly position: number;
  /** How many of these words it is the whole of, as `useCart` is of `use` and `Cart`; 0 for a word that is itself one. */
  readonly parts: number;
}

/**
 * Hears the words of a text in their order. A term is not cut out before somebody wants it: it stands in a source, which is
 * rarely its own, between two places. The rest says of the word what `Word` does.
 */
export interface WordHandler {
  onWord(source: string, from: number, to: number, start: number, end: number, position: number, parts: number): void;
}

const isLetterOrDigit = (kind: number): boolean => kind === LOWER || kind === UPPER || kind === DIGIT;

/** A text being read. */
interface Reading {
  readonly text: string;
  /** The whole text as it is compared, where each character of it stands in the same place. */
  readonly plain: string | undefined;
  readonly hearer: WordHandler;
  position: number;
}

/** Knows terms that are looked for well enough to pass over most others before anything is made of them. */
export class TermFilter {
  #beginnings = 0;
  #lengths = 0;

  add(term: string): void {
    this.#beginnings |= 1 << (term.charCodeAt(0) & 31);
    this.#lengths |= 1 << (term.length & 31);
  }

  /** False when what stands there in a text is certainly none of them. */
  mayContain(text: string, from: number, to: number): boolean {
    return ((this.#beginnings >>> (text.charCodeAt(from) & 31)) & (this.#lengths >>> ((to - from) & 31)) & 1) === 1;
  }
}

/** Keeps what it hears, but for what its sieve does not hold. */
class WordList implements WordHandler {
  readonly words: Word[] = [];
  readonly #sieve: TermFilter | undefined;

  constructor(sieve: TermFilter | undefined) {
    this.#sieve = sieve;
  }

  onWord(source: string, from: number, to: number, start: number, end: number, position: number, parts: number): void {
    if (this.#sieve?.mayContain(source, from, to) === false) return;
    this.words.push({ term: source.slice(from, to), start, end, position, parts });
  }
}

/** The words of a text, as a list; with a sieve, without those that it does not hold. */
export function wordsOf(text: string, sieve?: TermFilter): Word[] {
  const listed = new WordList(sieve);
  readWords(text, listed);
  return listed.words;
}

/**
 * Tells the words of a text. A name written in camel, kebab or snake case, with digits or as a version, gives its parts and
 * then itself as a whole, written together. Scripts without blanks give each pair of neighbouring characters.
 */
export function readWords(text: string, hearer: WordHandler): void {
  const reading: Reading = { text, plain: foldAscii(text), hearer, position: 0 };
  if (reading.plain === undefined) readAny(reading);
  else readAscii(reading, reading.plain);
}

/** Most words are all of small letters, but for the first, or all of digits, and have no parts. */
function readAscii(reading: Reading, plainText: string): void {
  const { text, hearer } = reading;
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
    if (end < length && goesOn(text, end, rest)) at = readParted(reading, at);
    else {
      hearer.onWord(plainText, at, end - at > TERM_UNITS ? at + TERM_UNITS : end, at, end, reading.position, 0);
      reading.position += 1;
      at = end;
    }
  }
}

function goesOn(text: string, at: number, last: number): boolean {
  const kind = asciiKinds[text.charCodeAt(at)] ?? SEPARATOR;
  if (kind !== SEPARATOR) return true;
  return at + 1 < text.length && joins(text.charCodeAt(at), last, asciiKinds[text.charCodeAt(at + 1)] ?? SEPARATOR);
}

function readAny(reading: Reading): void {
  const { text } = reading;
  for (let at = 0; at < text.length;) {
    const kind = characterKindAt(text, at);
    if (kind === UNSPACED) at = readDense(reading, at);
    else if (isLetterOrDigit(kind)) at = readParted(reading, at);
    else at += 1;
  }
}

/** A character that only carries marks leaves nothing once they are gone. */
function say(reading: Reading, term: string, start: number, end: number): void {
  if (term === '') return;
  reading.hearer.onWord(term, 0, term.length, start, end, reading.position, 0);
  reading.position += 1;
}

function readDense(reading: Reading, start: number): number {
  const { text } = reading;
  let end = start + 1;
  while (end < text.length && (characterKindAt(text, end) === UNSPACED || characterKindAt(text, end) === MARK)) end += 1;
  const run = foldText(text.slice(start, end));
  // Where folding changed the length, as of half-width kana, there is no telling where in the run a pair stood.
  const exact = run.length === end - start;
  const characters = Array.from(run);
  const pairs = Math.max(1, characters.length - 1);
  let at = start;
  for (let index = 0; index < pairs; index += 1) {
    const term = (characters[index] ?? '') + (characters[index + 1] ?? '');
    if (exact) say(reading, term, at, at + term.length);
    else say(reading, term, start, end);
    at += characters[index]?.length ?? 0;
  }
  return end;
}

interface Part {
  readonly start: number;
  readonly end: number;
  /** Begins after a hyphen, an underscore or the point of a version, not merely with another kind of character. */
  readonly joined: boolean;
}

/** What stands there, as it is compared. */
const termAt = ({ text, plain: known }: Reading, start: number, end: number): string =>
  short(known === undefined ? foldText(text.slice(start, end)) : known.slice(start, end));

/** A word, or a name of several. */
function readParted(reading: Reading, start: number): number {
  const { text, position } = reading;
  const { parts, end } = partsOfName(text, start);
  const told = parts.length <= MOST_PARTS ? parts : coarse(parts);
  for (const part of told) {
    // A letter that only a digit set apart, as the v of v2, means nothing alone.
    if (told.length > 1 && part.end - part.start === 1 && characterKindAt(text, part.start) !== DIGIT) continue;
    say(reading, termAt(reading, part.start, part.end), part.start, part.end);
  }
  const term = told.length > 1 ? wholeName(text, parts) : '';
  if (term !== '') {
    reading.hearer.onWord(term, 0, term.length, start, end, position, Math.max(1, reading.position - position));
    reading.position = Math.max(reading.position, position + 1);
  }
  return end;
}

const short = (term: string): string => term.slice(0, characterBoundary(term, TERM_UNITS));

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
      if (parted(last, kind, text, at)) {
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

/** fooBar, HTTPServer, abc123. */
const parted = (last: number, kind: number, text: string, at: number): boolean =>
  (last === LOWER && kind === UPPER) ||
  (last === UPPER && kind === UPPER && at + 1 < text.length && characterKindAt(text, at + 1) === LOWER) ||
  (last === DIGIT) !== (kind === DIGIT);

const HYPHEN = 0x2d;
const UNDERSCORE = 0x5f;
const POINT = 0x2e;

const joins = (unit: number, last: number, next: number): boolean =>
  unit === POINT ? last === DIGIT && next === DIGIT : (unit === HYPHEN || unit === UNDERSCORE) && isLetterOrDigit(next);

/** Parted where it is joined, and nowhere else. */
function coarse(parts: readonly Part[]): Part[] {
  const merged: Part[] = [];
  for (const part of parts) {
    const open = merged.at(-1);
    if (open && !part.joined) merged[merged.length - 1] = { ...open, end: part.end };
    else merged.push(part);
  }
  return merged;
}

/** Written together; the points of a version stay, or 1.11 would be 11.1. */
function wholeName(text: string, parts: readonly Part[]): string {
  let whole = '';
  for (const part of parts) {
    if (part.joined && text.charCodeAt(part.start - 1) === POINT) whole += '.';
    whole += text.slice(part.start, part.end);
  }
  return short(foldText(whole));
}
