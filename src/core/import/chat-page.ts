import { listItemText } from './blocks.ts';
import { Headings } from './headings.ts';
import { type ImportEntry, type UnusableEntry, linesIn, type SourceReader, hasWords } from './import-entry.ts';
import { toTags } from './naming.ts';

/**
 * The memory of ChatGPT or Claude as its page shows it, or as they write it down when asked: an entry a line, maybe with the day
 * it was saved, under headings or not. What an entry introduces by a colon, as a list right below, belongs to it.
 */
export const readChatPage: SourceReader = (text) => {
  const headings = new Headings();
  const found: ImportEntry[] = [];
  const left: UnusableEntry[] = [];
  let entry: { line: number; said: string[]; under: string[] } | undefined;
  const close = (): void => {
    if (entry) found.push(entryOf(entry));
    entry = undefined;
  };
  for (const [index, raw] of linesIn(text).entries()) {
    const line = index + 1;
    const said = raw.trim();
    const item = listItemText(raw);
    const heading = headingIn(said);
    if (said === '' || !hasWords(said)) close();
    else if (entry && item !== undefined && entry.said[0]?.endsWith(':')) entry.said.push(`- ${item}`);
    else {
      close();
      if (heading) headings.push(heading.level, heading.text, line);
      else if (isLabel(said)) left.push({ line, text: said, message: 'A label of the page, not a memory.' });
      else entry = { line, said: [item ?? said], under: headings.currentPath() };
    }
  }
  close();
  return { entries: found, unusable: [...left, ...headings.unused] };
};

/** The day is kept as a tag: it says when, and not what. */
function entryOf({ line, said, under }: { line: number; said: readonly string[]; under: readonly string[] }): ImportEntry {
  const [first = '', ...more] = said;
  const [, day = '', dated = ''] = /^\[([^\]]{1,40})\]\s*[-–—:]?\s+(\S.*)$/.exec(first) ?? [];
  const value = [dated === '' ? first : dated, ...more].join('\n');
  return { line, value, named: [value], tags: toTags([...under, ...(/\d/.test(day) ? [day] : day === '' ? [] : [day])]) };
}

/** The sections of Claude's memory, which lose their signs when they are copied as they are shown. */
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
const WITHIN: ReadonlySet<string> = new Set(['recent months', 'earlier context', 'long-term background']);

function headingIn(line: string): { text: string; level: number } | undefined {
  const [, signs = '', named = ''] = /^(#{1,6})\s+(\S.*)$/.exec(line) ?? [];
  if (named !== '') return { text: named, level: signs.length };
  const [, stars = '', marked = ''] = /^(\*{1,3}|_{2})([^*_][^*]{0,80}?)\1:?$/.exec(line) ?? [];
  const text = (marked === '' ? line : marked).replace(/:$/, '').trim();
  const known = SECTIONS.has(text.toLowerCase());
  // Below every heading that signs make, however deep.
  if (marked !== '' && !/[.!?]$/.test(text)) return { text, level: stars.length === 1 ? 8 : 7 };
  return known ? { text, level: WITHIN.has(text.toLowerCase()) ? 8 : 7 } : undefined;
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
