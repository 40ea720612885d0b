import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { KeyKeeper } from '../../../src/core/crypto/key-keeper.ts';
import { DiskReserve } from '../../../src/core/file/disk-space.ts';
import { Connection } from '../../../src/core/store/connection.ts';
import { openDatabase } from '../../../src/core/store/database.ts';
import { SqliteStore } from '../../../src/core/store/sqlite-store.ts';
import type { MemoryStore, ActivityNote, Selection } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { type ManualClock, manualClock, SECOND } from '../../support/clock.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';
import { aDraft, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** Enough facts for dozens of slices. */
const FACTS = 300;
const VALUE = 'v'.repeat(16 * 1024);

const everyFact: Selection = { kinds: ['fact'] };
const tagged: Selection = { kinds: ['fact'], matches: ({ tags }) => tags.includes('frontend') };

const facts = (store: MemoryStore, subject = 'me') => store.space({ subject }, 'fact');
const aNote: ActivityNote = aDraft({ key: 'note', value: 'forget', category: 'forget' });

interface Scene {
  readonly folder: string;
  readonly clock: ManualClock;
  readonly store: MemoryStore;
}

async function scene(): Promise<Scene> {
  const [folder, clock] = [tempFolder(), manualClock()];
  const store = await openFileStore(folder, clock);
  await fill(store);
  return { folder, clock, store };
}

const fill = (store: MemoryStore): Promise<unknown> =>
  Promise.all(Array.from({ length: FACTS }, (_, index) => facts(store).put(aDraft({ key: `k/${index}`, value: VALUE }))));

async function keysOf(store: MemoryStore, subject = 'me'): Promise<string[]> {
  const keys: string[] = [];
  for (let after = {}; ;) {
    const { entries, next } = await facts(store, subject).page({ sort: 'oldest', limit: 200, ...after });
    keys.push(...entries.map(({ key }) => key));
    if (!next) return keys;
    after = { after: next };
  }
}

/** A `yieldTurn` that acts after the given slice. */
function at(slice: number, act: () => unknown): () => Promise<void> {
  let slices = 0;
  return async () => {
    slices += 1;
    if (slices === slice) await act();
    await nextTurn();
  };
}

describe('while a large forget is under way', () => {
  test('its dry run waits for its turn between slices, behind all other subjects (R-FORGET-18, R-HTTP-14)', async () => {
    const memory = await openTestMemory();
    await fill(memory.store);
    const until = { done: false };
    // Without turns, a slice would run in every turn of the event loop, which serves at most eight of these subjects.
    const others = Array.from({ length: 40 }, async (_, index) => {
      const other = memory.as(aCaller({ subject: `other-${index}` }));
      let answered = 0;
      for (; !until.done; answered += 1) {
        await other('myMemory', {});
        await nextTurn();
      }
      return answered;
    });
    await memory.as(aCaller())('forget', { scope: 'facts', dry_run: true });
    until.done = true;
    // A slice reads at most 64 KiB, which is four facts.
    expect(Math.min(...(await Promise.all(others)))).toBeGreaterThan(FACTS / 4 / 2);
  });

  test.each(['facts', 'category:preferences', 'tag:frontend', 'prefix:k/', 'client:claude-code', 'all'])(
    'another subject is served many times, also during a dry run: %s (R-FORGET-18)',
    async (scope) => {
      const memory = await openTestMemory();
      await fill(memory.store);
      const me = memory.as(aCaller());
      const other = memory.as(aCaller({ subject: 'other' }));
      await other('remember', { key: 'k', value: 'v' });
      for (const dry of [true, false]) {
        let answered = 0;
        const until = { done: false };
        const forgetting = me('forget', { scope, dry_run: dry }).finally(() => (until.done = true));
        while (!until.done) {
          await nextTurn();
          await other('recall', { key: 'k' });
          answered += 1;
        }
        expect(await forgetting).toMatchObject({ deleted: FACTS, purged: !dry });
        expect(answered).toBeGreaterThan(10);
      }
    },
  );

  test('all earlier facts are deleted, and rewritten ones lose their earlier versions (R-FORGET-18)', async () => {
    const { store } = await scene();
    let written = 0;
    const between = async (): Promise<void> => {
      for (const index of [written, FACTS - 1 - written]) {
        await facts(store).put(aDraft({ key: `k/${index}`, value: 'written meanwhile' }));
      }
      await facts(store).put(aDraft({ key: `new/${written}`, value: 'written meanwhile' }));
      written += 1;
    };
    expect((await store.forget('me', everyFact, undefined, between)).deleted).toBeGreaterThanOrEqual(FACTS);
    expect(written).toBeGreaterThan(20);
    for (const key of await keysOf(store)) {
      expect(await facts(store).get(key)).toMatchObject({ value: 'written meanwhile' });
      for (const version of await facts(store).history(key)) expect(version.value).toBe('written meanwhile');
    }
  });

  test('a reused row number does not delete the fact of another subject', async () => {
    const { store } = await scene();
    const theirs = Array.from({ length: 20 }, (_, index) => `theirs/${index}`);
    const exchange = async (): Promise<void> => {
      for (let index = FACTS - 20; index < FACTS; index += 1) await store.forget('me', { kinds: ['fact'], key: `k/${index}` });
      for (const key of theirs) await facts(store, 'you').put(aDraft({ key }));
    };
    expect(await store.forget('me', everyFact, undefined, at(3, exchange))).toMatchObject({ deleted: FACTS - 20 });
    expect(await keysOf(store, 'you')).toEqual(theirs);
  });

  test('a fact written and deleted meanwhile does not return with a backup made meanwhile (R-FORGET-15)', async () => {
    const { folder, clock, store } = await scene();
    let backup = '';
    const rewrite = async (): Promise<void> => {
      await clock.advance(SECOND);
      await facts(store).put(aDraft({ key: `k/${FACTS - 1}`, value: 'rewritten' }));
      backup = (await store.upkeep!.backup()).file;
    };
    await store.forget('me', everyFact, undefined, at(3, rewrite));
    expect(await keysOf(store)).toEqual([]);
    await clock.advance(SECOND);
    await store[Symbol.asyncDispose]();
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    expect(await keysOf(await openFileStore(folder, clock))).toEqual([]);
  });

  test('a lock stops a forget that needs the key, and the next call deletes the rest', async () => {
    const { store } = await scene();
    const lock = (): void => store.lock();
    await expect(store.forget('me', tagged, aNote, at(3, lock))).rejects.toMatchObject({ code: 'key_unavailable' });
    await store.unlock();
    const left = await facts(store).count();
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(FACTS);
    expect(await store.forget('me', tagged, aNote)).toMatchObject({ deleted: left, purged: true });
    // Both calls are recorded.
    expect(await store.space({ subject: 'me' }, 'activity').count()).toBe(2);
  });

  test.each([
    { what: 'a kind', selection: everyFact },
    { what: 'a category', selection: { kinds: ['fact'], category: 'preferences' } as const },
  ])('a lock does not stop a forget that needs no key: $what (R-FORGET-11)', async ({ selection }) => {
    const { store } = await scene();
    expect(
      await store.forget(
        'me',
        selection,
        undefined,
        at(3, () => store.lock()),
      ),
    ).toMatchObject({ deleted: FACTS, purged: true });
    await store.unlock();
    expect(await keysOf(store)).toEqual([]);
  });

  test('a second forget shares the work, and each entry is counted once (R-FORGET-10)', async () => {
    const { store } = await scene();
    const both = await Promise.all([store.forget('me', everyFact, aNote), store.forget('me', tagged, aNote)]);
    expect(both.map(({ deleted }) => deleted).reduce((sum, deleted) => sum + deleted)).toBe(FACTS);
    expect(Math.min(...both.map(({ deleted }) => deleted))).toBeGreaterThan(0);
    expect(await keysOf(store)).toEqual([]);
    expect(await store.space({ subject: 'me' }, 'activity').count()).toBe(2);
  });

  test.each([
    { what: 'a kind', selection: everyFact },
    { what: 'what matches', selection: tagged },
  ])(
    'after a kill the deleted part stays deleted, and the next call deletes the rest: $what (R-FORGET-15)',
    async ({ selection }) => {
      const { folder, clock, store } = await scene();
      const { file: backup } = await store.upkeep!.backup();
      const killed = tempFolder();
      const kill = (): void => {
        // The files as a power cut leaves them.
        for (const name of ['memory.db', 'memory.db-wal'])
          if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(killed, name));
      };
      await clock.advance(SECOND);
      await store.forget('me', selection, undefined, at(5, kill));
      const again = await openFileStore(killed, clock);
      const left = await keysOf(again);
      expect(left.length).toBeGreaterThan(0);
      expect(left.length).toBeLessThan(FACTS);
      await again[Symbol.asyncDispose]();
      await restoreBackup({ folder: killed, backup, clock, sources: withKey() });
      const restored = await openFileStore(killed, clock);
      const back = await keysOf(restored);
      expect(back.filter((key) => !left.includes(key))).toEqual([]);
      expect(await restored.forget('me', selection)).toMatchObject({ deleted: back.length, purged: true });
      expect(await keysOf(restored)).toEqual([]);
    },
  );

  test.each([
    { what: 'stays when it no longer matches', tags: ['keep'], stays: true },
    { what: 'is deleted when it still matches', tags: ['gone'], stays: false },
  ])('a fact that is rewritten while its versions are being deleted $what (R-FORGET-18)', async ({ tags, stays }) => {
    const store = await openFileStore(tempFolder(), manualClock());
    const long = (index: number): string => `${index}`.repeat(60 * 1024);
    for (let index = 0; index < 8; index += 1) await facts(store).put(aDraft({ key: 'k', value: long(index), tags: ['gone'] }));
    const gone: Selection = { kinds: ['fact'], matches: (entry) => entry.tags.includes('gone') };
    const rewrite = (): unknown => facts(store).put(aDraft({ key: 'k', value: 'new', tags }));
    const result = await store.forget('me', gone, undefined, at(1, rewrite));
    expect(result).toMatchObject({ deleted: stays ? 0 : 1, purged: true });
    expect((await facts(store).get('k'))?.value).toBe(stays ? 'new' : undefined);
    expect(await facts(store).history('k')).toEqual([]);
  });
});

