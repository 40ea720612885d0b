import { LIKELY_NEAR, nearProbability } from '../src/core/meaning/fuse.ts';
import { corpus, languages, paraphrases, questions, superseded, writes } from '../test/core/search/meaning/suite.ts';
import type { Engine } from '../test/core/search/relevance/engines.ts';
import { kindsOf, measure } from '../test/core/search/relevance/measure.ts';
import { facts as otherFacts, queries } from '../test/core/search/relevance/suite.ts';
import { embed, MeaningSuite, type Mode, textOf } from './meaning-suite.ts';
import { table } from './relevance-table.ts';
import { report, type Result } from './report.ts';

/**
 * Measures search by words, by meaning and by both, with the bundled model: on questions that share no word with the fact that
 * answers them, on the questions of the relevance suite, on superseded facts, on questions without an answer, and on facts that
 * repeat or contradict others. Tune on the rows that were seen; the held-out rows judge.
 */
const judged = [...paraphrases, ...languages];
await embed([...judged, ...queries, ...questions].map(({ text }) => text));
await embed([...superseded.map(({ question }) => question), ...writes.map(({ fact }) => textOf(fact))]);
const suite = await MeaningSuite.over(corpus);
const otherSuite = await MeaningSuite.over(otherFacts);
const withNewer = await MeaningSuite.over([...corpus, ...superseded.map(({ newer }) => newer)]);

const DEPTH = 10;
const halves = {
  seen: <Row extends { readonly held?: true }>(rows: readonly Row[]): Row[] => rows.filter(({ held }) => !held),
  'held out': <Row extends { readonly held?: true }>(rows: readonly Row[]): Row[] => rows.filter(({ held }) => held),
};
const enginesOf = (over: MeaningSuite): Record<'words' | 'meaning' | 'both', Engine> => {
  const engine =
    (mode: Mode): Engine =>
    (text, limit) =>
      over.keys(text, mode, limit);
  return { words: engine('words'), meaning: engine('meaning'), both: engine('auto') };
};
const [engines, otherEngines] = [enginesOf(suite), enginesOf(otherSuite)];

/** The share of pairs in which the newer fact is found, and the older is not found before it. */
function newerFirst(pairs: typeof superseded, mode: Mode): number {
  const first = pairs.filter(({ question, older, newer }) => {
    const found = withNewer.keys(question, mode, DEPTH).filter((key) => key === older.key || key === newer.key);
    return found[0] === newer.key;
  });
  return first.length / pairs.length;
}

/** The probability that a question with an answer has a higher figure than a question without one. */
function separation(asked: typeof questions, figureOf: (text: string) => number): number {
  const figures = (answered: boolean): number[] =>
    asked.filter(({ answer }) => (answer !== undefined) === answered).map(({ text }) => figureOf(text));
  const without = figures(false);
  const wins = figures(true).flatMap((one) => without.map((other) => (one > other ? 1 : one === other ? 0.5 : 0)));
  return wins.reduce<number>((sum, win) => sum + win, 0) / wins.length;
}

const best = (text: string, mode: Mode): number => suite.search(text, mode)[0]?.probability ?? 0;
const bestCosine = (text: string): number => suite.nearest(text).rows[0]?.cosine ?? 0;

const BINS = 10;
type Question = (typeof questions)[number];

/** The mean difference between the probability of the best hit and how often it is right, in ten classes of the probability. */
function calibrationError(asked: typeof questions, mode: Mode, over: (question: Question) => MeaningSuite = () => suite): number {
  const gaps = new Float64Array(BINS);
  for (const question of asked) {
    const { text, answer } = question;
    const [hit] = over(question).search(text, mode);
    const probability = hit?.probability ?? 0;
    const bin = Math.min(BINS - 1, Math.floor(BINS * probability));
    gaps[bin] = (gaps[bin] ?? 0) + probability - (hit !== undefined && hit.fact.key === answer ? 1 : 0);
  }
  return gaps.reduce((sum, gap) => sum + Math.abs(gap), 0) / asked.length;
}

const FEW = 15;
/** A small memory for each question, with its answer. */
const small = new Map<Question, MeaningSuite>();
for (const [index, question] of questions.entries()) {
  const isAnswer = ({ key }: (typeof corpus)[number]): boolean => key === question.answer;
  const step = Math.floor(corpus.length / FEW);
  const others = corpus.filter((fact, at) => at % step === index % step && !isAnswer(fact)).slice(0, FEW - 1);
  small.set(question, await MeaningSuite.over([...others, ...corpus.filter(isAnswer)]));
}

