import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { noteOf } from '../../../src/core/operations/activity.ts';
import { selectionOf } from '../../../src/core/store/scope.ts';
import type { Author, MemoryStore } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { salvage } from '../../../src/core/upkeep/salvage.ts';
import { DAY, HOUR, type ManualClock, manualClock } from '../../support/clock.ts';
import { aCaller } from '../../support/memory.ts';
import { A_KEY, aDraft, anAuthor, ANOTHER_KEY, keyFrom, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const facts = (store: MemoryStore, subject = 'me') => store.space({ subject }, 'fact');
const by = (client: string): Author => ({ ...anAuthor, client });

let folder: string;
let clock: ManualClock;
let store: MemoryStore;

beforeEach(async () => {
  folder = tempFolder();
  clock = manualClock();
  store = await openFileStore(folder, clock);
});

interface AuthorRow {
  readonly id: number;
  readonly namespace: number;
  readonly sealed: Buffer;
}

function authorRows(): AuthorRow[] {
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  try {
    return db.prepare('SELECT id, namespace, sealed FROM author ORDER BY namespace, expires_at, rowid').all() as AuthorRow[];
  } finally {
    db.close();
  }
}

/** Changes the closed file. */
async function edit(change: (db: Sqlite.Database) => void): Promise<void> {
  await store[Symbol.asyncDispose]();
  const db = new Sqlite(join(folder, 'memory.db'));
  change(db);
  db.pragma('journal_mode = DELETE');
  db.close();
}

/** Whether the live files contain the bytes of a sealed author. */
const contains = ({ sealed }: AuthorRow): boolean =>
  ['memory.db', 'memory.db-wal'].some((name) => readFileSync(join(folder, name)).includes(sealed.subarray(9)));

describe('an author (R-SEAL-01)', () => {
  test('is stored once in each namespace, and every entry names the right one, also after a start', async () => {
    const authors = [by('claude-code'), by('codex'), { ...by('codex'), definedBy: 'claude-code' }, { ...by('codex'), token: '' }];
    for (const [index, author] of [...authors, ...authors].entries()) {
      await facts(store).put(aDraft({ key: `k${index}`, author }));
      await facts(store, 'you').put(aDraft({ key: `k${index}`, author: by('claude-code') }));
    }
    expect(authorRows().map(({ namespace }) => namespace)).toEqual([1, 1, 1, 1, 2]);
    await store[Symbol.asyncDispose]();
    store = await openFileStore(folder, clock);
    for (const [index, author] of [...authors, ...authors].entries())
      expect(await facts(store).get(`k${index}`)).toMatchObject({ author });
    await facts(store).put(aDraft({ key: 'another', author: by('codex') }));
    expect(authorRows()).toHaveLength(5);
    expect(await store.upkeep!.verify()).toEqual({ entries: 17, broken: 0, structure: [] });
  });

  test('of a write that failed is not named by the next write', async () => {
    await using small = await openFileStore(tempFolder(), clock);
    const space = facts(small);
    const fails = space.put(aDraft({ key: 'a', lifetime: -1, author: by('codex') }));
    const works = space.put(aDraft({ key: 'b', author: by('codex') }));
    await expect(fails).rejects.toThrow('lifetime');
    await works;
    expect((await space.get('b'))?.author).toEqual(by('codex'));
    small.lock();
    await small.unlock();
    expect((await space.get('b'))?.author).toEqual(by('codex'));
  });
});

describe('an author whose row was changed in the file', () => {
  /** The number of the author `claude-code`. */
  let number: number;

  beforeEach(async () => {
    await facts(store).put(aDraft({ key: 'one', author: by('claude-code') }));
    number = authorRows()[0]?.id ?? NaN;
    await facts(store).put(aDraft({ key: 'two', author: by('codex') }));
  });

  test.each<[string, (db: Sqlite.Database) => void, number?]>([
    [
      'a flipped byte',
      (db: Sqlite.Database) =>
        void db.exec(`UPDATE author SET sealed = CAST(substr(sealed, 1, 30) || x'00' AS BLOB) WHERE id = ${number}`),
    ],
    [
      'the sealed bytes of another author',
      (db: Sqlite.Database) =>
        void db.exec(`UPDATE author SET sealed = (SELECT sealed FROM author WHERE id <> ${number}) WHERE id = ${number}`),
    ],
    ['another number', (db: Sqlite.Database) => void db.exec(`UPDATE author SET id = 9 WHERE id = ${number}`), 2],
    ['no row', (db: Sqlite.Database) => void db.exec(`DELETE FROM author WHERE id = ${number}`)],
    [
      'another namespace',
      (db: Sqlite.Database) =>
        void db.exec(`INSERT INTO namespace VALUES (7, 'you', ''); UPDATE author SET namespace = 7 WHERE id = ${number}`),
    ],
    [
      'another expiry',
      (db: Sqlite.Database) => void db.exec(`UPDATE author SET expires_at = expires_at + 1 WHERE id = ${number}`),
    ],
  ])(
    'with %s is counted, and its facts stay readable without an author (R-SEAL-03, R-SEAL-04, R-DUR-13)',
    async (what, change, broken = 1) => {
      await edit(change);
      store = await openFileStore(folder, clock);
      const names = [(await facts(store).get('one'))?.author, (await facts(store).get('two'))?.author];
      // The seal of an entry names the namespace too, so a row of another namespace is only counted.
      const known = what === 'another namespace' ? by('claude-code') : { client: 'unreadable-author', origin: '', token: '' };
      expect(names).toEqual([known, by('codex')]);
      expect(await store.upkeep!.verify()).toMatchObject({ entries: 2, broken });
    },
  );

  test('does not prevent a salvage, even if the page of the authors is lost (R-DUR-06)', async () => {
    let page = 0;
    await edit((db) => {
      page = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'author'").pluck().get() as number;
    });
    const file = openSync(join(folder, 'memory.db'), 'r+');
    writeSync(file, Buffer.alloc(4096), 0, 4096, (page - 1) * 4096);
    closeSync(file);
    const keys = await salvage({ folder, clock, sources: withKey(), subject: 'me' }, async ({ facts: saved }) =>
      [...saved].map(({ key, author }) => [key, author.client]),
    );
    expect(keys).toEqual([
      ['one', 'unreadable-author'],
      ['two', 'unreadable-author'],
    ]);
  });
});

describe('the authors of forgotten entries', () => {
  const note = () => noteOf(aCaller({ client: 'the owner' }), 'forget', { scope: 'all' });
  const all = selectionOf({ kind: 'all' });

  test('are forgotten with everything, except the author of the record (R-FORGET-04, R-PURGE-01, R-PURGE-06)', async () => {
    for (const client of ['claude-code', 'codex', 'the owner'])
      await facts(store).put(aDraft({ key: client, author: by(client) }));
    await facts(store, 'you').put(aDraft({ author: by('codex') }));
    const [one, two, three, other] = authorRows();
    expect(other?.namespace).toBe(2);
    expect(await store.forget('me', all, note())).toMatchObject({ deleted: 3, purged: true });
    const left = authorRows();
    expect(left.map(({ namespace }) => namespace)).toEqual([1, 2]);
    for (const gone of [one, two, three]) expect(left.map(({ id }) => id)).not.toContain(gone?.id);
    for (const gone of [one, two, three]) expect(contains(gone!)).toBe(false);
    expect(contains(other!)).toBe(true);
    const { entries } = await store.space({ subject: 'me' }, 'activity').page({ sort: 'updated', limit: 5 });
    expect(entries.map(({ author }) => author.client)).toEqual(['the owner']);
    expect(await store.upkeep!.verify()).toEqual({ entries: 2, broken: 0, structure: [] });
  });

  test('are forgotten without the key (R-FORGET-11)', async () => {
    await facts(store).put(aDraft());
    const [one] = authorRows();
    store.lock();
    await store.forget('me', all);
    expect(authorRows()).toEqual([]);
    expect(contains(one!)).toBe(false);
  });

  test('stay for entries that are written meanwhile (R-FORGET-18)', async () => {
    for (let index = 0; index < 100; index += 1) await facts(store).put(aDraft({ key: `k${index}`, author: by('codex') }));
    let turns = 0;
    await store.forget('me', all, note(), async () => {
      turns += 1;
      await facts(store).put(aDraft({ key: `late ${turns}`, author: by('codex') }));
    });
    expect(turns).toBeGreaterThan(2);
    const { entries } = await facts(store).page({ sort: 'updated', limit: 200 });
    expect(entries.length).toBeGreaterThan(0);
    for (const { author } of entries) expect(author).toEqual(by('codex'));
    expect((await store.upkeep!.verify()).broken).toBe(0);
  });

  test('are deleted a day after the last entry that could name them has expired (R-PURGE-06)', async () => {
    await facts(store).put(aDraft({ key: 'short', author: by('codex'), lifetime: HOUR }));
    const [short] = authorRows();
    await facts(store).put(aDraft({ key: 'long', author: by('claude-code'), lifetime: 30 * DAY }));
    await clock.advance(DAY + HOUR);
    const [long, ...others] = authorRows();
    expect(others).toEqual([]);
    expect(long?.id).not.toBe(short?.id);
    await facts(store).put(aDraft({ key: 'again', author: by('codex'), lifetime: HOUR }));
    const numbers = authorRows().map(({ id }) => id);
    expect(numbers).toHaveLength(2);
    expect(numbers).toContain(long?.id);
    expect(numbers).not.toContain(short?.id);
    expect((await facts(store).get('again'))?.author).toEqual(by('codex'));
  });

  test('are deleted as soon as the namespace is empty (R-PURGE-06)', async () => {
    await facts(store).put(aDraft({ lifetime: HOUR }));
    await store.space({ subject: 'me', session: 's' }, 'pack').put(aDraft({ lifetime: HOUR }));
    expect(authorRows()).toHaveLength(2);
    await clock.advance(HOUR);
    expect(authorRows()).toEqual([]);
  });

  test('are forgotten again by a restore (R-FORGET-15)', async () => {
    await facts(store).put(aDraft({ key: 'gone', author: by('codex') }));
    await clock.advance(1);
    const { file: backup } = await store.upkeep!.backup();
    await clock.advance(1);
    await store.forget('me', all, note());
    await store[Symbol.asyncDispose]();
    const { stillForgotten } = await restoreBackup({ folder, backup, clock, sources: withKey() });
    expect(stillForgotten).toBe(1);
    expect(authorRows()).toEqual([]);
  });
});

describe('the number of an author (R-SEAL-01, R-SEAL-03)', () => {
  const session = (name: string) => store.space({ subject: 'me', session: name }, 'fact');
  const reopen = async () => {
    await store[Symbol.asyncDispose]();
    store = await openFileStore(folder, clock);
  };

  test.each([
    ['expired', async () => void (await clock.advance(2 * HOUR))],
    ['was forgotten', async () => void (await store.forget('me', { kinds: ['fact'], session: 's1', key: 'a' }))],
  ])('of a session is not used by the next session after its last fact %s', async (_how, end) => {
    await session('s1').put(aDraft({ key: 'a', author: by('codex'), lifetime: HOUR }));
    await end();
    expect(authorRows()).toEqual([]);
    await session('s2').put(aDraft({ key: 'b', author: by('codex'), lifetime: HOUR }));
    await reopen();
    expect((await session('s2').get('b'))?.author).toEqual(by('codex'));
    expect(await store.upkeep!.verify()).toMatchObject({ entries: 1, broken: 0 });
  });

  test('is not used again after the authors were deleted in the file', async () => {
    await facts(store).put(aDraft({ key: 'old', author: by('codex') }));
    await edit((db) => void db.exec('DELETE FROM author'));
    store = await openFileStore(folder, clock);
    await facts(store).put(aDraft({ key: 'new', author: by('claude-code') }));
    await reopen();
    expect((await facts(store).get('old'))?.author.client).toBe('unreadable-author');
    expect((await facts(store).get('new'))?.author).toEqual(by('claude-code'));
  });

  test('is not used again after a restore, so a copied row names no other author', async () => {
    await facts(store).put(aDraft({ key: 'first', author: by('cursor') }));
    const { file: backup } = await store.upkeep!.backup();
    await facts(store).put(aDraft({ key: 'copied', author: by('codex') }));
    let copied: unknown;
    await edit((db) => (copied = db.prepare('SELECT * FROM entry WHERE kind = 1 ORDER BY rowid DESC LIMIT 1').get()));
    await restoreBackup({ folder, backup, clock, sources: withKey() });
    store = await openFileStore(folder, clock);
    await facts(store).put(aDraft({ key: 'next', author: by('claude-code') }));
    await edit((db) => {
      const columns = 'namespace, kind, key_hash, category, created_at, updated_at, expires_at, sealed';
      const values = columns.replaceAll(/\w+/g, '@$&');
      db.prepare(`INSERT INTO entry (${columns}) VALUES (${values})`).run(copied);
    });
    store = await openFileStore(folder, clock);
    expect((await facts(store).get('copied'))?.author.client).toBe('unreadable-author');
    expect((await facts(store).get('next'))?.author).toEqual(by('claude-code'));
  });

  test('stays in an entry that is sealed again while the author is broken (R-SEAL-04)', async () => {
    await facts(store).put(aDraft({ author: by('codex') }));
    const [author] = authorRows();
    await edit((db) => void db.exec('UPDATE author SET sealed = zeroblob(60)'));
    store = await openFileStore(folder, clock, keyFrom({ HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_MEMORY_KEY_NEXT: ANOTHER_KEY }));
    await store.upkeep!.rotate();
    expect(authorRows().map(({ id }) => id)).toEqual([author?.id]);
    expect(await store.upkeep!.verify()).toMatchObject({ entries: 1, broken: 1 });
  });
});

test('a purge removes the author of the last entry that was forgotten by its key (R-PURGE-01, R-PURGE-06)', async () => {
  await facts(store).put(aDraft({ author: by('codex') }));
  const [author] = authorRows();
  await store.forget('me', { kinds: ['fact', 'history'], key: aDraft().key });
  expect(authorRows()).toEqual([]);
  expect(contains(author!)).toBe(false);
});

test('a fact of 200 bytes with its activity record takes at most 560 bytes of the file', async () => {
  const count = 3000;
  const caller = aCaller({ token: '0123456789abcdef' });
  const space = facts(store);
  for (let from = 0; from < count; from += 100) {
    const puts = Array.from({ length: 100 }, (_, more) => {
      const key = `preferences/area/${from + more}`;
      const author = { client: caller.client, origin: caller.transport, token: caller.token };
      const draft = aDraft({
        key,
        value: `${from + more} `.padEnd(200, 'what the owner said; '),
        category: 'user_facts',
        author,
      });
      return space.put({ ...draft, tags: ['frontend'] }, noteOf(caller, 'remember', { key }));
    });
    await Promise.all(puts);
  }
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  onTestFinished(() => void db.close());
  const pages = db.pragma('page_count', { simple: true }) as number;
  expect((pages * 4096) / count).toBeLessThan(560);
});
