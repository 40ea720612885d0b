import type { Source } from '../../contract/bring.ts';
import { Failure } from '../../contract/failure.ts';
import { blocksOf } from './blocks.ts';
import type { Reader } from './entry.ts';
import { readGraph } from './graph.ts';
import { readMarkdown, readNote } from './markdown.ts';
import { readPage } from './page.ts';

export const readers: Readonly<Record<Source, Reader>> = {
  'mcp-memory': readGraph,
  markdown: readMarkdown,
  'basic-memory': readNote,
  chatgpt: readPage,
  claude: readPage,
};

/** What a text is, as far as it shows. Lists under headings are Markdown whoever wrote them; plain paragraphs are a page. */
export function sourceOf(text: string, name = ''): Source {
  const begins = text.replace(/^\uFEFF/, '').trimStart();
  if (/^[[{]/.test(begins) && !/^\[[^\]]{1,40}\]\s/.test(begins)) return graphIn(begins);
  if (/^(?:claude|agents|gemini)(?:\.local)?\.md$/i.test(name)) return 'markdown';
  const blocks = blocksOf(text);
  const said = (what: string, pattern: RegExp): boolean =>
    blocks.some((block) => block.what === what && pattern.test(block.text));
  if (said('property', /^permalink:/) || said('item', /^\[[^[\]()\n]{2,64}\]\s+\S|\[\[[^[\]\n]+\]\]/)) return 'basic-memory';
  if (/\.(?:md|mdc|markdown)$/i.test(name) || said('heading', /./)) return 'markdown';
  if (said('paragraph', /^(?:\*\*[^*\n]{1,80}\*\*:?|work context|personal context|top of mind)$/im)) return 'claude';
  if (said('paragraph', /^(?:saved|manage) memories$/im)) return 'chatgpt';
  return said('item', /^(?!\[[^\]]*\d)/) ? 'markdown' : 'chatgpt';
}

function graphIn(text: string): Source {
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
