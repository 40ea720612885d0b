import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import type { FailureCode } from '../../../src/contract/failure.ts';
import { type ConsentEffect, needsConsent } from '../../../src/contract/operations.ts';
import { effectOf, type OperationName, operations, type OperationRequest } from '../../../src/contract/operations.ts';
import type { ConsentRequest } from '../../../src/core/operations/call-context.ts';
import type { Perform } from '../../../src/core/operations/perform.ts';
import { definePack } from '../../../src/core/packs/pack.ts';
import { HOUR, SECOND, START } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';
import { aPack } from '../../support/packs.ts';

/** Operations whose effect needs consent, or depends on the input. The compiler requires a request for each of them. */
type NeedsConsent = {
  [Name in OperationName]: (typeof operations)[Name]['effect'] extends 'none' | 'reversible' | 'runs' ? never : Name;
}[OperationName];

/** A request of each operation that needs consent. */
const sampleRequests: { readonly [Name in NeedsConsent]: OperationRequest<Name> } = {
  remember: { key: 'preferences/editor', value: 'vim', ttl_seconds: 3600 },
  patch: { key: 'preferences/editor', ttl_seconds: 3600 },
  forget: { scope: 'all' },
  undo: { client: 'command-line', since: '2020-01-01T00:00:00Z' },
  dropInbox: { all: true },
  endSession: { id: 'a-session' },
  createPipeline: { id: 'kept', title: 'Changed', steps: [{ id: 'one', pack: 'helmdeck.route', input: {} }] },
  adoptPipeline: { id: 'kept', updated_at: new Date(START).toISOString() },
  deletePipeline: { id: 'kept' },
  setEmbeddings: { on: true, adopt: true },
  approveOllama: { hash: 'a'.repeat(64) },
  mintToken: { name: 'A second token' },
  pauseToken: { id: 'a-token', paused: false },
  connectClient: { client: 'codex' },
  offerPacks: { client: 'codex', packs: ['test.perform'] },
  setCapture: { client: 'codex', capture: true },
  setCredential: { name: 'github', secret: 'a-second-secret' },
  dropCredential: { name: 'github' },
  unlock: {},
  backup: {},
  trustClock: { time: new Date(START).toISOString() },
  rotateKey: {},
  makeRecoveryKey: {},
};
const names = Object.keys(sampleRequests) as NeedsConsent[];

/** Operations that change nothing that `state` reads, or that fail after the owner agreed. */
const exceptions: { readonly [Name in NeedsConsent]?: { readonly fails?: FailureCode; readonly changes?: boolean } } = {
  dropInbox: { changes: false },
  endSession: { changes: false },
  unlock: { changes: false },
  trustClock: { changes: false },
  setEmbeddings: { fails: 'embeddings_unavailable' },
  approveOllama: { fails: 'embeddings_unavailable' },
  pauseToken: { fails: 'not_found' },
  connectClient: { fails: 'not_found' },
  offerPacks: { changes: false },
  setCapture: { changes: false },
  setCredential: { fails: 'not_found' },
  dropCredential: { fails: 'not_found' },
  rotateKey: { fails: 'invalid_config' },
};

const inputOf = (name: OperationName, request: unknown): never => operations[name].input().parse(request) as never;

/** A memory with a pack that performs any operation. */
async function opened() {
  const through: { perform?: Perform } = {};
  const pack = definePack({
    name: 'test.perform',
    version: '1.0.0',
    title: 'Perform',
    description: 'Performs an operation.',
    input: z.strictObject({ name: z.string(), input: z.looseObject({}) }),
    output: z.looseObject({}),
    handler: async ({ caller, input: { name, input }, callContext: during }) =>
      (await through.perform?.(caller, name, input, during)) as Record<string, unknown>,
  });
  const memory = await openTestMemory({ packs: { packs: [pack] } });
  through.perform = memory.perform;
  const owner = memory.as(theOwner);
  await owner('remember', { key: 'preferences/editor', value: 'helix' });
  await owner('remember', { key: 'preferences/shell', value: 'fish' });
  await memory.as(aCaller())('createPipeline', {
    id: 'kept',
    steps: [{ id: 'one', pack: 'helmdeck.route', input: { user_intent: 'remember' } }],
  });
  await owner('mintToken', { name: 'The first token' });
  return { ...memory, owner };
}

/** Everything that these operations could change. */
async function state({ owner, store }: Pick<Awaited<ReturnType<typeof opened>>, 'owner' | 'store'>) {
  return JSON.stringify([
    store.upkeep?.recoverable,
    await owner('list', {}),
    (await owner('pipelines', {})).pipelines.filter(({ id }) => id === 'kept'),
    await owner('backups', {}),
    await owner('tokens', {}),
    await owner('credentials', {}),
    (await owner('status', {})).store,
  ]);
}

