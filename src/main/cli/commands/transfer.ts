import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { IMPORT_SOURCES } from '../../../contract/names.ts';
import { previewInParts } from '../../../contract/preview-in-parts.ts';
import { errorCodeOf } from '../../../core/file/files.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { UsageError } from '../errors.ts';
import { exits } from '../exit-codes.ts';
import { importPreview, isForeign, parseSource, peekStart, readText, showPreview } from '../import-foreign.ts';
import { formatReceipt, importLines, printErrors, splitLines } from '../import-lines.ts';
import { readInputFile } from '../input-file.ts';
import { formatCount, formatEntries, jsonText } from '../layout.ts';
import { given, parseLifetime } from '../values.ts';

/** Maximum bytes of one line. The line of the largest fact is shorter, even if every character is escaped. */
const MAX_LINE_BYTES = 512 * 1024;

export const exportFacts = command({
  name: 'export',
  description: 'Exports all facts with their values, one JSON object per line.',
  arguments: { file: { description: 'A new file. Default: standard output.', optional: true } },
  details: ['The export is not encrypted. The file is readable only by you; delete it when you no longer need it.'],
  examples: ['export facts.ndjson', 'export | gzip > facts.ndjson.gz'],
  async run({ arguments: { file } }, context) {
    using progress = context.terminal.showProgress('Exporting…');
    const exportTo = async (write: (lines: readonly string[]) => Promise<void>): Promise<number> => {
      let facts = 0;
      for await (const page of pagesOf(context)) {
        await write(page.map(jsonText));
        facts += page.length;
        progress.update(`Exporting… ${formatCount(facts, 'fact')}`);
      }
      return facts;
    };
    if (file === undefined || file === '-') {
      await exportTo((lines) => context.terminal.print(...lines));
      return;
    }
    const facts = await intoNewFile(file, (handle) =>
      // Use `appendFile`, because on a full disk `write` can store only a part of the data without an error.
      exportTo((lines) => handle.appendFile(lines.map((line) => `${line}\n`).join(''))),
    );
    progress[Symbol.dispose]();
    await context.printResult({ file, facts }, () => [
      `Exported ${formatCount(facts, 'fact')} to ${file}. The file is not encrypted.`,
    ]);
  },
});

export const salvageFacts = command({
  name: 'salvage',
  description: 'Exports the facts of a damaged memory that can still be read.',
  arguments: { file: { description: 'A new file.' } },
  details: [
    'Helmdeck Memory must not be running. Exports every fact whose seal is intact, and does not change the memory. Afterwards, move memory.db and memory.db-wal away or restore a backup, then import the file. The file contains no history and no record of runs. It is not encrypted: delete it when you no longer need it, also if the command was interrupted.',
  ],
  examples: ['salvage facts.ndjson'],
  async run({ arguments: { file } }, context) {
    context.requireMemoryFile();
    await context.requireNoProgram();
    const { environment } = context;
    const { folder } = context.config;
    const [{ salvage }, { systemClock }, { keySources }, { factDetail }] = await Promise.all([
      import('../../../core/upkeep/salvage.ts'),
      import('../../../core/time/clock.ts'),
      import('../../../core/crypto/keys/key-sources.ts'),
      import('../../../core/operations/facts.ts'),
    ]);
    const sources = keySources({ environment, folder, desktop: false });
    const saved = await salvage({ folder, clock: systemClock, sources, subject: 'me' }, (found) =>
      intoNewFile(file, async (handle) => {
        let facts = 0;
        for (const entry of found.facts) {
          await handle.appendFile(`${jsonText(factDetail(entry))}\n`);
          facts += 1;
        }
        return { file, facts, broken: found.broken(), unreadable: found.unreadable() };
      }),
    );
    await context.printResult(saved, () => [
      `Saved ${formatCount(saved.facts, 'fact')} to ${file}. The file is not encrypted.`,
      ...(saved.broken > 0 ? [`Skipped ${formatEntries(saved.broken)} with a broken seal.`] : []),
      ...(saved.unreadable ? ['Part of the memory could not be read at all.'] : []),
    ]);
  },
});

export const importFacts = command({
  name: 'import',
  description: 'Imports facts from an export or from the memory of another program.',
  arguments: { file: { description: 'The file, or - for standard input.' } },
  options: {
    from: {
      value: '<source>',
      description: `The program that wrote the file: ${IMPORT_SOURCES.join(', ')}. If you leave it out, it is detected from the file if possible.`,
    },
    category: { value: '<name>', description: 'Category for facts from another program.' },
    ttl: { value: '<time>', description: 'Lifetime of facts from another program. Default: 90d.' },
    'dry-run': { description: 'Shows what would be imported, without changing anything.' },
  },
  details: [
    'Facts from an export keep their remaining lifetime. Facts that would expire in less than an hour are skipped. Invalid lines are reported with their numbers, and all other lines are imported.',
    "In a file from another program, each entry becomes a fact. The fact's key is made from the text of the entry, so importing the same file again creates no duplicates. Entries that were already imported, likely secrets, and entries without a fact are skipped and listed.",
    'To continue after an interruption, import the same file again. Facts that were already imported do not change.',
  ],
  examples: [
    'import facts.ndjson --dry-run',
    'gunzip -c facts.ndjson.gz | helmdeck-memory import -',
    'import memory.jsonl --dry-run',
    'import CLAUDE.md --category conventions --ttl 1y',
    'import saved-memories.txt --from chatgpt',
  ],
  async run({ arguments: { file }, options: { from, category, ttl, 'dry-run': dry } }, context) {
    const source = parseSource(from);
    const seconds = parseLifetime(ttl);
    const { begins, chunks } = await peekStart(
      file === '-' ? context.terminal.input() : readInputFile(file, context.interrupted),
    );
    if (source !== undefined || isForeign(begins, file)) {
      const text = await readText(chunks);
      const preview = await previewInParts((name, input) => context.call(name, input), {
        text,
        name: basename(file),
        ...given({ from: source, category, ttl_seconds: seconds }),
      });
      return await (dry ? showPreview(preview, context) : importPreview(preview, context));
    }
    if (category !== undefined || seconds !== undefined) {
      throw new UsageError(
        '--category and --ttl apply only to files from other programs (--from). Facts from an export keep their category and lifetime.',
        'import',
      );
    }
    const total = await importLines(splitLines(chunks, MAX_LINE_BYTES), dry, context);
    await context.printResult({ ...total, ...(dry && { dry_run: true }) }, () => [formatReceipt(total, dry)]);
    printErrors(context, total.errors);
    return total.errors.length > 0 ? exits.failed.code : exits.done.code;
  },
});

async function* pagesOf(context: CommandContext) {
  let cursor: string | undefined;
  do {
    const page = await context.call('export', given({ cursor }));
    yield page.facts;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

/** Creates a file and lets `write` fill it. Fails if the file exists. Deletes the new file if writing fails. */
async function intoNewFile<T>(file: string, write: (handle: FileHandle) => Promise<T>): Promise<T> {
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  const handle = await open(file, O_CREAT | O_EXCL | O_WRONLY, 0o600).catch((cause: unknown) => {
    throw new Failure('invalid_input', 'This file already exists or cannot be created. Choose another file.', { cause });
  });
  try {
    const written = await write(handle);
    await handle.sync();
    return written;
  } catch (error) {
    await rm(file, { force: true });
    if (errorCodeOf(error) !== 'ENOSPC') throw error;
    throw new Failure('disk_full', 'The disk has no space for the export. Choose a file on another disk.', { cause: error });
  } finally {
    await handle.close();
  }
}
