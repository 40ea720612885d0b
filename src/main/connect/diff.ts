import type { ConnectionPlan } from '../../contract/client.ts';

type Line = ConnectionPlan['files'][number]['lines'][number];

/** Number of unchanged lines shown before and after a change. */
const CONTEXT = 3;
/** Maximum characters of a shown line. Longer lines are shortened, because some files have all their text on one line. */
const MAX_WIDTH = 480;
/** Number of characters shown before the change in a shortened line. */
const LEAD = 40;

/** Returns the lines from the first to the last difference of two texts, with unchanged lines around them. */
export function changedLines(before: string, after: string): Line[] {
  if (before === after) return [];
  const [old, now] = [linesOf(before), linesOf(after)];
  const shorter = Math.min(old.length, now.length);
  let top = 0;
  while (top < shorter && old[top] === now[top]) top += 1;
  let bottom = 0;
  while (bottom < shorter - top && old.at(-1 - bottom) === now.at(-1 - bottom)) bottom += 1;
  const firstDifference = commonPrefix(old[top] ?? '', now[top] ?? '');
  const part = (lines: readonly string[], sign: Line['sign'], from: number, to: number): Line[] =>
    lines
      .slice(Math.max(0, from), to)
      .map((text, at) => ({ sign, text: excerpt(text, at === 0 && sign !== ' ' ? firstDifference : 0) }));
  return [
    ...part(old, ' ', top - CONTEXT, top),
    ...part(old, '-', top, old.length - bottom),
    ...part(now, '+', top, now.length - bottom),
    ...part(old, ' ', old.length - bottom, old.length - bottom + CONTEXT),
  ];
}

function commonPrefix(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

function excerpt(line: string, firstDifference: number): string {
  if (line.length <= MAX_WIDTH) return line;
  const from = Math.max(0, firstDifference - LEAD);
  const end = from + MAX_WIDTH;
  return `${from > 0 ? '…' : ''}${line.slice(from, end)}${end < line.length ? '…' : ''}`;
}

/** Splits a text into lines. A line break at the end of the text does not start another line. */
const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/));
