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
/** More facts than the damaged index hides, and more than one read returns. */
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

const salvaged = (sources = withKey()) =>
  salvage({ folder, clock, sources, subject: 'me' }, async ({ facts, broken, unreadable }) => ({
    keys: [...facts].map(({ key }) => key).toSorted(),
    broken: broken(),
    unreadable: unreadable(),
  }));

/** The leaf pages of the table, without those of its indexes. */
function leafPages(): number[] {
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

/** Bytes 3 and 4 of a page are its number of cells. */
const withOneCell = (page: Buffer): Buffer => {
  const copy = Buffer.from(page);
  copy.writeUInt16BE(1, 3);
  return copy;
};

const fingerprint = (): string => createHash('sha256').update(readFileSync(file)).digest('hex');

describe('the facts salvaged from a file (R-DUR-06)', () => {
  test('are every unexpired fact of an intact file, of one subject only', async () => {
    const { keys, broken, unreadable } = await salvaged();
    expect(keys).toEqual([...Array.from({ length: FACTS }, (_, index) => keyOf(index)), 'over soon']);
    expect({ broken, unreadable }).toEqual({ broken: 0, unreadable: false });
    expect(readdirSync(folder).filter((name) => name.includes('salvaging'))).toEqual([]);
  });

  test.each(['zeroed', 'overwritten'])(
    'lack only those of a page that is %s, at the start, in the middle or at the end',
    async (how) => {
      const pages = leafPages();
      for (const page of [pages[0], pages[Math.floor(pages.length / 2)], pages.at(-1)]) {
        const whole = `${file}.whole`;
        copyFileSync(file, whole);
        const db = new Sqlite(file, { readonly: true });
        const cells = db.prepare("SELECT ncell FROM dbstat WHERE name = 'entry' AND pageno = ?").pluck().get(page) as number;
        db.close();
        damage(page ?? 0, Buffer.alloc(PAGE, how === 'zeroed' ? 0 : 0xa5));
        const before = fingerprint();
        const { keys, unreadable } = await salvaged();
        // Only rows of that page are lost.
        expect(keys.length).toBeLessThan(FACTS + 1);
        expect(FACTS + 1 - keys.length).toBeLessThanOrEqual(cells);
        expect(unreadable).toBe(true);
        expect(fingerprint()).toBe(before);
        copyFileSync(whole, file);
      }
    },
  );

  test('include those that a damaged index does not list', async () => {
    {
      await using store = await openFileStore(folder, clock);
      const facts = store.space({ subject: 'me' }, 'fact');
      for (let index = FACTS; index < FACTS + MORE; index += 1) await facts.put(aDraft({ key: keyOf(index) }));
    }
    const { keys: whole } = await salvaged();
    const pages = leafPages();
    const db = new Sqlite(file);
    const lost = db.prepare("SELECT ncell FROM dbstat WHERE name = 'entry' AND pageno = ?").pluck().get(pages[5]) as number;
    const last = db.prepare("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path DESC LIMIT 1").pluck();
    const ends = ['entry_expiry', 'entry_newest'].map((name) => last.get(name) as number);
    db.close();
    const bytes = readFileSync(file);
    // As if the newest index entries had not reached the disk.
    for (const page of ends) damage(page, withOneCell(bytes.subarray((page - 1) * PAGE, page * PAGE)));
    const after = new Sqlite(file, { readonly: true });
    const highestRows = ['entry_expiry WHERE kind <> 6', 'entry_newest WHERE kind <> 2'].map(
      (index) => after.prepare(`SELECT max(+rowid) FROM entry INDEXED BY ${index}`).pluck().get() as number,
    );
    after.close();
    // Check that the indexes really hide rows.
    for (const row of highestRows) expect(row).toBeLessThan(whole.length - 50);
    damage(pages[5] ?? 0, Buffer.alloc(PAGE));
    const { keys } = await salvaged();
    expect(whole.length - keys.length).toBeLessThanOrEqual(lost);
  });

  test('do not include those with a broken seal', async () => {
    const db = new Sqlite(file);
    db.exec("UPDATE entry SET category = 'moved' WHERE rowid BETWEEN 10 AND 19");
    db.close();
    const { keys, broken } = await salvaged();
    expect(keys).toHaveLength(FACTS + 1 - 10);
    expect(broken).toBe(10);
  });

  test('include those in the rest of a truncated file', async () => {
    truncateSync(file, Math.floor(statSync(file).size / PAGE / 2) * PAGE);
    const { keys, unreadable } = await salvaged();
    expect(keys.length).toBeGreaterThan(FACTS / 4);
    expect(unreadable).toBe(true);
  });
});

test('salvaging without the key, the file header or any memory fails with the reason (R-DUR-06)', async () => {
  await expect(salvaged(withKey(ANOTHER_KEY))).rejects.toMatchObject({ code: 'key_unavailable' });
  damage(1, Buffer.alloc(100));
  await expect(salvaged()).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringContaining('restore') as string,
  });
  expect(existsSync(join(folder, 'memory.salvaging.db'))).toBe(false);
  folder = tempFolder();
  await expect(salvaged()).rejects.toMatchObject({ code: 'not_found' });
});
