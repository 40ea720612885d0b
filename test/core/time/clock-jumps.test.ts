import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { TokenRegistry } from '../../../src/core/access/token-registry.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { DAY, type ManualClock, manualClock, HOUR, MINUTE, settle, START } from '../../support/clock.ts';
import { aDraft, anAuthor, openFileStore, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const facts = (store: MemoryStore) => store.space({ subject: 'me' }, 'fact');

const tokensOf = (store: MemoryStore): Promise<TokenRegistry> =>
  TokenRegistry.open({ vault: store.vault, now: () => store.now(), doubtful: () => store.status().clock.at !== 'ok' });

const aToken = { name: 'one', client: 'claude-code', subject: 'me', scopes: ['memory:read' as const], days: 90 };

const rowsIn = (folder: string): number => {
  const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
  const rows = db.prepare('SELECT count(*) FROM entry').pluck().get() as number;
  db.close();
  return rows;
};

/** Copies the files, as a killed program leaves them. */
function crashCopy(folder: string): string {
  const copy = tempFolder();
  for (const name of ['memory.db', 'memory.db-wal'])
    if (existsSync(join(folder, name))) copyFileSync(join(folder, name), join(copy, name));
  return copy;
}

/** Lets the scheduled work finish. */
async function rested(clock: ManualClock): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) {
    await clock.advance(1000);
    await settle();
  }
}

/** Waits until a fact is no longer dated ahead. */
const corrected = (store: MemoryStore, key: string, clock: ManualClock): Promise<void> =>
  vi.waitFor(async () => expect((await facts(store).get(key))?.updatedAt).toBeLessThanOrEqual(clock.now()), 10_000);

/** Runs for three hours with the clock off by `by`, while a client reads and the memory sweeps. */
async function threeHoursOff(clock: ManualClock, by: number, store: MemoryStore): Promise<void> {
  clock.jump(by);
  for (let minutes = 0; minutes < 180; minutes += 30) {
    await facts(store).get('long');
    await store.sweep(100);
    await clock.advance(30 * MINUTE);
    await settle();
  }
  clock.jump(-by);
}

describe('a clock that is wrong for three hours', () => {
  test.each([
    { what: '400 days ahead', by: 400 * DAY },
    { what: '400 days behind', by: -400 * DAY },
  ])('$what loses no fact and no token, and serves nothing that has expired (R-TIME-06)', async ({ by }) => {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const tokens = await tokensOf(store);
    const { token } = await tokens.mint(aToken);
    await facts(store).put(aDraft({ key: 'long', value: 'first' }));
    await clock.advance(MINUTE);
    await facts(store).put(aDraft({ key: 'long', value: 'second' }));
    await facts(store).put(aDraft({ key: 'short', lifetime: 2 * HOUR }));
    await threeHoursOff(clock, by, store);
    expect((await facts(store).get('long'))?.value).toBe('second');
    expect((await facts(store).history('long')).map(({ value }) => value)).toEqual(['first']);
    expect(await facts(store).get('short')).toBeUndefined();
    await expect(tokens.verify(token, 'rest')).resolves.toMatchObject({ client: 'claude-code' });
    expect(store.status().clock).toEqual({ at: 'ok' });
    await rested(clock);
    expect(rowsIn(folder)).toBe(2);
  });

  test.each([400 * DAY, -400 * DAY])(
    'a program that starts and ends with a clock off by %d ms loses nothing (R-TIME-06)',
    async (by) => {
      const folder = tempFolder();
      const clock = manualClock();
      const open = () => openStore({ folder, clock, sources: withKey() });
      let token: string;
      {
        await using store = await open();
        await facts(store).put(aDraft({ key: 'long' }));
        const tokens = await tokensOf(store);
        ({ token } = await tokens.mint(aToken));
        await tokens[Symbol.asyncDispose]();
      }
      clock.jump(by);
      for (let start = 0; start < 3; start += 1) {
        await using store = await open();
        for (let minutes = 0; minutes < 60; minutes += 20) {
          await store.sweep(100);
          await clock.advance(20 * MINUTE);
          await settle();
        }
      }
      clock.jump(-by);
      const store = await openFileStore(folder, clock);
      expect(store.status().clock).toEqual({ at: 'ok' });
      expect(await facts(store).get('long')).toBeDefined();
      await expect((await tokensOf(store)).verify(token, 'rest')).resolves.toMatchObject({ client: 'claude-code' });
    },
  );

  test('a jump while the machine sleeps loses nothing (R-TIME-06)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    await facts(store).put(aDraft({ key: 'long' }));
    await facts(store).put(aDraft({ key: 'short', lifetime: HOUR }));
    clock.sleep(10 * HOUR);
    await threeHoursOff(clock, 400 * DAY, store);
    expect(await facts(store).get('long')).toBeDefined();
    expect(await facts(store).get('short')).toBeUndefined();
    clock.sleep(30 * DAY);
    expect(store.status().clock).toEqual({ at: 'ok' });
    expect(await facts(store).get('long')).toBeDefined();
  });

  test('a token minted while the clock is wrong is valid afterwards, and a revoked token stays revoked (R-TIME-06)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    const tokens = await tokensOf(store);
    const revoked = await tokens.mint(aToken);
    await tokens.revoke({ id: revoked.id, unrecorded: false });
    clock.jump(400 * DAY);
    const { token } = await tokens.mint(aToken);
    const other = await tokens.mint(aToken);
    await tokens.revoke({ id: other.id, unrecorded: false });
    clock.jump(-400 * DAY);
    await expect(tokens.verify(token, 'rest')).resolves.toMatchObject({ client: 'claude-code' });
    await expect(tokens.verify(revoked.token, 'rest')).rejects.toThrow('revoked');
    await expect(tokens.verify(other.token, 'rest')).rejects.toThrow('revoked');
  });

  test('a fact that was forgotten before stays forgotten after a restore (R-TIME-06, R-FORGET-06)', async () => {
    const clock = manualClock();
    const folder = tempFolder();
    const store = await openFileStore(folder, clock);
    await store.forget('me', { kinds: ['fact'], key: 'gone' });
    await facts(store).put(aDraft({ key: 'gone' }));
    await store.forget('me', { kinds: ['fact'], key: 'gone' });
    const tombstones = (): number => {
      const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
      const count = db.prepare('SELECT count(*) FROM tombstone').pluck().get() as number;
      db.close();
      return count;
    };
    const before = tombstones();
    await threeHoursOff(clock, 4000 * DAY, store);
    expect(before).toBeGreaterThan(0);
    expect(tombstones()).toBe(before);
  });
});

