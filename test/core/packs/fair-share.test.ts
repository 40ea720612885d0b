import { describe, expect, test } from 'vitest';
import type { Failure } from '../../../src/contract/failure.ts';
import { PACK, PIPELINE } from '../../../src/contract/limits.ts';
import type { Caller } from '../../../src/core/access/caller.ts';
import { collectPage } from '../../../src/core/store/collect-page.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';
import { aPack } from '../../support/packs.ts';

const greedy = aCaller({ client: 'greedy', token: 'token-greedy' });
const modest = aCaller({ client: 'modest', token: 'token-modest' });

/** How often the attempt succeeds before it is refused with this code. */
async function countUntil(code: string, attempt: (turn: number) => Promise<unknown>): Promise<number> {
  for (let turn = 0; ; turn += 1) {
    const failure = await attempt(turn).then(
      () => undefined,
      (error: unknown) => error as Failure,
    );
    if (failure?.code === code) return turn;
    if (failure) throw failure;
  }
}

const steps = [{ id: 'only', pack: 'test.echo' }];

describe('a client can use at most half of the free capacity, and the owner all of it (R-PACK-38)', () => {
  test('for pipelines', async () => {
    const { as } = await openTestMemory({ packs: { packs: [aPack(() => ({ said: 'x' }))] } });
    const create = (caller: Caller) =>
      countUntil('quota_exceeded', (turn) => as(caller)('createPipeline', { id: `${caller.client}-${turn}`, steps }));
    expect(await create(greedy)).toBe(PIPELINE.definitions / 2);
    expect(await create(modest)).toBe(PIPELINE.definitions / 4);
    expect(await create(theOwner)).toBe(PIPELINE.definitions / 4);
  });

  test('for runs of pipelines at once', async () => {
    const held = Promise.withResolvers<{ said: string }>();
    const { as } = await openTestMemory({ packs: { packs: [aPack(() => held.promise)] } });
    await as(theOwner)('createPipeline', { id: 'wait', steps });
    const run = (caller: Caller) => countUntil('rate_limited', () => as(caller)('runPipeline', { id: 'wait' }));
    expect(await run(greedy)).toBe(4);
    expect(await run(modest)).toBe(2);
    expect(await run(theOwner)).toBe(2);
    held.resolve({ said: 'x' });
  });

  test('for sessions of packs', async () => {
    const { as } = await openTestMemory({ packs: { packs: [aPack(() => ({ said: 'x' }))] } });
    const open = (caller: Caller) =>
      countUntil('session_unavailable', (turn) =>
        as(caller)('runPack', { name: 'test.echo', session: `${caller.client}-${turn}` }),
      );
    expect(await open(greedy)).toBe(PACK.sessions / 2);
    expect(await open(modest)).toBe(PACK.sessions / 4);
    expect(await open(theOwner)).toBe(PACK.sessions / 4);
  });
});

describe('a session of a pack (R-PACK-39)', () => {
  test('is ended by the client that started it, or by the owner, and looks unknown to others', async () => {
    const keeper = aPack(({ memory }) => memory?.store('a', 1).then(() => ({ said: 'kept' })), { memory: {} });
    const { as, store } = await openTestMemory({ packs: { packs: [keeper] } });
    const kept = () => store.space({ subject: 'me', session: 's' }, 'pack').count();
    for (const caller of [greedy, theOwner]) {
      await as(greedy)('runPack', { name: 'test.echo', session: 's' });
      expect(await as(modest)('endSession', { id: 's' })).toEqual({ session_id: 's', deleted: 0 });
      expect(await as(modest)('endSession', { id: 't' })).toEqual({ session_id: 't', deleted: 0 });
      expect(await kept()).toBe(1);
      expect(await as(caller)('endSession', { id: 's' })).toEqual({ session_id: 's', deleted: 1 });
      expect(await kept()).toBe(0);
    }
  });
});

describe('a full quota for pack data (R-PACK-28)', () => {
  const value = 'x'.repeat(1000);
  const keeper = aPack(({ memory, input: { what } }) => memory?.store(what, value).then(() => ({ said: 'kept' })), {
    memory: {},
  });
  const opened = async () => {
    const memory = await openTestMemory({ packs: { packs: [keeper] }, quota: { facts: 100, bytes: 100_000 } });
    const keep = (caller: Caller, what: string) => memory.as(caller)('runPack', { name: 'test.echo', input: { what } });
    const keys = async () => {
      const space = memory.store.space({ subject: 'me' }, 'pack');
      const { entries } = await collectPage(space, { sort: 'oldest', limit: 200 }, { between: () => Promise.resolve() });
      return entries.map(({ key }) => key);
    };
    await keep(modest, 'modest');
    const count = await countUntil('quota_exceeded', (turn) => memory.clock.advance(1).then(() => keep(greedy, `${turn}`)));
    return { ...memory, keep, keys, count };
  };

  test('evicts the oldest entries of the client that stores the most', async () => {
    const { keep, keys, count } = await opened();
    for (let turn = 0; turn < 5; turn += 1) await keep(modest, `modest-${turn}`);
    const left = await keys();
    expect(left).toEqual(expect.arrayContaining(['test.echo/modest', 'test.echo/modest-4', `test.echo/${count - 1}`]));
    expect(left).not.toContain('test.echo/0');
    expect(left.length).toBeGreaterThan(count * 0.8);
  });

  test('makes room for pipelines and their runs, too', async () => {
    const { as, keys, count } = await opened();
    await as(modest)('createPipeline', { id: 'small', steps: [{ id: 'only', pack: 'test.echo', input: { what: 'modest' } }] });
    expect(await as(modest)('finishPipeline', { id: 'small' })).toMatchObject({ status: 'succeeded' });
    expect((await keys()).length).toBeGreaterThan(count * 0.7);
  });
});

describe('the records of runs', () => {
  test('are evicted from the client that owns most of the oldest ones (R-PACK-38)', async () => {
    const memory = await openTestMemory({ packs: { packs: [aPack(() => ({ said: 'x' }))] } });
    await memory.as(theOwner)('createPipeline', { id: 'quick', steps });
    const run = async (caller: Caller) => {
      const { run_id } = await memory.as(caller)('finishPipeline', { id: 'quick' });
      await memory.clock.advance(1);
      return run_id;
    };
    const first: string[] = [];
    for (let turn = 0; turn < 10; turn += 1) first.push(await run(modest));
    const space = memory.store.space({ subject: 'me' }, 'pack');
    const entry = await space.get(`pipeline-runs/${await run(greedy)}`);
    const draft = { value: entry!.value, category: 'pipeline:ended', tags: [], author: entry!.author, lifetime: 60_000 };
    await Promise.all(
      Array.from({ length: PIPELINE.runs - 11 }, (_, index) => space.put({ ...draft, key: `pipeline-runs/${index}` })),
    );
    for (let turn = 0; turn < 10; turn += 1) await run(greedy);
    for (const run_id of first) expect(await memory.as(modest)('pipelineRun', { run_id })).toMatchObject({ client: 'modest' });
    expect(await space.count('pipeline:ended')).toBe(PIPELINE.runs);
  });
});
