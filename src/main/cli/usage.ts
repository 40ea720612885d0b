import { parseArgs } from 'node:util';
import { editDistance } from '../../core/search/words.ts';
import type { Command, Group, Option, ParsedArguments } from './command.ts';
import { UsageError } from './errors.ts';

/** Options that every command accepts, before or after the command's name. */
export const commonOptions: Readonly<Record<string, Option>> = {
  json: { description: 'Prints results and errors as JSON, for scripts.' },
  help: { description: 'Shows help on the command instead of running it. The short form is -h.' },
};

export type ParsedCommandLine =
  | { readonly to: 'help'; readonly topic: string }
  | { readonly to: 'version' }
  | { readonly to: 'run'; readonly command: Command; readonly typed: ParsedArguments };

export const wantsJson = (args: readonly string[]): boolean => beforeEnd(args).includes('--json');

export function parseCommandLine(groups: readonly Group[], args: readonly string[]): ParsedCommandLine {
  const commands = groups.flatMap((group) => group.commands);
  const start = args.findIndex((arg) => !arg.startsWith('-'));
  const leading = start === -1 ? args : args.slice(0, start);
  const wantsHelp = beforeEnd(args).some((arg) => arg === '--help' || arg === '-h');
  if (leading.includes('--version')) return { to: 'version' };
  const stray = leading.find((arg) => !['--json', '--help', '-h'].includes(arg));
  if (stray !== undefined) throw new UsageError(`Unknown option ${nameOf(stray)} before the command.`);
  if (start === -1) {
    if (wantsHelp) return { to: 'help', topic: '' };
    throw new UsageError('A command is missing.');
  }
  const words = args.slice(start);
  const command = commandOf(commands, words);
  if (command === undefined) {
    const family = commands.some(({ name }) => name.startsWith(`${words[0]} `));
    if (wantsHelp && family) return { to: 'help', topic: words[0] ?? '' };
    throw unknownCommand(commands, words, family);
  }
  if (wantsHelp) return { to: 'help', topic: command.name };
  const rest = words.slice(command.name.split(' ').length);
  return { to: 'run', command, typed: readArguments(command, rest) };
}

/** Returns the usage line: the name, the arguments, and `[options]` if the command has options. */
export function formatUsage({ name, arguments: args = {}, options = {} }: Command): string {
  const named = Object.entries(args).map(([arg, { optional }]) => (optional ? `[${arg}]` : `<${arg}>`));
  return [name, ...named, ...(Object.keys(options).length > 0 ? ['[options]'] : [])].join(' ');
}

const beforeEnd = (args: readonly string[]): readonly string[] =>
  args.includes('--') ? args.slice(0, args.indexOf('--')) : args;

/** Finds the command. Tries names of two words first, so that `window list` does not run `window`. */
const commandOf = (commands: readonly Command[], words: readonly string[]): Command | undefined =>
  [2, 1]
    .map((length) => words.slice(0, length).join(' '))
    .flatMap((name) => commands.filter((command) => command.name === name))
    .at(0);

/** Returns an option without the value after `=`, because the value can be a secret. */
const nameOf = (option: string): string => option.replace(/=.*$/s, '');

function unknownCommand(commands: readonly Command[], words: readonly string[], family: boolean): UsageError {
  const [first = ''] = words;
  if (family) {
    const members = commands.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => name);
    return new UsageError(`${first} needs a second word. Use one of: ${members.join(', ')}.`, first);
  }
  const typed = [first, words.slice(0, 2).join(' ')];
  const near = commands.map(({ name }) => name).find((name) => typed.some((text) => editDistance(name, text, 2) <= 2));
  return new UsageError(`Unknown command ${first}.${near === undefined ? '' : ` Did you mean ${near}?`}`);
}

function readArguments(command: Command, args: readonly string[]): ParsedArguments {
  const { name: about, arguments: known = {}, options: own = {} } = command;
  const options = { ...own, ...commonOptions };
  const refuse = (message: string): UsageError => new UsageError(message, about);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value }]) => [name, { type: value === undefined ? 'boolean' : 'string' }] as const),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const words: string[] = [];
  const given: Record<string, string | boolean | string[]> = {};
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (option === undefined) throw refuse(`Unknown option ${rawName} for ${about}. Put text that starts with a dash after --.`);
    const before = given[name];
    if (before !== undefined && !option.many) throw refuse(`${rawName} was given twice. Use it only once.`);
    if (option.value === undefined) {
      if (value !== undefined) throw refuse(`${rawName} does not take a value. Remove the part after "=".`);
      given[name] = true;
    } else {
      // If the next word looks like an option, the user left out the value.
      if (value === undefined || (!token.inlineValue && value.startsWith('-') && value !== '-')) {
        throw refuse(`${rawName} needs a value: ${rawName} ${option.value}.`);
      }
      given[name] = option.many ? [...(Array.isArray(before) ? before : []), value] : value;
    }
  }
  const names = Object.keys(known);
  const missing = names.find((name, index) => !known[name]?.optional && words[index] === undefined);
  if (missing !== undefined) throw refuse(`The argument <${missing}> is missing. Usage: ${formatUsage(command)}.`);
  const takesRest = Object.values(known).some(({ rest }) => rest);
  if (words.length > names.length && !takesRest) {
    const quoting = names.length > 0 ? '. Put text with spaces in quotes' : '';
    throw refuse(`Too many arguments for ${about}${quoting}. Usage: ${formatUsage(command)}.`);
  }
  return {
    arguments: Object.fromEntries(
      names.map((name, index) => [name, known[name]?.rest ? words.slice(index).join(' ') || undefined : words[index]]),
    ),
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value, many }]) => [
        name,
        given[name] ?? (many ? [] : value === undefined ? false : undefined),
      ]),
    ),
  };
}
