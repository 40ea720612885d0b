import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readListedPack } from '../../../src/main/own-packs/pack-file.ts';
import { SECOND } from '../../support/clock.ts';
import { aCaller, openTestMemory } from '../../support/memory.ts';
import { openMemoryWithOwnPack, OWN_PACK, packText } from '../../support/own-packs.ts';
import { CREDENTIAL } from '../../support/packs.ts';

describe('an own pack (R-PACK-10)', () => {
  test('runs like any other pack, and is marked as own', async () => {
    const { run, as } = await openMemoryWithOwnPack();
    expect(await run({ what: 'hello' })).toMatchObject({
      pack: OWN_PACK,
      version: '1.0.0',
      output: { said: 'hello' },
      cached: false,
    });
    expect(await run()).toMatchObject({ output: { said: 'nothing' } });
    const { packs } = await as(aCaller())('packs', {});
    expect(packs.find(({ name }) => name === OWN_PACK)).toMatchObject({ own: true, tool: 'test_own', title: 'Own' });
  });

  test('receives the subject, client and session of its caller, and nothing else', async () => {
    const { run } = await openMemoryWithOwnPack({
      handler: 'return { said: JSON.stringify({ caller: ec.caller, session: ec.session, fields: Object.keys(ec) }) };',
    });
    const { output } = await run({}, 's1');
    expect(JSON.parse((output as { said: string }).said)).toEqual({
      caller: { subject: 'me', client: 'claude-code' },
      session: 's1',
      fields: ['input', 'caller', 'session', 'signal', 'progress', 'log', 'doNotCache'],
    });
  });

  test('reports progress, logs, and prints to the same log', async () => {
    const heard: unknown[] = [];
    const { perform, logged } = await openMemoryWithOwnPack({
      handler: `ec.progress(1, 2, 'half'); ec.progress(2); ec.log('a'); console.log('b', { c: 1 }); return { said: '' };`,
    });
    await perform(aCaller(), 'runPack', { name: OWN_PACK }, { progress: (...said) => void heard.push(said) });
    expect(heard).toEqual([
      [1, 2, 'half'],
      [2, undefined, undefined],
    ]);
    expect(logged).toEqual(['a', 'b { c: 1 }']);
  });

  test('prints any value, also values that JSON cannot represent', async () => {
    const { run, logged } = await openMemoryWithOwnPack({
      handler: `const ring = {}; ring.ring = ring; console.log(ring, 5n, undefined); console.error(new Error('odd').message); return { said: '' };`,
    });
    expect(await run()).toMatchObject({ output: { said: '' } });
    expect(logged).toEqual(['{ ring: [Circular] } 5n undefined', 'odd']);
  });

  test('has a memory for its caller and session', async () => {
    const { as } = await openMemoryWithOwnPack({
      more: 'memory: { ttl: 7200, category: "notes" },',
      handler: `
        const before = await ec.memory.recall('k');
        await ec.memory.store('k', { n: (before?.value.n ?? 0) + 1 }, { tags: ['t'] });
        const { categories } = await ec.memory.context();
        const [{ key, tags }] = await ec.memory.list('');
        const gone = [await ec.memory.delete('none'), (await ec.memory.recall('none')) === undefined];
        const { value, category } = await ec.memory.recall('k');
        return { said: JSON.stringify([ec.memory.namespace, key, tags, value, category, categories.length, gone]) };`,
    });
    const said = async (subject: string, session?: string) => {
      const asked = { name: OWN_PACK, ...(session !== undefined && { session }) };
      return JSON.parse(((await as(aCaller({ subject }))('runPack', asked)).output as { said: string }).said) as unknown;
    };
    const told = (namespace: string, n: number) => [namespace, 'k', ['t'], { n }, 'notes', 1, [false, true]];
    expect(await said('me')).toEqual(told('me', 1));
    expect(await said('me')).toEqual(told('me', 2));
    expect(await said('me', 's')).toEqual(told('me:s', 1));
    expect(await said('you')).toEqual(told('you', 1));
  });

  test('finds its earlier outputs if it declares capture (R-PACK-30)', async () => {
    const { run } = await openMemoryWithOwnPack({
      more: 'memory: { capture: true },',
      handler: `const [before] = await ec.memory.list('captured/');
        return { said: input.what + ((await ec.memory.recall(before?.key ?? '-'))?.value.said ?? '') };`,
    });
    await run({ what: 'a' });
    expect(await run({ what: 'b' })).toMatchObject({ output: { said: 'ba' } });
  });

  test('can send many requests to its memory at once', async () => {
    const { run } = await openMemoryWithOwnPack({
      more: 'memory: {},',
      handler: `
        await Promise.all(Array.from({ length: 200 }, (_, n) => ec.memory.store('k' + n, n)));
        return { said: String((await ec.memory.list()).length) };`,
    });
    expect(await run()).toMatchObject({ output: { said: '200' } });
  });

  test.each([
    ['a credential', `'k', ${JSON.stringify(CREDENTIAL)}`, /looks like a credential/],
    ['undefined', `'k', undefined`, /can store only JSON values/],
    ['a value that is too large', `'k', 'x'.repeat(70_000)`, /at most 64 KiB/],
    ['an invalid lifetime', `'k', 1, { ttl: 'long' }`, /needs a key and a value/],
    ['a misspelt option', `'k', 1, { tll: 5 }`, /needs a key and a value/],
    ['no key', `5, 1`, /needs a key and a value/],
  ])('gets the reason why its memory refuses %s', async (_what, given, why) => {
    const { run } = await openMemoryWithOwnPack({
      more: 'memory: {},',
      handler: `await ec.memory.store(${given}); return { said: '' };`,
    });
    await expect(run()).rejects.toMatchObject({ code: 'handler_failed', message: expect.stringMatching(why) as string });
  });

  test('fails if its memory refuses a request, unless it handles the error', async () => {
    const { run, logged } = await openMemoryWithOwnPack({
      more: 'memory: {},',
      handler: `
        const store = () => ec.memory.store('', 1);
        if (input.what === 'handle') await store().catch((error) => ec.log('handled: ' + error.message));
        else await store();
        return { said: '' };`,
    });
    await expect(run({ what: 'nothing' })).rejects.toMatchObject({
      code: 'handler_failed',
      message: expect.stringMatching(/key /) as string,
    });
    expect(await run({ what: 'handle' })).toMatchObject({ output: { said: '' } });
    expect(logged.at(-1)).toMatch(/^handled: A key must be /);
  });
});

