import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Interrupted } from '../../../src/main/cli/errors.ts';
import { A_KEY, ANOTHER_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type CommandResult, runCli } from './run-cli.ts';

/** A fake keychain in any state. The tests must not use the keychain of this machine. */
const keychain = vi.hoisted(() => ({ at: 'absent' as 'absent' | 'open' | 'locked', items: new Map<string, string>() }));

vi.mock('keytar', () => ({
  get default() {
    if (keychain.at === 'absent') throw new Error('libsecret is missing');
    const { items } = keychain;
    return {
      getPassword: async (service: string, account: string) =>
        keychain.at === 'locked' ? null : (items.get(`${service} ${account}`) ?? null),
      setPassword: async (service: string, account: string, password: string) => {
        if (keychain.at === 'locked') throw new Error('locked');
        items.set(`${service} ${account}`, password);
      },
      deletePassword: async (service: string, account: string) => items.delete(`${service} ${account}`),
    };
  },
}));

let folder: string;
/** The environment of a session in which a keychain can be reached. */
const SESSION = { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nowhere' };

const say = (...args: string[]): Promise<CommandResult> => runCli(args, { folder, environment: SESSION });
const keyFile = (): string => join(folder, 'memory.key');

beforeEach(() => {
  keychain.at = 'absent';
  keychain.items.clear();
  folder = join(tempFolder(), 'data');
});

describe('a memory without a key', () => {
  test('refuses facts that would be lost, and names the remedy (R-KEY-03)', async () => {
    for (const args of [
      ['remember', 'k', 'v'],
      ['import', '-'],
      ['token', 'mint', 'cursor'],
    ]) {
      const { code, out, err } = await runCli(args, { folder, environment: SESSION, input: '{"key":"k","value":"v"}' });
      expect({ code, out }).toEqual({ code: 4, out: '' });
      expect(err).toMatch(/^There is no key yet, so nothing would be saved\. .*helmdeck-memory key init/);
    }
    expect(existsSync(join(folder, 'memory.db'))).toBe(false);
  });

  test('shows its state with exit code 4', async () => {
    expect(await say('key', 'status')).toMatchObject({
      code: 4,
      out: expect.stringMatching(/^none\nThere is no key, .*key init/) as string,
    });
    expect(await say('status')).toMatchObject({
      code: 4,
      out: expect.stringMatching(/^program {2}not running\nmemory {3}none yet\nkey {6}none/) as string,
    });
    expect(JSON.parse((await say('key', 'status', '--json')).out)).toMatchObject({ key: { at: 'ephemeral' } });
    expect(await say('recall', 'k')).toMatchObject({ code: 3 });
    expect(await say('list')).toMatchObject({ code: 0, out: '' });
    expect(await say('verify')).toMatchObject({ code: 4 });
    expect(await say('forget', 'all', '--yes')).toMatchObject({ code: 0, out: 'Forgot 0 entries.\n' });
  });
});

describe('key init', () => {
  test('creates a key file that only the owner can read, and seals the memory with it', async () => {
    const { code, out, err } = await say('key', 'init', '--file');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toContain(`The key was created in the key file (${keyFile()}).`);
    expect(out).toMatch(/Create a recovery key now.*\n {2}helmdeck-memory key recovery\n$/);
    expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
    expect(readFileSync(keyFile(), 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
    expect(await say('remember', 'k', 'v')).toMatchObject({ code: 0 });
    expect(await say('key', 'status')).toEqual({ code: 0, out: 'ok, in the key file\n', err: '' });
  });

  test('creates the key in the OS keychain if there is one', async () => {
    keychain.at = 'open';
    const { code, out } = await say('key', 'init', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({ key: { at: 'ok', source: 'the OS keychain' }, memory: join(folder, 'memory.db') });
    expect([...keychain.items.keys()].filter((name) => name.includes('master-key'))).toHaveLength(1);
    expect(existsSync(keyFile())).toBe(false);
    expect(await say('remember', 'k', 'v')).toMatchObject({ code: 0 });
  });

  test('says that there is no keychain and suggests --file, which creates the key file', async () => {
    expect(await say('key', 'init')).toEqual({
      code: 4,
      out: '',
      err: 'No OS keychain is available, so no key was created. To use a key file instead, run: helmdeck-memory key init --file\n',
    });
    expect(existsSync(join(folder, 'memory.db'))).toBe(false);
    expect(await say('key', 'init', '--file')).toMatchObject({ code: 0 });
  });

  test('reports a locked keychain (R-KEY-06), and suggests a key file', async () => {
    keychain.at = 'locked';
    expect(await say('key', 'init')).toMatchObject({
      code: 4,
      err: expect.stringMatching(/locked: .*key init --file/) as string,
    });
    expect(await say('key', 'init', '--file')).toMatchObject({ code: 0 });
    expect(await say('remember', 'k', 'v')).toMatchObject({ code: 0 });
  });

  test('does not create a second key', async () => {
    await say('key', 'init', '--file');
    const key = readFileSync(keyFile());
    for (const args of [['--file'], []]) {
      expect(await say('key', 'init', ...args)).toMatchObject({
        code: 1,
        err: expect.stringMatching(/already has a key, in the key file/) as string,
      });
    }
    expect(readFileSync(keyFile()).equals(key)).toBe(true);
  });

  test('uses a key file that the owner placed there', async () => {
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(keyFile(), A_KEY, { mode: 0o600 });
    expect(await say('key', 'init', '--file')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/already has a key/) as string,
    });
    expect(readFileSync(keyFile(), 'utf8')).toBe(A_KEY);
    expect(await say('remember', 'k', 'v')).toMatchObject({ code: 0 });
  });

  test('never overwrites an existing key file, whatever it contains', async () => {
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(keyFile(), 'not a key 5e5e', { mode: 0o600 });
    const { code, err } = await say('key', 'init', '--file');
    expect(code).toBe(4);
    expect(err).not.toContain('5e5e');
    expect(readFileSync(keyFile(), 'utf8')).toBe('not a key 5e5e');
  });

  test('does not create a key for a memory that was sealed with another key (R-KEY-04)', async () => {
    await runCli(['remember', 'k', 'v'], { folder });
    for (const args of [['--file'], []]) {
      keychain.at = 'open';
      expect(await say('key', 'init', ...args)).toMatchObject({
        code: 4,
        err: expect.stringMatching(/^No key was created, because the key of this memory is absent/) as string,
      });
    }
    expect(existsSync(keyFile())).toBe(false);
    expect([...keychain.items.keys()].filter((name) => name.includes('master-key'))).toEqual([]);
    expect((await runCli(['recall', 'k'], { folder })).out).toBe('v\n');
  });

  test('is refused if the environment sets a key, because the new key would not be used', async () => {
    expect(await runCli(['key', 'init', '--file'], { folder })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^HELMDECK_MEMORY_KEY is set/) as string,
    });
  });
});

