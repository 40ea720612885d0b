import { LIKELY_NEAR, nearProbability } from '../meaning/fuse.ts';
import type { Nearest } from '../meaning/nearest.ts';
import type { IndexedFact } from './fact-index.ts';
import type { SearchIndex } from './search-index.ts';

/** A fact that probably repeats or contradicts another one. */
export interface NearFact {
  readonly fact: IndexedFact['fact'];
  readonly probability: number;
}

export interface NearFactsQuery {
  /** The key of the fact that was stored, which is not near itself. */
  readonly key: string;
  readonly limit: number;
  readonly now: number;
}

/** Nearest facts to ask for. It is more than are shown, because the fact itself can be among them, and expired facts. */
export const NEAREST_ASKED = 8;

/** Returns the facts that are so near to a text that they probably speak of the same matter, nearest first. */
export function nearFacts(index: SearchIndex, { key, limit, now }: NearFactsQuery, { rows, background }: Nearest): NearFact[] {
  const probabilities = new Map(rows.map(({ row, cosine }) => [row, nearProbability(cosine, background)]));
  const likely = rows.filter(({ row }) => (probabilities.get(row) ?? 0) >= LIKELY_NEAR).map(({ row }) => row);
  return index
    .read(likely, { now }, NEAREST_ASKED)
    .filter(({ fact }) => fact.key !== key)
    .slice(0, limit)
    .map(({ id, fact }) => ({ fact, probability: probabilities.get(id as number) ?? 0 }));
}
