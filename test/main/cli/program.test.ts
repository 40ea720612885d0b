import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { lockFolder } from '../../../src/core/file/folder.ts';
import { prepareFolder } from '../../../src/core/file/prepare-folder.ts';
import { systemClock } from '../../../src/core/time/clock.ts';
import { type Listener, startListener } from '../../../src/listeners/listener.ts';
import { readConfig } from '../../../src/main/config/config.ts';
import { openMemory } from '../../../src/main/roots/open-memory.ts';
import { A_KEY, openFileStore } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type CommandResult, runCli } from './run-cli.ts';

let folder: string;
const say = (...args: string[]): Promise<CommandResult> => runCli(args, { folder });
const answered = async (...args: string[]): Promise<unknown> => JSON.parse((await say(...args, '--json')).out);

beforeEach(() => {
  folder = join(tempFolder(), 'data of mine');
});

/** The real program, running in this process. */
async function startProgram(environment: Record<string, string> = { HELMDECK_MEMORY_KEY: A_KEY }, pages?: string) {
  const config = readConfig({
    environment: { HELMDECK_DATA_DIR: folder, HELMDECK_MEANING: 'off', ...environment },
    platform: process.platform,
    home: () => '/nowhere',
  });
  await using opened = new AsyncDisposableStack();
  const windowSessions = () => listener.windowSessions;
  const core = opened.use(await openMemory(config, { environment, version: '1.2.3', desktop: false, windowSessions }));
  const { perform, tokens, store } = core;
  const listener: Listener = opened.use(
    await startListener({
      perform,
      tokens,
      onChange: (onStderr) => store.onChange(onStderr),
      folder,
      address: '127.0.0.1:0',
      windowFolder: pages,
      version: '1.2.3',
      clock: systemClock,
    }),
  );
  const rest = opened.move();
  let ended: Promise<void> | undefined;
  const end = (): Promise<void> => (ended ??= rest.disposeAsync());
  onTestFinished(end);
  return { tokens, url: listener.url, end };
}

test('an entry of the owner records the token of the running program, and no token without a program (R-AUTH-08, R-SEAL-01)', async () => {
  await say('remember', 'alone', 'v');
  const { tokens, end } = await startProgram();
  await say('remember', 'asked', 'v');
  const { token } = await tokens.verify(tokens.ownerToken(), 'owner');
  await end();
  const store = await openFileStore(folder, systemClock);
  const facts = store.space({ subject: 'me' }, 'fact');
  const author = { client: 'command-line', origin: 'owner' };
  expect((await facts.get('alone'))?.author).toEqual({ ...author, token: '' });
  expect((await facts.get('asked'))?.author).toEqual({ ...author, token });
  expect(token).toMatch(/^[0-9a-f]{16}$/);
});

