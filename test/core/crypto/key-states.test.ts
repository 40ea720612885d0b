import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { KeySource, KeySources } from '../../../src/core/crypto/keys/key-source.ts';
import { keychainSource } from '../../../src/core/crypto/keys/keychain.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { manualClock, MINUTE, SECOND } from '../../support/clock.ts';
import { fakeKeychain } from '../../support/keychain.ts';
import { A_KEY, aDraft, anAuthor, ANOTHER_KEY, manualKeySource, keyFrom, openFileStore, withKey } from '../../support/store.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';

const key = Buffer.from(A_KEY, 'hex');
const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');
const fingerprint = (folder: string): string =>
  createHash('sha256')
    .update(readFileSync(join(folder, 'memory.db')))
    .digest('hex');

/** A memory that holds one fact, closed. */
async function sealedMemory(sources: KeySources = withKey()): Promise<string> {
  const folder = tempFolder();
  await using store = await openStore({ folder, clock: manualClock(), sources });
  await facts(store).put(aDraft());
  return folder;
}

describe('the first start of a memory', () => {
  test('without a key stores everything in RAM, and the status names the remedy (R-KEY-03, R-KEY-05)', async () => {
    const folder = tempFolder();
    const store = await openFileStore(folder, manualClock(), keyFrom({}));
    await facts(store).put(aDraft());
    expect(store.status()).toMatchObject({
      kept: 'memory',
      key: { at: 'ephemeral', remedy: expect.stringMatching(/key init --file.*HELMDECK_MEMORY_KEY/) as string },
    });
    expect(filesBelow(folder).map(({ path }) => path.slice(folder.length + 1))).not.toContain('memory.db');
    expect(store.upkeep).toBeUndefined();
    expect(() => store.lock()).toThrow(/no key/);
  });

  test('creates a key in a source that allows it, and the next start reads that key (R-KEY-01, R-KEY-11)', async () => {
    const folder = tempFolder();
    let kept: Buffer | undefined;
    const sources: KeySources = () => [
      {
        name: 'the OS keychain',
        createsOnFirstStart: true,
        read: (slot) => Promise.resolve(kept && slot === 'current' ? { at: 'found', key: Buffer.from(kept) } : { at: 'absent' }),
        save: (_slot, made) => {
          kept = Buffer.from(made);
          return Promise.resolve();
        },
      },
    ];
    {
      await using first = await openStore({ folder, clock: manualClock(), sources });
      await facts(first).put(aDraft());
      expect(first.status().key).toEqual({ at: 'ok', source: 'the OS keychain' });
    }
    expect(kept).toHaveLength(32);
    const second = await openFileStore(folder, manualClock(), sources);
    expect(await facts(second).get(aDraft().key)).toBeDefined();
  });

  test('fails if the keychain does not return the key it was given: nothing is sealed, and no other key is used (R-KEY-11)', async () => {
    const folder = tempFolder();
    const sources: KeySources = (memory) => [
      keychainSource(memory, { creates: true, load: async () => fakeKeychain({ forgets: true }) }),
    ];
    await expect(openStore({ folder, clock: manualClock(), sources })).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('with a locked key source waits for its key instead of using RAM (R-KEY-06, R-KEY-08)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const source = manualKeySource({ at: 'locked', why: 'no user is logged in' });
    const store = await openFileStore(folder, clock, () => [source]);
    const announced: string[] = [];
    store.onKeyChange(() => announced.push(store.status().key.at));
    expect(store.status()).toMatchObject({ kept: 'file', key: { at: 'locked' } });
    await expect(facts(store).put(aDraft())).rejects.toMatchObject({ code: 'key_unavailable' });
    source.set({ at: 'found', key });
    await clock.advance(MINUTE);
    await facts(store).put(aDraft());
    expect(store.status().key).toEqual({ at: 'ok', source: source.name });
    // The write itself unlocked the memory.
    expect(announced).toEqual(['ok']);
  });

  test('with a malformed key fails and names the setting (R-KEY-02)', async () => {
    const folder = tempFolder();
    const start = openStore({ folder, clock: manualClock(), sources: keyFrom({ HELMDECK_MEMORY_KEY: 'abc' }) });
    await expect(start).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(/^HELMDECK_MEMORY_KEY must/) as string,
    });
    // The failed start has released the folder.
    await openFileStore(folder, manualClock());
  });
});

