import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { fileSource } from '../../../../src/core/crypto/keys/file-source.ts';
import type { KeySources } from '../../../../src/core/crypto/keys/key-source.ts';
import { openStore } from '../../../../src/core/store/open-store.ts';
import { type DatabaseOptions, Database } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore } from '../../../../src/core/store/postgres/postgres-store.ts';
import { restoreToServer } from '../../../../src/core/store/postgres/server-restore.ts';
import type { MemoryStore } from '../../../../src/core/store/store.ts';
import { systemClock as clock } from '../../../../src/core/time/clock.ts';
import { restoreBackup } from '../../../../src/core/upkeep/restore.ts';
import { DAY } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, ANOTHER_KEY, withKey } from '../../../support/store.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const me = { subject: 'me' };

async function open(database: DatabaseOptions, folder = tempFolder(), sources: KeySources = withKey()): Promise<PostgresStore> {
  const store = await PostgresStore.open({ folder, database, clock, sources });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

async function openFile(folder: string): Promise<MemoryStore> {
  const store = await openStore({ folder, clock, sources: withKey() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

const valueOf = async (store: MemoryStore, key: string): Promise<string | undefined> =>
  (await store.space(me, 'fact').get(key))?.value;

describe('a backup of a memory in PostgreSQL (R-PGUP-08)', () => {
  test('is a sealed file with every row as it was at one moment, and a memory file of its own', async () => {
    const folder = tempFolder();
    const store = await open(server.newMemory(), folder);
    const facts = store.space(me, 'fact');
    for (let index = 0; index < 300; index += 1) await facts.put(aDraft({ key: `k${index}`, value: `marker-qx ${index}` }));
    await facts.put(aDraft({ key: 'k1', value: 'changed' }));
    const state = { done: false };
    const backing = store.upkeep.backup().finally(() => (state.done = true));
    let late = 0;
    for (; !state.done; late += 1) await facts.put(aDraft({ key: `late ${late}` }));
    const { file, broken } = await backing;
    expect(broken).toBe(0);
    expect(readdirSync(join(folder, 'backups'))).toHaveLength(1);
    expect(readFileSync(file).includes('marker-qx')).toBe(false);
    expect(store.upkeep.backups().map((each) => each.file)).toEqual([file]);
    expect((await store.forget('me', { kinds: ['fact'], key: 'k2' })).olderBackups).toBe(1);
    const elsewhere = tempFolder();
    copyFileSync(file, join(elsewhere, 'memory.db'));
    const copy = await openFile(elsewhere);
    expect((await copy.space(me, 'fact').history('k1')).map(({ value }) => value)).toEqual(['marker-qx 1']);
    expect(await valueOf(copy, 'k2')).toBe('marker-qx 2');
    expect(await copy.upkeep?.verify()).toMatchObject({ broken: 0, structure: [] });
  });

  test('is verified as a backup of a file is, with its secrets', async () => {
    const database = server.newMemory();
    const store = await open(database);
    await store.space(me, 'fact').put(aDraft());
    await store.vault.write('token t1', 'a record');
    await server.query(`UPDATE "${database.schema}".meta SET secret = substr(secret, 2) WHERE name LIKE '%token t1'`);
    expect(await store.upkeep.backup()).toMatchObject({ broken: 1 });
  });

  test('and a rotation exclude each other, also in different processes', async () => {
    const database = server.newMemory();
    const [one, another] = [await open(database), new Database(database)];
    onTestFinished(() => another.close());
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => (end = resolve));
    const holds = new Promise<void>((taken) => {
      void another.alone('rotation', () => {
        taken();
        return ended;
      });
    });
    await holds;
    await expect(one.upkeep.backup()).rejects.toMatchObject({ code: 'unavailable' });
    await expect(one.upkeep.rotate()).rejects.toMatchObject({ code: 'unavailable' });
    end();
    await expect.poll(() => one.upkeep.backup().catch(() => undefined)).toMatchObject({ broken: 0 });
    // In one process too, to which the server would grant the lock again.
    const backing = one.upkeep.backup();
    await expect(one.upkeep.rotate()).rejects.toMatchObject({ code: 'unavailable' });
    expect(await backing).toMatchObject({ broken: 0 });
  });
});

describe('a restore into PostgreSQL (R-PGUP-08)', () => {
  test('replaces the memory for all processes, and undoes no forget, no revocation and no lock', async () => {
    const [database, folder] = [server.newMemory(), tempFolder()];
    const store = await open(database, folder);
    for (const key of ['a', 'b', 'c']) await store.space(me, 'fact').put(aDraft({ key, value: `old ${key}` }));
    await store.vault.write('token t1', 'a record');
    const { file } = await store.upkeep.backup();
    await store.space(me, 'fact').put(aDraft({ key: 'b', value: 'new b' }));
    await store.space(me, 'fact').put(aDraft({ key: 'd', value: 'new d' }));
    await store.forget('me', { kinds: ['fact'], key: 'c' });
    await store.vault.revokeToken('t1', Date.now() + DAY);
    await store.vault.write('token t2', 'another record');
    await store[Symbol.asyncDispose]();
    const live = await open(database);
    expect(await valueOf(live, 'd')).toBe('new d');

    const restored = await restoreToServer({ folder, database, backup: file, clock, sources: withKey() });
    expect(restored).toMatchObject({ stillForgotten: 1, broken: 0, revokedTokens: 0, readReplacedMemory: true });
    expect(await Promise.all(['a', 'b', 'c', 'd'].map((key) => valueOf(live, key)))).toEqual([
      'old a',
      'old b',
      undefined,
      undefined,
    ]);
    expect(await live.vault.revokedTokens()).toEqual(['t1']);
    expect(await live.vault.names()).toEqual(['token t1', 'token t2']);
    expect(await live.upkeep.verify()).toMatchObject({ broken: 0, structure: [] });
    await live.space(me, 'fact').put(aDraft({ key: 'e' }));
    // The replaced memory is a backup too.
    expect(existsSync(restored.replacedMemory ?? '')).toBe(true);
    await restoreToServer({ folder, database, backup: restored.replacedMemory ?? '', clock, sources: withKey() });
    expect(await Promise.all(['b', 'c', 'd', 'e'].map((key) => valueOf(live, key)))).toEqual([
      'new b',
      undefined,
      'new d',
      undefined,
    ]);
  });

  test('undoes nothing that another process acknowledges while the backup is prepared', async () => {
    const [database, folder] = [server.newMemory(), tempFolder()];
    const live = await open(database);
    const store = await open(database, folder);
    for (const key of ['1', '2', '3']) {
      await store.space(me, 'fact').put(aDraft({ key, value: 'secret' }));
      await store.vault.write(`token t${key}`, 'a record');
    }
    const { file } = await store.upkeep.backup();
    await store[Symbol.asyncDispose]();
    // Restore asks for the key while it reads the newer state, prepares the backup, and writes it.
    let asked = 0;
    const sources: KeySources = (memory) => {
      asked += 1;
      const key = String(asked);
      return withKey()(memory).map((source) => ({
        name: source.name,
        createsOnFirstStart: source.createsOnFirstStart,
        read: async (slot) => {
          if (slot === 'current' && (await valueOf(live, key)) !== undefined) {
            await live.space(me, 'fact').put(aDraft({ key: `late ${key}`, value: 'acknowledged' }));
            await live.vault.revokeToken(`t${key}`, Date.now() + DAY);
            await live.forget('me', { kinds: ['fact'], key });
          }
          return source.read(slot);
        },
      }));
    };
    const { replacedMemory } = await restoreToServer({ folder, database, backup: file, clock, sources });
    expect(await Promise.all(['1', '2', '3'].map((key) => valueOf(live, key)))).toEqual([undefined, undefined, undefined]);
    expect((await live.vault.revokedTokens()).toSorted()).toEqual(['t1', 't2', 't3']);
    const elsewhere = tempFolder();
    copyFileSync(replacedMemory ?? '', join(elsewhere, 'memory.db'));
    const replaced = await openFile(elsewhere);
    for (const key of ['1', '2', '3']) expect(await valueOf(replaced, `late ${key}`)).toBe('acknowledged');
    // Only the last attempt keeps the memory that it replaced.
    expect(readdirSync(join(folder, 'backups'))).toHaveLength(2);
  });

  test('replaces an entry that expired and was stored again, so that its row has another number', async () => {
    const [database, folder] = [server.newMemory(), tempFolder()];
    const store = await open(database, folder);
    await store.space(me, 'cache').put(aDraft({ key: 'result', value: 'old' }));
    // More rows than one step of a copy.
    for (let index = 0; index < 250; index += 1) await store.space(me, 'fact').put(aDraft({ key: `k${index}` }));
    const { file } = await store.upkeep.backup();
    // As a sweep does.
    await server.query(`SET search_path = "${database.schema}"; DELETE FROM entry WHERE kind = 4`);
    await store.space(me, 'cache').put(aDraft({ key: 'result', value: 'new' }));
    await store[Symbol.asyncDispose]();
    const restored = await restoreToServer({ folder, database, backup: file, clock, sources: withKey() });
    expect(restored).toMatchObject({ stillForgotten: 0, broken: 0 });
    const present = await open(database, folder);
    expect((await present.space(me, 'cache').get('result'))?.value).toBe('old');
    expect(await present.upkeep.verify()).toMatchObject({ broken: 0, structure: [] });
  });

  test.each(['move', 'rotation'])('is refused while another process holds the lock of a %s (R-PGUP-03)', async (lock) => {
    const [database, folder] = [server.newMemory(), tempFolder()];
    const store = await open(database, folder);
    await store.space(me, 'fact').put(aDraft({ key: 'k', value: 'v' }));
    const { file } = await store.upkeep.backup();
    await store[Symbol.asyncDispose]();
    const another = new Database(database);
    onTestFinished(() => another.close());
    const restoring = another.alone(lock, () =>
      restoreToServer({ folder, database, backup: file, clock, sources: withKey() }).catch((error: unknown) => error),
    );
    expect((await restoring)?.value).toMatchObject({ code: 'unavailable' });
  });

  test('takes a backup of a file, and a file takes a backup of a database', async () => {
    const [folder, database] = [tempFolder(), server.newMemory()];
    const file = await openFile(folder);
    await file.space(me, 'fact').put(aDraft({ key: 'k', value: 'v', author: { client: 'c', origin: 'mcp', token: 't' } }));
    const backup = await file.upkeep?.backup();
    await file[Symbol.asyncDispose]();
    await restoreToServer({ folder, database, backup: backup?.file ?? '', clock, sources: withKey() });
    const store = await open(database, folder);
    expect(await store.space(me, 'fact').get('k')).toMatchObject({ value: 'v', author: { client: 'c', token: 't' } });
    await store.space(me, 'fact').put(aDraft({ key: 'k', value: 'w' }));
    const made = await store.upkeep.backup();
    await store[Symbol.asyncDispose]();
    await restoreBackup({ folder, backup: made.file, clock, sources: withKey() });
    expect(await valueOf(await openFile(folder), 'k')).toBe('w');
  });

  test('opens a backup with the recovery key, and stores the key that was lost', async () => {
    const [database, folder] = [server.newMemory(), tempFolder()];
    const store = await open(database, folder);
    await store.space(me, 'fact').put(aDraft({ key: 'k', value: 'v' }));
    const recoveryKey = await store.upkeep.makeRecoveryKey();
    const { file } = await store.upkeep.backup();
    await store[Symbol.asyncDispose]();
    const fresh = server.newMemory();
    const sources: KeySources = () => [fileSource(folder)];
    await restoreToServer({ folder, database: fresh, backup: file, clock, sources, recoveryKey });
    expect(await valueOf(await open(fresh, folder, sources), 'k')).toBe('v');
  });

  test('refuses a wrong key and a damaged backup, and changes nothing', async () => {
    const [database, folder] = [server.newMemory(), tempFolder()];
    const store = await open(database, folder);
    await store.space(me, 'fact').put(aDraft({ key: 'k', value: 'v' }));
    const { file } = await store.upkeep.backup();
    await store.space(me, 'fact').put(aDraft({ key: 'k', value: 'w' }));
    await store[Symbol.asyncDispose]();
    const options = { folder, database, backup: file, clock, sources: withKey() };
    await expect(restoreToServer({ ...options, sources: withKey(ANOTHER_KEY) })).rejects.toMatchObject({
      code: 'key_unavailable',
    });
    const damaged = join(tempFolder(), 'damaged.db');
    writeFileSync(damaged, readFileSync(file).subarray(0, 9000));
    await expect(restoreToServer({ ...options, backup: damaged })).rejects.toMatchObject({ code: 'invalid_input' });
    const fresh = server.newMemory();
    await expect(restoreToServer({ ...options, database: fresh, backup: damaged })).rejects.toMatchObject({
      code: 'invalid_input',
    });
    expect(await server.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${fresh.schema}'`)).toEqual([]);
    expect(await valueOf(await open(database), 'k')).toBe('w');
    expect(readdirSync(folder).filter((name) => name.includes('restoring'))).toEqual([]);
  });
});