test.each([
  { what: 'malformed', key: 'not-a-key-5e5e', exitCode: 78, says: 'HELMDECK_MEMORY_KEY must contain' },
  { what: 'wrong', key: ANOTHER_KEY, exitCode: 4, says: 'mismatch' },
])('a $what key exits with $exitCode, and is never shown (R-KEY-02, R-KEY-07)', async ({ key, exitCode, says }) => {
  await runCli(['remember', 'k', 'v'], { folder });
  for (const args of [['key', 'status'], ['status'], ['recall', 'k']]) {
    const { code, out, err } = await runCli(args, { folder, environment: { HELMDECK_MEMORY_KEY: key } });
    expect(code).toBe(exitCode);
    expect(out + err).toContain(says);
    expect(out + err).not.toContain(key);
  }
});

test('key rotate seals everything with a new key (R-KEY-09)', async () => {
  await say('key', 'init', '--file');
  await say('remember', 'k', 'v');
  const before = readFileSync(keyFile(), 'utf8');
  expect(await say('key', 'rotate')).toEqual({
    code: 0,
    out: 'The key was rotated. Everything is sealed with the new key.\n',
    err: '',
  });
  expect(readFileSync(keyFile(), 'utf8')).not.toBe(before);
  expect((await say('recall', 'k')).out).toBe('v\n');
  expect((await runCli(['key', 'rotate'], { folder, environment: SESSION, terminal: true })).err).toContain('Rotating the key…');
  expect(JSON.parse((await say('key', 'rotate', '--json')).out)).toEqual({ key: { at: 'ok', source: 'the key file' } });
});

