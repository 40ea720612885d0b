import type { FactIndex } from './fact-index.ts';
import { stopWords } from './stop-words.ts';
import { TERM_START, type Vocabulary, gramsOfTerm } from './vocabulary.ts';
import {
  type Word,
  TERM_UNITS,
  characterBoundary,
  commonPrefixLength,
  editDistance,
  foldText,
  isUnspaced,
  wordsOf,
} from './words.ts';

interface QueryWord {
  readonly term: string;
  /** The weight of the word in the ranking, which is higher for rarer words. */
  readonly weight: number;
  /** The terms that match the word, best first. */
  readonly alternatives: readonly Alternative[];
  /** True for a word with little meaning of its own, such as "what" or "the". */
  readonly isStopWord: boolean;
  /** How the word relates to the identifiers of the query that some fact contains as a whole. */
  readonly role: 'plain' | 'identifier' | 'part';
}

export interface ParsedQuery {
  /**
   * The distinct words, in the order of the query. An identifier that some fact contains as a whole is added after them.
   */
  readonly words: readonly QueryWord[];
  /** The number of `words` that a fact with the exact phrase contains: all of them but the identifiers. */
  readonly phraseWords: number;
  /** True if the query has only identifiers that some fact contains as a whole. */
  readonly onlyIdentifiers: boolean;
  /** All words with their positions. A name is represented by its parts only. */
  readonly phrase: readonly Word[];
  /** How the query writes each of its terms, such as `PROJ-7` for `proj7`. */
  readonly spellings: ReadonlyMap<string, string>;
  /** The query without the characters before its first word and after its last word. */
  readonly text: string;
  /** The sum of weights that a fact with every word of the query can reach. */
  readonly maxWeight: number;
}

const STOP_WORD = 0.05;
/** Factor for the weight of a pair of kana, which is mostly an ending or a particle. */
const KANA_PAIR = 0.35;
/** Factor for the weight of a short part of a name or version. It is low, because such parts occur in many facts. */
const SHORT_PART = 0.45;
/** A word without a match adds this fraction of its weight to `maxWeight`, which lowers all scores. */
const UNKNOWN = 0.5;
const JOINED = 0.95;
/**
 * The weight of all parts of an identifier as a fraction of the weight of the identifier. It is low, so that the parts only order
 * the facts with the identifier, and a search need not read every fact with one of the parts.
 */
const PARTS_FRACTION = 0.25;
/**
 * Factor for the weight of a word of which only other forms are indexed. It is above 1, because the word itself is in no fact.
 */
const OTHER_FORM_ONLY = 1.3;

const kana = /^[\u3040-\u309f\u30fc]+$/;

interface Limits {
  /** Maximum number of words. */
  readonly words: number;
  /** True if the filter of the search may exclude most facts with a common word, but not facts with similar words. */
  readonly narrowed: boolean;
}

/** Splits a query into words, and finds the terms that match the words. */
export function parseQuery(text: string, facts: FactIndex, limits: Limits): ParsedQuery {
  const all = wordsOf(text);
  const [only, ...others] = all;
  const phrase = all.filter((word) => word.parts === 0 || standsAlone(word, all));
  const words = only && others.length === 0 ? [weigh(only, [], facts)] : weighAll(all, phrase, facts, limits);
  let maxWeight = 0;
  for (const { weight, alternatives } of words) maxWeight += weight * (alternatives.length > 0 ? 1 : UNKNOWN);
  const phraseWords = words.filter(({ role }) => role !== 'identifier').length;
  const onlyIdentifiers = words.every(({ role }) => role !== 'plain');
  const spellings = new Map<string, string>();
  for (const { term, start, end } of all) if (!spellings.has(term)) spellings.set(term, text.slice(start, end));
  const trimmed = text.slice(only?.start, all.at(-1)?.end);
  return { words, phraseWords, onlyIdentifiers, phrase, spellings, text: trimmed, maxWeight };
}

