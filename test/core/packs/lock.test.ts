import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { CallContext } from '../../../src/core/operations/call-context.ts';
import type { PackHook } from '../../../src/core/packs/hook.ts';
import type { Pack } from '../../../src/core/packs/pack.ts';
import { DAY } from '../../support/clock.ts';
import { aCaller, openTestMemory, type TestMemory, theOwner } from '../../support/memory.ts';
import { aPack } from '../../support/packs.ts';

const me = aCaller();
const REFUSED = { code: 'key_unavailable' };

/** Attaches a rejection handler now, so that the promise may reject at any time. */
const failureOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

/** A pack that signals when it has started and returns when the test allows it. */
function heldPack(over: Partial<Pack> = {}) {
  const started = Promise.withResolvers<void>();
  const held = Promise.withResolvers<{ said: string }>();
  const pack = aPack(
    ({ progress }) => {
      started.resolve();
      void held.promise.then(() => progress(1, 2, 'opened before the lock'));
      return held.promise;
    },
    { name: 'test.held', ...over },
  );
  return { pack, started: started.promise, answer: () => held.resolve({ said: 'opened before the lock' }) };
}

const start = (memory: TestMemory, during?: CallContext) =>
  memory.perform(me, 'runPack', { name: 'test.held', input: { what: 'x' } }, during);

describe('a locked memory (R-LOCK-03)', () => {
  test('ends running packs, stops their progress, and withholds their outputs', async () => {
    const { pack, started, answer } = heldPack();
    const memory = await openTestMemory({ packs: { packs: [pack] } });
    const progress: unknown[] = [];
    const running = start(memory, { progress: (...said) => progress.push(said) });
    const failure = failureOf(running);
    await started;
    await memory.as(theOwner)('lock', {});
    answer();
    expect(await failure).toMatchObject(REFUSED);
    expect(progress).toEqual([]);
  });

  test('withholds an output whose row is being written', async () => {
    const recording = Promise.withResolvers<void>();
    const recorded = Promise.withResolvers<void>();
    const slow: PackHook = {
      after() {
        recording.resolve();
        return recorded.promise;
      },
    };
    const memory = await openTestMemory({
      packs: { packs: [aPack(() => ({ said: 'opened' }), { name: 'test.held' })], hooks: [slow] },
    });
    const running = start(memory);
    const failure = failureOf(running);
    await recording.promise;
    await memory.as(theOwner)('lock', {});
    recorded.resolve();
    expect(await failure).toMatchObject(REFUSED);
  });

  test('withholds the output from callers that wait for an equal request', async () => {
    const { pack, started, answer } = heldPack({ memory: { cache: true, ttl: DAY / 1000 } });
    const memory = await openTestMemory({ packs: { packs: [pack] } });
    const both = [start(memory), start(memory)].map(failureOf);
    await started;
    await memory.as(theOwner)('lock', {});
    answer();
    expect(await Promise.all(both)).toMatchObject([REFUSED, REFUSED]);
    await expect(start(memory)).rejects.toMatchObject(REFUSED);
  });

  test('hides pipeline runs and the outputs of their steps, also during a step', async () => {
    const { pack, started, answer } = heldPack();
    const echo = aPack(({ input: { what } }) => ({ said: what }));
    const memory = await openTestMemory({ packs: { packs: [echo, pack] } });
    const steps = [
      { id: 'first', pack: 'test.echo', input: { what: 'opened before the lock' } },
      { id: 'second', pack: 'test.held', input: { what: '${{ steps.first.output.said }}' } },
    ];
    await memory.as(me)('createPipeline', { id: 'two', steps });
    const progress: unknown[] = [];
    const finishing = memory.perform(me, 'finishPipeline', { id: 'two' }, { progress: (...said) => progress.push(said) });
    const failure = failureOf(finishing);
    await started;
    const [{ run_id: id } = { run_id: '' }] = (await memory.as(me)('pipelineRuns', {})).runs;
    const before = progress.length;
    memory.store.lock();
    await expect(memory.as(me)('pipelineRun', { run_id: id })).rejects.toMatchObject(REFUSED);
    await expect(memory.as(me)('pipelineRuns', {})).rejects.toMatchObject(REFUSED);
    answer();
    expect(await failure).toMatchObject(REFUSED);
    await expect(memory.as(me)('cancelPipelineRun', { run_id: id })).rejects.toMatchObject(REFUSED);
    expect(progress).toHaveLength(before);

    await memory.as(theOwner)('unlock', {});
    await memory.packs.resume();
    const run = await memory.as(me)('pipelineRun', { run_id: id });
    expect(run.status).toBe('failed');
    expect(JSON.stringify(run)).not.toContain('opened before the lock');
  });

  test('continues no pipeline when it is unlocked at once', async () => {
    const { pack, started, answer } = heldPack();
    const memory = await openTestMemory({ packs: { packs: [pack] } });
    const steps = [
      { id: 'first', pack: 'test.held' },
      { id: 'second', pack: 'helmdeck.memory_store', input: { key: 'late', value: '${{ steps.first.output.said }}' } },
    ];
    await memory.as(me)('createPipeline', { id: 'two', steps });
    const { run_id: id } = await memory.as(me)('runPipeline', { id: 'two' });
    await started;
    memory.store.lock();
    await memory.store.unlock();
    answer();
    while ((await memory.as(me)('pipelineRun', { run_id: id })).status === 'running') await nextTurn();
    expect(await memory.as(me)('pipelineRun', { run_id: id })).toMatchObject({
      status: 'cancelled',
      failure: { error: 'key_unavailable', message: expect.stringMatching(/^The memory was locked/) },
    });
    await expect(memory.as(me)('recall', { key: 'late' })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('discards the outputs of a cancelled pipeline run, also after an immediate unlock', async () => {
    const { pack, started } = heldPack();
    const echo = aPack(({ input: { what } }) => ({ said: what }));
    const memory = await openTestMemory({ packs: { packs: [echo, pack] } });
    const steps = [
      { id: 'first', pack: 'test.echo', input: { what: '${{ inputs.what }}' } },
      { id: 'second', pack: 'test.held' },
    ];
    await memory.as(me)('createPipeline', { id: 'two', steps });
    const { run_id: id } = await memory.as(me)('runPipeline', { id: 'two', inputs: { what: 'opened before the lock' } });
    await started;
    const [first] = (await memory.as(me)('pipelineRun', { run_id: id })).steps;
    expect(first?.output).toEqual({ said: 'opened before the lock' });
    memory.store.lock();
    await memory.store.unlock();
    while ((await memory.as(me)('pipelineRun', { run_id: id })).status === 'running') await nextTurn();
    const run = await memory.as(me)('pipelineRun', { run_id: id });
    expect(run.steps.map(({ status }) => status)).toEqual(['succeeded', 'cancelled']);
    expect(JSON.stringify(run)).not.toContain('opened before the lock');
  });

  test('hides habits learned before the lock, also from calls made before it', async () => {
    const memory = await openTestMemory({ packs: { packs: [aPack(() => ({ said: '' }))] } });
    await memory.as(me)('runPack', { name: 'test.echo', input: {} });
    const asked = memory.as(me)('myDefaults', {});
    const failure = failureOf(asked);
    // After the page was read, before the caller continues.
    await nextTurn();
    memory.store.lock();
    expect(await failure).toMatchObject(REFUSED);
  });
});
