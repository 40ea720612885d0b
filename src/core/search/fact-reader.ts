import type { MatchKind } from './alternatives.ts';
import { characterBoundary } from './characters.ts';
import { isExplicitCategory, type SearchableFact } from './fact-index.ts';
import { foldText } from './fold-text.ts';
import type { ParsedQuery } from './parsed-query.ts';
import { TermFilter, type Word, wordsOf } from './words.ts';

type Field = 'key' | 'tags' | 'category' | 'value';

/** A place in the value where a word of the question stands. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** Which word of the question. */
  readonly word: number;
}

/** How a word of the question was found. */
interface Finding {
  readonly term: string;
  readonly weight: number;
  readonly manner: MatchKind;
  readonly fields: Field[];
}

/** What a closer look at one fact told. */
export interface FactMatch {
  /** Where the whole question stands as it was asked. */
  readonly phrase: Field | undefined;
  /** How many of the neighbours in the question are neighbours in the fact, 0 to 1. */
  readonly nearness: number;
  readonly findings: ReadonlyMap<number, Finding>;
  readonly spans: readonly Span[];
}

/** No more of a value is read; of a longer one, the part with the rarest word. */
const WINDOW = 2000;
/** When reading has cost enough. */
const NARROW = 250;
/** Looking for a word costs so much less than reading. */
const CHEAPER = 20;
/** Beyond this, folding a value costs more than a place that is exact is worth. */
const FOLDED = 8000;
const MOST_SPANS = 64;
/** Neighbours may have so many words between them. */
const APART = 3;

interface Meaning {
  readonly word: number;
  readonly weight: number;
  readonly manner: MatchKind;
}

/** Reads facts for one question. After so many characters it reads less of each. */
export class FactReader {
  readonly #question: ParsedQuery;
  readonly #meanings = new Map<string, Meaning[]>();
  readonly #sieve = new TermFilter();
  /** Places of "the" are not told, unless there is nothing else. */
  readonly #nothingTells: boolean;
  #left: number;

  constructor(question: ParsedQuery, characters: number) {
    this.#question = question;
    this.#left = characters;
    for (const [word, { alternatives }] of question.words.entries()) {
      for (const { term, weight, kind: manner } of alternatives) {
        this.#sieve.add(term);
        const known = this.#meanings.get(term);
        if (known) known.push({ word, weight, manner });
        else this.#meanings.set(term, [{ word, weight, manner }]);
      }
    }
    // Of a long question not every word has a meaning, but all of them make the phrase.
    for (const { term } of question.phrase) this.#sieve.add(term);
    this.#nothingTells = question.words.every(({ small }) => small);
  }

  read({ key, category, tags, value }: SearchableFact): FactMatch {
    const page = new Page(this.#question, this.#meanings, this.#sieve, this.#nothingTells);
    const { text, start } = this.#partOf(value);
    page.look('value', text, start);
    page.look('key', key);
    for (const tag of tags) page.look('tags', tag);
    if (isExplicitCategory(category)) page.look('category', category);
    return page.reading();
  }

  #partOf(value: string): { text: string; start: number } {
    const most = this.#left > 0 ? WINDOW : NARROW;
    if (value.length <= most) {
      this.#left -= value.length;
      return { text: value, start: 0 };
    }
    const start = this.#left > 0 ? windowStart(value, soughtIn(this.#question)) : 0;
    this.#left -= most + value.length / CHEAPER;
    return { text: value.slice(start, start + most), start };
  }
}

/** One fact, as far as it has been read. */
class Page {
  readonly #question: ParsedQuery;
  readonly #meanings: ReadonlyMap<string, readonly Meaning[]>;
  readonly #sieve: TermFilter;
  readonly #nothingTells: boolean;
  readonly #findings = new Map<number, Finding>();
  readonly #spans: Span[] = [];
  /** How near a word stands behind the one before it in the question: 1 when they are neighbours. */
  readonly #near: number[] = [];
  /** Where in the field being looked at each word stood last. */
  #seen: number[] = [];
  #phrase: Field | undefined;

