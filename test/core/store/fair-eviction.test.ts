import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HISTORY_VERSIONS, QUOTA, RECORD_ROWS } from '../../../src/contract/limits.ts';
import { fairEviction } from '../../../src/core/store/fair-eviction.ts';
import type { Author, EntryCursor, Space } from '../../../src/core/store/store.ts';
import { DAY, MINUTE } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';
import { aDraft, anAuthor } from '../../support/store.ts';

/** Lets every write have a fact of its own. A change of a fact with 20 earlier versions takes longer than a new fact. */
const ROOM = { ...QUOTA, facts: 20_000 };

const attacker = aCaller({ client: 'attacker', token: 'token-2' });

async function keysOf(rows: Space): Promise<string[]> {
  const keys: string[] = [];
  let after: EntryCursor | undefined;
  do {
    const page = await rows.page({ sort: 'oldest', limit: 1000, bytes: Infinity, ...(after && { after }) });
    keys.push(...page.entries.map(({ key }) => key));
    after = page.next;
  } while (after);
  return keys;
}

describe('fair eviction', () => {
  test('takes the oldest row of the client that holds the most, one after the other', () => {
    expect(fairEviction(['a', 'b', 'b', 'a', 'b'], 1)).toEqual([1]);
    expect(fairEviction(['a', 'b', 'b', 'a', 'b'], 3)).toEqual([1, 0, 2]);
    expect(fairEviction(['a', 'a'], 5)).toEqual([0, 1]);
    expect(fairEviction(['a'], -3)).toEqual([]);
  });

  test('of the rows of one client takes the least valuable first, and of equal ones the oldest', () => {
    const values = [5, 1, 3, 1];
    expect(fairEviction(['a', 'a', 'a', 'a'], 3, (position) => values[position] ?? 0)).toEqual([1, 3, 2]);
    expect(fairEviction(['b', 'a', 'a', 'a'], 1, (position) => values[position] ?? 0)).toEqual([1]);
  });

  test('takes no row of a client that holds no more than an equal share of what stays', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd')), fc.nat(60), (clients, count) => {
        const evicted = fairEviction(clients, count);
        expect(new Set(evicted).size).toBe(Math.min(count, clients.length));
        const share = (clients.length - evicted.length) / new Set(clients).size;
        for (const client of new Set(clients)) {
          const held = clients.flatMap((one, position) => (one === client ? [position] : []));
          const gone = held.filter((position) => evicted.includes(position));
          // Its oldest rows are evicted first, and none while others hold more.
          expect(gone).toEqual(held.slice(0, held.length <= share ? 0 : gone.length));
        }
      }),
      { numRuns: 2000, seed: 20_261_119 },
    );
  });
});

