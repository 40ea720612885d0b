import { IMPORT_REQUEST } from '../../../contract/limits.ts';
import type { ImportReceipt } from '../../../contract/transfer.ts';
import type { MemoryClient } from '../../../contract/window.ts';

/** Maximum bytes of all lines in one request. The listener accepts 1 MiB. Every line of a valid fact fits in one request. */
const BATCH_BYTES = 512 * 1024;
const UTF8 = new TextEncoder();

interface Batch {
  readonly first: number;
  readonly lines: readonly string[];
}

export type ImportReport = Omit<ImportReceipt, 'dry_run'>;

/** Exports all facts as JSON lines, oldest first, in the same format as the command-line export. */
export async function exportAll(call: MemoryClient, onProgress: (done: number) => void): Promise<Blob> {
  const parts: string[] = [];
  let done = 0;
  for (let cursor: string | undefined; ;) {
    const { facts, next_cursor: next } = await call('export', cursor === undefined ? {} : { cursor });
    parts.push(...facts.map((fact) => `${JSON.stringify(fact)}\n`));
    done += facts.length;
    onProgress(done);
    if (next === undefined) return new Blob(parts, { type: 'application/x-ndjson' });
    cursor = next;
  }
}

interface Options {
  readonly dry: boolean;
  readonly onProgress: (done: number) => void;
  readonly signal: AbortSignal;
}

/** Imports lines in batches. Reports and skips invalid lines. Stops before the next batch if the signal is aborted. */
export async function importAll(
  call: MemoryClient,
  lines: readonly string[],
  { dry, onProgress, signal }: Options,
): Promise<ImportReport> {
  const total: ImportReport = { created: 0, updated: 0, unchanged: 0, dropped: 0, errors: [] };
  for (const { first, lines: batch } of batchesOf(lines)) {
    if (signal.aborted) return total;
    const tooLong = batch.flatMap((line, index) => (sizeOf(line) > BATCH_BYTES ? [first + index] : []));
    // Replace lines that are too long with blank lines, which the import ignores, so that other lines keep their numbers.
    const sent = batch.map((line, index) => (tooLong.includes(first + index) ? '' : line));
    const receipt = await call('import', { lines: sent, first_line: first, dry_run: dry });
    for (const name of ['created', 'updated', 'unchanged', 'dropped'] as const) total[name] += receipt[name];
    if (receipt.written) total.written = { ...receipt.written, since: total.written?.since ?? receipt.written.since };
    const refused = tooLong.map((line) => ({ line, message: 'The line is too long for a fact. Export the facts again.' }));
    total.errors.push(...[...receipt.errors, ...refused].toSorted((one, other) => one.line - other.line));
    onProgress(first + batch.length - 1);
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

/** Returns the size of a line as a JSON string in a request, in bytes. */
const sizeOf = (line: string): number => UTF8.encode(JSON.stringify(line)).length;
