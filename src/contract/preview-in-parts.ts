import { Failure } from './failure.ts';
import type { SkippedEntry, ImportPreview } from './import-preview.ts';
import { IMPORT_TEXT } from './limits.ts';
import type { OperationRequest } from './operations.ts';
import type { MemoryClient } from './window.ts';

/** So much of a graph at a time: its lines stand for themselves, and few of them are more than may be asked at once. */
const PIECE = 128 * 1024;

/** A preview of all of it, however many requests that takes. */
export async function previewInParts(
  ask: MemoryClient,
  { text, ...asked }: OperationRequest<'previewImport'>,
): Promise<ImportPreview> {
  const [first = { line: 1, text: '' }, ...more] = piecesOf(text);
  // Said here as well: what is far larger would not even fit through the door that says so.
  if ([first, ...more].some((piece) => new TextEncoder().encode(piece.text).length > IMPORT_TEXT.bytes)) {
    throw new Failure(
      'invalid_input',
      `It is larger than ${IMPORT_TEXT.bytes / 1024} KiB; split it between two entries, and bring the parts one after the other.`,
    );
  }
  const preview = await ask('previewImport', { ...asked, text: first.text });
  const lines = new Map(preview.facts.map(({ key, line }) => [key, line]));
  for (const piece of more) {
    const next = await ask('previewImport', { ...asked, from: preview.from, text: piece.text, first_line: piece.line });
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
  message: `The same stands on line ${before} already.`,
});

/** Only a graph with a record on each line can be taken apart; anything else is asked whole, and refused when it is too much. */
function piecesOf(text: string): { line: number; text: string }[] {
  if (text.length <= PIECE || !isRecord(text.slice(0, Math.max(0, text.indexOf('\n'))))) return [{ line: 1, text }];
  const pieces: { line: number; text: string }[] = [];
  const lines = text.split('\n');
  let from = 0;
  let length = 0;
  for (const [index, line] of lines.entries()) {
    if (length + line.length > PIECE && index > from) {
      pieces.push({ line: from + 1, text: lines.slice(from, index).join('\n') });
      from = index;
      length = 0;
    }
    length += line.length + 1;
  }
  return [...pieces, { line: from + 1, text: lines.slice(from).join('\n') }];
}

function isRecord(line: string): boolean {
  try {
    const record: unknown = JSON.parse(line.replace(/^\uFEFF/, ''));
    return typeof record === 'object' && record !== null && 'type' in record;
  } catch {
    return false;
  }
}