/** A connection whose commits find no space, except with the reserve released. */
class FullDisk extends Connection {
  isFull = false;
  #inReserve = false;

  override commit(): void {
    if (this.isFull && !this.#inReserve) throw Object.assign(new Error('full'), { code: 'SQLITE_FULL' });
    super.commit();
  }

  override withoutPreallocation<T>(step: () => T): T {
    this.#inReserve = true;
    try {
      return super.withoutPreallocation(step);
    } finally {
      this.#inReserve = false;
    }
  }
}

test('forgetting everything on a full disk leaves its row, and so does another action (R-FORGET-04, R-VIEW-07, R-DUR-03)', async () => {
  const [folder, clock] = [tempFolder(), manualClock()];
  const file = join(folder, 'memory.db');
  const connection = new FullDisk(file, openDatabase(file));
  const keys = new KeyKeeper(connection, clock, withKey()('test'));
  await keys.unlock();
  await using store = new SqliteStore({ connection, keys, clock, folder, reserve: new DiskReserve(folder) });
  await fill(store);
  connection.isFull = true;
  await expect(facts(store).put(aDraft())).rejects.toMatchObject({ code: 'disk_full' });
  const all: Selection = { kinds: ['activity', 'fact', 'history'] };
  expect(await store.forget('me', all, aNote)).toMatchObject({ deleted: FACTS });
  await store.recordActivity('me', aDraft({ key: 'other', value: 'action' }));
  const { entries } = await store.space({ subject: 'me' }, 'activity').page({ sort: 'updated', limit: 5 });
  expect(entries.map(({ value }) => value)).toEqual(['action', 'forget']);
});