  constructor(
    question: ParsedQuery,
    meanings: ReadonlyMap<string, readonly Meaning[]>,
    sieve: TermFilter,
    nothingTells: boolean,
  ) {
    this.#question = question;
    this.#meanings = meanings;
    this.#sieve = sieve;
    this.#nothingTells = nothingTells;
  }

  look(field: Field, text: string, offset = 0): void {
    const words = wordsOf(text, this.#sieve);
    const { phrase } = this.#question;
    if (this.#phrase === undefined && holds(words, phrase)) this.#phrase = field;
    this.#seen = [];
    for (const found of words) {
      const meanings = this.#meanings.get(found.term);
      if (meanings === undefined) continue;
      for (const meaning of meanings) {
        this.#note(found.term, meaning, field);
        if (field === 'value') this.#mark(found, meaning.word, offset);
        const apart = found.position - (this.#seen[meaning.word - 1] ?? -Infinity);
        const near = apart > 0 && apart <= APART ? meaning.weight / apart : 0;
        this.#near[meaning.word] = Math.max(this.#near[meaning.word] ?? 0, near);
        this.#seen[meaning.word] = found.position;
      }
    }
  }

  reading(): FactMatch {
    return { phrase: this.#phrase, nearness: this.#nearness(), findings: this.#findings, spans: this.#spans };
  }

  #note(term: string, { word, weight, manner }: Meaning, field: Field): void {
    const known = this.#findings.get(word);
    if (known === undefined || known.weight < weight) this.#findings.set(word, { term, weight, manner, fields: [field] });
    else if (known.term === term && !known.fields.includes(field)) known.fields.push(field);
  }

  #mark({ start, end, parts }: Word, word: number, offset: number): void {
    if (parts > 0 || this.#spans.length === MOST_SPANS) return;
    if (!this.#nothingTells && this.#question.words[word]?.small === true) return;
    this.#spans.push({ start: start + offset, end: end + offset, word });
  }

  /** Weighed by what the two words are worth; a question of one word has no neighbours. */
  #nearness(): number {
    const { words } = this.#question;
    let sum = 0;
    let most = 0;
    for (let word = 1; word < words.length; word += 1) {
      const worth = Math.min(words[word]?.weight ?? 0, words[word - 1]?.weight ?? 0);
      most += worth;
      sum += worth * (this.#near[word] ?? 0);
    }
    return most === 0 ? 0 : sum / most;
  }
}

/** Whether the words of a phrase stand among these as they were asked; names as a whole, beside their parts, are left aside. */
function holds(words: readonly Word[], phrase: readonly Word[]): boolean {
  for (let at = 0; at < words.length; at += 1) if (follows(words, at, phrase)) return true;
  return false;
}

function follows(words: readonly Word[], from: number, phrase: readonly Word[]): boolean {
  if (words[from]?.term !== phrase[0]?.term) return false;
  const apart = (words[from]?.position ?? 0) - (phrase[0]?.position ?? 0);
  let next = 0;
  for (let at = from; at < words.length; at += 1) {
    const [word, asked] = [words[at], phrase[next]];
    if (asked === undefined) return true;
    if (word === undefined) continue;
    const isWhole = word.parts > 0;
    if (word.position === asked.position + apart && word.term === asked.term && isWhole === asked.parts > 0) next += 1;
    else if (!isWhole) return false;
  }
  return next === phrase.length;
}

/** What can stand for the question's words, the rarest first. */
function soughtIn({ words }: ParsedQuery): string[] {
  const rarestFirst = words.toSorted((one, other) => other.weight - one.weight);
  return rarestFirst.flatMap(({ alternatives }) => alternatives.slice(0, 2).map(({ term }) => term)).slice(0, 16);
}

function windowStart(value: string, sought: readonly string[]): number {
  const folded = value.length > FOLDED ? value.toLowerCase() : foldText(value);
  // Where folding changed the length, places in it mean nothing in the value.
  const text = folded.length === value.length ? folded : value.toLowerCase();
  for (const term of sought) {
    const at = text.indexOf(term);
    if (at >= 0) return characterBoundary(value, Math.max(0, Math.min(at - WINDOW / 4, value.length - WINDOW)));
  }
  return 0;
}
