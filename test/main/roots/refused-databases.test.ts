import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { SERVE, serveDatabase, startProgram } from '../../support/program.ts';
import { mountDisk, startOnSmallDisk } from '../../support/small-disk.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const SECRET = 'pass-4711-word';
const at = (port: number, rest: string, user = 'owner'): string => `postgres://${user}:${SECRET}@127.0.0.1:${port}/${rest}`;

/** Starts the real program on a database that must be refused, and checks that it writes nothing and never shows the password. */
async function refusalOf(url: string, asked = server): Promise<{ code: number | null; errorOutput: string }> {
  const objects = (): Promise<unknown> =>
    asked.query("SELECT relname, relnamespace FROM pg_class WHERE relname !~ '^pg_' ORDER BY oid");
  const before = await objects();
  const folder = join(tempFolder(), 'data');
  const environment = { HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_DATABASE_URL: url };
  const { code, output, errorOutput } = await (await startProgram(environment, SERVE)).end();
  expect(await objects()).toEqual(before);
  expect(output).toBe('');
  expect(errorOutput).not.toMatch(new RegExp(SECRET.slice(0, 9)));
  // One line, with the sentence that says what to do.
  expect(errorOutput.trimEnd().split('\n')).toHaveLength(1);
  expect(existsSync(join(folder, 'memory.db'))).toBe(false);
  return { code, errorOutput };
}

const UNAVAILABLE = 5;
const CONFIG = 78;

