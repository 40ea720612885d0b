import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import type { KeySource, KeySources } from '../../../src/core/crypto/keys/key-source.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { Backup, MemoryStore, Selection } from '../../../src/core/store/store.ts';
import { recoverKey, restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { DAY, type ManualClock, manualClock, HOUR, MINUTE, SECOND } from '../../support/clock.ts';
import { A_KEY, aDraft, ANOTHER_KEY, openFileStore, withKey } from '../../support/store.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';

const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');
const keys = async (store: MemoryStore): Promise<string[]> =>
  (await facts(store).page({ sort: 'updated', limit: 100 })).entries.map(({ key }) => key).toSorted();
const everything: Selection = { kinds: ['fact', 'history', 'audit', 'cache', 'pack', 'activity'] };

interface Setup {
  readonly folder: string;
  readonly clock: ManualClock;
  readonly store: MemoryStore;
  readonly backup: Backup;
}

/** Facts a, b (with one version) and c, and a backup of them made one minute ago. */
async function setUp(): Promise<Setup> {
  const folder = tempFolder();
  const clock = manualClock();
  const store = await openFileStore(folder, clock);
  for (const key of ['a', 'b', 'c'])
    await facts(store).put(aDraft({ key, category: key === 'c' ? 'habits' : 'preferences', lifetime: 30 * DAY }));
  await facts(store).put(aDraft({ key: 'b', value: 'newer', lifetime: 30 * DAY }));
  await store.space({ subject: 'you' }, 'fact').put(aDraft({ key: 'theirs' }));
  const backup = await store.upkeep!.backup();
  await clock.advance(MINUTE);
  return { folder, clock, store, backup };
}

function edit(file: string, statement: string): void {
  const db = new Sqlite(file);
  db.exec(statement);
  db.close();
}

const underKeyFile =
  (folder: string): KeySources =>
  () => [fileSource(folder)];

describe('a backup (R-DUR-10)', () => {
  test('is one file that only its owner can read, with every row sealed as in the memory', async () => {
    const { folder, backup } = await setUp();
    expect(readdirSync(join(folder, 'backups'))).toEqual([backup.file.slice(join(folder, 'backups').length + 1)]);
    expect(statSync(backup.file).mode & 0o777).toBe(0o600);
    const live = new Sqlite(join(folder, 'memory.db'), { readonly: true });
    const copy = new Sqlite(backup.file, { readonly: true });
    const rows = 'SELECT * FROM entry ORDER BY rowid';
    expect(copy.prepare(rows).all()).toEqual(live.prepare(rows).all());
    copy.close();
    live.close();
  });

  test('is complete and valid despite concurrent writes', async () => {
    const { store, folder } = await setUp();
    await Promise.all(
      Array.from({ length: 2000 }, (_, index) => facts(store).put(aDraft({ key: `k${index}`, value: 'v'.repeat(500) }))),
    );
    const state = { done: false };
    const backing = store.upkeep!.backup().finally(() => (state.done = true));
    let written = 0;
    while (!state.done) {
      await facts(store).put(aDraft({ key: `late ${written}` }));
      written += 1;
    }
    const { file } = await backing;
    expect(written).toBeGreaterThan(1);
    const restored = tempFolder();
    const result = await restoreBackup({ folder: restored, backup: file, clock: manualClock(), sources: withKey() });
    expect(result.broken).toBe(0);
    expect(result.entries).toBeGreaterThanOrEqual(2005);
    expect(readdirSync(join(folder, 'backups')).every((name) => /^memory-\d+\.db$/.test(name))).toBe(true);
  });

  test('is deleted once there are seven newer ones', async () => {
    const { store, clock } = await setUp();
    for (let turn = 0; turn < 9; turn += 1) {
      await clock.advance(DAY / 2);
      await store.upkeep!.backup();
    }
    const kept = store.upkeep!.backups();
    expect(kept).toHaveLength(7);
    expect(kept.map(({ at }) => at)).toEqual(kept.map(({ at }) => at).toSorted((one, other) => other - one));
    expect(kept[0]!.at).toBe(clock.now());
  });

  test('is counted by a forget whose facts it may still contain (R-FORGET-14)', async () => {
    const { store, clock } = await setUp();
    expect(await store.forget('me', { kinds: ['fact'], key: 'a' })).toEqual({ deleted: 1, purged: true, olderBackups: 1 });
    await clock.advance(MINUTE);
    await store.upkeep!.backup();
    expect(await store.forget('me', { kinds: ['fact'], key: 'b' })).toMatchObject({ olderBackups: 2 });
  });

  test('that a killed program left unfinished is removed at the next start', async () => {
    const { store, folder, clock } = await setUp();
    await store[Symbol.asyncDispose]();
    const left = ['backups/memory-1.db.new', 'backups/memory-1.db.new-journal', 'memory.restoring.db', 'memory.restoring.db-wal'];
    for (const name of left) writeFileSync(join(folder, name), 'half');
    await openFileStore(folder, clock);
    expect(left.filter((name) => existsSync(join(folder, name)))).toEqual([]);
  });

  test('that fails does not affect the memory', async () => {
    const { store, folder } = await setUp();
    rmSync(join(folder, 'backups'), { recursive: true });
    writeFileSync(join(folder, 'backups'), 'in the way');
    await expect(store.upkeep!.backup()).rejects.toBeDefined();
    expect(store.status().file).toEqual({ at: 'open' });
    expect(await keys(store)).toEqual(['a', 'b', 'c']);
  });

  test('is verified row by row, and reports rows that were already broken', async () => {
    const { store, folder } = await setUp();
    const db = new Sqlite(join(folder, 'memory.db'));
    db.exec('UPDATE entry SET expires_at = expires_at + 1 WHERE rowid = 1');
    db.close();
    expect((await store.upkeep!.backup()).broken).toBe(1);
  });

  test('does not contain a fact that was forgotten while the backup was made', async () => {
    const { store } = await setUp();
    await Promise.all(
      Array.from({ length: 3000 }, (_, index) => facts(store).put(aDraft({ key: `k${index}`, value: 'v'.repeat(900) }))),
    );
    const backing = store.upkeep!.backup();
    await new Promise(setImmediate);
    await store.forget('me', { kinds: ['fact'], key: 'k7' });
    const { file } = await backing;
    const copy = new Sqlite(file, { readonly: true });
    const live = new Sqlite(file.replace(/backups.*/, 'memory.db'), { readonly: true });
    const count = 'SELECT count(*) FROM entry';
    expect(copy.prepare(count).pluck().get()).toBe(live.prepare(count).pluck().get());
    copy.close();
    live.close();
  });
});

describe('restoring (R-DUR-10, R-FORGET-15)', () => {
  const restore = async ({ folder, clock, store, backup }: Setup, sources = withKey()): Promise<MemoryStore> => {
    await store[Symbol.asyncDispose]();
    await restoreBackup({ folder, backup: backup.file, clock, sources });
    return openFileStore(folder, clock, sources);
  };

  test('brings back facts with their versions and times, and keeps the replaced memory as a backup', async () => {
    const setup = await setUp();
    await facts(setup.store).put(aDraft({ key: 'd' }));
    const before = await facts(setup.store).get('b');
    const store = await restore(setup);
    expect(await keys(store)).toEqual(['a', 'b', 'c']);
    expect(await facts(store).get('b')).toEqual(before);
    expect(await facts(store).history('b')).toHaveLength(1);
    const replaced = readdirSync(join(setup.folder, 'backups')).find((name) => name.startsWith('before-restore-'));
    expect(replaced).toBeDefined();
    await store[Symbol.asyncDispose]();
    // Nothing is lost: the replaced memory can be restored, too.
    await restoreBackup({
      folder: setup.folder,
      backup: join(setup.folder, 'backups', replaced!),
      clock: setup.clock,
      sources: withKey(),
    });
    expect(await keys(await openFileStore(setup.folder, setup.clock))).toEqual(['a', 'b', 'c', 'd']);
  });

  test.each<{ what: string; forget: Selection; left: string[] }>([
    { what: 'one key', forget: { kinds: ['fact'], key: 'b' }, left: ['a', 'c'] },
    { what: 'matching facts', forget: { kinds: ['fact'], matches: ({ key }) => key > 'a' }, left: ['a'] },
    { what: 'a category', forget: { kinds: ['fact'], category: 'preferences' }, left: ['c'] },
    { what: 'all facts', forget: { kinds: ['fact'] }, left: [] },
    { what: 'everything', forget: everything, left: [] },
  ])('repeats a forget that was made after the backup: $what', async ({ forget, left }) => {
    const setup = await setUp();
    await setup.store.forget('me', forget);
    const store = await restore(setup);
    expect(await keys(store)).toEqual(left);
    expect(await store.space({ subject: 'you' }, 'fact').count()).toBe(1);
    // The versions of these facts are deleted, too.
    expect(await store.upkeep!.verify()).toMatchObject({ entries: left.length + 1 + (left.includes('b') ? 1 : 0), broken: 0 });
  });

  test('repeats a forget of a category that had changed, and a forget made while the memory was locked', async () => {
    const setup = await setUp();
    await facts(setup.store).change('a', { category: 'moved', author: aDraft().author });
    await setup.store.forget('me', { kinds: ['fact'], category: 'moved' });
    setup.store.lock();
    await setup.store.forget('me', { kinds: ['fact'], category: 'habits' });
    expect(await keys(await restore(setup))).toEqual(['b']);
  });

  test('repeats a forget of facts that were unreadable then, but are intact in the backup', async () => {
    const setup = await setUp();
    const db = new Sqlite(join(setup.folder, 'memory.db'));
    db.exec('UPDATE entry SET created_at = created_at - 1 WHERE rowid IN (1, 2)');
    db.close();
    await setup.store.forget('me', { kinds: ['fact'], key: 'a' });
    await setup.store.forget('me', { kinds: ['fact'], category: 'preferences' });
    expect(await keys(await restore(setup))).toEqual(['c']);
  });

  test('after a forget with a wrong clock, keeps facts that were stored once the clock was corrected', async () => {
    const setup = await setUp();
    setup.clock.jump(3 * 365 * DAY);
    await facts(setup.store).put(aDraft({ key: 'a', lifetime: 30 * DAY }));
    await setup.store.forget('me', { kinds: ['fact'], key: 'a' });
    await setup.store.forget('me', { kinds: ['pack'] });
    await setup.clock.advance(MINUTE);
    setup.clock.jump(-3 * 365 * DAY);
    // The forget with the wrong clock still applies to facts that were stored before it.
    await setup.store[Symbol.asyncDispose]();
    const before = join(tempFolder(), 'before.db');
    copyFileSync(setup.backup.file, before);
    await restoreBackup({ folder: setup.folder, backup: before, clock: setup.clock, sources: withKey() });
    const store = await openFileStore(setup.folder, setup.clock);
    expect(await keys(store)).toEqual(['b', 'c']);
    await facts(store).put(aDraft({ key: 'a', value: 'anew' }));
    const second = await store.upkeep!.backup();
    await setup.clock.advance(SECOND);
    const again = await restore({ ...setup, store, backup: second });
    expect(await facts(again).get('a')).toMatchObject({ value: 'anew' });
  });

  test('repeats a forget of facts that the backup contains from a time when the clock was wrong', async () => {
    const setup = await setUp();
    setup.clock.jump(3 * 365 * DAY);
    await facts(setup.store).put(aDraft({ key: 'd' }));
    const ahead = await setup.store.upkeep!.backup();
    await setup.clock.advance(MINUTE);
    setup.clock.jump(-3 * 365 * DAY);
    await setup.store.forget('me', { kinds: ['fact'], key: 'd' });
    expect(await keys(await restore({ ...setup, backup: ahead }))).toEqual(['a', 'b', 'c']);
  });

  test('keeps facts that were stored again after the forget', async () => {
    const setup = await setUp();
    await setup.store.forget('me', everything);
    await setup.clock.advance(SECOND);
    await facts(setup.store).put(aDraft({ key: 'a', value: 'anew' }));
    const second = await setup.store.upkeep!.backup();
    await setup.clock.advance(SECOND);
    const store = await restore({ ...setup, backup: second });
    expect(await facts(store).get('a')).toMatchObject({ value: 'anew' });
  });

  test('keeps the list of forgets, so that a second restore repeats them again', async () => {
    const setup = await setUp();
    await setup.store.forget('me', { kinds: ['fact'], key: 'a' });
    const once = await restore(setup);
    const twice = await restore({ ...setup, store: once });
    expect(await keys(twice)).toEqual(['b', 'c']);
  });

  test('keeps a tombstone for a year (R-FORGET-15)', async () => {
    const setup = await setUp();
    await setup.store.forget('me', { kinds: ['fact'], key: 'a' });
    const tombstones = (): number => {
      const db = new Sqlite(join(setup.folder, 'memory.db'), { readonly: true });
      const count = db.prepare('SELECT count(*) FROM tombstone').pluck().get() as number;
      db.close();
      return count;
    };
    for (let day = 0; day < 364; day += 1) await setup.clock.advance(DAY);
    await setup.store.sweep(10);
    expect(tombstones()).toBe(1);
    await setup.clock.advance(DAY);
    await setup.store.sweep(10);
    expect(tombstones()).toBe(0);
  });

  test('extends no lifetime (R-DUR-11)', async () => {
    const setup = await setUp();
    await setup.clock.advance(30 * DAY - HOUR);
    const store = await restore(setup);
    expect((await facts(store).get('a'))?.expiresAt).toBe(setup.backup.at + 30 * DAY);
    await setup.clock.advance(HOUR);
    expect(await keys(store)).toEqual([]);
  });

  test.each([
    { what: 'is missing', make: (file: string) => rmSync(file), says: /cannot be read/ },
    {
      what: 'is truncated',
      make: (file: string) => writeFileSync(file, readFileSync(file).subarray(0, 8192)),
      says: /^The backup .* cannot be restored: it is truncated\. Choose another backup/,
    },
    {
      what: 'is not a database',
      make: (file: string) => writeFileSync(file, 'hello'),
      says: /cannot be restored: it is truncated/,
    },
    {
      what: 'consists of random bytes',
      make: (file: string) => writeFileSync(file, randomBytes(8192)),
      says: /cannot be restored: it has no SQLite header/,
    },
    {
      what: 'belongs to another program',
      make: (file: string) => edit(file, 'PRAGMA application_id = 1'),
      says: /cannot be restored: it belongs to another program/,
    },
    {
      what: 'was written by a newer version',
      make: (file: string) => edit(file, 'PRAGMA user_version = 99'),
      says: /cannot be restored: it was written by a newer version of Helmdeck Memory/,
    },
    {
      what: 'contains a trigger',
      make: (file: string) => edit(file, 'CREATE TRIGGER t AFTER DELETE ON entry BEGIN SELECT 1; END'),
      says: /cannot be restored: its schema was changed outside Helmdeck Memory/,
    },
    {
      what: 'has damaged pages',
      make: (file: string) => {
        const bytes = readFileSync(file);
        writeFileSync(file, Buffer.concat([bytes.subarray(0, 4096), randomBytes(bytes.length - 4096)]));
      },
      says: /^The backup .* cannot be restored: it is damaged/,
    },
  ])('refuses a backup that $what, names the backup, and leaves the memory unchanged (R-DUR-16)', async ({ make, says }) => {
    const setup = await setUp();
    await setup.store[Symbol.asyncDispose]();
    const before = readFileSync(join(setup.folder, 'memory.db'));
    make(setup.backup.file);
    const refused = restoreBackup({ folder: setup.folder, backup: setup.backup.file, clock: setup.clock, sources: withKey() });
    await expect(refused).rejects.toMatchObject({ code: 'invalid_input', message: expect.stringMatching(says) as string });
    await expect(refused).rejects.toMatchObject({ message: expect.stringMatching(/backup --list/) as string });
    await expect(refused).rejects.not.toMatchObject({ message: expect.stringMatching(/memory\.db/) as string });
    expect(readFileSync(join(setup.folder, 'memory.db')).equals(before)).toBe(true);
    expect(filesBelow(setup.folder).some(({ path }) => path.includes('restoring'))).toBe(false);
  });

  test('is refused without the key of the backup, and leaves the memory unchanged (R-KEY-04)', async () => {
    const setup = await setUp();
    await setup.store[Symbol.asyncDispose]();
    const before = readFileSync(join(setup.folder, 'memory.db'));
    const refused = restoreBackup({
      folder: setup.folder,
      backup: setup.backup.file,
      clock: setup.clock,
      sources: withKey(ANOTHER_KEY),
    });
    await expect(refused).rejects.toMatchObject({
      code: 'key_unavailable',
      message: expect.stringMatching(/mismatch/) as string,
    });
    expect(readFileSync(join(setup.folder, 'memory.db')).equals(before)).toBe(true);
  });

  test('is refused while the memory is open (R-DUR-12)', async () => {
    const setup = await setUp();
    const refused = restoreBackup({ folder: setup.folder, backup: setup.backup.file, clock: setup.clock, sources: withKey() });
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('replaces an unreadable memory, and reports that forgotten facts may be back', async () => {
    const setup = await setUp();
    await setup.store.forget('me', { kinds: ['fact'], key: 'a' });
    await setup.store[Symbol.asyncDispose]();
    writeFileSync(join(setup.folder, 'memory.db'), 'ruined');
    const result = await restoreBackup({
      folder: setup.folder,
      backup: setup.backup.file,
      clock: setup.clock,
      sources: withKey(),
    });
    expect(result).toMatchObject({ entries: 5, broken: 0, readReplacedMemory: false });
    expect(readFileSync(result.replacedMemory!, 'utf8')).toBe('ruined');
    expect(await keys(await openFileStore(setup.folder, setup.clock))).toEqual(['a', 'b', 'c']);
  });

  test('counts a broken row of the backup, and does not restore that row', async () => {
    const setup = await setUp();
    await setup.store[Symbol.asyncDispose]();
    const db = new Sqlite(setup.backup.file);
    db.exec('UPDATE entry SET expires_at = expires_at + 1 WHERE rowid = 1');
    db.close();
    expect(
      await restoreBackup({ folder: setup.folder, backup: setup.backup.file, clock: setup.clock, sources: withKey() }),
    ).toMatchObject({ broken: 1, entries: 4 });
    expect(await keys(await openFileStore(setup.folder, setup.clock))).toEqual(['b', 'c']);
  });
});

describe('the recovery key (R-KEY-10)', () => {
  test('restores a lost key to its source, and every row opens again', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const sources = underKeyFile(folder);
    const store = await openFileStore(folder, clock, sources);
    for (let index = 0; index < 100; index += 1) await facts(store).put(aDraft({ key: `k${index}` }));
    const words = await store.upkeep!.makeRecoveryKey();
    await store[Symbol.asyncDispose]();
    rmSync(join(folder, 'memory.key'));
    {
      await using lost = await openStore({ folder, clock, sources });
      expect(lost.status().key.at).toBe('absent');
    }
    await recoverKey({ folder, clock, sources: underKeyFile(folder), recoveryKey: words });
    const found = await openFileStore(folder, clock, sources);
    expect(await found.upkeep!.verify()).toEqual({ entries: 100, broken: 0, structure: [] });
  });

  test('replaces a wrong or damaged key, but fails while a key source is locked or unavailable (R-KEY-06)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const sources = underKeyFile(folder);
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const store = await openFileStore(folder, clock, sources);
    await facts(store).put(aDraft());
    const recoveryKey = await store.upkeep!.makeRecoveryKey();
    await store[Symbol.asyncDispose]();
    for (const wrong of [ANOTHER_KEY, 'damaged']) {
      writeFileSync(join(folder, 'memory.key'), wrong, { mode: 0o600 });
      await recoverKey({ folder, clock, sources, recoveryKey });
      expect(readFileSync(join(folder, 'memory.key'), 'utf8').trim()).toBe(A_KEY);
    }
    rmSync(join(folder, 'memory.key'));
    const kept: string[] = [];
    const place = (name: string, at: 'locked' | 'unavailable' | 'absent'): KeySource => ({
      name,
      createsOnFirstStart: false,
      read: () => Promise.resolve(at === 'absent' ? { at } : { at, why: 'closed' }),
      save: () => Promise.resolve(void kept.push(name)),
    });
    for (const at of ['locked', 'unavailable'] as const) {
      const refused = recoverKey({
        folder,
        clock,
        recoveryKey,
        sources: () => [place('the OS keychain', at), place('another file', 'absent')],
      });
      await expect(refused).rejects.toMatchObject({
        code: 'key_unavailable',
        message: expect.stringMatching(/the OS keychain is/) as string,
      });
    }
    // The key is saved to the source that held it before.
    await recoverKey({
      folder,
      clock,
      recoveryKey,
      sources: () => [place('the OS keychain', 'absent'), place('the key file', 'absent')],
    });
    expect(kept).toEqual(['the key file']);
  });

  test('opens a backup on another machine, in an empty folder', async () => {
    const here = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(here, clock);
    for (let index = 0; index < 100; index += 1) await facts(store).put(aDraft({ key: `k${index}` }));
    const words = await store.upkeep!.makeRecoveryKey();
    const { file } = await store.upkeep!.backup();
    const there = tempFolder();
    const carried = join(tempFolder(), 'carried.db');
    copyFileSync(file, carried);
    const sources = underKeyFile(there);
    const result = await restoreBackup({ folder: there, backup: carried, clock, sources, recoveryKey: words });
    expect(result).toMatchObject({ entries: 100, broken: 0, replacedMemory: undefined });
    expect(existsSync(join(there, 'memory.key'))).toBe(true);
    const found = await openFileStore(there, clock, sources);
    expect(await facts(found).count()).toBe(100);
  });

  test('opens a backup from before a rotation, and the rows are resealed with the current key', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const sources = underKeyFile(folder);
    const store = await openFileStore(folder, clock, sources);
    for (const key of ['a', 'b', 'c']) await facts(store).put(aDraft({ key }));
    const words = await store.upkeep!.makeRecoveryKey();
    const { file } = await store.upkeep!.backup();
    await clock.advance(MINUTE);
    await store.upkeep!.rotate();
    // This forget under the new key applies to the restored backup, too.
    await store.forget('me', { kinds: ['fact'], key: 'b' });
    await store[Symbol.asyncDispose]();
    const currentKey = readFileSync(join(folder, 'memory.key'), 'utf8');
    await restoreBackup({ folder, backup: file, clock, sources, recoveryKey: words });
    expect(readFileSync(join(folder, 'memory.key'), 'utf8')).toBe(currentKey);
    const found = await openFileStore(folder, clock, sources);
    expect(await keys(found)).toEqual(['a', 'c']);
    expect(await found.upkeep!.verify()).toMatchObject({ broken: 0 });
  });

  test('keeps the write-ahead log small while many rows are resealed with the current key', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const sources = underKeyFile(folder);
    const store = await openFileStore(folder, clock, sources);
    for (let from = 0; from < 6000; from += 500) {
      await Promise.all(
        Array.from({ length: 500 }, (_, more) => facts(store).put(aDraft({ key: `k${from + more}`, value: 'v'.repeat(800) }))),
      );
    }
    const recoveryKey = await store.upkeep!.makeRecoveryKey();
    const { file } = await store.upkeep!.backup();
    await store.upkeep!.rotate();
    await store[Symbol.asyncDispose]();
    let longest = 0;
    const watching = setInterval(() => {
      const log = statSync(join(folder, 'memory.restoring.db-wal'), { throwIfNoEntry: false });
      longest = Math.max(longest, log?.size ?? 0);
    }, 1);
    await restoreBackup({ folder, backup: file, clock, sources, recoveryKey });
    clearInterval(watching);
    expect(longest).toBeGreaterThan(0);
    // The log is moved into the file after the commit that fills 2000 pages, at about 8.4 MB. Unlimited, it grows to 22 MB.
    expect(longest).toBeLessThan(10 * 1024 * 1024);
  });

  test('still works after a rotation, but not after a newer recovery key was made', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const sources = underKeyFile(folder);
    const store = await openFileStore(folder, clock, sources);
    await facts(store).put(aDraft());
    const older = await store.upkeep!.makeRecoveryKey();
    const words = await store.upkeep!.makeRecoveryKey();
    await store.upkeep!.rotate();
    await store[Symbol.asyncDispose]();
    rmSync(join(folder, 'memory.key'));
    const options = { folder, clock, sources: underKeyFile(folder) };
    await expect(recoverKey({ ...options, recoveryKey: older })).rejects.toMatchObject({ code: 'invalid_input' });
    await recoverKey({ ...options, recoveryKey: words });
    expect(await facts(await openFileStore(folder, clock, sources)).get(aDraft().key)).toBeDefined();
  });

  test('opens a memory whose rotation was interrupted: both keys are restored, and the rotation continues', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const sources = underKeyFile(folder);
    const store = await openFileStore(folder, clock, sources);
    await Promise.all(Array.from({ length: 2000 }, (_, index) => facts(store).put(aDraft({ key: `k${index}` }))));
    const recoveryKey = await store.upkeep!.makeRecoveryKey();
    const rotating = store.upkeep!.rotate();
    for (let state = store.status().rotation; state.at !== 'running' || state.done === 0; state = store.status().rotation)
      await new Promise(setImmediate);
    await expect(store.upkeep!.makeRecoveryKey()).rejects.toMatchObject({ code: 'unavailable' });
    await Promise.all([expect(rotating).rejects.toThrow(/resumes at the next startup/), store[Symbol.asyncDispose]()]);
    for (const name of ['memory.key', 'memory.key.next']) rmSync(join(folder, name));
    await recoverKey({ folder, clock, sources, recoveryKey });
    const again = await openFileStore(folder, clock, sources);
    while (again.status().rotation.at === 'running') await new Promise(setImmediate);
    expect(await again.upkeep!.verify()).toEqual({ entries: 2000, broken: 0, structure: [] });
    // The recovery key was made before the rotation and also opens the memory after it.
    await again[Symbol.asyncDispose]();
    rmSync(join(folder, 'memory.key'));
    await recoverKey({ folder, clock, sources, recoveryKey });
    expect(await facts(await openFileStore(folder, clock, sources)).count()).toBe(2000);
  });

  test('that was never made is reported as such, and so is an empty folder', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const words = '0'.repeat(56);
    await expect(recoverKey({ folder, clock, sources: withKey(), recoveryKey: words })).rejects.toMatchObject({
      code: 'not_found',
    });
    const store = await openFileStore(folder, clock);
    await facts(store).put(aDraft());
    await store[Symbol.asyncDispose]();
    await expect(recoverKey({ folder, clock, sources: withKey(), recoveryKey: words })).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringMatching(/never had a recovery key/) as string,
    });
  });
});
