import { wordsOf } from '../../search/words.ts';
import type { RequestAction } from './actions.ts';
import { joinWords } from './phrase.ts';
import { distinctByStem, type RouteRequest, type ContentWord, contentWordsIn } from './request.ts';

/** Something that may serve a need, as it describes itself. */
export interface RouteCandidate {
  readonly kind: 'pack' | 'pipeline' | 'tool';
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** What people say who need it. */
  readonly intents: readonly string[];
  readonly changes?: 'nothing' | 'adds' | 'destroys' | undefined;
}

export interface RankedCandidate<C extends RouteCandidate = RouteCandidate> {
  readonly candidate: C;
  /** 0 to 1. */
  readonly score: number;
  /** Its own words that were asked for. */
  readonly matchedPhrase: string;
}

/** What fits less serves something else. */
export const FIT_THRESHOLD = 0.58;

/** Of a description, so many characters are read. */
export const DESCRIPTION_CHARACTERS = 400;

/** A verb alone says little: many things can be listed. */
const DEED = 0.5;
/** What is said around a request counts for less than the request. */
const AROUND = 0.7;
/** A word that nothing here knows: half as much as one that something does. */
const UNKNOWN = 0.5;
/** Another form of the word, or another verb of the same deed. */
const FORM = 0.85;
const SAME_DEED = 0.9;
/** One word that is no verb stands in too many sentences; more so where it had others around it. */
const LONELY = { alone: 0.75, within: 0.6 };
/** What a phrase is worth that was said, whatever else was. */
const SAID = 0.6;
/** So many words in a row are no accident. */
const ROW = 3;
/** What another thing is done by. */
const ANOTHER_DEED = 0.4;
/** Words anywhere in its description say less than a phrase that was meant to be asked. */
const SCATTERED = 0.9;

interface Phrase {
  readonly text: string;
  readonly words: readonly ContentWord[];
  /** Every word in its place, and how many there are. */
  readonly sentence: string;
  readonly length: number;
}

interface Read<C extends RouteCandidate> {
  readonly candidate: C;
  readonly phrases: readonly Phrase[];
  readonly stems: ReadonlySet<string>;
  readonly terms: ReadonlySet<string>;
  readonly deeds: ReadonlySet<RequestAction>;
}

/** How well each candidate serves the request, the best first. The same question has the same answer. */
export function rankCandidates<C extends RouteCandidate>(request: RouteRequest, candidates: readonly C[]): RankedCandidate<C>[] {
  const all = candidates.map(readCandidate);
  const worth = worthIn(all);
  return all
    .map((read) => fitOf(request, read, worth))
    .toSorted((one, other) => other.score - one.score || compareIds(one.candidate.id, other.candidate.id));
}

export const compareIds = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

function readCandidate<C extends RouteCandidate>(candidate: C): Read<C> {
  const { name, title, intents, description, changes } = candidate;
  // A title or description may be missing or hold no word; such a phrase would explain a match with nothing.
  const texts = [...intents, title, name.replace(/[._-]+/g, ' ')].filter((text) => /[\p{L}\p{N}]/u.test(text));
  const phrases = texts.map(readPhrase);
  const said = phrases.flatMap(({ words }) => words);
  const words = [...said, ...contentWordsIn(description.slice(0, DESCRIPTION_CHARACTERS))];
  const deeds = said.flatMap(({ action: deed }) => deed ?? []);
  return {
    candidate,
    phrases,
    stems: new Set(words.map(({ stem }) => stem)),
    terms: new Set(words.map(({ term }) => term)),
    deeds: new Set<RequestAction>(changes === 'nothing' ? ['read'] : deeds),
  };
}

function readPhrase(text: string): Phrase {
  const all = wordsOf(text).filter(({ parts }) => parts === 0);
  return { text, words: distinctByStem(contentWordsIn(text)), sentence: joinWords(all), length: all.length };
}

type Worth = (word: ContentWord) => number;