/** Whether the query is a single identifier, so that each fact with the identifier contains the phrase. */
export const isOneIdentifier = ({ words, phraseWords, phrase, onlyIdentifiers }: ParsedQuery): boolean =>
  onlyIdentifiers && words.length === phraseWords + 1 && phrase.length === phraseWords;

/**
 * Returns the word in the fewest facts of those that every fact with the phrase contains. Returns nothing for a query of
 * identifiers whose parts are all in more than `most` facts, because reading some of these facts seldom finds the phrase.
 */
export function rarestOfPhrase({ words, onlyIdentifiers }: ParsedQuery, facts: FactIndex, most: number): QueryWord | undefined {
  let [rarest, least]: [QueryWord | undefined, number] = [undefined, onlyIdentifiers ? most + 1 : Infinity];
  for (const word of words) {
    const count = word.alternatives.reduce((sum, { id }) => sum + facts.count(id), 0);
    if (word.role !== 'identifier' && count < least) [rarest, least] = [word, count];
  }
  return rarest;
}

/** Whether a name has no parts of its own. The name a-b has none, because single letters are not reported as parts. */
const standsAlone = (whole: Word, all: readonly Word[]): boolean => !all.some((word) => word.parts === 0 && covers(whole, word));

function weighAll(all: readonly Word[], phrase: readonly Word[], facts: FactIndex, limits: Limits): QueryWord[] {
  const distinct = new Map<string, Word>();
  for (const word of phrase) if (!distinct.has(word.term)) distinct.set(word.term, word);
  const identifiers = identifiersOf(all, phrase, facts);
  const elsewhere = new Set<string>();
  for (const word of phrase) if (!identifiers.some(({ whole }) => covers(whole, word))) elsewhere.add(word.term);
  const words = limited([...distinct.values()], limits.words).map((word) => {
    if (!elsewhere.has(word.term)) return weighPart(word, facts);
    const names = all.filter((whole) => whole.parts > 0 && whole !== word && covers(whole, word));
    const joined = [...names.map(({ term }) => term), ...neighbours(word, phrase)];
    return weigh(word, joined, facts, { part: names.length > 0, commonAlone: !limits.narrowed });
  });
  return identifiers.length === 0 ? words : withIdentifiers(words, phrase, identifiers, facts);
}

interface Identifier {
  readonly whole: Word;
  readonly id: number;
}

/**
 * Returns the names with digits that some fact contains, such as `PROJ-1234` and `v1.2.3`. Other names are found by their parts,
 * because they are often spelled as several words.
 */
function identifiersOf(all: readonly Word[], phrase: readonly Word[], { vocabulary }: FactIndex): Identifier[] {
  const found: Identifier[] = [];
  for (const whole of all) {
    if (whole.parts === 0 || !digit.test(whole.term) || phrase.includes(whole)) continue;
    const id = vocabulary.find(whole.term);
    if (id !== undefined && found.length < MAX_IDENTIFIERS) found.push({ whole, id });
  }
  return found;
}

/** Returns the words with the identifiers at their end. The parts of an identifier share a fraction of its weight. */
function withIdentifiers(
  words: readonly QueryWord[],
  phrase: readonly Word[],
  identifiers: readonly Identifier[],
  facts: FactIndex,
): QueryWord[] {
  const weights = new Map<string, number>();
  const wholes = new Map<string, QueryWord>();
  for (const { whole, id } of identifiers) {
    const alternatives: Alternative[] = [{ id, term: whole.term, weight: 1, kind: 'same' }];
    const weight = rarity(alternatives, facts);
    wholes.set(whole.term, { term: whole.term, alternatives, isStopWord: false, weight, role: 'identifier' });
    const terms = new Set(phrase.filter((word) => covers(whole, word)).map(({ term }) => term));
    const parts = words.filter(({ term, role }) => role === 'part' && terms.has(term));
    const total = parts.reduce((sum, part) => sum + part.weight, 0);
    for (const part of parts) weights.set(part.term, (PARTS_FRACTION * weight * part.weight) / total);
  }
  return [...words.map((word) => ({ ...word, weight: weights.get(word.term) ?? word.weight })), ...wholes.values()];
}