test('results are the same from the running program and from the memory opened directly', async () => {
  await say('remember', 'a', 'one', '--tag', 't');
  await say('remember', 'a', 'two', '--tag', 't');
  await say('remember', 'b', 'three', '--category', 'x');
  await say('backup');
  const questions = [
    ['recall', 'a'],
    ['recall', 'nothing'],
    ['search', 'two', 'three'],
    ['list', '--values'],
    ['list', '--sort', 'size'],
    ['history', 'a'],
    ['memory'],
    ['callers'],
    ['activity'],
    ['export'],
    ['key', 'status'],
    ['token', 'list'],
    ['backup', '--list'],
    ['verify'],
    ['forget', 'facts', '--dry-run'],
    ['undo', 'command-line', '--since', '1h', '--dry-run', '--yes'],
  ];
  const ask = async (): Promise<CommandResult[]> => {
    const answers = [];
    const now = Date.now() + 3_600_000;
    for (const question of questions) {
      answers.push(await runCli(question, { folder, now }), await runCli([...question, '--json'], { folder, now }));
    }
    return answers;
  };
  // Some results contain the current time.
  const still = (said: CommandResult[]): unknown[] =>
    said.map(({ out, ...rest }) => ({ ...rest, out: out.replace(/"(since|fetched_at)":"[^"]*"/, '') }));
  const without = still(await ask());
  const { end } = await startProgram();
  expect(still(await ask())).toEqual(without);
  await end();
  expect(still(await ask())).toEqual(without);
});

describe('while the program runs', () => {
  test('facts are stored and forgotten through it', async () => {
    const { url } = await startProgram();
    expect(await runCli(['remember', 'note', '-'], { folder, input: 'a\nb' })).toMatchObject({ code: 0 });
    expect((await say('recall', 'note')).out).toBe('a\nb\n');
    const lines = Array.from({ length: 1100 }, (_, index) => JSON.stringify({ key: `k${index}`, value: '"'.repeat(3000) }));
    expect((await runCli(['import', '-'], { folder, input: lines.join('\n') })).out).toBe(
      'Imported: 1100 new, 0 changed, 0 unchanged.\n',
    );
    expect((await say('export')).out.match(/\n/g)).toHaveLength(1101);
    expect((await say('forget', 'all', '--yes')).out).toMatch(/^Forgot [\d,]+ entries\.\n$/);
    expect((await say('status')).out).toContain(`program  running at ${url} (process ${process.pid})\n`);
    expect(await answered('status')).toMatchObject({ program: { url, pid: process.pid } });
  });

  test('window prints a new valid link each time (R-WIN-01)', async () => {
    const { url } = await startProgram({ HELMDECK_MEMORY_KEY: A_KEY }, 'out/renderer');
    const links = [(await say('window')).out.trim(), ((await answered('window')) as { link: string }).link];
    for (const link of links) {
      expect(link.startsWith(`${url}/#link=`)).toBe(true);
      const body = JSON.stringify({ link: link.split('=')[1] });
      const open = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body };
      expect((await fetch(`${url}/window/open`, open)).status).toBe(200);
      expect((await fetch(`${url}/window/open`, open)).status).toBe(401);
    }
  });

  test('window list shows the browser sessions, and window end closes one (R-WIN-46)', async () => {
    const { url } = await startProgram({ HELMDECK_MEMORY_KEY: A_KEY }, 'out/renderer');
    expect(await say('window', 'list')).toMatchObject({
      code: 0,
      out: '',
      err: 'The window of Helmdeck Memory is not open in any browser.\n',
    });
    const link = (await say('window')).out.trim().split('=')[1];
    const headers = { 'Content-Type': 'application/json', 'User-Agent': 'Firefox/142.0 Linux' };
    const opened = await fetch(`${url}/window/open`, { method: 'POST', headers, body: JSON.stringify({ link }) });
    const { session } = (await opened.json()) as { session: string };
    const { out } = await say('window', 'list');
    expect(out).toMatch(/^[0-9a-f]{12} +Firefox 142 on Linux +opened .* used .*\n$/);
    const [id = ''] = out.split(' ');
    expect(await say('window', 'end', id)).toMatchObject({ code: 0, out: `Closed ${id}.\n` });
    const bearer = { ...headers, Authorization: `Bearer ${session}` };
    const asked = await fetch(`${url}/window/call/status?subject=me`, { method: 'POST', headers: bearer, body: '{}' });
    expect(asked.status).toBe(401);
    expect(await say('window', 'end', id)).toMatchObject({ code: 3 });
  });

  test('window says that the window is not built', async () => {
    await startProgram();
    expect(await say('window')).toMatchObject({
      code: 3,
      out: '',
      err: expect.stringMatching(/The window has not been built/) as string,
    });
  });

  test('the key is rotated without a restart', async () => {
    await startProgram();
    await say('remember', 'k', 'v');
    // A key from the environment can only be changed by the owner.
    expect(await say('key', 'rotate')).toMatchObject({ code: 78 });
    expect(await say('key', 'recovery')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^(\w{4}-){13}\w{4}\n$/) as string,
    });
    expect((await say('recall', 'k')).out).toBe('v\n');
  });

  test('a program without a key accepts facts, and says that they are in RAM only', async () => {
    await startProgram({});
    expect(await runCli(['remember', 'k', 'v'], { folder })).toMatchObject({
      code: 0,
      err: expect.stringMatching(/RAM only/) as string,
    });
    expect(await say('key', 'rotate')).toMatchObject({ code: 4 });
  });

  test('lock affects every command until unlock', async () => {
    await startProgram();
    await say('remember', 'k', 'v');
    expect(await say('lock')).toEqual({ code: 0, out: 'The memory is locked.\n', err: '' });
    expect(await say('recall', 'k')).toMatchObject({ code: 4, err: expect.stringMatching(/helmdeck-memory unlock/) as string });
    expect(await say('key', 'status')).toMatchObject({ code: 4, out: expect.stringMatching(/^locked: /) as string });
    expect(await say('unlock')).toEqual({ code: 0, out: 'The memory is unlocked.\n', err: '' });
    expect((await say('recall', 'k')).out).toBe('v\n');
  });

  test.each([
    ['restore', 'backup.db', '--yes'],
    ['key', 'init', '--file'],
    ['key', 'recovery', '--use'],
  ])('%s %s %s is refused, because it needs exclusive access', async (...args) => {
    await startProgram({});
    expect(await runCli(args, { folder, environment: {} })).toMatchObject({
      code: 5,
      out: '',
      err: expect.stringMatching(/is running \(process \d+\)/) as string,
    });
    expect(existsSync(join(folder, 'memory.key'))).toBe(false);
  });

  test('a token gives access until it is revoked', async () => {
    const { tokens } = await startProgram();
    const { id, token } = (await answered('token', 'mint', 'cursor')) as { id: string; token: string };
    expect(await tokens.verify(token, 'rest')).toMatchObject({ client: 'cursor', subject: 'me' });
    await say('token', 'revoke', id);
    await expect(tokens.verify(token, 'rest')).rejects.toMatchObject({ code: 'invalid_token' });
  });
});

