import type { Alternative } from './alternatives.ts';
import { explainHit } from './explanation.ts';
import type { FactIndex, FactId, IndexedFact } from './fact-index.ts';
import { FactReader, type FactMatch, type Span } from './fact-reader.ts';
import { foldText } from './fold-text.ts';
import { type ParsedQuery, parseQuery } from './parsed-query.ts';
import type { RankedFact, Ranking, FactPredicate } from './ranking.ts';

export interface Hit {
  readonly id: FactId;
  /** 0 to 1, comparable across questions. */
  readonly score: number;
  /** Which words were found where. */
  readonly why: string;
  /** Where they stand in the value. */
  readonly spans: readonly Span[];
  readonly fact: IndexedFact['fact'];
}

type Scored = Pick<Hit, 'score' | 'fact'>;

/** A fact that was read. */
interface Found extends IndexedFact {
  readonly score: number;
  readonly reading: FactMatch;
}

/** Scores of what holds the whole question as it was asked begin where those of everything else end. */
const PHRASE = 0.75;
const NEAR_COUNTS = 0.1;
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

interface Asked {
  readonly facts: FactIndex;
  readonly ranking: Ranking;
  readonly wanted: FactPredicate;
  /** More is asked of a fact than to be alive. */
  readonly narrowed: boolean;
  readonly limit: number;
  readonly texts: number;
}

/** One search: what it may find and how hard it may try. Facts are opened once, however many of its texts find them. */
export class SearchRun {
  readonly #facts: FactIndex;
  readonly #ranking: Ranking;
  readonly #wanted: FactPredicate;
  readonly #narrowed: boolean;
  readonly #limit: number;
  readonly #effort: Effort;
  readonly #opened = new Map<number, IndexedFact>();

  constructor({ facts, ranking, wanted, narrowed, limit, texts }: Asked) {
    this.#facts = facts;
    this.#ranking = ranking;
    this.#wanted = wanted;
    this.#narrowed = narrowed;
    this.#limit = limit;
    this.#effort = effortOf(texts);
  }

  newest(): Hit[] {
    return this.#ranking
      .newest(this.#wanted, this.#limit)
      .map((number) => ({ ...this.#open(number), score: NEWEST, why: 'newest', spans: [] }));
  }

  search(text: string): Hit[] {
    const question = parseQuery(text, this.#facts, this.#effort.words);
    if (question.words.length === 0) return [];
    const reader = new FactReader(question, this.#effort.characters);
    const found: Found[] = [];
    for (const { number, share } of this.#worthReading(question)) {
      if (this.#isBeaten(number, share, found)) continue;
      const { id, fact } = this.#open(number);
      const reading = reader.read(fact);
      found.push({ id, fact, reading, score: score(share, reading) });
      settle(found);
      if (found.length > this.#limit) found.pop();
    }
    return found.map(({ id, fact, reading, score: scored }) => ({
      id,
      score: scored,
      why: explainHit(question, reading),
      spans: reading.spans,
      fact,
    }));
  }

  /** Whatever reading it would tell, it would not be among the hits: even one that holds the whole question is no better. */
  #isBeaten(number: number, share: number, found: readonly Found[]): boolean {
    const last = found[this.#limit - 1];
    if (last === undefined) return false;
    const most = PHRASE + (1 - PHRASE) * share;
    return most < last.score || (most === last.score && this.#facts.updatedAt(number) < last.fact.updatedAt);
  }

  /** Candidates that may be among the hits once neighbours of words are seen, and any that hold the question as it was asked. */
  #worthReading(question: ParsedQuery): RankedFact[] {
    const most = Math.max(READ, this.#limit);
    if (question.words.length === 1) return this.#aboutOneWord(question, most);
    const sought = Math.max(most, PHRASE_LOOKED_FOR);
    const candidates = this.#ranking.best(question, this.#wanted, sought, this.#effort.postings);
    const least = (1 - NEAR_COUNTS) * (candidates[this.#limit - 1]?.share ?? 0);
    const likely = candidates.slice(0, most).filter(({ share }) => share >= least);
    const rest = candidates.slice(likely.length).filter(({ words }) => words === question.words.length);
    return [...likely, ...this.#holding(foldText(question.text), rest)];
  }

  /** A single word has no neighbours; but the many facts that are about its forms must not hide those that have it itself. */
  #aboutOneWord(question: ParsedQuery, most: number): RankedFact[] {
    const alternatives = question.words[0]?.alternatives ?? [];
    const [surest, ...others] = alternatives;
    if (!surest) return [];
    const best = (some: readonly Alternative[]): RankedFact[][] =>
      this.#ranking.bestOfEach(some, this.#wanted, most, this.#effort.postings);
    // Of a filter a fact is asked once, and not for each form that it has.
    const apart = others.length === 0 || !this.#narrowed;
    const lists = apart ? best(alternatives) : [];
    const candidates = apart
      ? this.#bestOf(lists).slice(0, most)
      : this.#ranking.best(question, this.#wanted, most, this.#effort.postings);
    if (candidates.length < most || others.length === 0 || surest.kind !== 'same') return candidates;
    const known = new Set(candidates.map(({ number }) => number));
    const [itself = []] = apart ? lists : best([surest]);
    return [...candidates, ...itself.filter(({ number }) => !known.has(number))];
  }

  /** Each fact once, as good as where it is best; the best first, and among equals the newest. */
  #bestOf(lists: readonly RankedFact[][]): RankedFact[] {
    const [only = [], ...more] = lists;
    if (more.length === 0) return only;
    const byNumber = new Map<number, RankedFact>();
    for (const candidate of lists.flat()) {
      const known = byNumber.get(candidate.number);
      if (!known || candidate.share > known.share) byNumber.set(candidate.number, candidate);
    }
    const moment = ({ number }: RankedFact): number => this.#facts.updatedAt(number);
    return [...byNumber.values()].toSorted(
      (one, other) => other.share - one.share || moment(other) - moment(one) || other.number - one.number,
    );
  }

  #holding(literal: string, candidates: readonly RankedFact[]): RankedFact[] {
    let left = this.#effort.characters;
    const holding = candidates.filter(({ number }) => {
      if (left <= 0) return false;
      const { key, value } = this.#open(number).fact;
      left -= value.length;
      return left >= 0 && (foldText(value).includes(literal) || foldText(key).includes(literal));
    });
    return holding.slice(0, this.#limit);
  }

  #open(number: number): IndexedFact {
    const known = this.#opened.get(number);
    if (known) return known;
    const told = this.#facts.factAt(number);
    this.#opened.set(number, told);
    return told;
  }
}

const score = (share: number, { phrase, nearness }: FactMatch): number =>
  phrase === undefined ? PHRASE * (share * (1 - NEAR_COUNTS + NEAR_COUNTS * nearness)) ** STRETCH : PHRASE + (1 - PHRASE) * share;

/** The last one goes where it belongs; as it comes from the ranking it is there already, mostly. */
function settle(found: Found[]): void {
  for (let at = found.length - 1; at > 0; at -= 1) {
    const [above, below] = [found[at - 1], found[at]];
    if (!above || !below || best(above, below) <= 0) return;
    found[at - 1] = below;
    found[at] = above;
  }
}

const best = (one: Scored, other: Scored): number =>
  other.score - one.score || other.fact.updatedAt - one.fact.updatedAt || (one.fact.key < other.fact.key ? -1 : 1);

const BEST_OF = 0.8;

/** One list of the hits of several texts: a fact is as good as where it fits best, and better the more texts found it. */
export function fuseHits(found: readonly Hit[][]): Hit[] {
  const byId = new Map<FactId, Hit[]>();
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