describe('a fact that is written while the clock is wrong', () => {
  test.each([false, true])(
    'keeps its lifetime and its order afterwards (R-TIME-07, R-TIME-02), over a restart: %s',
    async (restart) => {
      const folder = tempFolder();
      const clock = manualClock();
      let store = await openStore({ folder, clock, sources: withKey() });
      await facts(store).put(aDraft({ key: 'k', value: '1' }));
      await facts(store).put(aDraft({ key: 'renewed', value: 'same', lifetime: 300 * DAY }));
      await facts(store).put(aDraft({ key: 'tagged', value: 'same', lifetime: 365 * DAY }));
      const tagged = await facts(store).get('tagged');
      clock.jump(200 * DAY);
      await facts(store).put(aDraft({ key: 'k', value: '2' }));
      await facts(store).put(aDraft({ key: 'k', value: '3' }));
      await facts(store).put(aDraft({ key: 'new', lifetime: 30 * DAY }));
      await facts(store).put(aDraft({ key: 'renewed', value: 'same', lifetime: 20 * DAY }));
      await facts(store).change('tagged', { tags: ['another'], author: anAuthor });
      await store.space({ subject: 'me' }, 'cache').put(aDraft({ key: 'answer', lifetime: HOUR }));
      await clock.advance(HOUR);
      if (restart) {
        await store[Symbol.asyncDispose]();
        clock.jump(-200 * DAY);
        store = await openStore({ folder, clock, sources: withKey() });
      } else clock.jump(-200 * DAY);
      store.now();
      await rested(clock);
      const now = store.now();
      expect(now).toBe(clock.now());

      const read = async (key: string) => {
        const entry = await facts(store).get(key);
        if (!entry) throw new Error(`${key} is not there.`);
        return entry;
      };
      expect((await read('k')).value).toBe('3');
      const history = await facts(store).history('k');
      expect(history.map(({ value }) => value)).toEqual(['2', '1']);
      const moments = [await read('k'), ...history].map(({ updatedAt }) => updatedAt);
      expect(moments).toEqual(moments.toSorted((one, other) => other - one));
      expect(new Set(moments).size).toBe(3);
      for (const [key, lifetime] of [
        ['k', 90],
        ['new', 30],
        ['renewed', 20],
      ] as const) {
        const { createdAt, updatedAt, expiresAt } = await read(key);
        expect(createdAt).toBeLessThanOrEqual(updatedAt);
        expect(updatedAt).toBeLessThanOrEqual(now);
        expect(expiresAt).toBeLessThanOrEqual(now + lifetime * DAY);
        expect(expiresAt).toBeGreaterThan(now + lifetime * DAY - 2 * HOUR);
      }
      // Its expiry was set while the clock was right.
      expect((await read('tagged')).expiresAt).toBe(tagged?.expiresAt);
      await clock.advance(2 * HOUR);
      expect(await store.space({ subject: 'me' }, 'cache').get('answer')).toBeUndefined();
      // No entry is dated ahead any more, so a restart corrects nothing.
      const { updatedAt } = await read('k');
      await store[Symbol.asyncDispose]();
      const again = await openFileStore(folder, clock);
      await rested(clock);
      expect((await facts(again).get('k'))?.updatedAt).toBe(updatedAt);
    },
  );

  test('survives a write that comes before the correction (R-TIME-06, R-TIME-07)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    clock.jump(200 * DAY);
    await facts(store).put(aDraft({ key: 'changed', value: '1' }));
    await facts(store).put(aDraft({ key: 'renewed' }));
    clock.jump(-198 * DAY);
    await facts(store).put(aDraft({ key: 'changed', value: '2' }));
    await facts(store).put(aDraft({ key: 'renewed', lifetime: 20 * DAY }));
    clock.jump(-2 * DAY);
    await facts(store).put(aDraft({ key: 'renewed', lifetime: 10 * DAY }));
    await rested(clock);
    await corrected(store, 'changed', clock);
    const changed = await facts(store).get('changed');
    expect(changed).toMatchObject({ value: '2' });
    expect(changed?.expiresAt).toBeLessThanOrEqual(clock.now() + 90 * DAY);
    expect(changed?.expiresAt).toBeGreaterThan(clock.now() + 89 * DAY);
    await corrected(store, 'renewed', clock);
    const renewed = await facts(store).get('renewed');
    expect(renewed?.expiresAt).toBeLessThanOrEqual(clock.now() + 10 * DAY);
    expect(renewed?.expiresAt).toBeGreaterThan(clock.now() + 9 * DAY);
  });

  test('survives an undo while the clock is wrong (R-TIME-06, R-TIME-07)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    await facts(store).put(aDraft({ key: 'k', value: 'right' }));
    const before = await facts(store).get('k');
    clock.jump(20 * DAY);
    const { entry } = await facts(store).put(aDraft({ key: 'k', value: 'wrong', author: { ...anAuthor, client: 'other' } }));
    const note = { value: 'undo', category: 'facts/undo', tags: [], key: '', author: anAuthor, lifetime: 90 * DAY };
    await facts(store).revert('k', { client: 'other', since: entry.updatedAt }, note);
    expect(await facts(store).get('k')).toMatchObject({ value: 'right' });
    clock.jump(-20 * DAY);
    store.now();
    await rested(clock);
    await corrected(store, 'k', clock);
    const after = await facts(store).get('k');
    expect(after).toMatchObject({ value: 'right' });

    expect(Math.abs((after?.expiresAt ?? 0) - (before?.expiresAt ?? 0))).toBeLessThan(MINUTE);
  });

  test('stays as it is if the clock was right (R-TIME-07)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    clock.jump(200 * DAY);
    const { entry } = await facts(store).put(aDraft({ key: 'new' }));
    await store.trustClock();
    await rested(clock);
    expect(await facts(store).get('new')).toEqual(entry);
  });

  test('is corrected even if an earlier run accepted the wrong clock (R-TIME-09)', async () => {
    const clock = manualClock(START + 400 * DAY);
    const folder = tempFolder();
    const store = await openFileStore(folder, clock);
    await facts(store).put(aDraft({ key: 'k', lifetime: 30 * DAY }));
    clock.jump(-400 * DAY);
    expect(store.status().clock.at).toBe('behind');
    await store.trustClock();
    await rested(clock);
    const entry = await facts(store).get('k');
    expect(entry?.updatedAt).toBeLessThanOrEqual(clock.now());
    expect(entry?.expiresAt).toBeLessThanOrEqual(clock.now() + 30 * DAY);
  });

  test('a backup from the wrong time does not replace later backups (R-TIME-06)', async () => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    const { upkeep } = store;
    if (!upkeep) throw new Error('It is kept in a file.');
    await upkeep.backup();
    clock.jump(400 * DAY);
    for (let made = 0; made < 8; made += 1) await upkeep.backup();
    clock.jump(-400 * DAY);
    await clock.advance(HOUR);
    const { file } = await upkeep.backup();
    const kept = upkeep.backups();
    expect(kept.map((backup) => backup.file)).toContain(file);
    // Nothing is pruned while the clock is in doubt.
    expect(kept).toHaveLength(10);
  });
});

