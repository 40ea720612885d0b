import { baselines, ours } from '../test/core/search/relevance/engines.ts';
import { kindsOf, measure } from '../test/core/search/relevance/measure.ts';
import { facts, queries } from '../test/core/search/relevance/suite.ts';
import { table } from './relevance-table.ts';
import { report, type Result } from './report.ts';

const engines = {
  ours: ours(facts),
  ...Object.fromEntries(Object.entries(baselines).map(([name, over]) => [name, over(facts)])),
};
table('All questions', engines, queries);
table(
  'Seen while tuning',
  engines,
  queries.filter(({ held }) => !held),
);
table(
  'Held out',
  engines,
  queries.filter(({ held }) => held),
);

const asked = (kind: string): typeof queries => (kind === 'all' ? queries : queries.filter((query) => query.kind === kind));
const nameOf = (what: 'ndcg' | 'recall'): string => (what === 'ndcg' ? 'nDCG@10' : 'recall@5');

/** Our lead over the best other engine. Bars: at least five points over all questions, and at least -1 for each kind. */
function lead(what: 'ndcg' | 'recall', kind: string): Result {
  const [mine = NaN, ...others] = Object.values(engines).map((engine) => measure(engine, asked(kind))[what]);
  const best = Math.max(...others);
  return {
    what: `${nameOf(what)}, ${kind}`,
    figure: mine - best,
    unit: 'points above the best of the others',
    bar: { atLeast: kind === 'all' ? 5 : -1 },
    from: `${mine.toFixed(1)} ours, ${best.toFixed(1)} theirs`,
  };
}

/**
 * nDCG@10 and recall@5 of the build before postings were skipped (commit 9f342bb), with the same questions. Update them only with
 * the questions.
 */
const EARLIER: Readonly<Record<string, readonly [ndcg: number, recall: number]>> = {
  all: [99.05, 98.15],
  question: [96.29, 91.67],
  keyword: [99.77, 98.33],
  identifier: [100, 100],
  foreign: [100, 100],
  cjk: [99.76, 99.07],
  typo: [99.94, 100],
  inflected: [100, 100],
  partial: [97.32, 100],
  phrase: [99, 94.12],
};

/** The change since the earlier build. No kind may be worse by more than half a point. */
function change(what: 'ndcg' | 'recall', kind: string): Result {
  const { [what]: mine } = measure(engines.ours, asked(kind));
  const earlier = EARLIER[kind]?.[what === 'ndcg' ? 0 : 1] ?? NaN;
  return {
    what: `${nameOf(what)}, ${kind}, since commit 9f342bb`,
    figure: mine - earlier,
    unit: 'points',
    bar: { atLeast: -0.5 },
    from: `${mine.toFixed(2)} now, ${earlier.toFixed(2)} then`,
  };
}

console.log();
const kinds = ['all', ...kindsOf(queries)];
const results = (['ndcg', 'recall'] as const).flatMap((what) => [
  ...kinds.map((kind) => lead(what, kind)),
  ...kinds.map((kind) => change(what, kind)),
]);
process.exitCode = report(results) ? 0 : 1;
