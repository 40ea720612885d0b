import { readFileSync } from 'node:fs';
import type { SearchableFact } from '../../../../src/core/search/fact-index.ts';

/** A question with the relevance of the facts that answer it: 3 for the best answer, 1 for a useful one. */
export interface Judged {
  readonly kind: string;
  readonly text: string;
  readonly relevant: Readonly<Record<string, number>>;
  /** Not looked at while the search is tuned. */
  readonly held?: true;
}

const lines = (name: string): unknown[] =>
  readFileSync(new URL(name, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);

// Both files are ours, and a test checks their shape.
export const facts: readonly SearchableFact[] = (lines('facts.jsonl') as Omit<SearchableFact, 'updatedAt'>[]).map(
  (fact, index) => ({
    ...fact,
    updatedAt: 1_700_000_000_000 + index * 60_000,
  }),
);

export const queries = lines('queries.jsonl') as readonly Judged[];
