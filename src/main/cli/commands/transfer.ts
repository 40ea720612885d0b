import { constants, createReadStream } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { Failure } from '../../../contract/failure.ts';
import { TRANSFER } from '../../../contract/limits.ts';
import type { ImportReceipt } from '../../../contract/transfer.ts';
import { command } from '../command.ts';
import type { Desk } from '../desk.ts';
import { exits } from '../exit-codes.ts';
import { counted, jsonText } from '../layout.ts';
import { linesOf, type NumberedLine } from '../lines.ts';
import type { MemoryAtHand } from '../memory-at-hand.ts';

/** The longest line that can hold a fact, every character of it written as an escape. */
const LONGEST_LINE = 512 * 1024;
/** As JSON within JSON a batch grows, and a request holds 1 MiB. */
const BATCH_BYTES = 900 * 1024;
const ERRORS_TOLD = 20;

export const exportFacts = command({
  name: 'export',
  says: 'Writes all facts with their values, one JSON object a line.',
  arguments: { file: { says: 'A file that does not exist yet; standard output without it.', optional: true } },
  more: ['The facts are in clear there. The file is made so that only you can read it; delete it when it has done its work.'],
  examples: ['export facts.ndjson', 'export | gzip > facts.ndjson.gz'],
  async run({ arguments: { file } }, desk) {
    const memory = await desk.memory();
    using progress = desk.terminal.working('Exporting…');
    const count = async (write: (lines: readonly string[]) => Promise<void>): Promise<number> => {
      let facts = 0;
      for await (const page of pagesOf(memory)) {
        await write(page.map(jsonText));
        facts += page.length;
        progress.update(`Exporting… ${counted(facts, 'fact')}`);
      }
      return facts;
    };
    if (file === undefined || file === '-') {
      await count((lines) => desk.terminal.say(...lines));
      return;
    }
    const facts = await intoNewFile(file, (handle) =>
      // `write` may take a part only, as on a disk that fills up; this takes all or fails.
      count((lines) => handle.appendFile(lines.map((line) => `${line}\n`).join(''))),
    );
    progress[Symbol.dispose]();
    await desk.answer({ file, facts }, () => [`Exported ${counted(facts, 'fact')} to ${file}, in clear.`]);
  },
});

export const importFacts = command({
  name: 'import',
  says: 'Remembers facts from lines as an export writes them.',
  arguments: { file: { says: 'The file, or - for standard input.' } },
  options: { 'dry-run': { says: 'Checks every line, and changes nothing.' } },
  more: [
    'Facts keep the time that they have left. One that has less than an hour left is dropped; a line that is wrong is told with its number, and the others go on.',
    'To go on after an interruption, import the same file again: what is there already stays as it is.',
  ],
  examples: ['import facts.ndjson --dry-run', 'gunzip -c facts.ndjson.gz | helmdeck-memory import -'],
  async run({ arguments: { file }, options }, desk) {
    const total: ImportReceipt = { created: 0, updated: 0, unchanged: 0, dropped: 0, errors: [] };
    let upTo = 0;
    using progress = desk.terminal.working('Importing…');
    try {
      for await (const batch of batchesOf(
        linesOf(file === '-' ? desk.terminal.input() : contentOf(file, desk.interrupted), LONGEST_LINE),
      )) {
        if (desk.interrupted.aborted) throw desk.interrupted.reason;
        // Opened when there is something to import: until then it is free for whoever writes the lines.
        await importBatch(await desk.memory(), batch, { dry: options['dry-run'], total });
        upTo = batch.at(-1)?.number ?? upTo;
        progress.update(`Importing… ${counted(upTo, 'line')}`);
      }
    } catch (error) {
      progress[Symbol.dispose]();
      if (desk.interrupted.aborted || upTo > 0) {
        desk.terminal.tell(`It ended early: ${counted(upTo, 'line')} were read. Import the same file again to go on.`);
      }
      throw error;
    }
    progress[Symbol.dispose]();
    const receipt = { ...total, ...(options['dry-run'] && { dry_run: true }) };
    await desk.answer(receipt, () => [summary(total, options['dry-run'])]);
    if (!desk.json) tellErrors(desk, total.errors);
    return total.errors.length > 0 ? exits.failed.code : exits.done.code;
  },
});

async function* pagesOf(memory: MemoryAtHand) {
  let cursor: string | undefined;
  do {
    const page = await memory.call('export', cursor === undefined ? {} : { cursor });
    yield page.facts;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

/** Never over a file that is there, and none is left behind that holds half of it. */
async function intoNewFile<T>(file: string, write: (handle: FileHandle) => Promise<T>): Promise<T> {
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  const handle = await open(file, O_CREAT | O_EXCL | O_WRONLY, 0o600).catch((cause: unknown) => {
    throw new Failure('invalid_input', 'This file exists already, or cannot be made there; name another one.', { cause });
  });
  try {
    const written = await write(handle);
    await handle.sync();
    return written;
  } catch (error) {
    await rm(file, { force: true });
    throw full(error) ?? error;
  } finally {
    await handle.close();
  }
}

const full = (cause: unknown): Failure | undefined =>
  cause instanceof Error && 'code' in cause && cause.code === 'ENOSPC'
    ? new Failure('disk_full', 'There is no room for the export; name a file on another disk.', { cause })
    : undefined;

async function* contentOf(file: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(file, { signal })) yield chunk as Buffer;
  } catch (cause) {
    throw new Failure('invalid_input', 'The file cannot be read; check its path and its permissions.', { cause });
  }
}

async function* batchesOf(lines: AsyncIterable<NumberedLine>): AsyncGenerator<readonly NumberedLine[]> {
  let batch: NumberedLine[] = [];
  let bytes = 0;
  for await (const line of lines) {
    const size = Buffer.byteLength(JSON.stringify(line.text ?? ''));
    if (batch.length === TRANSFER.lines || (bytes + size > BATCH_BYTES && batch.length > 0)) {
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
  memory: MemoryAtHand,
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
  const own = unreadable.map(({ number }) => ({
    line: number,
    message: 'The line is not UTF-8, or longer than any fact can be; export it anew.',
  }));
  total.errors.push(...[...receipt.errors, ...own].toSorted((one, other) => one.line - other.line));
}

const isTooLong = (text: string): boolean => Buffer.byteLength(JSON.stringify(text)) > BATCH_BYTES;

function summary({ created, updated, unchanged, dropped, errors }: ImportReceipt, dry: boolean): string {
  const parts = [
    `${created} new`,
    `${updated} changed`,
    `${unchanged} known already`,
    ...(dropped > 0 ? [`${dropped} dropped with less than an hour left`] : []),
    ...(errors.length > 0 ? [`${counted(errors.length, 'line')} refused`] : []),
  ];
  return `${dry ? 'Would import' : 'Imported'}: ${parts.join(', ')}.`;
}

function tellErrors(desk: Desk, errors: ImportReceipt['errors']): void {
  desk.terminal.tell(...errors.slice(0, ERRORS_TOLD).map(({ line, message }) => `Line ${line}: ${message}`));
  if (errors.length > ERRORS_TOLD)
    desk.terminal.tell(`and ${counted(errors.length - ERRORS_TOLD, 'more line')}; --json tells all of them.`);
}
