import { copyFileSync, existsSync, linkSync, mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { salvage } from '../../../src/core/upkeep/salvage.ts';
import { DAY, type ManualClock, manualClock, MINUTE } from '../../support/clock.ts';
import { aDraft, keyFrom, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');
const everything = { kinds: ['fact', 'history', 'audit', 'cache', 'pack', 'activity'] } as const;

let folder: string;
let file: string;
let clock: ManualClock;

/** A closed memory with one fact. */
beforeEach(async () => {
  folder = tempFolder();
  file = join(folder, 'memory.db');
  clock = manualClock();
  const store = await openFileStore(folder, clock);
  await facts(store).put(aDraft());
  await store[Symbol.asyncDispose]();
});

/** Files that a killed salvage, restore, backup or migration leaves behind. */
const UNFINISHED = [
  'memory.salvaging.db',
  'memory.salvaging.db-wal',
  'memory.salvaging.db-shm',
  'memory.restoring.db',
  'memory.restoring.db-journal',
  'memory.db.new',
  'backups/memory-5.db.new',
  'backups/memory-5.db.new-wal',
  'backups/schema-1-5.db.new',
  'backups/before-restore-5.db.new',
  'backups/before-restore-6.db-wal',
];
const createCopies = (names: readonly string[]): void => {
  mkdirSync(join(folder, 'backups'), { recursive: true });
  for (const name of names) copyFileSync(file, join(folder, name));
};
const remaining = (names: readonly string[]): string[] => names.filter((name) => existsSync(join(folder, name)));

describe('unfinished files of a killed command (R-DUR-15)', () => {
  test('are removed at the next start, so that a forget leaves no copy', async () => {
    createCopies(UNFINISHED);
    const store = await openFileStore(folder, clock);
    expect(remaining(UNFINISHED)).toEqual([]);
    expect(await store.forget('me', everything)).toEqual({ deleted: 1, purged: true, olderBackups: 0 });
  });

  test('are removed by a start without a key and without a memory', async () => {
    createCopies(UNFINISHED);
    renameSync(file, join(tempFolder(), 'memory.db'));
    await using _store = await openStore({ folder, clock, sources: keyFrom({}) });
    expect(remaining(UNFINISHED)).toEqual([]);
  });

  test('are removed by a salvage and by a restore', async () => {
    const backup = join(tempFolder(), 'backup.db');
    copyFileSync(file, backup);
    createCopies(UNFINISHED);
    await salvage({ folder, clock, sources: withKey(), subject: 'me' }, async () => undefined);
    expect(remaining(UNFINISHED)).toEqual([]);
    createCopies(UNFINISHED);
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    expect(remaining(UNFINISHED)).toEqual([]);
  });

  test('are kept while another process owns the folder', async () => {
    await using _store = await openStore({ folder, clock, sources: withKey() });
    createCopies(UNFINISHED);
    await expect(openStore({ folder, clock, sources: withKey() })).rejects.toMatchObject({ code: 'unavailable' });
    expect(remaining(UNFINISHED)).toEqual(UNFINISHED);
  });

  test('do not include files of the owner with similar names', async () => {
    const owners = [
      'notes.db.new',
      'memory.restoring.db.txt',
      'memory.salvaging.db.old',
      'my.memory.db.new',
      'backups/holiday-5.db.new',
      'backups/memory.db.new',
      'backups/notes.db-wal',
    ];
    createCopies(owners);
    mkdirSync(join(folder, 'memory.key.new'));
    await openFileStore(folder, clock);
    expect(remaining(owners)).toEqual(owners);
    expect(existsSync(join(folder, 'memory.key.new'))).toBe(true);
  });

  test('include a hard link to the memory that a killed restore leaves, whose log is moved back', async () => {
    mkdirSync(join(folder, 'backups'));
    const [second, log] = [join(folder, 'backups/before-restore-7.db'), 'backups/before-restore-7.db-wal'];
    // The log contains one more fact and exists only beside the hard link.
    const source = tempFolder();
    copyFileSync(file, join(source, 'memory.db'));
    const store = await openFileStore(source, clock);
    await facts(store).put(aDraft({ key: 'in the log' }));
    for (const part of ['', '-wal']) copyFileSync(join(source, `memory.db${part}`), file + part);
    linkSync(file, second);
    renameSync(`${file}-wal`, join(folder, log));
    const again = await openFileStore(folder, clock);
    expect(await facts(again).get('in the log')).toBeDefined();
    expect(readdirSync(join(folder, 'backups'))).toEqual([]);
  });
});

describe('copies of the memory in its folder (R-FORGET-14)', () => {
  test('are counted by a forget and listed, whatever their name and subfolder', async () => {
    const copies = ['backups/memory-5.db', 'copy of memory.db', 'backups/by hand.sqlite', 'before the move/memory.db'];
    mkdirSync(join(folder, 'before the move'));
    createCopies(copies);
    const store = await openFileStore(folder, clock);
    expect(await store.forget('me', everything)).toMatchObject({ purged: true, olderBackups: copies.length });
    expect(
      store
        .upkeep!.backups()
        .map((backup) => backup.file)
        .toSorted(),
    ).toEqual(copies.map((name) => join(folder, name)).toSorted());
  });

  test('do not include other databases, links, text files or the memory itself', async () => {
    const other = new Sqlite(join(folder, 'other.db'));
    other.exec('CREATE TABLE t (x)');
    other.close();
    writeFileSync(join(folder, 'short'), 'SQLite format 3\0');
    const outside = join(tempFolder(), 'memory.db');
    copyFileSync(file, outside);
    symlinkSync(outside, join(folder, 'link.db'));
    linkSync(file, join(folder, 'second name.db'));
    const store = await openFileStore(folder, clock);
    expect(await store.forget('me', everything)).toMatchObject({ olderBackups: 0 });
  });
});

test('a new backup is kept, even beside seven backups that a wrong clock dated later (R-DUR-10)', async () => {
  const store = await openFileStore(folder, clock);
  mkdirSync(join(folder, 'backups'));
  for (let ahead = 1; ahead <= 7; ahead += 1)
    copyFileSync(file, join(folder, 'backups', `memory-${clock.now() + ahead * 365 * DAY}.db`));
  await clock.advance(MINUTE);
  const made = await store.upkeep!.backup();
  expect(existsSync(made.file)).toBe(true);
  expect(store.upkeep!.backups()).toHaveLength(8);
});

test('a restore includes the log file beside the backup (R-DUR-10)', async () => {
  const there = tempFolder();
  copyFileSync(file, join(there, 'memory.db'));
  const store = await openFileStore(there, clock);
  await facts(store).put(aDraft({ key: 'in the log' }));
  const backup = join(tempFolder(), 'copied.db');
  for (const part of ['', '-wal']) copyFileSync(join(there, `memory.db${part}`), backup + part);
  expect(await restoreBackup({ folder, backup, clock, sources: withKey() })).toMatchObject({ entries: 2 });
});
