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

/** An open memory with 100 facts and the record of one write, and a backup of them, a minute old. */
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

/** The log of the running memory, as a kill leaves it. */
async function killedLog(): Promise<string> {
  const log = join(tempFolder(), 'log');
  for (let index = 0; index < 100; index += 1) await facts(store).put(aDraft({ key: `k${index}`, value: 'newer' }));
  copyFileSync(`${file}-wal`, log);
  await store[Symbol.asyncDispose]();
  return log;
}

const sound = async (): Promise<void> => {
  const again = await openFileStore(folder, clock);
  expect(await again.upkeep!.verify()).toMatchObject({ broken: 0, structure: [] });
  expect((await facts(again).get('k7'))?.value).toBe(aDraft().value);
};

describe('a restore mixes nothing of the memory before into the backup (R-DUR-10)', () => {
  test('not the log of a memory whose file is lost', async () => {
    const log = await killedLog();
    rmSync(file);
    copyFileSync(log, `${file}-wal`);
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    expect(existsSync(`${file}-wal`)).toBe(false);
    await sound();
  });

  test('not the log of a memory that cannot be read, which goes aside with it', async () => {
    const log = await killedLog();
    writeFileSync(file, 'ruined');
    copyFileSync(log, `${file}-wal`);
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    expect(readdirSync(join(folder, 'backups')).filter((name) => name.endsWith('-wal'))).toHaveLength(1);
    await sound();
  });

  test('not a rollback journal that a kill left beside a memory that cannot be read', async () => {
    await store[Symbol.asyncDispose]();
    // A hot journal over the whole file, as a killed writer leaves it.
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
    await sound();
  });
});

test('the record of what was done stays forgotten after forget all (R-FORGET-15)', async () => {
  expect(await store.space({ subject: 'me' }, 'activity').count()).toBe(1);
  await store.forget('me', everything);
  await store[Symbol.asyncDispose]();
  await restoreBackup({ folder, backup, clock, sources: withKey() });
  const again = await openFileStore(folder, clock);
  expect(await again.space({ subject: 'me' }, 'activity').count()).toBe(0);
});

test('nor when a backup comes under the key of today by the recovery key (R-SEAL-06)', async () => {
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

test('no segment of the key is opened twice after an older backup (R-SEAL-06)', async () => {
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
