import { IMPORT_REQUEST } from '../../contract/limits.ts';
import type { ImportReceipt } from '../../contract/transfer.ts';
import type { CommandContext } from './command-context.ts';
import { formatCount } from './layout.ts';
import type { MemoryConnection } from './memory-connection.ts';
import type { NumberedLine } from './split-lines.ts';

/** As JSON within JSON a batch grows, and a request holds 1 MiB. */
const BATCH_BYTES = 900 * 1024;
/** Of what was refused or left out; the rest is counted. */
export const ERRORS_SHOWN = 20;

/** Every way to write many facts ends here. */
export async function importLines(
  lines: AsyncIterable<NumberedLine>,
  dry: boolean,
  desk: CommandContext,
): Promise<ImportReceipt> {
  const total: ImportReceipt = { created: 0, updated: 0, unchanged: 0, dropped: 0, errors: [] };
  let upTo = 0;
  using progress = desk.terminal.showProgress('Importing…');
  try {
    for await (const batch of batchesOf(lines)) {
      if (desk.interrupted.aborted) throw desk.interrupted.reason;
      // Opened when there is something to import: until then it is free for whoever writes the lines.
      await importBatch(await desk.memory(), batch, { dry, total });
      upTo = batch.at(-1)?.number ?? upTo;
      progress.update(`Importing… ${formatCount(upTo, 'line')}`);
    }
  } catch (error) {
    progress[Symbol.dispose]();
    if (desk.interrupted.aborted || upTo > 0) {
      desk.terminal.printToStderr(`It ended early: ${formatCount(upTo, 'line')} were read. Import the same file again to go on.`);
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
    // A line that is not sent keeps its number, and a blank one is skipped.
    lines: batch.map((line) => (bad.has(line) ? '' : (line.text ?? ''))),
    first_line: batch[0]?.number ?? 1,
    dry_run: dry,
  });
  for (const name of ['created', 'updated', 'unchanged', 'dropped'] as const) total[name] += receipt[name];
  if (receipt.written) total.written = { ...receipt.written, since: total.written?.since ?? receipt.written.since };
  const own = unreadable.map(({ number }) => ({
    line: number,
    message: 'The line is not UTF-8, or longer than any fact can be; export it anew.',
  }));
  total.errors.push(...[...receipt.errors, ...own].toSorted((one, other) => one.line - other.line));
}

const isTooLong = (text: string): boolean => Buffer.byteLength(JSON.stringify(text)) > BATCH_BYTES;

export function formatReceipt({ created, updated, unchanged, dropped, errors }: ImportReceipt, dry: boolean): string {
  const parts = [
    `${created} new`,
    `${updated} changed`,
    `${unchanged} known already`,
    ...(dropped > 0 ? [`${dropped} dropped with less than an hour left`] : []),
    ...(errors.length > 0 ? [`${formatCount(errors.length, 'line')} refused`] : []),
  ];
  return `${dry ? 'Would import' : 'Imported'}: ${parts.join(', ')}.`;
}

export function printErrors(desk: CommandContext, errors: ImportReceipt['errors']): void {
  desk.terminal.printToStderr(...errors.slice(0, ERRORS_SHOWN).map(({ line, message }) => `Line ${line}: ${message}`));
  if (errors.length > ERRORS_SHOWN)
    desk.terminal.printToStderr(`and ${formatCount(errors.length - ERRORS_SHOWN, 'more line')}; --json tells all of them.`);
}
