import { describe, expect, test } from 'vitest';
import type { ExecutionContext, Pack, PackMemory } from '../../../src/core/packs/pack.ts';
import { PackSessions } from '../../../src/core/packs/sessions.ts';
import type { Quota } from '../../../src/core/store/store.ts';
import { manualClock, HOUR, MINUTE } from '../../support/clock.ts';
import { aCaller, openTestMemory, type TestMemory, theOwner } from '../../support/memory.ts';
import { aPack, CREDENTIAL } from '../../support/packs.ts';

const me = aCaller();

/** Runs a function inside a pack that has a memory. */
async function opened(options: Pack['memory'] = {}, quota?: Quota, again: Partial<Pick<TestMemory, 'folder' | 'clock'>> = {}) {
  let task: (context: ExecutionContext) => unknown = () => undefined;
  const over = options === undefined ? {} : { memory: options };
  const handler = async (context: ExecutionContext) => ({ said: '', seen: (await task(context)) ?? null });
  const packs = [aPack(handler, over), aPack(handler, { ...over, name: 'other.pack' })];
  const memory = await openTestMemory({ packs: { packs }, ...(quota && { quota }), ...again });
  const within = async (todo: (context: ExecutionContext) => unknown, { caller = me, session = '', name = 'test.echo' } = {}) => {
    task = todo;
    const { output } = await memory.as(caller)('runPack', { name, ...(session !== '' && { session }) });
    return (output as { seen: unknown }).seen;
  };
  return { ...memory, within };
}

const memoryOf = ({ memory }: ExecutionContext): PackMemory => {
  if (!memory) throw new Error('This pack has no memory.');
  return memory;
};

