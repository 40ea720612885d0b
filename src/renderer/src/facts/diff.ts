export interface Piece {
  readonly what: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** Words and the blanks between them. */
const WORDS = /\s+|[^\s]+/g;
/** Beyond so many comparisons nobody reads the result word by word either. */
const MOST = 1_000_000;

/** What became of a text, word by word. */
export function diffWords(before: string, after: string): Piece[] {
  const [old, present] = [before.match(WORDS) ?? [], after.match(WORDS) ?? []];
  const start = sharedStart(old, present);
  const end = sharedEnd(old.slice(start), present.slice(start));
  const middle = between(old.slice(start, old.length - end), present.slice(start, present.length - end));
  return joined([
    ...present.slice(0, start).map((text): Piece => ({ what: 'same', text })),
    ...middle,
    ...present.slice(present.length - end).map((text): Piece => ({ what: 'same', text })),
  ]);
}

function sharedStart(one: readonly string[], other: readonly string[]): number {
  const different = one.findIndex((word, index) => word !== other[index]);
  return different === -1 ? one.length : different;
}

const sharedEnd = (one: readonly string[], other: readonly string[]): number => {
  const most = Math.min(one.length, other.length);
  return Math.min(most, sharedStart(one.toReversed(), other.toReversed()));
};

/** The longest common run of words stays; the rest is removed or added. */
function between(old: readonly string[], present: readonly string[]): Piece[] {
  if (old.length * present.length > MOST) return [...marked('removed', old), ...marked('added', present)];
  // common[i][j]: how many words the rests from i and from j share at most.
  const common = Array.from({ length: old.length + 1 }, () => new Uint32Array(present.length + 1));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = present.length - 1; j >= 0; j -= 1) {
      const row = common[i];
      if (row) row[j] = old[i] === present[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const pieces: Piece[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < present.length) {
    if (old[i] === present[j]) {
      pieces.push({ what: 'same', text: present[j] ?? '' });
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      pieces.push({ what: 'removed', text: old[i] ?? '' });
      i += 1;
    } else {
      pieces.push({ what: 'added', text: present[j] ?? '' });
      j += 1;
    }
  }
  return [...pieces, ...marked('removed', old.slice(i)), ...marked('added', present.slice(j))];
}

const marked = (what: Piece['what'], words: readonly string[]): Piece[] => words.map((text) => ({ what, text }));

function joined(pieces: readonly Piece[]): Piece[] {
  const all: { what: Piece['what']; text: string }[] = [];
  for (const { what, text } of pieces) {
    const last = all.at(-1);
    if (last?.what === what) last.text += text;
    else all.push({ what, text });
  }
  return all;
}
