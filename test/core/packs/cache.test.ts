import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { Failure } from '../../../src/contract/failure.ts';
import { canonicalJson } from '../../../src/core/packs/canonical-json.ts';
import type { CredentialProvider } from '../../../src/core/packs/credential-store.ts';
import type { ExecutionContext, Pack } from '../../../src/core/packs/pack.ts';
import { MINUTE } from '../../support/clock.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';
import { aPack, CREDENTIAL } from '../../support/packs.ts';

const me = aCaller();
const CACHED = { cache: true, ttl: 300 } as const;

/** A pack that counts its handler calls. */
function counting(
  answer: (context: ExecutionContext<{ what: string }>, asked: number) => unknown = (_context, asked) => ({ said: `${asked}` }),
  over: Partial<Pack> = {},
) {
  const counter = { asked: 0 };
  const pack = aPack((context) => answer(context, (counter.asked += 1)), { memory: CACHED, ...over });
  return { pack, counter };
}

const opened = async (pack: Pack, credentials?: CredentialProvider) => {
  const memory = await openTestMemory({ packs: { packs: [pack], ...(credentials && { credentials }) } });
  const ask = (input: object = {}, caller = me) => memory.as(caller)('runPack', { name: 'test.echo', input: { ...input } });
  return { ...memory, ask };
};

