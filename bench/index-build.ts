import type { SearchableFact } from '../src/core/search/fact-index.ts';
import { SearchIndex } from '../src/core/search/search-index.ts';
import { fullText } from './full-text.ts';
import { median, report, type Result } from './report.ts';
import { made } from './vocabulary.ts';

export const FACTS = 100_000;
const EVERY = 10;
export const COMMON = 'cellar';

export const word = made(20_000);

/** A word that only one fact contains: its shuffled number, spelled in letters. */
export const own = (index: number): string =>
  (Math.imul(index + 1, 0x9e3779b1) >>> 0).toString(26).replaceAll(/\d/g, (digit) => 'zyxwvutsrq'.charAt(Number(digit)));

/** A fact of 200 bytes with a unique word and number. Every tenth fact contains the common word. */
export function aFact(index: number): SearchableFact & { readonly id: string } {
  let value = `${index % EVERY === 0 ? `${COMMON} ` : ''}${own(index)}`;
  while (value.length < 200) value += ` ${word()}`;
  const key = `notes/${word()}/${index}`;
  return { id: key, key, category: 'user_facts', tags: [word()], value: value.slice(0, 200), updatedAt: index };
}

/** Number of builds. A step that is long in every build is long because of the index, and not because of other load. */
const BUILDS = 5;

interface Build {
  readonly milliseconds: number;
  readonly steps: Float64Array;
}

/** Adds all facts one by one, and measures each step. */
function build(add: (fact: ReturnType<typeof aFact>) => void): Build {
  const steps = new Float64Array(FACTS);
  let milliseconds = 0;
  for (let number = 0; number < FACTS; number += 1) {
    const fact = aFact(number);
    const start = performance.now();
    add(fact);
    const took = performance.now() - start;
    steps[number] = took;
    milliseconds += took;
  }
  return { milliseconds, steps };
}

/** The longest step: of the shortest times of each step in all builds, the highest. */
function longestStep(builds: readonly Build[]): number {
  let longest = 0;
  for (let number = 0; number < FACTS; number += 1)
    longest = Math.max(longest, Math.min(...builds.map(({ steps }) => steps[number] ?? 0)));
  return longest;
}

/**
 * Measures how the search index is built: the whole time beside SQLite's full-text index, and the longest step beside a Map. The
 * processor time of a thread cannot measure a step, because some systems count it in units of 4 ms.
 */
export function indexBuild(): Result[] {
  const builds = { ours: [] as Build[], map: [] as Build[], text: [] as Build[] };
  let bytes = 0;
  for (let round = 0; round < BUILDS; round += 1) {
    const index = new SearchIndex();
    const map = new Map<string, object>();
    builds.ours.push(build((fact) => index.add(fact)));
    builds.map.push(build((fact) => map.set(fact.key, fact)));
    ({ bytes } = index);
  }
  using text = fullText();
  builds.text.push(build((fact) => text.add(fact)));
  const seconds = (some: readonly Build[]): number => median(some.map(({ milliseconds }) => milliseconds)) / 1000;
  const [ours, floor] = [seconds(builds.ours), seconds(builds.text)];
  const [longest, mapLongest] = [longestStep(builds.ours), longestStep(builds.map)];
  return [
    {
      what: `${FACTS} facts searchable`,
      figure: ours / floor,
      unit: "times SQLite's full-text index",
      bar: { atMost: 3 },
      from: `${ours.toFixed(1)} and ${floor.toFixed(1)} s, median of ${BUILDS} builds`,
    },
    {
      what: 'longest step of building the search index',
      figure: longest / mapLongest,
      unit: 'times the longest step of a Map with the same keys',
      bar: { atMost: 0.15 },
      from: `${longest.toFixed(2)} and ${mapLongest.toFixed(2)} ms`,
    },
    {
      what: 'size of the search index',
      figure: bytes / FACTS,
      unit: 'bytes a fact',
      bar: { atMost: 641 },
      from: 'the arrays of the index',
    },
  ];
}

if (import.meta.main) process.exitCode = report(indexBuild()) ? 0 : 1;
