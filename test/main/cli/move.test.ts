import { existsSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { A_KEY, ANOTHER_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type CommandResult, runCli } from './run-cli.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

let memories = 0;
let url: string;
let folder: string;
beforeEach(() => {
  url = `postgres://owner:pass%20word@127.0.0.1:${server.port}/postgres?schema=moved_${(memories += 1)}`;
  folder = tempFolder();
});

const withoutPassword = (): string => url.replace(':pass%20word', '');

const inFile = (...args: string[]): Promise<CommandResult> => runCli(args, { folder });
const onServer = (...args: string[]): Promise<CommandResult> =>
  runCli(args, { folder, environment: { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_DATABASE_URL: url } });

async function exported(say: typeof inFile): Promise<string> {
  const { code, out } = await say('export');
  expect(code).toBe(0);
  return out;
}

describe('move (R-PGUP-07)', () => {
  test('moves the memory to a database and back, and its exports stay equal byte for byte', async () => {
    for (const value of ['one', 'two', 'three']) await inFile('remember', 'key', value, '--tag', 'ü');
    for (let index = 0; index < 30; index += 1) await inFile('remember', `facts/${index}`, `value ${index}`);
    await inFile('forget', 'key:facts/7', '--yes');
    const minted = await inFile('token', 'mint', 'n', '--client', 'c');
    expect(minted.code).toBe(0);
    const [facts, tokens, history] = [
      await exported(inFile),
      (await inFile('token', 'list')).out,
      (await inFile('history', 'key')).out,
    ];

    const there = await inFile('move', '--to', withoutPassword());
    expect(there).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        /^Moved and compared \d+ entries\. The memory is now the schema moved_1 of the PostgreSQL/,
      ) as string,
    });
    const again = await inFile('move', '--to', withoutPassword());
    expect(again).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        /^An earlier command has moved this memory\. It is now the schema moved_1 .*, with \d+ entries\.\n/,
      ) as string,
    });
    expect(await exported(onServer)).toBe(facts);
    expect((await onServer('token', 'list')).out).toBe(tokens);
    expect((await onServer('history', 'key')).out).toBe(history);
    // The file cannot be used by mistake.
    expect(await inFile('recall', 'key')).toMatchObject({
      code: 78,
      out: '',
      err: expect.stringMatching(/was moved to/) as string,
    });

    const back = await onServer('--json', 'move', '--to', 'file');
    expect(JSON.parse(back.out)).toMatchObject({ broken: 0, to: join(folder, 'memory.db') });
    expect(back.out + back.err).not.toMatch(/pass/);
    expect(await exported(inFile)).toBe(facts);
    expect((await inFile('history', 'key')).out).toBe(history);
    expect(await onServer('recall', 'key')).toMatchObject({ code: 78, err: expect.stringMatching(/was moved to/) as string });
    expect((await inFile('verify')).code).toBe(0);
  });

  test.each([
    { what: 'no target', args: [], code: 2, says: /^Say where to move the memory/ },
    { what: 'an unknown target', args: ['--to', 'elsewhere'], code: 2, says: /^Say where to move the memory/ },
    { what: 'a target without an address', args: ['--to', 'database'], code: 1, says: /^Set HELMDECK_DATABASE_URL/ },
    {
      what: 'a password on the command line',
      args: ['--to', 'postgres://owner:pass@127.0.0.1:1/d'],
      code: 2,
      says: /^Other users can see a password on the command line, so change it\. .* --to database\.\n/,
    },
    { what: 'an address with an unknown parameter', args: ['--to', 'postgres://h/d?x=1'], code: 78, says: /cannot be used/ },
    { what: 'a server that is not there', args: ['--to', 'postgres://owner@127.0.0.1:1/d'], code: 5, says: /cannot be reached/ },
    { what: 'a server without TLS', args: ['--to', 'TLS'], code: 5, says: /does not offer TLS/ },
    { what: 'a database that does not exist', args: ['--to', 'MISSING'], code: 5, says: /does not exist/ },
  ])('refuses $what with one sentence, and changes nothing', async ({ args, code, says }) => {
    await inFile('remember', 'key', 'value');
    const addresses = new Map([
      ['TLS', `postgres://owner@127.0.0.1:${server.port}/postgres?sslmode=require`],
      ['MISSING', `postgres://owner@127.0.0.1:${server.port}/missing`],
    ]);
    const refused = await inFile('move', ...args.map((arg) => addresses.get(arg) ?? arg));
    expect(refused).toMatchObject({ code, out: '' });
    expect(refused.err).toMatch(says);
    expect(refused.err).not.toMatch(/pass@|owner:/);
    // After a wrong command line, a second line names the help.
    expect(refused.err.trim().split('\n')).toHaveLength(code === 2 ? 2 : 1);
    expect((await inFile('recall', 'key')).out).toBe('value\n');
  });

  test('refuses a wrong key and an empty data folder with their exit codes', async () => {
    expect(await inFile('move', '--to', withoutPassword())).toMatchObject({
      code: 3,
      err: expect.stringMatching(/no memory file/) as string,
    });
    await inFile('remember', 'key', 'value');
    const environment = { HELMDECK_MEMORY_KEY: ANOTHER_KEY, HELMDECK_DATABASE_URL: url };
    expect((await runCli(['move', '--to', 'database'], { folder, environment })).code).toBe(4);
    expect((await onServer('move', '--to', 'file')).code).toBe(3);
    expect(await server.query(`SELECT 1 FROM pg_namespace WHERE nspname = 'moved_${memories}'`)).toEqual([]);
    expect(existsSync(join(folder, 'memory.db'))).toBe(true);
    expect(readdirSync(folder).filter((name) => name.includes('moving'))).toEqual([]);
  });
});