describe('the cache of outputs', () => {
  test('answers an equal request without running the handler, and marks the output as cached (R-PACK-03, R-PACK-05)', async () => {
    const { pack, counter } = counting();
    const { ask, clock } = await opened(pack);
    expect(await ask({ what: 'x' })).toMatchObject({ output: { said: '1' }, cached: false });
    expect(await ask({ what: 'x' })).toMatchObject({
      output: { said: '1' },
      cached: true,
      cached_until: new Date(clock.now() + 5 * MINUTE).toISOString(),
    });
    expect(counter.asked).toBe(1);
  });

  test('ignores the order of fields (R-PACK-03)', () => {
    const one = canonicalJson({ b: 1, a: { d: [1, { y: 2, x: 3 }], c: undefined } });
    expect(one).toBe('{"a":{"d":[1,{"x":3,"y":2}]},"b":1}');
    expect(canonicalJson({ a: { d: [1, { x: 3, y: 2 }] }, b: 1 })).toBe(one);
    expect(canonicalJson({ a: [1, 2] })).not.toBe(canonicalJson({ a: [2, 1] }));
    expect(canonicalJson({ a: '1' })).not.toBe(canonicalJson({ a: 1 }));
    // A naive sorted copy would lose a field named `__proto__`.
    expect(canonicalJson(JSON.parse('{"__proto__":{"b":1},"a":2}'))).not.toBe(canonicalJson({ a: 2 }));
  });

  test('does not cache inputs that JSON cannot represent exactly (R-PACK-03)', async () => {
    for (const odd of [new Map([['a', 1]]), new Set([1]), Number.NaN, -Infinity, 5n, [() => 1], { deep: new Map() }]) {
      expect(canonicalJson({ odd })).toBeUndefined();
    }
    expect(canonicalJson({ at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
    const { pack, counter } = counting(undefined, {
      input: z.strictObject({ what: z.string().transform((text) => new Map([['what', text]])) }),
    });
    const { ask } = await opened(pack);
    await ask({ what: 'mine' });
    expect(await ask({ what: 'theirs' })).toMatchObject({ output: { said: '2' }, cached: false });
    expect(counter.asked).toBe(2);
  });

  test('ignores the order of nested fields', async () => {
    const { pack, counter } = counting(undefined, { input: z.looseObject({}) });
    const { ask } = await opened(pack);
    await ask({ a: 1, b: { c: [{ d: 1, e: 2 }], f: 3 } });
    expect(await ask({ b: { f: 3, c: [{ e: 2, d: 1 }] }, a: 1 })).toMatchObject({ cached: true });
    expect(await ask({ b: { f: 3, c: [{ e: 1, d: 2 }] }, a: 1 })).toMatchObject({ cached: false });
    expect(counter.asked).toBe(2);
  });

  test('treats a default like the same value that was sent', async () => {
    const { pack, counter } = counting();
    const { ask } = await opened(pack);
    await ask({});
    expect(await ask({ what: 'nothing' })).toMatchObject({ cached: true });
    expect(counter.asked).toBe(1);
  });

  test('is off unless the pack asks for it (R-PACK-02)', async () => {
    const { pack, counter } = counting(undefined, { memory: { ttl: 300 } });
    const { ask } = await opened(pack);
    await ask();
    expect(await ask()).toMatchObject({ cached: false });
    expect(counter.asked).toBe(2);
  });

  test('expires (R-PACK-03)', async () => {
    const { pack, counter } = counting();
    const { ask, clock } = await opened(pack);
    await ask();
    await clock.advance(5 * MINUTE - 1);
    expect(await ask()).toMatchObject({ cached: true });
    await clock.advance(1);
    expect(await ask()).toMatchObject({ cached: false });
    expect(counter.asked).toBe(2);
  });

  test('is separate for each subject (R-PACK-03)', async () => {
    const { pack, counter } = counting();
    const { ask } = await opened(pack);
    await ask();
    expect(await ask({}, aCaller({ subject: 'you' }))).toMatchObject({ cached: false, output: { said: '2' } });
    expect(await ask({}, aCaller({ client: 'codex' }))).toMatchObject({ cached: true });
    expect(counter.asked).toBe(2);
  });

  test('is separate for each credential (R-PACK-03)', async () => {
    const { pack } = counting(({ credential }) => ({ said: credential?.id ?? 'none' }), { credential: 'github' });
    let id: string | undefined = 'first';
    const { ask } = await opened(pack, { read: async () => (id === undefined ? undefined : { id, secret: 'hidden' }) });
    expect(await ask()).toMatchObject({ cached: false, output: { said: 'first' } });
    id = 'second';
    expect(await ask()).toMatchObject({ cached: false, output: { said: 'second' } });
    id = undefined;
    expect(await ask()).toMatchObject({ cached: false, output: { said: 'none' } });
    id = 'first';
    expect(await ask()).toMatchObject({ cached: true, output: { said: 'first' } });
  });

  test('is separate for each version, and each revision of an own pack (R-PACK-03)', async () => {
    const { pack, counter } = counting();
    const first = await opened(pack);
    const again = async (over: Partial<Pack>) => {
      const { folder } = first;
      await first.store[Symbol.asyncDispose]();
      const memory = await openTestMemory({ folder, clock: first.clock, packs: { packs: [{ ...pack, ...over }] } });
      const answer = await memory.as(me)('runPack', { name: 'test.echo' });
      await memory.store[Symbol.asyncDispose]();
      return answer.cached;
    };
    await first.ask();
    expect(await again({})).toBe(true);
    expect(await again({ version: '1.0.1' })).toBe(false);
    expect(await again({ own: { revision: 'a' } })).toBe(false);
    expect(await again({ own: { revision: 'a' } })).toBe(true);
    expect(await again({ own: { revision: 'b' } })).toBe(false);
    expect(counter.asked).toBe(4);
  });

  test('never serves an entry that an agent planted (R-PACK-03)', async () => {
    const { pack, counter } = counting();
    const { ask, store, as } = await opened(pack);
    await ask();
    const { entries } = await store.space({ subject: 'me' }, 'cache').page({ sort: 'updated', limit: 1 });
    const key = entries[0]?.key ?? '';
    expect(key).toMatch(/^test\.echo\/[0-9a-f]{64}$/);
    await as(me)('forget', { scope: 'pack:test.echo' });
    await as(me)('remember', { key, value: JSON.stringify({ output: { said: 'planted' } }) });
    expect(await ask()).toMatchObject({ cached: false, output: { said: '2' } });
    expect(counter.asked).toBe(2);
  });

  test('is deleted when its pack is forgotten', async () => {
    const { pack } = counting();
    const { ask, as } = await opened(pack);
    for (const scope of ['pack:test.echo', 'all']) {
      await ask();
      await as(me)('forget', { scope });
      expect(await ask()).toMatchObject({ cached: false });
    }
  });
});

describe('an output that is not cached', () => {
  test.each<[string, (context: ExecutionContext<{ what: string }>, asked: number) => unknown]>([
    [
      'a failure',
      () => {
        throw new Failure('handler_failed', 'Broken.');
      },
    ],
    ['an output that its schema does not allow', () => ({ said: 5 })],
    [
      'an answer that is for this once',
      ({ doNotCache }) => {
        doNotCache();
        return { said: 'private' };
      },
    ],
    ['text that looks like a credential', () => ({ said: CREDENTIAL })],
    ['a credential on a separate line', () => ({ said: `log:\n${CREDENTIAL}` })],
    ['a credential after a tab', () => ({ said: `token\t${CREDENTIAL}` })],
    ['a credential after a carriage return', () => ({ said: `log:\r${CREDENTIAL}` })],
    ['a credential in a text that is JSON', () => ({ said: JSON.stringify({ log: `log:\n${CREDENTIAL}` }) })],
    ['a credential as a field name', () => ({ said: '', [`log:\n${CREDENTIAL}`]: 1 })],
    ['a credential deep within', () => ({ said: '', list: [{ deep: { note: CREDENTIAL } }] })],
    ['headers that set a cookie', () => ({ said: '', headers: { 'Set-Cookie': 'a=b' } })],
    ['headers in a list that set a cookie', () => ({ said: '', headers: [['set-cookie', 'a=b']] })],
    ['a response as text that sets a cookie', () => ({ said: 'HTTP/1.1 200 OK\r\nset-cookie: a=b\r\n\r\npage' })],
    ['headers that say no-store', () => ({ said: '', headers: { 'cache-control': 'max-age=0, No-Store' } })],
    ['headers in a list that say private', () => ({ said: '', headers: [['Cache-Control', 'private']] })],
    ['an output that is too large', () => ({ said: 'x'.repeat(600 * 1024) })],
  ])('%s (R-PACK-04)', async (_what, answer) => {
    const { pack, counter } = counting(answer);
    const { ask, store } = await opened(pack);
    await ask().catch(() => undefined);
    await ask().catch(() => undefined);
    expect(counter.asked).toBe(2);
    expect(await store.space({ subject: 'me' }, 'cache').count()).toBe(0);
  });
});

test('an output with headers that allow caching is cached (R-PACK-04)', async () => {
  const { pack, counter } = counting(() => ({ said: '', headers: { 'cache-control': 'public, max-age=60', cookie: 'a=b' } }));
  const { ask } = await opened(pack);
  await ask();
  await ask();
  expect(counter.asked).toBe(1);
});

test('an output that contains the credential used is not cached, whatever its format (R-PACK-04)', async () => {
  const { pack, counter } = counting(({ credential }) => ({ said: `You sent ${credential?.secret}` }), { credential: 'github' });
  const { ask, store } = await opened(pack, { read: async () => ({ id: 'first', secret: 'plain words' }) });
  await ask();
  await ask();
  expect(counter.asked).toBe(2);
  expect(await store.space({ subject: 'me' }, 'cache').count()).toBe(0);
});

test('an output that contains the credential with JSON escapes is not cached (R-PACK-04)', async () => {
  const secret = 'pa"ss\\word';
  const { pack } = counting(({ credential }) => ({ said: `You sent ${credential?.secret}` }), { credential: 'github' });
  const { ask, store } = await opened(pack, { read: async () => ({ id: 'first', secret }) });
  await ask();
  expect(await store.space({ subject: 'me' }, 'cache').count()).toBe(0);
});

describe('concurrent equal requests', () => {
  const held = (answer: (context: ExecutionContext<{ what: string }>, asked: number) => unknown, over: Partial<Pack> = {}) => {
    const gate = Promise.withResolvers<void>();
    const { pack, counter } = counting(async (context, asked) => {
      await gate.promise;
      return answer(context, asked);
    }, over);
    return { pack, counter, open: gate.resolve };
  };
  const settled = async (answers: readonly Promise<unknown>[]) =>
    (await Promise.allSettled(answers)).map((answer) =>
      answer.status === 'fulfilled' ? answer.value : (answer.reason as unknown),
    );
  const soon = () => new Promise((resolve) => setTimeout(resolve, 50));

  test('run the handler once (R-PACK-05)', async () => {
    const { pack, counter, open } = held((_context, asked) => ({ said: `${asked}` }));
    const { ask } = await opened(pack);
    const answers = Array.from({ length: 50 }, () => ask({ what: 'x' }));
    await soon();
    open();
    const all = (await settled(answers)) as { cached: boolean; output: unknown }[];
    expect(counter.asked).toBe(1);
    expect(all.filter(({ cached }) => !cached)).toHaveLength(1);
    expect(new Set(all.map(({ output }) => JSON.stringify(output)))).toEqual(new Set(['{"said":"1"}']));
  });

  test('all get its failure (R-PACK-05)', async () => {
    const { pack, counter, open } = held(() => {
      throw new Failure('handler_failed', 'Broken.');
    });
    const { ask } = await opened(pack);
    const answers = Array.from({ length: 20 }, () => ask());
    await soon();
    open();
    expect(await settled(answers)).toEqual(
      Array.from({ length: 20 }, () => expect.objectContaining({ code: 'handler_failed' }) as unknown),
    );
    expect(counter.asked).toBe(1);
  });

  test('run it again if the first caller cancels', async () => {
    const { pack, counter, open } = held((_context, asked) => ({ said: `${asked}` }));
    const { ask, perform } = await opened(pack);
    const controller = new AbortController();
    const first = perform(me, 'runPack', { name: 'test.echo' }, { signal: controller.signal });
    await soon();
    const others = [ask(), ask()];
    await soon();
    controller.abort();
    open();
    await expect(first).rejects.toMatchObject({ code: 'cancelled' });
    expect(await settled(others)).toMatchObject([{ output: { said: '2' } }, { output: { said: '2' } }]);
    expect(counter.asked).toBe(2);
  });

  test('run it again if the first run times out, with a full time limit (R-PACK-05)', async () => {
    const { pack, counter, open } = held((_context, asked) => ({ said: `${asked}` }));
    const { ask, clock } = await opened(pack);
    const first = ask().catch((error: unknown) => error);
    await soon();
    await clock.advance(20_000);
    const second = ask();
    await soon();
    await clock.advance(10_000);
    expect(await first).toMatchObject({ code: 'timeout' });
    open();
    expect(await second).toMatchObject({ output: { said: '2' } });
    expect(counter.asked).toBe(2);
  });

  test('each run the handler if they bypass the cache', async () => {
    const { pack, counter, open } = held((_context, asked) => ({ said: `${asked}` }), {
      memory: { ...CACHED, bypassesCache: (input) => (input as { what: string }).what === 'mine' },
    });
    const { ask, store } = await opened(pack);
    const answers = [ask({ what: 'mine' }), ask({ what: 'mine' })];
    await expect.poll(() => counter.asked).toBe(2);
    open();
    const all = (await settled(answers)) as { cached: boolean }[];
    expect(all.map(({ cached }) => cached)).toEqual([false, false]);
    expect(await store.space({ subject: 'me' }, 'cache').count()).toBe(0);
  });

  test('run it again if the first caller’s token is revoked (R-PACK-32)', async () => {
    const { pack, counter, open } = held((_context, asked) => ({ said: `${asked}` }));
    const { ask, tokens } = await opened(pack);
    const { id } = await tokens.mint({ name: 't', client: 't', subject: 'me', scopes: ['packs:run'], days: 1 });
    const first = ask({}, aCaller({ token: id })).catch((error: unknown) => error);
    await soon();
    const second = ask();
    await soon();
    await tokens.revoke({ id, unrecorded: false });
    expect(await first).toMatchObject({ code: 'invalid_token' });
    open();
    expect(await second).toMatchObject({ output: { said: '2' } });
    expect(counter.asked).toBe(2);
  });

  test('leave nothing behind if all callers cancel', async () => {
    const { pack, counter, open } = held((_context, asked) => ({ said: `${asked}` }));
    const { ask, perform } = await opened(pack);
    const [first, second] = [new AbortController(), new AbortController()];
    const given = settled([first, second].map(({ signal }) => perform(me, 'runPack', { name: 'test.echo' }, { signal })));
    await soon();
    second.abort();
    await soon();
    first.abort();
    await given;
    open();
    expect(await ask()).toMatchObject({ output: { said: '2' } });
    expect(counter.asked).toBe(2);
  });

  test('do not wait for a caller that had cancelled before', async () => {
    const { pack, counter } = counting();
    const { ask, perform } = await opened(pack);
    await expect(perform(me, 'runPack', { name: 'test.echo' }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'cancelled',
    });
    expect(await ask()).toMatchObject({ output: { said: '1' } });
    expect(counter.asked).toBe(1);
  });

  test('each run the handler if the output may not be shared (R-PACK-04)', async () => {
    const { pack, counter, open } = held(({ doNotCache }, asked) => {
      doNotCache();
      return { said: `${asked}` };
    });
    const { ask } = await opened(pack);
    const answers = Array.from({ length: 5 }, () => ask());
    await soon();
    open();
    const all = (await settled(answers)) as { output: { said: string } }[];
    expect(all.map(({ output }) => output.said).toSorted()).toEqual(['1', '2', '3', '4', '5']);
    expect(counter.asked).toBe(5);
  });

  test('of different subjects do not wait for each other (R-PACK-03)', async () => {
    const { pack, counter, open } = held(({ caller }) => ({ said: caller.subject }));
    const { ask } = await opened(pack);
    const answers = [ask(), ask({}, aCaller({ subject: 'you' }))];
    await soon();
    open();
    expect(await settled(answers)).toMatchObject([{ output: { said: 'me' } }, { output: { said: 'you' } }]);
    expect(counter.asked).toBe(2);
  });
});
