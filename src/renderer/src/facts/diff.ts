export interface Piece {
  readonly what: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** Words and the blanks between them. */
const WORDS = /\s+|[^\s]+/g;
/** Beyond so many comparisons nobody reads the result word by word either. */
const MOST = 1_000_000;

/** A word against blanks: the shorter text has fewer than so many, or nobody would compare. */
const WORD = 1024;

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

/** What shares most words stays, and among those what shares most blanks; the rest is removed or added. */
function between(old: readonly string[], present: readonly string[]): Piece[] {
  if (old.length * present.length > MOST) return [...marked('removed', old), ...marked('added', present)];
  // common[i][j]: how much the rests from i and from j share at most.
  const common = Array.from({ length: old.length + 1 }, () => new Uint32Array(present.length + 1));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  const along = (i: number, j: number): number => at(i + 1, j + 1) + (isBlank(old[i]) ? 1 : WORD);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = present.length - 1; j >= 0; j -= 1) {
      const row = common[i];
      if (row) row[j] = Math.max(at(i + 1, j), at(i, j + 1), old[i] === present[j] ? along(i, j) : 0);
    }
  }
  const pieces: Piece[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < present.length) {
    if (old[i] === present[j] && along(i, j) === at(i, j)) {
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

const isBlank = (word = ''): boolean => word.trim() === '';

const marked = (what: Piece['what'], words: readonly string[]): Piece[] => words.map((text) => ({ what, text }));

/** In a row of changes what went stands before what came, each in one piece: a blank that stayed between two of them went and came too. */
function joined(pieces: readonly Piece[]): Piece[] {
  const all: Piece[] = [];
  let [removed, added] = ['', ''];
  const tell = (what: Piece['what'], text: string): void => {
    if (text !== '') all.push({ what, text });
  };
  const end = (): void => {
    tell('removed', removed);
    tell('added', added);
    [removed, added] = ['', ''];
  };
  let same = '';
  for (const { what, text } of pieces) {
    if (what === 'same') {
      same += text;
      continue;
    }
    if (isBlank(same) && removed + added !== '') [removed, added] = [removed + same, added + same];
    else {
      end();
      tell('same', same);
    }
    same = '';
    if (what === 'removed') removed += text;
    else added += text;
  }
  end();
  tell('same', same);
  return all;
}
