import { Failure } from './failure.ts';
import type { SkippedEntry, ImportPreview } from './import-preview.ts';
import { IMPORT_TEXT } from './limits.ts';
import type { OperationRequest } from './operations.ts';
import type { MemoryClient } from './window.ts';

/** Size of a part in UTF-16 units. Parts of this size stay below the limits of one import request. */
const PART_LENGTH = 128 * 1024;

/** Previews an import of any size: splits a large text into several requests and merges their results. */
export async function previewInParts(
  call: MemoryClient,
  { text, ...options }: OperationRequest<'previewImport'>,
): Promise<ImportPreview> {
  const [first = { line: 1, text: '' }, ...more] = splitIntoParts(text);
  // Checked here too, because the server's error for a too large request body does not say how to split the text.
  if ([first, ...more].some((part) => new TextEncoder().encode(part.text).length > IMPORT_TEXT.bytes)) {
    throw new Failure(
      'invalid_input',
      `The text is larger than ${IMPORT_TEXT.bytes / 1024} KiB; split the text before the start of an entry and import each part separately.`,
    );
  }
  const preview = await call('previewImport', { ...options, text: first.text });
  const lines = new Map(preview.facts.map(({ key, line }) => [key, line]));
  for (const part of more) {
    const next = await call('previewImport', { ...options, from: preview.from, text: part.text, first_line: part.line });
    for (const fact of next.facts) {
      const line = lines.get(fact.key);
      if (line === undefined) preview.facts.push(fact);
      else preview.left_out.push(repeated(fact, line));
      lines.set(fact.key, line ?? fact.line);
    }
    preview.left_out.push(...next.left_out);
  }
  return preview;
}

const repeated = ({ line, value }: ImportPreview['facts'][number], before: number): SkippedEntry => ({
  line,
  text: value.slice(0, 120).toWellFormed(),
  why: 'repeated',
  message: `Same as line ${before}.`,
});

/**
 * Splits an MCP knowledge graph between lines, because each line is a record. Any other text is returned as one part, even if it
 * is too large for one request.
 */
function splitIntoParts(text: string): { line: number; text: string }[] {
  if (text.length <= PART_LENGTH || !isRecord(text.slice(0, Math.max(0, text.indexOf('\n'))))) return [{ line: 1, text }];
  const parts: { line: number; text: string }[] = [];
  const lines = text.split('\n');
  let from = 0;
  let length = 0;
  for (const [index, line] of lines.entries()) {
    if (length + line.length > PART_LENGTH && index > from) {
      parts.push({ line: from + 1, text: lines.slice(from, index).join('\n') });
      from = index;
      length = 0;
    }
    length += line.length + 1;
  }
  return [...parts, { line: from + 1, text: lines.slice(from).join('\n') }];
}

function isRecord(line: string): boolean {
  try {
    const record: unknown = JSON.parse(line.replace(/^\uFEFF/, ''));
    return typeof record === 'object' && record !== null && 'type' in record;
  } catch {
    return false;
  }
}
