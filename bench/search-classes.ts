import { getHeapStatistics } from 'node:v8';
import { SNIPPET } from '../src/contract/limits.ts';
import { FactIndex } from '../src/core/search/fact-index.ts';
import { snippetOf } from '../src/core/search/fact-reader.ts';
import { parseQuery } from '../src/core/search/parsed-query.ts';
import { Ranking } from '../src/core/search/ranking.ts';
import { SearchIndex } from '../src/core/search/search-index.ts';
import { fullText } from './full-text.ts';
import { QUERY_CLASSES, type QueryClass, realFacts, realQueries } from './real-facts.ts';
import { median, quantile, report, type Result } from './report.ts';

const SIZES = [10_000, 100_000];
const QUERIES = 500;
const WARM_UP = 200;
const LIMIT = 10;
/** Queries of the floor. A question takes it up to 250 ms. */
const FLOOR_QUERIES = 60;
/** The median, with few and with many facts. A search reads a bounded number of postings and characters. */
const GARBAGE_KB = 500;
/**
 * The median relative to the floor, with 10,000 and with 100,000 facts: about twice what was measured. Commit 9f342bb read all
 * postings, and took 15 and 50 times as long as the floor for an identifier, 8.4 and 9.0 for a ticket, 2.3 and 3.0 for a version,
 * and 0.082 and 0.053 for a question.
 */
const BARS: Readonly<Record<QueryClass, readonly [number, number]>> = {
  identifier: [0.5, 0.45],
  ticket: [1.1, 0.65],
  version: [0.6, 0.2],
  question: [0.029, 0.0175],
};

/**
 * Measures searches as agents send them: an identifier, a ticket, a version and a question of eight words. The floor is SQLite's
 * full-text index over the same facts in memory. Says in which step the time is spent: the words of the query, the postings, the
 * text of the candidates, the snippets, and the JSON of the answer.
 */
export async function searchClasses(): Promise<Result[]> {
  const results: Result[] = [];
  for (const [at, size] of SIZES.entries()) {
    const facts = realFacts(size);
    const [index, parts] = [new SearchIndex(), new FactIndex()];
    using text = fullText();
    for (const fact of facts) {
      index.add(fact);
      text.add(fact);
      parts.add(fact.id, fact);
    }
    const ranking = new Ranking(parts);
    for (const kind of QUERY_CLASSES) {
      const garbage: number[] = [];
      const times = {
        floor: [] as number[],
        whole: [] as number[],
        words: [] as number[],
        postings: [] as number[],
        snippets: [] as number[],
        json: [] as number[],
      };
      for (const [round, asked] of realQueries(kind, facts, QUERIES + WARM_UP).entries()) {
        const heap = getHeapStatistics().used_heap_size;
        const [hits, whole] = timed(() => index.search({ text: asked, limit: LIMIT, now: 0 }));
        const grown = getHeapStatistics().used_heap_size - heap;
        const [query, words] = timed(() => parseQuery(asked, parts, { words: 128, narrowed: false }));
        const extent = { limit: LIMIT, most: 64, phrases: 512, postings: 100_000, narrowed: false };
        const [, postings] = timed(() => ranking.best(query, () => true, extent));
        const [snippets, cutting] = timed(() =>
          hits.map(({ fact, spans }) => snippetOf(fact.value, spans, SNIPPET.characters).text),
        );
        const [, json] = timed(() =>
          JSON.stringify(hits.map(({ fact, score, why }, place) => ({ ...fact, score, why, snippet: snippets[place] }))),
        );
        if (round < WARM_UP) continue;
        if (times.floor.length < FLOOR_QUERIES) times.floor.push(timed(() => text.search(asked, LIMIT))[1]);
        // The heap shrinks if a collection runs during the search.
        if (grown > 0) garbage.push(grown / 1000);
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
        figure: median(times.whole) / median(times.floor),
        unit: "times SQLite's full-text index",
        bar: { atMost: BARS[kind][at] ?? 0 },
        from:
          `${median(times.whole).toFixed(3)} and ${median(times.floor).toFixed(3)} ms, p99 ${quantile(times.whole, 0.99).toFixed(2)} ms; words ${micros(times.words)} µs, postings ${micros(times.postings)} µs, ` +
          `texts ${(1000 * Math.max(0, texts)).toFixed(0)} µs; then snippets ${micros(times.snippets)} µs, JSON ${micros(times.json)} µs`,
      });
      results.push({
        what: `garbage of a search for ${kind === 'identifier' ? 'an identifier' : `a ${kind}`} in ${size} facts, p50`,
        figure: median(garbage),
        unit: 'kB of heap',
        bar: { atMost: GARBAGE_KB },
        from: `p99 ${quantile(garbage, 0.99).toFixed(0)} kB, ${garbage.length} searches without a collection`,
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
