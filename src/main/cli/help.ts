import { type Setting, SETTINGS } from '../config/settings-table.ts';
import type { Argument, Command, Group, Option } from './command.ts';
import { UsageError } from './errors.ts';
import { exits } from './exit-codes.ts';
import { wrap } from './layout.ts';
import { commonOptions, formatUsage } from './usage.ts';

export const PROGRAM = 'helmdeck-memory';
const WIDTH = 100;

/** Commands that create a memory, store a first fact and show the fact again. */
const FIRST_STEPS = ['key init', 'remember editor "Helix, everywhere"', 'recall editor'];

export function formatHelp(groups: readonly Group[], topic: string): string[] {
  if (topic === '') return overview(groups);
  if (topic === 'exit-codes') return exitCodes();
  if (topic === 'settings') return settings();
  const commands = groups.flatMap((group) => group.commands);
  const one = commands.find(({ name }) => name === topic);
  if (one) return about(one);
  const family = commands.filter(({ name }) => name.startsWith(`${topic} `));
  if (family.length > 0) return rowsOf(family);
  throw new UsageError(`There is no command or help topic named ${topic}.`);
}

const overview = (groups: readonly Group[]): string[] => [
  'One sealed memory for all the AI agents on this machine.',
  '',
  'First steps (without an OS keychain, add --file to the first command):',
  ...FIRST_STEPS.map((line) => `  ${PROGRAM} ${line}`),
  ...groups.flatMap(({ title, commands }) => ['', `${title}:`, ...rowsOf(commands)]),
  '',
  `${PROGRAM} help <command> shows details and examples. See also: help settings, help exit-codes.`,
  '--json prints JSON. Each command is sent to the running program.',
  'If no program is running, the command opens the memory itself.',
];

const rowsOf = (commands: readonly Command[]): string[] => {
  const usages = commands.map((one) => `  ${formatUsage(one).replace(' [options]', '')}`);
  const width = 30;
  return commands.map(({ description }, at) => `${(usages[at] ?? '').padEnd(width)}  ${description}`);
};

function about(command: Command): string[] {
  const { description, arguments: args = {}, options = {}, details = [], examples = [] } = command;
  return [
    `${PROGRAM} ${formatUsage(command)}`,
    '',
    description,
    ...details.flatMap((paragraph) => ['', ...wrap(paragraph, WIDTH)]),
    '',
    ...defined([...argumentRows(args), ...optionRows({ ...options, ...commonOptions })]),
    ...(examples.length > 0 ? ['', 'Examples:', ...examples.map((line) => `  ${asTyped(line)}`)] : []),
  ];
}

const argumentRows = (args: Readonly<Record<string, Argument>>): [string, string][] =>
  Object.entries(args).map(([name, { description, optional }]) => [optional ? `[${name}]` : `<${name}>`, description]);

const optionRows = (options: Readonly<Record<string, Option>>): [string, string][] =>
  Object.entries(options).map(([name, { value, description }]) => [
    `--${name}${value === undefined ? '' : ` ${value}`}`,
    description,
  ]);

/**
 * Adds the program name to an example, but not to an example that contains the name, such as
 * `gunzip … | helmdeck-memory import -`.
 */
const asTyped = (example: string): string => (example.includes(`${PROGRAM} `) ? example : `${PROGRAM} ${example}`);

function defined(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([term]) => term.length));
  return rows.flatMap(([term, description]) =>
    wrap(description, WIDTH - width - 4).map((line, at) => `  ${(at === 0 ? term : '').padEnd(width)}  ${line}`),
  );
}

const settings = (): string[] => [
  'Set these as environment variables, or in config.json in the data folder. Environment variables take precedence.',
  '',
  ...Object.entries<Setting>(SETTINGS).flatMap(([name, { help, default: usual = '' }]) => [
    usual === '' ? name : `${name} (default: ${usual})`,
    ...wrap(help, WIDTH - 2).map((line) => `  ${line}`),
  ]),
];

const exitCodes = (): string[] => defined(Object.values(exits).map(({ code, description }) => [String(code), description]));
