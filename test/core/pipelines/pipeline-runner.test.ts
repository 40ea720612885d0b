import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { PIPELINE } from '../../../src/contract/limits.ts';
import type { OperationRequest } from '../../../src/contract/operations.ts';
import type { PipelineRun } from '../../../src/contract/pipeline.ts';
import type { Caller } from '../../../src/core/access/caller.ts';
import type { ExecutionContext, Pack } from '../../../src/core/packs/pack.ts';
import { DAY, MINUTE, SECOND } from '../../support/clock.ts';
import { aCaller, openTestMemory, type TestMemory, theOwner } from '../../support/memory.ts';
import { aPack, CREDENTIAL } from '../../support/packs.ts';

const me = aCaller();

type Definition = OperationRequest<'createPipeline'>;

const aPipeline = (over: Partial<Definition> = {}): Definition => ({
  id: 'greet',
  steps: [
    { id: 'first', pack: 'test.echo', input: { what: '${{ inputs.name }}' } },
    { id: 'second', pack: 'test.echo', input: { what: 'Hello ${{ steps.first.output.said }}' } },
  ],
  ...over,
});

const echo = aPack(({ input: { what } }) => ({ said: what }));

const withPacks = (...packs: readonly Pack[]) => openTestMemory({ packs: { packs: packs.length > 0 ? packs : [echo] } });

async function ended({ as }: Pick<TestMemory, 'as'>, runId: string, caller: Caller = me): Promise<PipelineRun> {
  for (;;) {
    const run = await as(caller)('pipelineRun', { run_id: runId });
    if (run.status !== 'running') return run;
    await nextTurn();
  }
}

async function runToEnd(memory: TestMemory, definition = aPipeline(), inputs: Record<string, unknown> = { name: 'Ada' }) {
  await memory.as(me)('createPipeline', definition);
  const started = await memory.as(me)('runPipeline', { id: definition.id, inputs });
  return await ended(memory, started.run_id);
}

const rows = async ({ store }: TestMemory) =>
  (await store.space({ subject: 'me' }, 'audit').page({ sort: 'oldest', limit: 100, category: 'pipeline_history' })).entries;

