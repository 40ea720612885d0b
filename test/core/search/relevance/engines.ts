import Database from 'better-sqlite3';
import type { SearchableFact } from '../../../../src/core/search/fact-index.ts';
import { SearchIndex } from '../../../../src/core/search/search-index.ts';

/** Returns the keys of the best facts for a question, best first. */
export type Engine = (text: string, limit: number) => string[];

export type EngineOver = (facts: readonly SearchableFact[]) => Engine;

export function ours(facts: readonly SearchableFact[]): Engine {
  const index = new SearchIndex();
  for (const fact of facts) index.add({ id: fact.key, ...fact });
  return (text, limit) => index.search({ text, limit }).map(({ fact }) => fact.key);
}

const wordsIn = (text: string): string[] => [...new Set(text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu))];

/** Matches facts with any of the words. Requiring all words of a question would find almost nothing. */
const anyOf = (terms: readonly string[]): string => terms.map((term) => `"${term}"`).join(' OR ');

const piecesOf = (word: string): string[] =>
  Array.from({ length: Math.max(0, word.length - 2) }, (_, at) => word.slice(at, at + 3));

/** Weights of key, category, tags and value. Each engine gets the weights that suit it better. */
const OURS = '2.2, 0.7, 1.4, 1';
const EQUAL = '1, 1, 1, 1';

function fullText(
  facts: readonly SearchableFact[],
  tokenizer: string,
  spell: (words: string[]) => string[],
  weights = OURS,
): Engine {
  const db = new Database(':memory:');
  db.exec(`CREATE VIRTUAL TABLE fact USING fts5(key, category, tags, value, tokenize = "${tokenizer}")`);
  const insert = db.prepare('INSERT INTO fact (key, category, tags, value) VALUES (?, ?, ?, ?)');
  db.transaction(() => {
    for (const { key, category, tags, value } of facts) insert.run(key, category, tags.join(' '), value);
  })();
  const query = db.prepare(`SELECT key FROM fact WHERE fact MATCH ? ORDER BY bm25(fact, ${weights}), rowid DESC LIMIT ?`).pluck();
  return (text, limit) => {
    const terms = spell(wordsIn(text));
    return terms.length === 0 ? [] : (query.all(anyOf(terms), limit) as string[]);
  };
}

/** Counts the words that a fact contains, in any letter case. The whole question counts as three more words. */
function substring(facts: readonly SearchableFact[]): Engine {
  const texts = facts.map(({ key, category, tags, value }) => ({
    key,
    text: [key, category, ...tags, value].join('\n').toLowerCase(),
  }));
  return (question, limit) => {
    const words = wordsIn(question);
    const whole = question.toLowerCase();
    return texts
      .map(({ key, text }, index) => ({
        key,
        index,
        score: words.filter((word) => text.includes(word)).length + (text.includes(whole) ? 3 : 0),
      }))
      .filter(({ score }) => score > 0)
      .toSorted((one, other) => other.score - one.score || other.index - one.index)
      .slice(0, limit)
      .map(({ key }) => key);
  };
}

/** Simpler alternatives to our engine. */
export const baselines: Readonly<Record<string, EngineOver>> = {
  unicode61: (facts) => fullText(facts, 'unicode61 remove_diacritics 2', (words) => words),
  porter: (facts) => fullText(facts, 'porter unicode61 remove_diacritics 2', (words) => words),
  'trigram words': (facts) => fullText(facts, 'trigram remove_diacritics 1', (words) => words.filter((word) => word.length > 2)),
  'trigram pieces': (facts) =>
    fullText(facts, 'trigram remove_diacritics 1', (words) => [...new Set(words.flatMap(piecesOf))], EQUAL),
  substring,
};
