import { listItemText } from './blocks.ts';
import { Headings } from './headings.ts';
import { type ImportEntry, type UnusableEntry, linesIn, type SourceReader, hasWords } from './import-entry.ts';
import { toTags } from './naming.ts';

/**
 * Reads the memory of ChatGPT or Claude, copied from its page or written by the model on request. Each line is an entry, with an
 * optional date, and can be below a heading. A list directly after an entry that ends with a colon belongs to that entry.
 */
export const readChatPage: SourceReader = (text) => {
  const headings = new Headings();
  const entries: ImportEntry[] = [];
  const unusable: UnusableEntry[] = [];
  let entry: { line: number; lines: string[]; headings: string[] } | undefined;
  const close = (): void => {
    if (entry) entries.push(entryOf(entry));
    entry = undefined;
  };
  for (const [index, raw] of linesIn(text).entries()) {
    const line = index + 1;
    const trimmed = raw.trim();
    const item = listItemText(raw);
    const heading = headingIn(trimmed);
    if (trimmed === '' || !hasWords(trimmed)) close();
    else if (entry && item !== undefined && entry.lines[0]?.endsWith(':')) entry.lines.push(`- ${item}`);
    else {
      close();
      if (heading) headings.push(heading.level, heading.text, line);
      else if (isLabel(trimmed)) unusable.push({ line, text: trimmed, message: 'This is a label on the page, not a fact.' });
      else entry = { line, lines: [item ?? trimmed], headings: headings.currentPath() };
    }
  }
  close();
  return { entries, unusable: [...unusable, ...headings.unused] };
};

/** Creates an entry. The date becomes a tag, because the date is not part of the fact itself. */
function entryOf({
  line,
  lines,
  headings,
}: {
  line: number;
  lines: readonly string[];
  headings: readonly string[];
}): ImportEntry {
  const [first = '', ...more] = lines;
  const [, day = '', dated = ''] = /^\[([^\]]{1,40})\]\s*[-–—:]?\s+(\S.*)$/.exec(first) ?? [];
  const value = [dated === '' ? first : dated, ...more].join('\n');
  return { line, value, keyParts: [value], tags: toTags([...headings, ...(/\d/.test(day) ? [day] : day === '' ? [] : [day])]) };
}

/** The section titles of Claude's memory. The titles lose their Markdown markers when they are copied from the page. */
const SECTIONS: ReadonlySet<string> = new Set([
  'work context',
  'personal context',
  'top of mind',
  'brief history',
  'recent months',
  'earlier context',
  'long-term background',
  'other instructions',
  'purpose & context',
  'current state',
  'key learnings & principles',
  'approach & patterns',
  'tools & resources',
]);
const SUBSECTIONS: ReadonlySet<string> = new Set(['recent months', 'earlier context', 'long-term background']);

function headingIn(line: string): { text: string; level: number } | undefined {
  const [, signs = '', named = ''] = /^(#{1,6})\s+(\S.*)$/.exec(line) ?? [];
  if (named !== '') return { text: named, level: signs.length };
  const [, stars = '', marked = ''] = /^(\*{1,3}|_{2})([^*_][^*]{0,80}?)\1:?$/.exec(line) ?? [];
  const text = (marked === '' ? line : marked).replace(/:$/, '').trim();
  const known = SECTIONS.has(text.toLowerCase());
  // A bold line is a heading of a lower level than all headings with `#`.
  if (marked !== '' && !/[.!?]$/.test(text)) return { text, level: stars.length === 1 ? 8 : 7 };
  return known ? { text, level: SUBSECTIONS.has(text.toLowerCase()) ? 8 : 7 } : undefined;
}

const LABELS: ReadonlySet<string> = new Set([
  'saved memories',
  'manage memories',
  'memories',
  'memory',
  'manage',
  'manage edits',
  'view and edit memory',
  'view and edit your memory',
  'search',
  'search memories',
  'personalization',
  'settings',
  'delete',
  'delete all',
  'clear all',
  'edit',
  'copy',
  'cancel',
  'close',
  'done',
]);

const isLabel = (line: string): boolean =>
  LABELS.has(line.toLowerCase()) ||
  /^(?:`{3,}|~{3,})/.test(line) ||
  /^(?:last )?updated .{0,40}\b(?:ago|today|yesterday|from your chats)$/i.test(line);