/** Weighs a part of an identifier. Only the part itself is looked up, because facts with the identifier contain it. */
function weighPart({ term }: Word, facts: FactIndex): QueryWord {
  const id = facts.vocabulary.find(term);
  const alternatives: Alternative[] = id === undefined ? [] : [{ id, term, weight: 1, kind: 'same' }];
  return { term, alternatives, isStopWord: stopWords.has(term), weight: rarity(alternatives, facts), role: 'part' };
}

const covers = (whole: Word, { position }: Word): boolean =>
  position >= whole.position && position < whole.position + whole.parts;

/** Returns at most `most` words. A query that is longer loses its stop words first. */
function limited(words: readonly Word[], most: number): readonly Word[] {
  if (words.length <= most) return words;
  const meaningful = words.filter(({ term }) => !stopWords.has(term));
  return meaningful.slice(0, most);
}

/** Returns the word joined with the word before or after it, such as database for "data base". */
function neighbours(word: Word, sequence: readonly Word[]): string[] {
  if (sequence.length < 2 || isUnspaced(word.term) || stopWords.has(word.term)) return [];
  const at = sequence.indexOf(word);
  const [before, after] = [sequence[at - 1], sequence[at + 1]];
  const usable = (other: Word | undefined): other is Word =>
    other !== undefined && !isUnspaced(other.term) && !stopWords.has(other.term);
  return [...(usable(before) ? [before.term + word.term] : []), ...(usable(after) ? [word.term + after.term] : [])];
}

/** With `commonAlone`, similar terms are not sought for a word that many facts contain. */
function weigh(
  { term }: Word,
  joined: readonly string[],
  facts: FactIndex,
  { part, commonAlone } = { part: false, commonAlone: false },
): QueryWord {
  const { vocabulary } = facts;
  const isStopWord = stopWords.has(term);
  const known = vocabulary.find(term);
  const isCommon = commonAlone && known !== undefined && facts.count(known) >= Math.max(MIN_COMMON, COMMON * facts.size);
  const alternatives = isStopWord || isCommon ? sameWord(term, vocabulary) : alternativesOf(term, vocabulary);
  for (const whole of joined) {
    const id = vocabulary.find(whole);
    if (id === undefined) continue;
    const at = alternatives.findIndex((alternative) => alternative.id === id);
    if (at >= 0) alternatives.splice(at, 1);
    alternatives.push({ id, term: whole, weight: JOINED, kind: 'joined' });
  }
  alternatives.sort((one, other) => other.weight - one.weight);
  const importance = isStopWord
    ? STOP_WORD
    : isUnspaced(term) && kana.test(term)
      ? KANA_PAIR
      : part && term.length < 3
        ? SHORT_PART
        : 1;
  const [closest] = alternatives;
  const formFactor = closest === undefined || closest.weight === 1 ? 1 : OTHER_FORM_ONLY;
  return { term, alternatives, isStopWord, weight: importance * formFactor * rarity(alternatives, facts), role: 'plain' };
}

/**
 * Returns the inverse document frequency of a word, as in BM25. It is higher if fewer facts contain the best alternative, or an
 * alternative that is nearly as good.
 */
function rarity(alternatives: readonly Alternative[], facts: FactIndex): number {
  const [closest] = alternatives;
  let count = 0;
  for (const { id, weight } of alternatives) if (weight >= 0.9 * (closest?.weight ?? 0)) count += facts.count(id);
  count = Math.min(count, facts.size);
  return inverseFrequency(count, facts.size);
}

const inverseFrequency = (count: number, size: number): number => Math.log(1 + (size - count + 0.5) / (count + 0.5));

/** Returns the weight of a word that only one of so many facts contains. */
export const weightOfUnique = (size: number): number => inverseFrequency(1, size);

type MatchKind = 'same' | 'joined' | 'form' | 'beginning' | 'part' | 'similar';

