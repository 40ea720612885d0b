import { IMPORT_REQUEST } from '../../contract/limits.ts';
import type { ImportReceipt } from '../../contract/transfer.ts';
import type { CommandContext } from './command-context.ts';
import { decodeUtf8, formatCount } from './layout.ts';
import type { MemoryConnection } from './memory-connection.ts';

/** Maximum bytes of the lines in one request, as JSON strings. The limit of the whole request is 1 MiB. */
const BATCH_BYTES = 900 * 1024;
/** Maximum number of rejected lines to print. The remaining lines are only counted. */
export const ERRORS_SHOWN = 20;

/** Imports lines in batches. Returns one receipt with the totals of all batches. */
export async function importLines(
  lines: AsyncIterable<NumberedLine>,
  dry: boolean,
  context: CommandContext,
): Promise<ImportReceipt> {
  const total: ImportReceipt = { created: 0, updated: 0, unchanged: 0, dropped: 0, errors: [] };
  let upTo = 0;
  using progress = context.terminal.showProgress('Importing…');
  try {
    for await (const batch of batchesOf(lines)) {
      if (context.interrupted.aborted) throw context.interrupted.reason;
      // Open the memory only when a batch is ready, so that a command that pipes lines to this one can use the memory first.
      await importBatch(await context.memory(), batch, { dry, total });
      upTo = batch.at(-1)?.number ?? upTo;
      progress.update(`Importing… ${formatCount(upTo, 'line')}`);
    }
  } catch (error) {
    progress[Symbol.dispose]();
    if (context.interrupted.aborted || upTo > 0) {
      context.terminal.printToStderr(
        `The import stopped after ${formatCount(upTo, 'line')}. Import the same file again to continue.`,
      );
    }
    throw error;
  }
  return total;
}

async function* batchesOf(lines: AsyncIterable<NumberedLine>): AsyncGenerator<readonly NumberedLine[]> {
  let batch: NumberedLine[] = [];
  let bytes = 0;
  for await (const line of lines) {
    const size = Buffer.byteLength(JSON.stringify(line.text ?? ''));
    if (batch.length === IMPORT_REQUEST.lines || (bytes + size > BATCH_BYTES && batch.length > 0)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(line);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

async function importBatch(
  memory: MemoryConnection,
  batch: readonly NumberedLine[],
  { dry, total }: { dry: boolean; total: ImportReceipt },
): Promise<void> {
  const unreadable = batch.filter(({ text }) => text === undefined || isTooLong(text));
  const bad = new Set(unreadable);
  const receipt = await memory.call('import', {
    // Send an empty line instead of an unreadable line, so that later lines keep their numbers. The memory skips empty lines.
    lines: batch.map((line) => (bad.has(line) ? '' : (line.text ?? ''))),
    first_line: batch[0]?.number ?? 1,
    dry_run: dry,
  });
  for (const name of ['created', 'updated', 'unchanged', 'dropped'] as const) total[name] += receipt[name];
  if (receipt.written) total.written = { ...receipt.written, since: total.written?.since ?? receipt.written.since };
  const own = unreadable.map(({ number }) => ({
    line: number,
    message: 'The line is not UTF-8, or is longer than any valid fact. Export the facts again.',
  }));
  total.errors.push(...[...receipt.errors, ...own].toSorted((one, other) => one.line - other.line));
}

const isTooLong = (text: string): boolean => Buffer.byteLength(JSON.stringify(text)) > BATCH_BYTES;

export function formatReceipt({ created, updated, unchanged, dropped, errors }: ImportReceipt, dry: boolean): string {
  const parts = [
    `${created} new`,
    `${updated} changed`,
    `${unchanged} unchanged`,
    ...(dropped > 0 ? [`${dropped} skipped because they would expire in less than an hour`] : []),
    ...(errors.length > 0 ? [`${formatCount(errors.length, 'line')} rejected`] : []),
  ];
  return `${dry ? 'Would import' : 'Imported'}: ${parts.join(', ')}.`;
}

export const printErrors = (context: CommandContext, errors: ImportReceipt['errors']): void =>
  printSome(
    context,
    errors.map(({ line, message }) => `Line ${line}: ${message}`),
    'more line',
  );

/** Prints the first rows as hints, then how many rows remain. */
export function printSome(context: CommandContext, rows: readonly string[], one: string, many?: string): void {
  context.hint(...rows.slice(0, ERRORS_SHOWN));
  if (rows.length > ERRORS_SHOWN)
    context.hint(`and ${formatCount(rows.length - ERRORS_SHOWN, one, many)}; use --json to see all of them.`);
}

/** A line of the imported file. `text` is undefined if the line is too long or not UTF-8. */
export interface NumberedLine {
  readonly number: number;
  readonly text: string | undefined;
}

const LINE_END = 0x0a;

/**
 * Splits a stream into lines. Buffers at most `most` bytes of a line, so that a file without line breaks does not fill the RAM.
 */
export async function* splitLines(chunks: AsyncIterable<Buffer>, most: number): AsyncGenerator<NumberedLine> {
  let number = 1;
  let held: Buffer[] = [];
  let bytes = 0;
  const take = (part: Buffer): void => {
    bytes += part.length;
    if (bytes <= most) held.push(part);
  };
  const line = (): NumberedLine => {
    const text = bytes <= most ? decodeUtf8(Buffer.concat(held)) : undefined;
    held = [];
    bytes = 0;
    return { number: number++, text };
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_END); end !== -1; end = chunk.indexOf(LINE_END, start)) {
      take(chunk.subarray(start, end));
      start = end + 1;
      yield line();
    }
    take(chunk.subarray(start));
  }
  if (bytes > 0) yield line();
}
