import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import type { KeySources } from '../../../src/core/crypto/keys/key-source.ts';
import { addMissingTables } from '../../../src/core/store/database.ts';
import { migrations } from '../../../src/core/store/migrations/index.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { manualClock } from '../../support/clock.ts';
import { A_KEY, aDraft, openFileStore, withKey } from '../../support/store.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';
import { embedAll, storedVectors } from './vectors.contract.ts';

const me = { subject: 'me' };
const facts = (store: MemoryStore) => store.space(me, 'fact');

/** A memory with facts and their vectors. */
async function withVectors(count: number, sources: KeySources = withKey(), folder = tempFolder()) {
  const clock = manualClock();
  const store = await openFileStore(folder, clock, sources);
  await Promise.all(Array.from({ length: count }, (_, index) => facts(store).put(aDraft({ key: `area/${index}` }))));
  await embedAll(store);
  return { folder, clock, store, vectors: await storedVectors(store) };
}

function change(folder: string, sql: string): void {
  const db = new Sqlite(join(folder, 'memory.db'));
  db.exec(sql);
  db.close();
}

describe('a vector is bound to its place (R-MEAN-12)', () => {
  const SWAP = 'UPDATE vector SET sealed = (SELECT sealed FROM vector WHERE row = 1) WHERE row = 2';

  test.each([
    { how: 'copied to another fact', sql: SWAP },
    {
      how: 'copied to another version of its fact',
      sql: 'UPDATE entry SET updated_at = updated_at + 1 WHERE rowid = 2',
      before: 'CREATE TEMP TABLE old AS SELECT * FROM vector WHERE row = 2',
      after: 'INSERT INTO vector SELECT * FROM old',
    },
    { how: 'attributed to another model', sql: 'UPDATE vector SET model = model + 1 WHERE row = 2' },
    { how: 'attributed to another namespace', sql: 'UPDATE vector SET namespace = 2 WHERE row = 2' },
    { how: 'truncated', sql: 'UPDATE vector SET sealed = substr(sealed, 1, 20) WHERE row = 2' },
    { how: 'replaced by bytes without a seal', sql: "UPDATE vector SET sealed = x'00010203' WHERE row = 2" },
  ])('one that was $how is not used, and is made again', async ({ sql, before = '', after = '' }) => {
    const { folder, store, vectors } = await withVectors(3);
    await store.space({ subject: 'you' }, 'fact').put(aDraft());
    await store[Symbol.asyncDispose]();
    change(folder, `${before}; ${sql}; ${after}`);
    await using again = await openFileStore(folder, manualClock());
    const intact = vectors.filter(({ row }) => row !== 2);
    expect(await storedVectors(again)).toEqual(intact);
    // The vector of another model or namespace is not read at all, and is replaced like the others.
    expect((await again.vectors.missing(me, 'model-1')).facts.map(({ row }) => row)).toEqual(sql.includes('entry') ? [] : [2]);
  });

  test('counts it as quarantined and in a verification', async () => {
    const { folder, store } = await withVectors(3);
    expect(await store.upkeep?.verify()).toEqual({ entries: 3, broken: 0, structure: [] });
    await store[Symbol.asyncDispose]();
    change(folder, SWAP);
    await using again = await openFileStore(folder, manualClock());
    expect(await again.upkeep?.verify()).toEqual({ entries: 3, broken: 1, structure: [] });
    expect(again.status().quarantined).toBe(0);
    expect(await storedVectors(again)).toHaveLength(2);
    expect(again.status().quarantined).toBe(1);
    expect(await embedAll(again)).toBe(1);
    expect(await storedVectors(again)).toHaveLength(3);
    expect(await again.upkeep?.verify()).toEqual({ entries: 3, broken: 0, structure: [] });
    // The facts themselves are unharmed.
    expect(await facts(again).count()).toBe(3);
  });

  test('a vector without a fact is found by a verification', async () => {
    const { folder, store } = await withVectors(1);
    await store[Symbol.asyncDispose]();
    change(folder, 'INSERT INTO vector SELECT 77, namespace, model, sealed FROM vector');
    await using again = await openFileStore(folder, manualClock());
    expect(await again.upkeep?.verify()).toMatchObject({ broken: 1 });
    expect(await storedVectors(again)).toHaveLength(1);
  });
});

