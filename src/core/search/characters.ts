import { lazy } from '../../contract/schema.ts';

/** What a UTF-16 unit is to a reader of words. */
export const SEPARATOR = 0;
export const LOWER = 1;
export const UPPER = 2;
export const DIGIT = 3;
/** Of a script that leaves no blanks between words; a pictograph is one too. */
export const UNSPACED = 4;
/** Belongs to whatever stands before it. */
export const MARK = 5;

/** The classes of a script are long lists, and nobody waits for them before there is a text to read. */
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
/** Filled as characters are met, because asking five patterns about each of 65 536 would delay the start. */
const kinds = new Uint8Array(0x10000).fill(UNKNOWN).fill(SEPARATOR, 0, 0x80);
kinds.fill(DIGIT, 0x30, 0x3a).fill(UPPER, 0x41, 0x5b).fill(LOWER, 0x61, 0x7b);

/** What a unit of ASCII is, of which nearly all texts are made. */
export const asciiKinds: Readonly<Uint8Array> = kinds.subarray(0, 0x80);

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

/** What stands at a place. The second half of a pair is a mark: it goes with the first. */
export function characterKindAt(text: string, at: number): number {
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

/** Moves a cut back so that it does not fall inside a character. */
export const characterBoundary = (text: string, at: number): number =>
  at > 0 && at < text.length && isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1)) ? at - 1 : at;
