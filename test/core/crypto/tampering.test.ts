import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite, { type Database } from 'better-sqlite3';
import * as fc from 'fast-check';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { asFailure } from '../../../src/contract/failure.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { Entry, MemoryStore, Namespace, Space } from '../../../src/core/store/store.ts';
import { type ManualClock, manualClock, MINUTE } from '../../support/clock.ts';
import { aDraft, forceRow, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const me: Namespace = { subject: 'me' };
const FACTS = 200;

/** Edits by an attacker who has the file but not the key (R-SEAL-03, R-SEAL-04). */
describe('a file that was edited without the key', () => {
  let store: MemoryStore;
  let facts: Space;
  let intruder: Database;
  let time: ManualClock;
  const keyOf = (index: number): string => `facts/${index}`;
  const read = (index: number): Promise<Entry | undefined> => facts.get(keyOf(index));

  /** Fact `index` is row `index + 1`, because the facts are written in this order. */
  const rowOf = (index: number): number => index + 1;

  beforeEach(async () => {
    const folder = tempFolder();
    const clock = manualClock();
    time = clock;
    store = await openFileStore(folder, clock);
    facts = store.space(me, 'fact');
    await Promise.all(
      Array.from({ length: FACTS }, (_, index) =>
        facts.put(aDraft({ key: keyOf(index), value: `value ${index}`, category: index % 2 ? 'odd' : 'even' })),
      ),
    );
    await clock.advance(MINUTE);
    intruder = new Sqlite(join(folder, 'memory.db'));
    // Speeds up thousands of edits, which need not survive a power failure.
    intruder.pragma('synchronous = OFF');
    const db = intruder;
    onTestFinished(() => void db.close());
  });

  const expectBroken = async (index: number, how: string): Promise<void> => {
    expect(await read(index), how).toBeUndefined();
  };

  const columns = ['namespace', 'kind', 'key_hash', 'category', 'created_at', 'updated_at', 'expires_at', 'sealed'] as const;

  test('has exactly the columns that these tests edit', () => {
    const named = intruder.pragma('table_info(entry)') as { name: string }[];
    expect(named.map(({ name }) => name)).toEqual(columns);
  });

  // Verification counts the edited row as broken and all others as intact (R-DUR-13).
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
  ])('$column = $to is detected, and every other row stays readable', async ({ column, to }) => {
    intruder.prepare(`UPDATE entry SET ${column} = ${to} WHERE rowid = ?`).run(rowOf(0));
    await expectBroken(0, 'edited');
    const { entries } = await facts.page({ sort: 'updated', limit: FACTS });
    expect(entries.map(({ value }) => value)).toEqual(
      Array.from({ length: FACTS - 1 }, (_, back) => `value ${FACTS - 1 - back}`),
    );
    expect(await store.upkeep?.verify()).toEqual({ entries: FACTS - 1, broken: 1, structure: [] });
    expect(store.status().quarantined).toBe(1);
  });

  test('entries whose subject or session was changed in the file do not open', async () => {
    for (const [subject, session] of [
      ['you', ''],
      ['m', 'e'],
    ]) {
      intruder.prepare('UPDATE namespace SET subject = ?, session = ?').run(subject, session);
      // Read as the forged owner, before the store has loaded that namespace.
      const stolen = store.space(session ? { subject: subject ?? '', session } : { subject: subject ?? '' }, 'fact');
      expect((await stolen.page({ sort: 'updated', limit: FACTS })).entries).toEqual([]);
    }
    expect(store.status().quarantined).toBe(FACTS);
  });

  test.each(columns)('%s swapped between rows is detected', async (column) => {
    // 200 more facts. Every column differs between adjacent rows.
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
      // Overwrite the fact, so that created_at differs from updated_at.
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

  test('rows that moved to other row ids are still read correctly', async () => {
    intruder.exec('UPDATE entry SET rowid = rowid + 10000');
    for (let index = 0; index < FACTS; index += 1) expect((await read(index))?.value).toBe(`value ${index}`);
  });

  test('every flipped byte in 200 rows is detected (R-SEAL-05)', async () => {
    const set = intruder.prepare('UPDATE entry SET sealed = ? WHERE rowid = ?');
    let flipped = 0;
    for (let index = 0; index < FACTS; index += 1) {
      const sealed = intruder.prepare('SELECT sealed FROM entry WHERE rowid = ?').pluck().get(rowOf(index)) as Buffer;
      for (let at = 0; at < sealed.length; at += 1) {
        const changed = Buffer.from(sealed);
        changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
        set.run(changed, rowOf(index));
        if ((await read(index)) !== undefined) throw new Error(`The flipped byte ${at} of row ${index} was not detected.`);
        flipped += 1;
      }
      set.run(sealed, rowOf(index));
      expect((await read(index))?.value).toBe(`value ${index}`);
    }
    expect(flipped).toBeGreaterThan(FACTS * 60);
    // Restored rows are no longer quarantined.
    expect(store.status().quarantined).toBe(0);
  });

  test('a version does not open as the fact, and the fact does not open as a version', async () => {
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

  test('verification counts a secret that was moved to another name (R-DUR-13)', async () => {
    await store.vault.write('one', 'secret');
    await store.vault.write('other', 'secret');
    intruder.exec("UPDATE meta SET value = (SELECT value FROM meta WHERE name = 'vault other') WHERE name = 'vault one'");
    expect(await store.upkeep?.verify()).toEqual({ entries: FACTS, broken: 1, structure: [] });
  });

  test('a fact with a broken seal can be stored again, and can be forgotten (R-SEAL-04)', async () => {
    intruder.prepare('UPDATE entry SET expires_at = expires_at + 1 WHERE rowid IN (?, ?)').run(rowOf(0), rowOf(1));
    expect(await facts.put(aDraft({ key: keyOf(0), value: 'anew' }))).toMatchObject({ status: 'created' });
    expect((await read(0))?.value).toBe('anew');
    await store.forget('me', { kinds: ['fact'], category: 'odd' });
    expect(await store.upkeep?.verify()).toEqual({ entries: FACTS / 2, broken: 0, structure: [] });
    expect(store.status().quarantined).toBe(0);
  });

  test('pages continue past unreadable rows', async () => {
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

/** Returns all readable facts and versions, and the code of the failure, if any. */
async function everything(folder: string, clock: ManualClock): Promise<{ seen: Entry[]; code?: string }> {
  const seen: Entry[] = [];
  try {
    await using store = await openStore({ folder, clock, sources: withKey() });
    const space = store.space(me, 'fact');
    const { entries } = await space.page({ sort: 'updated', limit: 200 });
    seen.push(...entries);
    for (const { key } of entries) seen.push(...(await space.history(key)));
    return { seen };
  } catch (error) {
    return { seen, code: asFailure(error).code };
  }
}

test.each([
  'sealed = NULL',
  'sealed = hex(sealed)',
  'sealed = 5',
  'category = NULL',
  // The seal covers the same bytes, but their type differs.
  'category = CAST(category AS BLOB)',
  'key_hash = NULL',
  'key_hash = hex(key_hash)',
  'created_at = NULL',
  "created_at = 'then'",
  'updated_at = NULL',
  "expires_at = 'never'",
])(
  'a row with %s, which only a damaged page can have, is hidden, and every other row is returned (R-SEAL-04)',
  async (change) => {
    const [folder, clock] = [tempFolder(), manualClock()];
    const original = await openFileStore(folder, clock);
    for (let index = 0; index < 5; index += 1) await original.space(me, 'fact').put(aDraft({ key: keyAt(index) }));
    await original[Symbol.asyncDispose]();
    expect(forceRow(folder, 1, change)).toBe(1);
    const { seen, code } = await everything(folder, clock);
    expect({ keys: seen.map(({ key }) => key), code }).toEqual({ keys: [4, 3, 2, 1].map(keyAt), code: undefined });
  },
);

test.each([
  { what: 'another schema format', at: 47, byte: 5 },
  { what: 'no schema', at: 63, byte: 0 },
])('a file whose header claims $what is refused as damaged (R-SEAL-03)', async ({ at, byte }) => {
  const [folder, clock] = [tempFolder(), manualClock()];
  const original = await openFileStore(folder, clock);
  await original.space(me, 'fact').put(aDraft());
  await original[Symbol.asyncDispose]();
  const file = join(folder, 'memory.db');
  const bytes = readFileSync(file);
  bytes[at] = byte;
  writeFileSync(file, bytes);
  await expect(openFileStore(folder, clock)).rejects.toMatchObject({
    code: 'store_unavailable',
    message: expect.stringMatching(/its header does not match its contents/) as string,
  });
  expect(readFileSync(file).equals(bytes)).toBe(true);
});

const keyAt = (index: number): string => `facts/${index}`;

/** The number of damaged files to test. */
const DAMAGES = Number(process.env['HELMDECK_TEST_DAMAGES'] ?? 300);

test(
  'a file with changed bytes is refused, or returns only entries that were written (R-SEAL-03, R-DUR-05)',
  { timeout: 600_000 },
  async () => {
    const [folder, clock] = [tempFolder(), manualClock()];
    const original = await openFileStore(folder, clock);
    const written = new Map(Array.from({ length: 60 }, (_, index) => [`facts/${index}`, `value ${index}`]));
    const space = original.space(me, 'fact');
    await Promise.all([...written].map(([key, value]) => space.put(aDraft({ key, value: `${value} before` }))));
    await Promise.all([...written].map(([key, value]) => space.put(aDraft({ key, value }))));
    await original[Symbol.asyncDispose]();
    const whole = readFileSync(join(folder, 'memory.db'));
    const writtenValues = new Set([...written.values()].flatMap((value) => [value, `${value} before`]));
    const outcomes = { refused: 0, short: 0, whole: 0 };
    const damage = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(damage, async (changes) => {
        const bytes = Buffer.from(whole);
        for (const [at, byte] of changes) bytes[at] = byte;
        const damaged = tempFolder();
        writeFileSync(join(damaged, 'memory.db'), bytes, { mode: 0o600 });
        const { code, seen } = await everything(damaged, clock);
        expect(code ?? 'store_unavailable').toMatch(/^(store|key)_unavailable$/);
        expect(seen.filter(({ key, value }) => !written.has(key) || !writtenValues.has(value))).toEqual([]);
        outcomes[code ? 'refused' : seen.length < 2 * written.size ? 'short' : 'whole'] += 1;
      }),
      { numRuns: DAMAGES },
    );
    expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(0);
  },
);