describe("a pack's memory", () => {
  test('is undefined for a pack that does not ask for it (R-PACK-01, R-PACK-02)', async () => {
    const { packs } = { packs: [aPack(({ memory }) => ({ said: typeof memory }))] };
    const memory = await openTestMemory({ packs: { packs } });
    expect(await memory.as(me)('runPack', { name: 'test.echo' })).toMatchObject({ output: { said: 'undefined' } });
  });

  test('is undefined while no store is available, and the pack runs without it (R-PACK-01)', async () => {
    const pack = aPack(({ memory: own }) => ({ said: typeof own }), { memory: {}, unaudited: true });
    const memory = await openTestMemory({ packs: { packs: [pack] } });
    const run = () => memory.as(me)('runPack', { name: 'test.echo' });
    expect(await run()).toMatchObject({ output: { said: 'object' } });
    memory.store.lock();
    expect(await run()).toMatchObject({ output: { said: 'undefined' } });
  });

  test('returns any stored JSON value unchanged', async () => {
    const { within } = await opened();
    await within((context) =>
      memoryOf(context).store('last', { run: [1, null, 'ä'] }, { tags: ['a'], category: 'runs', ttl: 60 }),
    );
    expect(await within((context) => memoryOf(context).recall('last'))).toMatchObject({
      key: 'last',
      value: { run: [1, null, 'ä'] },
      category: 'runs',
      tags: ['a'],
    });
    expect(await within(async (context) => (await memoryOf(context).recall('none')) ?? 'nothing')).toBe('nothing');
  });

  test('is read in steps, between which other calls run (R-HTTP-14)', async () => {
    const { within } = await opened();
    await within((context) => Promise.all(Array.from({ length: 650 }, (_, n) => memoryOf(context).store(`k${n}`, n))));
    let turns = 0;
    const listed = await within(async (context) => {
      let next = setImmediate(function count() {
        turns += 1;
        next = setImmediate(count);
      });
      const { length } = await memoryOf(context).list('k');
      clearImmediate(next);
      return length;
    });
    expect(listed).toBe(650);
    expect(turns).toBeGreaterThanOrEqual(3);
  });

  test('has its own quota, and reports when the quota is used up (R-PACK-28)', async () => {
    const { within, as } = await opened({}, { facts: 5, bytes: 20_000 });
    await expect(
      within(async (context) => {
        for (const key of ['a', 'b', 'c', 'd', 'e']) await memoryOf(context).store(key, 'v'.repeat(5000));
      }),
    ).rejects.toMatchObject({ code: 'quota_exceeded', message: expect.stringMatching(/limit of 20000 bytes/) as string });
    expect(await within(async (context) => (await memoryOf(context).list()).length)).toBe(3);
    await as(me)('remember', { key: 'k', value: 'v'.repeat(15_000) });
  });

  test('outlives the run, until its entries expire', async () => {
    const { within, clock } = await opened({ ttl: 60 });
    await within((context) => memoryOf(context).store('a', 1));
    await clock.advance(59_999);
    expect(await within((context) => memoryOf(context).recall('a'))).toMatchObject({ value: 1 });
    await clock.advance(1);
    expect(await within((context) => memoryOf(context).list())).toEqual([]);
  });

  test('lists by key prefix, newest first, without values', async () => {
    const { within, clock } = await opened();
    for (const key of ['runs/1', 'other', 'runs/2']) {
      await within((context) => memoryOf(context).store(key, key));
      await clock.advance(1);
    }
    const listed = (await within((context) => memoryOf(context).list('runs/'))) as object[];
    expect(listed).toMatchObject([{ key: 'runs/2' }, { key: 'runs/1' }]);
    expect(listed[0]).not.toHaveProperty('value');
    expect(await within(async (context) => (await memoryOf(context).list()).length)).toBe(3);
  });

  test('deletes exactly the given key', async () => {
    const { within } = await opened();
    await within(async (context) => {
      await memoryOf(context).store('a', 1);
      await memoryOf(context).store('a/b', 2);
    });
    expect(await within((context) => memoryOf(context).delete('a'))).toBe(true);
    expect(await within((context) => memoryOf(context).delete('a'))).toBe(false);
    expect(await within((context) => memoryOf(context).recall('a/b'))).toMatchObject({ value: 2 });
  });

  test('returns the newest entries by category as context', async () => {
    const { within, clock } = await opened({ category: 'runs' });
    for (let turn = 0; turn < 60; turn += 1) {
      await within((context) => memoryOf(context).store(`k${turn}`, turn, turn === 59 ? { category: 'last' } : {}));
      await clock.advance(1);
    }
    const { categories } = (await within((context) => memoryOf(context).context())) as Awaited<ReturnType<PackMemory['context']>>;
    expect(categories.map(({ name, entries }) => [name, entries.length, entries[0]?.key])).toEqual([
      ['last', 1, 'k59'],
      ['runs', 49, 'k58'],
    ]);
  });

  test('is separate for each subject and pack (R-ISO-01)', async () => {
    const { within } = await opened();
    await within((context) => memoryOf(context).store('a', 'mine'));
    const seen = (context: ExecutionContext) => memoryOf(context).list();
    expect(await within(seen, { caller: aCaller({ subject: 'you' }) })).toEqual([]);
    expect(await within(seen, { name: 'other.pack' })).toEqual([]);
    await within((context) => memoryOf(context).store('../test.echo/a', 'planted'), { name: 'other.pack' });
    expect(await within((context) => memoryOf(context).recall('a'))).toMatchObject({ value: 'mine' });
  });

  test('is separate from facts', async () => {
    const { within, as } = await opened();
    await as(me)('remember', { key: 'test.echo/a', value: 'a fact' });
    await within((context) => memoryOf(context).store('b', 'of the pack'));
    expect(await within((context) => memoryOf(context).list())).toMatchObject([{ key: 'b' }]);
    expect((await as(me)('list', {})).facts.map(({ key }) => key)).toEqual(['test.echo/a']);
    expect((await as(me)('search', { query: 'pack' })).hits.map(({ key }) => key)).not.toContain('test.echo/b');
  });

  test.each([0, -5, 400 * 86_400, Number.NaN])('refuses a lifetime of %d s, and names the limits', async (ttl) => {
    const { within } = await opened();
    await expect(within((context) => memoryOf(context).store('a', 1, { ttl }))).rejects.toMatchObject({
      code: 'handler_failed',
      message: 'ttl must be a number of seconds, more than 0 and at most 31536000.',
    });
  });

  test.each<[string, (memory: PackMemory) => Promise<unknown>]>([
    ['an empty key', (memory) => memory.store('', 1)],
    ['a key that is too long', (memory) => memory.store('k'.repeat(513), 1)],
    ['undefined', (memory) => memory.store('a', undefined)],
    ['a value that is too large', (memory) => memory.store('a', 'x'.repeat(65 * 1024))],
    ['a lifetime beyond a year', (memory) => memory.store('a', 1, { ttl: 400 * 86_400 })],
    ['a lifetime that is not a number', (memory) => memory.store('a', 1, { ttl: Number.NaN })],
    ['a lifetime of zero', (memory) => memory.store('a', 1, { ttl: 0 })],
    ['an invalid category', (memory) => memory.store('a', 1, { category: 'A B' })],
    ['a credential', (memory) => memory.store('a', CREDENTIAL)],
    ['a credential on a separate line', (memory) => memory.store('a', `log:\n${CREDENTIAL}`)],
    ['a credential after a tab', (memory) => memory.store('a', `\t${CREDENTIAL}`)],
    ['a credential after a carriage return', (memory) => memory.store('a', { log: [`\r${CREDENTIAL}`] })],
    ['a credential as a key', (memory) => memory.store(CREDENTIAL, 1)],
    ['a password under a key that says so', (memory) => memory.store('database password', 'Tr0ub4dor&3')],
    ['a credential as a tag', (memory) => memory.store('a', 1, { tags: [CREDENTIAL] })],
  ])('does not store %s', async (_what, step) => {
    const { within, store } = await opened();
    await expect(within((context) => step(memoryOf(context)))).rejects.toMatchObject({ name: 'Failure' });
    expect(await store.space({ subject: 'me' }, 'pack').count()).toBe(0);
  });
});

