import { Failure } from '../../contract/failure.ts';
import type { ImportSource } from '../../contract/import-preview.ts';
import { blocksOf } from './blocks.ts';
import { readChatPage } from './chat-page.ts';
import type { SourceReader } from './import-entry.ts';
import { readGraph } from './knowledge-graph.ts';
import { readMarkdown, readBasicMemoryNote } from './markdown.ts';

export const sourceReaders: Readonly<Record<ImportSource, SourceReader>> = {
  'mcp-memory': readGraph,
  markdown: readMarkdown,
  'basic-memory': readBasicMemoryNote,
  chatgpt: readChatPage,
  claude: readChatPage,
};

/**
 * Guesses which program wrote a text. Lists below headings count as Markdown. Paragraphs without headings count as a chat page.
 */
export function detectSource(text: string, name = ''): ImportSource {
  const start = text.replace(/^\uFEFF/, '').trimStart();
  if (/^[[{]/.test(start) && !/^\[[^\]]{1,40}\]\s/.test(start)) return graphSource(start);
  if (/^(?:claude|agents|gemini)(?:\.local)?\.md$/i.test(name)) return 'markdown';
  const blocks = blocksOf(text);
  const contains = (kind: string, pattern: RegExp): boolean =>
    blocks.some((block) => block.kind === kind && pattern.test(block.text));
  if (contains('property', /^permalink:/) || contains('item', /^\[[^[\]()\n]{2,64}\]\s+\S|\[\[[^[\]\n]+\]\]/))
    return 'basic-memory';
  if (/\.(?:md|mdc|markdown)$/i.test(name) || contains('heading', /./)) return 'markdown';
  if (contains('paragraph', /^(?:\*\*[^*\n]{1,80}\*\*:?|work context|personal context|top of mind)$/im)) return 'claude';
  if (contains('paragraph', /^(?:saved|manage) memories$/im)) return 'chatgpt';
  return contains('item', /^(?!\[[^\]]*\d)/) ? 'markdown' : 'chatgpt';
}

function graphSource(text: string): ImportSource {
  if (/^[[{][\s[{"]{0,200}(?:(?:type|name|entityType|from|observations)"|(?:entities|relations)")/.test(text))
    return 'mcp-memory';
  if (/^\{\s{0,20}"key"/.test(text)) {
    throw new Failure('invalid_input', 'This is an export of Helmdeck Memory itself; import it as a file of facts instead.');
  }
  throw new Failure(
    'invalid_input',
    'This JSON has an unknown format; choose the program that it comes from, or copy its entries as text.',
  );
}
