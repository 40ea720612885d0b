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

/** Reads a file with one JSON value on each line. The file is ours, so its shape is not checked. */
export const readLines = <Row>(file: URL): Row[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row);

// Both files are ours, and a test checks their shape.
export const facts: readonly SearchableFact[] = readLines<Omit<SearchableFact, 'updatedAt'>>(
  new URL('facts.jsonl', import.meta.url),
).map((fact, index) => ({
  ...fact,
  updatedAt: 1_700_000_000_000 + index * 60_000,
}));

export const queries: readonly Judged[] = readLines<Judged>(new URL('queries.jsonl', import.meta.url));
