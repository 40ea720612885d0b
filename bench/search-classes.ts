import { SNIPPET } from '../src/contract/limits.ts';
import { FactIndex } from '../src/core/search/fact-index.ts';
import { snippetOf } from '../src/core/search/fact-reader.ts';
import { parseQuery } from '../src/core/search/parsed-query.ts';
import { Ranking } from '../src/core/search/ranking.ts';
import { SearchIndex } from '../src/core/search/search-index.ts';
import { QUERY_CLASSES, type QueryClass, realFacts, realQueries } from './real-facts.ts';
import { median, quantile, report, type Result } from './report.ts';

const SIZES = [10_000, 100_000];
const QUERIES = 500;
const WARM_UP = 200;
const LIMIT = 10;
/** Milliseconds at the median, with 10,000 and with 100,000 facts. */
const BARS: Readonly<Record<QueryClass, readonly [number, number]>> = {
  identifier: [0.1, 0.15],
  ticket: [0.15, 0.2],
  version: [0.15, 0.2],
  question: [0.3, 0.6],
};

/**
 * Measures searches as agents send them: an identifier, a ticket, a version and a question of eight words. Says in which step the
 * time is spent: the words of the query, the postings, the text of the candidates, the snippets, and the JSON of the answer.
 */
export async function searchClasses(): Promise<Result[]> {
  const results: Result[] = [];
  for (const [at, size] of SIZES.entries()) {
    const facts = realFacts(size);
    const [index, parts] = [new SearchIndex(), new FactIndex()];
    for (const fact of facts) {
      index.add(fact);
      parts.add(fact.id, fact);
    }
    const ranking = new Ranking(parts);
    for (const kind of QUERY_CLASSES) {
      const times = {
        whole: [] as number[],
        words: [] as number[],
        postings: [] as number[],
        snippets: [] as number[],
        json: [] as number[],
      };
      for (const [round, text] of realQueries(kind, facts, QUERIES + WARM_UP).entries()) {
        const [hits, whole] = timed(() => index.search({ text, limit: LIMIT, now: 0 }));
        const [query, words] = timed(() => parseQuery(text, parts, { words: 128, narrowed: false }));
        const extent = { limit: LIMIT, most: 512, postings: 100_000, narrowed: false };
        const [, postings] = timed(() => ranking.best(query, () => true, extent));
        const [snippets, cutting] = timed(() =>
          hits.map(({ fact, spans }) => snippetOf(fact.value, spans, SNIPPET.characters).text),
        );
        const [, json] = timed(() =>
          JSON.stringify(hits.map(({ fact, score, why }, place) => ({ ...fact, score, why, snippet: snippets[place] }))),
        );
        if (round < WARM_UP) continue;
        times.whole.push(whole);
        times.words.push(words);
        times.postings.push(postings);
        times.snippets.push(cutting);
        times.json.push(json);
      }
      const micros = (some: readonly number[]): string => (1000 * median(some)).toFixed(0);
      const texts = median(times.whole) - median(times.words) - median(times.postings);
      results.push({
        what: `search for ${kind === 'identifier' ? 'an identifier' : `a ${kind}`} in ${size} facts, p50`,
        figure: median(times.whole),
        unit: 'ms',
        bar: { atMost: BARS[kind][at] ?? 0 },
        from:
          `p99 ${quantile(times.whole, 0.99).toFixed(2)} ms; words ${micros(times.words)} µs, postings ${micros(times.postings)} µs, ` +
          `texts ${(1000 * Math.max(0, texts)).toFixed(0)} µs; then snippets ${micros(times.snippets)} µs, JSON ${micros(times.json)} µs`,
      });
    }
  }
  return results;
}

function timed<Answer>(step: () => Answer): [Answer, number] {
  const start = performance.now();
  const answer = step();
  return [answer, performance.now() - start];
}

if (import.meta.main) process.exitCode = report(await searchClasses()) ? 0 : 1;
