import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fileSource } from '../../../../src/core/crypto/keys/file-source.ts';
import type { KeySources } from '../../../../src/core/crypto/keys/key-source.ts';
import { openStore } from '../../../../src/core/store/open-store.ts';
import { readExpired, readNumbered, readVersions } from '../../../../src/core/store/postgres/batch-queries.ts';
import { Database } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { keySql } from '../../../../src/core/store/postgres/sql.ts';
import { systemClock } from '../../../../src/core/time/clock.ts';
import { moveToFile, moveToServer } from '../../../../src/core/upkeep/move.ts';
import { manualClock, MINUTE } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { A_KEY, aDraft, withKey } from '../../../support/store.ts';
import { filesBelow, tempFolder } from '../../../support/temp-folder.ts';

const me = { subject: 'me' };
/** Every text that the server must not learn begins with this. */
const MARKER = 'qxmrkz';

test('the server learns no key, value, tag or client: not in its tables, its write-ahead log or its log (R-SEAL-01)', async () => {
  // The server logs every statement with its parameters.
  await using server = await startPostgres({ log_statement: 'all' });
  const database = server.newMemory();
  const clock = manualClock();
  const store = await PostgresStore.open({ database, clock, sources: withKey() });
  const facts = store.space(me, 'fact');
  const markers = Array.from({ length: 100 }, () =>
    Array.from({ length: 10 }, () => `${MARKER}${randomBytes(12).toString('hex')}`),
  );
  await Promise.all(
    markers.map(([key = '', value = '', tag = '', client = '', token = '', second = '', noteKey = '', note = '']) =>
      facts
        .put(aDraft({ key, value, tags: [tag], author: { client, origin: 'mcp', token } }), aDraft({ key: noteKey, value: note }))
        .then(() => facts.put(aDraft({ key, value: second, author: { client, origin: 'mcp', token } }))),
    ),
  );
  for (const [key = '', , , , , , , , text = '', session = ''] of markers.slice(0, 30)) {
    await store.vault.write('signing secret', text);
    expect((await facts.get(key))?.key).toBe(key);
    await store.space({ subject: 'me', session: 's' }, 'pack').put(aDraft({ key: session, value: text }));
    await store.forget('me', { kinds: ['fact'], key });
  }
  await clock.advance(MINUTE);
  await store[Symbol.asyncDispose]();
  await server.query('CHECKPOINT');
  const all = filesBelow(server.folder);
  expect(all.some(({ path }) => path.includes('pg_wal'))).toBe(true);
  expect(all.some(({ path, bytes }) => path.endsWith('.log') && bytes.includes('INSERT INTO entry'))).toBe(true);
  // The log shows bytes as hexadecimal digits.
  const forms = [MARKER, Buffer.from(MARKER).toString('hex')];
  const found = all.filter(({ bytes }) => forms.some((form) => bytes.includes(form))).map(({ path }) => path);
  expect(found).toEqual([]);
});

test('the server learns nothing from a rotation, a backup and a move either, and keeps what it has after a forget (R-PGUP-06)', async () => {
  await using server = await startPostgres({ log_statement: 'all' });
  const [database, folder] = [server.newMemory(), tempFolder()];
  await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
  const sources: KeySources = () => [fileSource(folder)];
  const file = await openStore({ folder, clock: systemClock, sources });
  const marker = (): string => `${MARKER}${randomBytes(12).toString('hex')}`;
  const keys = Array.from({ length: 200 }, marker);
  const draft = (key: string) =>
    aDraft({ key, value: marker(), tags: [marker()], author: { client: marker(), origin: 'mcp', token: marker() } });
  await Promise.all(keys.slice(0, 100).map((key) => file.space(me, 'fact').put(draft(key), draft(marker()))));
  await file.vault.write('signing secret', marker());
  await file[Symbol.asyncDispose]();
  const places = { file: 'the file', server: 'the database' };
  await moveToServer({ folder, database, places, clock: systemClock, sources });

  const store = await PostgresStore.open({ database, clock: systemClock, sources, folder });
  const recoveryKey = await store.upkeep.makeRecoveryKey();
  await Promise.all(keys.slice(100).map((key) => store.space(me, 'fact').put(draft(key))));
  await store.upkeep.rotate();
  const backup = await store.upkeep.backup();
  const [first = ''] = keys;
  const receipt = { deleted: 1, purged: false, reason: 'database_copies' };
  expect(await store.forget('me', { kinds: ['fact'], key: first })).toMatchObject(receipt);
  expect(await store.forget('me', { kinds: ['fact'], key: first })).toMatchObject({ ...receipt, deleted: 0 });
  const { key: held } = store.status();
  expect(held.at).toBe('ok');
  await store[Symbol.asyncDispose]();
  const dump = await dumpOf(server, database.schema);
  await moveToFile({ folder, database, places, clock: systemClock, sources });
  await server.query('CHECKPOINT');

  const present = await fileSource(folder).read('current');
  const secrets = [A_KEY, present.at === 'found' ? present.key.toString('hex') : '', recoveryKey];
  const forms = [MARKER, ...secrets].flatMap((text) => [text, Buffer.from(text).toString('hex')]);
  const isIn = (bytes: Buffer): boolean => forms.some((form) => bytes.includes(form));
  const onServer = filesBelow(server.folder).filter(({ bytes }) => isIn(bytes) || bytes.includes(Buffer.from(A_KEY, 'hex')));
  expect(onServer.map(({ path }) => path)).toEqual([]);
  expect(isIn(Buffer.from(dump))).toBe(false);
  expect(dump).toContain('master_key');
  const ours = filesBelow(folder).filter(({ path, bytes }) => !path.endsWith('memory.key') && isIn(bytes));
  expect(ours.map(({ path }) => path)).toEqual([]);
  expect(filesBelow(folder).map(({ path }) => path)).toContain(backup.file);
});

