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

/** What a text is, as far as it shows. Lists under headings are Markdown whoever wrote them; plain paragraphs are a page. */
export function detectSource(text: string, name = ''): ImportSource {
  const begins = text.replace(/^\uFEFF/, '').trimStart();
  if (/^[[{]/.test(begins) && !/^\[[^\]]{1,40}\]\s/.test(begins)) return graphIn(begins);
  if (/^(?:claude|agents|gemini)(?:\.local)?\.md$/i.test(name)) return 'markdown';
  const blocks = blocksOf(text);
  const said = (what: string, pattern: RegExp): boolean =>
    blocks.some((block) => block.kind === what && pattern.test(block.text));
  if (said('property', /^permalink:/) || said('item', /^\[[^[\]()\n]{2,64}\]\s+\S|\[\[[^[\]\n]+\]\]/)) return 'basic-memory';
  if (/\.(?:md|mdc|markdown)$/i.test(name) || said('heading', /./)) return 'markdown';
  if (said('paragraph', /^(?:\*\*[^*\n]{1,80}\*\*:?|work context|personal context|top of mind)$/im)) return 'claude';
  if (said('paragraph', /^(?:saved|manage) memories$/im)) return 'chatgpt';
  return said('item', /^(?!\[[^\]]*\d)/) ? 'markdown' : 'chatgpt';
}

function graphIn(text: string): ImportSource {
  if (/^[[{][\s[{"]{0,200}(?:(?:type|name|entityType|from|observations)"|(?:entities|relations)")/.test(text))
    return 'mcp-memory';
  if (/^\{\s{0,20}"key"/.test(text)) {
    throw new Failure('invalid_input', 'This is an export of Helmdeck Memory itself; import it as facts in a file.');
  }
  throw new Failure(
    'invalid_input',
    'This is JSON of a kind that is not known here; say what it is, or copy its entries as text.',
  );
}
