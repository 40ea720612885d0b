import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { parseDatabaseUrl } from '../../../../src/core/store/postgres/database-url.ts';
import { Database } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { hasMemory } from '../../../../src/core/store/postgres/server-transaction.ts';
import { manualClock } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, withKey } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const open = (url: string): Promise<PostgresStore> =>
  PostgresStore.open({ database: parseDatabaseUrl(url), clock: manualClock(), sources: withKey() });

/** Opens a database that must be refused. Returns the refusal, and checks that nothing was written. */
async function refusalOf(url: string): Promise<{ code: string; message: string }> {
  const tables = (): Promise<unknown> =>
    server.query("SELECT relname, relnamespace FROM pg_class WHERE relname !~ '^pg_' ORDER BY oid");
  const before = await tables();
  const refused = await open(url).then(
    async (store) => {
      await store[Symbol.asyncDispose]();
      throw new Error('The database was accepted.');
    },
    (error: unknown) => error as { code: string; message: string },
  );
  expect(await tables()).toEqual(before);
  expect(refused.message).not.toMatch(/secret/);
  return refused;
}

const at = (rest: string): string => `postgres://owner:secret@127.0.0.1:${server.port}/${rest}`;

test('no server at this address', async () => {
  expect(await refusalOf('postgres://owner:secret@127.0.0.1:1/postgres')).toMatchObject({
    code: 'store_unavailable',
    message: expect.stringMatching(/cannot be reached/) as string,
  });
});

test('an unknown user, and a database that does not exist', async () => {
  expect(await refusalOf(`postgres://nobody:secret@127.0.0.1:${server.port}/postgres`)).toMatchObject({
    code: 'store_unavailable',
    message: expect.stringMatching(/refused the user or the password/) as string,
  });
  expect((await refusalOf(at('nothing'))).message).toMatch(/database does not exist/);
});

test('a wrong password', async () => {
  const strict = await startPostgres({}, (made) =>
    made.writeData('pg_hba.conf', 'local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n'),
  );
  onTestFinished(() => strict[Symbol.asyncDispose]());
  const refused = open(`postgres://owner:secret@127.0.0.1:${strict.port}/postgres`);
  await expect(refused).rejects.toMatchObject({ message: expect.stringMatching(/refused the user or the password/) as string });
});

/** Makes a certificate for the name localhost that is its own authority. Returns the files of its key and of the certificate. */
function makeCertificate(): [key: string, certificate: string] {
  const folder = tempFolder();
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert, ...subject];
  execFileSync('openssl', request, { stdio: 'ignore' });
  return [key, cert];
}

test('no TLS where it is demanded, and a certificate that cannot be verified', async () => {
  expect((await refusalOf(at('postgres?sslmode=verify-full'))).message).toMatch(/does not offer TLS/);
  const [key, cert] = makeCertificate();
  const secure = await startPostgres({ ssl: 'on' }, (made) => {
    made.writeData('server.key', readFileSync(key, 'utf8'));
    made.writeData('server.crt', readFileSync(cert, 'utf8'));
  });
  onTestFinished(() => secure[Symbol.asyncDispose]());
  const url = (host: string, mode: string, more = ''): string =>
    `postgres://owner:secret@${host}:${secure.port}/postgres?sslmode=${mode}${more}`;
  const unknown = { code: 'store_unavailable', message: expect.stringMatching(/certificate of the database server/) as string };
  await expect(open(url('localhost', 'verify-full'))).rejects.toMatchObject(unknown);
  // The certificate is for the name localhost.
  await expect(open(url('127.0.0.1', 'verify-full', `&sslrootcert=${cert}`))).rejects.toMatchObject(unknown);
  // Another authority than the one that is given.
  const [, other] = makeCertificate();
  for (const mode of ['verify-ca', 'require']) {
    await expect(open(url('localhost', mode, `&sslrootcert=${other}`))).rejects.toMatchObject(unknown);
  }
  for (const accepted of [
    url('localhost', 'verify-full', `&sslrootcert=${cert}`),
    url('127.0.0.1', 'verify-ca', `&sslrootcert=${cert}`),
    url('127.0.0.1', 'require'),
  ]) {
    await using store = await open(accepted);
    await store.space({ subject: 'me' }, 'fact').put(aDraft());
  }
});

