import { SNIPPET } from '../../contract/limits.ts';
import { visibleText } from '../../contract/schema.ts';
import type { QmdResponse } from '../../contract/search.ts';
import { runOf } from '../search/run-text.ts';
import type { Hit } from '../search/search-index.ts';
import { snippetOf } from '../search/snippet.ts';
import { signatures } from '../store/entry.ts';
import { formatTime } from '../time/format-time.ts';
import { escapeMarkdown } from './escape-markdown.ts';

type Chunk = Omit<QmdResponse['results'][number], 'score'>;

/** Formats a fact as markdown, for clients that search documents. */
export function factChunk({ fact, spans }: Hit): Chunk {
  const { text } = snippetOf(fact.value, spans, SNIPPET.markdown);
  const snippet = `## ${headingOf(fact.key)}\n\nWritten by ${signature(fact)}\n\n${escapeMarkdown(text)}\n\n(category: ${fact.category})`;
  return {
    docid: `${fact.category}/${fact.key}`,
    snippet,
    collection: `helmdeck-${fact.category}`,
    file: `facts/${encoded(fact.key)}`,
    title: fact.key,
    start_line: 1,
    end_line: snippet.split('\n').length,
    ...signatures(fact),
    updated_at: formatTime(fact.updatedAt),
  };
}

/** Formats the audit row of a run. Its heading comes from the row's key, which no caller can choose. */
export function runChunk({ fact, spans }: Hit): Chunk {
  const { what, id } = runOf(fact.key);
  const title = what === 'pack' ? `Pack call: ${id}` : `Pipeline run: ${id}`;
  const { text } = snippetOf(fact.value, spans, SNIPPET.markdown);
  const snippet = `## ${title}\n\nRun by ${signature(fact)}\n\n${escapeMarkdown(text)}`;
  return {
    docid: fact.key,
    snippet,
    collection: `helmdeck-${fact.category}`,
    file: `audit/${what}/${encoded(id)}`,
    title,
    start_line: 1,
    end_line: snippet.split('\n').length,
    ...signatures(fact),
    updated_at: formatTime(fact.updatedAt),
  };
}

/**
 * The client that wrote it and when. It directly follows the heading, where quoted text cannot imitate it, and where a program
 * that truncates long snippets keeps it.
 */
const signature = ({ client, definedBy, updatedAt }: Hit['fact']): string =>
  `${client}${definedBy === undefined ? '' : `, by a pipeline of ${definedBy}`}, ${formatTime(updatedAt)}`;

/** Prevents a fact's key from imitating the heading of an audit row. */
const headingOf = (key: string): string => (/^(packcall|pipelinerun):/.test(visibleText(key)) ? `\\${key}` : key);

/** Encodes slashes, and names of dots only, so that the result is not a path. */
const encoded = (key: string): string => encodeURIComponent(key).replace(/^\.{1,2}$/, (dots) => '%2E'.repeat(dots.length));