/** As BM25 has it: the fewer candidates know a word, the more it says. Verbs of one deed mean the same, however rare each is. */
function worthIn(all: readonly Read<RouteCandidate>[]): Worth {
  const counts = new Map<string, number>();
  for (const { stems } of all) for (const stem of stems) counts.set(stem, (counts.get(stem) ?? 0) + 1);
  return ({ stem, action: deed }) => {
    const count = deed === undefined ? (counts.get(stem) ?? 0) : 1;
    return (deed === undefined ? 1 : DEED) * Math.log(1 + (all.length - count + 0.5) / (count + 0.5));
  };
}

function fitOf<C extends RouteCandidate>(request: RouteRequest, read: Read<C>, worth: Worth): RankedCandidate<C> {
  const { candidate, phrases, stems, deeds } = read;
  const known = shareKnown(request, read, worth);
  let best = {
    fit: scattered(request, stems, known),
    phrase: phrases.find(({ text }) => text === candidate.title)?.text ?? candidate.id,
  };
  for (const phrase of phrases) {
    const literal = phrase.length >= ROW && request.sentence.includes(phrase.sentence);
    const said = literal ? 1 : loneliness(phrase) * covered(request, phrase, worth) ** 2;
    const fit = said * (SAID + (1 - SAID) * known);
    if (fit > best.fit) best = { fit, phrase: phrase.text };
  }
  const another = request.action !== undefined && deeds.size > 0 && !deeds.has(request.action);
  return { candidate, matchedPhrase: best.phrase, score: another ? best.fit * ANOTHER_DEED : best.fit };
}

/** How much of a phrase was said. Nothing, where what it is about was not, or only what is around the request said it. */
function covered({ words, contextWords: around }: RouteRequest, phrase: Phrase, worth: Worth): number {
  // Where a phrase is nothing but a verb, it must be that one, and nothing else may make its sense.
  const verbs = isOfVerbs(phrase);
  if (verbs && phrase.length > phrase.words.length) return 0;
  let sum = 0;
  let all = 0;
  let asked = false;
  let about = verbs;
  for (const word of phrase.words) {
    const value = worth(word);
    all += value;
    const here = likeness(word, words, verbs);
    const likest = Math.max(here, AROUND * likeness(word, around, verbs));
    if (here > 0) asked = true;
    if (likest > 0 && word.action === undefined) about = true;
    sum += value * likest;
  }
  return asked && about && all > 0 ? sum / all : 0;
}

const isOfVerbs = ({ words }: Phrase): boolean => words.every(({ action: deed }) => deed !== undefined);

function loneliness(phrase: Phrase): number {
  if (phrase.words.length > 1 || isOfVerbs(phrase)) return 1;
  return phrase.length === 1 ? LONELY.alone : LONELY.within;
}

/** The word itself, a form of it, or a verb that is used for the same. */
function likeness(word: ContentWord, among: readonly ContentWord[], exact: boolean): number {
  const likest = among.map((other) => {
    if (word.term === other.term) return 1;
    if (word.stem === other.stem) return FORM;
    return !exact && word.action !== undefined && word.action === other.action ? SAME_DEED : 0;
  });
  return Math.max(0, ...likest);
}

/** How much of the request the candidate knows. What the request is about may be anything. */
function shareKnown({ words, details }: RouteRequest, { stems, terms }: Read<RouteCandidate>, worth: Worth): number {
  let sum = 0;
  let all = 0;
  for (const word of words) {
    if (stems.has(word.stem)) {
      sum += worth(word) * (terms.has(word.term) ? 1 : FORM);
      all += worth(word);
    } else if (!details.has(word.stem)) all += UNKNOWN * worth(word);
  }
  return all > 0 ? sum / all : 0;
}

/** Two words beside the verb are no accident, if nothing else was asked for. */
function scattered({ words }: RouteRequest, stems: ReadonlySet<string>, known: number): number {
  const matched = words.filter(({ stem, action: deed }) => deed === undefined && stems.has(stem));
  return matched.length > 1 ? SCATTERED * known ** 2 : 0;
}
