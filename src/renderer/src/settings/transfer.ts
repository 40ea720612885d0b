import { IMPORT_REQUEST } from '../../../contract/limits.ts';
import type { ImportReceipt } from '../../../contract/transfer.ts';
import type { MemoryClient } from '../../../contract/window.ts';

/** What one request may hold, with room for what stands around the lines. */
const BATCH_BYTES = 512 * 1024;
/** The longest line a fact can make is far below; a longer one is none. */
const UTF8 = new TextEncoder();

interface Batch {
  readonly first: number;
  readonly lines: readonly string[];
}

export type Report = Omit<ImportReceipt, 'dry_run'>;

/** Every fact as a line, the oldest first, as the command line writes them too. */
export async function exportAll(ask: MemoryClient, told: (done: number) => void): Promise<Blob> {
  const parts: string[] = [];
  let done = 0;
  for (let cursor: string | undefined; ;) {
    const { facts, next_cursor: next } = await ask('export', cursor === undefined ? {} : { cursor });
    parts.push(...facts.map((fact) => `${JSON.stringify(fact)}\n`));
    done += facts.length;
    told(done);
    if (next === undefined) return new Blob(parts, { type: 'application/x-ndjson' });
    cursor = next;
  }
}

interface Import {
  readonly dry: boolean;
  readonly told: (done: number) => void;
  readonly signal: AbortSignal;
}

/** What could be imported, or was until it was stopped. Lines that are wrong are told and left out. */
export async function importAll(ask: MemoryClient, lines: readonly string[], { dry, told, signal }: Import): Promise<Report> {
  const total: Report = { created: 0, updated: 0, unchanged: 0, dropped: 0, errors: [] };
  for (const { first, lines: batch } of batchesOf(lines)) {
    if (signal.aborted) return total;
    const long = batch.flatMap((line, index) => (sizeOf(line) > BATCH_BYTES ? [first + index] : []));
    // A line that is not sent keeps its number, and a blank one is skipped.
    const sent = batch.map((line, index) => (long.includes(first + index) ? '' : line));
    const receipt = await ask('import', { lines: sent, first_line: first, dry_run: dry });
    for (const name of ['created', 'updated', 'unchanged', 'dropped'] as const) total[name] += receipt[name];
    if (receipt.written) total.written = { ...receipt.written, since: total.written?.since ?? receipt.written.since };
    const tooLong = long.map((line) => ({ line, message: 'The line is longer than any fact can be; export it anew.' }));
    total.errors.push(...[...receipt.errors, ...tooLong].toSorted((one, other) => one.line - other.line));
    told(first + batch.length - 1);
  }
  return total;
}

function* batchesOf(lines: readonly string[]): Generator<Batch> {
  let first = 0;
  let bytes = 0;
  for (const [index, line] of lines.entries()) {
    const size = sizeOf(line);
    if (index > first && (index - first === IMPORT_REQUEST.lines || bytes + size > BATCH_BYTES)) {
      yield { first: first + 1, lines: lines.slice(first, index) };
      first = index;
      bytes = 0;
    }
    bytes += size;
  }
  if (first < lines.length) yield { first: first + 1, lines: lines.slice(first) };
}

/** As it travels, in quotes. */
const sizeOf = (line: string): number => UTF8.encode(JSON.stringify(line)).length;