describe('serve refuses, with one sentence and without writing (R-PGSV-04)', () => {
  test.each([
    ['not an address', `mysql://owner:${SECRET}@db/m`, /not an address/],
    ['an address without a database', `postgres://owner:${SECRET}@db`, /names no database/],
    ['an unknown sslmode', `postgres://owner:${SECRET}@db/m?sslmode=prefer`, /sslmode must be one of/],
    ['a password with an unescaped question mark', `postgres://owner:12?${SECRET}@db/m`, /%3F/],
    ['a password with an unescaped hash', `postgres://owner:12#${SECRET}@db/m`, /%23/],
    ['a certificate file that is missing', `postgres://owner:${SECRET}@db/m?sslrootcert=/no/file`, /sslrootcert/],
  ])('%s', async (_what, url, why) => {
    expect(await refusalOf(url)).toEqual({ code: CONFIG, errorOutput: expect.stringMatching(why) as string });
  });

  test('a server that cannot be reached', async () => {
    const { code, errorOutput } = await refusalOf(at(1, 'postgres'));
    expect({ code, errorOutput }).toEqual({
      code: UNAVAILABLE,
      errorOutput: expect.stringMatching(/cannot be reached/) as string,
    });
  });

  test('a wrong password', async () => {
    const strict = await startPostgres({}, (made) =>
      made.writeData(
        'pg_hba.conf',
        'local all all trust\nhost all weak 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n',
      ),
    );
    onTestFinished(() => strict[Symbol.asyncDispose]());
    await strict.query("CREATE ROLE weak LOGIN PASSWORD 'another'");
    const { code, errorOutput } = await refusalOf(at(strict.port, 'postgres', 'weak'), strict);
    expect({ code, errorOutput }).toEqual({
      code: UNAVAILABLE,
      errorOutput: expect.stringMatching(/user or the password/) as string,
    });
  });

  test('an unknown database, a role without rights, and a schema of another program', async () => {
    await server.query('CREATE ROLE weak LOGIN; CREATE SCHEMA taken; CREATE TABLE taken.things (id int)');
    expect((await refusalOf(at(server.port, 'nothing'))).errorOutput).toMatch(/database does not exist/);
    expect((await refusalOf(at(server.port, 'postgres', 'weak'))).errorOutput).toMatch(/role lacks a right/);
    const { code, errorOutput } = await refusalOf(at(server.port, 'postgres?schema=taken'));
    expect({ code, errorOutput }).toEqual({ code: CONFIG, errorOutput: expect.stringMatching(/another program/) as string });
  });

  test('no TLS where it is demanded, and a certificate that cannot be verified', async () => {
    expect((await refusalOf(at(server.port, 'postgres?sslmode=verify-full'))).errorOutput).toMatch(/does not offer TLS/);
    const folder = tempFolder();
    const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert, ...subject],
      {
        stdio: 'ignore',
      },
    );
    const secure = await startPostgres({ ssl: 'on' }, (made) => {
      made.writeData('server.key', readFileSync(key, 'utf8'));
      made.writeData('server.crt', readFileSync(cert, 'utf8'));
    });
    onTestFinished(() => secure[Symbol.asyncDispose]());
    const { code, errorOutput } = await refusalOf(at(secure.port, 'postgres?sslmode=verify-full'), secure);
    expect({ code, errorOutput }).toEqual({ code: UNAVAILABLE, errorOutput: expect.stringMatching(/certificate/) as string });
    const program = await serveDatabase(
      `postgres://owner:${SECRET}@localhost:${secure.port}/postgres?sslrootcert=${cert}&sslmode=verify-full`,
    );
    expect(program.output).toMatch(/PostgreSQL database/);
  });

  test('a read-only standby', async () => {
    const standby = await startPostgres({}, (made) => made.writeData('standby.signal', ''));
    onTestFinished(() => standby[Symbol.asyncDispose]());
    const { code, errorOutput } = await refusalOf(at(standby.port, 'postgres'), standby);
    expect({ code, errorOutput }).toEqual({ code: CONFIG, errorOutput: expect.stringMatching(/read-only standby/) as string });
  });

  test('a server that can lose acknowledged writes', async () => {
    const careless = await startPostgres({ fsync: 'off' });
    onTestFinished(() => careless[Symbol.asyncDispose]());
    const { code, errorOutput } = await refusalOf(at(careless.port, 'postgres'), careless);
    expect({ code, errorOutput }).toEqual({ code: CONFIG, errorOutput: expect.stringMatching(/fsync is off/) as string });
  });

  test('an old server', async () => {
    const [{ version }] = (await server.query("SELECT current_setting('server_version_num') AS version")) as [
      { version: string },
    ];
    // A server that says that it is version 13. Nothing else differs at the start.
    const old = createServer((client) => {
      const upstream = connect(server.port, '127.0.0.1');
      client.on('data', (chunk) => upstream.write(chunk)).on('close', () => upstream.destroy());
      upstream
        .on('data', (chunk: Buffer) =>
          client.write(Buffer.from(chunk.toString('latin1').replaceAll(version, '130022'), 'latin1')),
        )
        .on('close', () => client.destroy());
      for (const socket of [client, upstream]) socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => void old.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void old.close());
    const { port } = old.address() as { port: number };
    const { code, errorOutput } = await refusalOf(at(port, 'postgres'));
    expect({ code, errorOutput }).toEqual({
      code: CONFIG,
      errorOutput: expect.stringMatching(/is too old\. Use PostgreSQL 14/) as string,
    });
  });
});

test('a full disk of the database server refuses writes, loses nothing, and writing resumes (R-DUR-03)', async (context) => {
  const disk = mountDisk(12);
  if (disk === undefined) return context.skip();
  const own = await startOnSmallDisk(disk);
  const program = await serveDatabase(`postgres://owner@127.0.0.1:${own.port}/postgres`);
  const { token } = await program.token('ada');
  const store = (index: number) =>
    program.send('/memory/store', {
      token,
      body: { key: `k${index}`, value: randomBytes(24_000).toString('hex'), category: 'big' },
    });
  let stored = 0;
  let response = await store(stored);
  while (response.status === 200) response = await store((stored += 1));
  expect(response).toMatchObject({
    status: 507,
    json: { error: 'disk_full', message: expect.stringMatching(/disk of the database server is full/) as string },
  });
  expect(await program.send('/memory', { token })).toMatchObject({
    status: 200,
    json: { categories: [{ name: 'big', count: stored }] },
  });
  expect(await program.send('/memory/fact?key=k0', { token })).toMatchObject({ status: 200 });
  disk.grow(64);
  expect(await store(stored)).toMatchObject({ status: 200 });
});
