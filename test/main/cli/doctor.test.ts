import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { lockFolder } from '../../../src/core/file/folder.ts';
import { PostgresStore } from '../../../src/core/store/postgres/postgres-store.ts';
import { systemClock } from '../../../src/core/time/clock.ts';
import type { Finding } from '../../../src/main/doctor/finding.ts';
import { keychainFinding, nodeFinding } from '../../../src/main/doctor/machine.ts';
import { createAuthority } from '../../support/certificates.ts';
import { startPostgres } from '../../support/postgres.ts';
import { A_KEY, ANOTHER_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { runCli } from './run-cli.ts';

let folder: string;
const keyFile = () => join(folder, '..', 'key');

beforeEach(() => {
  folder = join(tempFolder(), 'data');
  writeFileSync(keyFile(), A_KEY, { mode: 0o600 });
});

const environment = (more: Record<string, string> = {}) => ({
  HELMDECK_MEMORY_KEY_FILE: keyFile(),
  HELMDECK_ADDR: '127.0.0.1:0',
  ...more,
});
const say = (args: string[], more?: Record<string, string>) => runCli(args, { folder, environment: environment(more) });

async function examined(more?: Record<string, string>) {
  const { code, out, err } = await say(['doctor', '--json'], more);
  expect(err).toBe('');
  const { ok, findings } = JSON.parse(out) as { ok: boolean; findings: Finding[] };
  expect({ ok, code }).toEqual(findings.some(({ state }) => state === 'bad') ? { ok: false, code: 1 } : { ok: true, code: 0 });
  return findings;
}

/** The findings that are not ok, each as one line. */
const complaints = async (more?: Record<string, string>): Promise<string[]> =>
  (await examined(more))
    .filter(({ state, check }) => state !== 'ok' && check !== 'keychain')
    .map(({ check, state, says, remedy = '' }) => `${state} ${check} ${says} ${remedy}`.trim());

describe('the doctor', () => {
  test('finds no problem in a healthy memory', async () => {
    await say(['remember', 'a', 'one']);
    await say(['backup']);
    await say(['key', 'recovery']);
    expect(await complaints()).toEqual([]);
    expect((await examined()).map(({ check }) => check)).toEqual(
      expect.arrayContaining([
        'node',
        'settings',
        'folder',
        'disk',
        'program',
        'port',
        'key',
        'file',
        'clock',
        'entries',
        'backup',
      ]),
    );
  });

  test('prints each finding on one line, and what to do below it', async () => {
    await say(['remember', 'a', 'one']);
    const { out, code } = await say(['doctor']);
    expect(code).toBe(0);
    expect(out).toMatch(/^ok {4}folder {4}Only you can access .*data\.$/m);
    expect(out).toMatch(/^warn {2}backup {4}There is no backup\.\n {16}Create a backup with: helmdeck-memory backup$/m);
    expect(out).toMatch(
      /^warn {2}recovery {2}There is no recovery key\. .*\n {16}Create a recovery key and write it down: helmdeck-memory key recovery/m,
    );
  });

  test('creates no folder and no memory', async () => {
    expect(await complaints()).toEqual([]);
    expect(await complaints({ HELMDECK_MEMORY_KEY_FILE: '/nowhere' })).toEqual([
      expect.stringMatching(/^bad key .*HELMDECK_MEMORY_KEY_FILE names cannot be read/) as string,
    ]);
    expect(existsSync(folder)).toBe(false);
  });

  test('reports a wrong or malformed key', async () => {
    await say(['remember', 'a', 'one']);
    writeFileSync(keyFile(), ANOTHER_KEY);
    expect(await complaints()).toContainEqual(expect.stringMatching(/^bad key The key is mismatch: .*Provide the key/));
    writeFileSync(keyFile(), 'no-key-5e5e');
    expect(await complaints()).toContainEqual(expect.stringMatching(/^(?!.*5e5e)bad memory .*must contain exactly 64/));
  });

  test('reports a damaged file, and an entry with a broken seal', async () => {
    await say(['remember', 'a', 'one']);
    {
      const db = new Sqlite(join(folder, 'memory.db'));
      db.exec('UPDATE entry SET expires_at = expires_at + 1');
      db.close();
    }
    expect(await complaints()).toContainEqual(expect.stringMatching(/^bad entries The seal of \d+ entr\w+ is broken/));
    writeFileSync(join(folder, 'memory.db'), 'no database');
    expect(await complaints()).toContainEqual(expect.stringMatching(/^bad memory .*memory\.db is damaged/));
  });

  test('names the process that has locked the data folder', async () => {
    await say(['remember', 'a', 'one']);
    using _held = lockFolder(folder);
    const told = await complaints();
    expect(told).toContainEqual(expect.stringMatching(/^bad memory Another Helmdeck Memory process holds this data folder/));
    if (process.platform !== 'linux') return;
    expect(told).toContainEqual(expect.stringMatching(`^bad lock The data folder is in use by .* \\(process ${process.pid}\\)`));
  });

  test('names the program that uses the port', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    expect(await complaints({ HELMDECK_ADDR: `127.0.0.1:${port}` })).toEqual([
      expect.stringMatching(`^bad port 127.0.0.1:${port} is in use by .*HELMDECK_ADDR`) as string,
    ]);
    expect(await complaints({ HELMDECK_ADDR: '0.0.0.0:1' })).toEqual([
      expect.stringMatching(/^bad port HELMDECK_ADDR must be/) as string,
    ]);
  });

  test('distinguishes a stale endpoint from a port that another program uses', async () => {
    await say(['backup']);
    const publish = (over: object) => {
      const endpoint = {
        url: 'http://127.0.0.1:1',
        pid: 2 ** 30,
        instance: 'i',
        proof_key: '5e'.repeat(32),
        started_at: '',
        ...over,
      };
      writeFileSync(join(folder, 'endpoint.json'), JSON.stringify(endpoint), { mode: 0o600 });
      writeFileSync(join(folder, 'owner-token'), 'hush', { mode: 0o600 });
    };
    publish({});
    expect(await complaints()).toContainEqual(
      expect.stringMatching(/^warn program .*It was killed, and left endpoint\.json behind/),
    );
    const squatter = createServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 200 OK\r\n\r\n{}'));
    squatter.listen(0, '127.0.0.1');
    onTestFinished(() => void squatter.close());
    await once(squatter, 'listening');
    const address = squatter.address();
    publish({ pid: process.pid, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}` });
    expect(await complaints()).toContainEqual(
      expect.stringMatching(/^bad program Another program is using the port of this memory/),
    );
  });

  test('reports invalid, unknown and risky settings', async () => {
    expect(await complaints({ HELMDECK_SECRETS: 'off' })).toEqual([
      expect.stringMatching(/^bad settings HELMDECK_SECRETS must be/) as string,
    ]);
    expect(await complaints({ HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_PORT: '1', HELMDECK_JWT_SECRET: 'short' })).toEqual([
      expect.stringMatching(/^warn settings Unknown settings are ignored: HELMDECK_PORT\./) as string,
      expect.stringMatching(/^warn settings HELMDECK_MEMORY_KEY holds the key in the environment/) as string,
      expect.stringMatching(/^bad settings HELMDECK_JWT_SECRET must contain/) as string,
    ]);
  });

  test('accepts a key in a configuration file that only the owner can read', async () => {
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ HELMDECK_MEMORY_KEY: A_KEY }), { mode: 0o600 });
    const { out } = await runCli(['doctor', '--json'], { folder, environment: { HELMDECK_ADDR: '127.0.0.1:0' } });
    expect(JSON.parse(out)).toMatchObject({ ok: true });
    expect(out).not.toMatch(/where your other programs can read it/);
    expect(out).toContain(`Settings come from the environment and from ${join(folder, 'config.json')}.`);
  });

  test('accepts readable pack files, but reports a pack that other users can write', async () => {
    await say(['backup']);
    const packs = join(folder, 'packs');
    mkdirSync(packs);
    const pack = join(packs, 'words.check.mjs');
    writeFileSync(pack, '// mine');
    chmodSync(packs, 0o755);
    chmodSync(pack, 0o644);
    expect((await complaints()).filter((line) => line.startsWith('bad folder'))).toEqual([]);
    chmodSync(pack, 0o664);
    expect(await complaints()).toContainEqual(
      expect.stringMatching(/^bad folder Other users can access these files: .*words\.check\.mjs\./),
    );
  });

  test('reports a folder and files that other users can read', async () => {
    await say(['backup']);
    chmodSync(join(folder, 'memory.db'), 0o644);
    expect(await complaints()).toContainEqual(
      expect.stringMatching(/^bad folder Other users can access these files: .*memory\.db\. Run: chmod -R go= /),
    );
    chmodSync(folder, 0o750);
    expect(await complaints()).toEqual([expect.stringMatching(/^bad folder Other users can open .*chmod 700/) as string]);
    const link = join(tempFolder(), 'link');
    symlinkSync(folder, link);
    expect(await complaints({ HELMDECK_DATA_DIR: link })).toEqual([
      expect.stringMatching(/^bad folder .*is a link or not a folder/) as string,
    ]);
    unlinkSync(link);
    mkdirSync(link, { mode: 0o700 });
    expect(await complaints({ HELMDECK_DATA_DIR: link })).toEqual([]);
  });

  test('reports an old Node and a missing keychain library', async () => {
    expect(nodeFinding('v22.12.0')).toMatchObject({ state: 'bad', remedy: expect.stringMatching(/Node 24/) as string });
    expect(nodeFinding('v24.0.0')).toMatchObject({ state: 'ok' });
    expect(await keychainFinding(async () => undefined)).toMatchObject({
      state: 'warn',
      remedy: expect.stringMatching(/key init --file/) as string,
    });
  });
});

test('the doctor reports the certificate of the server for other machines (R-TEAM-02)', async () => {
  const authority = createAuthority();
  const about = async (until: number) => {
    const issued = authority.issue(['DNS:memory.test'], { from: -9, until });
    const tls = { HELMDECK_TLS_CERT_FILE: issued.certificateFile, HELMDECK_TLS_KEY_FILE: issued.keyFile };
    return (await examined({ HELMDECK_SERVER_ADDR: '127.0.0.2:7443', ...tls })).find(({ check }) => check === 'server');
  };
  expect(await about(30)).toMatchObject({
    state: 'ok',
    says: expect.stringContaining('at 127.0.0.2:7443. The certificate is valid for'),
  });
  expect(await about(5)).toMatchObject({ state: 'warn', remedy: expect.stringContaining('Renew the certificate') });
  expect(await about(-1)).toMatchObject({ state: 'bad', says: expect.stringMatching(/expired on .*; renew it/) });
});

test('doctor and status create no memory in a file, and finish no move (R-PGSV-04)', async () => {
  expect(await examined()).toContainEqual(
    expect.objectContaining({ check: 'memory', says: expect.stringMatching(/^There is no memory yet/) as string }),
  );
  expect(await say(['status'])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^memory +none yet in /m) as string,
    err: '',
  });
  expect(JSON.parse((await say(['status', '--json'])).out)).toEqual({ folder, program: null });
  expect(existsSync(join(folder, 'memory.db'))).toBe(false);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'memory.moving.db'), '', { mode: 0o600 });
  expect(await say(['status'])).toMatchObject({
    code: 78,
    err: expect.stringMatching(/^A move into this data folder has not finished/) as string,
  });
  expect((await examined()).map(({ says }) => says).join('\n')).toMatch(/A move into this data folder has not finished/);
  expect(readdirSync(folder)).not.toContain('memory.db');
});

test('commands that only read a memory in a database commit nothing (R-PGSV-04)', async () => {
  await using server = await startPostgres();
  const more = { HELMDECK_DATABASE_URL: `postgres://owner@127.0.0.1:${server.port}/postgres?schema=read` };
  await say(['remember', 'a', 'one'], more);
  const newest = (): Promise<unknown> => server.query('SELECT max(number) AS change FROM read.change_log');
  const before = await newest();
  for (const args of [['status'], ['doctor'], ['verify'], ['recall', 'a'], ['search', 'one']])
    expect(await say(args, more)).toMatchObject({ code: 0 });
  expect(await newest()).toEqual(before);
});

test('doctor and status write nothing to tables that have no key yet (R-PGSV-04)', async () => {
  await using server = await startPostgres();
  const database = server.newMemory();
  const more = { HELMDECK_DATABASE_URL: `postgres://owner@127.0.0.1:${server.port}/postgres?schema=${database.schema}` };
  // As a start without a key leaves them.
  const store = await PostgresStore.open({ database, clock: systemClock, sources: () => [] });
  await store[Symbol.asyncDispose]();
  const rows = (): Promise<unknown> =>
    server.query(`SELECT (SELECT count(*) FROM "${database.schema}".master_key) AS keys,
      (SELECT count(*) FROM "${database.schema}".meta) AS meta, (SELECT max(number) FROM "${database.schema}".change_log) AS change`);
  const before = await rows();
  expect((await examined(more)).map(({ says }) => says).join('\n')).toMatch(/There is no memory yet/);
  expect(await say(['status'], more)).toMatchObject({ code: 0, out: expect.stringMatching(/^memory +none yet in /m) as string });
  expect(await rows()).toEqual(before);
  // The marks of a move are no empty memory.
  await server.query(`INSERT INTO "${database.schema}".meta (name, plain) VALUES ('moving', 'x')`);
  expect(await say(['status'], more)).toMatchObject({ code: 78, err: expect.stringMatching(/has not finished/) as string });
});

test('doctor and status write nothing to a database without a memory, and say that there is none (R-PGSV-04)', async () => {
  await using server = await startPostgres();
  const more = { HELMDECK_DATABASE_URL: `postgres://owner@127.0.0.1:${server.port}/postgres?schema=empty` };
  const schemas = (): Promise<unknown> => server.query("SELECT nspname FROM pg_namespace WHERE nspname = 'empty'");
  expect(await examined(more)).toContainEqual({
    check: 'memory',
    state: 'ok',
    says: expect.stringMatching(/^There is no memory yet\. The next start creates it with the key in /) as string,
  });
  expect(await say(['status'], more)).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^memory +none yet in the schema empty of the PostgreSQL database postgres/m) as string,
    err: '',
  });
  expect(JSON.parse((await say(['status', '--json'], more)).out)).toEqual({ folder, program: null });
  expect(await schemas()).toEqual([]);
  await say(['remember', 'a', 'one'], more);
  expect((await say(['status'], more)).out).toMatch(/^facts +1$/m);
  expect((await examined(more)).map(({ says }) => says)).toContain('The database is open.');
  expect(await schemas()).toHaveLength(1);
});
