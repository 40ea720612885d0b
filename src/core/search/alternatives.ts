import { isUnspaced } from './characters.ts';
import { editDistance, commonPrefixLength } from './edit-distance.ts';
import { TERM_START, gramsOfTerm, type Vocabulary } from './vocabulary.ts';

/** How a word of a question stands in a fact. */
export type MatchKind = 'same' | 'joined' | 'form' | 'beginning' | 'part' | 'alike';

/** A term that can stand for a word of a question. */
export interface Alternative {
  readonly id: number;
  readonly term: string;
  /** 1 for the word itself. */
  readonly weight: number;
  readonly kind: MatchKind;
}

const FORM = 0.8;
/** A longer word says less surely what a shorter one asks, and still less where that one is a word of its own. */
const BESIDE_THE_WORD = 0.7;
/** Where nobody wrote the word, what is most like it is meant so surely, however unlike it is. */
const MEANT = 0.75;

/** So long a piece of a word is no chance. */
const LONG_PART = 5;

const MOST = 24;
const MOST_SCANNED = 2000;

/** What a word may stand for: itself and its forms, then words that hold it, and, when all fails, words like it. */
export function alternativesOf(word: string, vocabulary: Vocabulary): Alternative[] {
  const sure = sameWord(word, vocabulary);
  if (isUnspaced(word)) return sure.length > 0 || Array.from(word).length > 1 ? sure : holding(word, vocabulary);
  const near = nearby(word, vocabulary);
  const explained = sure.length > 0 || near.some(({ kind: manner }) => manner !== 'part' || word.length >= LONG_PART);
  const misspelt = explained ? [] : alike(word, vocabulary);
  if (near.length === 0 && misspelt.length === 0) return sure;
  const rest = [...near, ...misspelt];
  const factor = sure.length > 0 ? BESIDE_THE_WORD : 1 - MEANT + MEANT / Math.max(...rest.map(({ weight }) => weight));
  return [
    ...sure,
    ...best(
      rest.map((alternative) => ({ ...alternative, weight: alternative.weight * factor })),
      sure,
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
    if (chosen.push(alternative) === MOST) break;
  }
  return chosen;
}

/** Itself and its forms: all that a word which says little may stand for. */
export function sameWord(word: string, vocabulary: Vocabulary): Alternative[] {
  const id = vocabulary.find(word);
  const same: Alternative[] = id === undefined ? [] : [{ id, term: word, weight: 1, kind: 'same' }];
  const kin = vocabulary.withSameStem(word, id);
  for (const other of kin) same.push({ id: other, term: vocabulary.text(other), weight: FORM, kind: 'form' });
  return same;
}

/** A single character of a dense script, among the pairs it stands in. */
const holding = (word: string, vocabulary: Vocabulary): Alternative[] =>
  vocabulary
    .withGram(word, MOST_SCANNED)
    .map((id): Alternative => ({ id, term: vocabulary.text(id), weight: 0.9, kind: 'part' }))
    .filter(({ term }) => term.includes(word));

/**
 * Words that hold this one, or begin like it and end otherwise. Whichever they are, they have the rarest piece of its
 * head, so that one list of terms is looked through and no more.
 */
function nearby(word: string, vocabulary: Vocabulary): Alternative[] {
  if (word.length < 2) return [];
  const head = word.slice(0, Math.max(4, word.length - 3));
  const pieces = word.length === 2 ? [TERM_START + word] : digit.test(word) ? [word.slice(0, 3)] : gramsOfTerm(head).slice(1, -1);
  const alternatives: Alternative[] = [];
  for (const id of vocabulary.similarTo(word, rarestOf(pieces, vocabulary), MOST_SCANNED)) {
    const term = vocabulary.text(id);
    const { weight, manner } = nearness(word, term);
    if (weight > 0) alternatives.push({ id, term, weight, kind: manner });
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

function nearness(word: string, term: string): { weight: number; manner: MatchKind } {
  const shared = commonPrefixLength(word, term);
  const longer = Math.max(word.length, term.length);
  if (shared === word.length) return { weight: 0.45 + 0.45 * (word.length / longer), manner: 'beginning' };
  if (shared >= 4 && longer - shared <= 4 && shared / longer >= 0.55) {
    return { weight: 0.2 + 0.5 * (shared / longer), manner: 'form' };
  }
  if (word.length > 2 && term.includes(word)) return { weight: 0.2 + 0.55 * (word.length / longer), manner: 'part' };
  return { weight: 0, manner: 'alike' };
}

const digit = /\d/;

/** Below this many letters one edit makes a different word too often. */
const SHORTEST_MISSPELT = 4;
const TWO_EDITS = 7;
const MOST_COMPARED = 400;
const MOST_ALIKE = 8;
/** Half of the pieces in common. */
const LEAST_ALIKE = 0.32;
const digits = /^[\d.]+$/;

/** The last resort: words with most pieces in common, or a letter or two apart. */
function alike(word: string, vocabulary: Vocabulary): Alternative[] {
  if (word.length < SHORTEST_MISSPELT || digits.test(word)) return [];
  const most = word.length >= TWO_EDITS ? 2 : 1;
  const pieces = new Set(gramsOfTerm(word));
  const common = new Map<number, number>();
  for (const piece of pieces) {
    for (const id of vocabulary.withGram(piece, MOST_SCANNED)) common.set(id, (common.get(id) ?? 0) + 1);
  }
  const likeliest = [...common].toSorted(([, one], [, other]) => other - one).slice(0, MOST_COMPARED);
  const found = likeliest.flatMap(([id, count]): Alternative[] => {
    const term = vocabulary.text(id);
    if (term.length < SHORTEST_MISSPELT) return [];
    const edits = editDistance(word, term, most);
    const weight = edits <= most ? 0.8 - edits / word.length : (0.65 * 2 * count) / (pieces.size + term.length);
    return edits <= most || weight >= LEAST_ALIKE ? [{ id, term, weight, kind: 'alike' }] : [];
  });
  return best(found, []).slice(0, MOST_ALIKE);
}
