import { IMPORT_TEXT } from '../../contract/limits.ts';
import { type Block, blocksOf } from './blocks.ts';
import { Headings } from './headings.ts';
import { withSubject, type ImportEntry, type UnusableEntry, type SourceReader } from './import-entry.ts';
import { toCategory, toTags } from './naming.ts';

/** Maximum hash tags of one fact. Even with the tags of its headings, the fact stays far below the limit of tags. */
const MAX_TAGS = 16;

/**
 * Reads files of instructions and notes, such as CLAUDE.md, AGENTS.md and GEMINI.md. Each list item, paragraph and code block
 * becomes an entry.
 */
export const readMarkdown: SourceReader = (text) => {
  const headings = new Headings();
  const entries: ImportEntry[] = [];
  const unusable: UnusableEntry[] = [];
  for (const { line, kind, text: source, level } of blocksOf(text)) {
    if (kind === 'heading') headings.push(level, source, line);
    else if (kind === 'comment') unusable.push({ line, text: source, message: 'This is a comment, not a fact.' });
    else if (kind === 'property')
      unusable.push({ line, text: source, message: 'This is a setting in the front matter of the file, not a fact.' });
    else if (/^@\S+$/.test(source))
      unusable.push({ line, text: source, message: 'This is a reference to another file; import that file separately.' });
    else entries.push({ line, value: source, keyParts: [source], tags: toTags(headings.currentPath()) });
  }
  return { entries, unusable: [...unusable, ...headings.unused] };
};

/**
 * Reads a note of the program basic-memory. Observations have a category, hash tags and a context. Relations link to other notes.
 */
export const readBasicMemoryNote: SourceReader = (text) => {
  const blocks = blocksOf(text);
  const { title, tags: common, used, unusable } = propertiesOf(blocks);
  const headings = new Headings();
  const entries: ImportEntry[] = [];
  // Omit the title from the tags, because it is already part of every fact.
  const above = (): string[] => headings.currentPath().filter((heading) => heading !== title && !STANDARD_HEADINGS.has(heading));
  for (const { line, kind, text: source, level } of blocks) {
    if (kind === 'heading') headings.push(level, source, line);
    else if (kind === 'comment') unusable.push({ line, text: source, message: 'This is a comment, not a fact.' });
    else if (kind !== 'property')
      entries.push(noteEntry(source, { line, item: kind === 'item', title, tags: [...common, ...above()] }));
  }
  // The title and the tags are used only if the note contains a fact. Otherwise they are reported as unusable.
  return { entries, unusable: [...unusable, ...(entries.length === 0 ? used : []), ...headings.unused] };
};

/** Headings that every note of basic-memory has. */
const STANDARD_HEADINGS: ReadonlySet<string> = new Set(['Observations', 'Relations']);

interface NoteContext {
  readonly line: number;
  readonly item: boolean;
  readonly title: string;
  readonly tags: readonly string[];
}

function noteEntry(source: string, { line, item, title, tags }: NoteContext): ImportEntry {
  const relation = item ? relationIn(source) : undefined;
  if (relation) {
    const { type, target, rest } = relation;
    const value = `${title === '' ? 'This' : title} ${type.replaceAll('_', ' ')} ${target}${rest}`;
    return { line, value, keyParts: [title, `${type} ${target}`], category: 'relations', tags: toTags([...tags, target]) };
  }
  const observation = item ? observationIn(source) : undefined;
  if (!observation) return { line, value: withSubject(title, source), keyParts: [title, source], tags: toTags(tags) };
  const { category, text, words } = observation;
  return {
    line,
    value: withSubject(title, text),
    keyParts: [title, text],
    // If the name is not a valid category, it becomes a tag.
    category: toCategory(category),
    tags: toTags([...tags, ...words, ...(toCategory(category) === undefined ? [category] : [])]),
  };
}

/** Parses `relates_to [[Another note]] (why)`. A sentence that contains a link is not a relation. */
function relationIn(source: string): { type: string; target: string; rest: string } | undefined {
  const [, type = '', target = '', rest = ''] =
    /^([\p{L}\p{N}_ -]{0,40})\[\[([^[\]\n]{1,200})\]\]\s*(|\([^()]*\))$/u.exec(source) ?? [];
  if (target.trim() === '' || type.trim().split(' ').length > 3) return undefined;
  return { type: type.trim() || 'links_to', target: target.trim(), rest: rest === '' ? '' : ` ${rest}` };
}

/** Parses `[category] Text #tag #another (context)`. */
function observationIn(source: string): { category: string; text: string; words: string[] } | undefined {
  const [, category = '', rest = ''] = /^\[([^[\]()\n]{1,64})\]\s+(\S[^]*)$/.exec(source) ?? [];
  // Without text, or with a checkbox such as `[x]`, the item is not an observation.
  if (rest === '' || /^[ xX/-]$/.test(category)) return undefined;
  const open = rest.endsWith(')') ? rest.lastIndexOf(' (') : -1;
  const [body, context] = open < 0 ? [rest, ''] : [rest.slice(0, open), rest.slice(open)];
  const words: string[] = [];
  let end = body.length;
  while (words.length < MAX_TAGS) {
    const start = body.lastIndexOf(' ', end - 1);
    const word = body.slice(start + 1, end);
    if (start < 0 || !/^#[\p{L}\p{N}_/-]+$/u.test(word)) break;
    words.unshift(word);
    end = start;
  }
  return { category, text: `${body.slice(0, end)}${context}`, words };
}

interface Properties {
  readonly title: string;
  readonly tags: readonly string[];
  /** The lines of the front matter that contain the title and the tags. */
  readonly used: readonly UnusableEntry[];
  readonly unusable: UnusableEntry[];
}

function propertiesOf(blocks: readonly Block[]): Properties {
  const tags: string[] = [];
  const used: UnusableEntry[] = [];
  const unusable: UnusableEntry[] = [];
  let title = '';
  let listing = false;
  for (const { line, kind, text } of blocks) {
    if (kind !== 'property') continue;
    const setting = {
      line,
      text,
      message:
        'This is a setting in the front matter of the note, not a fact. Of the front matter, only `title` and `tags` are used.',
    };
    const [, name = '', value = ''] = /^([\w-]{1,64}):\s*([^]*)$/.exec(text) ?? [];
    const entries =
      name === 'tags' ? value.replaceAll(/[[\]]/g, '').split(',') : listing && text.startsWith('- ') ? [text.slice(2)] : [];
    listing = name === 'tags' || (listing && name === '');
    const plain = value.replaceAll(/^["']|["']$/g, '').trim();
    if (name === 'title' && title === '' && plain.length <= IMPORT_TEXT.name) title = plain;
    else if (entries.length > 0 && tags.length + entries.length <= MAX_TAGS / 2) tags.push(...entries);
    else {
      unusable.push(setting);
      continue;
    }
    used.push(setting);
  }
  return { title, tags, used, unusable };
}