describe('a session', () => {
  test('has its own working memory (R-PACK-07, R-ISO-04)', async () => {
    const { within } = await opened();
    await within((context) => memoryOf(context).store('a', 'of the session'), { session: 's1' });
    const seen = async (context: ExecutionContext) => [
      memoryOf(context).namespace,
      (await memoryOf(context).recall('a'))?.value ?? 'nothing',
    ];
    expect(await within(seen, { session: 's1' })).toEqual(['me:s1', 'of the session']);
    expect(await within(seen, { session: 's2' })).toEqual(['me:s2', 'nothing']);
    expect(await within(seen)).toEqual(['me', 'nothing']);
  });

  test('is named in the result', async () => {
    const { as } = await opened();
    expect(await as(me)('runPack', { name: 'test.echo', session: 's1' })).toMatchObject({ session_id: 's1' });
  });

  test('is deleted with its memory when it is ended (R-PACK-07)', async () => {
    const { within, as, store } = await opened();
    await within((context) => memoryOf(context).store('a', 1), { session: 's1' });
    await within((context) => memoryOf(context).store('b', 1));
    expect(await as(me)('endSession', { id: 's1' })).toEqual({ session_id: 's1', deleted: 1 });
    expect(await as(me)('endSession', { id: 's1' })).toEqual({ session_id: 's1', deleted: 0 });
    expect(await store.space({ subject: 'me', session: 's1' }, 'pack').count()).toBe(0);
    expect(await store.space({ subject: 'me' }, 'pack').count()).toBe(1);
  });

  test('ends after an hour without use, and not before (R-PACK-07)', async () => {
    const { within, store, clock } = await opened();
    const left = () => store.space({ subject: 'me', session: 's1' }, 'pack').count();
    await within((context) => memoryOf(context).store('a', 1), { session: 's1' });
    await clock.advance(59 * MINUTE);
    await within(() => undefined, { session: 's1' });
    await clock.advance(59 * MINUTE);
    expect(await left()).toBe(1);
    await clock.advance(MINUTE);
    await expect.poll(left).toBe(0);
  });

  test('cannot be ended by another subject (R-ISO-01)', async () => {
    const { within, as, store } = await opened();
    await within((context) => memoryOf(context).store('a', 1), { session: 's1' });
    expect(await as(aCaller({ subject: 'you' }))('endSession', { id: 's1' })).toMatchObject({ deleted: 0 });
    expect(await store.space({ subject: 'me', session: 's1' }, 'pack').count()).toBe(1);
  });

  test.each(['', 'a:b', '.hidden', 'a b', 'x'.repeat(65), 'ä'])('cannot have the name %o', async (session) => {
    const { as } = await opened();
    await expect(as(me)('runPack', { name: 'test.echo', session })).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('is refused while the subject has a hundred open sessions', async () => {
    const { as, clock } = await opened();
    const run = (session: string, caller = theOwner) => as(caller)('runPack', { name: 'test.echo', session });
    for (let turn = 0; turn < 100; turn += 1) await run(`s${turn}`);
    await expect(run('one-more')).rejects.toMatchObject({ code: 'session_unavailable' });
    await run('one', aCaller({ subject: 'you' }));
    await run('s0');
    await clock.advance(HOUR);
    await run('one-more');
  });

  test('does not outlive the program (R-PACK-07)', async () => {
    const { within, store } = await opened();
    await within((context) => memoryOf(context).store('a', 1), { session: 's1' });
    await within((context) => memoryOf(context).store('a', 1));
    // The state after a start: no session is open yet.
    using anew = new PackSessions(store, manualClock(), () => undefined);
    await anew.endLeftovers();
    expect(await store.space({ subject: 'me', session: 's1' }, 'pack').count()).toBe(0);
    expect(await store.space({ subject: 'me' }, 'pack').count()).toBe(1);
  });

  test('does not share memory with one of the same name from an earlier start (R-PACK-07)', async () => {
    const before = await opened();
    await before.within((context) => memoryOf(context).store('a', 1), { session: 's1' });
    await before.store[Symbol.asyncDispose]();
    const { within } = await opened({}, undefined, { folder: before.folder, clock: before.clock });
    const listed = await Promise.all(
      [1, 2].map(() => within(async (context) => (await memoryOf(context).list()).length, { session: 's1' })),
    );
    expect(listed).toEqual([0, 0]);
  });
});
