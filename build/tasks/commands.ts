import type { Argument, Command, Option } from '../../src/main/cli/command.ts';
import { groups } from '../../src/main/cli/commands.ts';
import { exits } from '../../src/main/cli/exit-codes.ts';
import { formatHelp, PROGRAM } from '../../src/main/cli/help.ts';
import { commonOptions, formatUsage } from '../../src/main/cli/usage.ts';
import { renderTable } from './table.ts';

/** Renders the table behind --help as a page. */
export const renderCommands = (): string =>
  [
    '# The command line',
    'Written by `npm run docs` from the table of commands.',
    ['```', `$ ${PROGRAM} --help`, ...formatHelp(groups, ''), '```'].join('\n'),
    '## Everywhere',
    renderTable(['option', 'does'], optionRows(commonOptions)),
    ...groups.flatMap((group) => [`## ${group.title}`, ...group.commands.flatMap(section)]),
    '## Exit codes',
    renderTable(
      ['code', 'means'],
      Object.values(exits).map(({ code, description }) => [`${code}`, description]),
    ),
    'With `--json` an error is one line on standard error, `{"error": code, "message": sentence}`. The codes are those of the',
  ]
    .join('\n\n')
    .concat('\nREST interface, and `usage`.\n');

function section({ description, details = [], arguments: args = {}, options = {}, examples = [], ...rest }: Command): string[] {
  const rows = [...argumentRows(args), ...optionRows(options)];
  const lines = examples.map((line) => (line.includes(`${PROGRAM} `) ? line : `${PROGRAM} ${line}`));
  return [
    `### ${rest.name}`,
    `\`${PROGRAM} ${formatUsage({ ...rest, description, arguments: args, options })}\``,
    description,
    ...details,
    ...(rows.length > 0 ? [renderTable(['', ''], rows)] : []),
    ...(lines.length > 0 ? [['```sh', ...lines, '```'].join('\n')] : []),
  ];
}

const argumentRows = (args: Readonly<Record<string, Argument>>): string[][] =>
  Object.entries(args).map(([name, { description, optional }]) => [`\`${optional ? `[${name}]` : `<${name}>`}\``, description]);

const optionRows = (options: Readonly<Record<string, Option>>): string[][] =>
  Object.entries(options).map(([name, { value, description }]) => [
    `\`--${name}${value === undefined ? '' : ` ${value}`}\``,
    description,
  ]);
