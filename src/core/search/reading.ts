import type { Manner } from './alternatives.ts';
import { beforeCharacter } from './characters.ts';
import type { Searchable } from './fact-index.ts';
import { plain } from './plain.ts';
import { phraseOf, type Question } from './question.ts';
import { type Word, wordsOf } from './words.ts';

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
  readonly manner: Manner;
  readonly fields: Set<Field>;
}

/** What a closer look at one fact told. */
export interface Reading {
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
  readonly manner: Manner;
}

/** Reads facts for one question. After so many characters it reads less of each. */
export class Reader {
  readonly #question: Question;
  readonly #meanings = new Map<string, Meaning[]>();
  /** What can stand for the question's words, the rarest first. */
  readonly #sought: readonly string[];
  /** Words of which places are told: not "the", unless there is nothing else. */
  readonly #telling: ReadonlySet<number>;
  #left: number;

  constructor(question: Question, characters: number) {
    this.#question = question;
    this.#left = characters;
    for (const [word, { alternatives }] of question.words.entries()) {
      for (const { term, weight, manner } of alternatives) {
        const known = this.#meanings.get(term);
        if (known) known.push({ word, weight, manner });
        else this.#meanings.set(term, [{ word, weight, manner }]);
      }
    }
    const rarestFirst = question.words.toSorted((one, other) => other.worth - one.worth);
    this.#sought = rarestFirst.flatMap(({ alternatives }) => alternatives.slice(0, 2).map(({ term }) => term)).slice(0, 16);
    const telling = question.words.flatMap(({ small }, word) => (small ? [] : [word]));
    this.#telling = new Set(telling.length > 0 ? telling : question.words.keys());
  }

  read({ key, category, tags, value }: Searchable): Reading {
    const page = new Page(this.#question, this.#meanings, this.#telling);
    const { text, start } = this.#partOf(value);
    page.look('value', text, start);
    page.look('key', key);
    for (const tag of tags) page.look('tags', tag);
    page.look('category', category);
    return page.reading();
  }

  #partOf(value: string): { text: string; start: number } {
    const most = this.#left > 0 ? WINDOW : NARROW;
    if (value.length <= most) {
      this.#left -= value.length;
      return { text: value, start: 0 };
    }
    const start = this.#left > 0 ? windowStart(value, this.#sought) : 0;
    this.#left -= most + value.length / CHEAPER;
    return { text: value.slice(start, start + most), start };
  }
}

/** One fact, as far as it has been read. */
class Page {
  readonly #question: Question;
  readonly #meanings: ReadonlyMap<string, readonly Meaning[]>;
  readonly #telling: ReadonlySet<number>;
  readonly #findings = new Map<number, Finding>();
  readonly #spans: Span[] = [];
  /** How near a word stands behind the one before it in the question: 1 when they are neighbours. */
  readonly #near: Float64Array;
  #phrase: Field | undefined;

  constructor(question: Question, meanings: ReadonlyMap<string, readonly Meaning[]>, telling: ReadonlySet<number>) {
    this.#question = question;
    this.#meanings = meanings;
    this.#telling = telling;
    this.#near = new Float64Array(question.words.length);
  }

  look(field: Field, text: string, offset = 0): void {
    const words = wordsOf(text);
    const { phrase } = this.#question;
    if (this.#phrase === undefined && phrase !== ' ' && phraseOf(words).includes(phrase)) this.#phrase = field;
    const seen = new Map<number, number>();
    for (const found of words) {
      for (const meaning of this.#meanings.get(found.term) ?? []) {
        this.#note(found.term, meaning, field);
        if (field === 'value') this.#mark(found, meaning.word, offset);
        const apart = found.position - (seen.get(meaning.word - 1) ?? -Infinity);
        const near = apart > 0 && apart <= APART ? meaning.weight / apart : 0;
        this.#near[meaning.word] = Math.max(this.#near[meaning.word] ?? 0, near);
        seen.set(meaning.word, found.position);
      }
    }
  }

  reading(): Reading {
    return { phrase: this.#phrase, nearness: this.#nearness(), findings: this.#findings, spans: this.#spans };
  }

  #note(term: string, { word, weight, manner }: Meaning, field: Field): void {
    const known = this.#findings.get(word);
    if (known === undefined || known.weight < weight)
      this.#findings.set(word, { term, weight, manner, fields: new Set([field]) });
    else if (known.term === term) known.fields.add(field);
  }

  #mark({ start, end, parts }: Word, word: number, offset: number): void {
    if (parts > 0 || this.#spans.length === MOST_SPANS || !this.#telling.has(word)) return;
    this.#spans.push({ start: start + offset, end: end + offset, word });
  }

  /** Weighed by what the two words are worth; a question of one word has no neighbours. */
  #nearness(): number {
    const { words } = this.#question;
    let sum = 0;
    let most = 0;
    for (let word = 1; word < words.length; word += 1) {
      const worth = Math.min(words[word]?.worth ?? 0, words[word - 1]?.worth ?? 0);
      most += worth;
      sum += worth * (this.#near[word] ?? 0);
    }
    return most === 0 ? 0 : sum / most;
  }
}

function windowStart(value: string, sought: readonly string[]): number {
  const folded = value.length > FOLDED ? value.toLowerCase() : plain(value);
  // Where folding changed the length, places in it mean nothing in the value.
  const text = folded.length === value.length ? folded : value.toLowerCase();
  for (const term of sought) {
    const at = text.indexOf(term);
    if (at >= 0) return beforeCharacter(value, Math.max(0, Math.min(at - WINDOW / 4, value.length - WINDOW)));
  }
  return 0;
}
