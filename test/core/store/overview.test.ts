import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { QUOTA } from '../../../src/contract/limits.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { MemoryStore, Space } from '../../../src/core/store/store.ts';
import { DAY, type ManualClock, manualClock, HOUR, MINUTE } from '../../support/clock.ts';
import { A_KEY, aDraft, manualKeySource, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const most = { categories: 50, keys: 3 };

async function opened(sources = withKey()): Promise<{ store: MemoryStore; facts: Space; clock: ManualClock; folder: string }> {
  const [clock, folder] = [manualClock(), tempFolder()];
  const store = await openStore({ folder, clock, sources, quota: QUOTA });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return { store, facts: store.space({ subject: 'me' }, 'fact'), clock, folder };
}

/** Changes rows of a category in the file, counted from the oldest. */
function damage(folder: string, category: string, numbers: readonly number[]): void {
  const db = new Sqlite(join(folder, 'memory.db'));
  const rows = db.prepare('SELECT rowid FROM entry WHERE category = ? ORDER BY rowid').pluck().all(category) as number[];
  for (const number of numbers) db.prepare('UPDATE entry SET created_at = created_at - 1 WHERE rowid = ?').run(rows[number]);
  db.close();
}

describe('rows with a broken seal', () => {
  test('are skipped among the newest keys, and counted', async () => {
    const { store, facts, folder } = await opened();
    for (let index = 0; index < 9; index += 1) await facts.put(aDraft({ key: `k${index}`, category: 'x' }));
    for (let index = 0; index < 4; index += 1) await facts.put(aDraft({ key: `l${index}`, category: 'y' }));
    damage(folder, 'x', [8, 7, 5, 4]);
    damage(folder, 'y', [0, 1, 2, 3]);
    expect((await facts.overview(most)).categories.map(({ recent }) => recent)).toEqual([['k6', 'k3', 'k2'], []]);
    expect(store.status().quarantined).toBe(8);
  });

  test.each(['updated', 'oldest', 'expires'] as const)('are skipped in pages sorted by %s', async (sort) => {
    const { facts, folder } = await opened();
    const broken = (index: number): boolean => index % 3 === 0 || (index > 150 && index < 250);
    const all = Array.from({ length: 300 }, (_, index) => index);
    await Promise.all(all.map((index) => facts.put(aDraft({ key: `k${index}`, category: 'x' }))));
    damage(folder, 'x', all.filter(broken));
    const whole = all.filter((index) => !broken(index)).map((index) => `k${index}`);
    const wanted = sort === 'updated' ? whole.toReversed() : whole;
    for (const limit of [1, 7, 50]) {
      const seen: string[] = [];
      let page = await facts.page({ sort, limit });
      for (; page.next; page = await facts.page({ sort, limit, after: page.next })) {
        expect(page.entries).toHaveLength(limit);
        seen.push(...page.entries.map(({ key }) => key));
      }
      expect([...seen, ...page.entries.map(({ key }) => key)]).toEqual(wanted);
    }
  });
});

describe('cached keys', () => {
  test('are read again only when their category changes', async () => {
    const { store, facts, folder } = await opened();
    for (const key of ['a', 'b']) await facts.put(aDraft({ key, category: 'x' }));
    await facts.put(aDraft({ key: 'c', category: 'y' }));
    const before = await facts.overview(most);
    // If they were opened again, they would be found broken.
    damage(folder, 'x', [0, 1]);
    damage(folder, 'y', [0]);
    expect(await facts.overview(most)).toEqual(before);
    expect(store.status().quarantined).toBe(0);
    await facts.put(aDraft({ key: 'd', category: 'y' }));
    expect((await facts.overview(most)).categories.map(({ recent }) => recent)).toEqual([['b', 'a'], ['d']]);
    expect(store.status().quarantined).toBe(1);
  });

  test('are dropped by a lock, and when the key source loses the key', async () => {
    const source = manualKeySource({ at: 'found', key: Buffer.from(A_KEY, 'hex') });
    const { store, facts, clock, folder } = await opened(() => [source]);
    await facts.put(aDraft({ key: 'a', category: 'x' }));
    for (const leave of [() => store.lock(), () => undefined]) {
      await facts.overview(most);
      leave();
      source.set({ at: 'absent' });
      expect((await store.unlock()).at).not.toBe('ok');
      await expect(facts.overview(most)).rejects.toMatchObject({ code: 'key_unavailable' });
      source.set({ at: 'found', key: Buffer.from(A_KEY, 'hex') });
      await clock.advance(MINUTE);
      expect((await store.unlock()).at).toBe('ok');
      expect((await facts.overview(most)).categories).toHaveLength(1);
    }
    await facts.overview(most);
    store.lock();
    damage(folder, 'x', [0]);
    await store.unlock();
    // The cache is empty.
    expect((await facts.overview(most)).categories).toEqual([{ name: 'x', count: 1, recent: [] }]);
  });

  test('are right for more categories than the cache holds', async () => {
    const { store } = await opened();
    const spaces = Array.from({ length: 90 }, (_, index) => store.space({ subject: `subject ${index}` }, 'fact'));
    await Promise.all(
      spaces.flatMap((space, index) =>
        Array.from({ length: 50 }, (_, number) => space.put(aDraft({ key: `${index}/${number}`, category: `c${number}` }))),
      ),
    );
    for (let turn = 0; turn < 2; turn += 1) {
      for (const [index, space] of spaces.entries()) {
        const { categories } = await space.overview(most);
        expect(categories).toHaveLength(50);
        expect(categories.every(({ name, recent }) => recent.join() === `${index}/${name.slice(1)}`)).toBe(true);
      }
    }
  });
});

test('an entry that expires during a sweep is counted once (R-TIME-01)', async () => {
  const { store, facts, clock } = await opened();
  for (let index = 0; index < 40; index += 1) {
    await facts.put(aDraft({ key: `k${index}`, category: `c${index % 2}`, lifetime: index < 30 ? HOUR : DAY }));
  }
  clock.jump(HOUR);
  for (let left = 30; left > 0; left -= 10) {
    expect((await facts.overview(most)).categories.map(({ count }) => count)).toEqual([5, 5]);
    await store.sweep(10);
  }
  expect((await facts.overview(most)).categories.map(({ count }) => count)).toEqual([5, 5]);
});