test('without a running program, window fails and creates no memory', async () => {
  expect(await say('window')).toMatchObject({ code: 5, err: expect.stringMatching(/^Helmdeck Memory is not running/) as string });
  expect(existsSync(folder)).toBe(false);
});

test('a token created while no program runs is valid for the next start', async () => {
  const token = (await say('token', 'mint', 'cursor')).out.trim();
  const { tokens } = await startProgram();
  expect(await tokens.verify(token, 'rest')).toMatchObject({ client: 'cursor' });
});

describe('a data folder that is locked by a process that does not respond', () => {
  test('is retried for a moment, then reported with exit code 5', async () => {
    prepareFolder(folder);
    using _held = lockFolder(folder);
    expect(await say('list')).toMatchObject({
      code: 5,
      out: '',
      err: expect.stringMatching(/^Another Helmdeck Memory process holds this data folder and does not respond/) as string,
    });
  });

  test('is opened when the lock is released', async () => {
    prepareFolder(folder);
    const held = lockFolder(folder);
    setTimeout(() => held[Symbol.dispose](), 300);
    expect(await say('remember', 'k', 'v')).toMatchObject({ code: 0 });
  });
});

test('a stale endpoint of a killed program is ignored', async () => {
  const { end } = await startProgram();
  const left = readFileSync(join(folder, 'endpoint.json'));
  const token = readFileSync(join(folder, 'owner-token'));
  await end();
  writeFileSync(join(folder, 'endpoint.json'), left, { mode: 0o600 });
  writeFileSync(join(folder, 'owner-token'), token, { mode: 0o600 });
  expect(await say('remember', 'k', 'v')).toMatchObject({ code: 0 });
});

test('a refused start prints its prefix and exits with the code of the failure (R-DUR-12)', async () => {
  await startProgram();
  const message = /^Helmdeck Memory cannot start: Another Helmdeck Memory process is using this data folder/;
  expect(await say('serve')).toMatchObject({ code: 5, out: '', err: expect.stringMatching(message) as string });
});
