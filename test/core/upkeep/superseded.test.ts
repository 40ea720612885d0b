import { copyFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { fileSource } from '../../../src/core/crypto/keys/file-source.ts';
import type { KeySources } from '../../../src/core/crypto/keys/key-source.ts';
import type { ActivityNote, Entry, EntryDraft, MemoryStore, PutResult, Selection } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { DAY, HOUR, type ManualClock, manualClock, MINUTE, START } from '../../support/clock.ts';
import { A_KEY, aDraft, anAuthor, openFileStore } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');
const put = (store: MemoryStore, key: string, over: Partial<EntryDraft> = {}): Promise<PutResult> =>
  facts(store).put(aDraft({ key, value: `of ${key}`, ...over }));
const keys = async (store: MemoryStore): Promise<string[]> =>
  (await facts(store).page({ sort: 'oldest', limit: 100 })).entries.map(({ key }) => key);
const formerOf = ({ value, formerKeys = [] }: Entry): string[] => [value, ...formerKeys.map(({ key }) => key)];
const note: ActivityNote = aDraft({ key: 'note', category: 'activity', lifetime: 30 * DAY });
const vandal = { ...anAuthor, client: 'vandal' };
const unwanted = { client: 'vandal', since: START };
const forgetNew: Selection = { kinds: ['fact'], key: 'new' };

let folder: string;
let clock: ManualClock;
const sources: KeySources = () => [fileSource(folder)];
let store: MemoryStore;
let before: Entry | undefined;

const backUp = async (): Promise<string> => {
  const copy = join(tempFolder(), 'backup.db');
  copyFileSync((await store.upkeep!.backup()).file, copy);
  return copy;
};

/** Closes the memory, restores a backup, and opens it again. */
async function restored(backup: string): Promise<MemoryStore> {
  await store[Symbol.asyncDispose]();
  await restoreBackup({ folder, backup, clock, sources });
  store = await openFileStore(folder, clock, sources);
  expect(await store.upkeep!.verify()).toMatchObject({ broken: 0, structure: [] });
  return store;
}

/** A fact `old` with one earlier version, and `chain`, which superseded it. */
beforeEach(async () => {
  folder = tempFolder();
  clock = manualClock();
  await fileSource(folder).save('current', Buffer.from(A_KEY, 'hex'));
  store = await openFileStore(folder, clock, sources);
  await put(store, 'oldest', { value: 'a marker of the first text' });
  await clock.advance(MINUTE);
  await put(store, 'old', { supersedes: 'oldest', category: 'habits' });
  await put(store, 'old', { value: 'newer', category: 'habits' });
  before = await facts(store).get('old');
  await clock.advance(MINUTE);
});

const supersede = async (): Promise<void> => {
  await put(store, 'new', { supersedes: 'old', author: vandal });
  await clock.advance(MINUTE);
};

describe('a backup from before a fact was superseded (R-MEAN-33)', () => {
  test('has the fact again, because superseding is not forgetting', async () => {
    const backup = await backUp();
    await supersede();
    expect(await keys(await restored(backup))).toEqual(['old']);
    expect(await facts(store).get('old')).toEqual(before);
  });

  test.each([
    { by: 'its key', selection: forgetNew, keyless: false },
    { by: 'its category', selection: { kinds: ['fact'], category: 'preferences' } as const, keyless: false },
    { by: 'its category, without the key', selection: { kinds: ['fact'], category: 'preferences' } as const, keyless: true },
    { by: 'all facts, without the key', selection: { kinds: ['fact'] } as const, keyless: true },
  ])('does not bring it back if the new fact was forgotten by $by', async ({ selection, keyless }) => {
    const backup = await backUp();
    await supersede();
    if (keyless) store.lock();
    expect(await store.forget('me', selection)).toMatchObject({ deleted: 3 });
    await restored(backup);
    expect(await keys(store)).toEqual([]);
    await put(store, 'old');
    expect(await facts(store).history('old')).toEqual([]);
  });

  test('keeps a fact that was stored under the old key after it was superseded', async () => {
    await supersede();
    const { entry } = await put(store, 'old', { value: 'of another matter' });
    const backup = await backUp();
    await clock.advance(MINUTE);
    await store.forget('me', forgetNew);
    expect(await keys(await restored(backup))).toEqual(['old']);
    expect(await facts(store).get('old')).toEqual(entry);
  });

  test('has it again after the forget of the new fact was undone (R-FORGET-16)', async () => {
    const backup = await backUp();
    await supersede();
    const held = await facts(store).withHistory('new');
    await store.forget('me', forgetNew);
    expect(await facts(store).restoreForgotten(held!, note)).toBe(true);
    expect(await keys(await restored(backup))).toEqual(['old']);
  });
});

describe('a backup from the time when a fact was superseded (R-MEAN-33)', () => {
  let backup: string;
  beforeEach(async () => {
    await supersede();
    backup = await backUp();
    await clock.advance(MINUTE);
  });

  test('has the new fact with its history, which can still be undone', async () => {
    await restored(backup);
    expect(await keys(store)).toEqual(['new']);
    expect((await facts(store).history('new')).map(formerOf)).toEqual([
      ['newer', 'old'],
      ['of old', 'old'],
      ['a marker of the first text', 'old', 'oldest'],
    ]);
    expect(await facts(store).revert('new', unwanted, note)).toEqual({ what: 'removed', returned: ['old'] });
    expect(await facts(store).get('old')).toEqual(before);
  });

  test('has the old fact and not the new one if that was undone', async () => {
    const history = async () => (await facts(store).history('old')).map(formerOf);
    await facts(store).revert('new', unwanted, note);
    const earlier = await history();
    await restored(backup);
    expect(await keys(store)).toEqual(['old']);
    expect(await facts(store).get('old')).toEqual(before);
    expect(await history()).toEqual(earlier);
    expect(earlier).toEqual([['of old'], ['a marker of the first text', 'oldest']]);
  });

  test('has neither of them if the undone fact was forgotten too', async () => {
    await facts(store).revert('new', unwanted, note);
    await clock.advance(MINUTE);
    await store.forget('me', { kinds: ['fact'], key: 'old' });
    expect(await keys(await restored(backup))).toEqual([]);
    expect(await store.usage('me')).toMatchObject({ used: { facts: 0, bytes: 0 } });
  });

  test('has neither of them if the new fact was forgotten', async () => {
    await store.forget('me', forgetNew);
    expect(await keys(await restored(backup))).toEqual([]);
    expect(await store.usage('me')).toMatchObject({ used: { facts: 0, bytes: 0 } });
  });

  test('has the new fact if it was forgotten before, and stored again', async () => {
    // The tombstone is older than the write that superseded the fact, so it does not cover its versions.
    await store.forget('me', forgetNew);
    await clock.advance(MINUTE);
    await put(store, 'old', { value: 'again' });
    await clock.advance(MINUTE);
    await put(store, 'new', { supersedes: 'old' });
    expect(await keys(await restored(await backUp()))).toEqual(['new']);
    expect((await facts(store).history('new')).map(formerOf)).toEqual([['again', 'old']]);
  });
});

describe('a superseded fact', () => {
  test('can be given back after the key was rotated (R-KEY-09)', async () => {
    await supersede();
    await store.upkeep!.rotate();
    expect(await store.upkeep!.verify()).toMatchObject({ broken: 0, structure: [] });
    expect((await facts(store).history('new')).map(formerOf)[0]).toEqual(['newer', 'old']);
    await facts(store).revert('new', unwanted, note);
    expect(await facts(store).get('old')).toEqual(before);
  });

  test('can be superseded and given back while the key is rotated (R-KEY-09)', async () => {
    for (let index = 0; index < 500; index += 1) await put(store, `filler ${index}`);
    const rotating = store.upkeep!.rotate();
    let turns = 0;
    while (store.status().rotation.at === 'running' || turns === 0) {
      await put(store, 'new', { supersedes: 'old', author: vandal });
      expect((await facts(store).history('new')).map(formerOf)).toHaveLength(3);
      expect(await facts(store).revert('new', unwanted, note)).toEqual({ what: 'removed', returned: ['old'] });
      expect(await facts(store).get('old')).toEqual(before);
      turns += 1;
    }
    await rotating;
    expect(await store.upkeep!.verify()).toMatchObject({ broken: 0, structure: [] });
    expect((await facts(store).history('old')).map(formerOf)).toHaveLength(2);
  });

  test('can be given back after a restart, and after a correction of the clock (R-TIME-07)', async () => {
    clock.jump(20 * DAY);
    await put(store, 'new', { value: 'kept', supersedes: 'old' });
    clock.jump(-20 * DAY);
    store.now();
    await clock.advance(2 * HOUR);
    await store[Symbol.asyncDispose]();
    store = await openFileStore(folder, clock, sources);
    await clock.advance(2 * HOUR);
    const fact = await facts(store).get('new');
    expect(fact!.updatedAt).toBeLessThanOrEqual(clock.now());
    const [version] = await facts(store).history('new');
    expect(version?.formerKeys?.[0]).toMatchObject({ key: 'old', until: fact!.updatedAt });
    await put(store, 'new', { value: 'changed', author: vandal });
    // The undo of a later write keeps the superseded fact where it is.
    expect(await facts(store).revert('new', unwanted, note)).toEqual({ what: 'restored', returned: [] });
    expect(await facts(store).get('new')).toMatchObject({ value: 'kept' });
    const own = { client: anAuthor.client, since: fact!.updatedAt };
    expect(await facts(store).revert('new', own, note)).toEqual({ what: 'removed', returned: ['old'] });
    expect(await facts(store).get('old')).toEqual(before);
  });

  test('leaves no copy of its row where it was, and none at all when it is forgotten (R-PURGE-01, R-PURGE-03)', async () => {
    const sealed = (): Buffer[] => {
      const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
      const rows = db.prepare('SELECT sealed FROM entry WHERE kind IN (1, 2)').pluck().all() as Buffer[];
      db.close();
      return rows;
    };
    const isOnDisk = (bytes: Buffer): boolean =>
      readdirSync(folder, { withFileTypes: true })
        .filter((file) => file.isFile())
        .some(({ name }) => readFileSync(join(folder, name)).includes(bytes.subarray(-40)));
    const first = sealed();
    expect(first).toHaveLength(3);
    await supersede();
    await clock.advance(2000);
    expect(first.filter(isOnDisk)).toEqual([]);
    const second = sealed();
    expect(second.filter(isOnDisk)).toHaveLength(4);
    expect(await store.forget('me', forgetNew)).toMatchObject({ deleted: 3, purged: true });
    expect(second.filter(isOnDisk)).toEqual([]);
  });
});