test('a role without rights', async () => {
  await server.query('CREATE ROLE weak LOGIN');
  const refused = await refusalOf(`postgres://weak:secret@127.0.0.1:${server.port}/postgres`);
  expect(refused).toMatchObject({ code: 'store_unavailable', message: expect.stringMatching(/role lacks a right/) as string });
});

test('a role with only the rights that it needs', async () => {
  await server.query('CREATE ROLE helmdeck LOGIN; CREATE SCHEMA least AUTHORIZATION helmdeck');
  await using store = await open(`postgres://helmdeck@127.0.0.1:${server.port}/postgres?schema=least`);
  expect((await store.space({ subject: 'me' }, 'fact').put(aDraft())).status).toBe('created');
});

test('a schema that another role owns or can change, whose code never runs with our rights (R-PGUP-05)', async () => {
  const attacker = async (sql: string): Promise<unknown[]> => {
    const client = new pg.Client({ ...server.config, user: 'mallory' });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  await server.query(`CREATE ROLE mallory LOGIN; CREATE ROLE victim LOGIN; GRANT CREATE ON DATABASE postgres TO mallory, victim`);
  const url = `postgres://victim:secret@127.0.0.1:${server.port}/postgres?schema=shared`;
  const refused = async (message: RegExp): Promise<void> =>
    expect(await refusalOf(url)).toMatchObject({ code: 'invalid_config', message: expect.stringMatching(message) as string });
  await attacker('CREATE SCHEMA shared; GRANT ALL ON SCHEMA shared TO victim');
  await refused(/^The role mallory owns the schema\./);
  await server.query('ALTER SCHEMA shared OWNER TO victim; GRANT CREATE ON SCHEMA shared TO PUBLIC');
  await refused(/^Every role may create objects in the schema\./);
  await server.query('REVOKE CREATE ON SCHEMA shared FROM PUBLIC');
  await (await open(url))[Symbol.asyncDispose]();
  // Each of these lets the attacker run code in our next statement.
  const body = `BEGIN IF current_user = 'victim' THEN GRANT ALL ON ALL TABLES IN SCHEMA shared TO mallory; END IF; RETURN a = b::oid; END`;
  await server.query('GRANT CREATE, USAGE ON SCHEMA shared TO mallory');
  await attacker(
    `CREATE FUNCTION shared.evil(a oid, b regnamespace) RETURNS boolean LANGUAGE plpgsql AS $$ ${body} $$;
     CREATE OPERATOR shared.= (LEFTARG = oid, RIGHTARG = regnamespace, FUNCTION = shared.evil)`,
  );
  await refused(/^The role mallory may create objects in the schema\./);
  await server.query('REVOKE CREATE ON SCHEMA shared FROM mallory');
  await refused(/^The role mallory owns the function evil\./);
  await server.query('ALTER FUNCTION shared.evil OWNER TO victim; ALTER OPERATOR shared.= (oid, regnamespace) OWNER TO victim');
  await refused(/function evil is not as expected/);
  await server.query('DROP FUNCTION shared.evil CASCADE; GRANT TRIGGER ON shared.entry TO mallory');
  await refused(/^The role mallory may change the table entry\./);
  await expect(attacker('SELECT * FROM shared.entry')).rejects.toMatchObject({ code: '42501' });
  await server.query('REVOKE TRIGGER ON shared.entry FROM mallory; GRANT SELECT ON shared.entry TO mallory');
  await (await open(url))[Symbol.asyncDispose]();
});

test('a memory of the first schema gets the tables for vectors (R-DUR-09)', async () => {
  const url = at('postgres?schema=first');
  const first = await open(url);
  await first.space({ subject: 'me' }, 'fact').put(aDraft());
  await first[Symbol.asyncDispose]();
  await server.query(`DROP TABLE first.vector; DROP TRIGGER vector_of_deleted ON first.entry; DROP TRIGGER vector_of_changed ON first.entry;
    DROP FUNCTION first.delete_vectors; DROP FUNCTION first.delete_changed_vectors; UPDATE first.schema_version SET version = 1`);
  const again = await open(url);
  expect((await again.vectors.missing({ subject: 'me' }, 'model')).facts).toHaveLength(1);
  expect(await again.upkeep.verify()).toEqual({ entries: 1, broken: 0, structure: [] });
  await again[Symbol.asyncDispose]();
});

test('a schema of another program, a changed schema, and one of a newer version', async () => {
  await server.query('CREATE SCHEMA taken; CREATE TABLE taken.things (id int)');
  expect(await refusalOf(at('postgres?schema=taken'))).toMatchObject({
    code: 'invalid_config',
    message: expect.stringMatching(/another program/) as string,
  });
  await (await open(at('postgres?schema=ours')))[Symbol.asyncDispose]();
  await (await open(at('postgres?schema=ours')))[Symbol.asyncDispose]();
  for (const [change, undo, why] of [
    ['CREATE INDEX extra ON ours.entry (category)', 'DROP INDEX ours.extra', /index .* not as expected/],
    ['ALTER TABLE ours.entry DISABLE TRIGGER entry_deleted', 'ALTER TABLE ours.entry ENABLE TRIGGER entry_deleted', /trigger/],
    ['CREATE RULE keep AS ON DELETE TO ours.entry DO INSTEAD NOTHING', 'DROP RULE keep ON ours.entry', /rule keep/],
    ['CREATE VIEW ours.seen AS SELECT 1 AS one', 'DROP VIEW ours.seen', /seen/],
    [
      'CREATE OPERATOR ours.=== (LEFTARG = oid, RIGHTARG = oid, FUNCTION = oideq)',
      'DROP OPERATOR ours.=== (oid, oid)',
      /operator .* not as expected/,
    ],
    ["CREATE TYPE ours.mood AS ENUM ('low')", 'DROP TYPE ours.mood', /type .* not as expected/],
    ['CREATE TYPE ours.pair AS (one int)', 'DROP TYPE ours.pair', /pair is not as expected/],
    ['ALTER TABLE ours.meta RENAME TO gone', 'ALTER TABLE ours.gone RENAME TO meta', /not as expected/],
    ['UPDATE ours.schema_version SET version = 99', 'UPDATE ours.schema_version SET version = 2', /newer version/],
  ] as const) {
    await server.query(change);
    expect(await refusalOf(at('postgres?schema=ours')), change).toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(why) as string,
    });
    await server.query(undo);
  }
  await (await open(at('postgres?schema=ours')))[Symbol.asyncDispose]();
});

