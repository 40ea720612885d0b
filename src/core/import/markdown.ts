import { IMPORT_TEXT } from '../../contract/limits.ts';
import { type Block, blocksOf } from './blocks.ts';
import { Headings } from './headings.ts';
import { withSubject, type ImportEntry, type UnusableEntry, type SourceReader } from './import-entry.ts';
import { toCategory, toTags } from './naming.ts';

/** Words of one fact that become its tags; with those of its headings they are far fewer than a fact may have. */
const MOST_TAGS = 16;

/** Files of instructions and notes, such as CLAUDE.md, AGENTS.md and GEMINI.md: each item, paragraph and piece of code says something. */
export const readMarkdown: SourceReader = (text) => {
  const headings = new Headings();
  const found: ImportEntry[] = [];
  const left: UnusableEntry[] = [];
  for (const { line, kind: what, text: said, level } of blocksOf(text)) {
    if (what === 'heading') headings.push(level, said, line);
    else if (what === 'comment') left.push({ line, text: said, message: 'A comment, which nobody is meant to read.' });
    else if (what === 'property') left.push({ line, text: said, message: 'A setting of the file, not a fact.' });
    else if (/^@\S+$/.test(said))
      left.push({ line, text: said, message: 'It stands for another file; bring that one by itself.' });
    else found.push({ line, value: said, named: [said], tags: toTags(headings.currentPath()) });
  }
  return { entries: found, unusable: [...left, ...headings.unused] };
};

/** Notes of basic-memory: what is observed bears a category, hash tags and a context, and relations lead to other notes. */
export const readBasicMemoryNote: SourceReader = (text) => {
  const blocks = blocksOf(text);
  const { title, tags: common, kept, left } = propertiesOf(blocks);
  const headings = new Headings();
  const found: ImportEntry[] = [];
  // The title stands in every fact, and tells more there than as a tag.
  const above = (): string[] => headings.currentPath().filter((heading) => heading !== title && !CUSTOMARY.has(heading));
  for (const { line, kind: what, text: said, level } of blocks) {
    if (what === 'heading') headings.push(level, said, line);
    else if (what === 'comment') left.push({ line, text: said, message: 'A comment, which nobody is meant to read.' });
    else if (what !== 'property') found.push(noted(said, { line, item: what === 'item', title, tags: [...common, ...above()] }));
  }
  // Without a fact there is none that could bear them.
  return { entries: found, unusable: [...left, ...(found.length === 0 ? kept : []), ...headings.unused] };
};

/** Headings under which every note has the same. */
const CUSTOMARY: ReadonlySet<string> = new Set(['Observations', 'Relations']);

interface Place {
  readonly line: number;
  readonly item: boolean;
  readonly title: string;
  readonly tags: readonly string[];
}

function noted(said: string, { line, item, title, tags }: Place): ImportEntry {
  const relation = item ? relationIn(said) : undefined;
  if (relation) {
    const { type, target, rest } = relation;
    const value = `${title === '' ? 'This' : title} ${type.replaceAll('_', ' ')} ${target}${rest}`;
    return { line, value, named: [title, `${type} ${target}`], category: 'relations', tags: toTags([...tags, target]) };
  }
  const observed = item ? observationIn(said) : undefined;
  if (!observed) return { line, value: withSubject(title, said), named: [title, said], tags: toTags(tags) };
  const { category, text, words } = observed;
  return {
    line,
    value: withSubject(title, text),
    named: [title, text],
    // What is no category of ours is not lost.
    category: toCategory(category),
    tags: toTags([...tags, ...words, ...(toCategory(category) === undefined ? [category] : [])]),
  };
}

/** `relates_to [[Another note]] (why)`. A sentence that has a link in it is a sentence. */
function relationIn(said: string): { type: string; target: string; rest: string } | undefined {
  const [, type = '', target = '', rest = ''] =
    /^([\p{L}\p{N}_ -]{0,40})\[\[([^[\]\n]{1,200})\]\]\s*(|\([^()]*\))$/u.exec(said) ?? [];
  if (target.trim() === '' || type.trim().split(' ').length > 3) return undefined;
  return { type: type.trim() || 'links_to', target: target.trim(), rest: rest === '' ? '' : ` ${rest}` };
}

/** `[category] What is so #tag #another (context)`. */
function observationIn(said: string): { category: string; text: string; words: string[] } | undefined {
  const [, category = '', rest = ''] = /^\[([^[\]()\n]{1,64})\]\s+(\S[^]*)$/.exec(said) ?? [];
  // A box that is ticked, or not.
  if (rest === '' || /^[ xX/-]$/.test(category)) return undefined;
  const open = rest.endsWith(')') ? rest.lastIndexOf(' (') : -1;
  const [body, context] = open < 0 ? [rest, ''] : [rest.slice(0, open), rest.slice(open)];
  const words: string[] = [];
  let end = body.length;
  while (words.length < MOST_TAGS) {
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
  /** The settings that say so. */
  readonly kept: readonly UnusableEntry[];
  readonly left: UnusableEntry[];
}

/** What the settings at the top say of the whole note. */
function propertiesOf(blocks: readonly Block[]): Properties {
  const tags: string[] = [];
  const kept: UnusableEntry[] = [];
  const left: UnusableEntry[] = [];
  let title = '';
  let listing = false;
  for (const { line, kind: what, text } of blocks) {
    if (what !== 'property') continue;
    const setting = { line, text, message: 'A setting of the note, not a fact; its title and tags are kept.' };
    const [, name = '', value = ''] = /^([\w-]{1,64}):\s*([^]*)$/.exec(text) ?? [];
    const entries =
      name === 'tags' ? value.replaceAll(/[[\]]/g, '').split(',') : listing && text.startsWith('- ') ? [text.slice(2)] : [];
    listing = name === 'tags' || (listing && name === '');
    const plain = value.replaceAll(/^["']|["']$/g, '').trim();
    if (name === 'title' && title === '' && plain.length <= IMPORT_TEXT.name) title = plain;
    else if (entries.length > 0 && tags.length + entries.length <= MOST_TAGS / 2) tags.push(...entries);
    else {
      left.push(setting);
      continue;
    }
    kept.push(setting);
  }
  return { title, tags, kept, left };
}