describe('the cache of an own pack', () => {
  test('returns a cached output unless the pack called doNotCache', async () => {
    const { run } = await openMemoryWithOwnPack({
      more: 'memory: { cache: true, ttl: 60 },',
      handler: `if (input.what === 'once') ec.doNotCache(); return { said: String(Math.random()) };`,
    });
    const first = await run();
    expect(await run()).toMatchObject({ cached: true, output: first.output });
    await run({ what: 'once' });
    expect(await run({ what: 'once' })).toMatchObject({ cached: false });
  });

  test('treats a changed file of the same version as another pack (R-PACK-18)', async () => {
    const more = 'memory: { cache: true, ttl: 60 },';
    const { run, folder, own, pack, store, clock } = await openMemoryWithOwnPack({ more, handler: `return { said: 'one' };` });
    await run();
    const path = join(folder, 'packs', `${OWN_PACK}.mjs`);
    writeFileSync(path, readFileSync(path, 'utf8').replace("'one'", "'two'"));
    expect(await run({ what: 'other' })).toMatchObject({ output: { said: 'one' } });
    const changed = await own.describe(readListedPack(folder, OWN_PACK));
    expect(changed.own?.revision).not.toBe(pack.own?.revision);
    const { createPackServices: createPacks } = await import('../../../src/core/packs/pack-services.ts');
    using packs = createPacks({ store, clock, packs: [changed] });
    expect(await packs.engine.run(aCaller(), { name: OWN_PACK, input: {} })).toMatchObject({
      cached: false,
      output: { said: 'two' },
    });
  });
});

describe('the schemas of an own pack', () => {
  test('are shown as they were written', async () => {
    const { as } = await openMemoryWithOwnPack({ input: `what: z.string().regex(/^[a-z]+$/).max(5).describe('A word.')` });
    const { input_schema: shown } = await as(aCaller())('pack', { name: OWN_PACK });
    expect(shown).toMatchObject({
      type: 'object',
      properties: { what: { type: 'string', pattern: '^[a-z]+$', maxLength: 5, description: 'A word.' } },
      required: ['what'],
    });
  });

  test.each([
    ['a type', `what: z.string()`, { what: 5 }, /^what is invalid/],
    ['a pattern', `what: z.string().regex(/^[a-z]+$/)`, { what: 'A' }, /^what is invalid: .*pattern/],
    ['a format', `what: z.url()`, { what: 'no address' }, /^what is invalid/],
    [
      'a refinement',
      `what: z.string().refine((text) => text !== 'odd', 'must be even')`,
      { what: 'odd' },
      /^what is invalid: must be even/,
    ],
    [
      'an asynchronous refinement',
      `what: z.string().refine(async () => false, 'is taken')`,
      { what: 'x' },
      /^what is invalid: is taken/,
    ],
  ])('refuse input for %s', async (_what, input, given, message) => {
    const { run } = await openMemoryWithOwnPack({ input });
    await expect(run(given)).rejects.toMatchObject({ code: 'invalid_input', message: expect.stringMatching(message) as string });
  });

  test('do not delay other callers with an exponential pattern (R-PACK-19)', async () => {
    const { run, clock, as } = await openMemoryWithOwnPack({ input: `what: z.string().regex(/^(a+)+$/)`, more: 'seconds: 5,' });
    const answer = run({ what: `${'a'.repeat(60)}!` }).catch((error: unknown) => error);
    // The memory answers while the pack's process matches the pattern.
    expect(await as(aCaller())('list', {})).toMatchObject({ facts: [] });
    await clock.advance(5 * SECOND);
    expect(await answer).toMatchObject({ code: 'timeout' });
  });

  test('transform the input once', async () => {
    const { run } = await openMemoryWithOwnPack({
      input: `what: z.string().transform((text) => text.length)`,
      handler: 'return { said: typeof input.what + input.what };',
    });
    expect(await run({ what: 'four' })).toMatchObject({ output: { said: 'number4' } });
  });
});