test.each([
  [{ fsync: 'off' }, /fsync is off/],
  [{ full_page_writes: 'off' }, /full_page_writes is off/],
])('a server that can lose acknowledged writes: %o', async (settings, why) => {
  const careless = await startPostgres(settings);
  onTestFinished(() => careless[Symbol.asyncDispose]());
  const refused = open(`postgres://owner@127.0.0.1:${careless.port}/postgres`);
  await expect(refused).rejects.toMatchObject({ code: 'invalid_config', message: expect.stringMatching(why) as string });
});

test('a database whose default would lose acknowledged writes: our connections do not use it (R-DUR-01)', async () => {
  await server.query('CREATE DATABASE hasty');
  await server.query('ALTER DATABASE hasty SET synchronous_commit = off');
  const database = new Database(parseDatabaseUrl(at('hasty')));
  onTestFinished(() => database.close());
  const sql = "SELECT current_setting('synchronous_commit') AS is";
  const writer = database.on(await database.writer());
  expect(await Promise.all([database.read(sql), writer.run(sql)])).toEqual([[{ is: 'on' }], [{ is: 'on' }]]);
});

test('a read-only standby', async () => {
  const standby = await startPostgres({}, (made) => made.writeData('standby.signal', ''));
  onTestFinished(() => standby[Symbol.asyncDispose]());
  const refused = open(`postgres://owner@127.0.0.1:${standby.port}/postgres`);
  await expect(refused).rejects.toMatchObject({
    code: 'invalid_config',
    message: expect.stringMatching(/read-only standby/) as string,
  });
});

test('commands for a database refuse a standby on later connections too (R-PGSV-05)', async () => {
  const database = new Database(server.newMemory());
  onTestFinished(() => database.close());
  expect(database.isPrepared).toBe(false);
  expect(await hasMemory(database)).toBe(false);
  expect(database.isPrepared).toBe(true);
});