export interface Alternative {
  readonly id: number;
  readonly term: string;
  /** The weight of the term: 1 for the word itself, and lower for other terms. */
  readonly weight: number;
  readonly kind: MatchKind;
}

/** The weight of another form of the word, such as its plural. */
const FORM = 0.8;
/** Factor for the weight of similar terms if the word itself is indexed. */
const BESIDE_EXACT = 0.7;
/** Minimum weight of the most similar term if the word itself is not indexed. */
const CLOSEST = 0.75;

/** Words of at least this length are unlikely to be part of another term by coincidence. */
const LONG_PART = 5;

/** A word in at least this fraction of all facts, and in at least this number of facts, is common. */
const COMMON = 1 / 16;
const MIN_COMMON = 1000;

const MAX_ALTERNATIVES = 24;
const MAX_SCANNED = 2000;
const MAX_IDENTIFIERS = 16;

/**
 * Returns the terms that match a word: the word itself and its forms, then terms that contain it. If no such term exists, returns
 * similar terms.
 */
function alternativesOf(word: string, vocabulary: Vocabulary): Alternative[] {
  const exact = sameWord(word, vocabulary);
  if (isUnspaced(word)) return exact.length > 0 || Array.from(word).length > 1 ? exact : containing(word, vocabulary);
  const near = nearby(word, vocabulary);
  const explained = exact.length > 0 || near.some(({ kind }) => kind !== 'part' || word.length >= LONG_PART);
  const misspelled = explained ? [] : similarTerms(word, vocabulary);
  if (near.length === 0 && misspelled.length === 0) return exact;
  const rest = [...near, ...misspelled];
  const factor = exact.length > 0 ? BESIDE_EXACT : 1 - CLOSEST + CLOSEST / Math.max(...rest.map(({ weight }) => weight));
  return [
    ...exact,
    ...best(
      rest.map((alternative) => ({ ...alternative, weight: alternative.weight * factor })),
      exact,
    ),
  ];
}

function best(alternatives: readonly Alternative[], except: readonly Alternative[]): Alternative[] {
  const seen = new Set(except.map(({ id }) => id));
  const chosen: Alternative[] = [];
  for (const alternative of alternatives.toSorted(
    (one, other) => other.weight - one.weight || (one.term < other.term ? -1 : 1),
  )) {
    if (seen.has(alternative.id)) continue;
    seen.add(alternative.id);
    if (chosen.push(alternative) === MAX_ALTERNATIVES) break;
  }
  return chosen;
}

function sameWord(word: string, vocabulary: Vocabulary): Alternative[] {
  const id = vocabulary.find(word);
  const same: Alternative[] = id === undefined ? [] : [{ id, term: word, weight: 1, kind: 'same' }];
  const forms = vocabulary.withSameStem(word, id);
  for (const other of forms) same.push({ id: other, term: vocabulary.text(other), weight: FORM, kind: 'form' });
  return same;
}

/** Returns the indexed pairs of characters that contain a single character of a script without spaces. */
const containing = (word: string, vocabulary: Vocabulary): Alternative[] =>
  vocabulary
    .withGram(word, MAX_SCANNED)
    .map((id): Alternative => ({ id, term: vocabulary.text(id), weight: 0.9, kind: 'part' }))
    .filter(({ term }) => term.includes(word));

/**
 * Returns terms that contain the word, or that start with similar characters. Scans only the list of the rarest n-gram of the
 * word's start, because all of these terms contain that n-gram.
 */
function nearby(word: string, vocabulary: Vocabulary): Alternative[] {
  if (word.length < 2) return [];
  const head = word.slice(0, Math.max(4, word.length - 3));
  const pieces = word.length === 2 ? [TERM_START + word] : digit.test(word) ? [word.slice(0, 3)] : gramsOfTerm(head).slice(1, -1);
  const alternatives: Alternative[] = [];
  for (const id of vocabulary.similarTo(word, rarestOf(pieces, vocabulary), MAX_SCANNED)) {
    const term = vocabulary.text(id);
    const { weight, kind } = similarity(word, term);
    if (weight > 0) alternatives.push({ id, term, weight, kind });
  }
  return alternatives;
}

