import { foldCase } from '../../contract/schema.ts';

/**
 * Accents, vowel points and signs that leave no ink. Marks of other scripts stay, because there they are letters: the
 * vowels of Devanagari, the voicing of kana.
 */
const accents =
  /[\u{300}-\u{36f}]|[\u{591}-\u{5bd}\u{5bf}\u{5c1}\u{5c2}\u{5c4}\u{5c5}\u{5c7}]|[\u{610}-\u{61a}\u{640}\u{64b}-\u{65f}\u{670}]|\p{Default_Ignorable_Code_Point}/gu;

/** Letters that Unicode does not take apart, and readers do. */
const alike: Record<string, string> = {
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

/** The text without diacritics, letter case and width: what is written alike is found alike. */
export const foldText = (text: string): string =>
  foldAscii(text) ?? foldCase(text.normalize('NFKD').replace(accents, '')).replace(letters, (letter) => alike[letter] ?? letter);

/** The same for a text of nothing but ASCII, where every character stays in its place; undefined for any other. */
export const foldAscii = (text: string): string | undefined => (ascii.test(text) ? text.toLowerCase() : undefined);
