import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { SERVE, serveDatabase, startProgram } from '../../support/program.ts';
import { A_KEY, ANOTHER_KEY } from '../../support/store.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';
import { runCli } from '../cli/run-cli.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

let memories = 0;
/** Returns the address of a new, empty memory. */
const newUrl = (): string => `postgres://owner:pass%20word@127.0.0.1:${server.port}/postgres?schema=served_${(memories += 1)}`;

describe('the program with HELMDECK_DATABASE_URL (R-STORE-03)', () => {
  test('keeps the memory in the database, and nothing of it in the data folder', async () => {
    const url = newUrl();
    const program = await serveDatabase(url);
    expect(program.output).toMatch(
      `The memory is sealed in the schema served_1 of the PostgreSQL database postgres at 127.0.0.1:`,
    );
    const { token } = await program.token('ada');
    const body = { key: 'editor', value: 'Ada uses Helix' };
    expect(await program.send('/memory/store', { token, body })).toMatchObject({ status: 200, json: { status: 'created' } });
    expect(await program.send('/memory/search?query=helix', { token })).toMatchObject({
      status: 200,
      json: { hits: [{ key: 'editor' }] },
    });
    const { store, facts } = await program.owner.call('status', {});
    expect({ kept: store.kept, key: store.key.at, facts }).toEqual({ kept: 'database', key: 'ok', facts: 0 });
    const { code, output, errorOutput } = await program.end('SIGTERM');
    expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
    expect(output).not.toMatch(/pass/);
    expect(filesBelow(program.folder).map(({ path }) => path.slice(program.folder.length + 1))).toEqual(['lock.db']);
    const again = await serveDatabase(url);
    expect(await again.send('/memory/fact?key=editor', { token })).toMatchObject({ json: { value: 'Ada uses Helix' } });
  });

  test('reads the address from a file that only its owner can read', async () => {
    const file = join(tempFolder(), 'url');
    writeFileSync(file, `${newUrl()}\n`, { mode: 0o600 });
    const environment = { HELMDECK_DATA_DIR: tempFolder(), HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_DATABASE_URL_FILE: file };
    const running = await startProgram(environment, SERVE);
    expect(running.output).toMatch(/PostgreSQL database/);
    await running.end('SIGTERM');
    chmodSync(file, 0o644);
    const refused = await (await startProgram(environment, SERVE)).end();
    expect(refused).toMatchObject({ code: 78, output: '', errorOutput: expect.stringMatching(/DATABASE_URL_FILE/) as string });
  });

  test('status and doctor speak of the database, with and without a running program', async () => {
    const url = newUrl();
    const run = (folder: string, ...args: string[]) => {
      const environment = { PATH: process.env['PATH'], HOME: folder, HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY };
      const options = { env: { ...environment, HELMDECK_DATABASE_URL: url }, encoding: 'utf8' } as const;
      const { status, stdout, stderr } = spawnSync(process.execPath, ['bin/helmdeck-memory.js', ...args], options);
      expect(stdout + stderr).not.toMatch(/pass/);
      return { status, said: stdout + stderr };
    };
    const program = await serveDatabase(url);
    for (const running of [true, false]) {
      if (!running) await program.end('SIGTERM');
      expect(run(program.folder, 'status')).toEqual({
        status: 0,
        said: expect.stringMatching(
          /memory +the schema served_\d+ of the PostgreSQL database postgres at 127\.0\.0\.1:\d+, sealed/,
        ) as string,
      });
      expect(run(program.folder, 'doctor').said).toMatch(/The database is open\.[\s\S]*entries? verified, no damage found/);
      expect(run(program.folder, 'verify')).toMatchObject({ status: 0 });
    }
    expect(run(program.folder, 'salvage', 'facts.ndjson')).toEqual({
      status: 1,
      said: expect.stringMatching(/works on memory files only/) as string,
    });
  });

  test('never shows the address', async () => {
    const program = await serveDatabase(newUrl());
    const { settings } = await program.owner.call('settings', {});
    const row = settings.find(({ name }) => name === 'HELMDECK_DATABASE_URL');
    expect(row).toMatchObject({ from: 'environment', changeable: false });
    expect(row).not.toHaveProperty('value');
  });

  test('refuses a wrong key before anything is written (R-KEY-04, R-KEY-07)', async () => {
    const url = newUrl();
    const first = await serveDatabase(url);
    const { token } = await first.token('ada');
    await first.send('/memory/store', { token, body: { key: 'k', value: 'v' } });
    await first.end('SIGTERM');
    const before = await rowsOf(url);
    const other = await serveDatabase(url, { HELMDECK_MEMORY_KEY: ANOTHER_KEY });
    expect(other.output).toMatch(/WARNING: THE KEY IS MISMATCH/);
    const stored = await other.send('/memory/store', { token, body: { key: 'k', value: 'other' } });
    expect(stored).toMatchObject({ status: 503, json: { error: 'key_unavailable' } });
    expect(await other.owner.call('unlock', {})).toMatchObject({ key: { at: 'mismatch' } });
    await other.end('SIGTERM');
    expect(await rowsOf(url)).toEqual(before);
  });

  test('waits for a key instead of keeping facts in RAM (R-KEY-03, R-KEY-08)', async () => {
    const url = newUrl();
    const program = await serveDatabase(url, { HELMDECK_MEMORY_KEY: undefined });
    expect(program.output).toMatch(/WARNING: THE KEY IS ABSENT/);
    const { store } = await program.owner.call('status', {});
    expect(store).toMatchObject({ kept: 'database', key: { at: 'absent' } });
    await expect(program.token('ada')).rejects.toMatchObject({ code: 'key_unavailable' });
    writeFileSync(join(program.folder, 'memory.key'), `${A_KEY}\n`, { mode: 0o600 });
    expect(await program.owner.call('unlock', {})).toMatchObject({ key: { at: 'ok' } });
    const { token } = await program.token('ada');
    expect(await program.send('/memory/store', { token, body: { key: 'k', value: 'v' } })).toMatchObject({ status: 200 });
  });
});

/** Returns every row of a memory. */
async function rowsOf(url: string): Promise<unknown> {
  const schema = new URL(url).searchParams.get('schema') ?? '';
  const tables = ['writer_lock', 'change_log', 'meta', 'master_key', 'namespace', 'entry', 'usage', 'tombstone', 'revoked_token'];
  const rows: Record<string, unknown> = {};
  for (const table of tables) rows[table] = await server.query(`SELECT * FROM ${schema}.${table} AS one ORDER BY one::text`);
  return rows;
}

test('verify names the damage in the schema, and exits with 1 (R-PGUP-08)', async () => {
  const program = await serveDatabase(newUrl());
  await server.query(`DROP INDEX served_${memories}.entry_expiry`);
  const { code, out } = await runCli(['verify'], { folder: program.folder });
  expect({ code, out }).toEqual({
    code: 1,
    out: expect.stringMatching(/^\d+ entr\w+ verified\.\nDamaged structure: index entry_expiry is missing\n$/) as string,
  });
  expect(out).not.toMatch(/file/i);
});
