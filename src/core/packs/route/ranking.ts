import { wordsOf } from '../../search/words.ts';
import type { RequestAction } from './actions.ts';
import { distinctByStem, joinWords, type RouteRequest, type ContentWord, contentWordsIn } from './request.ts';

/** A pack, pipeline or tool that `route` can recommend. */
export interface RouteCandidate {
  readonly kind: 'pack' | 'pipeline' | 'tool';
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Phrases with which users might request the candidate. */
  readonly intents: readonly string[];
  readonly changes?: 'nothing' | 'adds' | 'destroys' | undefined;
}

export interface RankedCandidate<C extends RouteCandidate = RouteCandidate> {
  readonly candidate: C;
  /** How well the candidate matches the request, from 0 to 1. */
  readonly score: number;
  readonly matchedPhrase: string;
}

/** Minimum score of a candidate that is recommended. */
export const FIT_THRESHOLD = 0.58;

/** Maximum characters of a description that are compared. */
export const DESCRIPTION_CHARACTERS = 400;

/** Weight of a verb. It is low, because a verb such as "list" fits many packs. */
const VERB_WEIGHT = 0.5;
/** Weight of a word that appears only in the conversation, not in the request. */
const CONTEXT_WEIGHT = 0.7;
/** Weight of a request word that no candidate contains. */
const UNKNOWN_WEIGHT = 0.5;
/** Score of a word that occurs in another form. `SAME_ACTION` is the score of another verb with the same action. */
const OTHER_FORM = 0.85;
const SAME_ACTION = 0.9;
/**
 * Scores of a phrase with a single meaningful word, which is the whole phrase or part of a longer phrase. The scores are low,
 * because a single word matches too often, most of all within a longer phrase.
 */
const SINGLE_WORD = { alone: 0.75, within: 0.6 };
/**
 * Fraction of the score that a matching phrase earns on its own. The rest depends on how many words of the request the candidate
 * contains.
 */
const PHRASE_FRACTION = 0.6;
/** Minimum number of words of a phrase that counts as a literal match if the request contains the whole phrase. */
const LITERAL_WORDS = 3;
/** Factor for the score of a candidate that performs another action than requested. */
const OTHER_ACTION = 0.4;
/** Factor for words that are found anywhere in the description. Such words say less than a matching phrase. */
const SCATTERED_WORDS = 0.9;

interface Phrase {
  readonly text: string;
  readonly words: readonly ContentWord[];
  /** All words of the phrase in order, including stop words. */
  readonly sentence: string;
  readonly length: number;
}

interface ParsedCandidate<C extends RouteCandidate> {
  readonly candidate: C;
  readonly phrases: readonly Phrase[];
  readonly stems: ReadonlySet<string>;
  readonly terms: ReadonlySet<string>;
  readonly actions: ReadonlySet<RequestAction>;
}

/** Scores each candidate against the request, and returns them best first. Equal requests give equal results. */
export function rankCandidates<C extends RouteCandidate>(request: RouteRequest, candidates: readonly C[]): RankedCandidate<C>[] {
  const all = candidates.map(readCandidate);
  const weightOf = weightsOf(all);
  return all
    .map((read) => rank(request, read, weightOf))
    .toSorted((one, other) => other.score - one.score || compareIds(one.candidate.id, other.candidate.id));
}

export const compareIds = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

function readCandidate<C extends RouteCandidate>(candidate: C): ParsedCandidate<C> {
  const { name, title, intents, description, changes } = candidate;
  // Skip texts without words, because an empty phrase would match every request.
  const texts = [...intents, title, name.replace(/[._-]+/g, ' ')].filter((text) => /[\p{L}\p{N}]/u.test(text));
  const phrases = texts.map(readPhrase);
  const phraseWords = phrases.flatMap(({ words }) => words);
  const words = [...phraseWords, ...contentWordsIn(description.slice(0, DESCRIPTION_CHARACTERS))];
  const actions = phraseWords.flatMap(({ action }) => action ?? []);
  return {
    candidate,
    phrases,
    stems: new Set(words.map(({ stem }) => stem)),
    terms: new Set(words.map(({ term }) => term)),
    actions: new Set<RequestAction>(changes === 'nothing' ? ['read'] : actions),
  };
}

function readPhrase(text: string): Phrase {
  const all = wordsOf(text).filter(({ parts }) => parts === 0);
  return { text, words: distinctByStem(contentWordsIn(text)), sentence: joinWords(all), length: all.length };
}

type WeightOf = (word: ContentWord) => number;

