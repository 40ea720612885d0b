import Database from 'better-sqlite3';
import type { SearchableFact } from '../src/core/search/fact-index.ts';
import { SearchIndex } from '../src/core/search/search-index.ts';
import { report, type Result } from './report.ts';
import { made } from './vocabulary.ts';

/**
 * Measures search over 100,000 facts of 200 bytes, each with a unique word and number. The floor is SQLite's full-text index over the
 * same facts in memory. Memory is measured only with --expose-gc.
 */
const FACTS = 100_000;
const EVERY = 10;
const COMMON = 'cellar';

const word = made(20_000);

/** A word that only one fact contains: its shuffled number, spelled in letters. */
const own = (index: number): string =>
  (Math.imul(index + 1, 0x9e3779b1) >>> 0).toString(26).replaceAll(/\d/g, (digit) => 'zyxwvutsrq'.charAt(Number(digit)));

function aFact(index: number): SearchableFact & { readonly id: string } {
  let value = `${index % EVERY === 0 ? `${COMMON} ` : ''}${own(index)}`;
  while (value.length < 200) value += ` ${word()}`;
  const key = `notes/${word()}/${index}`;
  return { id: key, key, category: 'user_facts', tags: [word()], value: value.slice(0, 200), updatedAt: index };
}

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

/** CPU time of this thread, so that other load on the machine is not counted. */
function busy(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function build(index: SearchIndex): { milliseconds: number; longest: number } {
  let [milliseconds, longest] = [0, 0];
  for (let number = 0; number < FACTS; number += 1) {
    const fact = aFact(number);
    const start = busy();
    index.add(fact);
    const took = busy() - start;
    milliseconds += took;
    longest = Math.max(longest, took);
  }
  return { milliseconds, longest };
}

function floor(): (words: string) => unknown {
  const db = new Database(':memory:');
  db.exec('CREATE VIRTUAL TABLE fact USING fts5(key, tags, value)');
  const insert = db.prepare('INSERT INTO fact VALUES (?, ?, ?)');
  db.transaction(() => {
    for (let number = 0; number < FACTS; number += 1) {
      const { key, tags, value } = aFact(number);
      insert.run(key, tags.join(' '), value);
    }
  })();
  const query = db.prepare('SELECT key, value FROM fact WHERE fact MATCH ? ORDER BY bm25(fact) LIMIT 20');
  return (words) => query.all(words.split(' ').join(' OR '));
}

warmUp();
const before = resident();
const index = new SearchIndex();
const { milliseconds, longest } = build(index);
const bytes = (resident() - before) / FACTS;

const ask = (text: string): unknown => index.search({ text, limit: 20 });
const bare = floor();
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

const from = ({ slow }: Times, { usual: bareUsual }: Times): string =>
  `p99 ${slow.toFixed(0)} µs, FTS5 ${bareUsual.toFixed(0)} µs`;
const results: Result[] = [
  {
    what: `${FACTS} facts searchable`,
    figure: milliseconds / 1000,
    unit: 's',
    bar: { atMost: 5 },
    from: `the longest step ${longest.toFixed(1)} ms`,
  },
  {
    what: 'longest step of building',
    figure: longest,
    unit: 'ms',
    bar: { atMost: 20 },
    from: 'a slice ends after the step that fills it',
  },
  {
    what: 'resident memory',
    figure: bytes,
    unit: 'bytes a fact',
    bar: { atMost: 700 },
    from: `${(index.bytes / FACTS).toFixed(0)} in its own arrays`,
  },
  { what: 'a rare word', figure: rareWord.usual, unit: 'µs', bar: { atMost: 100 }, from: from(rareWord, rareFloor) },
  {
    what: 'a word in every tenth fact',
    figure: common.usual,
    unit: 'µs',
    bar: { atMost: 1500 },
    from: from(common, commonFloor),
  },
  { what: 'a question of nine words', figure: asked.usual, unit: 'µs', bar: { atMost: 5000 }, from: from(asked, askedFloor) },
];
const met = report(globalThis.gc ? results : results.filter(({ unit }) => unit !== 'bytes a fact'));
for (const [what, { usual, slow }] of Object.entries({ ...more, 'replacing a fact': replaced, 'removing a fact': removed })) {
  console.log(`        ${what}: ${usual.toFixed(0)} µs, p99 ${slow.toFixed(0)} µs`);
}
process.exitCode = met ? 0 : 1;