test('backup, verify, restore and the recovery key work on a database (R-PGUP-08)', async () => {
  expect((await onServer('remember', 'key', 'old')).code).toBe(0);
  const backup = await onServer('--json', 'backup');
  const { file } = JSON.parse(backup.out) as { file: string };
  expect(existsSync(file)).toBe(true);
  await onServer('remember', 'key', 'new');
  expect(await onServer('verify')).toMatchObject({ code: 0, out: expect.stringMatching(/verified, no damage found/) as string });
  const forgotten = await onServer('remember', 'gone', 'x').then(() => onServer('forget', 'key:gone', '--yes'));
  expect(forgotten.out).toMatch(/^Forgot 1 entry\.\nThe database server can still have their sealed bytes/);
  expect((await onServer('forget', 'key:gone', '--yes')).out).toBe('Forgot 0 entries.\n');
  expect(await onServer('restore', file, '--yes')).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Restored \d+ entries/) as string,
  });
  expect((await onServer('recall', 'key')).out).toBe('old\n');
  const recoveryKey = (await onServer('key', 'recovery')).out;
  const environment = { HELMDECK_DATABASE_URL: url };
  const lost = await runCli(['key', 'recovery', '--use', '--file'], { folder, environment, input: recoveryKey });
  expect(lost).toMatchObject({ code: 0, out: 'The key was restored:\nok, in the key file\n' });
  expect((await runCli(['recall', 'key'], { folder, environment })).out).toBe('old\n');
  expect((await runCli(['key', 'rotate'], { folder, environment })).code).toBe(0);
  expect((await runCli(['recall', 'key'], { folder, environment })).out).toBe('old\n');
  expect((await onServer('recall', 'key')).code).toBe(4);
});

test('the recovery key of a database never replaces the key file of a memory in a file (R-KEY-10)', async () => {
  await onServer('remember', 'key', 'shared');
  const recoveryKey = (await onServer('key', 'recovery')).out;
  // This machine has a memory of its own, in a file.
  const own = { folder, environment: {} };
  expect((await runCli(['key', 'init', '--file'], own)).code).toBe(0);
  await runCli(['remember', 'key', 'own'], own);
  const there = { folder, environment: { HELMDECK_DATABASE_URL: url } };
  const use = await runCli(['key', 'recovery', '--use', '--file'], { ...there, input: recoveryKey });
  expect(use).toMatchObject({
    code: 4,
    err: expect.stringMatching(/contains another key, which can belong to another memory/) as string,
  });
  expect((await runCli(['recall', 'key'], own)).out).toBe('own\n');
  renameSync(join(folder, 'memory.key'), join(folder, 'own.key'));
  expect((await runCli(['key', 'recovery', '--use', '--file'], { ...there, input: recoveryKey })).code).toBe(0);
  expect((await runCli(['recall', 'key'], there)).out).toBe('shared\n');
});
