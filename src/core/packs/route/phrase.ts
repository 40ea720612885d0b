import type { Word } from '../../search/words.ts';

/** Joins the words into one string that can be searched for phrases. */
export const joinWords = (words: readonly Word[]): string => {
  let phrase = ' ';
  for (const { term, parts } of words) if (parts === 0) phrase += `${term} `;
  return phrase;
};
