import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Entry, MemoryStore, Namespace, Space } from '../../src/core/store.ts';
import { type HandClock, handClock, MINUTE } from '../support/clock.ts';
import { aDraft, openKeptStore } from '../support/store.ts';
import { tempFolder } from '../support/temp-folder.ts';

const me: Namespace = { subject: 'me' };
const FACTS = 200;

/** Somebody with the file in hand and without the key (R-SEAL-03, R-SEAL-04). */
describe('a file that somebody edited', () => {
  let store: MemoryStore;
  let facts: Space;
  let intruder: Database;
  let time: HandClock;
  const keyOf = (index: number): string => `facts/${index}`;
  const read = (index: number): Promise<Entry | undefined> => facts.get(keyOf(index));

  /** Fact `index` is the row `index + 1`: they were written in this order. */
  const rowOf = (index: number): number => index + 1;

  beforeEach(async () => {
    const folder = tempFolder();
    const clock = handClock();
    time = clock;
    store = await openKeptStore(folder, clock);
    facts = store.space(me, 'fact');
    await Promise.all(
      Array.from({ length: FACTS }, (_, index) =>
        facts.put(aDraft({ key: keyOf(index), value: `value ${index}`, category: index % 2 ? 'odd' : 'even' })),
      ),
    );
    await clock.pass(MINUTE);
    intruder = new Sqlite(join(folder, 'memory.db'));
    // Thousands of edits: they need not survive a power cut.
    intruder.pragma('synchronous = OFF');
    const db = intruder;
    onTestFinished(() => void db.close());
  });

  const expectBroken = async (index: number, how: string): Promise<void> => {
    expect(await read(index), how).toBeUndefined();
  };

  const columns = ['namespace', 'kind', 'key_hash', 'category', 'created_at', 'updated_at', 'expires_at', 'sealed'] as const;

  test('holds the columns that are tried here, and no other', () => {
    const named = intruder.pragma('table_info(entry)') as { name: string }[];
    expect(named.map(({ name }) => name)).toEqual(columns);
  });

  test.each([
    { column: 'namespace', to: 'namespace + 1' },
    { column: 'kind', to: '5' },
    { column: 'key_hash', to: "x'00112233445566778899aabbccddeeff'" },
    { column: 'category', to: "'odd'" },
    { column: 'category', to: "category || ' '" },
    { column: 'created_at', to: 'created_at - 1' },
    { column: 'updated_at', to: 'updated_at + 1' },
    { column: 'expires_at', to: 'expires_at + 31536000000' },
    { column: 'expires_at', to: 'expires_at + 1' },
    { column: 'expires_at', to: '9223372036854775807' },
    { column: 'sealed', to: "x''" },
    { column: 'sealed', to: "CAST(sealed || x'00' AS BLOB)" },
    { column: 'sealed', to: 'substr(sealed, 1, length(sealed) - 1)' },
    { column: 'sealed', to: 'zeroblob(length(sealed))' },
  ])('$column = $to is seen, and every other row stays readable', async ({ column, to }) => {
    intruder.prepare(`UPDATE entry SET ${column} = ${to} WHERE rowid = ?`).run(rowOf(0));
    await expectBroken(0, 'edited');
    const { entries } = await facts.page({ sort: 'updated', limit: FACTS });
    expect(entries.map(({ value }) => value)).toEqual(
      Array.from({ length: FACTS - 1 }, (_, back) => `value ${FACTS - 1 - back}`),
    );
    expect(await store.upkeep?.verify()).toEqual({ entries: FACTS, broken: 1, structure: [] });
    expect(store.status().quarantined).toBe(1);
  });

  test('another subject, or a session, written into the file opens nothing', async () => {
    for (const [subject, session] of [
      ['you', ''],
      ['m', 'e'],
    ]) {
      intruder.prepare('UPDATE namespace SET subject = ?, session = ?').run(subject, session);
      // Asked by whom the rows are said to belong to now, before the store has seen the name.
      const stolen = store.space(session ? { subject: subject ?? '', session } : { subject: subject ?? '' }, 'fact');
      expect((await stolen.page({ sort: 'updated', limit: FACTS })).entries).toEqual([]);
    }
    expect(store.status().quarantined).toBe(FACTS);
  });

  test.each(columns)('%s swapped between rows is seen', async (column) => {
    // Two hundred more, in which every column differs from one row to the next.
    const spaces = [
      store.space({ subject: 'a' }, 'fact'),
      store.space({ subject: 'b' }, 'pack'),
      store.space({ subject: 'a', session: 's' }, 'audit'),
      store.space({ subject: 'b' }, 'fact'),
    ];
    const spaceOf = (index: number): Space => spaces[index % spaces.length]!;
    for (let index = 0; index < FACTS; index += 1) {
      time.jump(1 + (index % 7));
      await spaceOf(index).put(
        aDraft({ key: keyOf(index), category: `category ${index}`, value: `other ${index}`, lifetime: (60 + index) * MINUTE }),
      );
      // What was changed once has a beginning of its own.
      time.jump(1);
      await spaceOf(index).put(
        aDraft({ key: keyOf(index), category: `category ${index}`, value: `value ${index}`, lifetime: (60 + index) * MINUTE }),
      );
    }
    const rows = intruder
      .prepare("SELECT rowid FROM entry WHERE category LIKE 'category %' AND kind <> 2 ORDER BY rowid")
      .pluck()
      .all() as number[];
    expect(rows).toHaveLength(FACTS);
    const value = intruder.prepare(`SELECT ${column} FROM entry WHERE rowid = ?`).pluck();
    const set = intruder.prepare(`UPDATE entry SET ${column} = ? WHERE rowid = ?`);
    let swaps = 0;
    for (let index = 0; index < FACTS; index += 2) {
      const [one, other] = [rows[index]!, rows[index + 1]!];
      const [first, second] = [value.get(one), value.get(other)];
      set.run(second, one);
      set.run(first, other);
      expect(await spaceOf(index).get(keyOf(index)), `${column} of ${index}`).toBeUndefined();
      expect(await spaceOf(index + 1).get(keyOf(index + 1)), `${column} of ${index + 1}`).toBeUndefined();
      set.run(first, one);
      set.run(second, other);
      expect((await spaceOf(index).get(keyOf(index)))?.value).toBe(`value ${index}`);
      swaps += 1;
    }
    expect(swaps).toBe(FACTS / 2);
  });

  test('whole rows that changed places are read as what they are', async () => {
    intruder.exec('UPDATE entry SET rowid = rowid + 10000');
    for (let index = 0; index < FACTS; index += 1) expect((await read(index))?.value).toBe(`value ${index}`);
  });

  test('every flipped byte of 200 rows is seen (R-SEAL-05)', async () => {
    const set = intruder.prepare('UPDATE entry SET sealed = ? WHERE rowid = ?');
    let flipped = 0;
    for (let index = 0; index < FACTS; index += 1) {
      const sealed = intruder.prepare('SELECT sealed FROM entry WHERE rowid = ?').pluck().get(rowOf(index)) as Buffer;
      for (let at = 0; at < sealed.length; at += 1) {
        const changed = Buffer.from(sealed);
        changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
        set.run(changed, rowOf(index));
        if ((await read(index)) !== undefined) throw new Error(`Byte ${at} of row ${index} was flipped and nobody noticed.`);
        flipped += 1;
      }
      set.run(sealed, rowOf(index));
      expect((await read(index))?.value).toBe(`value ${index}`);
    }
    expect(flipped).toBeGreaterThan(FACTS * 60);
    // Put back as they were, they are no longer counted.
    expect(store.status().quarantined).toBe(0);
  });

  test('a version cannot be passed off as the fact, nor the fact as a version', async () => {
    await facts.put(aDraft({ key: keyOf(0), value: 'newer', category: 'even' }));
    const version = intruder.prepare('SELECT rowid FROM entry WHERE kind = 2').pluck().get() as number;
    intruder.prepare('DELETE FROM entry WHERE rowid = ?').run(rowOf(0));
    intruder.prepare('UPDATE entry SET kind = 1 WHERE rowid = ?').run(version);
    await expectBroken(0, 'a version as the fact');
    intruder.prepare('UPDATE entry SET kind = 2 WHERE rowid = ?').run(version);
    intruder.prepare('UPDATE entry SET kind = 2 WHERE rowid = ?').run(rowOf(1));
    await expectBroken(1, 'a fact as a version');
    expect(await facts.history(keyOf(1))).toEqual([]);
  });

  test('a fact whose seal is broken can be stored anew, and forgotten (R-SEAL-04)', async () => {
    intruder.prepare('UPDATE entry SET expires_at = expires_at + 1 WHERE rowid IN (?, ?)').run(rowOf(0), rowOf(1));
    expect(await facts.put(aDraft({ key: keyOf(0), value: 'anew' }))).toMatchObject({ status: 'created' });
    expect((await read(0))?.value).toBe('anew');
    await store.forget('me', { kinds: ['fact'], category: 'odd' });
    expect(await store.upkeep?.verify()).toEqual({ entries: FACTS / 2, broken: 0, structure: [] });
    expect(store.status().quarantined).toBe(0);
  });

  test('pages go on over rows that cannot be shown', async () => {
    intruder.exec('UPDATE entry SET created_at = created_at - 1 WHERE rowid % 3 <> 0');
    const seen: string[] = [];
    let page = await facts.page({ sort: 'updated', limit: 10 });
    for (;;) {
      seen.push(...page.entries.map(({ key }) => key));
      if (!page.next) break;
      expect(page.entries).toHaveLength(10);
      page = await facts.page({ sort: 'updated', limit: 10, after: page.next });
    }
    expect(seen).toHaveLength(Math.floor(FACTS / 3));
  });
});
