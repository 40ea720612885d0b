import { Readable } from 'node:stream';
import type { Preview } from '../../contract/bring.ts';
import type { Desk } from './desk.ts';
import { exits } from './exit-codes.ts';
import { ERRORS_TOLD, importLines, summary, tellErrors } from './import-lines.ts';
import { counted, indented, visible } from './layout.ts';

/** What would be remembered, and nothing is. */
export async function show(preview: Preview, desk: Desk): Promise<number> {
  const { from, facts, left_out: left } = preview;
  await desk.answer(preview, () => [
    ...facts.flatMap(({ key, value, category, tags }) => [
      `${visible(key)}  ${desk.terminal.quiet([category, ...tags].join(' '))}`,
      ...indented(visible(value)),
    ]),
    `Would import ${counted(facts.length, 'fact')} from ${from}${lifetime(facts)}, and leave ${left.length.toLocaleString('en-US')} out.`,
  ]);
  return tellLeftOut(left, desk);
}

/** The same for all of them. */
function lifetime([first]: Preview['facts']): string {
  if (!first) return '';
  const hours = first.ttl_seconds / 3600;
  return ` for ${hours < 48 ? counted(Math.floor(hours), 'hour') : counted(Math.floor(hours / 24), 'day')}`;
}

/** As lines that an import takes, so that there is one way to write many facts. */
export async function bring({ from, facts, left_out: left }: Preview, desk: Desk): Promise<number> {
  const lines = facts.map(({ line: _line, note: _note, ...fact }, index) => ({ number: index + 1, text: JSON.stringify(fact) }));
  const receipt = await importLines(Readable.from(lines), false, desk);
  // The lines that were read, not those that we made.
  const errors = receipt.errors.map(({ line, message }) => ({ line: facts[line - 1]?.line ?? line, message }));
  const { written } = receipt;
  await desk.answer({ ...receipt, errors, from, left_out: left }, () => [
    `${summary({ ...receipt, errors }, false).slice(0, -1)}, ${left.length.toLocaleString('en-US')} left out.`,
  ]);
  const code = tellLeftOut(left, desk);
  if (!desk.json) {
    tellErrors(desk, errors);
    const notes = facts.flatMap(({ line, note }) => (note === undefined ? [] : [`Line ${line}: ${note}`]));
    desk.terminal.tell(...notes.slice(0, ERRORS_TOLD));
    if (written) {
      const { client, since, until } = written;
      desk.terminal.tell(`To take all of it back: helmdeck-memory undo ${client} --since ${since} --until ${until}`);
    }
  }
  return errors.length > 0 ? exits.failed.code : code;
}

/** What was refused makes a failure; what is known or no fact does not. */
function tellLeftOut(left: Preview['left_out'], desk: Desk): number {
  const refused = left.filter(({ why }) => why === 'secret' || why === 'invalid');
  if (!desk.json) {
    // What was refused comes first, for it may be the reason to look.
    const told = [...refused, ...left.filter((one) => !refused.includes(one))];
    desk.terminal.tell(
      ...told
        .slice(0, ERRORS_TOLD)
        .map(
          ({ line, text, message }) => `Line ${line}: ${visible(message)}${text === undefined ? '' : ` (${beginning(text)})`}`,
        ),
    );
    if (told.length > ERRORS_TOLD)
      desk.terminal.tell(`and ${counted(told.length - ERRORS_TOLD, 'more entry', 'more entries')}; --json tells all of them.`);
  }
  return refused.length > 0 ? exits.failed.code : exits.done.code;
}

const beginning = (text: string): string => {
  const [first = ''] = visible(text).split('\n');
  return first.length > 60 ? `${first.slice(0, 59).toWellFormed()}…` : first;
};
