import { wordsOf } from '../../search/words.ts';
import type { RequestAction } from './actions.ts';
import { distinctByStem, joinWords, type RouteRequest, type ContentWord, contentWordsIn } from './request.ts';

/** Something `route` can recommend. */
export interface RouteCandidate {
  readonly kind: 'pack' | 'pipeline' | 'tool';
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Phrases a user might say. */
  readonly intents: readonly string[];
  readonly changes?: 'nothing' | 'adds' | 'destroys' | undefined;
}

export interface RankedCandidate<C extends RouteCandidate = RouteCandidate> {
  readonly candidate: C;
  /** From 0 to 1. */
  readonly score: number;
  /** The candidate's own phrase that matched best. */
  readonly matchedPhrase: string;
}

/** Candidates below this score are not recommended. */
export const FIT_THRESHOLD = 0.58;

/** Only this much of a description is read. */
export const DESCRIPTION_CHARACTERS = 400;

/** Weight of a verb: many packs can list something. */
const DEED = 0.5;
/** Weight of words that appear only in the context. */
const AROUND = 0.7;
/** Weight of a request word that no candidate contains. */
const UNKNOWN = 0.5;
/** Scores for another form of the same word, and for another verb with the same action. */
const FORM = 0.85;
const SAME_DEED = 0.9;
/** Scores for a phrase with a single meaningful word. Such a word matches too often, more so in a longer phrase. */
const LONELY = { alone: 0.75, within: 0.6 };
/** Share of the score that a matching phrase earns on its own. */
const SAID = 0.6;
/** Phrases with this many consecutive words count as a literal match. */
const ROW = 3;
/** Factor for a candidate that performs a different action. */
const ANOTHER_DEED = 0.4;
/** Factor for words found anywhere in the description, which say less than a matching intent phrase. */
const SCATTERED = 0.9;

interface Phrase {
  readonly text: string;
  readonly words: readonly ContentWord[];
  /** All words in order, including stop words. */
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

/** Scores each candidate against the request, best first. Equal requests give equal results. */
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
  // Skip texts without words: an empty phrase would match everything.
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

/**
 * Weighs words by rarity, as BM25 does: words in few candidates weigh more. Verbs have a fixed rarity, because verbs with the
 * same action are interchangeable.
 */
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

/** How much of the phrase the request contains. Zero if no noun matches, or if the match comes from the context alone. */
function covered({ words, contextWords: around }: RouteRequest, phrase: Phrase, worth: Worth): number {
  // A phrase of verbs alone must match exactly.
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

/** 1 for the same word, less for another form or a verb with the same action. */
function likeness(word: ContentWord, among: readonly ContentWord[], exact: boolean): number {
  const likest = among.map((other) => {
    if (word.term === other.term) return 1;
    if (word.stem === other.stem) return FORM;
    return !exact && word.action !== undefined && word.action === other.action ? SAME_DEED : 0;
  });
  return Math.max(0, ...likest);
}

/** How much of the request the candidate's words cover. Names and numbers in the request are ignored. */
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

/** Scores two or more matching words besides the verb. */
function scattered({ words }: RouteRequest, stems: ReadonlySet<string>, known: number): number {
  const matched = words.filter(({ stem, action: deed }) => deed === undefined && stems.has(stem));
  return matched.length > 1 ? SCATTERED * known ** 2 : 0;
}
