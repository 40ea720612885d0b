import { describe, expect, test } from 'vitest';
import { groups } from '../../../src/main/cli/commands.ts';
import { parseCommandLine, formatUsage } from '../../../src/main/cli/usage.ts';
import { SETTINGS } from '../../../src/main/config/settings-table.ts';
import { runCli } from './run-cli.ts';

const commands = groups.flatMap((group) => group.commands);
const read = (...args: string[]) => {
  const asked = parseCommandLine(groups, args);
  if (asked.to !== 'run') throw new Error(`This asks for ${asked.to}.`);
  return { name: asked.command.name, ...asked.typed };
};

describe('a command line', () => {
  test('accepts options anywhere after the command', () => {
    expect(read('remember', '--tag', 'a', 'key', '--json', '--tag=b', 'a value', '--ttl', '90d')).toMatchObject({
      name: 'remember',
      arguments: { key: 'key', value: 'a value' },
      options: { json: true, tag: ['a', 'b'], ttl: '90d', category: undefined },
    });
  });

  test('keeps text unchanged: spaces, dashes after --, a single dash and empty text', () => {
    expect(read('remember', 'a key', '-')).toMatchObject({ arguments: { key: 'a key', value: '-' } });
    expect(read('remember', '--', '--key', '-v')).toMatchObject({ arguments: { key: '--key', value: '-v' } });
    expect(read('remember', 'key', '')).toMatchObject({ arguments: { value: '' } });
    expect(read('remember', 'key', '--', '--json').options).toMatchObject({ json: false });
  });

  test('accepts a command of two words', () => {
    expect(read('token', 'mint', 'cursor')).toMatchObject({ name: 'token mint', arguments: { name: 'cursor' } });
  });

  test.each([
    { why: 'an unknown command', args: ['remind'], says: 'Unknown command remind.' },
    { why: 'a typing error', args: ['remeber', 'key'], says: 'Did you mean remember?' },
    { why: 'a typing error in the first of two words', args: ['tokn', 'list'], says: 'Did you mean token list?' },
    { why: 'half a command', args: ['token'], says: 'token mint, token list, token pause, token resume, token revoke' },
    { why: 'a wrong second word', args: ['key', 'lose'], says: 'key init, key status' },
    { why: 'an unknown option', args: ['list', '--colour'], says: 'Unknown option --colour for list' },
    { why: 'an unknown short option', args: ['list', '-x'], says: 'Unknown option -x for list' },
    { why: 'an unknown option before the command', args: ['--quiet', 'list'], says: 'Unknown option --quiet' },
    { why: 'an option without its value', args: ['remember', 'key', '--ttl'], says: '--ttl needs a value: --ttl <time>' },
    {
      why: 'an option in place of a value',
      args: ['remember', 'key', '--category', '--tag', 'x'],
      says: '--category needs a value',
    },
    { why: 'a value for a flag', args: ['forget', 'all', '--yes=no'], says: '--yes does not take a value' },
    { why: 'an option given twice', args: ['list', '--limit', '1', '--limit', '2'], says: '--limit was given twice' },
    { why: 'a missing argument', args: ['recall'], says: 'The argument <key> is missing. Usage: recall <key>' },
    { why: 'words without quotes', args: ['remember', 'key', 'two', 'words'], says: 'Put text with spaces in quotes' },
    { why: 'too many arguments', args: ['status', 'now'], says: 'Too many arguments for status. Usage: status.' },
    { why: 'an invalid time', args: ['remember', 'key', 'value', '--ttl', 'soon'], says: '--ttl must be a duration such as' },
    { why: 'an invalid number', args: ['list', '--limit', '0'], says: '--limit must be a whole number' },
    { why: 'an undo without a time', args: ['undo', 'cursor'], says: '--since is required' },
    {
      why: 'an undo since a date that does not exist',
      args: ['undo', 'cursor', '--since', '2026-02-30'],
      says: '--since is required',
    },
    { why: 'help on an unknown topic', args: ['help', 'cooking'], says: 'There is no command or help topic named cooking' },
    { why: 'a confirmation without a terminal', args: ['forget', 'all'], says: 'Add --yes to confirm' },
  ])('is refused for $why, with exit code 2 and a pointer to the help', async ({ args, says }) => {
    const { code, out, err } = await runCli(args, { folder: 'never opened' });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(says);
    expect(err).toMatch(/\nSee: helmdeck-memory help[\w ]*\n$/);
    const asJson = await runCli(['--json', ...args], { folder: 'never opened' });
    expect(JSON.parse(asJson.err)).toMatchObject({ error: 'usage', message: expect.stringContaining(says) as string });
  });

  test('never repeats the value of an option, which could be a secret', async () => {
    expect((await runCli(['--key=sesame', 'list'])).err).not.toContain('sesame');
    expect((await runCli(['list', '--key=sesame'])).err).not.toContain('sesame');
  });
});

describe('help', () => {
  test('is shown without arguments, with exit code 2', async () => {
    const { code, out } = await runCli(['--help']);
    expect({ code, out }).toEqual({ code: 0, out: (await runCli(['help'])).out });
    expect(await runCli([])).toEqual({ code: 2, out: '', err: out });
    for (const { name } of commands) expect(out).toContain(`  ${name}`);
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(110);
  });

  test.each(commands.map((command) => ({ name: command.name, command })))('describes $name', async ({ command }) => {
    const words = command.name.split(' ');
    const { code, out } = await runCli(['help', ...words]);
    expect(code).toBe(0);
    expect(out).toContain(`helmdeck-memory ${formatUsage(command)}\n`);
    for (const option of Object.keys(command.options ?? {})) expect(out).toContain(`--${option}`);
    expect(await runCli([...words, '--help'])).toEqual({ code, out, err: '' });
    expect(await runCli([...words, 'some', '-h', '--wrong'])).toEqual({ code, out, err: '' });
  });

  test('has examples that parse', () => {
    for (const { name, examples = [] } of commands) {
      for (const example of examples) {
        const own = example.replace(/^.*helmdeck-memory /, '').replace(/ [<>|] .*$/, '');
        const words = [...own.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
          (found) => found.slice(1).find((text) => text !== undefined) ?? '',
        );
        expect(read(...words)).toMatchObject({ name });
      }
    }
  });

  test('describes a group of commands, the settings and the exit codes', async () => {
    expect((await runCli(['help', 'key'])).out).toMatch(/key init.*\n.*key status/);
    expect((await runCli(['token', '--help'])).out).toMatch(/token mint/);
    expect((await runCli(['help', 'exit-codes'])).out).toMatch(/^ {2}0 .*\n[^]* 130 /);
    const settings = (await runCli(['help', 'settings'])).out;
    expect(settings.match(/^HELMDECK_\w+/gm)).toEqual(Object.keys(SETTINGS));
  });

  test('prints the version', async () => {
    expect(await runCli(['--version'])).toEqual({ code: 0, out: '1.2.3\n', err: '' });
    expect((await runCli(['--json', '--version'])).out).toBe('{"version":"1.2.3"}\n');
  });

  test('warns that other users can see a value on the command line', async () => {
    expect((await runCli(['help', 'remember'])).out.replaceAll(/\s+/g, ' ')).toMatch(
      /Other users of the machine can see.*standard input/,
    );
  });
});
