import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { SealingKey } from '../../../src/core/crypto/cipher.ts';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import type { KeySources } from '../../../src/core/crypto/keys/key-source.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { manualClock } from '../../support/clock.ts';
import { A_KEY, aDraft, ANOTHER_KEY, forceRow, keyFrom, openFileStore } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const key = Buffer.from(A_KEY, 'hex');
const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');
const keyOf = (index: number): string => `facts/${index}`;

const rowsByKey = (folder: string): Map<string, number> => {
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  const sealed = 'SELECT sealed FROM entry UNION ALL SELECT sealed FROM author';
  const rows = db.prepare(`SELECT hex(substr(sealed, 2, 4)) AS id, count(*) AS rows FROM (${sealed}) GROUP BY 1`).all() as {
    id: string;
    rows: number;
  }[];
  db.close();
  return new Map(rows.map(({ id, rows: count }) => [id.toLowerCase(), count]));
};

const keyRecords = (folder: string): { id: string; role: string }[] => {
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  const records = db.prepare('SELECT lower(hex(id)) AS id, role FROM master_key ORDER BY role').all() as {
    id: string;
    role: string;
  }[];
  db.close();
  return records;
};

/** A memory with facts, versions and other kinds of entries, whose key is in a key file. */
async function underKeyFile(count: number): Promise<{ folder: string; sources: KeySources; store: MemoryStore }> {
  const folder = tempFolder();
  await fileSource(folder).save('current', key);
  const sources: KeySources = () => [fileSource(folder)];
  const store = await openFileStore(folder, manualClock(), sources);
  await Promise.all(
    Array.from({ length: count }, (_, index) => facts(store).put(aDraft({ key: keyOf(index), value: `value ${index}` }))),
  );
  await Promise.all(
    Array.from({ length: 50 }, (_, index) => facts(store).put(aDraft({ key: keyOf(index), value: `newer ${index}` }))),
  );
  await store.space({ subject: 'me', session: 's' }, 'pack').put(aDraft());
  await store.space({ subject: 'you' }, 'audit').put(aDraft());
  return { folder, sources, store };
}

