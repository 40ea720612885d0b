import type { SearchableFact } from '../../../../src/core/search/fact-index.ts';
import { type Judged, readLines } from '../relevance/suite.ts';

/** A question that shares no content word with the fact that answers it. */
interface Paraphrase extends Judged {
  /** The key of a fact on the same matter that does not answer the question. */
  readonly neighbour?: string;
}

interface MaybeHeld {
  /** Not looked at while search and its constants are tuned. */
  readonly held?: true;
}

/** Two facts on one matter under different keys. Both answer the question, and only the newer is still true. */
interface Superseded extends MaybeHeld {
  readonly question: string;
  readonly older: SearchableFact;
  readonly newer: SearchableFact;
}

interface Question extends MaybeHeld {
  readonly text: string;
  /** The key of the fact that answers the question. Undefined if no fact of the corpus does. */
  readonly answer?: string;
}

/** A fact that is not in the corpus yet. Without `repeats` and `contradicts` it speaks of a new matter. */
interface Write extends MaybeHeld {
  readonly fact: SearchableFact;
  /** Keys of facts in the corpus that say the same in other words. */
  readonly repeats?: readonly string[];
  /** Keys of facts in the corpus that cannot be true beside this one. */
  readonly contradicts?: readonly string[];
}

type Undated<Row> = {
  readonly [Field in keyof Row]: Row[Field] extends SearchableFact ? Omit<SearchableFact, 'updatedAt'> : Row[Field];
};

const file = (name: string): URL => new URL(name, import.meta.url);

const START = 1_700_000_000_000;
const STEP = 24 * 60 * 60 * 1000;

let written = 0;
/** The facts were written a day apart, in the order of the calls. */
const dated = (fact: Omit<SearchableFact, 'updatedAt'>): SearchableFact => ({ ...fact, updatedAt: START + STEP * written++ });

const undatedPairs = readLines<Undated<Superseded>>(file('superseded.jsonl'));
const facts = readLines<Omit<SearchableFact, 'updatedAt'>>(file('facts.jsonl')).map(dated);
const older = undatedPairs.map((pair) => dated(pair.older));

/** The facts of one person's life and work, including the older fact of each superseded pair. */
export const corpus: readonly SearchableFact[] = [...facts, ...older];

export const superseded: readonly Superseded[] = undatedPairs.map((pair, index) => ({
  ...pair,
  // Both lists come from the same file, so the fact exists.
  older: older[index] as SearchableFact,
  newer: dated(pair.newer),
}));

export const paraphrases: readonly Paraphrase[] = readLines<Paraphrase>(file('paraphrases.jsonl'));

/** Paraphrases in German, Chinese and Japanese, and questions in these languages that share words with their fact. */
export const languages: readonly Judged[] = readLines<Judged>(file('languages.jsonl'));

/** Questions with and without an answer in the corpus. */
export const questions: readonly Question[] = readLines<Question>(file('questions.jsonl'));

export const writes: readonly Write[] = readLines<Undated<Write>>(file('writes.jsonl')).map((write) => ({
  ...write,
  fact: dated(write.fact),
}));
