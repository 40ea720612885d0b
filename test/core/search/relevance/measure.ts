import type { Engine } from './engines.ts';
import type { Judged } from './suite.ts';

export interface Figures {
  readonly ndcg: number;
  readonly recall: number;
  readonly count: number;
}

const DEPTH = 10;
const SHALLOW = 5;

/** Normalised discounted cumulative gain of the first ten results: 1 if the most relevant facts come first, in order. */
function ndcg(found: readonly string[], relevant: Readonly<Record<string, number>>): number {
  const gain = (grade: number, place: number): number => (2 ** grade - 1) / Math.log2(place + 2);
  const ideal = Object.values(relevant)
    .toSorted((one, other) => other - one)
    .slice(0, DEPTH);
  const sum = (grades: readonly number[]): number => grades.reduce((total, grade, place) => total + gain(grade, place), 0);
  return sum(found.slice(0, DEPTH).map((key) => relevant[key] ?? 0)) / sum(ideal);
}

/** The share of the relevant facts that is among the first five results. */
function recall(found: readonly string[], relevant: Readonly<Record<string, number>>): number {
  const keys = Object.keys(relevant);
  const first = new Set(found.slice(0, SHALLOW));
  return keys.filter((key) => first.has(key)).length / Math.min(SHALLOW, keys.length);
}

/** Averages over all questions, in percent. */
export function measure(engine: Engine, queries: readonly Judged[]): Figures {
  let [sumOfNdcg, sumOfRecall] = [0, 0];
  for (const { text, relevant } of queries) {
    const found = engine(text, DEPTH);
    sumOfNdcg += ndcg(found, relevant);
    sumOfRecall += recall(found, relevant);
  }
  const count = queries.length;
  return { ndcg: (100 * sumOfNdcg) / count, recall: (100 * sumOfRecall) / count, count };
}

export const kindsOf = (queries: readonly Judged[]): string[] => [...new Set(queries.map(({ kind }) => kind))];