const routes = ['directly', 'by a pack', 'by a pipeline in the foreground', 'by a pipeline in the background'] as const;

async function perform(
  memory: Awaited<ReturnType<typeof opened>>,
  name: OperationName,
  route: (typeof routes)[number],
  agrees: boolean,
): Promise<{ requests: ConsentRequest[]; failure: string | undefined }> {
  const requests: ConsentRequest[] = [];
  const during = {
    consent: async (request: ConsentRequest) => {
      requests.push(request);
      return agrees;
    },
  };
  const request = sampleRequests[name as NeedsConsent];
  const failureOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: unknown) => (error as { code: string }).code,
    );
  if (route === 'directly') return { requests, failure: await failureOf(memory.perform(theOwner, name, request, during)) };
  const step = { pack: 'test.perform', input: { name, input: request } };
  if (route === 'by a pack') {
    const work = memory.perform(theOwner, 'runPack', { name: step.pack, input: step.input }, during);
    return { requests, failure: await failureOf(work) };
  }
  await memory.owner('createPipeline', { id: 'asking', steps: [{ id: 'one', ...step }] });
  if (route === 'by a pipeline in the foreground')
    return { requests, failure: await failureOf(memory.perform(theOwner, 'finishPipeline', { id: 'asking' }, during)) };
  const { run_id } = await memory.perform(theOwner, 'runPipeline', { id: 'asking' }, during);
  for (;;) {
    const run = await memory.owner('pipelineRun', { run_id });
    if (run.status !== 'running') return { requests, failure: run.failure?.error };
    await nextTurn();
  }
}

test('every operation whose effect can need consent has a request below (R-CONSENT-01)', () => {
  const expected = Object.entries(operations).flatMap(([name, { effect }]) =>
    typeof effect === 'object' || needsConsent(effect) ? [name] : [],
  );
  expect(names.toSorted()).toEqual(expected.toSorted());
  for (const name of names) expect(needsConsent(effectOf(name, inputOf(name, sampleRequests[name])))).toBe(true);
});

describe.each(names)('%s', (name) => {
  test('asks once on every route, and changes nothing if the owner declines (R-CONSENT-02)', async () => {
    const memory = await opened();
    const before = await state(memory);
    for (const route of routes) {
      const { requests, failure } = await perform(memory, name, route, false);
      expect(requests, route).toEqual([
        {
          caller: theOwner,
          name,
          input: inputOf(name, sampleRequests[name]),
          effect: effectOf(name, inputOf(name, sampleRequests[name])),
        },
      ]);
      expect(failure, route).toBe('declined');
      expect(await state(memory), route).toBe(before);
    }
  });

  test.each(routes)('asks once %s, and is performed if the owner agrees (R-CONSENT-02)', async (route) => {
    const memory = await opened();
    const before = await state(memory);
    const { requests, failure } = await perform(memory, name, route, true);
    expect(requests).toHaveLength(1);
    const { fails, changes = fails === undefined } = exceptions[name] ?? {};
    expect(failure).toBe(fails);
    expect((await state(memory)) !== before).toBe(changes);
  });
});

test.each([
  ['forget', { scope: 'all', dry_run: true }],
  ['undo', { client: 'x', since: '2020-01-01T00:00:00Z', dry_run: true }],
  ['pauseToken', { id: 'a-token', paused: true }],
  ['remember', { key: 'a', value: 'b' }],
  ['remember', { key: 'a', value: 'b', ttl_seconds: 0 }],
  ['patch', { key: 'a', ttl_seconds: 604_800 }],
  ['patch', { key: 'a', ttl_seconds: 0 }],
  ['patch', { key: 'a', tags: [] }],
  ['setEmbeddings', { on: false }],
] as const)('%s with %j needs no consent (R-CONSENT-01)', (name, request) => {
  expect(needsConsent(effectOf(name, inputOf(name, request)))).toBe(false);
});

test('a call without a consent handler, such as that of an agent, does not ask the owner (R-CONSENT-02)', async () => {
  const { owner } = await opened();
  expect(await owner('runPack', { name: 'helmdeck.memory_forget', input: { scope: 'all' } })).toMatchObject({
    output: { deleted: 3 },
  });
});