/**
 * Weighs words by rarity, as BM25 does: words that few candidates contain weigh more. Verbs have a fixed rarity, because verbs
 * with the same action are interchangeable.
 */
function weightsOf(all: readonly ParsedCandidate<RouteCandidate>[]): WeightOf {
  const counts = new Map<string, number>();
  for (const { stems } of all) for (const stem of stems) counts.set(stem, (counts.get(stem) ?? 0) + 1);
  return ({ stem, action }) => {
    const count = action === undefined ? (counts.get(stem) ?? 0) : 1;
    return (action === undefined ? 1 : VERB_WEIGHT) * Math.log(1 + (all.length - count + 0.5) / (count + 0.5));
  };
}

function rank<C extends RouteCandidate>(request: RouteRequest, read: ParsedCandidate<C>, weightOf: WeightOf): RankedCandidate<C> {
  const { candidate, phrases, stems, actions } = read;
  const known = shareKnown(request, read, weightOf);
  let best = {
    fit: scatteredScore(request, stems, known),
    phrase: phrases.find(({ text }) => text === candidate.title)?.text ?? candidate.id,
  };
  for (const phrase of phrases) {
    const isLiteral = phrase.length >= LITERAL_WORDS && request.sentence.includes(phrase.sentence);
    const match = isLiteral ? 1 : singleWordFactor(phrase) * coverage(request, phrase, weightOf) ** 2;
    const fit = match * (PHRASE_FRACTION + (1 - PHRASE_FRACTION) * known);
    if (fit > best.fit) best = { fit, phrase: phrase.text };
  }
  const isOtherAction = request.action !== undefined && actions.size > 0 && !actions.has(request.action);
  return { candidate, matchedPhrase: best.phrase, score: isOtherAction ? best.fit * OTHER_ACTION : best.fit };
}

/**
 * Returns the fraction of the phrase that the request contains, from 0 to 1. Returns 0 if no noun matches, or if only the context
 * matches.
 */
function coverage({ words, contextWords }: RouteRequest, phrase: Phrase, weightOf: WeightOf): number {
  // A phrase that has only verbs must match exactly.
  const verbs = isOfVerbs(phrase);
  if (verbs && phrase.length > phrase.words.length) return 0;
  let sum = 0;
  let all = 0;
  let inRequest = false;
  let hasNoun = verbs;
  for (const word of phrase.words) {
    const value = weightOf(word);
    all += value;
    const here = similarity(word, words, verbs);
    const closest = Math.max(here, CONTEXT_WEIGHT * similarity(word, contextWords, verbs));
    if (here > 0) inRequest = true;
    if (closest > 0 && word.action === undefined) hasNoun = true;
    sum += value * closest;
  }
  return inRequest && hasNoun && all > 0 ? sum / all : 0;
}

const isOfVerbs = ({ words }: Phrase): boolean => words.every(({ action }) => action !== undefined);

function singleWordFactor(phrase: Phrase): number {
  if (phrase.words.length > 1 || isOfVerbs(phrase)) return 1;
  return phrase.length === 1 ? SINGLE_WORD.alone : SINGLE_WORD.within;
}

/** Returns 1 for the same word, and less for another form of the word or for a verb with the same action. */
function similarity(word: ContentWord, among: readonly ContentWord[], exact: boolean): number {
  const closest = among.map((other) => {
    if (word.term === other.term) return 1;
    if (word.stem === other.stem) return OTHER_FORM;
    return !exact && word.action !== undefined && word.action === other.action ? SAME_ACTION : 0;
  });
  return Math.max(0, ...closest);
}

/** Returns the fraction of the request that the candidate contains, from 0 to 1. Ignores names and numbers in the request. */
function shareKnown(
  { words, details }: RouteRequest,
  { stems, terms }: ParsedCandidate<RouteCandidate>,
  weightOf: WeightOf,
): number {
  let sum = 0;
  let all = 0;
  for (const word of words) {
    if (stems.has(word.stem)) {
      sum += weightOf(word) * (terms.has(word.term) ? 1 : OTHER_FORM);
      all += weightOf(word);
    } else if (!details.has(word.stem)) all += UNKNOWN_WEIGHT * weightOf(word);
  }
  return all > 0 ? sum / all : 0;
}

/** Returns the score for matching words that are not in one phrase. At least two words besides the verb must match. */
function scatteredScore({ words }: RouteRequest, stems: ReadonlySet<string>, known: number): number {
  const matched = words.filter(({ stem, action }) => action === undefined && stems.has(stem));
  return matched.length > 1 ? SCATTERED_WORDS * known ** 2 : 0;
}
