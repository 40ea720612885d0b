import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { OperationRequest } from '../src/contract/operations.ts';
import type { PackHook } from '../src/core/packs/hook.ts';
import { aCaller, openTestMemory } from './support/memory.ts';
import { openMemoryWithOwnPack, OWN_PACK } from './support/own-packs.ts';
import { aPack } from './support/packs.ts';
import { tempFolder } from './support/temp-folder.ts';

const page = readFileSync('docs/packs.md', 'utf8');
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, text = '']) => text);

describe('docs/packs.md', () => {
  test('shows a pack that works unchanged (R-PACK-21)', async () => {
    const [pack = ''] = blocks('js');
    const { run } = await openMemoryWithOwnPack(pack);
    const asked = { text: `Short. ${'word '.repeat(25)}.`, audience: 'everyone' };
    expect(await run(asked)).toMatchObject({
      cached: false,
      output: { sentences: 2, findings: [{ code: 'long_sentence', severity: 'info' }] },
    });
    expect(await run(asked)).toMatchObject({ cached: true });
    expect(await run({ ...asked, audience: 'experts' })).toMatchObject({ output: { findings: [] } });
    await expect(run({ text: '' })).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('does not cache an output that depends on the memory', async () => {
    const [kept, remembering] = blocks('js').filter((text) => text.includes('export default'));
    expect(kept).toMatch(/cache: true/);
    expect(kept).not.toMatch(/recall|memory\.store/);
    const { run } = await openMemoryWithOwnPack(remembering ?? '');
    expect(await run({ title: 'Whales' })).toMatchObject({ cached: false, output: { times: 1 } });
    expect(await run({ title: 'Whales' })).toMatchObject({ cached: false, output: { times: 2 } });
    expect(await run({ title: 'Sharks' })).toMatchObject({ cached: false, output: { times: 1 } });
  });

  test('describes truthfully what the program learns from runs', async () => {
    const { run, store } = await openMemoryWithOwnPack(blocks('js')[0] ?? '');
    await run({ text: `${'word '.repeat(25)}.`, audience: 'everyone' });
    const { entries } = await store.space({ subject: 'me' }, 'audit').page({ sort: 'updated', limit: 10 });
    expect(entries.map(({ value }) => JSON.parse(value) as unknown)).toMatchObject([
      {
        pack: OWN_PACK,
        outcome: 'ok',
        learn_inputs: { audience: 'everyone' },
        findings: [{ code: 'long_sentence', severity: 'info' }],
      },
    ]);
  });

  test('shows a pipeline that runs unchanged (R-PACK-12)', async () => {
    const { as, store } = await openMemoryWithOwnPack(blocks('js')[0] ?? '');
    const text = (blocks('json')[0] ?? '').replace('words.check', OWN_PACK);
    const { id } = await as(aCaller())('createPipeline', JSON.parse(text) as OperationRequest<'createPipeline'>);
    const { run_id: runId } = await as(aCaller())('runPipeline', { id, inputs: { text: 'Short. And good.' } });
    await expect
      .poll(async () => (await as(aCaller())('pipelineRun', { run_id: runId })).status, { timeout: 45_000 })
      .toBe('succeeded');
    expect(await store.space({ subject: 'me' }, 'fact').get('texts/last')).toMatchObject({ value: '2 sentences, for everyone' });
  });

  test('shows a hook that traces runs and works unchanged (R-PACK-02)', async () => {
    const path = join(tempFolder(), 'tracing.ts');
    writeFileSync(path, blocks('ts')[0] ?? '');
    const { tracing } = (await import(pathToFileURL(path).href)) as { tracing: (write: (span: object) => void) => PackHook };
    const spans: object[] = [];
    const pack = aPack(
      ({ input: { what } }) => {
        if (what === 'fail') throw new Error('failed');
        return { said: what };
      },
      { memory: { cache: true, ttl: 60 } },
    );
    const { as } = await openTestMemory({ packs: { packs: [pack], hooks: [tracing((span) => void spans.push(span))] } });
    const run = (what: string) => as(aCaller())('runPack', { name: 'test.echo', input: { what } });
    await run('hello');
    await run('hello');
    await run('fail').catch(() => undefined);
    const span = { name: 'pack test.echo', subject: 'me', ms: expect.any(Number) as number };
    expect(spans).toEqual([
      { ...span, outcome: 'ok', cached: false },
      { ...span, outcome: 'ok', cached: true },
      { ...span, outcome: 'handler_failed', cached: false },
    ]);
  });
});
