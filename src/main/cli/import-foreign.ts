import { Readable } from 'node:stream';
import type { ImportPreview } from '../../contract/import-preview.ts';
import type { CommandContext } from './command-context.ts';
import { exits } from './exit-codes.ts';
import { ERRORS_SHOWN, importLines, formatReceipt, printErrors } from './import-lines.ts';
import { formatCount, indent, escapeControls } from './layout.ts';

/** What would be remembered, and nothing is. */
export async function showPreview(preview: ImportPreview, desk: CommandContext): Promise<number> {
  const { from, facts, left_out: left } = preview;
  await desk.printResult(preview, () => [
    ...facts.flatMap(({ key, value, category, tags }) => [
      `${escapeControls(key)}  ${desk.terminal.dim([category, ...tags].join(' '))}`,
      ...indent(escapeControls(value)),
    ]),
    `Would import ${formatCount(facts.length, 'fact')} from ${from}${lifetime(facts)}, and leave ${left.length.toLocaleString('en-US')} out.`,
  ]);
  return tellLeftOut(left, desk);
}

/** The same for all of them. */
function lifetime([first]: ImportPreview['facts']): string {
  if (!first) return '';
  const hours = first.ttl_seconds / 3600;
  return ` for ${hours < 48 ? formatCount(Math.floor(hours), 'hour') : formatCount(Math.floor(hours / 24), 'day')}`;
}

/** As lines that an import takes, so that there is one way to write many facts. */
export async function importPreview({ from, facts, left_out: left }: ImportPreview, desk: CommandContext): Promise<number> {
  const lines = facts.map(({ line: _line, note: _note, ...fact }, index) => ({ number: index + 1, text: JSON.stringify(fact) }));
  const receipt = await importLines(Readable.from(lines), false, desk);
  // The lines that were read, not those that we made.
  const errors = receipt.errors.map(({ line, message }) => ({ line: facts[line - 1]?.line ?? line, message }));
  const { written } = receipt;
  await desk.printResult({ ...receipt, errors, from, left_out: left }, () => [
    `${formatReceipt({ ...receipt, errors }, false).slice(0, -1)}, ${left.length.toLocaleString('en-US')} left out.`,
  ]);
  const code = tellLeftOut(left, desk);
  if (!desk.json) {
    printErrors(desk, errors);
    const notes = facts.flatMap(({ line, note }) => (note === undefined ? [] : [`Line ${line}: ${note}`]));
    desk.terminal.printToStderr(...notes.slice(0, ERRORS_SHOWN));
    if (written) {
      const { client, since, until } = written;
      desk.terminal.printToStderr(`To take all of it back: helmdeck-memory undo ${client} --since ${since} --until ${until}`);
    }
  }
  return errors.length > 0 ? exits.failed.code : code;
}

/** What was refused makes a failure; what is known or no fact does not. */
function tellLeftOut(left: ImportPreview['left_out'], desk: CommandContext): number {
  const refused = left.filter(({ why }) => why === 'secret' || why === 'invalid');
  if (!desk.json) {
    // What was refused comes first, for it may be the reason to look.
    const told = [...refused, ...left.filter((one) => !refused.includes(one))];
    desk.terminal.printToStderr(
      ...told
        .slice(0, ERRORS_SHOWN)
        .map(
          ({ line, text, message }) =>
            `Line ${line}: ${escapeControls(message)}${text === undefined ? '' : ` (${beginning(text)})`}`,
        ),
    );
    if (told.length > ERRORS_SHOWN)
      desk.terminal.printToStderr(
        `and ${formatCount(told.length - ERRORS_SHOWN, 'more entry', 'more entries')}; --json tells all of them.`,
      );
  }
  return refused.length > 0 ? exits.failed.code : exits.done.code;
}

const beginning = (text: string): string => {
  const [first = ''] = escapeControls(text).split('\n');
  return first.length > 60 ? `${first.slice(0, 59).toWellFormed()}…` : first;
};
