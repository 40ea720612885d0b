import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

const theWindow = aCaller({ client: 'window', transport: 'window', token: '', may: ['memory:read', 'memory:write', 'admin'] });
const key = 'preferences/editor';

describe.each([
  { kept: 'in a file', keyless: false },
  { kept: 'in RAM', keyless: true },
])('a forget in the window, of a memory $kept', ({ keyless }) => {
  const forgotten = async () => {
    const memory = await openTestMemory({ keyless });
    const [claude, codex, window] = [
      memory.as(aCaller()),
      memory.as(aCaller({ client: 'codex', token: 'token-2' })),
      memory.as(theWindow),
    ];
    await claude('remember', { key, value: 'Helix', tags: ['x'] });
    await memory.clock.advance(HOUR);
    await codex('remember', { key, value: 'Zed', category: 'tools' });
    await memory.clock.advance(MINUTE);
    const state = async () => ({ fact: await window('recall', { key }), history: await window('history', { key }) });
    const before = await state();
    const { undo, deleted } = await window('forget', { scope: `key:${key}` });
    expect(deleted).toBe(1);
    return { memory, claude, window, before, state, undo: undo! };
  };

  test('is undone with author, times and history exactly as they were (R-FORGET-13, R-FORGET-16)', async () => {
    const { memory, window, before, state, undo } = await forgotten();
    await expect(window('recall', { key })).rejects.toMatchObject({ code: 'not_found' });
    await memory.clock.advance(7999);
    expect(await window('undoForget', { undo })).toMatchObject({ key, client: 'codex' });
    expect(await state()).toEqual(before);
    const { activity } = await window('activity', { limit: 2 });
    expect(activity).toMatchObject([
      { operation: 'undoForget', client: 'window', key },
      { operation: 'forget', client: 'window', key },
    ]);
    // The handle works only once.
    await expect(window('undoForget', { undo })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('is undone in the same place among facts of one millisecond (R-USE-05)', async () => {
    const { as } = await openTestMemory({ keyless });
    for (const each of ['a', 'b', 'c']) await as(aCaller())('remember', { key: each, value: 'v' });
    const window = as(theWindow);
    const keys = async () => (await window('list', {})).facts.map((fact) => fact.key);
    const { undo } = await window('forget', { scope: 'key:b' });
    expect(await keys()).toEqual(['c', 'a']);
    await window('undoForget', { undo: undo! });
    expect(await keys()).toEqual(['c', 'b', 'a']);
    const again = await window('forget', { scope: 'key:c' });
    await window('remember', { key: 'd', value: 'v' });
    await window('undoForget', { undo: again.undo! });
    expect(await keys()).toEqual(['d', 'c', 'b', 'a']);
  });

  test('cannot be undone after ten seconds (R-FORGET-12, R-FORGET-13)', async () => {
    const { memory, window, undo } = await forgotten();
    await memory.clock.advance(10_000);
    await expect(window('undoForget', { undo })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('can be undone only by the window, and only the window gets a handle (R-FORGET-13)', async () => {
    const { memory, claude, undo } = await forgotten();
    for (const caller of [aCaller({ may: ['admin'] }), theOwner]) {
      await expect(memory.as(caller)('undoForget', { undo })).rejects.toMatchObject({ code: 'insufficient_scope' });
    }
    await expect(memory.as({ ...theWindow, subject: 'you' })('undoForget', { undo })).rejects.toMatchObject({
      code: 'not_found',
    });
    await claude('remember', { key: 'mine', value: 'v' });
    expect(await claude('forget', { scope: 'key:mine' })).not.toHaveProperty('undo');
  });

  test.each(['all', 'facts', `key:${key}`, 'client:codex'])(
    'cannot be undone after a forget of %s (R-FORGET-12)',
    async (scope) => {
      const { claude, window, undo } = await forgotten();
      await claude('forget', { scope });
      await expect(window('undoForget', { undo })).rejects.toMatchObject({ code: 'not_found' });
    },
  );

  test('cannot be undone when the key was stored again (R-FORGET-16)', async () => {
    const { claude, window, undo } = await forgotten();
    await claude('remember', { key, value: 'new' });
    await expect(window('undoForget', { undo })).rejects.toMatchObject({ code: 'not_found' });
    expect((await window('recall', { key })).value).toBe('new');
  });
});

test('a lock drops the forgotten facts (R-FORGET-13, R-LOCK-02)', async () => {
  const memory = await openTestMemory();
  const [window, owner] = [memory.as(theWindow), memory.as(theOwner)];
  await window('remember', { key, value: 'v' });
  const { undo } = await window('forget', { scope: `key:${key}` });
  await owner('lock', {});
  await owner('unlock', {});
  await expect(window('undoForget', { undo: undo! })).rejects.toMatchObject({ code: 'not_found' });
});

test('a lock in the middle of a forget drops the fact (R-FORGET-13, R-LOCK-02)', async () => {
  const memory = await openTestMemory();
  const [window, owner] = [memory.as(theWindow), memory.as(theOwner)];
  await window('remember', { key, value: 'v' });
  using _subscription = memory.store.onEntryEvent(({ what }) => {
    if (what === 'deleted') memory.store.lock();
  });
  const { deleted, undo } = await window('forget', { scope: `key:${key}` });
  expect(deleted).toBe(1);
  await owner('unlock', {});
  expect(undo).toBeUndefined();
});

test.each([
  ['all', 'a forget of everything'],
  ['client:claude-code', 'a forget of its client'],
  [`key:${key}`, 'a forget of the same key'],
])('%s ends later, and the fact cannot be put back (R-FORGET-12, R-FORGET-13)', async (scope) => {
  const memory = await openTestMemory();
  const [claude, window] = [memory.as(aCaller()), memory.as(theWindow)];
  for (let index = 0; index < 100; index += 1) await claude('remember', { key: `k${index}`, value: 'v' });
  await claude('remember', { key, value: 'v' });
  const wide = claude('forget', { scope });
  const { undo = '0'.repeat(32) } = await window('forget', { scope: `key:${key}` });
  await wide;
  await expect(window('undoForget', { undo })).rejects.toMatchObject({ code: 'not_found' });
});

test('an undo of its client drops the fact, before and while it runs (R-FORGET-13, R-OPS-07)', async () => {
  const memory = await openTestMemory();
  const [claude, vandal] = [memory.as(aCaller()), memory.as(aCaller({ client: 'vandal', token: 'token-2' }))];
  const [window, owner] = [memory.as(theWindow), memory.as(theOwner)];
  const since = new Date(memory.clock.now()).toISOString();
  for (const name of ['one', 'two', 'other']) await vandal('remember', { key: name, value: 'bad' });
  await claude('remember', { key: 'mine', value: 'good' });
  const [first, mine] = [await window('forget', { scope: 'key:one' }), await window('forget', { scope: 'key:mine' })];
  // A dry run changes nothing.
  await owner('undo', { client: 'vandal', since, dry_run: true });
  const undoing = owner('undo', { client: 'vandal', since });
  const second = await window('forget', { scope: 'key:two' });
  await undoing;
  for (const { undo = '0'.repeat(32) } of [first, second]) {
    await expect(window('undoForget', { undo })).rejects.toMatchObject({ code: 'not_found' });
  }
  expect(await window('undoForget', { undo: mine.undo! })).toMatchObject({ key: 'mine' });
});

test('the undo keeps an older tombstone, also one from when the clock was wrong (R-FORGET-15, R-FORGET-16)', async () => {
  const memory = await openTestMemory();
  const [window, owner] = [memory.as(theWindow), memory.as(theOwner)];
  const tombstones = (): unknown => {
    const db = new Database(join(memory.folder, 'memory.db'), { readonly: true });
    try {
      return db.prepare('SELECT count(*) FROM tombstone').pluck().get();
    } finally {
      db.close();
    }
  };
  await window('remember', { key, value: 'older' });
  memory.clock.jump(40 * DAY);
  await owner('forget', { scope: `key:${key}` });
  memory.clock.jump(-40 * DAY);
  await owner('trustClock', { time: new Date(memory.clock.now()).toISOString() });
  await window('remember', { key, value: 'newer' });
  const { undo } = await window('forget', { scope: `key:${key}` });
  expect(tombstones()).toBe(2);
  await window('undoForget', { undo: undo! });
  expect(tombstones()).toBe(1);
});

test('a restored backup keeps a fact that was put back (R-FORGET-16)', async () => {
  const memory = await openTestMemory();
  const window = memory.as(theWindow);
  await window('remember', { key, value: 'v' });
  const tombstones = (): unknown => {
    const db = new Database(join(memory.folder, 'memory.db'), { readonly: true });
    try {
      return db.prepare('SELECT count(*) FROM tombstone').pluck().get();
    } finally {
      db.close();
    }
  };
  const { undo } = await window('forget', { scope: `key:${key}` });
  expect(tombstones()).toBe(1);
  await window('undoForget', { undo: undo! });
  expect(tombstones()).toBe(0);
});
