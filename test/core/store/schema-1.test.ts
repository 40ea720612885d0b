import { createHash } from 'node:crypto';
import { closeSync, copyFileSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { openDatabase } from '../../../src/core/store/database.ts';
import { migrations } from '../../../src/core/store/migrations/index.ts';
import { selectionOf } from '../../../src/core/store/scope.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { restoreBackup } from '../../../src/core/upkeep/restore.ts';
import { salvage } from '../../../src/core/upkeep/salvage.ts';
import { MINUTE, type ManualClock, manualClock, START } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';
import { openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/**
 * A memory that the last program of schema 1 wrote: 38 facts, of which two clients changed some, with sessions, a pipeline and its
 * run, three tokens, and a record of all of it.
 */
const USED = join(import.meta.dirname, '../../fixtures/memory-v1-used.db');

let folder: string;
let file: string;
let clock: ManualClock;

beforeEach(() => {
  folder = tempFolder();
  file = join(folder, 'memory.db');
  copyFileSync(USED, file);
  clock = manualClock(START + MINUTE);
});

const one = aCaller({ may: ['memory:read', 'memory:write', 'packs:run'] });
const fingerprint = (): string => createHash('sha256').update(readFileSync(file)).digest('hex');

function sealedRows(where: string): Buffer[] {
  const db = new Sqlite(file, { readonly: true });
  try {
    return db.prepare(`SELECT sealed FROM entry WHERE ${where}`).pluck().all() as Buffer[];
  } finally {
    db.close();
  }
}

/** Checks everything that the program of schema 1 stored. */
async function expectWhole(store: MemoryStore): Promise<void> {
  const facts = store.space({ subject: 'me' }, 'fact');
  expect(await store.upkeep!.verify()).toEqual({ entries: 106, broken: 0, structure: [] });
  const { entries } = await facts.page({ sort: 'updated', limit: 100, bytes: 1e6 });
  expect(entries).toHaveLength(37);
  expect(await facts.get('fact/3')).toMatchObject({
    value: 'Another text of fact 3.',
    category: 'group-3',
    author: { client: 'codex', origin: 'mcp' },
  });
  expect(await facts.history('fact/3')).toMatchObject([
    { value: 'The text of fact 3.', tags: ['t3'], author: { client: 'codex' } },
  ]);
  expect(await facts.history('fact/2')).toMatchObject([{ value: 'The text of fact 2.', author: { client: 'claude-code' } }]);
  expect(await facts.get('kept')).toMatchObject({ author: { client: 'codex', definedBy: 'claude-code' } });
  expect(await facts.count('user_facts')).toBe(21);
  expect((await facts.page({ sort: 'updated', limit: 100, category: 'user_facts' })).entries).toHaveLength(21);
  expect((await facts.overview({ categories: 9, keys: 1 })).categories.map(({ name, count }) => [name, count])).toEqual([
    ['group-0', 4],
    ['group-1', 4],
    ['group-2', 4],
    ['group-3', 4],
    ['user_facts', 21],
  ]);
  expect((await store.vault.revokedTokens()).length).toBe(1);
}

describe('a memory of schema 1 (R-DUR-07, R-DUR-09)', () => {
  test('opens with every fact, version, record, token and definition, and is backed up first', async () => {
    const memory = await openTestMemory({ folder, clock });
    await expectWhole(memory.store);
    const { activity } = await memory.as(one)('activity', { limit: 200 });
    expect(activity).toHaveLength(55);
    expect(activity.filter(({ operation }) => operation === 'remember')).toHaveLength(51);
    expect(activity.at(-1)).toMatchObject({ operation: 'remember', client: 'codex', key: 'fact/0' });
    const { tokens } = await memory.as(theOwner)('tokens', {});
    expect(tokens.map(({ client }) => client).toSorted()).toEqual(['claude-code', 'codex']);
    const { pipelines } = await memory.as(one)('pipelines', {});
    expect(pipelines).toMatchObject([{ id: 'note', client: 'claude-code' }]);
    expect(readdirSync(join(folder, 'backups'))).toEqual([expect.stringMatching(/^schema-1-\d+\.db$/)]);
  });

  test('can be changed, undone, forgotten and rotated', async () => {
    const memory = await openTestMemory({ folder, clock });
    const { as, store } = memory;
    expect(await as(one)('remember', { key: 'fact/2', value: 'A third text.' })).toMatchObject({ status: 'updated' });
    expect(await as(one)('remember', { key: 'fact/2', value: 'A third text.' })).toMatchObject({ status: 'unchanged' });
    await as(one)('undo', { client: 'codex', since: new Date(START).toISOString() });
    expect(await as(one)('recall', { key: 'fact/4' })).toMatchObject({ value: 'The text of fact 4.', client: 'claude-code' });
    expect((await as(one)('search', { query: 'fact 22' })).hits[0]).toMatchObject({ key: 'fact/22' });
    const before = sealedRows("category = 'group-1'");
    await as(one)('forget', { scope: 'category:group-1' });
    const bytes = readFileSync(file);
    for (const sealed of before) expect(bytes.includes(sealed.subarray(9, 60))).toBe(false);
    expect((await store.upkeep!.verify()).broken).toBe(0);
    expect(await as(one)('forget', { scope: 'all' })).toMatchObject({ purged: true });
    expect((await store.upkeep!.verify()).entries).toBe(1);
  });

  test('is unchanged after a migration that fails (R-DUR-07)', () => {
    const [first, second] = migrations;
    const fails = (db: Parameters<NonNullable<typeof second>>[0]): void => {
      second?.(db);
      throw new Error('half way');
    };
    expect(() => openDatabase(file, [first!, fails])).toThrow('half way');
    const db = new Sqlite(file);
    expect(db.pragma('user_version', { simple: true })).toBe(1);
    expect(db.prepare("SELECT count(*) FROM entry WHERE category = 'user_facts'").pluck().get()).toBe(26);
    expect(db.prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'author'").pluck().get()).toBe(0);
    db.close();
  });

  test('migrates without its key, and then still forgets (R-FORGET-11)', async () => {
    const store = await openFileStore(folder, clock, () => []);
    expect(await store.forget('me', selectionOf({ kind: 'category', name: 'user_facts' }))).toMatchObject({
      deleted: 21,
      purged: true,
    });
    expect(await store.space({ subject: 'me' }, 'fact').count()).toBe(16);
  });

  test('becomes short when its rows are written again', async () => {
    await using store = await openFileStore(folder, clock);
    const longest = (): number =>
      Math.max(...sealedRows("kind = 1 AND substr(sealed, 1, 1) <> x'03'").map(({ length }) => length), 0);
    expect(longest()).toBeGreaterThan(100);
    const facts = store.space({ subject: 'me' }, 'fact');
    const { entries } = await facts.page({ sort: 'updated', limit: 100, bytes: 1e6 });
    for (const { key, author } of entries) await facts.change(key, { lifetime: 1e9, author });
    expect(longest()).toBe(0);
    await expectWhole(store);
  });

  test('can be restored from a backup, over a memory of either schema (R-DUR-16)', async () => {
    const backup = join(tempFolder(), 'old.db');
    copyFileSync(USED, backup);
    for (let turn = 0; turn < 2; turn += 1) {
      expect(await restoreBackup({ folder, backup, clock, sources: withKey() })).toMatchObject({
        entries: 106,
        broken: 0,
        readReplacedMemory: true,
      });
      await using store = await openFileStore(folder, clock);
      await expectWhole(store);
    }
  });

  test('does not change when a restore over it fails (R-DUR-16)', async () => {
    const backup = join(tempFolder(), 'no.db');
    copyFileSync(import.meta.filename, backup);
    await expect(restoreBackup({ folder, backup, clock, sources: withKey() })).rejects.toMatchObject({ code: 'invalid_input' });
    const db = new Sqlite(file, { readonly: true });
    expect(db.pragma('user_version', { simple: true })).toBe(1);
    db.close();
  });

  test('can be salvaged when it is damaged (R-DUR-06)', async () => {
    const rescue = () =>
      salvage({ folder, clock, sources: withKey(), subject: 'me' }, async ({ facts, broken }) => ({
        names: [...facts].map(({ key, category, author }) => `${key} ${category} ${author.client}`),
        broken: broken(),
      }));
    const whole = await rescue();
    expect(whole.names).toHaveLength(37);
    expect(whole.names).toContain('fact/0 user_facts codex');
    const db = new Sqlite(file);
    const leaves = "SELECT pageno FROM dbstat WHERE name = 'entry' AND pagetype = 'leaf' ORDER BY path";
    const page = db.prepare(leaves).pluck().all()[2] as number;
    db.close();
    const handle = openSync(file, 'r+');
    writeSync(handle, Buffer.alloc(4096), 0, 4096, (page - 1) * 4096);
    closeSync(handle);
    const before = fingerprint();
    const { names } = await rescue();
    expect(names.length).toBeGreaterThan(20);
    expect(names.length).toBeLessThan(37);
    expect(fingerprint()).toBe(before);
  });
});
