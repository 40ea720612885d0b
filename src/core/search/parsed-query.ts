import { type Alternative, alternativesOf, sameWord } from './alternatives.ts';
import { isUnspaced } from './characters.ts';
import type { FactIndex } from './fact-index.ts';
import { stopWords } from './stop-words.ts';
import { type Word, wordsOf } from './words.ts';

/** One word of a question. */
interface QueryWord {
  readonly term: string;
  /** How much it tells: the rarer, the more. */
  readonly weight: number;
  /** The surest first. */
  readonly alternatives: readonly Alternative[];
  /** Carries no meaning of its own, as "what" and "the". */
  readonly small: boolean;
}

export interface ParsedQuery {
  /** Each once, in the order they were asked. */
  readonly words: readonly QueryWord[];
  /** All of them where they stand in it, as often as they do; a name with its parts, not as a whole beside them. */
  readonly phrase: readonly Word[];
  /** From the first word to the last. */
  readonly text: string;
  /** What a fact would get that is about every word. */
  readonly ideal: number;
}

const SMALL_WORD = 0.05;
/** Pairs of kana are mostly endings and particles; short parts of names and versions are in many of them. */
const ENDING = 0.35;
const SHORT_PART = 0.45;
/** A word no fact knows: it lowers the score, because the question is not answered, but less than one that is. */
const UNKNOWN = 0.5;
const JOINED = 0.95;
/** A word that nobody wrote so is rarer than any that somebody did. */
const UNWRITTEN = 1.3;

const kana = /^[\u3040-\u309f\u30fc]+$/;

/** What a question asks of these facts; only its first words, so that the work has an end. */
export function parseQuery(text: string, facts: FactIndex, most: number): ParsedQuery {
  const all = wordsOf(text);
  const [only, ...others] = all;
  const phrase = all.filter((word) => word.parts === 0 || standsAlone(word, all));
  const words = only && others.length === 0 ? [weigh(only, [], false, facts)] : weighAll(all, phrase, facts, most);
  let maxScore = 0;
  for (const { weight: worth, alternatives } of words) maxScore += worth * (alternatives.length > 0 ? 1 : UNKNOWN);
  return { words, phrase, text: text.slice(only?.start, all.at(-1)?.end), ideal: maxScore };
}

/** A whole without parts, as a-b is, stands for itself. */
const standsAlone = (whole: Word, all: readonly Word[]): boolean => !all.some((word) => word.parts === 0 && covers(whole, word));

function weighAll(all: readonly Word[], phrase: readonly Word[], facts: FactIndex, most: number): QueryWord[] {
  const asked = new Map<string, Word>();
  for (const word of phrase) if (!asked.has(word.term)) asked.set(word.term, word);
  return chosen([...asked.values()], most).map((word) => {
    const names = all.filter((whole) => whole.parts > 0 && whole !== word && covers(whole, word));
    return weigh(word, [...names.map(({ term }) => term), ...neighbours(word, phrase)], names.length > 0, facts);
  });
}

const covers = (whole: Word, { position }: Word): boolean =>
  position >= whole.position && position < whole.position + whole.parts;

function chosen(words: readonly Word[], most: number): readonly Word[] {
  if (words.length <= most) return words;
  const telling = words.filter(({ term }) => !stopWords.has(term));
  return telling.slice(0, most);
}

/** The word written together with the one before or behind it: data base, database. */
function neighbours(word: Word, sequence: readonly Word[]): string[] {
  if (sequence.length < 2 || isUnspaced(word.term) || stopWords.has(word.term)) return [];
  const at = sequence.indexOf(word);
  const [before, after] = [sequence[at - 1], sequence[at + 1]];
  const usable = (other: Word | undefined): other is Word =>
    other !== undefined && !isUnspaced(other.term) && !stopWords.has(other.term);
  return [...(usable(before) ? [before.term + word.term] : []), ...(usable(after) ? [word.term + after.term] : [])];
}

function weigh({ term }: Word, joined: readonly string[], part: boolean, facts: FactIndex): QueryWord {
  const { vocabulary } = facts;
  const isStopWord = stopWords.has(term);
  const alternatives = isStopWord ? sameWord(term, vocabulary) : alternativesOf(term, vocabulary);
  for (const whole of joined) {
    const id = vocabulary.find(whole);
    if (id === undefined) continue;
    const known = alternatives.findIndex((alternative) => alternative.id === id);
    if (known >= 0) alternatives.splice(known, 1);
    alternatives.push({ id, term: whole, weight: JOINED, kind: 'joined' });
  }
  alternatives.sort((one, other) => other.weight - one.weight);
  const importance = isStopWord
    ? SMALL_WORD
    : isUnspaced(term) && kana.test(term)
      ? ENDING
      : part && term.length < 3
        ? SHORT_PART
        : 1;
  const [surest] = alternatives;
  const written = surest === undefined || surest.weight === 1 ? 1 : UNWRITTEN;
  return { term, alternatives, small: isStopWord, weight: importance * written * rarity(alternatives, facts) };
}

/** As BM25 has it, of the facts that hold the word or what is nearly as sure. */
function rarity(alternatives: readonly Alternative[], facts: FactIndex): number {
  const [surest] = alternatives;
  let count = 0;
  for (const { id, weight } of alternatives) if (weight >= 0.9 * (surest?.weight ?? 0)) count += facts.count(id);
  count = Math.min(count, facts.size);
  return Math.log(1 + (facts.size - count + 0.5) / (count + 0.5));
}
