import { SearchIndex } from '../src/core/search/search-index.ts';
import { fullText } from './full-text.ts';
import { aFact, COMMON, FACTS, indexBuild, own, word } from './index-build.ts';
import { report, type Result } from './report.ts';

/**
 * Measures search over 100,000 facts of 200 bytes. The floor is SQLite's full-text index over the same facts in memory. Memory is
 * measured only with --expose-gc.
 */
function resident(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().rss;
}

interface Times {
  /** Microseconds: the median and p99. */
  readonly usual: number;
  readonly slow: number;
}

function time(rounds: number, step: (round: number) => unknown): Times {
  const times = Array.from({ length: rounds }, (_, round) => {
    const start = performance.now();
    step(round);
    return 1000 * (performance.now() - start);
  }).toSorted((one, other) => one - other);
  const at = (share: number): number => times[Math.floor(times.length * share)] ?? NaN;
  return { usual: at(0.5), slow: at(0.99) };
}

/** V8's heap grows with use, not only with facts. Warm it up before measuring memory. */
function warmUp(): void {
  const index = new SearchIndex();
  for (let round = 0; round < 20_000; round += 1) index.add({ ...aFact(round % 1000), id: round % 1000 });
  for (let round = 0; round < 500; round += 1) index.search({ text: `${COMMON} ${word()}`, limit: 20 });
}

warmUp();
const before = resident();
const index = new SearchIndex();
for (let number = 0; number < FACTS; number += 1) index.add(aFact(number));
const bytes = (resident() - before) / FACTS;

const ask = (text: string): unknown => index.search({ text, limit: 20 });
using text = fullText();
for (let number = 0; number < FACTS; number += 1) text.add(aFact(number));
const bare = (words: string): unknown => text.search(words, 20);
const rare = (round: number): string => own((round * 7919) % FACTS);
const rareWord = time(2000, (round) => ask(rare(round)));
const rareFloor = time(2000, (round) => bare(rare(round)));
const common = time(500, () => ask(COMMON));
const commonFloor = time(100, () => bare(COMMON));
const question = (): string => `why is the ${word()} of ${word()} near ${word()} in the ${COMMON}?`;
const asked = time(500, () => ask(question()));
const askedFloor = time(200, () => bare(question().replaceAll('?', '')));
const more = {
  'a rare and a common word': time(500, (round) => ask(`${COMMON} ${rare(round)}`)),
  'a misspelt word': time(500, () => ask(`${word()}h`)),
  'a prefix of a word': time(500, () => ask(word().slice(0, 5))),
  'a word in no fact': time(500, (round) => ask(`xxyyj${own(round)}`)),
  'a blank query for the newest facts': time(200, () => ask('')),
  'a text of a thousand characters': time(50, () => ask(Array.from({ length: 160 }, word).join(' ').slice(0, 1000))),
};
const replaced = time(5000, (round) => index.add({ ...aFact(round), id: `notes/${round}` }));
const removed = time(5000, (round) => index.remove(`notes/${round}`));

const FTS5 = "times SQLite's full-text index";
const beside = (what: string, { usual, slow }: Times, { usual: bareUsual }: Times, atMost: number): Result => ({
  what,
  figure: usual / bareUsual,
  unit: FTS5,
  bar: { atMost },
  from: `${usual.toFixed(0)} and ${bareUsual.toFixed(0)} µs, p99 ${slow.toFixed(0)} µs`,
});
const results: Result[] = [
  ...indexBuild(),
  {
    what: 'resident memory',
    figure: bytes,
    unit: 'bytes a fact',
    bar: { atMost: 700 },
    from: 'growth of the process',
  },
  beside('a rare word', rareWord, rareFloor, 2),
  beside('a word in every tenth fact', common, commonFloor, 0.05),
  beside('a question of nine words', asked, askedFloor, 0.05),
];
const met = report(globalThis.gc ? results : results.filter(({ what }) => what !== 'resident memory'));
for (const [what, { usual, slow }] of Object.entries({ ...more, 'replacing a fact': replaced, 'removing a fact': removed })) {
  console.log(`        ${what}: ${usual.toFixed(0)} µs, p99 ${slow.toFixed(0)} µs`);
}
process.exitCode = met ? 0 : 1;
