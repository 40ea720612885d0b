import { explain } from './explanation.ts';
import type { FactIndex, Id, Searchable } from './fact-index.ts';
import { plain } from './plain.ts';
import { type Question, understand } from './question.ts';
import type { Candidate, Ranking, Wanted } from './ranking.ts';
import { Reader, type Reading, type Span } from './reading.ts';

export interface Hit {
  readonly id: Id;
  /** 0 to 1, comparable across questions. */
  readonly score: number;
  /** Which words were found where. */
  readonly why: string;
  /** Where they stand in the value. */
  readonly spans: readonly Span[];
  readonly fact: Searchable;
}

/** Scores of what holds the whole question as it was asked begin where those of everything else end. */
const PHRASE = 0.75;
const NEAR_COUNTS = 0.25;
/** A fact rarely has all the words of a question; one with half of them fits well already. */
const STRETCH = 0.6;
const NEWEST = 0.5;

/** How many candidates are read, and among how many a phrase is looked for. */
const READ = 64;
const PHRASE_LOOKED_FOR = 512;

/** What one text may cost. Several of one search share what a single one may, but each may find something. */
interface Effort {
  readonly words: number;
  readonly postings: number;
  /** Read for phrases, and once more for everything else. */
  readonly characters: number;
}

const effortOf = (texts: number): Effort => ({
  words: Math.max(8, Math.floor(128 / texts)),
  postings: Math.max(4000, Math.floor(100_000 / texts)),
  characters: Math.floor(200_000 / texts),
});

/** One search: what it may find and how hard it may try. Facts are opened once, however many of its texts find them. */
export class Inquiry {
  readonly #facts: FactIndex;
  readonly #ranking: Ranking;
  readonly #wanted: Wanted;
  readonly #limit: number;
  readonly #effort: Effort;
  readonly #opened = new Map<number, Searchable>();

  constructor(facts: FactIndex, ranking: Ranking, wanted: Wanted, limit: number, texts: number) {
    this.#facts = facts;
    this.#ranking = ranking;
    this.#wanted = wanted;
    this.#limit = limit;
    this.#effort = effortOf(texts);
  }

  newest(): Hit[] {
    return this.#ranking.newest(this.#wanted, this.#limit).map((number) => ({
      id: this.#facts.idOf(number),
      score: NEWEST,
      why: 'newest',
      spans: [],
      fact: this.#open(number),
    }));
  }

  ask(text: string): Hit[] {
    const question = understand(text, this.#facts, this.#effort.words);
    if (question.words.length === 0) return [];
    const reader = new Reader(question, this.#effort.characters);
    const hits = this.#worthReading(question).map(({ number, share }) => {
      const fact = this.#open(number);
      const reading = reader.read(fact);
      const id = this.#facts.idOf(number);
      return { id, score: score(share, reading), why: explain(question, reading), spans: reading.spans, fact };
    });
    return hits.toSorted(best).slice(0, this.#limit);
  }

  /** Candidates that may be among the hits once neighbours of words are seen, and any that hold the question as it was asked. */
  #worthReading(question: Question): Candidate[] {
    const most = Math.max(READ, this.#limit);
    const phrase = question.words.length > 1;
    const candidates = this.#ranking.best(
      question,
      this.#wanted,
      phrase ? Math.max(most, PHRASE_LOOKED_FOR) : most,
      this.#effort.postings,
    );
    const least = (1 - NEAR_COUNTS) * (candidates[this.#limit - 1]?.share ?? 0);
    const likely = candidates.slice(0, most).filter(({ share }) => share >= least);
    const rest = candidates.slice(likely.length).filter(({ words }) => words === question.words.length);
    return [...likely, ...this.#holding(question.literal, rest)];
  }

  #holding(literal: string, candidates: readonly Candidate[]): Candidate[] {
    let left = this.#effort.characters;
    const holding = candidates.filter(({ number }) => {
      if (left <= 0) return false;
      const { key, value } = this.#open(number);
      left -= value.length;
      return left >= 0 && (plain(value).includes(literal) || plain(key).includes(literal));
    });
    return holding.slice(0, this.#limit);
  }

  #open(number: number): Searchable {
    const opened = this.#opened.get(number) ?? this.#facts.fact(number);
    this.#opened.set(number, opened);
    return opened;
  }
}

const score = (share: number, { phrase, nearness }: Reading): number =>
  phrase === undefined ? PHRASE * (share * (1 - NEAR_COUNTS + NEAR_COUNTS * nearness)) ** STRETCH : PHRASE + (1 - PHRASE) * share;

const best = (one: Hit, other: Hit): number =>
  other.score - one.score || other.fact.updatedAt - one.fact.updatedAt || (one.fact.key < other.fact.key ? -1 : 1);

const BEST_OF = 0.8;

/** One list of the hits of several texts: a fact is as good as where it fits best, and better the more texts found it. */
export function fuse(found: readonly Hit[][]): Hit[] {
  const byId = new Map<Id, Hit[]>();
  for (const hit of found.flat()) {
    const known = byId.get(hit.id);
    if (known) known.push(hit);
    else byId.set(hit.id, [hit]);
  }
  const fused = [...byId.values()].flatMap((hits) => {
    const [first] = hits.toSorted(best);
    const mean = hits.reduce((sum, hit) => sum + hit.score, 0) / found.length;
    return first ? [{ ...first, score: BEST_OF * first.score + (1 - BEST_OF) * mean }] : [];
  });
  return fused.toSorted(best);
}
