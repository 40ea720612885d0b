import { Readable } from 'node:stream';
import { Failure } from '../../contract/failure.ts';
import type { ImportPreview, ImportSource } from '../../contract/import-preview.ts';
import { IMPORT_SOURCES } from '../../contract/names.ts';
import type { CommandContext } from './command-context.ts';
import { UsageError } from './errors.ts';
import { exits } from './exit-codes.ts';
import { ERRORS_SHOWN, formatReceipt, importLines, printErrors, printSome } from './import-lines.ts';
import { decodeUtf8, escapeControls, formatCount, indent } from './layout.ts';

/** Maximum bytes of a file from another program. The whole file is read into RAM. Real exports are smaller. */
const MAX_BYTES = 16 * 1024 * 1024;

export function parseSource(name: string | undefined): ImportSource | undefined {
  if (name === undefined) return undefined;
  const source = IMPORT_SOURCES.find((known) => known === name);
  if (source !== undefined) return source;
  throw new UsageError(`--from must be one of ${IMPORT_SOURCES.join(', ')}.`, 'import');
}

/** Returns the first characters of a stream, and a stream with the complete content, including these characters. */
export async function peekStart(chunks: AsyncIterable<Buffer>): Promise<{ begins: string; chunks: AsyncIterable<Buffer> }> {
  const reading = chunks[Symbol.asyncIterator]();
  const first = await reading.next();
  const begins = first.done === true ? '' : first.value.subarray(0, 4096).toString();
  return {
    begins,
    chunks: (async function* () {
      for (let next = first; next.done !== true; next = await reading.next()) yield next.value;
    })(),
  };
}

/**
 * Whether another program wrote the file. Recognizes text files by their extension, and a knowledge graph by its first
 * characters. Exports of Helmdeck Memory start with `{"key"`.
 */
export const isForeign = (begins: string, file: string): boolean =>
  !/^\uFEFF?\s*\{\s*"key"/.test(begins) &&
  (/\.(?:md|mdc|markdown|txt)$/i.test(file) ||
    /^\uFEFF?\s*[[{][\s[{]*"(?:type"\s*:\s*"(?:entity|relation)"|entities"|relations")/.test(begins));

export async function readText(chunks: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES)
      throw new Failure('invalid_input', 'The file is larger than 16 MiB. Split it and import the parts one by one.');
    parts.push(chunk);
  }
  const text = decodeUtf8(Buffer.concat(parts));
  if (text !== undefined) return text;
  throw new Failure('invalid_input', 'The file is not UTF-8 text. Save it as UTF-8 and import it again.');
}

/** Prints what an import would add, without changing anything. */
export async function showPreview(preview: ImportPreview, context: CommandContext): Promise<number> {
  const { from, facts, left_out: left } = preview;
  await context.printResult(preview, () => [
    ...facts.flatMap(({ key, value, category, tags }) => [
      `${escapeControls(key)}  ${context.terminal.dim([category, ...tags].join(' '))}`,
      ...indent(escapeControls(value)),
    ]),
    `Would import ${formatCount(facts.length, 'fact')} from ${from}${lifetime(facts)}, and skip ${left.length.toLocaleString('en-US')}.`,
  ]);
  return printLeftOut(left, context);
}

/**
 * Describes the lifetime of the imported facts. Reads only the first fact, because all facts of a preview have the same
 * lifetime.
 */
function lifetime([first]: ImportPreview['facts']): string {
  if (!first) return '';
  const hours = first.ttl_seconds / 3600;
  return ` for ${hours < 48 ? formatCount(Math.floor(hours), 'hour') : formatCount(Math.floor(hours / 24), 'day')}`;
}

/** Imports the previewed facts as NDJSON lines, so that all imports share the same code. */
export async function importPreview({ from, facts, left_out: left }: ImportPreview, context: CommandContext): Promise<number> {
  const lines = facts.map(({ line: _line, note: _note, ...fact }, index) => ({ number: index + 1, text: JSON.stringify(fact) }));
  const receipt = await importLines(Readable.from(lines), false, context);
  // Report the line numbers of the imported file, not those of the generated lines.
  const errors = receipt.errors.map(({ line, message }) => ({ line: facts[line - 1]?.line ?? line, message }));
  const { written } = receipt;
  await context.printResult({ ...receipt, errors, from, left_out: left }, () => [
    `${formatReceipt({ ...receipt, errors }, false).slice(0, -1)}, ${left.length.toLocaleString('en-US')} skipped.`,
  ]);
  const code = printLeftOut(left, context);
  printErrors(context, errors);
  const notes = facts.flatMap(({ line, note }) => (note === undefined ? [] : [`Line ${line}: ${note}`]));
  context.hint(...notes.slice(0, ERRORS_SHOWN));
  if (written) {
    const { client, since, until } = written;
    context.hint(`To undo this import: helmdeck-memory undo ${client} --since ${since} --until ${until}`);
  }
  return errors.length > 0 ? exits.failed.code : code;
}

/**
 * Lists the entries that were not imported. Returns a failure code only for rejected entries, not for duplicates or empty
 * entries.
 */
function printLeftOut(left: ImportPreview['left_out'], context: CommandContext): number {
  const refused = left.filter(({ why }) => why === 'secret' || why === 'invalid');
  // List rejected entries first, because the user must act on them.
  const rows = [...refused, ...left.filter((one) => !refused.includes(one))].map(
    ({ line, text, message }) => `Line ${line}: ${escapeControls(message)}${text === undefined ? '' : ` (${firstLine(text)})`}`,
  );
  printSome(context, rows, 'more entry', 'more entries');
  return refused.length > 0 ? exits.failed.code : exits.done.code;
}

const firstLine = (text: string): string => {
  const [first = ''] = escapeControls(text).split('\n');
  return first.length > 60 ? `${first.slice(0, 59).toWellFormed()}…` : first;
};
