export interface Piece {
  readonly change: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** Matches a word, or the whitespace between two words. */
const TOKENS = /\s+|[^\s]+/g;
/**
 * Maximum number of token pairs to compare. Larger texts are shown as fully replaced, because a comparison would block the page.
 */
const MAX_COMPARISONS = 1_000_000;
/**
 * Weight of a shared word; shared whitespace has weight 1. Two texts within `MAX_COMPARISONS` share at most 1,000 tokens, so one
 * shared word outweighs all shared whitespace.
 */
const WORD_WEIGHT = 1024;

/** Compares two texts word by word. Returns the unchanged, removed and added pieces in order. */
export function diffWords(before: string, after: string): Piece[] {
  const [old, present] = [before.match(TOKENS) ?? [], after.match(TOKENS) ?? []];
  const start = commonPrefix(old, present);
  const end = commonSuffix(old.slice(start), present.slice(start));
  return mergeChanges([
    ...pieces('same', present.slice(0, start)),
    ...diffTokens(old.slice(start, old.length - end), present.slice(start, present.length - end)),
    ...pieces('same', present.slice(present.length - end)),
  ]);
}

function commonPrefix(one: readonly string[], other: readonly string[]): number {
  const different = one.findIndex((word, index) => word !== other[index]);
  return different === -1 ? one.length : different;
}

const commonSuffix = (one: readonly string[], other: readonly string[]): number =>
  Math.min(one.length, other.length, commonPrefix(one.toReversed(), other.toReversed()));

/**
 * Finds the heaviest common subsequence: as many unchanged words as possible and, among equal results, as much whitespace as
 * possible.
 */
function diffTokens(old: readonly string[], present: readonly string[]): Piece[] {
  if (old.length * present.length > MAX_COMPARISONS) return [...pieces('removed', old), ...pieces('added', present)];
  // `weights[i][j]` is the largest weight of a common subsequence of `old.slice(i)` and `present.slice(j)`.
  const weights = Array.from({ length: old.length + 1 }, () => new Uint32Array(present.length + 1));
  const at = (i: number, j: number): number => weights[i]?.[j] ?? 0;
  const withBoth = (i: number, j: number): number => at(i + 1, j + 1) + (isBlank(old[i]) ? 1 : WORD_WEIGHT);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = present.length - 1; j >= 0; j -= 1) {
      const row = weights[i];
      if (row) row[j] = Math.max(at(i + 1, j), at(i, j + 1), old[i] === present[j] ? withBoth(i, j) : 0);
    }
  }
  const result: Piece[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < present.length) {
    if (old[i] === present[j] && withBoth(i, j) === at(i, j)) {
      result.push({ change: 'same', text: present[j] ?? '' });
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      result.push({ change: 'removed', text: old[i] ?? '' });
      i += 1;
    } else {
      result.push({ change: 'added', text: present[j] ?? '' });
      j += 1;
    }
  }
  return [...result, ...pieces('removed', old.slice(i)), ...pieces('added', present.slice(j))];
}

const isBlank = (word = ''): boolean => word.trim() === '';

const pieces = (change: Piece['change'], words: readonly string[]): Piece[] => words.map((text) => ({ change, text }));

/**
 * Merges adjacent changes into one removal and one addition. Changes that only whitespace separates are merged too, and both
 * merged pieces contain the whitespace.
 */
function mergeChanges(all: readonly Piece[]): Piece[] {
  const result: Piece[] = [];
  let [removed, added, same] = ['', '', ''];
  const push = (change: Piece['change'], text: string): void => {
    if (text !== '') result.push({ change, text });
  };
  const flush = (): void => {
    push('removed', removed);
    push('added', added);
    push('same', same);
    [removed, added, same] = ['', '', ''];
  };
  for (const { change, text } of all) {
    if (change === 'same') {
      same += text;
      continue;
    }
    if (isBlank(same) && removed + added !== '') [removed, added, same] = [removed + same, added + same, ''];
    else flush();
    if (change === 'removed') removed += text;
    else added += text;
  }
  flush();
  return result;
}