test('after an absence, expired facts are hidden, and deleted as soon as the clock is accepted (R-TIME-03, R-TIME-08)', async () => {
  const folder = tempFolder();
  const clock = manualClock();
  {
    await using store = await openStore({ folder, clock, sources: withKey() });
    await facts(store).put(aDraft({ key: 'short', lifetime: DAY }));
    await facts(store).put(aDraft({ key: 'long' }));
  }
  await clock.advance(28 * DAY);
  clock.synchronizedBy = true;
  const store = await openFileStore(folder, clock);
  expect(await facts(store).get('short')).toBeUndefined();
  expect(store.status().clock).toMatchObject({ at: 'ahead', review_in_seconds: 3600 });
  expect(rowsIn(folder)).toBe(2);
  await clock.advance(HOUR + MINUTE);
  await rested(clock);
  expect(store.status().clock).toEqual({ at: 'ok' });
  expect(rowsIn(folder)).toBe(1);
  expect(await facts(store).get('long')).toBeDefined();
});

test('short runs accept an absence too after an hour in total (R-TIME-08)', async () => {
  const folder = tempFolder();
  const clock = manualClock();
  clock.synchronizedBy = true;
  const looked = async () => {
    await using store = await openStore({ folder, clock, sources: withKey() });
    await facts(store).put(aDraft({ key: 'long' }));
    return store.status().clock.at;
  };
  await looked();
  await clock.advance(3 * DAY);
  expect(await looked()).toBe('ahead');
  await clock.advance(30 * MINUTE);
  expect(await looked()).toBe('ahead');
  await clock.advance(30 * MINUTE);
  await looked();
  expect(await looked()).toBe('ok');
});

