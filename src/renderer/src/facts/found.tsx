/** So many characters before the first word that was found stay: a row shows about fifty. */
const BEFORE = 16;

/** A word as the reason of a hit spells it, and where it was found. */
const NAMED = /"([^"]+)"(?: for "[^"]*")? in ([a-z, ]+)/g;

/** Of a pattern. */
const SIGNS = /[\\^$.*+?()[\]{}|/]/g;

/** The reason of a hit, each place named once. */
export function reasonOf(why: string): string {
  const placeOf = (part: string): number => part.lastIndexOf(' in ');
  const places = Map.groupBy(why.split('; '), (part) => part.slice(placeOf(part)));
  return [...places].map(([place, parts]) => parts.map((part) => part.slice(0, placeOf(part))).join(', ') + place).join('; ');
}

/** What was found in a value, from shortly before the first word of it on, with these words marked. */
export function Found({ text, why }: { text: string; why: string }) {
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
  const words = [...why.matchAll(NAMED)].filter(([, , places]) => places?.includes('value')).map(([, word = '']) => word);
  if (words.length === 0) return [];
  // The longest first: another may be how it begins. What is found is a stem, so a word goes on behind it.
  const any = words.toSorted((one, other) => other.length - one.length).map((word) => word.replaceAll(SIGNS, String.raw`\$&`));
  const found = text.matchAll(new RegExp(`(?<![\\p{L}\\p{N}])(?:${any.join('|')})[\\p{L}\\p{N}]*`, 'giu'));
  return [...found].map(({ index, 0: { length } }) => ({ from: index, to: index + length }));
}

/** Between words, if one ends there. */
function startOf(text: string, first: number): number {
  if (first <= BEFORE) return 0;
  const blank = text.indexOf(' ', first - BEFORE);
  return blank === -1 || blank >= first ? first : blank + 1;
}