describe('an error that a pack throws', () => {
  const thrown = async (what: string) => {
    const { run } = await openMemoryWithOwnPack({ handler: `throw ${what};` });
    return await run().catch((error: unknown) => error);
  };

  test('reaches the caller as one line with the line number (R-PACK-20)', async () => {
    expect(await thrown(`new Error('Bergen is\\n\\u001b[2Junknown')`)).toMatchObject({
      code: 'handler_failed',
      message: `${OWN_PACK}: Bergen is [2Junknown (line 12)`,
    });
    expect(await thrown(`'a text'`)).toMatchObject({ message: `${OWN_PACK}: a text` });
    expect(await thrown(`new Error('')`)).toMatchObject({ message: expect.stringContaining('(line 12)') as string });
  });

  test('reveals no path of this installation in its stack (R-PACK-36)', async () => {
    const { run, logged } = await openMemoryWithOwnPack({
      more: 'memory: {},',
      handler: `
        const stacks = [];
        const collect = (error) => { stacks.push(error.stack); console.log(error); };
        const attempt = async (act) => { try { await act(); } catch (error) { collect(error); } };
        Reflect.set(Error, 'prepareStackTrace', (_error, frames) => frames.map((frame) => frame.getFileName()).join());
        Reflect.set(globalThis, 'Error', { prepareStackTrace: (_error, frames) => frames.map(String).join() });
        Reflect.set(String.prototype, 'startsWith', function () { stacks.push(String(this)); return true; });
        Reflect.set(Array.prototype, Symbol.iterator, new Proxy(Array.prototype[Symbol.iterator], {
          apply(next, frames, given) { stacks.push(String(frames)); return Reflect.apply(next, frames, given); },
        }));
        collect(new TypeError('own'));
        await attempt(() => new URL('no address'));
        await attempt(() => atob('é'));
        await attempt(() => import('node:fs'));
        await attempt(() => z.object({ a: z.string() }).parse({}));
        await attempt(() => ec.memory.recall(5));
        await attempt(() => fetch('https://api.example.com/'));
        await attempt(() => { const down = () => down(); down(); });
        await new Promise((done) => setTimeout(() => { collect(new Error('timer')); done(); }, 1));
        const captured = {}; Error.captureStackTrace(captured); stacks.push(captured.stack);
        return { said: stacks.join('\\n') };`,
    });
    const said = ((await run()).output as { said: string }).said + logged.join('\n');
    expect(said).toContain('Error: timer\n    at ');
    expect(said).toMatch(/pack:test\.own\.mjs:\d+/);
    for (const part of [process.cwd(), 'file:', 'node_modules', 'node:internal', 'realm.ts', 'child.ts'])
      expect(said).not.toContain(part);
  });

  test('is shortened, and never contains a credential', async () => {
    expect(((await thrown(`new Error('x'.repeat(5000))`)) as Error).message.length).toBeLessThan(400);
    const { message } = (await thrown(`new Error('refused with ${CREDENTIAL}')`)) as Error;
    expect(message).toBe(`${OWN_PACK}: the error message looks like a credential, so it is not shown.`);
  });
});

test('at most four runs of one subject run at the same time', async () => {
  const { as } = await openMemoryWithOwnPack({
    handler: `
      const began = Date.now();
      await new Promise((resolve) => setTimeout(resolve, 300));
      return { said: JSON.stringify([began, Date.now()]) };`,
  });
  const spans = await Promise.all(
    Array.from({ length: 7 }, async () => {
      const { output } = await as(aCaller())('runPack', { name: OWN_PACK });
      return JSON.parse((output as { said: string }).said) as [number, number];
    }),
  );
  const atOnce = spans.map(([began]) => spans.filter(([start, end]) => start <= began && began < end).length);
  expect(Math.max(...atOnce)).toBeLessThanOrEqual(4);
});

test('a run that is cancelled while waiting makes room for the next', async () => {
  const memory = await openMemoryWithOwnPack({
    handler: `await new Promise((resolve) => setTimeout(resolve, 400)); return { said: '' };`,
  });
  const ask = (signal?: AbortSignal) => memory.perform(aCaller(), 'runPack', { name: OWN_PACK }, signal ? { signal } : {});
  const running = Array.from({ length: 4 }, () => ask());
  const controller = new AbortController();
  const cancelledRun = ask(controller.signal).catch((error: unknown) => error);
  const waitingRun = ask();
  controller.abort();
  expect(await cancelledRun).toMatchObject({ code: 'cancelled' });
  expect(await Promise.all([...running, waitingRun])).toHaveLength(5);
});

test('an invalid file does not become a pack', async () => {
  await expect(openMemoryWithOwnPack(packText().replace('handler', 'run'))).rejects.toMatchObject({ code: 'handler_failed' });
  expect((await openTestMemory()).packs.skipped).toEqual([]);
});
