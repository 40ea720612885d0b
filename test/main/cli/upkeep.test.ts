import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type CommandResult, runCli } from './run-cli.ts';

let folder: string;
const say = (...args: string[]): Promise<CommandResult> => runCli(args, { folder });
const answered = async (...args: string[]): Promise<unknown> => JSON.parse((await say(...args, '--json')).out);

beforeEach(async () => {
  folder = join(tempFolder(), 'data');
  await say('remember', 'k', 'v');
});

describe('a backup', () => {
  test('is created, listed and restored, and entries forgotten since stay forgotten (R-FORGET-15)', async () => {
    expect((await say('backup', '--list')).err).toMatch(/^There are no backups/);
    await say('remember', 'gone', 'v');
    const { code, out } = await say('backup');
    const file = /^Backup created and verified: (.*)\n$/.exec(out)?.[1] ?? '';
    expect({ code, made: existsSync(file) }).toEqual({ code: 0, made: true });
    expect((await say('backup', '--list')).out).toBe(`${(await say('backup', '--list')).out.slice(0, 16)}  ${file}\n`);
    expect(await answered('backup', '--list')).toMatchObject({ backups: [{ file }] });
    await say('forget', 'key:gone');
    await say('remember', 'k', 'changed');
    expect(await runCli(['restore', file], { folder, terminal: true, input: 'n\n' })).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/\[y\/N\] Nothing was changed/) as string,
    });
    expect(await say('restore', file)).toMatchObject({ code: 2 });
    const restored = await say('restore', file, '--yes');
    expect(restored).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        /^Restored \d+ entr.*\nLeft out \d+ entr\w+ that you forgot after the backup\.\nThe previous memory was moved to .*before-restore/,
      ) as string,
    });
    expect((await say('recall', 'k')).out).toBe('v\n');
    expect(await say('recall', 'gone')).toMatchObject({ code: 3 });
    expect(await answered('restore', file, '--yes')).toMatchObject({ broken: 0, forgotten_since: true });
  });

  test('is refused if the file does not exist, and the memory is unchanged', async () => {
    expect(await say('restore', join(folder, 'nothing.db'), '--yes')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/backup --list/) as string,
    });
    expect((await say('recall', 'k')).out).toBe('v\n');
  });

  test('is refused if the file is not a backup, and the message names that file (R-DUR-16)', async () => {
    const file = join(folder, 'random.db');
    writeFileSync(file, Buffer.alloc(8192, 'random'));
    expect(await say('restore', file, '--yes')).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /^The backup .*random\.db cannot be restored: it has no SQLite header\. Choose another/,
      ) as string,
    });
    expect((await say('recall', 'k')).out).toBe('v\n');
  });
});

test('verify reports no damage, or lists the damage and exits with 1 (R-SEAL-04)', async () => {
  expect(await say('verify')).toEqual({ code: 0, out: '2 entries verified, no damage found.\n', err: '' });
  const db = new Sqlite(join(folder, 'memory.db'));
  db.exec("UPDATE entry SET category = 'moved' WHERE kind = 1");
  db.close();
  const { code, out } = await say('verify');
  expect(code).toBe(1);
  // The count leaves out the broken entry (R-DUR-13).
  expect(out).toMatch(/^1 entry verified\.\nThe seal of 1 entry is broken\. Results do not show/);
  expect(await answered('verify')).toMatchObject({ entries: 1, broken: 1 });
  expect((await say('status')).out).toMatch(/^facts/m);
});

test('salvage exports the readable facts of a damaged memory, and another memory imports them (R-DUR-06)', async () => {
  for (const key of ['moved', 'whole']) await say('remember', key, `value of ${key}`, '--category', key);
  const db = new Sqlite(join(folder, 'memory.db'));
  db.exec("UPDATE entry SET category = 'elsewhere' WHERE category = 'moved'");
  db.close();
  const file = join(tempFolder(), 'facts.ndjson');
  expect(await say('salvage', file)).toEqual({
    code: 0,
    out: `Saved 2 facts to ${file}. The file is not encrypted.\nSkipped 1 entry with a broken seal.\n`,
    err: '',
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect((await say('salvage', file)).code).toBe(1);
  folder = join(tempFolder(), 'data');
  await say('import', file);
  expect((await say('recall', 'whole')).out).toBe('value of whole\n');
  expect((await say('recall', 'k')).out).toBe('v\n');
});

test('tokens are created, listed and revoked', async () => {
  const made = (await answered('token', 'mint', 'Claude Desktop', '--days', '30', '--scope', 'memory:read')) as {
    id: string;
    token: string;
  };
  expect(made).toMatchObject({
    client: 'Claude Desktop',
    subject: 'me',
    scopes: ['memory:read'],
    token: expect.stringMatching(/^ey/) as string,
  });
  const second = await say('token', 'mint', 'Ada’s laptop', '--client', 'cursor', '--subject', 'ada');
  expect(second).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^ey\S+\n$/) as string,
    err: expect.stringMatching(/for the client cursor and expires on .* not be shown again/) as string,
  });
  const { out } = await say('token', 'list');
  expect(out).toMatch(
    new RegExp(`${made.id} {2}Claude Desktop {2}Claude Desktop {2}me +memory:read +30 days left .* {2}never used`),
  );
  expect(out).not.toContain(made.token);
  expect((await say('token', 'revoke', made.id)).out).toBe(`Revoked ${made.id}.\n`);
  expect(await answered('token', 'list')).toMatchObject({ tokens: [{ client: 'cursor', subject: 'ada' }] });
  expect(await say('token', 'revoke', 'nobody')).toMatchObject({ code: 3 });
  expect(await say('token', 'mint', 'x', '--scope', 'everything')).toMatchObject({
    code: 1,
    err: expect.stringMatching(/^scopes/) as string,
  });
  expect((await runCli(['token', 'list'], { folder: join(tempFolder(), 'new') })).err).toMatch(
    /^There are no tokens\. Create one/,
  );
});