describe('a memory without its key', () => {
  const states = [
    { state: 'locked', reading: { at: 'locked', why: 'no user is logged in' }, remedy: /Unlock/ },
    { state: 'unavailable', reading: { at: 'unavailable', why: 'no bus' }, remedy: /HELMDECK_MEMORY_KEY/ },
    { state: 'absent', reading: { at: 'absent' }, remedy: /key recovery/ },
    { state: 'mismatch', reading: { at: 'found', key: Buffer.from(ANOTHER_KEY, 'hex') }, remedy: /key recovery/ },
  ] as const;

  test.each(states)(
    '$state: reads, writes and key operations are refused, and the file is unchanged (R-KEY-04, R-KEY-05, R-KEY-07)',
    async ({ state, reading, remedy }) => {
      const source = manualKeySource({ at: 'found', key });
      const folder = await sealedMemory(() => [source]);
      const before = fingerprint(folder);
      source.set(reading);
      {
        await using store = await openStore({ folder, clock: manualClock(), sources: () => [source] });
        expect(store.status().key).toMatchObject({ at: state, remedy: expect.stringMatching(remedy) as string });
        const refused = {
          code: 'key_unavailable',
          message: expect.stringMatching(new RegExp(`${state}.*${remedy.source}`)) as string,
        };
        await expect(facts(store).get(aDraft().key)).rejects.toMatchObject(refused);
        await expect(facts(store).put(aDraft())).rejects.toMatchObject(refused);
        await expect(facts(store).change(aDraft().key, { lifetime: MINUTE, author: anAuthor })).rejects.toMatchObject(refused);
        await expect(facts(store).page({ sort: 'updated', limit: 1 })).rejects.toMatchObject(refused);
        await expect(facts(store).history(aDraft().key)).rejects.toMatchObject(refused);
        await expect(store.forget('me', { kinds: ['fact'], key: aDraft().key })).rejects.toMatchObject(refused);
        await expect(store.upkeep?.rotate()).rejects.toMatchObject(refused);
        await expect(store.upkeep?.makeRecoveryKey()).rejects.toMatchObject(refused);
        // Unencrypted columns can still be read.
        expect(await facts(store).count()).toBe(1);
        expect(await store.namespaces()).toEqual([{ namespace: { subject: 'me' }, count: 1 }]);
      }
      expect(fingerprint(folder)).toBe(before);
    },
  );

  test.each(states)('$state: whole kinds and categories can still be forgotten (R-FORGET-11)', async ({ reading }) => {
    const source = manualKeySource({ at: 'found', key });
    const folder = await sealedMemory(() => [source]);
    source.set(reading);
    const store = await openFileStore(folder, manualClock(), () => [source]);
    expect(await store.forget('me', { kinds: ['fact'], category: 'nothing' })).toMatchObject({ deleted: 0, purged: true });
    expect(await store.forget('me', { kinds: ['fact'], category: 'preferences' })).toMatchObject({ deleted: 1, purged: true });
    expect(await store.forget('me', { kinds: ['fact', 'history', 'activity'] })).toMatchObject({ deleted: 0, purged: true });
    expect(await facts(store).count()).toBe(0);
  });

  test.each(states)(
    '$state: the memory works again once the key is back, without a request and after an unlock (R-KEY-08)',
    async ({ reading }) => {
      const source = manualKeySource({ at: 'found', key });
      const folder = await sealedMemory(() => [source]);
      source.set(reading);
      const clock = manualClock();
      const store = await openFileStore(folder, clock, () => [source]);
      source.set({ at: 'found', key });
      await clock.advance(2 * SECOND);
      expect(await facts(store).get(aDraft().key)).toBeDefined();
      store.lock();
      expect(await store.unlock()).toEqual({ at: 'ok', source: source.name });
      expect(await facts(store).get(aDraft().key)).toBeDefined();
    },
  );

  test('a source that may create keys creates none for a memory that already has one (R-KEY-04)', async () => {
    const folder = await sealedMemory();
    let made = 0;
    const store = await openFileStore(folder, manualClock(), () => [
      {
        name: 'p',
        createsOnFirstStart: true,
        read: () => Promise.resolve({ at: 'absent' }),
        save: () => Promise.resolve(void (made += 1)),
      },
    ]);
    expect(store.status().key.at).toBe('absent');
    expect(await store.unlock()).toMatchObject({ at: 'absent' });
    expect(made).toBe(0);
  });

  test('the key source is not read for every request (R-KEY-06)', async () => {
    const source = manualKeySource({ at: 'found', key });
    const folder = await sealedMemory(() => [source]);
    source.set({ at: 'locked', why: 'still' });
    const clock = manualClock();
    const store = await openFileStore(folder, clock, () => [source]);
    const { asked } = source;
    for (let attempt = 0; attempt < 20; attempt += 1)
      await expect(facts(store).get('a')).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(source.asked - asked).toBe(0);
    await clock.advance(2 * SECOND);
    for (let attempt = 0; attempt < 20; attempt += 1)
      await expect(facts(store).get('a')).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(source.asked - asked).toBeLessThanOrEqual(2);
  });
});

describe('the first key of a memory', () => {
  test('is not used unless the database can record it', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const source = manualKeySource({ at: 'locked', why: 'not yet' });
    const store = await openFileStore(folder, clock, () => [source]);
    source.set({ at: 'found', key });
    const other = new Sqlite(join(folder, 'memory.db'));
    other.exec('BEGIN IMMEDIATE');
    await expect(store.unlock()).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/Another program/) as string,
    });
    expect(store.status().key.at).not.toBe('ok');
    other.exec('ROLLBACK');
    other.close();
    expect((await store.unlock()).at).toBe('ok');
    await facts(store).put(aDraft());
    await store[Symbol.asyncDispose]();
    // The recorded key makes the database refuse any other key.
    const wrong = await openFileStore(folder, clock, withKey(ANOTHER_KEY));
    expect(wrong.status().key.at).toBe('mismatch');
  });
});