describe('rotating the key (R-KEY-09)', () => {
  test('reseals every row, keeps every fact, and deletes the old key', async () => {
    const { folder, store, sources } = await underKeyFile(1000);
    const old = new SealingKey(key).id.toString('hex');
    expect([...rowsByKey(folder).keys()]).toEqual([old]);
    await store.upkeep?.rotate();

    const present = Buffer.from(readFileSync(join(folder, 'memory.key'), 'utf8').trim(), 'hex');
    expect(present.equals(key)).toBe(false);
    expect(await fileSource(folder).read('next')).toEqual({ at: 'absent' });
    const id = new SealingKey(present).id.toString('hex');
    expect(rowsByKey(folder)).toEqual(new Map([[id, 1055]]));
    expect(keyRecords(folder)).toEqual([{ id, role: 'current' }]);
    expect(store.status()).toMatchObject({ key: { at: 'ok' }, rotation: { at: 'none' }, quarantined: 0 });

    await store[Symbol.asyncDispose]();
    const again = await openFileStore(folder, manualClock(), sources);
    expect(await again.upkeep?.verify()).toEqual({ entries: 1052, broken: 0, structure: [] });
    expect(await facts(again).history(keyOf(7))).toMatchObject([{ value: 'value 7' }]);
    // The old key no longer opens the memory.
    await again[Symbol.asyncDispose]();
    await fileSource(folder).save('current', key);
    const wrong = await openFileStore(folder, manualClock(), sources);
    expect(wrong.status().key.at).toBe('mismatch');
  });

  test('allows reads, writes and forgets meanwhile, and reports its progress', async () => {
    const { store, folder } = await underKeyFile(3000);
    const seen = new Set<string>();
    const state = { done: false };
    const rotating = store.upkeep?.rotate().then(() => (state.done = true));
    for (let turn = 0; !state.done; turn += 1) {
      const { rotation } = store.status();
      seen.add(rotation.at);
      const at = (turn * 37) % 3000;
      const found = await facts(store).get(keyOf(at));
      // One fact in ten is forgotten below.
      if (at % 10 !== 1 && !found) throw new Error(`Fact ${at} could not be read during the rotation.`);
      if (at % 10 === 0) await facts(store).put(aDraft({ key: keyOf(at), value: `turn ${turn}` }));
      if (at % 10 === 1) await store.forget('me', { kinds: ['fact'], key: keyOf(at) });
      const history = await facts(store).history(keyOf(13));
      expect(history.map(({ value }) => value)).toEqual(['value 13']);
    }
    await rotating;
    expect(seen.has('running')).toBe(true);
    expect(rowsByKey(folder).size).toBe(1);
    expect((await store.upkeep?.verify())?.broken).toBe(0);
  });

  test('leaves facts that were read before it readable, changeable and forgettable', async () => {
    const { store } = await underKeyFile(100);
    const read = (at: number) => facts(store).get(keyOf(at));
    for (let at = 0; at < 100; at += 1) await read(at);
    await store.upkeep?.rotate();
    for (let at = 50; at < 100; at += 1) expect((await read(at))?.value).toBe(`value ${at}`);
    await facts(store).put(aDraft({ key: keyOf(60), value: 'changed' }));
    await store.forget('me', { kinds: ['fact'], key: keyOf(61) });
    expect([(await read(60))?.value, await read(61)]).toEqual(['changed', undefined]);
    expect(await facts(store).count()).toBe(99);
  });

  test('leaves one current entry for each key that is overwritten meanwhile', async () => {
    const { store, folder } = await underKeyFile(500);
    const rotating = store.upkeep?.rotate();
    await Promise.all(
      Array.from({ length: 500 }, (_, index) => facts(store).put(aDraft({ key: keyOf(index), value: `late ${index}` }))),
    );
    await rotating;
    expect(await facts(store).count()).toBe(500);
    for (let index = 0; index < 500; index += 1) {
      expect((await facts(store).get(keyOf(index)))?.value).toBe(`late ${index}`);
      expect((await facts(store).history(keyOf(index))).at(-1)?.value).toBe(`value ${index}`);
    }
    expect(rowsByKey(folder).size).toBe(1);
  });

  test('continues at the next start after an interruption', async () => {
    const { store, folder, sources } = await underKeyFile(2000);
    const rotating = store.upkeep?.rotate();
    while (store.status().rotation.at !== 'running' || rowsByKey(folder).size < 2) await new Promise(setImmediate);
    await Promise.all([
      expect(rotating).rejects.toMatchObject({
        code: 'cancelled',
        message: expect.stringMatching(/resumes at the next startup/) as string,
      }),
      store[Symbol.asyncDispose](),
    ]);
    expect(keyRecords(folder).map(({ role }) => role)).toEqual(['current', 'retiring']);
    expect(rowsByKey(folder).size).toBe(2);

    const again = await openFileStore(folder, manualClock(), sources);
    expect(await facts(again).get(keyOf(1999))).toBeDefined();
    while (again.status().rotation.at === 'running') await new Promise(setImmediate);
    expect(rowsByKey(folder).size).toBe(1);
    expect(keyRecords(folder)).toHaveLength(1);
    expect(await fileSource(folder).read('next')).toEqual({ at: 'absent' });
  });

  test('continues after an unlock if the memory was locked half-way', async () => {
    const { store, folder } = await underKeyFile(2000);
    const rotating = store.upkeep?.rotate();
    while (store.status().rotation.at !== 'running' || rowsByKey(folder).size < 2) await new Promise(setImmediate);
    store.lock();
    await expect(rotating).rejects.toMatchObject({ code: 'key_unavailable' });
    await store.unlock();
    while (store.status().rotation.at === 'running') await new Promise(setImmediate);
    expect(rowsByKey(folder).size).toBe(1);
    expect(await facts(store).get(keyOf(1999))).toBeDefined();
  });

  test('needs both keys after an interruption (R-KEY-04)', async () => {
    const { store, folder, sources } = await underKeyFile(2000);
    const rotating = store.upkeep?.rotate();
    while (store.status().rotation.at !== 'running' || rowsByKey(folder).size < 2) await new Promise(setImmediate);
    await Promise.all([expect(rotating).rejects.toThrow(/resumes at the next startup/), store[Symbol.asyncDispose]()]);
    rmSync(join(folder, 'memory.key.next'));
    const again = await openFileStore(folder, manualClock(), sources);
    expect(again.status().key.at).toBe('mismatch');
    expect(keyRecords(folder)).toHaveLength(2);
  });

  test('uses the next key that the owner provides in the environment', async () => {
    const folder = tempFolder();
    const store = await openFileStore(
      folder,
      manualClock(),
      keyFrom({ HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEMORY_KEY_NEXT: ANOTHER_KEY }),
    );
    await facts(store).put(aDraft());
    await store.upkeep?.rotate();
    await store[Symbol.asyncDispose]();
    const again = await openFileStore(folder, manualClock(), keyFrom({ HELMDECK_MEMORY_KEY: ANOTHER_KEY }));
    expect(await facts(again).get(aDraft().key)).toBeDefined();
  });

  test.each([
    { what: 'no next key is set', environment: { HELMDECK_MEMORY_KEY: A_KEY }, says: /HELMDECK_MEMORY_KEY_NEXT/ },
    {
      what: 'the next key is the current key',
      environment: { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEMORY_KEY_NEXT: A_KEY },
      says: /provide a different key/,
    },
  ])('is refused if $what, and nothing changes', async ({ environment, says }) => {
    const folder = tempFolder();
    const store = await openFileStore(folder, manualClock(), keyFrom(environment));
    await facts(store).put(aDraft());
    await expect(store.upkeep?.rotate()).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(says) as string,
    });
    expect(keyRecords(folder)).toHaveLength(1);
    expect(store.status().rotation).toEqual({ at: 'none' });
  });

  test('is refused during another rotation or a backup, and a backup is refused during a rotation', async () => {
    const { store } = await underKeyFile(500);
    const rotating = store.upkeep?.rotate();
    await expect(store.upkeep?.rotate()).rejects.toMatchObject({ code: 'unavailable' });
    await expect(store.upkeep?.backup()).rejects.toMatchObject({ code: 'unavailable' });
    await rotating;
    const backing = store.upkeep?.backup();
    await expect(store.upkeep?.rotate()).rejects.toMatchObject({ code: 'unavailable' });
    await backing;
  });

  test('continues past an edited row', async () => {
    const { store, folder } = await underKeyFile(100);
    const db = new Sqlite(join(folder, 'memory.db'));
    db.exec('UPDATE entry SET expires_at = expires_at + 1 WHERE rowid = 70');
    db.close();
    await store.upkeep?.rotate();
    expect(keyRecords(folder)).toHaveLength(1);
    expect(await store.upkeep?.verify()).toEqual({ entries: 151, broken: 1, structure: [] });
  });

  test('continues past a row with an invalid type, as a damaged page can have', async () => {
    const { store, folder, sources } = await underKeyFile(100);
    await store[Symbol.asyncDispose]();
    expect(forceRow(folder, 70, 'sealed = NULL')).toBe(1);
    const again = await openFileStore(folder, manualClock(), sources);
    await again.upkeep?.rotate();
    expect(keyRecords(folder)).toHaveLength(1);
    expect(await again.upkeep?.verify()).toMatchObject({ entries: 151, broken: 1 });
  });

  test('keeps the old key if a row is damaged meanwhile, until the owner rotates again without that row', async () => {
    const { store, folder } = await underKeyFile(3000);
    const rotating = store.upkeep?.rotate();
    const moved = (): number | undefined => {
      const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
      const old = new SealingKey(key).id;
      const row = db.prepare('SELECT rowid FROM entry WHERE substr(sealed, 2, 4) <> ? LIMIT 1').pluck().get(old) as
        | number
        | undefined;
      db.close();
      return row;
    };
    let row = moved();
    for (; row === undefined; row = moved()) await new Promise(setImmediate);
    const db = new Sqlite(join(folder, 'memory.db'));
    db.prepare('UPDATE entry SET expires_at = expires_at + 1 WHERE rowid = ?').run(row);
    db.close();
    await expect(rotating).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/cannot be decrypted with the new key: 1\..*old key is kept/) as string,
    });
    expect(keyRecords(folder)).toHaveLength(2);
    expect(readFileSync(join(folder, 'memory.key'), 'utf8').trim()).toBe(A_KEY);
    await store.upkeep?.rotate();
    expect(keyRecords(folder)).toHaveLength(1);
    expect(store.status().quarantined).toBe(1);
  });

  test('reseals the versions of an edited fact', async () => {
    const { store, folder } = await underKeyFile(100);
    const db = new Sqlite(join(folder, 'memory.db'));
    db.exec('UPDATE entry SET expires_at = expires_at + 1 WHERE rowid = 1');
    db.close();
    await store.upkeep?.rotate();
    expect(await store.upkeep?.verify()).toEqual({ entries: 151, broken: 1, structure: [] });
    expect([...rowsByKey(folder).values()].toSorted((one, other) => one - other)).toEqual([1, 154]);
  });

  test('that was interrupted between the database and the key source is completed at the next start', async () => {
    const { store, folder, sources } = await underKeyFile(100);
    await store.upkeep?.rotate();
    await store[Symbol.asyncDispose]();
    // The state if the program was killed before it moved the new key to the current slot.
    const present = await fileSource(folder).read('current');
    if (present.at !== 'found') throw new Error('The key is missing.');
    await fileSource(folder).save('next', present.key);
    await fileSource(folder).save('current', key);
    const again = await openStore({ folder, clock: manualClock(), sources });
    expect(again.status().key.at).toBe('ok');
    await again[Symbol.asyncDispose]();
    expect(await fileSource(folder).read('current')).toEqual(present);
    expect(await fileSource(folder).read('next')).toEqual({ at: 'absent' });
  });
});