const MOST_SHOWN = 3;

/** The facts that are shown to the writer of a fact. */
function shownFor({ fact }: (typeof writes)[number]): string[] {
  const { keys, background } = suite.nearest(textOf(fact));
  const likely = keys.filter(({ cosine }) => nearProbability(cosine, background) >= LIKELY_NEAR);
  return likely.slice(0, MOST_SHOWN).map(({ key }) => key);
}

const nearOf = ({ repeats = [], contradicts = [] }: (typeof writes)[number]): string[] => [...repeats, ...contradicts];

const results = Object.entries(halves).flatMap(([half, select]): Result[] => {
  table(`Meaning, ${half}`, engines, select(judged));
  table(`Relevance, ${half}`, otherEngines, select(queries));
  // Only the rows that were held out have bars.
  const bar = half === 'seen' ? (): object => ({}) : (value: object): object => ({ bar: value });
  const compare = (kind: string, rows: typeof queries, with_: typeof engines): Result => {
    const some = rows.filter((query) => query.kind === kind);
    const [words, both] = [measure(with_.words, some).ndcg, measure(with_.both, some).ndcg];
    return {
      what: `${kind}, ${half}`,
      figure: both - words,
      unit: 'points of nDCG@10 more than by words alone',
      ...bar({ atLeast: -0.5 }),
      from: `${words.toFixed(1)} by words, ${both.toFixed(1)} by both, ${some.length} questions`,
    };
  };
  const [pairs, asked, stored] = [select(superseded), select(questions), select(writes)];
  const near = stored.filter((write) => nearOf(write).length > 0);
  const others = stored.filter((write) => nearOf(write).length === 0);
  const shown = near.filter((write) => shownFor(write).some((key) => nearOf(write).includes(key)));
  const wrong = others.filter((write) => shownFor(write).length > 0);
  const [byWords, byCosine] = [separation(asked, (text) => best(text, 'words')), separation(asked, bestCosine)];
  return [
    {
      what: `paraphrases, ${half}`,
      figure: measure(engines.both, select(paraphrases)).ndcg,
      unit: 'nDCG@10 by both',
      ...bar({ atLeast: 55 }),
      from: `${measure(engines.meaning, select(paraphrases)).ndcg.toFixed(1)} by meaning alone`,
    },
    ...kindsOf(languages).map((kind) => compare(kind, select(languages), engines)),
    ...kindsOf(queries).map((kind) => compare(kind, select(queries), otherEngines)),
    {
      what: `newer fact first, ${half}`,
      figure: 100 * newerFirst(pairs, 'auto'),
      unit: 'percent',
      ...bar({ atLeast: 80 }),
      from: `${pairs.length} superseded pairs, ${(100 * newerFirst(pairs, 'words')).toFixed(0)} percent by words`,
    },
    {
      what: `questions with and without an answer, ${half}`,
      figure: separation(asked, (text) => best(text, 'auto')),
      unit: 'AUC of the probability of the best hit',
      ...bar({ atLeast: Math.max(byWords, byCosine) }),
      from: `${byWords.toFixed(3)} by words, ${byCosine.toFixed(3)} by the cosine`,
    },
    {
      what: `probability of the best hit, ${half}`,
      figure: calibrationError(asked, 'auto'),
      unit: 'calibration error',
      ...bar({ atMost: 0.1 }),
      from: `${calibrationError(asked, 'words').toFixed(3)} by words alone`,
    },
    {
      what: `probability among ${FEW} facts, ${half}`,
      figure: calibrationError(asked, 'auto', (question) => small.get(question) ?? suite),
      unit: 'calibration error',
      from: `${asked.length} questions`,
    },
    {
      what: `repeated and contradicted facts, ${half}`,
      figure: (100 * shown.length) / near.length,
      unit: 'percent shown',
      ...bar({ atLeast: 80 }),
      from: `${near.length} writes`,
    },
    {
      what: `writes on a new matter, ${half}`,
      figure: (100 * wrong.length) / others.length,
      unit: 'percent with a fact shown',
      ...bar({ atMost: 5 }),
      from: `${others.length} writes`,
    },
  ];
});
console.log(`\n${corpus.length} and ${otherFacts.length} facts`);
process.exitCode = report(results) ? 0 : 1;
