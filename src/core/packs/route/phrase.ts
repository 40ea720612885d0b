import type { Word } from '../../search/words.ts';

/** The words of a text as one string in which a phrase can be looked for. */
export const joinWords = (words: readonly Word[]): string => {
  let phrase = ' ';
  for (const { term, parts } of words) if (parts === 0) phrase += `${term} `;
  return phrase;
};
