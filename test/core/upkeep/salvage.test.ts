import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  writeSync,
  closeSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { salvage } from '../../../src/core/upkeep/salvage.ts';
import { manualClock, HOUR } from '../../support/clock.ts';
import { aDraft, ANOTHER_KEY, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const FACTS = 400;
/** More than an index is made to hide, and than are read at once. */
const MORE = 300;
const PAGE = 4096;

let folder: string;
let file: string;
const clock = manualClock();
const keyOf = (index: number): string => `facts/${String(index).padStart(3, '0')}`;

beforeEach(async () => {
  folder = tempFolder();
  file = join(folder, 'memory.db');
  await using store = await openFileStore(folder, clock);
  const facts = store.space({ subject: 'me' }, 'fact');
  for (let index = 0; index < FACTS; index += 1) {
    await facts.put(aDraft({ key: keyOf(index), value: `value ${index} ${'x'.repeat(index % 9 === 0 ? 9000 : 50)}` }));
  }
  await facts.put(aDraft({ key: 'over soon', lifetime: HOUR }));
  await store.space({ subject: 'another' }, 'fact').put(aDraft({ key: 'theirs' }));
  await store.space({ subject: 'me', session: 's' }, 'pack').put(aDraft({ key: 'a.pack/a' }));
});

const saved = (sources = withKey()) =>
  salvage({ folder, clock, sources, subject: 'me' }, async ({ facts, broken, unreadable }) => ({
    keys: [...facts].map(({ key }) => key).toSorted(),
    broken: broken(),
    unreadable: unreadable(),
  }));

/** Pages of the table itself, not of its indexes. */
function leaves(): number[] {
  const db = new Sqlite(file, { readonly: true });
  const pages = db.prepare("SELECT pageno FROM dbstat WHERE name = 'entry' AND pagetype = 'leaf' ORDER BY path").pluck().all();
  db.close();
  return pages as number[];
}

function damage(page: number, bytes: Buffer): void {
  const handle = openSync(file, 'r+');
  writeSync(handle, bytes, 0, bytes.length, (page - 1) * PAGE);
  closeSync(handle);
}

/** How many it has, the page says in two bytes. */
const withOneCell = (page: Buffer): Buffer => {
  const copy = Buffer.from(page);
  copy.writeUInt16BE(1, 3);
  return copy;
};

const fingerprint = (): string => createHash('sha256').update(readFileSync(file)).digest('hex');

describe('what is saved of a damaged file (R-DUR-06)', () => {
  test('is every living fact of a whole one, of one subject alone', async () => {
    const { keys, broken, unreadable } = await saved();
    expect(keys).toEqual([...Array.from({ length: FACTS }, (_, index) => keyOf(index)), 'over soon']);
    expect({ broken, unreadable }).toEqual({ broken: 0, unreadable: false });
    expect(readdirSync(folder).filter((name) => name.includes('salvaging'))).toEqual([]);
  });

  test.each(['zeroed', 'overwritten'])('is all that does not stand in a page that is %s, wherever that lies', async (how) => {
    const pages = leaves();
    for (const page of [pages[0], pages[Math.floor(pages.length / 2)], pages.at(-1)]) {
      const whole = `${file}.whole`;
      copyFileSync(file, whole);
      const db = new Sqlite(file, { readonly: true });
      const cells = db.prepare("SELECT ncell FROM dbstat WHERE name = 'entry' AND pageno = ?").pluck().get(page) as number;
      db.close();
      damage(page ?? 0, Buffer.alloc(PAGE, how === 'zeroed' ? 0 : 0xa5));
      const before = fingerprint();
      const { keys, unreadable } = await saved();
      // The rows of that page are lost, and nothing beside them.
      expect(keys.length).toBeLessThan(FACTS + 1);
      expect(FACTS + 1 - keys.length).toBeLessThanOrEqual(cells);
      expect(unreadable).toBe(true);
      expect(fingerprint()).toBe(before);
      copyFileSync(whole, file);
    }
  });

  test('is no less where indexes are damaged too, and tell of fewer rows than there are', async () => {
    {
      await using store = await openFileStore(folder, clock);
      const facts = store.space({ subject: 'me' }, 'fact');
      for (let index = FACTS; index < FACTS + MORE; index += 1) await facts.put(aDraft({ key: keyOf(index) }));
    }
    const { keys: whole } = await saved();
    const pages = leaves();
    const db = new Sqlite(file);
    const lost = db.prepare("SELECT ncell FROM dbstat WHERE name = 'entry' AND pageno = ?").pluck().get(pages[5]) as number;
    const last = db.prepare("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path DESC LIMIT 1").pluck();
    const ends = ['entry_expiry', 'entry_newest'].map((name) => last.get(name) as number);
    db.close();
    const bytes = readFileSync(file);
    // As if what was added last had never come to the disk.
    for (const page of ends) damage(page, withOneCell(bytes.subarray((page - 1) * PAGE, page * PAGE)));
    const after = new Sqlite(file, { readonly: true });
    const told = ['entry_expiry', 'entry_newest WHERE kind <> 2'].map(
      (index) => after.prepare(`SELECT max(+rowid) FROM entry INDEXED BY ${index}`).pluck().get() as number,
    );
    after.close();
    // Else this would prove nothing.
    for (const row of told) expect(row).toBeLessThan(whole.length - 50);
    damage(pages[5] ?? 0, Buffer.alloc(PAGE));
    const { keys } = await saved();
    expect(whole.length - keys.length).toBeLessThanOrEqual(lost);
  });

  test('is nothing whose seal is broken', async () => {
    const db = new Sqlite(file);
    db.exec("UPDATE entry SET category = 'moved' WHERE rowid BETWEEN 10 AND 19");
    db.close();
    const { keys, broken } = await saved();
    expect(keys).toHaveLength(FACTS + 1 - 10);
    expect(broken).toBe(10);
  });

  test('is what is left of a file that was cut in two', async () => {
    truncateSync(file, Math.floor(statSync(file).size / PAGE / 2) * PAGE);
    const { keys, unreadable } = await saved();
    expect(keys.length).toBeGreaterThan(FACTS / 4);
    expect(unreadable).toBe(true);
  });
});

test('without its key, its beginning or a memory at all it is said what is missing (R-DUR-06)', async () => {
  await expect(saved(withKey(ANOTHER_KEY))).rejects.toMatchObject({ code: 'key_unavailable' });
  damage(1, Buffer.alloc(100));
  await expect(saved()).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('restore') as string,
  });
  expect(existsSync(join(folder, 'memory.salvaging.db'))).toBe(false);
  folder = tempFolder();
  await expect(saved()).rejects.toMatchObject({ code: 'not_found' });
});