function rarestOf(pieces: readonly string[], vocabulary: Vocabulary): string {
  let [rarest, least] = ['', Infinity];
  for (const piece of pieces) {
    const count = vocabulary.countWithGram(piece);
    if (count < least) [rarest, least] = [piece, count];
  }
  return rarest;
}

function similarity(word: string, term: string): { weight: number; kind: MatchKind } {
  const shared = commonPrefixLength(word, term);
  const longer = Math.max(word.length, term.length);
  if (shared === word.length) return { weight: 0.45 + 0.45 * (word.length / longer), kind: 'beginning' };
  if (shared >= 4 && longer - shared <= 4 && shared / longer >= 0.55) {
    return { weight: 0.2 + 0.5 * (shared / longer), kind: 'form' };
  }
  if (word.length > 2 && term.includes(word)) return { weight: 0.2 + 0.55 * (word.length / longer), kind: 'part' };
  return { weight: 0, kind: 'similar' };
}

const digit = /\d/;

/** Minimum length of a word that may be misspelled. A single edit often turns a shorter word into a different word. */
const MIN_MISSPELLED = 4;
/** Words of at least this length can have two edits. */
const TWO_EDITS = 7;
const MAX_COMPARED = 400;
const MAX_SIMILAR = 8;
/** Minimum weight of a similar term with more edits than allowed, which is reached if about half of the n-grams are shared. */
const MIN_SIMILARITY = 0.32;
const digits = /^[\d.]+$/;

/**
 * Returns terms that differ by one or two edits, or that share many n-grams with the word. Used only if no other term matches.
 */
function similarTerms(word: string, vocabulary: Vocabulary): Alternative[] {
  if (word.length < MIN_MISSPELLED || digits.test(word)) return [];
  const most = word.length >= TWO_EDITS ? 2 : 1;
  const pieces = new Set(gramsOfTerm(word));
  const found = vocabulary.sharingGrams(pieces, MAX_SCANNED, MAX_COMPARED).flatMap(([id, count]): Alternative[] => {
    const term = vocabulary.text(id);
    if (term.length < MIN_MISSPELLED) return [];
    const edits = editDistance(word, term, most);
    const weight = edits <= most ? 0.8 - edits / word.length : (0.65 * 2 * count) / (pieces.size + term.length);
    return edits <= most || weight >= MIN_SIMILARITY ? [{ id, term, weight, kind: 'similar' }] : [];
  });
  return best(found, []).slice(0, MAX_SIMILAR);
}

/** Returns the best alternatives of the query's words. Alternatives of the rarest word come first. */
export function soughtTexts({ words, spellings }: ParsedQuery): (string | RegExp)[] {
  const rarestFirst = words.toSorted((one, other) => other.weight - one.weight);
  const sought = rarestFirst.flatMap(({ alternatives, role, term }): (string | RegExp)[] =>
    role === 'identifier'
      ? [anySpelling(foldText(spellings.get(term) ?? term))]
      : alternatives.slice(0, 2).map((alternative) => alternative.term),
  );
  return sought.slice(0, 16);
}

/** Maximum parts of an identifier in its pattern. Matching the pattern takes time for each part at each place of a long value. */
const MAX_PATTERN_PARTS = 8;

/** Returns a pattern of all spellings of an identifier: with hyphens, with underscores, and without. It has only the first parts. */
const anySpelling = (identifier: string): RegExp =>
  new RegExp(
    identifier
      .slice(0, characterBoundary(identifier, TERM_UNITS))
      .split(partBoundary)
      .slice(0, MAX_PATTERN_PARTS)
      .map((part) => RegExp.escape(part))
      .join('[-_]?'),
    'u',
  );

const partBoundary = /[-_]|(?<=\p{L})(?=\p{N})|(?<=\p{N})(?=\p{L})/u;
