import { answerProbabilities, byMeaning, fuse, isRelated, newerFirst, relativeTo } from '../meaning/fuse.ts';
import type { Nearest } from '../meaning/nearest.ts';
import type { IndexedFact } from './fact-index.ts';
import type { Hit, SearchIndex, SearchQuery } from './search-index.ts';

export interface MeaningQuery extends SearchQuery {
  /** The text whose meaning was compared. */
  readonly question: string;
  /** With `meaning`, the words of the query do not matter. */
  readonly mode: 'auto' | 'both' | 'meaning';
}

/**
 * Number of facts by words and of facts by meaning that are compared. It is more than most searches return, because a fact that is
 * good by both can be the best.
 */
const COMPARED = 50;

/** Words that cover less of the query do not explain why a fact of similar meaning was found. Stop words cover so little. */
const LEAST_SHOWN = 0.1;

/** Returns the hits by words and by meaning, best first. */
export function searchByMeaning(index: SearchIndex, { question, mode, limit, ...query }: MeaningQuery, nearest: Nearest): Hit[] {
  const { text: _, ...filter } = query;
  const { background } = nearest;
  const most = Math.max(limit, COMPARED);
  const byWords = mode === 'meaning' ? [] : index.search({ ...query, limit: most });
  const known = new Set(byWords.map(({ id }) => id));
  const others = nearest.rows.filter(({ row }) => !known.has(row)).map(({ row }) => row);
  const candidates = [...byWords, ...index.read(others, filter, most).map(withoutWords)].map((hit) => ({
    hit,
    score: hit.score,
    coverage: hit.coverage,
    cosine: nearest.cosine(hit.id as number),
    category: hit.fact.category,
    updatedAt: hit.fact.updatedAt,
  }));
  const ranked = mode === 'meaning' ? byMeaning(candidates, background) : fuse(question, candidates, background);
  const hits = newerFirst(question, ranked, background, (one, other) =>
    nearest.similarity(one.hit.id as number, other.hit.id as number),
  ).slice(0, most);
  const probabilities = answerProbabilities(
    hits.map(({ candidate }) => candidate),
    background,
    index.size,
  );
  return hits.slice(0, limit).map(({ candidate: { hit, cosine }, score }, place) => {
    const meaning = isRelated(cosine, background) ? `similar in meaning (${cosine.toFixed(2)})` : '';
    const words = hit.coverage < LEAST_SHOWN && meaning !== '' ? '' : hit.why;
    const why = [words, meaning].filter((part) => part !== '').join('; ');
    return { ...hit, score, similarity: relativeTo(background, cosine), probability: probabilities[place] ?? 0, why };
  });
}

const withoutWords = (found: IndexedFact): Hit => ({
  ...found,
  score: 0,
  coverage: 0,
  information: 0,
  probability: 0,
  isSure: false,
  why: '',
  spans: [],
});