describe('the memory packs', () => {
  test.each(['runPack', 'finishPipeline'] as const)('need consent as `forget` does: %s (R-CONSENT-02)', async (way) => {
    const { perform: performs, owner } = await opened();
    await owner('createPipeline', {
      id: 'wipe',
      steps: [{ id: 'one', pack: 'helmdeck.memory_forget', input: { scope: 'facts' } }],
    });
    const effects: [string, ConsentEffect][] = [];
    const consent = async ({ name, effect }: ConsentRequest) => {
      effects.push([name, effect]);
      return false;
    };
    const request =
      way === 'runPack' ? { name: 'helmdeck.memory_forget', input: { scope: 'facts' } } : { id: 'wipe', inputs: {} };
    await expect(performs(theOwner, way, request, { consent })).rejects.toMatchObject({ code: 'declined' });
    expect(effects).toEqual([['forget', 'destroys']]);
    expect((await owner('list', {})).facts).toHaveLength(2);
  });
});

describe('a pack that uses the network or deletes data', () => {
  test.each([
    ['uses the network', { usesNetwork: true }, 'discloses'],
    ["is the owner's own and deletes", { own: { revision: '1' }, changes: 'destroys' }, 'destroys'],
  ] as const)('needs consent once, before it starts, if it %s (R-CONSENT-02)', async (_what, over, effect) => {
    let ran = 0;
    const pack = aPack(() => ({ said: `${(ran += 1)}` }), over);
    const { perform: performs } = await openTestMemory({ packs: { packs: [pack] } });
    const requests: ConsentRequest[] = [];
    const answers = [false, true];
    const consent = async (request: ConsentRequest) => {
      requests.push(request);
      return answers.shift() ?? false;
    };
    const run = () => performs(theOwner, 'runPack', { name: 'test.echo', input: { what: 'x' } }, { consent });
    await expect(run()).rejects.toMatchObject({ code: 'declined' });
    expect(ran).toBe(0);
    expect(await run()).toMatchObject({ output: { said: '1' } });
    const request = { caller: theOwner, name: 'runPack', input: { name: 'test.echo', input: { what: 'x' } }, effect };
    expect(requests).toEqual([request, request]);
  });
});

describe('while the owner is being asked', () => {
  const waiting = async () => {
    const memory = await opened();
    const shown = Promise.withResolvers<undefined>();
    const answered = Promise.withResolvers<boolean>();
    const consent = () => {
      shown.resolve(undefined);
      return answered.promise;
    };
    return { ...memory, shown: shown.promise, answer: answered.resolve, consent };
  };

  test('the time limit of a pack is suspended (R-CONSENT-02)', async () => {
    const { perform: performs, shown, answer, consent, clock, owner } = await waiting();
    const run = performs(theOwner, 'runPack', { name: 'helmdeck.memory_forget', input: { scope: 'facts' } }, { consent });
    await shown;
    await clock.advance(HOUR);
    answer(true);
    expect(await run).toMatchObject({ output: { deleted: 2 } });
    expect((await owner('list', {})).facts).toEqual([]);
  });

  test('a cancelled call does nothing, even if the owner agrees later (R-CONSENT-02)', async () => {
    const { perform: performs, shown, answer, consent, owner } = await waiting();
    const controller = new AbortController();
    const forgetting = performs(theOwner, 'forget', { scope: 'facts' }, { consent, signal: controller.signal });
    const packed = performs(
      theOwner,
      'runPack',
      { name: 'helmdeck.memory_forget', input: { scope: 'facts' } },
      { consent, signal: controller.signal },
    );
    const failures = Promise.allSettled([forgetting, packed]);
    await shown;
    controller.abort();
    answer(true);
    expect(await failures).toMatchObject([{ reason: { code: 'cancelled' } }, { reason: { code: 'cancelled' } }]);
    await nextTurn();
    expect((await owner('list', {})).facts).toHaveLength(2);
  });

  test('a pack keeps its full time limit for after the answer (R-CONSENT-02)', async () => {
    const memory = await opened();
    const signals = Promise.withResolvers<AbortSignal>();
    const { catalogue } = memory.packs.engine;
    catalogue.add(
      aPack(async ({ caller, callContext: during, signal }) => {
        await memory.perform(caller, 'forget', { scope: 'key:preferences/shell' }, during);
        signals.resolve(signal);
        return await new Promise(() => undefined);
      }),
    );
    const consent = () => memory.clock.advance(20 * SECOND).then(() => true);
    const run = memory.perform(theOwner, 'runPack', { name: 'test.echo' }, { consent }).catch((error: unknown) => error);
    const signal = await signals.promise;
    await memory.clock.advance(29 * SECOND);
    expect(signal.aborted).toBe(false);
    await memory.clock.advance(SECOND);
    expect(await run).toMatchObject({ code: 'timeout' });
  });
});
