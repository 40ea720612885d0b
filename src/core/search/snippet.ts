import type { Span } from './fact-reader.ts';
import { characterBoundary } from './words.ts';

export interface Snippet {
  readonly text: string;
  /** Index in the value at which the snippet starts. `end` is the index after its last character. */
  readonly start: number;
  readonly end: number;
}

const space = /\s/;
/** Maximum characters by which the start or the end of a snippet moves to reach a space. */
const MAX_SHIFT = 24;

/** Returns the part of a value that contains the highest number of distinct query words, at most `most` characters long. */
export function snippetOf(value: string, spans: readonly Span[], most: number): Snippet {
  if (value.length <= most) return { text: value, start: 0, end: value.length };
  const { first, last } = densest(spans, most);
  // Centre the words, if there is enough text on both sides.
  const spare = Math.max(0, most - (last - first));
  const wanted = Math.max(0, Math.min(first - (spare >> 1), value.length - most));
  const start = wanted === 0 ? 0 : afterSpace(value, wanted, first);
  const limit = Math.min(value.length, start + most);
  const end = limit === value.length ? limit : beforeSpace(value, limit, last);
  return { text: value.slice(start, end), start, end };
}

/** Returns the range with the highest number of distinct words. If several ranges tie, returns the first. */
function densest(spans: readonly Span[], most: number): { first: number; last: number } {
  const ordered = spans.toSorted((one, other) => one.start - other.start);
  const inside = new Map<number, number>();
  let best = { words: 0, first: 0, last: 0 };
  let from = 0;
  for (const span of ordered) {
    inside.set(span.word, (inside.get(span.word) ?? 0) + 1);
    for (let oldest = ordered[from]; oldest && span.end - oldest.start > most && oldest !== span; oldest = ordered[from]) {
      const left = (inside.get(oldest.word) ?? 0) - 1;
      if (left === 0) inside.delete(oldest.word);
      else inside.set(oldest.word, left);
      from += 1;
    }
    if (inside.size > best.words) best = { words: inside.size, first: ordered[from]?.start ?? 0, last: span.end };
  }
  return best;
}

function afterSpace(value: string, at: number, latest: number): number {
  const most = Math.min(at + MAX_SHIFT, latest);
  for (let place = at; place < most; place += 1) if (space.test(value.charAt(place))) return place + 1;
  return characterBoundary(value, at);
}

function beforeSpace(value: string, at: number, earliest: number): number {
  const least = Math.max(at - MAX_SHIFT, earliest);
  for (let place = at; place > least; place -= 1) if (space.test(value.charAt(place))) return place;
  return characterBoundary(value, at);
}