test('a restart does not turn a jump during a run into an absence (R-TIME-08)', async () => {
  const folder = tempFolder();
  const clock = manualClock();
  const killed = await openFileStore(folder, clock);
  await facts(killed).put(aDraft({ key: 'short', lifetime: DAY }));
  clock.jump(20 * DAY);
  expect(killed.status().clock).toMatchObject({
    at: 'ahead',
    why: expect.stringContaining('according to the time that has passed'),
  });
  await settle();
  const copy = crashCopy(folder);
  const store = await openFileStore(copy, clock);
  expect(store.status().clock).toMatchObject({
    at: 'ahead',
    why: expect.stringContaining('according to the time that has passed'),
  });
});

test.each([
  { what: 'without a write for an hour', minutes: 61, write: false },
  { what: 'with a write directly after it', minutes: 0, write: true },
])('a jump stays in doubt after the program was killed, $what (R-TIME-03, R-TIME-08)', async ({ minutes, write }) => {
  const folder = tempFolder();
  const clock = manualClock();
  const killed = await openFileStore(folder, clock);
  await facts(killed).put(aDraft({ key: 'short', lifetime: 3 * DAY }));
  clock.jump(20 * DAY);
  if (write) await facts(killed).put(aDraft({ key: 'other' }));
  await clock.advance(minutes * MINUTE);
  await settle();
  const copy = crashCopy(folder);
  const store = await openFileStore(copy, clock);
  for (let hour = 0; hour < 5; hour += 1) {
    await clock.advance(HOUR);
    await settle();
  }
  expect(store.status().clock.at).toBe('ahead');
  expect(rowsIn(copy)).toBe(write ? 2 : 1);
  clock.jump(-20 * DAY);
  expect(await facts(store).get('short')).toBeDefined();
});

test('an absence within one boot of the machine needs no confirmation (R-TIME-10)', async () => {
  const folder = tempFolder();
  const clock = manualClock();
  clock.boot = 'boot';
  {
    await using store = await openStore({ folder, clock, sources: withKey() });
    await facts(store).put(aDraft({ key: 'short', lifetime: DAY }));
    await facts(store).put(aDraft({ key: 'long' }));
  }
  clock.sleep(20 * DAY);
  const store = await openFileStore(folder, clock);
  expect(store.status().clock).toEqual({ at: 'ok' });
  await rested(clock);
  expect(rowsIn(folder)).toBe(1);
  expect(await facts(store).get('long')).toBeDefined();
});

