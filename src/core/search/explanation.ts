import type { FactMatch } from './fact-reader.ts';
import type { ParsedQuery } from './parsed-query.ts';

const MOST_WORDS = 8;

/** Which words were found where, for a person to read: `"deploy" in key, value; "kubernetes" for "kuberntes" in value`. */
export function explainHit({ words }: ParsedQuery, { phrase, findings }: FactMatch): string {
  const all = [...findings];
  const telling = all.filter(([word]) => words[word]?.small === false);
  const told = telling.length > 0 ? telling : all;
  told.sort(([one], [other]) => (words[other]?.weight ?? 0) - (words[one]?.weight ?? 0));
  let why = phrase === undefined ? '' : `exact phrase in ${phrase}`;
  for (const [word, { term, fields }] of told.slice(0, MOST_WORDS)) {
    const asked = words[word]?.term ?? '';
    const named = term === asked ? `"${term}"` : `"${term}" for "${asked}"`;
    why += `${why === '' ? '' : '; '}${named} in ${fields.join(', ')}`;
  }
  return why;
}
