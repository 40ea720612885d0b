import { stopWords } from '../../../../src/core/search/stop-words.ts';
import { stemOf } from '../../../../src/core/search/vocabulary.ts';
import { commonPrefixLength, foldText, isUnspaced, wordsOf } from '../../../../src/core/search/words.ts';

interface Text {
  readonly key: string;
  readonly category: string;
  readonly tags: readonly string[];
  readonly value: string;
}

/** Two words with this many first letters in common count as forms of one word, for example "renew" and "renewal". */
const SHARED_LETTERS = 5;
/** A shorter word counts as a form of a longer word that begins with it, for example "cook" and "cooker". */
const SHORT_LETTERS = 4;

/** Kana without a Kanji are mostly endings and particles, which sentences about different matters share. */
const kanaOnly = /^[\p{scx=Hiragana}]+$/u;

function contentWords(text: string): string[] {
  const terms = wordsOf(text)
    .map(({ term }) => foldText(term))
    .filter((term) => !stopWords.has(term) && !kanaOnly.test(term));
  return [...new Set(terms)];
}

function isSameWord(one: string, other: string): boolean {
  if (stemOf(one) === stemOf(other)) return true;
  if (isUnspaced(one) || isUnspaced(other)) return false;
  const shared = commonPrefixLength(one, other);
  return shared >= SHARED_LETTERS || (shared >= SHORT_LETTERS && shared === Math.min(one.length, other.length));
}

/** The content words of a question that a fact has too, in any form. Search indexes the key, category and tags as well. */
export function sharedWords(question: string, { key, category, tags, value }: Text): string[] {
  const words = contentWords([key, category, ...tags, value].join('\n'));
  return contentWords(question).filter((word) => words.some((other) => isSameWord(word, other)));
}