describe('the order of key sources (R-KEY-01)', () => {
  test('the second source is used if the first has no key', async () => {
    const first = manualKeySource({ at: 'absent' });
    const second = manualKeySource({ at: 'found', key });
    const folder = await sealedMemory(() => [first, second]);
    const store = await openFileStore(folder, manualClock(), () => [first, second]);
    expect(store.status().key.at).toBe('ok');
  });

  test('the second source is used while the first is unavailable', async () => {
    const second = manualKeySource({ at: 'found', key });
    const folder = await sealedMemory(() => [second]);
    const store = await openFileStore(folder, manualClock(), () => [
      manualKeySource({ at: 'unavailable', why: 'no bus' }),
      second,
    ]);
    expect(store.status().key.at).toBe('ok');
  });

  test('the key that sealed the memory is used, even if another key is found first', async () => {
    const folder = await sealedMemory();
    const other = manualKeySource({ at: 'found', key: Buffer.from(ANOTHER_KEY, 'hex') });
    const store = await openFileStore(folder, manualClock(), () => [other, manualKeySource({ at: 'found', key })]);
    expect(await facts(store).get(aDraft().key)).toBeDefined();
  });
});

describe('locking (R-KEY-05)', () => {
  test('refuses reads and writes until the owner unlocks, however much time passes', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    await facts(store).put(aDraft());
    store.lock();
    const refused = { code: 'key_unavailable', message: expect.stringMatching(/the owner locked it/) as string };
    await expect(facts(store).get(aDraft().key)).rejects.toMatchObject(refused);
    await clock.advance(MINUTE);
    await expect(facts(store).put(aDraft())).rejects.toMatchObject(refused);
    expect(store.status().key.at).toBe('locked');
    expect((await store.unlock()).at).toBe('ok');
    expect(await facts(store).get(aDraft().key)).toBeDefined();
  });

  test('refuses a queued write, and stores nothing of it', async () => {
    const store = await openFileStore(tempFolder(), manualClock());
    const waiting = facts(store).put(aDraft());
    store.lock();
    await expect(waiting).rejects.toMatchObject({ code: 'key_unavailable' });
    await store.unlock();
    expect(await facts(store).count()).toBe(0);
  });

  test('takes precedence over an unlock that is still reading the key source', async () => {
    const source = manualKeySource({ at: 'found', key });
    let answer: (() => void) | undefined;
    const slow: KeySource = {
      ...source,
      read: async (slot) => {
        if (answer) await new Promise<void>((resolve) => (answer = resolve));
        return source.read(slot);
      },
    };
    const store = await openFileStore(tempFolder(), manualClock(), () => [slow]);
    await facts(store).put(aDraft());
    store.lock();
    answer = () => undefined;
    const asking = store.unlock();
    await new Promise(setImmediate);
    store.lock();
    // This second unlock reads the source again, because the pending read began before the lock.
    const again = store.unlock();
    answer();
    expect((await asking).at).toBe('locked');
    await expect(facts(store).get(aDraft().key)).rejects.toMatchObject({ code: 'key_unavailable' });
    const answering = setInterval(() => answer?.(), 1);
    expect((await again).at).toBe('ok');
    clearInterval(answering);
    expect(await facts(store).get(aDraft().key)).toBeDefined();
  });

  test('is not undone by a rotation that was waiting for the key source', async () => {
    const kept = new Map<string, Buffer>([['current', key]]);
    const waiting: (() => void)[] = [];
    const source: KeySource = {
      name: 'a slow source',
      createsOnFirstStart: false,
      read: (slot) => {
        const found = kept.get(slot);
        return Promise.resolve(found ? { at: 'found', key: Buffer.from(found) } : { at: 'absent' });
      },
      save: async (slot, made) => {
        await new Promise<void>((resolve) => waiting.push(resolve));
        kept.set(slot, Buffer.from(made));
      },
    };
    const store = await openFileStore(tempFolder(), manualClock(), () => [source]);
    await facts(store).put(aDraft());
    const rotating = store.upkeep?.rotate();
    while (waiting.length === 0) await new Promise(setImmediate);
    store.lock();
    waiting.pop()?.();
    await expect(rotating).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(store.status().key.at).toBe('locked');
    await store.unlock();
    expect(await facts(store).get(aDraft().key)).toBeDefined();
  });

  test('a closed memory cannot be unlocked', async () => {
    const store = await openFileStore(tempFolder(), manualClock());
    await store[Symbol.asyncDispose]();
    await expect(store.unlock()).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  test('does not stop entries from expiring (R-PURGE-02)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    await facts(store).put(aDraft({ lifetime: MINUTE }));
    store.lock();
    await clock.advance(MINUTE);
    expect(await store.sweep(10)).toEqual({ removed: 0 });
    expect(await facts(store).count()).toBe(0);
  });
});
