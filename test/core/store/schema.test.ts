import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Sqlite, { type Database } from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { connect, openDatabase } from '../../../src/core/store/database.ts';
import { type Migration, migrations } from '../../../src/core/store/migrations/index.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { salvage } from '../../../src/core/upkeep/salvage.ts';
import { manualClock, MINUTE } from '../../support/clock.ts';
import { aDraft, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const clock = manualClock();
const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');
const fingerprint = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

let folder: string;
let file: string;
let backup: string;

/** A closed memory with three facts, and its backup. */
beforeEach(async () => {
  folder = tempFolder();
  file = join(folder, 'memory.db');
  const store = await openFileStore(folder, clock);
  for (const key of ['a', 'b', 'c']) await facts(store).put(aDraft({ key }));
  ({ file: backup } = await store.upkeep!.backup());
  await clock.advance(MINUTE);
  await store[Symbol.asyncDispose]();
});

/** Changes a file with SQLite, as an attacker without the key could. */
function edit(target: string, change: (db: Database) => void): void {
  const db = new Sqlite(target);
  db.unsafeMode(true);
  try {
    change(db);
  } finally {
    db.close();
  }
}

/** Changes the text of the schema itself. */
const editSchema =
  (sql: string): ((db: Database) => void) =>
  (db) => {
    db.pragma('writable_schema = ON');
    db.exec(sql);
  };

const REINSERT = `CREATE TRIGGER keep AFTER DELETE ON entry BEGIN
  INSERT INTO entry VALUES (old.namespace, old.kind, old.key_hash, old.category, old.created_at, old.updated_at, old.expires_at, old.sealed);
END`;

const tampered: { what: string; change: (db: Database) => void; says: RegExp }[] = [
  { what: 'a trigger that brings deleted rows back', change: (db) => db.exec(REINSERT), says: /contains the trigger "keep"/ },
  { what: 'a view', change: (db) => db.exec('CREATE VIEW v AS SELECT 1'), says: /contains the view "v"/ },
  { what: 'a table', change: (db) => db.exec('CREATE TABLE t (x)'), says: /contains the table "t"/ },
  {
    what: 'an index on an expression',
    change: (db) => db.exec('CREATE INDEX i ON entry (abs(kind))'),
    says: /contains the index "i"/,
  },
  { what: 'a virtual table', change: (db) => db.exec('CREATE VIRTUAL TABLE f USING fts5 (x)'), says: /contains the table "f/ },
  { what: 'planner statistics', change: (db) => db.exec('ANALYZE'), says: /contains the table "sqlite_stat/ },
  { what: 'an index less', change: (db) => db.exec('DROP INDEX entry_expiry'), says: /the index "entry_expiry" is missing/ },
  {
    what: 'an index that leaves rows out',
    change: (db) =>
      db.exec('DROP INDEX entry_expiry; CREATE INDEX entry_expiry ON entry (namespace, kind, expires_at) WHERE kind > 1'),
    says: /the index "entry_expiry" was changed/,
  },
  {
    what: 'a table without its checks',
    change: editSchema("UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '') WHERE name = 'entry'"),
    says: /the table "entry" was changed/,
  },
  {
    what: 'a column that is computed',
    change: (db) => db.exec("ALTER TABLE tombstone ADD COLUMN more TEXT AS ('x')"),
    says: /the table "tombstone" was changed/,
  },
  {
    what: 'auto_vacuum',
    change: (db) => {
      db.pragma('journal_mode = DELETE');
      db.pragma('auto_vacuum = FULL');
      db.exec('VACUUM');
    },
    says: /auto_vacuum was turned on/,
  },
];

test('a file of the first schema is accepted, and refused with one more trigger (R-DUR-09, R-DUR-14)', () => {
  const first = join(tempFolder(), 'memory.db');
  copyFileSync(join(import.meta.dirname, '../../fixtures/memory-v1.db'), first);
  openDatabase(first).close();
  edit(first, (db) => db.exec(REINSERT));
  expect(() => openDatabase(first)).toThrow(/contains the trigger "keep"/);
});

test('a copy of a row cannot be added to the file, because a forget by key would miss one of them (R-FORGET-07)', () => {
  const copy = (kind: number): void =>
    edit(file, (db) => {
      const columns = 'namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed';
      db.exec(`INSERT INTO entry (${columns}) SELECT ${columns} FROM entry WHERE kind = ${kind} LIMIT 1`);
    });
  expect(() => copy(1)).toThrow(/UNIQUE/);
});

describe('a memory whose schema was changed (R-DUR-14)', () => {
  test.each(tampered)('with $what is not opened and does not change', async ({ change, says }) => {
    edit(file, change);
    const before = fingerprint(file);
    await expect(openFileStore(folder, clock)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(says) as string,
    });
    expect(fingerprint(file)).toBe(before);
  });

  test.each(tampered)('with $what is not restored, and the memory does not change', async ({ change, says }) => {
    edit(backup, change);
    const before = fingerprint(file);
    await expect(restoreBackup({ folder, backup, clock, sources: withKey() })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(says) as string,
    });
    expect(fingerprint(file)).toBe(before);
    const store = await openFileStore(folder, clock);
    expect(await facts(store).count()).toBe(3);
  });

  test('is not opened when the change is in its log, and the log does not change', async () => {
    const holder = new Sqlite(file);
    onTestFinished(() => void holder.close());
    holder.pragma('journal_mode = WAL');
    holder.pragma('wal_autocheckpoint = 0');
    holder.exec(REINSERT);
    const [before, log] = [fingerprint(file), fingerprint(`${file}-wal`)];
    expect(() => openDatabase(file)).toThrow(/contains the trigger "keep"/);
    expect([fingerprint(file), fingerprint(`${file}-wal`)]).toEqual([before, log]);
  });

  test('keeps its log if it is the only connection', async () => {
    const copied = join(tempFolder(), 'memory.db');
    const holder = new Sqlite(file);
    holder.pragma('wal_autocheckpoint = 0');
    holder.exec(REINSERT);
    // As after a kill.
    for (const part of ['', '-wal']) copyFileSync(file + part, copied + part);
    holder.close();
    const [before, log] = [fingerprint(copied), fingerprint(`${copied}-wal`)];
    expect(() => openDatabase(copied)).toThrow(/contains the trigger "keep"/);
    expect([fingerprint(copied), existsSync(`${copied}-wal`) && fingerprint(`${copied}-wal`)]).toEqual([before, log]);
  });

  test('is found by verify when it was changed while open', async () => {
    const store = await openFileStore(folder, clock);
    expect(await store.upkeep!.verify()).toEqual({ entries: 3, broken: 0, structure: [] });
    edit(file, (db) => db.exec(REINSERT));
    expect(await store.upkeep!.verify()).toEqual({ entries: 3, broken: 0, structure: ['it contains the trigger "keep"'] });
    await expect(store.upkeep!.backup()).rejects.toMatchObject({ message: expect.stringMatching(/trigger "keep"/) as string });
  });

  test('while it is open, refuses to forget until the change is undone (R-FORGET-14)', async () => {
    const store = await openFileStore(folder, clock);
    expect(await store.forget('me', { kinds: ['fact'], key: 'a' })).toMatchObject({ deleted: 1, purged: true });
    edit(file, (db) => db.exec(REINSERT));
    const refused = store.forget('me', { kinds: ['fact', 'history'] });
    await expect(refused).rejects.toMatchObject({ message: expect.stringMatching(/trigger "keep"/) as string });
    expect(await facts(store).count()).toBe(2);
    edit(file, (db) => db.exec('DROP TRIGGER keep'));
    expect(await store.forget('me', { kinds: ['fact', 'history'] })).toMatchObject({ deleted: 2, purged: true });
    expect(await facts(store).count()).toBe(0);
  });

  test.each([
    { what: 'spares the rows', trigger: 'CREATE TRIGGER spare BEFORE DELETE ON entry BEGIN SELECT RAISE(IGNORE); END' },
    { what: 'brings the rows back', trigger: REINSERT },
  ])('stops a running forget: a trigger $what (R-FORGET-14)', async ({ trigger }) => {
    const store = await openFileStore(folder, clock);
    for (let index = 0; index < 100; index += 1) await facts(store).put(aDraft({ key: `k/${index}` }));
    let slices = 0;
    const change = async (): Promise<void> => {
      slices += 1;
      if (slices === 1) edit(file, (db) => db.exec(trigger));
      await nextTurn();
    };
    const forgetting = store.forget('me', { kinds: ['fact'] }, undefined, change);
    await expect(forgetting).rejects.toMatchObject({ message: expect.stringMatching(/contains the trigger/) as string });
    expect(await facts(store).count()).toBeGreaterThan(0);
  });

  test('while it is open, refuses every write, and a sweep deletes nothing (R-DUR-14)', async () => {
    const store = await openFileStore(folder, clock);
    await facts(store).put(aDraft({ key: 'short', lifetime: MINUTE }));
    edit(file, (db) => db.exec(REINSERT));
    await expect(facts(store).put(aDraft({ key: 'a', value: 'new' }))).rejects.toThrow(/trigger "keep"/);
    await clock.advance(2 * MINUTE);
    await expect(store.sweep(100)).rejects.toThrow(/trigger "keep"/);
    edit(file, (db) => db.exec('DROP TRIGGER keep'));
    expect(await store.sweep(100)).toMatchObject({ removed: 1 });
    expect((await facts(store).put(aDraft({ key: 'a', value: 'new' }))).status).toBe('updated');
  });

  test('is not migrated: the file is compared with the schema of its own version first', () => {
    edit(file, (db) => db.exec(REINSERT));
    const before = fingerprint(file);
    const steps: Migration[] = [...migrations, (db) => db.exec('CREATE TABLE second (x)')];
    const copies: number[] = [];
    expect(() => openDatabase(file, steps, (_db, version) => copies.push(version))).toThrow(/contains the trigger "keep"/);
    expect(copies).toEqual([]);
    expect(fingerprint(file)).toBe(before);
  });

  test('can still be salvaged', async () => {
    edit(file, (db) => db.exec(`${REINSERT}; CREATE INDEX i ON entry (abs(kind))`));
    const keys = await salvage({ folder, clock, sources: withKey(), subject: 'me' }, async (found) =>
      [...found.facts].map(({ key }) => key),
    );
    expect(keys).toEqual(['a', 'b', 'c']);
  });

  test('does not bring forgotten facts back', async () => {
    const store = await openFileStore(folder, clock);
    await store.forget('me', { kinds: ['fact'], key: 'b' });
    await store[Symbol.asyncDispose]();
    edit(file, (db) => db.exec('CREATE VIEW v AS SELECT 1'));
    expect(await restoreBackup({ folder, backup, clock, sources: withKey() })).toMatchObject({
      stillForgotten: 1,
      readReplacedMemory: true,
    });
  });
});

describe('a backup with an index that hides a row (R-DUR-14)', () => {
  test('is restored with rebuilt indexes, so that a forget finds every row', async () => {
    edit(backup, (db) => {
      db.exec('DROP INDEX entry_expiry; CREATE INDEX entry_expiry ON entry (namespace, kind, expires_at) WHERE kind > 1');
      editSchema(
        "UPDATE sqlite_schema SET sql = 'CREATE INDEX entry_expiry ON entry (namespace, kind, expires_at) WHERE kind <> 6' WHERE name = 'entry_expiry'",
      )(db);
    });
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    const store = await openFileStore(folder, clock);
    expect((await store.upkeep!.verify()).structure).toEqual([]);
    expect(await store.forget('me', { kinds: ['fact', 'history'] })).toMatchObject({ deleted: 3, purged: true });
  });
});

test('no statement of the program can change the schema table itself (R-DUR-14)', () => {
  const db = connect(file);
  onTestFinished(() => void db.close());
  db.pragma('writable_schema = ON');
  expect(() => db.exec("UPDATE sqlite_schema SET sql = NULL WHERE type = 'trigger'")).toThrow(/may not be modified/);
});
