import { readFileSync } from 'node:fs';

export interface Requirement {
  id: string;
  says: string;
  planned?: true;
}

export interface TestFile {
  path: string;
  text: string;
}

const row = /^\|\s*(R-[A-Z]+-\d{2})(\s*\(planned\))?\s*\|\s*(\S.*?)\s*\|$/gm;
const citation = /\bR-[A-Z]+-\d{2}\b/g;

/** docs/contract.md is the only list of promises. */
export const contract: string = readFileSync(new URL('../docs/contract.md', import.meta.url), 'utf8');

export const readRequirements = (text: string): Requirement[] =>
  [...text.matchAll(row)].map(([, id = '', planned, says = '']) =>
    planned === undefined ? { id, says } : { id, says, planned: true },
  );

export const requirements: readonly Requirement[] = readRequirements(contract);

/** Only ids in test names count, not ids in comments. */
const comment = /^\s*(?:\/\/|\/?\*|#).*$/gm;

export const cited = (text: string): string[] => text.replace(comment, '').match(citation) ?? [];

/** Compares promises with tests. Returns one line for each problem. */
export function gaps(promises: readonly Requirement[], tests: readonly TestFile[]): string[] {
  const known = new Map(promises.map((promise) => [promise.id, promise]));
  const proved = new Set(tests.flatMap(({ text }) => cited(text)));
  const doubled = promises.filter((promise) => known.get(promise.id) !== promise);
  const unproved = promises.filter(({ id, planned }) => !planned && !proved.has(id));
  const wrong = tests.flatMap(({ path, text }) =>
    [...new Set(cited(text))].flatMap((id) => {
      const promise = known.get(id);
      if (promise === undefined) return [`${path} cites ${id}, which is not promised.`];
      return promise.planned ? [`${path} cites ${id}, which is still marked planned.`] : [];
    }),
  );
  return [
    ...doubled.map(({ id }) => `${id} is promised twice.`),
    ...unproved.map(({ id, says }) => `No test cites ${id}: ${says}`),
    ...wrong,
  ];
}
