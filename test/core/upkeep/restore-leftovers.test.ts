import { copyFileSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { type ManualClock, manualClock, MINUTE } from '../../support/clock.ts';
import { A_KEY, aDraft, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');
const everything = { kinds: ['fact', 'history', 'audit', 'cache', 'pack', 'activity'] } as const;

let folder: string;
let file: string;
let backup: string;
let clock: ManualClock;
let store: MemoryStore;

function segmentIn(database: string): number {
  const db = new Sqlite(database, { readonly: true });
  try {
    return db.prepare('SELECT segment FROM master_key').pluck().get() as number;
  } finally {
    db.close();
  }
}

/** An open memory with 100 facts and one activity record, and a backup of it made one minute ago. */
beforeEach(async () => {
  folder = tempFolder();
  file = join(folder, 'memory.db');
  clock = manualClock();
  store = await openFileStore(folder, clock);
  for (let index = 0; index < 100; index += 1) await facts(store).put(aDraft({ key: `k${index}` }));
  await facts(store).put(aDraft({ key: 'noted' }), aDraft({ key: 'stored noted', category: 'stored' }));
  backup = join(tempFolder(), 'backup.db');
  copyFileSync((await store.upkeep!.backup()).file, backup);
  rmSync(join(folder, 'backups'), { recursive: true });
  await clock.advance(MINUTE);
});

/** Closes the memory and returns a copy of its log as a kill would have left it. */
async function killedLog(): Promise<string> {
  const log = join(tempFolder(), 'log');
  for (let index = 0; index < 100; index += 1) await facts(store).put(aDraft({ key: `k${index}`, value: 'newer' }));
  copyFileSync(`${file}-wal`, log);
  await store[Symbol.asyncDispose]();
  return log;
}

const expectIntact = async (): Promise<void> => {
  const again = await openFileStore(folder, clock);
  expect(await again.upkeep!.verify()).toMatchObject({ broken: 0, structure: [] });
  expect((await facts(again).get('k7'))?.value).toBe(aDraft().value);
};

describe('a restore does not mix these files of the replaced memory into the backup (R-DUR-10)', () => {
  test('the log of a memory whose file is missing', async () => {
    const log = await killedLog();
    rmSync(file);
    copyFileSync(log, `${file}-wal`);
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    expect(existsSync(`${file}-wal`)).toBe(false);
    await expectIntact();
  });

  test('the log of an unreadable memory, which is moved to the backups with it', async () => {
    const log = await killedLog();
    writeFileSync(file, 'ruined');
    copyFileSync(log, `${file}-wal`);
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    expect(readdirSync(join(folder, 'backups')).filter((name) => name.endsWith('-wal'))).toHaveLength(1);
    await expectIntact();
  });

  test('the rollback journal of an unreadable memory, left by a kill', async () => {
    await store[Symbol.asyncDispose]();
    // A hot journal of the whole file, as a killed writer leaves it.
    const writer = new Sqlite(file);
    writer.pragma('journal_mode = DELETE');
    writer.pragma('cache_size = 1');
    writer.exec("BEGIN; UPDATE entry SET category = 'changed'");
    const journal = join(tempFolder(), 'journal');
    copyFileSync(`${file}-journal`, journal);
    writer.close();
    writeFileSync(file, 'ruined');
    copyFileSync(journal, `${file}-journal`);
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    expect(existsSync(`${file}-journal`)).toBe(false);
    await expectIntact();
  });
});

test('activity records stay forgotten after a forget of everything (R-FORGET-15)', async () => {
  expect(await store.space({ subject: 'me' }, 'activity').count()).toBe(1);
  await store.forget('me', everything);
  await store[Symbol.asyncDispose]();
  await restoreBackup({ folder, backup, clock, sources: withKey() });
  const again = await openFileStore(folder, clock);
  expect(await again.space({ subject: 'me' }, 'activity').count()).toBe(0);
});

test('a restore with the recovery key of a backup from before a rotation reuses no key segment (R-SEAL-06)', async () => {
  const there = tempFolder();
  await fileSource(there).save('current', Buffer.from(A_KEY, 'hex'));
  const sources = () => [fileSource(there)];
  const open = () => openFileStore(there, clock, sources);
  const first = await open();
  await facts(first).put(aDraft());
  const recoveryKey = await first.upkeep!.makeRecoveryKey();
  copyFileSync((await first.upkeep!.backup()).file, backup);
  await first.upkeep!.rotate();
  await first[Symbol.asyncDispose]();
  for (let start = 0; start < 5; start += 1) {
    await using again = await open();
    await facts(again).put(aDraft({ key: `start ${start}` }));
  }
  const reached = segmentIn(join(there, 'memory.db'));
  await restoreBackup({ folder: there, backup, clock, sources, recoveryKey });
  expect(segmentIn(join(there, 'memory.db'))).toBeGreaterThan(reached);
});

test('a restore of an older backup reuses no key segment (R-SEAL-06)', async () => {
  await store[Symbol.asyncDispose]();
  for (let start = 0; start < 5; start += 1) {
    const again = await openFileStore(folder, clock);
    await facts(again).put(aDraft({ key: `start ${start}` }));
    await again[Symbol.asyncDispose]();
  }
  const reached = segmentIn(file);
  await restoreBackup({ folder, backup, clock, sources: withKey() });
  expect(segmentIn(file)).toBeGreaterThanOrEqual(reached);
});
