/** Maximum number of characters shown before the first match. Small, because a row shows only about 50 characters. */
const CONTEXT = 16;

/** Matches one part of a search result's `why`, such as `"deploy" in key, value`. Captures the word and the fields. */
const REASON = /"([^"]+)"(?: for "[^"]*")? in ([a-z, ]+)/g;

const REGEXP_SYNTAX = /[\\^$.*+?()[\]{}|/]/g;

/** Groups the words of a search result's `why` by the fields that contain the words. */
export function groupReasons(why: string): string {
  const fieldAt = (part: string): number => part.lastIndexOf(' in ');
  const fields = Map.groupBy(why.split('; '), (part) => part.slice(fieldAt(part)));
  return [...fields].map(([field, parts]) => parts.map((part) => part.slice(0, fieldAt(part))).join(', ') + field).join('; ');
}

/** Shows the part of a value that matched a search, with the matching words marked. */
export function Snippet({ text, why }: { text: string; why: string }) {
  const spans = spansOf(text, why);
  const start = startOf(text, spans[0]?.from ?? 0);
  const ends = [start, ...spans.map(({ to }) => to)];
  return (
    <>
      {start > 0 && '…'}
      {spans.map(({ from, to }, index) => (
        <span key={from}>
          {text.slice(ends[index], from)}
          <mark>{text.slice(from, to)}</mark>
        </span>
      ))}
      {text.slice(ends.at(-1))}
    </>
  );
}

interface Span {
  readonly from: number;
  readonly to: number;
}

function spansOf(text: string, why: string): Span[] {
  const words = [...why.matchAll(REASON)].filter(([, , fields]) => fields?.includes('value')).map(([, word = '']) => word);
  if (words.length === 0) return [];
  // Sort the longest words first, because a word can be a prefix of another word. `why` contains word stems, so the pattern also
  // matches the rest of each word.
  const patterns = words
    .toSorted((one, other) => other.length - one.length)
    .map((word) => word.replaceAll(REGEXP_SYNTAX, String.raw`\$&`));
  const found = text.matchAll(new RegExp(`(?<![\\p{L}\\p{N}])(?:${patterns.join('|')})[\\p{L}\\p{N}]*`, 'giu'));
  return [...found].map(({ index, 0: { length } }) => ({ from: index, to: index + length }));
}

/** Returns the index of the first character to show, at the start of a word. */
function startOf(text: string, first: number): number {
  if (first <= CONTEXT) return 0;
  const blank = text.indexOf(' ', first - CONTEXT);
  return blank === -1 || blank >= first ? first : blank + 1;
}