test('a new memory that is killed before its first write has stored its time (R-TIME-03)', async () => {
  const folder = tempFolder();
  const clock = manualClock();
  await openFileStore(folder, clock);
  await settle();
  const copy = crashCopy(folder);
  clock.jump(2 * DAY);
  const store = await openFileStore(copy, clock);
  expect(store.status().clock.at).toBe('ahead');
});

test('after any jumps of the clock, no fact is lost and none outlives its lifetime (R-TIME-06, R-TIME-07)', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('pass' as const), hours: fc.integer({ min: 1, max: 30 }) }),
    fc.record({
      do: fc.constant('off' as const),
      days: fc.oneof(fc.integer({ min: 2, max: 30 }), fc.constantFrom(0, 200, 400, -400)),
    }),
    fc.record({ do: fc.constant('sleep' as const), hours: fc.integer({ min: 1, max: 60 }) }),
    fc.record({ do: fc.constant('closed' as const), hours: fc.integer({ min: 1, max: 48 }) }),
    fc.record({ do: fc.constant('killed' as const), hours: fc.integer({ min: 1, max: 48 }) }),
    fc.record({ do: fc.constant('rebooted' as const), hours: fc.integer({ min: 1, max: 48 }) }),
    // The system never reports a wrong clock as synchronized.
    fc.record({ do: fc.constant('synchronized' as const), says: fc.constantFrom(true, false, undefined) }),
    fc.record({ do: fc.constant('put' as const), key: fc.constantFrom('a', 'b', 'c') }),
    fc.record({ do: fc.constant('renew' as const) }),
    fc.record({ do: fc.constant('short' as const), key: fc.constantFrom('x', 'y') }),
    fc.record({ do: fc.constant('sweep' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.constantFrom(undefined, 'boot'), async (steps, boot) => {
      const clock = manualClock();
      clock.boot = boot;
      let folder = tempFolder();
      const open = () => openStore({ folder, clock, sources: withKey() });
      let store = await open();
      let off = 0;
      let says: boolean | undefined;
      const set = (days: number): void => {
        clock.jump((days - off) * DAY);
        off = days;
        clock.synchronizedBy = off > 0 && says ? undefined : says;
      };
      const puts = new Map<string, string[]>();
      let renewed = false;
      await settle();
      try {
        for (const [index, one] of steps.entries()) {
          if (one.do === 'pass') await clock.advance(one.hours * HOUR);
          if (one.do === 'off') set(one.days);
          if (one.do === 'sleep') clock.sleep(one.hours * HOUR);
          if (one.do === 'sweep') await store.sweep(100);
          if (one.do === 'short') await facts(store).put(aDraft({ key: one.key, value: `${index}`, lifetime: HOUR }));
          if (one.do === 'renew') {
            await facts(store).put(aDraft({ key: 'renewed', value: 'same' }));
            renewed = true;
          }
          if (one.do === 'put') {
            await facts(store).put(aDraft({ key: one.key, value: `${index}` }));
            puts.set(one.key, [`${index}`, ...(puts.get(one.key) ?? [])]);
          }
          if (one.do === 'synchronized') {
            ({ says } = one);
            set(off);
          }
          if (one.do === 'killed') {
            folder = crashCopy(folder);
            await store[Symbol.asyncDispose]();
            await clock.advance(one.hours * HOUR);
            store = await open();
          }
          if (one.do === 'closed' || one.do === 'rebooted') {
            await store[Symbol.asyncDispose]();
            if (one.do === 'closed') await clock.advance(one.hours * HOUR);
            else clock.reboot(one.hours * HOUR);
            store = await open();
          }
          await settle();
        }
        says = true;
        set(0);
        store.now();
        await rested(clock);
        // An absence of more than a day is accepted after an hour.
        await clock.advance(4 * HOUR);
        await rested(clock);
        for (const [key, values] of puts) {
          const [value, ...earlier] = values;
          const entry = await facts(store).get(key);
          expect(entry?.value).toBe(value);
          expect(entry?.expiresAt).toBeLessThanOrEqual(clock.now() + 90 * DAY);
          expect((await facts(store).history(key)).map((version) => version.value)).toEqual(earlier);
        }
        const kept = await facts(store).get('renewed');
        expect(kept !== undefined).toBe(renewed);
        expect(kept?.expiresAt ?? 0).toBeLessThanOrEqual(clock.now() + 90 * DAY);
        for (const key of ['x', 'y']) expect(await facts(store).get(key)).toBeUndefined();
      } finally {
        await store[Symbol.asyncDispose]();
      }
    }),
    { numRuns: 40 },
  );
});