describe('the upkeep of vectors', () => {
  test('their bytes are encrypted in every file (R-MEAN-11)', async () => {
    const { folder, store, vectors } = await withVectors(20);
    await store.upkeep?.backup();
    const files = filesBelow(folder);
    expect(files.length).toBeGreaterThan(3);
    for (const { vector } of vectors) {
      for (const { path, bytes } of files) expect(bytes.includes(Buffer.from(vector)), path).toBe(false);
    }
  });

  test('a rotation encrypts them with the new key (R-MEAN-13)', async () => {
    const folder = tempFolder();
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const sources: KeySources = () => [fileSource(folder)];
    const { store, vectors } = await withVectors(300, sources, folder);
    const before = readFileSync(join(folder, 'memory.key'), 'utf8');
    await store.upkeep?.rotate();
    expect(readFileSync(join(folder, 'memory.key'), 'utf8')).not.toBe(before);
    const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
    const ids = db.prepare('SELECT DISTINCT hex(substr(sealed, 2, 4)) FROM vector UNION SELECT hex(id) FROM master_key').all();
    db.close();
    expect(ids).toHaveLength(1);
    expect(await storedVectors(store)).toEqual(vectors);
    await store[Symbol.asyncDispose]();
    await using again = await openFileStore(folder, manualClock(), sources);
    expect(await storedVectors(again)).toEqual(vectors);
    expect(await again.upkeep?.verify()).toMatchObject({ broken: 0 });
  });

  test('vectors can be stored during a rotation (R-MEAN-13)', async () => {
    const folder = tempFolder();
    await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
    const { store } = await withVectors(1000, () => [fileSource(folder)], folder);
    const rotating = store.upkeep?.rotate();
    for (let index = 0; index < 40; index += 1) {
      await facts(store).put(aDraft({ key: `area/${index * 25}`, value: `new ${index}` }));
      await embedAll(store);
    }
    await rotating;
    expect(await storedVectors(store)).toHaveLength(1000);
    expect(store.status()).toMatchObject({ quarantined: 0, rotation: { at: 'none' } });
    expect(await store.upkeep?.verify()).toMatchObject({ broken: 0 });
  });

  test('a backup contains them, and a restore keeps those of facts that were not forgotten since (R-MEAN-13)', async () => {
    const { folder, clock, store, vectors } = await withVectors(30);
    const backup = await store.upkeep?.backup();
    expect(backup?.broken).toBe(0);
    await clock.advance(1000);
    await store.forget('me', { kinds: ['fact'], key: 'area/7' });
    const left = await storedVectors(store);
    expect(left).toHaveLength(29);
    await facts(store).put(aDraft({ key: 'area/8', value: 'changed after the backup' }));
    await store[Symbol.asyncDispose]();
    await restoreBackup({ folder, backup: backup?.file ?? '', clock, sources: withKey() });
    await using again = await openFileStore(folder, clock);
    expect(await storedVectors(again)).toEqual(left);
    expect(vectors).toHaveLength(30);
    expect((await again.vectors.missing(me, 'model-1')).facts).toEqual([]);
  });

  test('a memory that an earlier version wrote has no vectors, and can be read before its migration', () => {
    const file = join(tempFolder(), 'old.db');
    writeFileSync(file, '');
    const db = new Sqlite(file);
    for (const migrate of migrations.slice(0, 2)) migrate(db);
    db.pragma('user_version = 2');
    addMissingTables(db);
    expect(db.prepare('SELECT count(*) FROM vector').pluck().get()).toBe(0);
    db.close();
    rmSync(file);
  });

  test('without the key, vectors cannot be read, and can be deleted (R-MEAN-11)', async () => {
    const { store } = await withVectors(10);
    store.lock();
    await expect(store.vectors.page(me, 'model-1')).rejects.toMatchObject({ code: 'key_unavailable' });
    await expect(store.vectors.missing(me, 'model-1')).rejects.toMatchObject({ code: 'key_unavailable' });
    await store.vectors.clear();
    await store.unlock();
    expect(await storedVectors(store)).toEqual([]);
  });
});
