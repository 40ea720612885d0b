import { randomBytes } from 'node:crypto';
import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { ForgetInput } from '../../../src/contract/forget.ts';
import { HISTORY_VERSIONS, QUOTA, RECORD_ROWS } from '../../../src/contract/limits.ts';
import { selectionOf } from '../../../src/core/store/scope.ts';
import type { Kind, MemoryStore } from '../../../src/core/store/store.ts';
import { DAY, type ManualClock, manualClock, HOUR, SECOND } from '../../support/clock.ts';
import { aDraft, anAuthor, openFileStore } from '../../support/store.ts';
import { diskFolder, filesBelow } from '../../support/temp-folder.ts';
import { embedAll, storedVectors } from './vectors.contract.ts';

const marker = (): string => `mark${randomBytes(12).toString('hex')}`;

/** Counts the byte strings found in the files below a folder. Reads each file once. */
function standing(folder: string, wanted: readonly (string | Buffer)[], but: RegExp = /(?!)/): number {
  const tails = new Map<number, Buffer[]>();
  for (const bytes of wanted.map((one) => Buffer.from(one))) {
    const tail = bytes.readInt32BE(bytes.length - 4);
    tails.set(tail, [...(tails.get(tail) ?? []), bytes]);
  }
  const found = new Set<Buffer>();
  for (const { bytes } of filesBelow(folder).filter(({ path }) => !but.test(path))) {
    let tail = 0;
    for (let end = 1; end <= bytes.length; end += 1) {
      tail = (tail << 8) | bytes[end - 1]!;
      for (const one of tails.get(tail) ?? [])
        if (end >= one.length && one.equals(bytes.subarray(end - one.length, end))) found.add(one);
    }
  }
  return found.size;
}

/** The sealed bytes of the entries that meet the condition, or of all entries and vectors. */
function sealedRows(folder: string, where?: string): Buffer[] {
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  const from = where === undefined ? 'entry UNION ALL SELECT sealed FROM vector' : `entry WHERE ${where}`;
  try {
    return db.prepare(`SELECT sealed FROM ${from}`).pluck().all() as Buffer[];
  } finally {
    db.close();
  }
}

describe('the files on the disk', () => {
  test('show none of a thousand marked keys, values, tags and clients (R-STORE-06, R-STORE-07)', async () => {
    const folder = diskFolder();
    const clock = manualClock();
    const marks: string[] = [];
    const mark = (): string => marks[marks.push(marker()) - 1] ?? '';
    {
      await using store = await openFileStore(folder, clock);
      const facts = store.space({ subject: 'me' }, 'fact');
      for (let index = 0; index < 250; index += 1) {
        const draft = aDraft({
          key: mark(),
          value: `so ${mark()} it is`,
          tags: [mark()],
          author: { ...anAuthor, client: mark() },
        });
        await facts.put(draft, aDraft({ key: `note ${index}`, value: draft.key, category: 'activity' }));
        if (index % 5 === 0) await facts.put({ ...draft, value: `then ${mark()}` });
        if (index % 7 === 0) await facts.change(draft.key, { tags: [mark()], author: draft.author });
        if (index % 11 === 0) await store.space({ subject: 'me', session: 's' }, 'pack').put({ ...draft, value: mark() });
        if (index % 13 === 0) await store.forget('me', { kinds: ['fact'], key: draft.key });
      }
      await store.upkeep?.makeRecoveryKey();
      await store.upkeep?.backup();
      expect(marks.length).toBeGreaterThan(1000);
      // With the log and the backups, while the store is open.
      expect(standing(folder, marks)).toBe(0);
    }
    expect(standing(folder, marks)).toBe(0);
    // The search finds text that is not sealed.
    expect(standing(folder, ['preferences'])).toBe(1);
  });

  test('no other user can read the folder (R-STORE-03)', async () => {
    const folder = join(diskFolder(), 'made');
    await using store = await openFileStore(folder, manualClock());
    await store.space({ subject: 'me' }, 'fact').put(aDraft());
    await store.upkeep?.backup();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    const names = filesBelow(folder).map(({ path }) => path);
    expect(names.map((name) => name.slice(folder.length + 1).replace(/\d+/, 'N')).toSorted()).toEqual([
      'backups/memory-N.db',
      'lock.db',
      'memory.db',
      'memory.db-shm',
      'memory.db-wal',
      'reserve',
    ]);
    for (const name of names) expect(statSync(name).mode & 0o077, name).toBe(0);
  });

  test('store times as integers (R-STORE-05)', async () => {
    const folder = diskFolder();
    await using store = await openFileStore(folder, manualClock());
    await store.space({ subject: 'me' }, 'fact').put(aDraft());
    const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
    expect(
      db.prepare('SELECT typeof(created_at) AS c, typeof(updated_at) AS u, typeof(expires_at) AS e FROM entry').get(),
    ).toEqual({
      c: 'integer',
      u: 'integer',
      e: 'integer',
    });
    db.close();
  });
});

