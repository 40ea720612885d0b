import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { Failure } from '../../../src/contract/failure.ts';
import { PACK } from '../../../src/contract/limits.ts';
import type { PackHook } from '../../../src/core/packs/hook.ts';
import { definePack, type Pack } from '../../../src/core/packs/pack.ts';
import { SECOND } from '../../support/clock.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';
import { aPack, CREDENTIAL } from '../../support/packs.ts';

const me = aCaller();

const opened = async (pack: Pack, hooks: readonly PackHook[] = []) => {
  const memory = await openTestMemory({ packs: { packs: [pack], hooks } });
  return { ...memory, run: (input: object = {}) => memory.as(me)('runPack', { name: 'test.echo', input: { ...input } }) };
};

const rows = async ({ store }: Pick<Awaited<ReturnType<typeof opened>>, 'store'>) =>
  (await store.space({ subject: 'me' }, 'audit').page({ sort: 'updated', limit: 10 })).entries.map(
    ({ value }) => JSON.parse(value) as Record<string, unknown>,
  );

describe('a run whose token is revoked or paused', () => {
  const endless = () => {
    const started = Promise.withResolvers<AbortSignal>();
    const pack = aPack(({ signal }) => {
      started.resolve(signal);
      return new Promise(() => undefined);
    });
    return { pack, started: started.promise };
  };

  test.each(['revoked', 'paused'])('ends when its token is %s, reports the reason, and is recorded (R-PACK-32)', async (how) => {
    const { pack, started } = endless();
    const { as, tokens, store } = await opened(pack);
    const { id } = await tokens.mint({ name: 't', client: 't', subject: 'me', scopes: ['packs:run'], days: 1 });
    const run = as(aCaller({ token: id }))('runPack', { name: 'test.echo' });
    const failed = run.catch((error: unknown) => error);
    const signal = await started;
    await (how === 'revoked' ? tokens.revoke({ id, unrecorded: false }) : tokens.pause({ id, paused: true }));
    expect(signal.aborted).toBe(true);
    expect(await failed).toMatchObject({
      code: 'invalid_token',
      message: expect.stringMatching(/token .* was revoked or paused. Start the run again/),
    });
    expect(await rows({ store })).toMatchObject([{ pack: 'test.echo', outcome: 'cancelled' }]);
  });

  test('does not end the run of another token', async () => {
    const { pack, started } = endless();
    const { as, tokens, clock } = await opened(pack);
    const mint = () => tokens.mint({ name: 't', client: 't', subject: 'me', scopes: ['packs:run'], days: 1 });
    const [ownRuns, other] = [await mint(), await mint()];
    const run = as(aCaller({ token: ownRuns.id }))('runPack', { name: 'test.echo' });
    const late = run.catch((error: unknown) => error);
    const signal = await started;
    await tokens.revoke({ id: other.id, unrecorded: false });
    expect(signal.aborted).toBe(false);
    await clock.advance(30 * SECOND);
    expect(await late).toMatchObject({ code: 'timeout' });
  });
});

