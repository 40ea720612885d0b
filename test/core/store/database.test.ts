import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { connect, migrate, openDatabase } from '../../../src/core/store/database.ts';
import { type Migration, migrations } from '../../../src/core/store/migrations/index.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import { copyBeforeMigration } from '../../../src/core/upkeep/backup.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { manualClock, START } from '../../support/clock.ts';
import { aDraft, withKey } from '../../support/store.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';

const kept = (db: Database): Database => {
  onTestFinished(() => void db.close());
  return db;
};
const version = (db: Database): unknown => db.pragma('user_version', { simple: true });
const fingerprint = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

/** The file of a closed memory with one fact. */
async function filled(): Promise<string> {
  const folder = tempFolder();
  await using store = await openStore({ folder, clock: manualClock(), sources: withKey() });
  await store.space({ subject: 'me' }, 'fact').put(aDraft());
  return join(folder, 'memory.db');
}

describe('every connection', () => {
  test.each([
    { pragma: 'journal_mode', value: 'wal' },
    { pragma: 'synchronous', value: 2 },
    { pragma: 'secure_delete', value: 1 },
    { pragma: 'temp_store', value: 2 },
    { pragma: 'trusted_schema', value: 0 },
    { pragma: 'fullfsync', value: 1 },
    { pragma: 'checkpoint_fullfsync', value: 1 },
    { pragma: 'cell_size_check', value: 1 },
  ])('has $pragma = $value, at the first and at later opens (R-STORE-04)', ({ pragma, value }) => {
    const file = join(tempFolder(), 'memory.db');
    expect(kept(openDatabase(file)).pragma(pragma, { simple: true })).toBe(value);
    expect(kept(connect(file)).pragma(pragma, { simple: true })).toBe(value);
  });

  test('has only strict tables (R-STORE-04)', () => {
    const db = kept(openDatabase(join(tempFolder(), 'memory.db')));
    const tables = db.pragma('table_list') as { name: string; schema: string; strict: number }[];
    const ours = tables.filter(({ schema, name }) => schema === 'main' && !name.startsWith('sqlite_'));
    expect(ours.map(({ name }) => name).toSorted()).toEqual([
      'author',
      'entry',
      'master_key',
      'meta',
      'namespace',
      'revoked_token',
      'tombstone',
      'vector',
    ]);
    expect(ours.every(({ strict }) => strict === 1)).toBe(true);
  });

  test('uses an index for every query, and never sorts (R-STORE-09)', () => {
    const db = kept(openDatabase(join(tempFolder(), 'memory.db')));
    const here = 'FROM entry WHERE namespace = 1 AND kind = 1 AND kind <> 2 AND kind <> 6';
    const plans = [
      { query: `SELECT * ${here} AND substr(key_hash, 1, 8) = x'00' AND key_hash = x'00'`, index: 'entry_key' },
      {
        query: `SELECT * ${here} AND expires_at > 1 AND updated_at <= 5 ORDER BY updated_at DESC, rowid DESC LIMIT 5`,
        index: 'entry_newest',
      },
      {
        query: `SELECT * ${here} AND expires_at > 1 AND category = 'x' AND updated_at <= 5 ORDER BY updated_at DESC, rowid DESC LIMIT 5`,
        index: 'entry_category',
      },
      {
        query: `SELECT * ${here} AND expires_at > 1 AND expires_at >= 5 ORDER BY expires_at, rowid LIMIT 5`,
        index: 'entry_expiry',
      },
      {
        query: "SELECT * FROM entry WHERE namespace = 1 AND kind = 2 AND key_hash = x'00' ORDER BY updated_at DESC",
        index: 'entry_version',
      },
      {
        query:
          'SELECT * FROM entry WHERE namespace = 1 AND kind = 6 AND kind <> 2 AND updated_at <= 5 ORDER BY updated_at DESC, rowid DESC',
        index: 'entry_newest',
      },
      { query: 'SELECT min(expires_at) FROM entry WHERE namespace = 1 AND kind = 1 AND kind <> 6', index: 'entry_expiry' },
    ];
    for (const { query, index } of plans) {
      const steps = (db.prepare(`EXPLAIN QUERY PLAN ${query}`).all() as { detail: string }[])
        .map(({ detail }) => detail)
        .join('; ');
      expect(steps, query).toContain(index);
      expect(steps, query).not.toMatch(/TEMP B-TREE|SCAN/);
    }
  });
});