describe('no live file holds a marker or an old ciphertext', () => {
  const FACTS = 500;
  const facts: readonly Kind[] = ['fact'];

  interface Scene {
    readonly folder: string;
    readonly clock: ManualClock;
    readonly store: MemoryStore;
    readonly sealed: readonly Buffer[];
  }

  /** 500 facts of all sizes with versions and vectors, changed so that pages split and merge. */
  async function scene(): Promise<Scene> {
    const folder = diskFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const space = store.space({ subject: 'me' }, 'fact');
    const sealed = new Map<string, Buffer>();
    const remember = (): void => {
      for (const blob of sealedRows(folder)) sealed.set(blob.toString('latin1'), blob);
    };
    const draft = (index: number, turn: number) =>
      aDraft({
        key: `area ${index % 3}/${index}`,
        value: 'v'.repeat(1 + ((index * 37 + turn * 911) % 1500)),
        category: index % 2 ? 'odd' : 'even',
        tags: [`tag${index % 5}`],
        author: { ...anAuthor, client: `client ${index % 2}` },
        lifetime: index % 4 === 0 ? HOUR : 90 * DAY,
      });
    for (const turn of [0, 1, 2]) {
      for (let index = 0; index < FACTS; index += 50) {
        await Promise.all(Array.from({ length: 50 }, (_, more) => space.put(draft(index + more, turn))));
        remember();
      }
      expect(await embedAll(store)).toBe(FACTS);
      remember();
    }
    for (const [kind, category] of [
      ['audit', 'pack_history'],
      ['audit', 'pipeline_history'],
      ['cache', 'cache'],
    ] as const) {
      const key = kind === 'cache' ? 'p/00' : `${category}/p/1`;
      await store.space({ subject: 'me' }, kind).put(aDraft({ key, category, value: 'v'.repeat(500) }));
    }
    remember();
    return { folder, clock, store, sealed: [...sealed.values()] };
  }

  /** The files hold the bytes of the present rows and no others. */
  const leftovers = ({ folder, sealed }: Scene): number => {
    const living = new Set(sealedRows(folder).map((blob) => blob.toString('latin1')));
    // The nonce and the start of the ciphertext identify a blob.
    const gone = sealed.filter((blob) => !living.has(blob.toString('latin1')));
    expect(gone.length).toBeGreaterThan(0);
    const pieces = gone.flatMap((blob) => [blob.subarray(9, 41), blob.subarray(-32)]);
    return standing(folder, pieces, /backups/);
  };

  test.each<{ scope: string; left: number }>([
    { scope: 'all', left: 0 },
    { scope: 'facts', left: 0 },
    { scope: 'key:area 1/1', left: FACTS - 1 },
    { scope: 'prefix:area 1/', left: 333 },
    { scope: 'category:odd', left: 250 },
    { scope: 'tag:tag2', left: 400 },
    { scope: 'client:client 1', left: 250 },
    { scope: 'packs', left: FACTS },
    { scope: 'pipelines', left: FACTS },
    { scope: 'pack:p', left: FACTS },
    { scope: 'pipeline:p', left: FACTS },
  ])('after a forget of $scope (R-PURGE-01, R-FORGET-14, R-MEAN-11)', async ({ scope, left }) => {
    const all = await scene();
    const { store } = all;
    const selection = selectionOf(ForgetInput().parse({ scope }).scope);
    const deleted = await store.countMatching('me', selection);
    expect(deleted).toBeGreaterThan(0);
    expect(await store.forget('me', selection)).toMatchObject({ deleted, purged: true });
    expect(await store.space({ subject: 'me' }, 'fact').count()).toBe(left);
    expect(await storedVectors(store)).toHaveLength(left);
    expect(leftovers(all)).toBe(0);
  });

  test('a second after entries expire (R-PURGE-02, R-MEAN-11)', async () => {
    const all = await scene();
    await all.clock.advance(HOUR);
    await all.clock.advance(SECOND);
    expect(await all.store.space({ subject: 'me' }, 'fact').count()).toBe(FACTS - FACTS / 4);
    expect(await storedVectors(all.store)).toHaveLength(FACTS - FACTS / 4);
    expect(leftovers(all)).toBe(0);
  });

  test('a second after all vectors are deleted (R-MEAN-11)', async () => {
    const all = await scene();
    await all.store.vectors.clear();
    await all.clock.advance(SECOND);
    expect(await storedVectors(all.store)).toEqual([]);
    expect(leftovers(all)).toBe(0);
  });

  test('a second after versions leave the history (R-PURGE-03)', async () => {
    const all = await scene();
    const { store, folder } = all;
    const space = store.space({ subject: 'me' }, 'fact');
    const first = marker();
    // By the same client, because versions of other clients would stay.
    const put = (value: string) => space.put(aDraft({ key: 'area 0/0', value, author: { ...anAuthor, client: 'client 0' } }));
    await put(first);
    const [blob] = sealedRows(folder, 'kind = 1 ORDER BY updated_at DESC, rowid DESC LIMIT 1');
    for (let turn = 0; turn < HISTORY_VERSIONS; turn += 1) await put(`turn ${turn}`);
    expect((await space.history('area 0/0')).at(-1)?.value).toBe(first);
    await put('one too many');
    await all.clock.advance(SECOND);
    expect(standing(folder, [blob!.subarray(9, 41)])).toBe(0);
    expect(leftovers(all)).toBe(0);
  });

  test('a second after a pack overwrites an entry (R-PURGE-03)', async () => {
    const all = await scene();
    const pack = all.store.space({ subject: 'me' }, 'pack');
    await pack.put(aDraft({ value: 'one' }));
    const [blob] = sealedRows(all.folder, 'kind = 5');
    await pack.put(aDraft({ value: 'two' }));
    await all.clock.advance(SECOND);
    expect(standing(all.folder, [blob!.subarray(9, 41)])).toBe(0);
  });

  test('half a minute after surplus rows are evicted', async () => {
    const [folder, clock] = [diskFolder(), manualClock()];
    const store = await openFileStore(folder, clock, undefined, QUOTA);
    const cache = store.space({ subject: 'me' }, 'cache');
    const put = (from: number, count: number) =>
      Promise.all(Array.from({ length: count }, (_, more) => cache.put(aDraft({ key: `answer ${from + more}` }))));
    await put(0, RECORD_ROWS.cache);
    const sealed = sealedRows(folder);
    await put(RECORD_ROWS.cache, 100);
    await clock.advance(30 * SECOND);
    expect(leftovers({ folder, clock, store, sealed })).toBe(0);
  });

  test('after a reader of the log has ended; until then `purged` is false (R-PURGE-04)', async () => {
    const all = await scene();
    const reader = new Sqlite(join(all.folder, 'memory.db'));
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM entry').get();
    expect(await all.store.forget('me', { kinds: facts })).toMatchObject({ deleted: FACTS, purged: false });
    // The search works.
    expect(leftovers(all)).toBeGreaterThan(0);
    reader.exec('COMMIT');
    reader.close();
    await all.clock.advance(SECOND);
    expect(leftovers(all)).toBe(0);
  });

  test('after the start that follows a kill (R-PURGE-01)', async () => {
    const all = await scene();
    const space = all.store.space({ subject: 'me' }, 'fact');
    for (let turn = 0; turn <= HISTORY_VERSIONS; turn += 1) await space.put(aDraft({ key: 'area 0/0', value: `turn ${turn}` }));
    // The files as a power cut leaves them, before the log is truncated.
    const killed = diskFolder();
    for (const name of ['memory.db', 'memory.db-wal']) copyFileSync(join(all.folder, name), join(killed, name));
    expect(statSync(join(killed, 'memory.db-wal')).size).toBeGreaterThan(0);
    const { sealed } = all;
    const again = await openFileStore(killed, all.clock);
    expect(await again.space({ subject: 'me' }, 'fact').count()).toBe(FACTS);
    // After the scan of the file.
    await again.forget('nobody', { kinds: ['fact'] });
    expect(leftovers({ folder: killed, clock: all.clock, store: again, sealed })).toBe(0);
  });
});