test('a token of an unknown client is quarantined, unless the owner says otherwise (R-AUTH-06)', async () => {
  const { err } = await say('token', 'mint', 'nightly');
  expect(err).toMatch(/^Everything that this client writes waits until you accept it with: helmdeck-memory inbox\./);
  expect(err).toContain('--no-quarantine');
  expect((await say('token', 'mint', 'reader', '--scope', 'memory:read')).err).not.toContain('waits until you accept');
  expect((await say('token', 'mint', 'nightly', '--no-quarantine')).err).not.toContain('waits until you accept');
  expect((await say('token', 'mint', 'codex')).err).not.toContain('waits until you accept');
  expect((await say('token', 'mint', 'codex', '--quarantine')).err).toContain('waits until you accept');
  expect(await say('token', 'mint', 'x', '--quarantine', '--no-quarantine')).toMatchObject({ code: 2 });
  expect((await say('token', 'list')).out.match(/quarantined$/gm)).toHaveLength(3);
  for (const { id } of ((await answered('token', 'list')) as { tokens: { id: string }[] }).tokens)
    await say('token', 'revoke', id);
});

test('--keep saves a token where the bridge reads it, readable only by the owner (R-MCP-12)', async () => {
  const { code, out, err } = await say('token', 'mint', 'claude code', '--keep');
  const file = join(folder, 'clients', 'claude code.token');
  expect({ code, out }).toEqual({ code: 0, out: `The token was saved to ${file}.\n` });
  expect(err).toMatch(/for the client claude code and expires on .*\. Revoke it with/);
  expect(readFileSync(file, 'utf8')).toMatch(/^ey\S+\n$/);
  expect([file, join(folder, 'clients')].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o700]);
  expect(await answered('token', 'mint', 'again', '--client', 'claude code', '--keep')).toEqual(
    expect.not.objectContaining({ token: expect.anything() as string }),
  );
  expect(await say('token', 'mint', '..', '--keep')).toMatchObject({ code: 2, err: expect.stringMatching(/--client/) as string });
});

test('status shows where the memory and its key are', async () => {
  expect(await say('status')).toEqual({
    code: 0,
    out: `program  not running\nmemory   ${join(folder, 'memory.db')}, sealed\nkey      ok, in the environment (HELMDECK_MEMORY_KEY)\nfacts    1\n`,
    err: '',
  });
  expect(await answered('status')).toMatchObject({ facts: 1, folder, program: null, store: { kept: 'file', key: { at: 'ok' } } });
});

describe('exit code 5', () => {
  test.each(['lock', 'unlock'])('%s fails if no program is running', async (command) => {
    expect(await say(command)).toMatchObject({ code: 5, err: expect.stringMatching(/is not running/) as string });
  });

  test('a damaged memory is refused and left unchanged (R-DUR-05)', async () => {
    writeFileSync(join(folder, 'memory.db'), 'not a database');
    expect(await say('list', '--json')).toMatchObject({
      code: 5,
      err: expect.stringMatching(/^\{"error":"store_unavailable","message":"The file memory\.db is damaged/) as string,
    });
  });
});

test.each([
  { why: 'a folder that is not absolute', folder: 'here', environment: {}, says: /^HELMDECK_DATA_DIR must be/ },
  { why: 'a quota that is not a number', environment: { HELMDECK_QUOTA_FACTS: 'abc' }, says: /^HELMDECK_QUOTA_FACTS must be/ },
])('an invalid setting exits with 78: $why', async ({ folder: asked, environment, says }) => {
  expect(
    await runCli(['list'], { folder: asked ?? folder, environment: { HELMDECK_MEMORY_KEY: A_KEY, ...environment } }),
  ).toMatchObject({ code: 78, err: expect.stringMatching(says) as string });
});
