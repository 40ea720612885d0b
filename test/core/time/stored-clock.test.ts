import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { DAY, manualClock, HOUR, MINUTE, START, settle } from '../../support/clock.ts';
import { aDraft, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');

const rowsIn = (folder: string): number => {
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  const rows = db.prepare('SELECT count(*) FROM entry').pluck().get() as number;
  db.close();
  return rows;
};

describe('the stored time of a memory', () => {
  test('survives a restart: a clock set back between two runs extends no lifetime (R-TIME-04)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    {
      await using store = await openStore({ folder, clock, sources: withKey() });
      await facts(store).put(aDraft({ lifetime: 2 * HOUR }));
      await clock.advance(HOUR);
    }
    const later = manualClock(START - 365 * DAY);
    const store = await openFileStore(folder, later);
    expect(store.now()).toBe(START + HOUR);
    await later.advance(HOUR - 1);
    expect(await facts(store).get(aDraft().key)).toBeDefined();
    await later.advance(1);
    expect(await facts(store).get(aDraft().key)).toBeUndefined();
  });

  test('is saved without writes, and survives a kill of the program (R-TIME-04)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    await facts(store).put(aDraft());
    for (let hour = 0; hour < 48; hour += 1) {
      await clock.advance(HOUR);
      await facts(store).get(aDraft().key);
      await settle();
    }
    // A copy of the open files is what a killed program leaves.
    const killed = tempFolder();
    const source = new Sqlite(join(folder, 'memory.db'), { readonly: true });
    await source.backup(join(killed, 'memory.db'));
    source.close();
    const next = await openFileStore(killed, manualClock(START));
    expect(next.now()).toBeGreaterThanOrEqual(START + 47 * HOUR);
  });

  test('is not saved again by a start whose clock is right, so the first request does not wait for a commit', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    {
      await using store = await openStore({ folder, clock, sources: withKey() });
      await facts(store).put(aDraft());
    }
    const saved = (): unknown => {
      const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
      const bytes: unknown = db.prepare("SELECT value FROM meta WHERE name = 'clock'").pluck().get();
      db.close();
      return bytes;
    };
    const before = saved();
    expect(before).toBeInstanceOf(Buffer);
    await clock.advance(MINUTE);
    const store = await openFileStore(folder, clock);
    await facts(store).get(aDraft().key);
    await settle();
    expect(saved()).toEqual(before);
  });

  test.each([
    { what: 'changed', edit: "UPDATE meta SET value = zeroblob(length(value)) WHERE name = 'clock'" },
    { what: 'replaced by a number', edit: "UPDATE meta SET value = 99999999999999 WHERE name = 'clock'" },
  ])('$what by another program, it deletes nothing until the owner confirms the clock (R-TIME-03)', async ({ edit }) => {
    const folder = tempFolder();
    {
      await using store = await openStore({ folder, clock: manualClock(), sources: withKey() });
      await facts(store).put(aDraft({ lifetime: HOUR }));
      await facts(store).put(aDraft({ key: 'long' }));
    }
    const db = new Sqlite(join(folder, 'memory.db'));
    db.exec(edit);
    db.close();
    const clock = manualClock(START + 2 * HOUR);
    const store = await openFileStore(folder, clock);
    await store.sweep(100);
    expect(store.status().clock).toMatchObject({ at: 'ahead', why: expect.stringContaining('cannot be read') });
    expect(rowsIn(folder)).toBe(2);
    expect(await facts(store).get('long')).toBeDefined();
    await clock.advance(2 * DAY);
    expect(rowsIn(folder)).toBe(2);
    await store.trustClock();
    await clock.advance(MINUTE);
    expect(rowsIn(folder)).toBe(1);
  });

  test('a machine that slept through an expiry sweeps at the next read (R-PURGE-02)', async () => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    await facts(store).put(aDraft({ lifetime: 10 * HOUR }));
    // The steady clock stops while a machine sleeps.
    clock.sleep(12 * HOUR);
    expect(await facts(store).get(aDraft().key)).toBeUndefined();
    await settle();
    await clock.advance(1000);
    expect(rowsIn(folder)).toBe(0);
  });

  test('waiting for the next expiry does not keep the program alive (R-PURGE-05)', async () => {
    const folder = tempFolder();
    const root = join(import.meta.dirname, '../../../src/core');
    const child = spawn(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `import { openStore } from ${JSON.stringify(join(root, 'store/open-store.ts'))};
         import { systemClock } from ${JSON.stringify(join(root, 'time/clock.ts'))};
         import { environmentSource } from ${JSON.stringify(join(root, 'crypto/keys/environment-source.ts'))};
         const store = await openStore({ folder: ${JSON.stringify(folder)}, clock: systemClock, sources: () => [environmentSource(process.env)] });
         const draft = { key: 'k', value: 'v', category: 'c', tags: [], author: { client: '', origin: '', token: '' }, lifetime: 3_600_000 };
         await store.space({ subject: 'me' }, 'fact').put(draft);
         console.log('stored');`,
      ],
      { env: { ...process.env, HELMDECK_MEMORY_KEY: '5e'.repeat(32) }, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const stuck = setTimeout(() => child.kill('SIGKILL'), 20_000);
    const [code] = (await once(child, 'exit')) as [number | null];
    clearTimeout(stuck);
    expect(code).toBe(0);
    expect(rowsIn(folder)).toBe(1);
  });
});