/** Returns a dump as `pg_dump` makes it. The programs of the npm package have no `pg_dump`, so the tables are read there. */
async function dumpOf(server: PostgresServer, schema: string): Promise<string> {
  const folder = process.env['HELMDECK_TEST_POSTGRES'];
  if (folder !== undefined) {
    const { stdout, status } = spawnSync(
      join(folder, 'pg_dump'),
      ['-h', '127.0.0.1', '-p', String(server.port), '-U', 'owner', 'postgres'],
      {
        encoding: 'utf8',
        maxBuffer: 1e9,
      },
    );
    if (status !== 0) throw new Error('pg_dump failed.');
    return stdout;
  }
  const tables = await server.query(`SELECT tablename FROM pg_tables WHERE schemaname = '${schema}'`);
  const rows = await Promise.all(
    tables.map(({ tablename }) =>
      server.query(`SELECT '${String(tablename)}' AS name, one::text AS row FROM "${schema}".${String(tablename)} AS one`),
    ),
  );
  return JSON.stringify(rows);
}

test('the server finds an entry by its key with one index, also before it has statistics', async () => {
  await using server = await startPostgres({ autovacuum: 'off' });
  const options = server.newMemory();
  await using store = await PostgresStore.open({ database: options, clock: manualClock(), sources: withKey() });
  await Promise.all(Array.from({ length: 300 }, (_, index) => store.space(me, 'fact').put(aDraft({ key: `k${index}` }))));
  // The store's own connections turn off kinds of plans that the server would choose otherwise.
  const database = new Database(options);
  onTestFinished(() => database.close());
  const client = await database.writer();
  await client.query(
    `SET plan_cache_mode = force_generic_plan; PREPARE find (text, text, bytea[]) AS SELECT number FROM entry WHERE ${keySql('fact')}`,
  );
  const { rows } = await client.query(`EXPLAIN EXECUTE find ('me', '', ARRAY['\\x00'::bytea])`);
  const plan = JSON.stringify(rows);
  expect(plan).toContain('entry_key');
  expect(plan).toMatch(/Index Cond: \(\(?key_hash = ANY/);
});

test('the server reads the versions of facts by their keys, also if there were none when it planned the statement', async () => {
  await using server = await startPostgres({ autovacuum: 'off' });
  const options = server.newMemory();
  await using store = await PostgresStore.open({ database: options, clock: manualClock(), sources: withKey() });
  await Promise.all(Array.from({ length: 300 }, (_, index) => store.space(me, 'fact').put(aDraft({ key: `k${index}` }))));
  await server.query(`ANALYZE "${options.schema}".entry`);
  const database = new Database(options);
  onTestFinished(() => database.close());
  const client = await database.writer();
  const texts: string[] = [];
  const collect = async <T>(text: string): Promise<T[]> => {
    texts.push(text);
    return [];
  };
  await readVersions(collect, [{ id: 1, kind: 'fact', hash: Buffer.alloc(16) }]);
  await readNumbered(collect, [1]);
  const [versions = '', , ofNumbers = ''] = texts;
  await client.query(`PREPARE versions (bigint[], bytea[]) AS ${versions}; PREPARE numbered (bigint[]) AS ${ofNumbers}`);
  for (const statement of ["versions ('{1}', ARRAY['\\x00'::bytea])", "numbered ('{1}')"]) {
    const { rows } = await client.query(`EXPLAIN EXECUTE ${statement}`);
    expect(JSON.stringify(rows)).toMatch(/entry_version on entry.*Index Cond: \(key_hash = /);
  }
});

test('the server finds expired rows by their expiry and versions by their keys, with and without statistics', async () => {
  await using server = await startPostgres({ autovacuum: 'off' });
  const options = server.newMemory();
  await using store = await PostgresStore.open({ database: options, clock: manualClock(), sources: withKey() });
  await store.space(me, 'fact').put(aDraft());
  // One fact in a thousand has expired. Each has a version that has not.
  const fill = (from: number, kind: number, expiresAt: string): string =>
    `INSERT INTO entry SELECT ${from} + n, 10 + n % 10, ${kind}, decode(md5(n::text), 'hex'), '', n, n, ${expiresAt}, '\\x00' FROM generate_series(1, 20000) AS n`;
  // The triggers find their table by the path.
  await server.query(
    `SET search_path = "${options.schema}"; ${fill(100_000, 1, 'CASE n % 1000 WHEN 0 THEN 1 ELSE 9 END')}; ${fill(200_000, 2, '9')}`,
  );
  const texts: string[] = [];
  const collect = async <T>(text: string): Promise<T[]> => {
    texts.push(text);
    return [];
  };
  await readExpired(collect, [1], 'fact', 1);
  const planOf = async (): Promise<string> => {
    const database = new Database(options);
    onTestFinished(() => database.close());
    const client = await database.writer();
    await client.query(`PREPARE expired (bigint[], bigint) AS ${texts[0]}`);
    expect((await client.query("EXECUTE expired ('{10,11}', 1)")).rows).toHaveLength(40);
    return JSON.stringify((await client.query("EXPLAIN EXECUTE expired ('{10,11}', 1)")).rows);
  };
  const plans = [await planOf()];
  await server.query(`ANALYZE "${options.schema}".entry`);
  plans.push(await planOf());
  for (const plan of plans) {
    expect(plan).toMatch(/entry_expiry on entry.*?Index Cond: [^"]*expires_at <= \$2/);
    expect(plan).toMatch(/entry_version on entry.*?Index Cond: \(key_hash = /);
    expect(plan).not.toMatch(/Gather|Hash (Semi )?Join/);
  }
});