describe('running a pack', () => {
  test('returns the output in a result (R-PACK-01)', async () => {
    const { run } = await opened(aPack(({ input: { what } }) => ({ said: what })));
    expect(await run({ what: 'hello' })).toEqual({
      pack: 'test.echo',
      version: '1.0.0',
      output: { said: 'hello' },
      cached: false,
      duration_ms: 0,
    });
  });

  test('passes the parsed input to the handler', async () => {
    const { run } = await opened(aPack(({ input: { what } }) => ({ said: what })));
    expect(await run()).toMatchObject({ output: { said: 'nothing' } });
  });

  test('measures its duration with the steady clock', async () => {
    const { run, clock } = await opened(
      aPack(async () => {
        clock.jump(-5000);
        await clock.advance(250);
        return { said: 'late' };
      }),
    );
    expect(await run()).toMatchObject({ duration_ms: 250 });
  });

  test('needs the scope packs:run', async () => {
    const memory = await openTestMemory();
    const reader = memory.as(aCaller({ may: ['memory:read', 'memory:write'] }));
    await expect(reader('runPack', { name: 'test.echo' })).rejects.toMatchObject({ code: 'insufficient_scope' });
  });

  test('refuses an unknown pack', async () => {
    const memory = await openTestMemory();
    await expect(memory.as(me)('runPack', { name: 'no.such' })).rejects.toMatchObject({ code: 'not_found' });
    await expect(memory.as(me)('pack', { name: 'no.such' })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('refuses invalid input before anything runs', async () => {
    let ran = 0;
    const { run } = await opened(
      aPack(() => ({ said: `${(ran += 1)}` })),
      [{ after: () => void (ran += 1) }],
    );
    await expect(run({ what: 5 })).rejects.toMatchObject({ code: 'invalid_input' });
    await expect(run({ other: 'x' })).rejects.toMatchObject({ code: 'invalid_input' });
    expect(ran).toBe(0);
  });

  test.each([
    ['a thrown error', new Error('secret-looking text'), 'handler_failed'],
    ['a thrown string', 'text', 'handler_failed'],
    ['a thrown undefined', undefined, 'handler_failed'],
    ['a failure with a code', new Failure('session_unavailable', 'Closed.'), 'session_unavailable'],
  ])('reports %s as a failure with a known code (R-PACK-08)', async (_what, thrown, code) => {
    const { run } = await opened(
      aPack(() => {
        throw thrown;
      }),
    );
    const failure = await run().catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'Failure', code });
    expect((failure as Failure).message).not.toContain('secret');
  });

  test.each([
    ['a value that its schema does not allow', { said: 5 }],
    ['undefined', undefined],
    ['a value that JSON cannot represent', { said: 'x', big: 5n }],
    ['an output that is too large', { said: 'x'.repeat(PACK.outputBytes) }],
  ])('does not return %s', async (_what, answer) => {
    const { run } = await opened(aPack(() => answer));
    await expect(run()).rejects.toMatchObject({ code: 'invalid_output' });
  });

  test('ends a run that exceeds its time limit, and abandons its handler (R-PACK-08)', async () => {
    let signal: AbortSignal | undefined;
    const pack = aPack((context) => {
      ({ signal } = context);
      return new Promise(() => undefined);
    });
    const { run, clock } = await opened({ ...pack, seconds: 5 });
    const answer = run().catch((error: unknown) => error);
    await clock.advance(5 * SECOND);
    expect(await answer).toMatchObject({ code: 'timeout' });
    expect(signal?.aborted).toBe(true);
  });

  test('ends when its caller cancels', async () => {
    const controller = new AbortController();
    const memory = await opened(aPack(() => new Promise(() => undefined)));
    const answer = memory
      .perform(me, 'runPack', { name: 'test.echo' }, { signal: controller.signal })
      .catch((error: unknown) => error);
    controller.abort();
    expect(await answer).toMatchObject({ code: 'cancelled' });
    expect(await rows(memory)).toMatchObject([{ outcome: 'cancelled' }]);
  });

  test('runs nothing for a caller that cancelled before', async () => {
    let ran = false;
    const memory = await opened(
      aPack(() => {
        ran = true;
        return { said: '' };
      }),
    );
    await expect(memory.perform(me, 'runPack', { name: 'test.echo' }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'cancelled',
    });
    expect(ran).toBe(false);
  });

  test('reports progress', async () => {
    const reported: unknown[] = [];
    const { perform } = await opened(
      aPack(({ progress }) => {
        progress(1, 2, 'half');
        return { said: '' };
      }),
    );
    await perform(me, 'runPack', { name: 'test.echo' }, { progress: (...said) => void reported.push(said) });
    expect(reported).toEqual([[1, 2, 'half']]);
  });

  test('leaves capacity for other subjects', async () => {
    const held = Promise.withResolvers<object>();
    const memory = await opened(aPack(({ caller }) => (caller.subject === 'me' ? held.promise : { said: 'mine' })));
    const ownRuns = Array.from({ length: PACK.atOnce }, () => memory.run());
    await expect(memory.run()).rejects.toMatchObject({ code: 'rate_limited' });
    const other = memory.as(aCaller({ subject: 'you' }));
    expect(await other('runPack', { name: 'test.echo' })).toMatchObject({ output: { said: 'mine' } });
    held.resolve({ said: 'late' });
    await Promise.all(ownRuns);
    expect(await memory.run()).toMatchObject({ output: { said: 'late' } });
  });
});

describe('hooks', () => {
  const tracing = (events: string[], name: string, answer?: object): PackHook => ({
    before({ pack }) {
      events.push(`${name} before ${pack.name}`);
      return answer && { output: answer, expiresAt: 0 };
    },
    after: (_run, { outcome }) => void events.push(`${name} after ${outcome}`),
  });

  test('wrap a run, the first one outermost (R-PACK-02)', async () => {
    const events: string[] = [];
    const { run } = await opened(
      aPack(() => {
        events.push('handler');
        return { said: '' };
      }),
      [tracing(events, 'one'), tracing(events, 'two')],
    );
    await run();
    expect(events).toEqual(['one before test.echo', 'two before test.echo', 'handler', 'two after ok', 'one after ok']);
  });

  test('can return an output instead of the handler', async () => {
    const events: string[] = [];
    const { run } = await opened(
      aPack(() => {
        throw new Error('not asked');
      }),
      [tracing(events, 'one', { said: 'known' }), tracing(events, 'two')],
    );
    expect(await run()).toMatchObject({ output: { said: 'known' }, cached: true });
    expect(events).toEqual(['one before test.echo', 'one after ok']);
  });

  test('run after failed runs too', async () => {
    const events: string[] = [];
    const { run } = await opened(
      aPack(() => {
        throw new Error('broken');
      }),
      [tracing(events, 'one')],
    );
    await run().catch(() => undefined);
    expect(events).toEqual(['one before test.echo', 'one after handler_failed']);
  });

  test('refuse a run by throwing before it, and change nothing by throwing after it', async () => {
    let ran = 0;
    const pack = aPack(() => ({ said: `${(ran += 1)}` }));
    const strict = await opened(pack, [
      {
        before() {
          throw new Failure('rate_limited', 'Not now.');
        },
      },
    ]);
    await expect(strict.run()).rejects.toMatchObject({ code: 'rate_limited' });
    expect(ran).toBe(0);
    const failingAfter = await opened(pack, [
      {
        after() {
          throw new Error('too late');
        },
      },
    ]);
    expect(await failingAfter.run()).toMatchObject({ output: { said: '1' } });
  });

  test('get no result of a run that they refused themselves', async () => {
    const { run } = await opened(
      aPack(() => ({ said: '' })),
      [
        {
          before() {
            throw new Error('a hook with a fault');
          },
        },
      ],
    );
    await expect(run()).rejects.toMatchObject({ code: 'internal' });
  });
});

describe('artifacts', () => {
  const image = { name: 'a.png', media_type: 'image/png', bytes: 2, url: 'file:///a.png' };
  const imagePack = aPack(
    async ({ artifacts }) => {
      if (!artifacts) return { said: 'no place' };
      await artifacts.put('a.png', 'image/png', Buffer.from('xx'));
      return { said: 'drawn' };
    },
    { memory: { cache: true, ttl: 60 } },
  );
  const place = (put: () => Promise<typeof image>): PackHook => ({
    before: ({ context }) => void (context.artifacts = { put }),
  });

  test('are undefined unless a hook provides a store (R-PACK-31)', async () => {
    const { run } = await opened(imagePack);
    const result = await run();
    expect(result).toMatchObject({ output: { said: 'no place' } });
    expect(result).not.toHaveProperty('artifacts');
  });

  test('are listed in the result, whose output is then not cached (R-PACK-31, R-PACK-04)', async () => {
    const { run } = await opened(imagePack, [place(async () => image)]);
    expect(await run()).toMatchObject({ output: { said: 'drawn' }, artifacts: [image], cached: false });
    expect(await run()).toMatchObject({ artifacts: [image], cached: false });
  });

  test('that cannot be stored fail the run with our message (R-PACK-31)', async () => {
    const { run } = await opened(imagePack, [
      place(async () => {
        throw new Error('bucket s3://secret is gone');
      }),
    ]);
    await expect(run()).rejects.toMatchObject({
      code: 'artifact_failed',
      message: expect.not.stringContaining('secret') as string,
    });
  });
});

describe('the record of runs', () => {
  test('has a row for each run, with its outcome (R-PACK-06, R-PACK-13)', async () => {
    const memory = await opened(
      aPack(({ input: { what } }) => {
        if (what === 'break') throw new Error('broken');
        return { said: what };
      }),
    );
    await memory.run();
    await memory.run({ what: 'break' }).catch(() => undefined);
    const { entries } = await memory.store.space({ subject: 'me' }, 'audit').page({ sort: 'oldest', limit: 10 });
    expect(entries.map(({ key, category }) => [key.replace(/\d{20}$/, '<nanos>'), category])).toEqual([
      ['pack_history/test.echo/<nanos>', 'pack_history'],
      ['pack_history/test.echo/<nanos>', 'pack_history'],
    ]);
    expect(entries.map(({ value }) => JSON.parse(value) as unknown)).toEqual([
      { pack: 'test.echo', version: '1.0.0', outcome: 'ok', at_unix: Math.floor(memory.clock.now() / 1000), duration_ms: 0 },
      expect.objectContaining({ outcome: 'handler_failed' }),
    ]);
    expect(entries.map(({ expiresAt, createdAt }) => expiresAt - createdAt)).toEqual([30 * 86_400_000, 30 * 86_400_000]);
  });

  test('contains the learnable inputs and the findings', async () => {
    const pack = definePack({
      name: 'test.echo',
      version: '1.0.0',
      title: '',
      description: '',
      input: z.record(z.string(), z.unknown()),
      output: z.looseObject({}),
      handler: async () => ({
        findings: [
          { code: 'unused', severity: 'low', file: 'a.ts' },
          { code: 5 },
          { code: 'leak', severity: 'high', file: `${CREDENTIAL}.ts` },
          { code: 'late', severity: 'high' },
        ],
      }),
    });
    const memory = await opened(pack);
    await memory.run({
      persona: 'pirate',
      title: '',
      angle: 5,
      topic: 'ships',
      voice: CREDENTIAL,
    });
    const [row] = await rows(memory);
    expect(row?.['learn_inputs']).toEqual({ persona: 'pirate' });
    expect(row?.['findings']).toEqual([
      { code: 'unused', severity: 'low', file: 'a.ts' },
      { code: 'late', severity: 'high' },
    ]);
    expect(JSON.stringify(await rows(memory))).not.toContain('ships');
  });

  test('is written before the result is returned, also for a thousand concurrent runs', async () => {
    const memory = await opened(aPack(() => ({ said: '' })));
    for (let turn = 0; turn < 100; turn += 1) await Promise.all(Array.from({ length: 10 }, () => memory.run()));
    expect(await memory.store.space({ subject: 'me' }, 'audit').count()).toBe(1000);
  });

  test('has no rows of the memory packs', async () => {
    const memory = await openTestMemory();
    const may = memory.as(me);
    await may('runPack', { name: 'helmdeck.memory_store', input: { key: 'a', value: 'b' } });
    expect(await may('recall', { key: 'a' })).toMatchObject({ value: 'b', client: 'claude-code' });
    const forgotten = await may('runPack', { name: 'helmdeck.memory_forget', input: { scope: 'key:a' } });
    expect(forgotten).toMatchObject({ output: { scope: 'key:a', deleted: 1 } });
    expect(await memory.store.space({ subject: 'me' }, 'audit').count()).toBe(0);
  });

  test('is required: while the memory is locked no audited pack runs', async () => {
    let ran = false;
    const memory = await opened(
      aPack(() => {
        ran = true;
        return { said: '' };
      }),
    );
    memory.store.lock();
    await expect(memory.run()).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(ran).toBe(false);
  });
});

test('the memory packs have only the rights of their caller (R-OPS-11)', async () => {
  const memory = await openTestMemory();
  const runner = memory.as(aCaller({ may: ['packs:run'] }));
  const store = runner('runPack', { name: 'helmdeck.memory_store', input: { key: 'a', value: 'b' } });
  await expect(store).rejects.toMatchObject({ code: 'insufficient_scope' });
});

describe('a cached output (R-PACK-29)', () => {
  /** A hook whose `after` waits until the gate opens. */
  const gated = async () => {
    const gate = { open: Promise.withResolvers<void>() };
    gate.open.resolve();
    const pack = aPack(() => ({ said: '' }), { memory: { cache: true, ttl: 300 } });
    const all = await opened(pack, [{ after: () => gate.open.promise }]);
    await all.run();
    gate.open = Promise.withResolvers();
    return { ...all, gate };
  };

  test('is returned before its row is written', async () => {
    const { run, gate, store } = await gated();
    expect(await run()).toMatchObject({ cached: true });
    gate.open.resolve();
    await expect.poll(async () => (await rows({ store })).length).toBe(2);
  });

  test('waits for its row if many rows are pending', async () => {
    const { run, gate } = await gated();
    let answered = 0;
    const asking = (async () => {
      for (let turn = 0; turn < 1000; turn += 1) {
        await run();
        answered += 1;
      }
    })();
    await expect.poll(() => answered).toBeGreaterThan(200);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(answered).toBeLessThan(300);
    gate.open.resolve();
    await asking;
    expect(answered).toBe(1000);
  });

  test('is recorded also when the memory is closed at once', async () => {
    const pack = aPack(() => ({ said: '' }), { memory: { cache: true, ttl: 300 } });
    const { run, store, clock, folder } = await opened(pack);
    await run();
    await run();
    await store[Symbol.asyncDispose]();
    const again = await openTestMemory({ folder, clock });
    expect(await again.store.space({ subject: 'me' }, 'audit').count()).toBe(2);
  });
});

describe('the catalogue', () => {
  test.each([
    ['a name without a group', { name: 'echo' }],
    ['a name in capitals', { name: 'Test.echo' }],
    ['an invalid version', { version: 'one' }],
    ['the name of another pack', { name: 'helmdeck.memory_store' }],
    ['a cache without a lifetime', { memory: { cache: true } as const }],
    ['a cache lifetime of two days', { memory: { cache: true, ttl: 2 * 86_400 } as const }],
  ])('refuses a pack with %s', async (_what, over) => {
    const memory = openTestMemory({ packs: { packs: [aPack(() => ({ said: '' }), over)] } });
    await expect(memory).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('refuses two packs with one tool name', async () => {
    const pack = aPack(() => ({ said: '' }));
    const packs = [
      { ...pack, name: 'a.b_c' },
      { ...pack, name: 'a_b.c' },
    ];
    await expect(openTestMemory({ packs: { packs } })).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('shows each pack with its schemas', async () => {
    const memory = await opened(aPack(() => ({ said: '' }), { memory: { cache: true, ttl: 60 } }));
    const { packs } = await memory.as(me)('packs', {});
    expect(packs.map(({ name, tool, cache_seconds: seconds }) => [name, tool, seconds])).toEqual([
      ['helmdeck.memory_forget', 'memory_forget', undefined],
      ['helmdeck.memory_store', 'memory_store', undefined],
      ['helmdeck.route', 'route', undefined],
      ['test.echo', 'test_echo', 60],
    ]);
    expect(await memory.as(me)('pack', { name: 'test.echo' })).toMatchObject({
      input_schema: { properties: { what: { type: 'string' } } },
      output_schema: { required: ['said'] },
    });
  });
});