describe.each([
  { kept: 'in a file', keyless: false },
  { kept: 'in RAM', keyless: true },
])('a memory $kept', ({ keyless }) => {
  test('keeps the last versions of every client, however much another client writes (R-HIST-02)', async () => {
    const memory = await openTestMemory({ keyless });
    const [good, bad, owner] = [memory.as(aCaller()), memory.as(attacker), memory.as(theOwner)];
    await good('remember', { key: 'k', value: 'first' });
    await good('remember', { key: 'k', value: 'original' });
    await memory.clock.advance(MINUTE);
    const since = new Date(memory.clock.now()).toISOString();
    for (let turn = 0; turn < 3 * HISTORY_VERSIONS; turn += 1) await bad('remember', { key: 'k', value: `bad ${turn}` });
    const { versions } = await owner('history', { key: 'k' });
    expect(versions).toHaveLength(HISTORY_VERSIONS);
    expect(versions.slice(-3).map(({ value }) => value)).toEqual([`bad 41`, 'original', 'first']);
    expect(await owner('undo', { client: 'attacker', since })).toMatchObject({ restored: 1, skipped: [] });
    expect((await owner('recall', { key: 'k' })).value).toBe('original');
  });

  test('keeps the versions from before a loop of writes of the same client (R-HIST-02)', async () => {
    const memory = await openTestMemory({ keyless });
    const window = memory.as({ ...theOwner, client: 'window', transport: 'window' });
    const own = Array.from({ length: HISTORY_VERSIONS }, (_, index) => `own ${index}`);
    for (const value of own) {
      await window('remember', { key: 'k', value });
      await memory.clock.advance(MINUTE);
    }
    for (let turn = 0; turn < 3 * HISTORY_VERSIONS; turn += 1) {
      await window('remember', { key: 'k', value: `loop ${turn}` });
      await memory.clock.advance(1);
    }
    const { versions } = await window('history', { key: 'k' });
    expect(versions.map(({ value }) => value)).toEqual(own.toReversed());
  });

  test('keeps the last version of each of 20 clients while another client writes (R-HIST-02)', async () => {
    const memory = await openTestMemory({ keyless });
    const names = Array.from({ length: HISTORY_VERSIONS }, (_, index) => `client-${index}`);
    for (const client of names) await memory.as(aCaller({ client }))('remember', { key: 'k', value: client });
    for (let turn = 0; turn < 30; turn += 1) await memory.as(attacker)('remember', { key: 'k', value: `bad ${turn}` });
    const { versions } = await memory.as(theOwner)('history', { key: 'k' });
    expect(versions.map(({ client }) => client)).toEqual(names.toReversed());
  });

  test.each(['activity', 'audit'] as const)(
    'evicts rows of %s of the client that fills it, and keeps those of the others (R-OPS-08, R-PACK-28)',
    async (kind) => {
      const { store } = await openTestMemory({ keyless, quota: ROOM });
      const [facts, rows] = [store.space({ subject: 'me' }, 'fact'), store.space({ subject: 'me' }, kind)];
      const add = async (key: string, author: Author): Promise<unknown> => {
        const row = aDraft({ key, author });
        return kind === 'audit' ? rows.put(row) : facts.put(aDraft({ key }), row);
      };
      const write = async (client: string, count: number): Promise<void> => {
        const author = { ...anAuthor, client };
        for (let from = 0; from < count; from += 1000) {
          const some = Array.from({ length: Math.min(1000, count - from) }, (_, more) => `${client} ${from + more}`);
          await Promise.all(some.map((key) => add(key, author)));
        }
      };
      await write('good', 600);
      await write('attacker', RECORD_ROWS[kind] + 500);
      const left = (await keysOf(rows)).filter((key) => key.startsWith('good'));
      // The client holds less than its fair share, so it loses no row.
      expect(left).toHaveLength(600);
      expect(await rows.count()).toBeLessThan(RECORD_ROWS[kind] + 100);
    },
  );

  test.each(['activity', 'audit'] as const)(
    'keeps the fair share of %s rows of three clients that write a lot, also after a lock (R-OPS-08, R-PACK-28)',
    async (kind) => {
      const memory = await openTestMemory({ keyless, quota: ROOM });
      const { store } = memory;
      const [facts, rows] = [store.space({ subject: 'me' }, 'fact'), store.space({ subject: 'me' }, kind)];
      const write = async (client: string, start: number, end: number): Promise<void> => {
        for (let from = start; from < end; from += 1000) {
          const some = Array.from({ length: 1000 }, (_, more) => `${client} ${from + more}`);
          await Promise.all(
            some.map((key) => {
              const row = aDraft({ key, value: 'v', author: { ...anAuthor, client } });
              return kind === 'audit' ? rows.put(row) : facts.put(aDraft({ key }), row);
            }),
          );
        }
      };
      await write('a', 0, 4000);
      await write('b', 0, 4000);
      await write('c', 0, 4000);
      // A lock drops the names of the clients, so they are read again.
      if (!keyless) {
        store.lock();
        await store.unlock();
      }
      await write('c', 4000, 9000);
      const keys = new Set(await keysOf(rows));
      const share = Math.floor(RECORD_ROWS[kind] / 3);
      for (const client of ['a', 'b', 'c'])
        expect([...keys].filter((key) => key.startsWith(client)).length).toBeGreaterThanOrEqual(share);
      const lost = ['a 3999', `a ${4000 - share}`, 'b 3999', `b ${4000 - share}`, 'c 8999'].filter((key) => !keys.has(key));
      expect(lost).toEqual([]);
      expect(await rows.count()).toBeLessThan(RECORD_ROWS[kind] + 200);
    },
  );

  test('evicts the oldest rows if each client wrote one, also rows of the same commit (R-OPS-08)', async () => {
    const { store } = await openTestMemory({ keyless, quota: QUOTA });
    const rows = store.space({ subject: 'me' }, 'audit');
    const write = (from: number, count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, more) => {
          const key = `${from + more}`;
          return rows.put(aDraft({ key, author: { ...anAuthor, client: `client-${key}` } }));
        }),
      );
    const written = RECORD_ROWS.audit + 250;
    await write(0, RECORD_ROWS.audit - 6);
    await write(RECORD_ROWS.audit - 6, 256);
    const left = await keysOf(rows);
    expect(left.length).toBeLessThan(RECORD_ROWS.audit + 100);
    expect(left).toEqual(Array.from({ length: left.length }, (_, more) => `${written - left.length + more}`));
  });

  test('records no write that changed nothing (R-VIEW-05)', async () => {
    const memory = await openTestMemory({ keyless });
    const [good, bad] = [memory.as(aCaller()), memory.as(attacker)];
    await good('remember', { key: 'k', value: 'v' });
    const line = JSON.stringify({ key: 'k', value: 'v' });
    expect(await bad('import', { lines: Array.from({ length: 50 }, () => line) })).toMatchObject({ unchanged: 50 });
    expect((await bad('remember', { key: 'k', value: 'v' })).status).toBe('unchanged');
    await bad('patch', { key: 'k', tags: [] });
    expect((await good('activity', {})).activity).toMatchObject([{ operation: 'remember', client: 'claude-code', key: 'k' }]);
  });
});

test('evicts rows that were written while the clock was set back during the first scan (R-OPS-08)', async () => {
  const { store, clock } = await openTestMemory({ keyless: true, quota: QUOTA });
  const rows = store.space({ subject: 'me' }, 'audit');
  const write = (client: string, what: string, count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, more) => rows.put(aDraft({ key: `${what} ${more}`, author: { ...anAuthor, client } }))),
    );
  clock.jump(2 * DAY);
  await store.trustClock();
  await write('a', 'a', RECORD_ROWS.audit);
  // Each of these writes scans some rows, and the last one does not reach the end.
  await write('a', 'more', 10);
  clock.jump(-2 * DAY);
  await store.trustClock();
  await write('b', 'early', 30);
  await write('b', 'late', RECORD_ROWS.audit);
  const keys = await keysOf(rows);
  expect(keys).toContain(`late ${RECORD_ROWS.audit - 1}`);
  expect(keys.filter((key) => key.startsWith('early'))).toEqual([]);
});
