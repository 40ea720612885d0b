import type { Engine } from '../test/core/search/relevance/engines.ts';
import { kindsOf, measure } from '../test/core/search/relevance/measure.ts';
import type { Judged } from '../test/core/search/relevance/suite.ts';

/** Compares the relevance of search with other engines: nDCG@10 and recall@5, in hundredths. */
export function table(title: string, engines: Readonly<Record<string, Engine>>, asked: readonly Judged[]): void {
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
