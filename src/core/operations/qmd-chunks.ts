import { SNIPPET } from '../../contract/limits.ts';
import type { QmdResponse } from '../../contract/search.ts';
import { visibleText } from '../../contract/text.ts';
import { runOf } from '../search/run-text.ts';
import type { Hit } from '../search/search-index.ts';
import { snippetOf } from '../search/snippet.ts';
import { signatures } from '../store/entry.ts';
import { formatTime } from '../time/format-time.ts';
import { escapeMarkdown } from './escape-markdown.ts';

type Chunk = Omit<QmdResponse['results'][number], 'score'>;

/** A fact as a piece of markdown, for programs that search documents. */
export function factChunk({ fact, spans }: Hit): Chunk {
  const { text } = snippetOf(fact.value, spans, SNIPPET.markdown);
  const snippet = `## ${titled(fact.key)}\n\nWritten by ${signature(fact)}\n\n${escapeMarkdown(text)}\n\n(category: ${fact.category})`;
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

/** A run as its record has it. Its heading comes from where the row stands, which nothing that anybody sends can choose. */
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
 * Who wrote it and when, so that a reader can weigh it. It follows the heading directly: quoted text cannot forge a line there,
 * and a program that cuts long snippets keeps it.
 */
const signature = ({ client, definedBy, updatedAt }: Hit['fact']): string =>
  `${client}${definedBy === undefined ? '' : `, by a pipeline of ${definedBy}`}, ${formatTime(updatedAt)}`;

/** Rows of the record have headings of their own, which no fact may bear. */
const titled = (key: string): string => (/^(packcall|pipelinerun):/.test(visibleText(key)) ? `\\${key}` : key);

/** No path: nothing in it leads up or down. */
const encoded = (key: string): string => encodeURIComponent(key).replace(/^\.{1,2}$/, (dots) => '%2E'.repeat(dots.length));