describe('a pipeline definition', () => {
  test('is stored, shown and listed, and replaces one with the same id (R-PACK-23)', async () => {
    const memory = await withPacks();
    const may = memory.as(me);
    const definition = aPipeline({ title: 'Greeting', description: 'Greets somebody.' });
    expect(await may('createPipeline', definition)).toEqual({
      id: 'greet',
      status: 'created',
      expires_at: new Date(memory.clock.now() + 365 * DAY).toISOString(),
    });
    expect(await may('pipeline', { id: 'greet' })).toMatchObject(definition);
    expect(await may('createPipeline', definition)).toMatchObject({ status: 'unchanged' });
    expect(await may('createPipeline', { ...definition, title: 'Other' })).toMatchObject({ status: 'updated' });
    await may('createPipeline', aPipeline({ id: 'a' }));
    expect(await may('pipelines', {})).toMatchObject({
      pipelines: [
        { id: 'a', inputs: ['name'], steps: 2 },
        { id: 'greet', title: 'Other', description: 'Greets somebody.' },
      ],
    });
  });

  test('can be deleted, and is unknown afterwards', async () => {
    const memory = await withPacks();
    const may = memory.as(me);
    await may('createPipeline', aPipeline());
    expect(await may('deletePipeline', { id: 'greet' })).toEqual({ id: 'greet', deleted: true });
    await expect(may('pipeline', { id: 'greet' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(may('deletePipeline', { id: 'greet' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(may('runPipeline', { id: 'greet' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await may('pipelines', {})).toEqual({ pipelines: [] });
  });

  const step = (over: object) => ({ id: 'one', pack: 'test.echo', ...over });
  const deep = (depth: number): unknown => (depth === 0 ? 'x' : [deep(depth - 1)]);

  test.each<[what: string, over: object, says: RegExp]>([
    ['an invalid id', { id: 'Greet Me' }, /^id must have/],
    ['no steps', { steps: [] }, /^steps must have at least one/],
    [
      'too many steps',
      { steps: Array.from({ length: 21 }, (_, n) => step({ id: `s${n}` })) },
      /^steps must be a list of at most/,
    ],
    ['an unknown field', { timeout: 5 }, /unknown field/],
    ['an unknown field of a step', { steps: [step({ if: 'x' })] }, /^steps\.0 has an unknown field/],
    ['an unknown pack', { steps: [step({ pack: 'no.such' })] }, /^steps\.0\.pack is no\.such, which does not exist/],
    ['two steps with the same id', { steps: [step({}), step({})] }, /^steps\.1\.id is used by another step/],
    ['two inputs with the same name', { inputs: [{ name: 'a' }, { name: 'a' }] }, /^inputs\.1\.name is used by another/],
    [
      'a reference to an unknown step',
      { steps: [step({ input: { what: '${{ steps.no.output.x }}' } })] },
      /refers to steps\.no\.output\.x, which is not a step/,
    ],
    [
      'a step that refers to itself',
      { steps: [step({ input: { what: '${{ steps.one.output.x }}' } })] },
      /steps\.one\.output\.x, which has not run yet/,
    ],
    [
      'a reference to a later step',
      { steps: [step({ input: { what: '${{ steps.two.output }}' } }), step({ id: 'two' })] },
      /^steps\.0\.input refers to steps\.two\.output, which has not run yet/,
    ],
    [
      'a reference to an undeclared input',
      { inputs: [{ name: 'other' }] },
      /^steps\.0\.input refers to inputs\.name, which is not an input/,
    ],
    [
      'an invalid reference',
      { steps: [step({ input: { what: '${{ secrets.key }}' } })] },
      /^steps\.0\.input contains \$\{\{ without a valid reference/,
    ],
    [
      'a reference as a field name',
      { steps: [step({ input: { what: [{ '${{ inputs.name }}': 1 }] } })] },
      /^steps\.0\.input has \$\{\{ in a field name/,
    ],
    [
      'a reference in a default',
      { inputs: [{ name: 'name', default: { deep: '${{ inputs.other }}' } }] },
      /^inputs\.0\.default contains \$\{\{, but references/,
    ],
    ['too many levels', { steps: [step({ input: { what: deep(40) } })] }, /is nested more than 32 levels deep/],
    ['thousands of levels', { steps: [step({ input: { what: deep(3000) } })] }, /is nested more than 32 levels deep/],
    ['too much text', { steps: [step({ input: { what: 'x'.repeat(PIPELINE.bytes) } })] }, /larger than 32 KiB/],
  ])('is refused with %s, before anything runs (R-PACK-22)', async (_what, over, says) => {
    const memory = await withPacks();
    const failure: unknown = await memory
      .perform(me, 'createPipeline', { ...aPipeline(), ...over })
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'invalid_input', message: expect.stringMatching(says) });
    expect(await memory.as(me)('pipelines', {})).toEqual({ pipelines: [] });
  });

  test.each<[what: string, over: Partial<Definition>, field: string]>([
    ['a title', { title: CREDENTIAL }, 'title'],
    ['an input of a step', { steps: [{ id: 'one', pack: 'test.echo', input: { what: CREDENTIAL } }] }, 'steps'],
    ['a field named password', { steps: [{ id: 'one', pack: 'test.echo', input: { password: 'tr0ub4dor&3xyz' } }] }, 'steps'],
    ['a default', { inputs: [{ name: 'name', default: `token\n${CREDENTIAL}` }] }, 'inputs'],
  ])('is refused with a credential in %s, like a fact (R-FACT-18)', async (_what, over, field) => {
    const memory = await withPacks();
    const failure: unknown = await memory
      .as(me)('createPipeline', aPipeline(over))
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'invalid_input', message: expect.stringMatching(new RegExp(`^${field} looks like`)) });
    expect(String(failure)).not.toContain(CREDENTIAL);
  });

  test('may contain a reference to a credential', async () => {
    const memory = await withPacks();
    const input = { password: '${{ inputs.password }}', token: '${{ steps.first.output.said }}' };
    const steps = [...aPipeline().steps, { id: 'third', pack: 'test.echo', input }];
    expect(await memory.as(me)('createPipeline', aPipeline({ steps }))).toMatchObject({ status: 'created' });
  });

  test('is stored with a warning about a credential, if the owner chose warnings', async () => {
    const memory = await openTestMemory({ secrets: 'warn', packs: { packs: [echo] } });
    expect(await memory.as(me)('createPipeline', aPipeline({ title: CREDENTIAL }))).toMatchObject({
      status: 'created',
      note: expect.stringMatching(/^title looks like/),
    });
  });

  test('is refused if the subject has a hundred, and none is evicted', async () => {
    const memory = await withPacks();
    const may = memory.as(theOwner);
    await Promise.all(
      Array.from({ length: PIPELINE.definitions }, (_, index) => may('createPipeline', aPipeline({ id: `p${index}` }))),
    );
    await expect(may('createPipeline', aPipeline({ id: 'more' }))).rejects.toMatchObject({ code: 'quota_exceeded' });
    expect(await may('createPipeline', aPipeline({ id: 'p7', title: 'Changed' }))).toMatchObject({ status: 'updated' });
    expect((await may('pipelines', {})).pipelines).toHaveLength(PIPELINE.definitions);
    const other = memory.as(aCaller({ subject: 'you' }));
    expect(await other('createPipeline', aPipeline({ id: 'more' }))).toMatchObject({ status: 'created' });
  });

  test('is visible to its own subject only (R-ISO-01)', async () => {
    const memory = await withPacks();
    await memory.as(me)('createPipeline', aPipeline());
    const run = await memory.as(me)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
    const other = memory.as(aCaller({ subject: 'you' }));
    expect(await other('pipelines', {})).toEqual({ pipelines: [] });
    for (const name of ['pipeline', 'runPipeline', 'deletePipeline'] as const) {
      await expect(other(name, { id: 'greet' })).rejects.toMatchObject({ code: 'not_found' });
    }
    for (const name of ['pipelineRun', 'cancelPipelineRun'] as const) {
      await expect(other(name, { run_id: run.run_id })).rejects.toMatchObject({ code: 'not_found' });
    }
    await ended(memory, run.run_id);
    await expect(other('pipelineRun', { run_id: run.run_id })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('requires memory:read for reading, and packs:run for everything else (R-OPS-11)', async () => {
    const memory = await withPacks();
    const reader = memory.as(aCaller({ may: ['memory:read'] }));
    expect(await reader('pipelines', {})).toEqual({ pipelines: [] });
    await expect(reader('createPipeline', aPipeline())).rejects.toMatchObject({ code: 'insufficient_scope' });
    await expect(reader('runPipeline', { id: 'greet' })).rejects.toMatchObject({ code: 'insufficient_scope' });
    const runner = memory.as(aCaller({ may: ['packs:run'] }));
    expect(await runner('createPipeline', aPipeline())).toMatchObject({ status: 'created' });
    await expect(runner('pipelines', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  });

  test('cannot be reached by the memory of a pack', async () => {
    const pack = aPack(
      async ({ memory }) => {
        await memory?.store('pipelines/greet', 'planted', { category: 'pipelines' });
        return { said: '', seen: await memory?.list() };
      },
      { memory: {} },
    );
    const memory = await withPacks(pack);
    await memory.as(me)('createPipeline', aPipeline({ id: 'other' }));
    const { output } = await memory.as(me)('runPack', { name: 'test.echo', input: {} });
    expect(output).toMatchObject({ seen: [{ key: 'pipelines/greet' }] });
    expect((await memory.as(me)('pipelines', {})).pipelines.map(({ id }) => id)).toEqual(['other']);
    await expect(memory.as(me)('pipeline', { id: 'greet' })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('expires a year after the last change or run', async () => {
    const memory = await withPacks();
    const may = memory.as(me);
    await may('createPipeline', aPipeline());
    memory.clock.jump(300 * DAY);
    const { run_id: id } = await may('runPipeline', { id: 'greet', inputs: { name: 'x' } });
    await ended(memory, id);
    const { expires_at: end } = await may('pipeline', { id: 'greet' });
    expect(Date.parse(end)).toBe(memory.clock.now() + 365 * DAY);
  });
});

describe('a run', () => {
  test('feeds each step from inputs and from earlier outputs (R-PACK-12)', async () => {
    const memory = await withPacks();
    const may = memory.as(me);
    await may('createPipeline', aPipeline());
    const started = await may('runPipeline', { id: 'greet', inputs: { name: 'Ada' } });
    expect(started).toMatchObject({ pipeline: 'greet', status: 'running', steps: [{ id: 'first' }, { id: 'second' }] });
    const run = await ended(memory, started.run_id);
    expect(run).toEqual({
      run_id: started.run_id,
      pipeline: 'greet',
      client: 'claude-code',
      status: 'succeeded',
      started_at: started.started_at,
      ended_at: expect.any(String),
      duration_ms: 0,
      steps: [
        { id: 'first', pack: 'test.echo', status: 'succeeded', duration_ms: 0, cached: false, output: { said: 'Ada' } },
        { id: 'second', pack: 'test.echo', status: 'succeeded', duration_ms: 0, cached: false, output: { said: 'Hello Ada' } },
      ],
    });
    expect(await may('cancelPipelineRun', { run_id: started.run_id })).toEqual(run);
  });

  test('returns before its steps have run', async () => {
    const held = Promise.withResolvers<object>();
    const memory = await withPacks(aPack(() => held.promise));
    await memory.as(me)('createPipeline', aPipeline());
    const { run_id: id } = await memory.as(me)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
    for (;;) {
      const run = await memory.as(me)('pipelineRun', { run_id: id });
      expect(run.status).toBe('running');
      if (run.steps[0]?.status === 'running') break;
      await nextTurn();
    }
    held.resolve({ said: 'late' });
    expect(await ended(memory, id)).toMatchObject({ status: 'succeeded' });
  });

  test('keeps the type of a reference that is the whole text', async () => {
    const count = aPack(() => ({ said: '', count: 2, list: [{ a: null }] }), { name: 'test.count' });
    const received: unknown[] = [];
    const listen: Pack = {
      ...aPack(() => ({ said: '' }), { name: 'test.listen' }),
      input: z.record(z.string(), z.unknown()),
      handler: async ({ input }: ExecutionContext) => {
        received.push(input);
        return { said: '' };
      },
    };
    const memory = await withPacks(count, listen);
    const input = { n: '${{ steps.a.output.count }}', l: '${{ steps.a.output.list }}', t: '${{ steps.a.output.list.0 }}!' };
    const steps = [
      { id: 'a', pack: 'test.count' },
      { id: 'b', pack: 'test.listen', input },
    ];
    expect(await runToEnd(memory, aPipeline({ steps }), {})).toMatchObject({ status: 'succeeded' });
    expect(received).toEqual([{ n: 2, l: [{ a: null }], t: '{"a":null}!' }]);
  });

  test.each<[what: string, inputs: NonNullable<Definition['inputs']>, sent: Record<string, unknown>, said: string]>([
    ['the given input', [{ name: 'name', default: 'Bob' }], { name: 'Ada' }, 'Ada'],
    ['a default input', [{ name: 'name', default: 'Bob' }], {}, 'Bob'],
    ['no value for an optional input', [{ name: 'name', required: false }], {}, 'nothing'],
  ])('is started with %s', async (_what, inputs, sent, said) => {
    const memory = await withPacks();
    const run = await runToEnd(memory, aPipeline({ inputs }), sent);
    expect(run.steps[0]?.output).toEqual({ said });
  });

  test.each<[what: string, sent: Record<string, unknown>, says: RegExp]>([
    ['a missing input', {}, /^inputs\.name is missing; send it/],
    ['an unknown input', { name: 'x', other: 'Hunter2' }, /^inputs contains an unknown name; send only name\./],
  ])('is not started with %s', async (_what, inputs, says) => {
    const memory = await withPacks();
    await memory.as(me)('createPipeline', aPipeline({ inputs: [{ name: 'name', required: true }] }));
    const failure: unknown = await memory
      .as(me)('runPipeline', { id: 'greet', inputs })
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'invalid_input', message: expect.stringMatching(says) });
    expect(String(failure)).not.toContain('Hunter2');
    expect(await rows(memory)).toEqual([]);
  });

  test('ends with the first step that fails, and names it', async () => {
    const memory = await withPacks(
      aPack(() => {
        throw new Error('broken');
      }),
    );
    const run = await runToEnd(memory);
    expect(run).toMatchObject({
      status: 'failed',
      failure: { error: 'handler_failed', step: 'first', message: expect.any(String) },
      steps: [{ status: 'failed' }, { status: 'skipped' }],
    });
    expect((await rows(memory)).map(({ value }) => JSON.parse(value) as unknown)).toMatchObject([{ outcome: 'failed' }]);
  });

  test('names a reference without a value', async () => {
    const memory = await withPacks();
    const steps = [
      { id: 'first', pack: 'test.echo' },
      { id: 'second', pack: 'test.echo', input: { what: 'x ${{ steps.first.output.issues.0.title }}' } },
    ];
    expect(await runToEnd(memory, aPipeline({ steps }), {})).toMatchObject({
      status: 'failed',
      failure: { error: 'invalid_input', step: 'second', message: expect.stringContaining('steps.first.output.issues.0.title') },
    });
  });

  test('gives each step the time of its pack', async () => {
    const started = Promise.withResolvers<void>();
    const slow = aPack(
      () => {
        started.resolve();
        return new Promise(() => undefined);
      },
      { seconds: 5 },
    );
    const memory = await withPacks(slow);
    await memory.as(me)('createPipeline', aPipeline());
    const { run_id: id } = await memory.as(me)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
    await started.promise;
    await memory.clock.advance(5 * SECOND);
    expect(await ended(memory, id)).toMatchObject({ status: 'failed', failure: { error: 'timeout' } });
  });

  test('records each outcome, with the learnable inputs (R-PACK-13, R-VIEW-02)', async () => {
    const memory = await withPacks();
    const steps = [{ id: 'first', pack: 'test.echo', input: { what: '${{ inputs.audience }}${{ inputs.topic }}' } }];
    const run = await runToEnd(memory, aPipeline({ steps }), { audience: 'children', topic: 'whales' });
    const [row] = await rows(memory);
    expect(row?.key).toMatch(/^pipeline_history\/greet\/\d{20}$/);
    expect(JSON.parse(row?.value ?? '')).toEqual({
      pipeline: 'greet',
      run_id: run.run_id,
      outcome: 'succeeded',
      at_unix: Math.floor(memory.clock.now() / 1000),
      duration_ms: 0,
      learn_inputs: { audience: 'children' },
    });
    expect(row && row.expiresAt - row.createdAt).toBe(30 * DAY);
    expect(await memory.as(me)('myDefaults', {})).toMatchObject({
      packs: [{ id: 'test.echo', calls: 1 }],
      pipelines: [{ id: 'greet', runs: 1, common_inputs: { audience: 'children' } }],
    });
  });

  test('is cancelled with the step it is in (R-PACK-24)', async () => {
    const started = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const memory = await withPacks(
      aPack(({ signal }) => {
        started.resolve();
        signal.addEventListener('abort', () => aborted.resolve());
        return new Promise(() => undefined);
      }),
    );
    await memory.as(me)('createPipeline', aPipeline());
    const { run_id: id } = await memory.as(me)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
    await started.promise;
    const run = await memory.as(me)('cancelPipelineRun', { run_id: id });
    expect(run).toMatchObject({ status: 'cancelled', steps: [{ status: 'cancelled' }, { status: 'skipped' }] });
    expect(run).not.toHaveProperty('failure');
    await aborted.promise;
    expect(await memory.as(me)('cancelPipelineRun', { run_id: id })).toEqual(run);
    expect((await rows(memory)).map(({ value }) => JSON.parse(value) as unknown)).toMatchObject([{ outcome: 'cancelled' }]);
  });

  test.each(['revoked', 'paused'])(
    'ends when the token that started it is %s, and no later step begins (R-PACK-32)',
    async (how) => {
      const started = Promise.withResolvers<void>();
      const memory = await withPacks(
        aPack(() => {
          started.resolve();
          return new Promise(() => undefined);
        }),
      );
      const { tokens } = memory;
      const { id } = await tokens.mint({ name: 't', client: 't', subject: 'me', scopes: ['packs:run'], days: 1 });
      const keeping = { id: 'keep', pack: 'helmdeck.memory_store', input: { key: 'a', value: 'b' } };
      await memory.as(me)('createPipeline', aPipeline({ steps: [...aPipeline().steps, keeping] }));
      const theirs = aCaller({ token: id });
      const { run_id: runId } = await memory.as(theirs)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
      await started.promise;
      await (how === 'revoked' ? tokens.revoke({ id, unrecorded: false }) : tokens.pause({ id, paused: true }));
      expect(await ended(memory, runId)).toMatchObject({
        status: 'cancelled',
        steps: [{ status: 'cancelled' }, { status: 'skipped' }, { status: 'skipped' }],
        failure: { error: 'invalid_token', message: expect.stringMatching(/revoked or paused/) },
      });
      expect((await rows(memory)).map(({ value }) => JSON.parse(value) as unknown)).toMatchObject([{ outcome: 'cancelled' }]);
      await expect(memory.as(me)('recall', { key: 'a' })).rejects.toMatchObject({ code: 'not_found' });
    },
  );

  test('ends with its token also between two steps (R-PACK-32)', async () => {
    const memory = await withPacks(
      aPack(async () => {
        // The step's work is already done when it is aborted.
        await memory.tokens.revoke({ id: token, unrecorded: false });
        return { said: '' };
      }),
    );
    const { id: token } = await memory.tokens.mint({ name: 't', client: 't', subject: 'me', scopes: ['packs:run'], days: 1 });
    await memory.as(me)('createPipeline', aPipeline());
    const theirs = memory.as(aCaller({ token }));
    const { run_id: id } = await theirs('runPipeline', { id: 'greet', inputs: { name: 'x' } });
    expect(await ended(memory, id)).toMatchObject({ status: 'cancelled', steps: [{}, { status: 'skipped' }] });
  });

  test('is found in the list of runs, the newest first, to be shown and cancelled (R-REST-16)', async () => {
    const memory = await withPacks(
      aPack(({ input: { what } }) => (what === 'wait' ? new Promise(() => undefined) : { said: what })),
    );
    const may = memory.as(me);
    await may('createPipeline', aPipeline());
    const started: string[] = [];
    for (const name of ['one', 'two', 'wait']) {
      const { run_id: id } = await may('runPipeline', { id: 'greet', inputs: { name } });
      started.unshift(id);
      if (name !== 'wait') await ended(memory, id);
      await memory.clock.advance(SECOND);
    }
    const { runs } = await may('pipelineRuns', {});
    expect(runs.map(({ run_id: id, status }) => [id, status])).toEqual([
      [started[0], 'running'],
      [started[1], 'succeeded'],
      [started[2], 'succeeded'],
    ]);
    expect(runs[1]).toMatchObject({ pipeline: 'greet', started_at: expect.any(String), ended_at: expect.any(String) });
    expect(runs[1]).not.toHaveProperty('steps');
    expect((await may('pipelineRuns', { limit: 1 })).runs).toEqual(runs.slice(0, 1));
    expect(await memory.as(aCaller({ subject: 'you' }))('pipelineRuns', {})).toEqual({ runs: [] });
    await may('cancelPipelineRun', { run_id: runs[0]?.run_id ?? '' });
    expect((await may('pipelineRuns', {})).runs[0]).toMatchObject({ run_id: started[0], status: 'cancelled' });
  });

  test('has the rights of its starter in every step (R-OPS-11)', async () => {
    const memory = await withPacks();
    const steps = [{ id: 'keep', pack: 'helmdeck.memory_store', input: { key: 'a', value: '${{ inputs.what }}' } }];
    const runner = aCaller({ may: ['packs:run'] });
    await memory.as(runner)('createPipeline', aPipeline({ steps }));
    const { run_id: refused } = await memory.as(runner)('runPipeline', { id: 'greet', inputs: { what: 'b' } });
    expect(await ended(memory, refused, runner)).toMatchObject({ status: 'failed', failure: { error: 'insufficient_scope' } });
    const { run_id: kept } = await memory.as(me)('runPipeline', { id: 'greet', inputs: { what: 'b' } });
    expect(await ended(memory, kept)).toMatchObject({ status: 'succeeded' });
    expect(await memory.as(me)('recall', { key: 'a' })).toMatchObject({ value: 'b', client: 'claude-code' });
  });

  test('is refused while eight are running, and does not limit other subjects (R-PACK-24)', async () => {
    const held = Promise.withResolvers<object>();
    const memory = await withPacks(aPack(({ caller }) => (caller.subject === 'me' ? held.promise : { said: 'mine' })));
    const you = aCaller({ subject: 'you' });
    await memory.as(theOwner)('createPipeline', aPipeline());
    await memory.as(you)('createPipeline', aPipeline());
    const start = (caller = theOwner) => memory.as(caller)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
    const runs = await Promise.all(Array.from({ length: PIPELINE.atOnce }, () => start()));
    await expect(start()).rejects.toMatchObject({ code: 'rate_limited' });
    expect(await ended(memory, (await start(you)).run_id, you)).toMatchObject({ status: 'succeeded' });
    held.resolve({ said: 'late' });
    for (const { run_id: id } of runs) await ended(memory, id);
    expect(await ended(memory, (await start()).run_id)).toMatchObject({ status: 'succeeded' });
  });

  test.each<[what: string, said: string, note: RegExp]>([
    ['an output that is too large for the record', 'x'.repeat(900 * 1024), /record of the run is full/],
    ['text that looks like a credential', CREDENTIAL, /looks like a credential/],
    ['a credential on a separate line', `log:\n${CREDENTIAL}`, /looks like a credential/],
  ])('passes %s to the next step, but does not store it (R-PACK-23)', async (_what, said, note) => {
    const received: string[] = [];
    const memory = await withPacks(
      aPack(() => ({ said })),
      aPack(
        ({ input: { what } }) => {
          received.push(what);
          return { said: 'short' };
        },
        { name: 'test.listen' },
      ),
    );
    const steps = [
      { id: 'first', pack: 'test.echo' },
      { id: 'second', pack: 'test.listen', input: { what: '${{ steps.first.output.said }}' } },
    ];
    const run = await runToEnd(memory, aPipeline({ steps }), {});
    expect(run).toMatchObject({
      status: 'succeeded',
      steps: [{ note: expect.stringMatching(note) }, { output: { said: 'short' } }],
    });
    expect(run.steps[0]).not.toHaveProperty('output');
    expect(received).toEqual([said]);
  });

  test('fails when its outputs together are too large', async () => {
    const memory = await withPacks(aPack(() => ({ said: 'x'.repeat(900 * 1024) })));
    const steps = Array.from({ length: 12 }, (_, index) => ({ id: `s${index}`, pack: 'test.echo' }));
    expect(await runToEnd(memory, aPipeline({ steps }), {})).toMatchObject({
      status: 'failed',
      failure: { error: 'invalid_output', step: 's9' },
    });
  });

  test('is kept for a week, of the latest thousand (R-PACK-23)', async () => {
    const memory = await withPacks();
    const space = memory.store.space({ subject: 'me' }, 'pack');
    const first = await runToEnd(memory);
    const again = async () => {
      const { run_id: id } = await memory.as(me)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
      return await ended(memory, id);
    };
    const entry = await space.get(`pipeline-runs/${first.run_id}`);
    expect(entry && entry.expiresAt - memory.clock.now()).toBe(7 * DAY);
    await memory.clock.advance(SECOND);
    const draft = { value: entry?.value ?? '', category: 'pipeline:ended', tags: [], author: entry!.author, lifetime: DAY };
    await Promise.all(
      Array.from({ length: PIPELINE.runs - 1 }, (_, index) => space.put({ ...draft, key: `pipeline-runs/${index}` })),
    );
    const latest = await again();
    await expect.poll(() => space.count('pipeline:ended')).toBe(PIPELINE.runs);
    await expect(memory.as(me)('pipelineRun', { run_id: first.run_id })).rejects.toMatchObject({ code: 'not_found' });
    expect(await memory.as(me)('pipelineRun', { run_id: latest.run_id })).toEqual(latest);
  });

  test('is refused while it cannot be recorded', async () => {
    const memory = await withPacks();
    await memory.as(me)('createPipeline', aPipeline());
    memory.store.lock();
    const start = memory.as(me)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
    await expect(start).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('continues after its caller disconnected', async () => {
    const leaving = new AbortController();
    const memory = await withPacks();
    await memory.as(me)('createPipeline', aPipeline());
    const started = memory.perform(me, 'runPipeline', { id: 'greet', inputs: { name: 'x' } }, { signal: leaving.signal });
    const { run_id: id } = await started;
    leaving.abort();
    expect(await ended(memory, id)).toMatchObject({ status: 'succeeded' });
  });
});

describe('a full quota for pack data', () => {
  const large = aPack(() => ({ said: 'x'.repeat(40_000) }));
  const room = (bytes: number) => openTestMemory({ packs: { packs: [large] }, quota: { facts: 100, bytes } });
  const definition = aPipeline({ steps: [{ id: 'first', pack: 'test.echo', input: {} }] });

  test('deletes the oldest runs, and records each run once', async () => {
    const memory = await room(100_000);
    const runs: PipelineRun[] = [];
    for (let turn = 0; turn < 4; turn += 1) runs.push(await runToEnd(memory, definition, {}));
    expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => 'succeeded'));
    expect(await ended(memory, runs[3]?.run_id ?? '')).toMatchObject({
      status: 'succeeded',
      steps: [{ id: 'first', status: 'succeeded' }],
    });
    await expect(memory.as(me)('pipelineRun', { run_id: runs[0]?.run_id ?? '' })).rejects.toMatchObject({ code: 'not_found' });
    expect(await rows(memory)).toHaveLength(4);
  });

  test('leaves out outputs that do not fit at all', async () => {
    const memory = await room(20_000);
    const run = await runToEnd(memory, definition, {});
    const kept = await ended(memory, run.run_id);
    expect(kept).toMatchObject({ status: 'succeeded' });
    expect(kept.steps[0]).not.toHaveProperty('output');
    expect(await rows(memory)).toHaveLength(1);
  });
});

describe('an interrupted run', () => {
  const waitingPack = () => aPack(({ input: { what } }) => (what === 'go on' ? { said: what } : new Promise(() => undefined)));
  const steps = [
    { id: 'first', pack: 'test.echo', input: { what: 'go on' } },
    { id: 'second', pack: 'test.echo', input: { what: '${{ inputs.audience }}' } },
    { id: 'third', pack: 'test.echo' },
  ];

  async function inSecondStep(memory: TestMemory, runner = me): Promise<string> {
    await memory.as(runner)('createPipeline', aPipeline({ steps }));
    const { run_id: id } = await memory.as(runner)('runPipeline', { id: 'greet', inputs: { audience: 'children' } });
    while ((await memory.as(me)('pipelineRun', { run_id: id })).steps[1]?.status !== 'running') await nextTurn();
    return id;
  }

  const interrupted = {
    status: 'failed',
    failure: {
      error: 'cancelled',
      step: 'second',
      message: expect.stringContaining('the memory was locked before this run ended'),
    },
    steps: [{ status: 'succeeded' }, { status: 'failed' }, { status: 'skipped' }],
  };

  test('ends as failed after a restart, with a reason and one row (R-PACK-12)', async () => {
    const before = await withPacks(waitingPack());
    const id = await inSecondStep(before);
    before.packs.pipelines[Symbol.dispose]();
    await before.store[Symbol.asyncDispose]();

    const after = await openTestMemory({ folder: before.folder, clock: before.clock, packs: { packs: [waitingPack()] } });
    expect(await after.as(me)('pipelineRun', { run_id: id })).toMatchObject(interrupted);
    expect(await rows(after)).toEqual([]);
    await Promise.all([after.packs.resume(), after.packs.resume()]);
    expect(await after.as(me)('pipelineRun', { run_id: id })).toMatchObject(interrupted);
    const written = await rows(after);
    expect(written.map(({ value, author }) => [JSON.parse(value) as unknown, author.client])).toEqual([
      [
        {
          pipeline: 'greet',
          run_id: id,
          outcome: 'failed',
          at_unix: expect.any(Number),
          learn_inputs: { audience: 'children' },
        },
        'claude-code',
      ],
    ]);
    await after.packs.resume();
    expect(await rows(after)).toHaveLength(1);
  });

  test('is ended once the key is back, if a lock interrupted it (R-PACK-12)', async () => {
    const held = Promise.withResolvers<object>();
    const memory = await withPacks(aPack(({ input: { what } }) => (what === 'go on' ? { said: what } : held.promise)));
    const id = await inSecondStep(memory);
    memory.store.lock();
    held.resolve({ said: 'too late' });
    await memory.clock.advance(MINUTE);
    await memory.as(theOwner)('unlock', {});
    await expect.poll(async () => (await rows(memory)).length).toBe(1);
    expect(await memory.as(me)('pipelineRun', { run_id: id })).toMatchObject({ status: 'failed' });
  });

  test('is recorded without end time and duration, which are unknown (R-PACK-12, R-PACK-13)', async () => {
    const before = await withPacks(waitingPack());
    const id = await inSecondStep(before);
    await before.clock.advance(700);
    before.packs.pipelines[Symbol.dispose]();
    await before.store[Symbol.asyncDispose]();

    const after = await openTestMemory({ folder: before.folder, clock: before.clock, packs: { packs: [waitingPack()] } });
    await after.packs.resume();
    const run = await after.as(me)('pipelineRun', { run_id: id });
    expect(run.status).toBe('failed');
    expect(run).not.toHaveProperty('duration_ms');
    expect(run).not.toHaveProperty('ended_at');
    expect(JSON.parse((await rows(after))[0]?.value ?? '')).not.toHaveProperty('duration_ms');
    const { recent } = await after.as(me)('myDefaults', {});
    expect(recent[0]).toEqual({ kind: 'pipeline', id: 'greet', outcome: 'failed', at_unix: expect.any(Number) });
    const { results } = await after.as(me)('query', { searches: [{ type: 'lex', query: 'greet failed' }] });
    const its = results.find(({ title }) => title === 'Pipeline run: greet');
    expect(its?.snippet).toContain('Outcome: failed');
    expect(its?.snippet).not.toContain('Duration');
  });

  test('is not a run that is still running', async () => {
    const memory = await withPacks(waitingPack());
    const id = await inSecondStep(memory);
    await memory.packs.resume();
    expect(await memory.as(me)('pipelineRun', { run_id: id })).toMatchObject({ status: 'running' });
    expect(await rows(memory)).toEqual([]);
    await memory.as(me)('cancelPipelineRun', { run_id: id });
  });

  test('is not a run that ends during the cleanup', async () => {
    const before = await withPacks(waitingPack());
    for (let count = 0; count < PIPELINE.atOnce; count += 1) await inSecondStep(before, theOwner);
    before.packs.pipelines[Symbol.dispose]();
    await before.store[Symbol.asyncDispose]();

    const after = await openTestMemory({ folder: before.folder, clock: before.clock, packs: { packs: [echo] } });
    await after.as(me)('createPipeline', aPipeline({ id: 'quick', steps: [{ id: 'only', pack: 'test.echo' }] }));
    await after.clock.advance(SECOND);
    const { run_id: id } = await after.as(me)('runPipeline', { id: 'quick' });
    await after.packs.resume();
    expect(await ended(after, id)).toMatchObject({ status: 'succeeded' });
    expect(await rows(after)).toHaveLength(PIPELINE.atOnce + 1);
  });

  test('has its sessions deleted after a restart (R-PACK-07)', async () => {
    const keeper = aPack(
      async ({ memory: own }) => {
        await own?.store('a', 1);
        return { said: `${(await own?.list())?.length}` };
      },
      { memory: {} },
    );
    const before = await withPacks(keeper);
    await before.as(me)('runPack', { name: 'test.echo', session: 's' });
    await before.store[Symbol.asyncDispose]();
    const after = await openTestMemory({ folder: before.folder, clock: before.clock, packs: { packs: [keeper] } });
    const left = () => after.store.space({ subject: 'me', session: 's' }, 'pack').count();
    expect(await left()).toBe(1);
    await after.packs.resume();
    expect(await left()).toBe(0);
  });
});

describe('forgetting', () => {
  test('`pipelines` deletes the records of runs and leaves definitions; `all` deletes everything (R-FORGET-04, R-FORGET-06)', async () => {
    const memory = await withPacks();
    const may = memory.as(me);
    const run = await runToEnd(memory);
    await runToEnd(memory, aPipeline({ id: 'other' }));
    expect(await may('forget', { scope: 'pipeline:greet' })).toMatchObject({ deleted: 1 });
    expect(await may('forget', { scope: 'pipelines' })).toMatchObject({ deleted: 1 });
    expect(await rows(memory)).toEqual([]);
    expect((await may('pipelines', {})).pipelines).toHaveLength(2);
    await may('forget', { scope: 'all' });
    expect(await may('pipelines', {})).toEqual({ pipelines: [] });
    await expect(may('pipelineRun', { run_id: run.run_id })).rejects.toMatchObject({ code: 'not_found' });
    expect(await memory.store.space({ subject: 'me' }, 'pack').count()).toBe(0);
  });
});

test('says if nothing is stored on disk', async () => {
  const memory = await openTestMemory({ keyless: true, packs: { packs: [echo] } });
  expect(await memory.as(me)('createPipeline', aPipeline())).toMatchObject({ note: expect.stringContaining('RAM') });
  const { run_id: id } = await memory.as(me)('runPipeline', { id: 'greet', inputs: { name: 'x' } });
  expect(await ended(memory, id)).toMatchObject({ status: 'succeeded' });
});
