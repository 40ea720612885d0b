import type { ConnectionPlan } from '../../contract/client.ts';

type Line = ConnectionPlan['files'][number]['lines'][number];

/** Lines shown machine what changes. */
const AROUND = 3;
/** A line that somebody's program wrote may hold all there is. */
const WIDEST = 480;
/** Of such a line, shown before what changes in it. */
const LEAD = 40;

/** What changes between two texts, when that is in one place. */
export function changedLines(before: string, after: string): Line[] {
  const [old, now] = [linesOf(before), linesOf(after)];
  const shorter = Math.min(old.length, now.length);
  let top = 0;
  while (top < shorter && old[top] === now[top]) top += 1;
  let bottom = 0;
  while (bottom < shorter - top && old.at(-1 - bottom) === now.at(-1 - bottom)) bottom += 1;
  const changes = sameIn(old[top] ?? '', now[top] ?? '');
  const part = (lines: readonly string[], sign: Line['sign'], from: number, to: number): Line[] =>
    lines.slice(Math.max(0, from), to).map((text, at) => ({ sign, text: excerpt(text, at === 0 && sign !== ' ' ? changes : 0) }));
  return [
    ...part(old, ' ', top - AROUND, top),
    ...part(old, '-', top, old.length - bottom),
    ...part(now, '+', top, now.length - bottom),
    ...part(old, ' ', old.length - bottom, old.length - bottom + AROUND),
  ];
}

/** How far two lines are the same. */
function sameIn(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

function excerpt(line: string, changes: number): string {
  if (line.length <= WIDEST) return line;
  const from = Math.max(0, changes - LEAD);
  const end = from + WIDEST;
  return `${from > 0 ? '…' : ''}${line.slice(from, end)}${end < line.length ? '…' : ''}`;
}

/** The last line's end is no line of its own. */
const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/));
