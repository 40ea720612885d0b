import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../../src/core/store/open-store.ts';
import type { DatabaseOptions } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { restoreToServer } from '../../../../src/core/store/postgres/server-restore.ts';
import type { MemoryStore } from '../../../../src/core/store/store.ts';
import { systemClock as clock } from '../../../../src/core/time/clock.ts';
import { type MoveOptions, moveToFile, moveToServer } from '../../../../src/core/upkeep/move.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { mountDisk, startOnSmallDisk } from '../../../support/small-disk.ts';
import { aDraft, withKey } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const me = { subject: 'me' };
const FACTS = 200;
/** Mebibytes that are less than the facts need, and more. */
const [SMALL, LARGE] = [6, 64];

async function openFile(folder: string): Promise<MemoryStore> {
  const store = await openStore({ folder, clock, sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

async function openServer(database: DatabaseOptions, folder = tempFolder()): Promise<PostgresStore> {
  const store = await PostgresStore.open({ folder, database, clock, sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

async function fill(store: MemoryStore, facts = FACTS): Promise<void> {
  const value = 'x'.repeat(60_000);
  for (let index = 0; index < facts; index += 1) await store.space(me, 'fact').put(aDraft({ key: `k${index}`, value }));
}

const moveOf = (folder: string, database: DatabaseOptions): MoveOptions => ({
  folder,
  database,
  places: { file: join(folder, 'memory.db'), server: 'the database' },
  clock,
  sources: withKey(),
});

const countOf = async (store: MemoryStore): Promise<number> => {
  const count = await store.space(me, 'fact').count();
  await store[Symbol.asyncDispose]();
  return count;
};

const refusedWith = (message: RegExp) => ({ code: 'disk_full', message: expect.stringMatching(message) as string });

describe('a full disk of the database server', () => {
  test('stops a move with one sentence, loses nothing, and the move resumes (R-PGUP-07, R-DUR-03)', async (context) => {
    const disk = mountDisk(SMALL);
    if (!disk) return context.skip();
    const [database, folder] = [(await startOnSmallDisk(disk)).newMemory(), tempFolder()];
    const file = await openFile(folder);
    await fill(file);
    await file[Symbol.asyncDispose]();
    await expect(moveToServer(moveOf(folder, database))).rejects.toMatchObject(
      refusedWith(/^The disk of the database server is full\. The memory is still \S+memory\.db\. Run the same command again/),
    );
    await expect(openServer(database)).rejects.toThrow(/has not finished/);
    expect(await countOf(await openFile(folder))).toBe(FACTS);
    disk.grow(LARGE);
    await moveToServer(moveOf(folder, database));
    expect(await countOf(await openServer(database))).toBe(FACTS);
  });

  test('stops a restore with one sentence, and the memory stays as it was (R-PGUP-08, R-DUR-03)', async (context) => {
    const disk = mountDisk(SMALL);
    if (!disk) return context.skip();
    const [database, folder, elsewhere] = [(await startOnSmallDisk(disk)).newMemory(), tempFolder(), tempFolder()];
    const large = await openFile(elsewhere);
    await fill(large);
    const backup = (await large.upkeep?.backup())?.file ?? '';
    await large[Symbol.asyncDispose]();
    const present = await openServer(database, folder);
    await present.space(me, 'fact').put(aDraft({ key: 'present' }));
    await present[Symbol.asyncDispose]();
    const options = { folder, database, backup, clock, sources: withKey() };
    await expect(restoreToServer(options)).rejects.toMatchObject(
      refusedWith(/^The disk of the database server is full\. Nothing was changed\./),
    );
    const after = await openServer(database, folder);
    expect((await after.space(me, 'fact').get('present'))?.key).toBe('present');
    expect(await after.space(me, 'fact').put(aDraft({ key: 'writes go on' }))).toMatchObject({ status: 'created' });
    expect(await countOf(after)).toBe(2);
    // The memory was not replaced, so there is no copy of it either.
    expect(readdirSync(join(folder, 'backups'))).toEqual([]);
    disk.grow(LARGE);
    await restoreToServer(options);
    expect(await countOf(await openServer(database, folder))).toBe(FACTS);
  });
});

describe('a full disk of the data folder', () => {
  test('stops a move with one sentence, loses nothing, and the move resumes (R-PGUP-07, R-DUR-03)', async (context) => {
    const disk = mountDisk(SMALL);
    if (!disk) return context.skip();
    const [database, folder] = [server.newMemory(), join(disk.folder, 'data')];
    const store = await openServer(database);
    await fill(store);
    await store[Symbol.asyncDispose]();
    await expect(moveToFile(moveOf(folder, database))).rejects.toMatchObject(
      refusedWith(/^The disk of the data folder is full\. The memory is still the database\. Run the same command again/),
    );
    expect(existsSync(join(folder, 'memory.db'))).toBe(false);
    expect(await countOf(await openServer(database))).toBe(FACTS);
    disk.grow(LARGE);
    await moveToFile(moveOf(folder, database));
    expect(await countOf(await openFile(folder))).toBe(FACTS);
    await expect(openServer(database)).rejects.toThrow(/was moved/);
  });

  test('stops a backup and a restore with one sentence, and leaves no drafts (R-PGUP-08, R-DUR-03)', async (context) => {
    const disk = mountDisk(SMALL);
    if (!disk) return context.skip();
    const [database, folder, elsewhere] = [server.newMemory(), join(disk.folder, 'data'), tempFolder()];
    const store = await openServer(database, folder);
    await fill(store);
    await expect(store.upkeep.backup()).rejects.toMatchObject(refusedWith(/^The disk is full/));
    expect(readdirSync(join(folder, 'backups'))).toEqual([]);
    await store.space(me, 'fact').put(aDraft({ key: 'writes go on' }));
    await store[Symbol.asyncDispose]();
    const small = await openFile(elsewhere);
    await fill(small, 5);
    const backup = (await small.upkeep?.backup())?.file ?? '';
    await small[Symbol.asyncDispose]();
    // The backup fits on the disk, and the copy of the replaced memory does not.
    const options = { folder, database, backup, clock, sources: withKey() };
    await expect(restoreToServer(options)).rejects.toMatchObject(refusedWith(/^The disk is full/));
    expect(await countOf(await openServer(database))).toBe(FACTS + 1);
    expect(readdirSync(join(folder, 'backups'))).toEqual([]);
    expect(readdirSync(folder).filter((name) => name.includes('restoring'))).toEqual([]);
    disk.grow(LARGE);
    const { replacedMemory = '' } = await restoreToServer(options);
    expect(existsSync(replacedMemory)).toBe(true);
    expect(await countOf(await openServer(database))).toBe(5);
  });
});