test('an interrupted rotation loses nothing, and the next key rotate completes it (R-KEY-09)', async () => {
  await say('key', 'init', '--file');
  const lines = Array.from({ length: 4000 }, (_, index) => JSON.stringify({ key: `k${index}`, value: 'v' }));
  await runCli(['import', '-'], { folder, environment: SESSION, input: lines.join('\n') });
  const interruption = new AbortController();
  const onStderr = (err: string): void => {
    if (/ of [1-9]/.test(err)) interruption.abort(new Interrupted(130));
  };
  const on = { folder, environment: SESSION, terminal: true };
  expect(await runCli(['key', 'rotate'], { ...on, onStderr, interrupted: interruption.signal })).toMatchObject({
    code: 130,
    out: '',
  });
  expect(await say('key', 'status')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/Key rotation is running: \d/) as string,
  });
  expect((await say('recall', 'k3999')).out).toBe('v\n');
  expect(await say('key', 'rotate')).toEqual({ code: 0, out: 'The interrupted rotation is complete.\n', err: '' });
  expect(await say('key', 'status')).toMatchObject({ out: 'ok, in the key file\n' });
  expect(await say('verify')).toMatchObject({ code: 0 });
});

describe('the recovery key', () => {
  const recovery = async (): Promise<string> => (await say('key', 'recovery')).out.trim();

  test('is shown once, alone in a pipe, and restores a lost key (R-KEY-10)', async () => {
    await say('key', 'init', '--file');
    await say('remember', 'k', 'v');
    const words = await recovery();
    expect(words).toMatch(/^([0-9A-Z]{4}-){13}[0-9A-Z]{4}$/);
    writeFileSync(keyFile(), `${ANOTHER_KEY}\n`);
    expect(await say('recall', 'k')).toMatchObject({ code: 4 });
    const use = { folder, environment: SESSION };
    expect(await runCli(['key', 'recovery', '--use'], { ...use, input: `${words}\n` })).toMatchObject({
      code: 0,
      out: 'The key was restored:\nok, in the key file\n',
    });
    expect((await say('recall', 'k')).out).toBe('v\n');
    const typedIn = await runCli(['key', 'recovery', '--use'], { ...use, terminal: true, input: `${words.toLowerCase()}\n` });
    expect(typedIn).toMatchObject({ code: 0, err: 'Recovery key: ' });
  });

  test('is refused after a typing error, and is not repeated in the message', async () => {
    await say('key', 'init', '--file');
    const words = await recovery();
    const wrong = words.replace(/^.{4}/, '0000');
    const { code, err } = await runCli(['key', 'recovery', '--use'], { folder, environment: SESSION, input: wrong });
    expect(code).toBe(1);
    expect(err).not.toContain(wrong.slice(5));
  });

  test('with --file, restores the key of a lost keychain into a key file', async () => {
    keychain.at = 'open';
    await say('key', 'init');
    await say('remember', 'k', 'v');
    const input = await recovery();
    keychain.at = 'absent';
    expect(await say('key', 'recovery')).toMatchObject({
      code: 4,
      err: expect.stringMatching(/key recovery --use/) as string,
    });
    expect(await runCli(['key', 'recovery', '--use'], { folder, environment: SESSION, input })).toMatchObject({ code: 4 });
    expect(await runCli(['key', 'recovery', '--use', '--file'], { folder, environment: SESSION, input })).toMatchObject({
      code: 0,
    });
    expect((await say('recall', 'k')).out).toBe('v\n');
    expect(await runCli(['key', 'recovery', '--use', '--file'], { folder, input })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/is set/) as string,
    });
  });

  test('exits with 3 if it was never created', async () => {
    await say('key', 'init', '--file');
    expect(await runCli(['key', 'recovery', '--use'], { folder, environment: SESSION, input: 'x' })).toMatchObject({ code: 3 });
  });

  test('opens a backup in another folder, and stores the key in a key file', async () => {
    await say('key', 'init', '--file');
    await say('remember', 'k', 'v');
    const words = await recovery();
    const { file } = JSON.parse((await say('backup', '--json')).out) as { file: string };
    const there = { folder: join(tempFolder(), 'a new machine'), environment: SESSION };
    expect(await runCli(['restore', file, '--yes', '--recovery'], { ...there, input: words })).toMatchObject({ code: 4 });
    const { code, out } = await runCli(['restore', file, '--yes', '--recovery', '--file'], { ...there, input: words });
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^Restored \d entr/) as string });
    expect((await runCli(['recall', 'k'], there)).out).toBe('v\n');
  });
});
