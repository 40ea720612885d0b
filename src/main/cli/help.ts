import type { Argument, Command, Group, Option } from './command.ts';
import { exits } from './exit-codes.ts';
import { wrap } from './layout.ts';
import { UsageError } from './usage-error.ts';
import { commonOptions, formatUsage } from './usage.ts';

export const PROGRAM = 'helmdeck-memory';
const WIDTH = 100;

/** From an empty folder to a fact that is remembered and recalled. */
const FIRST_STEPS = ['key init', 'remember editor "Helix, everywhere"', 'recall editor'];

export function formatHelp(groups: readonly Group[], topic: string): string[] {
  if (topic === '') return overview(groups);
  if (topic === 'exit-codes') return exitCodes();
  const commands = groups.flatMap((group) => group.commands);
  const one = commands.find(({ name }) => name === topic);
  if (one) return about(one);
  const family = commands.filter(({ name }) => name.startsWith(`${topic} `));
  if (family.length > 0) return rowsOf(family);
  throw new UsageError(`There is no help on ${topic}; ${PROGRAM} help shows what there is.`);
}

const overview = (groups: readonly Group[]): string[] => [
  'One sealed memory for all the AI agents on this machine.',
  '',
  'First steps (where there is no keychain, add --file to the first):',
  ...FIRST_STEPS.map((line) => `  ${PROGRAM} ${line}`),
  ...groups.flatMap(({ title, commands }) => ['', `${title}:`, ...rowsOf(commands)]),
  '',
  `${PROGRAM} help <command> tells more, with examples; help exit-codes what scripts may rely on.`,
  '--json answers as JSON. While Helmdeck Memory runs it is asked; else the memory is opened for the command.',
];

const rowsOf = (commands: readonly Command[]): string[] => {
  const usages = commands.map((one) => `  ${formatUsage(one).replace(' [options]', '')}`);
  const width = 30;
  return commands.map(({ says }, at) => `${(usages[at] ?? '').padEnd(width)}  ${says}`);
};

function about(command: Command): string[] {
  const { says, arguments: args = {}, options = {}, more = [], examples = [] } = command;
  return [
    `${PROGRAM} ${formatUsage(command)}`,
    '',
    says,
    ...more.flatMap((paragraph) => ['', ...wrap(paragraph, WIDTH)]),
    '',
    ...defined([...argumentRows(args), ...optionRows({ ...options, ...commonOptions })]),
    ...(examples.length > 0 ? ['', 'Examples:', ...examples.map((line) => `  ${asTyped(line)}`)] : []),
  ];
}

const argumentRows = (args: Readonly<Record<string, Argument>>): [string, string][] =>
  Object.entries(args).map(([name, { says, optional }]) => [optional ? `[${name}]` : `<${name}>`, says]);

const optionRows = (options: Readonly<Record<string, Option>>): [string, string][] =>
  Object.entries(options).map(([name, { value, says }]) => [`--${name}${value === undefined ? '' : ` ${value}`}`, says]);

/** An example that begins with another program names ours itself. */
const asTyped = (example: string): string => (example.includes(`${PROGRAM} `) ? example : `${PROGRAM} ${example}`);

function defined(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([term]) => term.length));
  return rows.flatMap(([term, says]) =>
    wrap(says, WIDTH - width - 4).map((line, at) => `  ${(at === 0 ? term : '').padEnd(width)}  ${line}`),
  );
}

const exitCodes = (): string[] => defined(Object.values(exits).map(({ code, says }) => [String(code), says]));
