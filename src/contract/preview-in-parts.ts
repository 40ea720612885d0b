import { Failure } from './failure.ts';
import type { SkippedEntry, ImportPreview } from './import-preview.ts';
import { IMPORT_TEXT } from './limits.ts';
import type { OperationRequest } from './operations.ts';
import type { MemoryClient } from './window.ts';

/** Size of a part, in characters. A part of this size stays below the limits of one request. */
const PART_LENGTH = 128 * 1024;

/** Previews a large import in several requests, and merges the results. */
export async function previewInParts(
  ask: MemoryClient,
  { text, ...asked }: OperationRequest<'previewImport'>,
): Promise<ImportPreview> {
  const [first = { line: 1, text: '' }, ...more] = splitIntoParts(text);
  // The program checks this too, but refuses the request body of a far larger text without naming the reason.
  if ([first, ...more].some((part) => new TextEncoder().encode(part.text).length > IMPORT_TEXT.bytes)) {
    throw new Failure(
      'invalid_input',
      `The text is larger than ${IMPORT_TEXT.bytes / 1024} KiB; split it between two entries and import the parts one by one.`,
    );
  }
  const preview = await ask('previewImport', { ...asked, text: first.text });
  const lines = new Map(preview.facts.map(({ key, line }) => [key, line]));
  for (const part of more) {
    const next = await ask('previewImport', { ...asked, from: preview.from, text: part.text, first_line: part.line });
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

/** Splits only a knowledge graph, which has one record per line. Any other text stays whole, even if it is too large. */
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
