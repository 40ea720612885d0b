import { SearchIndex } from '../src/core/search/search-index.ts';
import { corpus, languages, paraphrases, questions, superseded, writes } from '../test/core/search/meaning/suite.ts';
import { baselines, ours } from '../test/core/search/relevance/engines.ts';
import { table } from './relevance-table.ts';
import { report, type Result } from './report.ts';

/**
 * Measures search on questions that share no word with the fact that answers them, on superseded facts and on questions without
 * an answer. Tune on the rows that were seen; the held-out rows judge.
 */
const engines = { words: ours(corpus), porter: baselines['porter']?.(corpus) ?? (() => []) };
const judged = [...paraphrases, ...languages];

const halves = {
  seen: <Row extends { readonly held?: true }>(rows: readonly Row[]): Row[] => rows.filter(({ held }) => !held),
  'held out': <Row extends { readonly held?: true }>(rows: readonly Row[]): Row[] => rows.filter(({ held }) => held),
};
for (const [half, select] of Object.entries(halves)) table(`Questions, ${half}`, engines, select(judged));

function indexOf(facts: typeof corpus): SearchIndex {
  const index = new SearchIndex();
  for (const fact of facts) index.add({ id: fact.key, ...fact });
  return index;
}

const DEPTH = 10;

const withNewer = indexOf([...corpus, ...superseded.map(({ newer }) => newer)]);

/** The share of pairs in which the newer fact is found, and the older is not found before it. */
function newerFirst(pairs: typeof superseded): number {
  const first = pairs.filter(({ question, older, newer }) => {
    const keys = withNewer.search({ text: question, limit: DEPTH }).map(({ fact }) => fact.key);
    const found = keys.filter((key) => key === older.key || key === newer.key);
    return found[0] === newer.key;
  });
  return first.length / pairs.length;
}

const index = indexOf(corpus);
const bestScore = (text: string): number => index.search({ text, limit: 1 })[0]?.score ?? 0;

/** The probability that the best hit of a question with an answer scores higher than that of a question without one. */
function separation(asked: typeof questions): number {
  const scores = (answered: boolean): number[] =>
    asked.filter(({ answer }) => (answer !== undefined) === answered).map(({ text }) => bestScore(text));
  const without = scores(false);
  const wins = scores(true).flatMap((one) => without.map((other) => (one > other ? 1 : one === other ? 0.5 : 0)));
  return wins.reduce<number>((sum, win) => sum + win, 0) / wins.length;
}

const results = Object.entries(halves).flatMap(([half, select]): Result[] => {
  const [pairs, asked, stored] = [select(superseded), select(questions), select(writes)];
  const near = stored.filter(({ repeats, contradicts }) => repeats ?? contradicts).length;
  return [
    {
      what: `newer fact first, ${half}`,
      figure: 100 * newerFirst(pairs),
      unit: 'percent by words alone',
      from: `${pairs.length} superseded pairs`,
    },
    {
      what: `questions with and without an answer, ${half}`,
      figure: separation(asked),
      unit: 'AUC of the best score by words alone',
      from: `${asked.filter(({ answer }) => answer !== undefined).length} of ${asked.length} have an answer`,
    },
    {
      what: `writes, ${half}`,
      figure: near,
      unit: 'of them repeat or contradict a fact',
      from: `${stored.length} writes, not measured yet`,
    },
  ];
});
console.log(`\n${corpus.length} facts`);
report(results);
