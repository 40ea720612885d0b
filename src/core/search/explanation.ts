import type { Question } from './question.ts';
import type { Reading } from './reading.ts';

const MOST_WORDS = 8;

/** Which words were found where, for a person to read: `"deploy" in key, value; "kubernetes" for "kuberntes" in value`. */
export function explain({ words }: Question, { phrase, findings }: Reading): string {
  const telling = [...findings].filter(([word]) => words[word]?.small === false);
  const told = (telling.length > 0 ? telling : [...findings])
    .toSorted(([one], [other]) => (words[other]?.worth ?? 0) - (words[one]?.worth ?? 0))
    .slice(0, MOST_WORDS)
    .map(([word, { term, fields }]) => {
      const asked = words[word]?.term ?? '';
      return `${term === asked ? `"${term}"` : `"${term}" for "${asked}"`} in ${[...fields].join(', ')}`;
    });
  return [...(phrase === undefined ? [] : [`exact phrase in ${phrase}`]), ...told].join('; ');
}
