import { describe, expect, test } from 'vitest';
import type { OperationRequest } from '../../../src/contract/operations.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';
import { aPack } from '../../support/packs.ts';

const author = aCaller({ client: 'author', token: 'token-author' });
const runner = aCaller({ client: 'runner', token: 'token-runner' });
const stranger = aCaller({ client: 'stranger', token: 'token-stranger' });

type Definition = OperationRequest<'createPipeline'>;

const aPipeline = (over: Partial<Definition> = {}): Definition => ({
  id: 'work',
  steps: [
    { id: 'wait', pack: 'test.echo' },
    { id: 'write', pack: 'helmdeck.memory_store', input: { key: 'planted', value: 'late' } },
  ],
  ...over,
});

/** A memory in which the runner's run of the owner's pipeline is in its first step until `release` is called. */
async function aRunUnderWay({ by = runner, definer = theOwner } = {}) {
  const entered = Promise.withResolvers<undefined>();
  const released = Promise.withResolvers<{ said: string }>();
  const waiting = aPack(
    async ({ memory }) => {
      entered.resolve(undefined);
      const output = await released.promise;
      // This pack ignores its cancellation.
      await memory?.store('late', 'written after the end').catch(() => undefined);
      return output;
    },
    { memory: {} },
  );
  const memory = await openTestMemory({ packs: { packs: [waiting] } });
  await memory.as(definer)('createPipeline', aPipeline());
  const { run_id: runId } = await memory.as(by)('runPipeline', { id: 'work' });
  await entered.promise;
  const packEntries = async () =>
    (await memory.store.space({ subject: 'me' }, 'pack').page({ sort: 'oldest', limit: 100 })).entries.map(({ key }) => key);
  /** Lets the pack continue, and waits until it could have written. */
  const release = async () => {
    released.resolve({ said: 'done' });
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return { ...memory, runId, release, packEntries, owner: memory.as(theOwner) };
}

describe('a running pipeline is cancelled, and writes nothing more (R-PACK-37)', () => {
  test.each(['all', 'client:runner', 'client:command-line'])('by `forget %s`', async (scope) => {
    const { owner, release, packEntries, runId } = await aRunUnderWay();
    await owner('forget', { scope });
    await release();
    expect((await owner('list', {})).facts).toEqual([]);
    expect(await packEntries()).toEqual(scope === 'client:runner' ? ['pipelines/work'] : []);
    await expect(owner('pipelineRun', { run_id: runId })).rejects.toMatchObject({ code: 'not_found' });
    expect((await owner('query', { query: 'work' })).results).toEqual([]);
  });

  test.each([
    ['by an undo of the client that started it', async ({ owner }) => owner('undo', { client: 'runner', since: START })],
    ['by an undo of the client that defined it', async ({ owner }) => owner('undo', { client: 'command-line', since: START })],
    ['when its pipeline is deleted', async ({ owner }) => owner('deletePipeline', { id: 'work' })],
    ['when its pipeline is replaced', async ({ owner }) => owner('createPipeline', aPipeline({ title: 'Changed' }))],
    [
      'when its pipeline is adopted by another',
      async ({ owner, as }) => {
        const { updated_at } = await owner('pipeline', { id: 'work' });
        await as({ ...theOwner, client: 'window' })('adoptPipeline', { id: 'work', updated_at });
      },
    ],
  ] satisfies [string, (memory: Awaited<ReturnType<typeof aRunUnderWay>>) => Promise<unknown>][])('%s', async (_when, change) => {
    const memory = await aRunUnderWay();
    await change(memory);
    await memory.release();
    expect((await memory.owner('list', {})).facts).toEqual([]);
    expect(await memory.packEntries()).not.toContain('test.echo/late');
    expect(await memory.owner('pipelineRun', { run_id: memory.runId })).toMatchObject({
      status: 'cancelled',
      failure: { error: 'cancelled' },
      steps: [{ status: 'cancelled' }, { status: 'skipped' }],
    });
  });

  test('while it waits for the consent of the owner, too', async () => {
    const memory = await openTestMemory({ packs: { packs: [aPack(() => ({ said: 'x' }), { usesNetwork: true })] } });
    await memory.as(theOwner)('createPipeline', aPipeline());
    const asked = Promise.withResolvers<undefined>();
    const consent = (): Promise<boolean> => {
      asked.resolve(undefined);
      return new Promise(() => undefined);
    };
    const { run_id } = await memory.perform(theOwner, 'runPipeline', { id: 'work' }, { consent });
    await asked.promise;
    await memory.as(theOwner)('deletePipeline', { id: 'work' });
    expect(await memory.as(theOwner)('pipelineRun', { run_id })).toMatchObject({ status: 'cancelled' });
  });

  test.each(['forget', 'undo'] as const)('except by a dry run of `%s`, or by one for another client', async (name) => {
    const { owner, as, release, runId } = await aRunUnderWay();
    await owner(name, name === 'forget' ? { scope: 'all', dry_run: true } : { client: 'runner', since: START, dry_run: true });
    await as(stranger)('createPipeline', aPipeline({ id: 'other' }));
    await as(stranger)('deletePipeline', { id: 'other' });
    await owner(name, name === 'forget' ? { scope: 'client:stranger' } : { client: 'stranger', since: START });
    await release();
    await expect.poll(async () => (await owner('pipelineRun', { run_id: runId })).status).toBe('succeeded');
  });

  test('unless its own step runs the forget', async () => {
    const memory = await openTestMemory();
    const may = memory.as(runner);
    const steps = [
      { id: 'forget', pack: 'helmdeck.memory_forget', input: { scope: 'client:stranger' } },
      { id: 'again', pack: 'helmdeck.memory_forget', input: { scope: 'all' } },
    ];
    await may('createPipeline', aPipeline({ steps }));
    expect(await may('finishPipeline', { id: 'work' })).toMatchObject({ status: 'succeeded' });
  });
});

const START = '2020-01-01T00:00:00Z';

describe('another client’s run (R-PACK-39)', () => {
  test('is cancelled by the client that started it, or by the owner, and is unknown to others', async () => {
    const { as, owner, runId, release } = await aRunUnderWay({ definer: author, by: author });
    const unknown = '00000000-0000-4000-8000-000000000000';
    const refusals = await Promise.all(
      [runId, unknown].map((run_id) => as(stranger)('cancelPipelineRun', { run_id }).catch((error: unknown) => error)),
    );
    expect(refusals[0]).toMatchObject({ code: 'not_found' });
    expect(refusals[0]).toEqual(refusals[1]);
    expect(await owner('pipelineRun', { run_id: runId })).toMatchObject({ status: 'running' });
    expect(await as(author)('cancelPipelineRun', { run_id: runId })).toMatchObject({ status: 'cancelled' });
    await expect(as(stranger)('cancelPipelineRun', { run_id: runId })).rejects.toMatchObject({ code: 'not_found' });
    await release();
    const second = await aRunUnderWay({ definer: author, by: author });
    expect(await second.owner('cancelPipelineRun', { run_id: second.runId })).toMatchObject({ status: 'cancelled' });
  });
});
