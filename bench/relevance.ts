import { baselines, type Engine, ours } from '../test/core/search/relevance/engines.ts';
import { kindsOf, measure } from '../test/core/search/relevance/measure.ts';
import { facts, type Judged, queries } from '../test/core/search/relevance/suite.ts';
import { report, type Result } from './report.ts';

/** Compares the relevance of search with other engines: nDCG@10 and recall@5, in hundredths. */
function table(title: string, engines: Readonly<Record<string, Engine>>, asked: readonly Judged[]): void {
  const names = Object.keys(engines);
  console.log(`\n${title}`.padEnd(25), names.map((name) => name.padStart(15)).join(''));
  for (const kind of ['all', ...kindsOf(asked)]) {
    const some = kind === 'all' ? asked : asked.filter((query) => query.kind === kind);
    const cells = Object.values(engines).map((engine) => {
      const { ndcg, recall } = measure(engine, some);
      return `${ndcg.toFixed(1)} ${recall.toFixed(0).padStart(3)}`.padStart(15);
    });
    console.log(`${kind} (${some.length})`.padEnd(24), cells.join(''));
  }
}

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

/** Our lead over the best other engine. Bars: at least five points over all questions, and at least -1 for each kind. */
function lead(what: 'ndcg' | 'recall', kind: string): Result {
  const asked = kind === 'all' ? queries : queries.filter((query) => query.kind === kind);
  const [mine = NaN, ...others] = Object.values(engines).map((engine) => measure(engine, asked)[what]);
  const best = Math.max(...others);
  return {
    what: `${what === 'ndcg' ? 'nDCG@10' : 'recall@5'}, ${kind}`,
    figure: mine - best,
    unit: 'points above the best of the others',
    bar: { atLeast: kind === 'all' ? 5 : -1 },
    from: `${mine.toFixed(1)} ours, ${best.toFixed(1)} theirs`,
  };
}

console.log();
const kinds = ['all', ...kindsOf(queries)];
const leads = (['ndcg', 'recall'] as const).flatMap((what) => kinds.map((kind) => lead(what, kind)));
process.exitCode = report(leads) ? 0 : 1;