describe('a damaged or foreign file is refused and does not change (R-DUR-05, R-DUR-08)', () => {
  const damages: { what: string; damage: (file: string) => void; says: RegExp }[] = [
    { what: 'empty', damage: (file) => writeFileSync(file, ''), says: /damaged.*restore/ },
    {
      what: 'cut in its header',
      damage: (file) => writeFileSync(file, readFileSync(file).subarray(0, 50)),
      says: /damaged.*restore/,
    },
    {
      what: 'truncated',
      damage: (file) => writeFileSync(file, readFileSync(file).subarray(0, 8192)),
      says: /truncated.*restore/,
    },
    {
      what: 'zeroed in its header',
      damage: (file) => writeFileSync(file, Buffer.concat([Buffer.alloc(100), readFileSync(file).subarray(100)])),
      says: /damaged.*restore/,
    },
    { what: 'text', damage: (file) => writeFileSync(file, 'hello, world'), says: /damaged.*restore/ },
    {
      what: 'another program’s database',
      damage: (file) => {
        rmSync(file);
        const db = new Sqlite(file);
        db.exec('CREATE TABLE theirs (x)');
        db.close();
      },
      says: /belongs to another program; move the file to another folder/,
    },
    {
      what: 'written by a newer program',
      damage: (file) => {
        const db = new Sqlite(file);
        db.pragma('user_version = 99');
        db.close();
      },
      says: new RegExp(
        `newer version of Helmdeck Memory \\(schema 99; this version supports up to ${migrations.length}\\); update`,
      ),
    },
  ];

  test.each(damages)('$what', async ({ damage, says }) => {
    const file = await filled();
    damage(file);
    const before = fingerprint(file);
    const start = openStore({ folder: join(file, '..'), clock: manualClock(), sources: withKey() });
    await expect(start).rejects.toMatchObject({ code: 'store_unavailable', message: expect.stringMatching(says) as string });
    expect(fingerprint(file)).toBe(before);
    expect(
      filesBelow(join(file, '..'))
        .map(({ path }) => path.slice(path.lastIndexOf('/') + 1))
        .toSorted(),
    ).toEqual(['lock.db', 'memory.db', 'reserve']);
  });

  test('missing, while its log exists', async () => {
    const file = await filled();
    rmSync(file);
    writeFileSync(`${file}-wal`, 'the last changes');
    expect(() => openDatabase(file)).toThrow(/missing, but its log/);
    expect(readFileSync(`${file}-wal`, 'utf8')).toBe('the last changes');
  });

  test('a killed first start does not prevent the next', () => {
    const file = join(tempFolder(), 'memory.db');
    writeFileSync(`${file}.new`, 'half');
    expect(version(kept(openDatabase(file)))).toBe(migrations.length);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

describe('migrations (R-DUR-07)', () => {
  const steps: Migration[] = [...migrations, (db) => db.exec('CREATE TABLE second (x); CREATE TABLE more (y)')];

  test('lead from any version to the newest, after a backup', async () => {
    const file = await filled();
    const backups: number[] = [];
    const db = kept(openDatabase(file, steps, (_db, from) => backups.push(from)));
    expect(version(db)).toBe(migrations.length + 1);
    expect(backups).toEqual([migrations.length]);
    expect(db.prepare('SELECT count(*) FROM entry').pluck().get()).toBe(1);
    migrate(db, steps, () => backups.push(-1));
    expect(backups).toEqual([migrations.length]);
  });

  test('make a backup of the earlier file, which can be restored (R-DUR-07)', async () => {
    const file = await filled();
    kept(openDatabase(file, steps, (db, from) => copyBeforeMigration(db, join(file, '..'), from, START)));
    const backup = join(file, '../backups', `schema-${migrations.length}-${START}.db`);
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    const restored = tempFolder();
    expect(await restoreBackup({ folder: restored, backup, clock: manualClock(), sources: withKey() })).toMatchObject({
      entries: 1,
      broken: 0,
    });
  });

  test('make no backup of a new memory', () => {
    const backups: number[] = [];
    kept(openDatabase(join(tempFolder(), 'memory.db'), steps, (_db, from) => backups.push(from)));
    expect(backups).toEqual([]);
  });

  test('that fail leave the earlier schema and a closed file', async () => {
    const file = await filled();
    const fails: Migration[] = [
      ...steps,
      (db) => {
        db.exec('CREATE TABLE third (x)');
        throw new Error('half way');
      },
    ];
    expect(() => openDatabase(file, fails)).toThrow('half way');
    const db = kept(connect(file, { steps }));
    expect(version(db)).toBe(migrations.length + 1);
    const names = db.prepare("SELECT name FROM sqlite_schema WHERE name IN ('second', 'more', 'third') ORDER BY 1").pluck().all();
    expect(names).toEqual(['more', 'second']);
  });
});

describe('memories written by released versions (R-DUR-09)', () => {
  test.each(migrations.map((_, index) => index + 1))('version %i opens, and every row can be read', async (number) => {
    const folder = tempFolder();
    copyFileSync(join(import.meta.dirname, '../../fixtures', `memory-v${number}.db`), join(folder, 'memory.db'));
    await using store = await openStore({ folder, clock: manualClock(), sources: withKey() });
    expect(await store.upkeep?.verify()).toEqual({ entries: 10, broken: 0, structure: [] });
    const facts = store.space({ subject: 'me' }, 'fact');
    expect(await facts.get('preferences/frontend-framework')).toMatchObject({
      value: 'Svelte',
      tags: ['frontend', 'konflux'],
      author: { client: 'claude-code' },
    });
    expect((await facts.history('preferences/frontend-framework')).map(({ value }) => value)).toEqual([
      'React over Vue (Konflux project constraint)',
    ]);
    expect(await store.vault.read('a secret')).toBe('of the program');
    expect(await store.vault.revokedTokens()).toEqual(['a token']);
  });
});
