import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { DatabaseClock } from '../../../../src/core/store/postgres/database-clock.ts';
import { type DatabaseOptions, Database } from '../../../../src/core/store/postgres/database.ts';
import { PostgresStore, type ServerOptions } from '../../../../src/core/store/postgres/postgres-store.ts';
import { DAY, HOUR, type ManualClock, manualClock, MINUTE, START } from '../../../support/clock.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { aDraft, withKey } from '../../../support/store.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

const me = { subject: 'me' };

async function open(database: DatabaseOptions, over: Partial<ServerOptions> = {}): Promise<PostgresStore> {
  const store = await PostgresStore.open({ database, clock: manualClock(), sources: withKey(), ...over });
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** Two processes whose clocks follow one server, so that the clocks always agree. */
async function twoProcesses(): Promise<{
  stores: readonly [PostgresStore, PostgresStore];
  clocks: readonly [ManualClock, ManualClock];
  jump: (ms: number) => void;
  database: DatabaseOptions;
}> {
  const database = server.newMemory();
  const clocks = [manualClock(), manualClock()] as const;
  const stores = [await open(database, { clock: clocks[0] }), await open(database, { clock: clocks[1] })] as const;
  return {
    stores,
    clocks,
    database,
    jump(ms) {
      for (const clock of clocks) clock.jump(ms);
    },
  };
}

const rowsIn = async ({ schema }: DatabaseOptions): Promise<unknown> => {
  const [counted] = await server.query(`SELECT count(*)::int AS count FROM "${schema}".entry WHERE kind = 1`);
  return counted?.['count'];
};

test('a clock that the owner confirms through one process is accepted by all (R-TIME-09, R-PGUP-04)', async () => {
  const { stores, jump, database } = await twoProcesses();
  const [one, other] = stores;
  await one.space(me, 'fact').put(aDraft({ key: 'short', lifetime: 30 * DAY }));
  await one.space(me, 'fact').put(aDraft({ key: 'long', lifetime: 90 * DAY }));
  jump(60 * DAY);
  for (const store of stores) {
    expect(await store.space(me, 'fact').get('short')).toBeUndefined();
    expect(store.status().clock.at).toBe('ahead');
    expect((await store.sweep(10)).removed).toBe(0);
  }
  await one.trustClock();
  await other.refresh();
  expect(other.status().clock.at).toBe('ok');
  expect((await other.sweep(10)).removed).toBe(1);
  expect(await rowsIn(database)).toBe(1);
  await other.space(me, 'fact').put(aDraft({ key: 'new' }));
  expect((await one.space(me, 'fact').get('new'))?.updatedAt).toBe(START + 60 * DAY);
});

test('a confirmed time that was set back is set back in all processes, for the very next read (R-TIME-09)', async () => {
  const { stores, jump } = await twoProcesses();
  const [one, other] = stores;
  jump(200 * DAY);
  await one.trustClock();
  await other.space(me, 'fact').put(aDraft({ key: 'k', lifetime: 90 * DAY }));
  jump(-200 * DAY);
  for (const store of stores) {
    await store.refresh();
    expect(store.status().clock.at).toBe('behind');
    expect(store.now()).toBe(START + 200 * DAY);
  }
  await other.trustClock();
  expect((await one.space(me, 'fact').get('k'))?.key).toBe('k');
  expect([one.now(), one.status().clock.at]).toEqual([START, 'ok']);
  // One process corrects the dates that were written while the clock was ahead.
  const corrected = async (): Promise<number | undefined> => {
    await one.sweep(10);
    return (await other.space(me, 'fact').get('k'))?.updatedAt;
  };
  await expect.poll(corrected).toBe(START);
});

test('a restarted process accepts a jump that another process has accepted, and doubts one that none has (R-TIME-08)', async () => {
  const { stores, clocks, jump, database } = await twoProcesses();
  await stores[0].space(me, 'fact').put(aDraft({ key: 'short', lifetime: DAY }));
  jump(3 * DAY);
  for (const store of stores) expect(store.status().clock.at).toBe('ahead');
  const third = await open(database, { clock: manualClock(clocks[0].now()) });
  expect(third.status().clock.at).toBe('ahead');
  for (const clock of clocks) await clock.advance(2 * HOUR);
  for (const store of stores) await store.sweep(10);
  expect(stores.map((store) => store.status().clock.at)).toEqual(['ahead', 'ahead']);
  clocks[0].synchronizedBy = true;
  const swept = async (): Promise<string> => {
    await stores[0].sweep(10);
    return stores[0].status().clock.at;
  };
  await expect.poll(swept).toBe('ok');
  await stores[0].space(me, 'fact').put(aDraft({ key: 'new' }));
  await stores[0].whenIdle();
  await stores[1].refresh();
  expect(stores.map((store) => store.status().clock.at)).toEqual(['ok', 'ok']);
});

test('the clock of the server decides, and not the clock of a machine (R-TIME-01)', async () => {
  const database = server.newMemory();
  const observed: number[] = [];
  const clock = { ...manualClock(), observe: (now: number) => void observed.push(now) };
  await open(database, { clock });
  // The owner confirms this clock too, and not the clock of a machine.
  const follower = await open(database, { clock: new DatabaseClock(manualClock()) });
  expect(Math.abs(follower.wall() - Date.now())).toBeLessThan(MINUTE);
  expect(observed.length).toBeGreaterThan(0);
  expect(Math.abs((observed[0] ?? 0) - Date.now())).toBeLessThan(MINUTE);
});

test('one process sweeps at a time, and the death of a process frees its lock (R-PGUP-03)', async () => {
  const database = server.newMemory();
  const clock = manualClock();
  const store = await open(database, { clock });
  await store.space(me, 'fact').put(aDraft({ lifetime: HOUR }));
  const another = new Database(database);
  onTestFinished(() => another.close());
  const held = Promise.withResolvers<void>();
  const { promise: freed, resolve: free } = Promise.withResolvers<void>();
  const holds = another.alone('sweep', async () => {
    held.resolve();
    await freed;
  });
  await held.promise;
  clock.jump(2 * HOUR);
  const refused = await store.sweep(10);
  expect(refused).toEqual({ removed: 0, next: expect.any(Number) });
  expect(refused.next).toBeGreaterThan(store.now());
  // The server grants the lock to its holder again, so the process itself refuses a second step.
  expect(await another.alone('sweep', async () => 'again')).toBeUndefined();
  expect(await another.alone('other', async () => 'runs')).toEqual({ value: 'runs' });
  // The server frees the lock of a process whose connection ends, before the process itself notices.
  await server.query("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'");
  await expect.poll(async () => (await store.sweep(10)).removed).toBe(1);
  free();
  await holds;
  expect(await rowsIn(database)).toBe(0);
});

test('several processes that sweep together delete each entry once', async () => {
  const database = server.newMemory();
  const clocks = [1, 2, 3].map(() => manualClock());
  const stores = await Promise.all(clocks.map((clock) => open(database, { clock })));
  await Promise.all(
    Array.from({ length: 300 }, (_, index) =>
      stores[index % 3]!.space(me, 'fact').put(aDraft({ key: `k${index}`, lifetime: HOUR })),
    ),
  );
  for (const clock of clocks) clock.jump(2 * HOUR);
  let removed = 0;
  for (let round = 0; removed < 300 && round < 100; round += 1) {
    const swept = await Promise.all(stores.map((store) => store.sweep(50)));
    removed += swept.reduce((sum, each) => sum + each.removed, 0);
  }
  expect(removed).toBe(300);
  expect(await rowsIn(database)).toBe(0);
});
