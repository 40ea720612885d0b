import { constants } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { IMPORT_SOURCES } from '../../../contract/limits.ts';
import { previewInParts } from '../../../contract/preview-in-parts.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { isForeign, peekStart, parseSource, readText } from '../foreign.ts';
import { importPreview, showPreview } from '../import-foreign.ts';
import { importLines, formatReceipt, printErrors } from '../import-lines.ts';
import { readInputFile } from '../input-file.ts';
import { formatCount, jsonText } from '../layout.ts';
import type { MemoryConnection } from '../memory-connection.ts';
import { splitLines } from '../split-lines.ts';
import { UsageError } from '../usage-error.ts';
import { parseLifetime } from '../values.ts';

/** The longest line that can hold a fact, every character of it written as an escape. */
const LONGEST_LINE = 512 * 1024;

export const exportFacts = command({
  name: 'export',
  says: 'Writes all facts with their values, one JSON object a line.',
  arguments: { file: { says: 'A file that does not exist yet; standard output without it.', optional: true } },
  more: ['The facts are in clear there. The file is made so that only you can read it; delete it when it has done its work.'],
  examples: ['export facts.ndjson', 'export | gzip > facts.ndjson.gz'],
  async run({ arguments: { file } }, desk) {
    const memory = await desk.memory();
    using progress = desk.terminal.showProgress('Exporting…');
    const count = async (write: (lines: readonly string[]) => Promise<void>): Promise<number> => {
      let facts = 0;
      for await (const page of pagesOf(memory)) {
        await write(page.map(jsonText));
        facts += page.length;
        progress.update(`Exporting… ${formatCount(facts, 'fact')}`);
      }
      return facts;
    };
    if (file === undefined || file === '-') {
      await count((lines) => desk.terminal.print(...lines));
      return;
    }
    const facts = await intoNewFile(file, (handle) =>
      // `write` may take a part only, as on a disk that fills up; this takes all or fails.
      count((lines) => handle.appendFile(lines.map((line) => `${line}\n`).join(''))),
    );
    progress[Symbol.dispose]();
    await desk.printResult({ file, facts }, () => [`Exported ${formatCount(facts, 'fact')} to ${file}, in clear.`]);
  },
});

export const salvageFacts = command({
  name: 'salvage',
  says: 'Writes what can still be read of a damaged memory as an export.',
  arguments: { file: { says: 'A file that does not exist yet.' } },
  more: [
    'The program must be closed. Each fact is taken by itself, and only where its seal is whole. The memory stays as it is: move memory.db and memory.db-wal away afterwards, or restore a backup, and import the file. Its history and the record of runs are not in it. The file is in clear and outside the care of the program: delete it when it has done its work, also if the command was interrupted.',
  ],
  examples: ['salvage facts.ndjson'],
  async run({ arguments: { file } }, desk) {
    await desk.requireNoProgram();
    const { environment } = desk;
    const { folder } = desk.config;
    const [{ salvage }, { systemClock }, { keySources }, { factDetail: detail }] = await Promise.all([
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
          await handle.appendFile(`${jsonText(detail(entry))}\n`);
          facts += 1;
        }
        return { file, facts, broken: found.broken(), unreadable: found.unreadable() };
      }),
    );
    await desk.printResult(saved, () => [
      `Saved ${formatCount(saved.facts, 'fact')} to ${file}, in clear.`,
      ...(saved.broken > 0 ? [`${formatCount(saved.broken, 'entry', 'entries')} with a broken seal are left out.`] : []),
      ...(saved.unreadable ? ['A part of the memory could not be read at all.'] : []),
    ]);
  },
});

export const importFacts = command({
  name: 'import',
  says: 'Remembers facts from an export, or from what another memory holds.',
  arguments: { file: { says: 'The file, or - for standard input.' } },
  options: {
    from: {
      value: '<source>',
      says: `What another program wrote: ${IMPORT_SOURCES.join(', ')}. Told from the file where it shows.`,
    },
    category: { value: '<name>', says: 'The group of all facts from another memory.' },
    ttl: { value: '<time>', says: 'How long facts from another memory live; 90d unless told.' },
    'dry-run': { says: 'Shows or checks what would be imported, and changes nothing.' },
  },
  more: [
    'Facts of an export keep the time that they have left. One that has less than an hour left is dropped; a line that is wrong is told with its number, and the others go on.',
    'From another memory each entry becomes a fact whose key is made from its text, so importing the same file again makes no second set. What is known already, looks like a secret or is no fact is left out and told.',
    'To go on after an interruption, import the same file again: what is there already stays as it is.',
  ],
  examples: [
    'import facts.ndjson --dry-run',
    'gunzip -c facts.ndjson.gz | helmdeck-memory import -',
    'import memory.jsonl --dry-run',
    'import CLAUDE.md --category conventions --ttl 1y',
    'import saved-memories.txt --from chatgpt',
  ],
  async run({ arguments: { file }, options: { from, category, ttl, 'dry-run': dry } }, desk) {
    const source = parseSource(from);
    const seconds = parseLifetime(ttl);
    const { begins, chunks } = await peekStart(file === '-' ? desk.terminal.input() : readInputFile(file, desk.interrupted));
    if (source !== undefined || isForeign(begins, file)) {
      const text = await readText(chunks);
      const memory = await desk.memory();
      const preview = await previewInParts((name, input) => memory.call(name, input), {
        text,
        name: basename(file),
        ...(source !== undefined && { from: source }),
        ...(category !== undefined && { category }),
        ...(seconds !== undefined && { ttl_seconds: seconds }),
      });
      return await (dry ? showPreview(preview, desk) : importPreview(preview, desk));
    }
    if (category !== undefined || seconds !== undefined) {
      throw new UsageError(
        '--category and --ttl are for other memories, named with --from; facts of an export keep their own.',
        'import',
      );
    }
    const total = await importLines(splitLines(chunks, LONGEST_LINE), dry, desk);
    await desk.printResult({ ...total, ...(dry && { dry_run: true }) }, () => [formatReceipt(total, dry)]);
    if (!desk.json) printErrors(desk, total.errors);
    return total.errors.length > 0 ? exits.failed.code : exits.done.code;
  },
});

async function* pagesOf(memory: MemoryConnection) {
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
