import type { SearchableFact } from '../src/core/search/fact-index.ts';
import { baselines, ours } from '../test/core/search/relevance/engines.ts';
import { report, type Result } from './report.ts';
import { made, numbers } from './vocabulary.ts';

/**
 * Known-item search with damaged queries. Facts and queries are random words of an invented language, so nobody can tune to them.
 * Prints the mean reciprocal rank in hundredths: 100 if the wanted fact is always the first hit.
 */
const FACTS = 4000;
const QUESTIONS = 400;
const endings = ['', '', '', 's', 'ed', 'ing', 'er', 'en'];

const random = numbers(99);
const below = (most: number): number => Math.floor(random() * most);
const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item;
const word = made(6000, 5);

const sentence = (count: number): string => Array.from({ length: count }, () => word() + pick(endings)).join(' ');
const camel = (): string => `${word()}${word().replace(/^./, (first) => first.toUpperCase())}`;

const shapes: readonly (() => string)[] = [
  () => sentence(4 + below(8)),
  () => sentence(30 + below(90)),
  () => `${sentence(3)} ${camel()} ${word()}/${word()}_${word()}.ts ${sentence(2)}`,
  () => `${sentence(5)} v${below(9)}.${below(30)}.${below(9)} ${sentence(4)}`,
];

const facts: readonly SearchableFact[] = Array.from({ length: FACTS }, (_, index) => ({
  key: `${word()}/${word()}-${index}`,
  category: pick(['one', 'two', 'three']),
  tags: [word()],
  value: pick(shapes)(),
  updatedAt: index,
}));

const shuffled = (words: readonly string[]): string[] =>
  words
    .map((one) => ({ one, order: random() }))
    .toSorted((one, other) => one.order - other.order)
    .map(({ one }) => one);

/** Words of a value that are rare among the facts. */
const wordsOf = (value: string, count: number): string[] =>
  shuffled(value.split(/[ /.]/).filter((one) => one.length > 4)).slice(0, count);

const bend = (one: string): string => one.replace(/(?:s|ed|ing|er|en)$/, '') + pick(endings.slice(3));
function misspell(one: string): string {
  const at = 1 + below(one.length - 2);
  const ways = [
    one.slice(0, at) + one.slice(at + 1),
    one.slice(0, at) + one.charAt(at) + one.slice(at),
    one.slice(0, at) + one.charAt(at + 1) + one.charAt(at) + one.slice(at + 2),
    `${one.slice(0, at)}x${one.slice(at + 1)}`,
  ];
  return pick(ways);
}

const noises: Readonly<Record<string, (value: string) => string[]>> = {
  'words in another order': (value) => wordsOf(value, 3),
  'one word': (value) => wordsOf(value, 1),
  'half of the words foreign': (value) => shuffled([...wordsOf(value, 2), word(), word()]),
  'bent words': (value) => wordsOf(value, 3).map(bend),
  'misspelt words': (value) => wordsOf(value, 2).map(misspell),
  'beginnings of words': (value) => wordsOf(value, 3).map((one) => one.slice(0, Math.max(4, one.length - 3))),
  'a whole question': (value) => ['what', 'is', 'the', ...wordsOf(value, 4), 'of', 'my', word()],
  'a phrase, beside the same words elsewhere': (value) => value.split(' ').slice(1, 4),
};

const engines = Object.entries({ ours, ...baselines }).map(([name, over]) => ({ name, ask: over(facts) }));
console.log(''.padEnd(44), engines.map(({ name }) => name.padStart(15)).join(''));
/** The figures of the build before postings were skipped (commit 9f342bb), in the order of the noises. */
const EARLIER = [96.5, 37.9, 61.9, 73.7, 78.4, 81.5, 97.7, 100];
const results: Result[] = [];
const totals = new Float64Array(engines.length);
for (const [noise, spoil] of Object.entries(noises)) {
  const asked = Array.from({ length: QUESTIONS }, () => {
    const fact = pick(facts);
    return { key: fact.key, text: spoil(fact.value).join(' ') };
  });
  const cells = engines.map(({ ask }, index) => {
    const ranks = asked.map(({ key, text }) => ask(text, 10).indexOf(key) + 1);
    const mean = (100 * ranks.reduce((sum, rank) => sum + (rank === 0 ? 0 : 1 / rank), 0)) / ranks.length;
    totals[index] = (totals[index] ?? 0) + mean;
    if (index === 0) results.push(change(noise, mean, EARLIER[results.length] ?? NaN));
    return mean.toFixed(1).padStart(15);
  });
  console.log(noise.padEnd(44), cells.join(''));
}
console.log('all'.padEnd(44), [...totals].map((total) => (total / Object.keys(noises).length).toFixed(1).padStart(15)).join(''));

/** No kind of noise may be worse by more than half a point. */
function change(noise: string, now: number, earlier: number): Result {
  const from = `${now.toFixed(1)} now, ${earlier.toFixed(1)} then`;
  return { what: `${noise}, since commit 9f342bb`, figure: now - earlier, unit: 'points', bar: { atLeast: -0.5 }, from };
}

console.log();
process.exitCode = report(results) ? 0 : 1;
