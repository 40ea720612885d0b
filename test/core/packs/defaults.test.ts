import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { DAY, START } from '../../support/clock.ts';
import { aCaller, openTestMemory, type TestMemory } from '../../support/memory.ts';
import { aPack } from '../../support/packs.ts';
import { anAuthor } from '../../support/store.ts';

const me = aCaller();

interface Row {
  readonly pack?: string;
  readonly pipeline?: string;
  readonly outcome?: string;
  /** Seconds since the clock's start. */
  readonly at?: number;
  readonly learn?: Record<string, string>;
  readonly findings?: readonly { code: string; severity: string; file?: string }[];
}

/** Writes rows as the engine does, in key order. */
async function filled(rows: readonly Row[], memory?: TestMemory): Promise<TestMemory> {
  const opened = memory ?? (await openTestMemory());
  for (const [index, { pack, pipeline, outcome, at = index, learn, findings }] of rows.entries()) {
    const kind = pipeline === undefined ? 'pack' : 'pipeline';
    const common = {
      outcome: outcome ?? (kind === 'pack' ? 'ok' : 'succeeded'),
      at_unix: START / 1000 + at,
      duration_ms: 7,
      ...(learn && { learn_inputs: learn }),
    };
    const row =
      kind === 'pack'
        ? { pack, version: '1.0.0', ...common, ...(findings && { findings }) }
        : { pipeline, run_id: `run-${index}`, ...common };
    const nanos = `${BigInt(START + at * 1000) * 1_000_000n + BigInt(index)}`.padStart(20, '0');
    await opened.store.space({ subject: 'me' }, 'audit').put({
      key: `${kind}_history/${pack ?? pipeline}/${nanos}`,
      value: JSON.stringify(row),
      category: `${kind}_history`,
      tags: [],
      author: anAuthor,
      lifetime: 30 * DAY,
    });
  }
  return opened;
}

const learned = async (rows: readonly Row[]) => (await filled(rows)).as(me)('myDefaults', {});

const times = (count: number, row: Row): Row[] => Array.from({ length: count }, () => row);

describe('my defaults', () => {
  test('say why they are empty, with empty lists (R-VIEW-03)', async () => {
    const memory = await openTestMemory();
    expect(await memory.as(me)('myDefaults', {})).toEqual({
      scope: 'caller=me',
      fetched_at: new Date(START).toISOString(),
      packs: [],
      pipelines: [],
      recent: [],
      note: expect.any(String),
    });
  });

  test('count successes only; the latest runs show every outcome (R-VIEW-02, R-VIEW-03)', async () => {
    const defaults = await learned([
      { pack: 'a.one', learn: { persona: 'pirate' } },
      { pack: 'a.one', outcome: 'handler_failed', learn: { persona: 'clown' } },
      { pack: 'a.one', outcome: 'cancelled' },
      { pack: 'a.two', outcome: 'timeout' },
      { pipeline: 'weekly' },
      { pipeline: 'weekly', outcome: 'failed' },
    ]);
    expect(defaults).toMatchObject({
      packs: [{ id: 'a.one', calls: 1, last_used_unix: START / 1000, common_inputs: { persona: 'pirate' } }],
      pipelines: [{ id: 'weekly', runs: 1, last_used_unix: START / 1000 + 4 }],
    });
    expect(defaults.recent.map(({ kind, id, outcome }) => [kind, id, outcome])).toEqual([
      ['pipeline', 'weekly', 'failed'],
      ['pipeline', 'weekly', 'succeeded'],
      ['pack', 'a.two', 'timeout'],
      ['pack', 'a.one', 'cancelled'],
      ['pack', 'a.one', 'handler_failed'],
      ['pack', 'a.one', 'ok'],
    ]);
    expect(defaults).not.toHaveProperty('note');
    expect(defaults).not.toHaveProperty('common_findings');
  });

  test('keep the outcomes of packs and pipelines apart', async () => {
    const { packs, pipelines } = await learned([
      { pack: 'a.one', outcome: 'succeeded' },
      { pipeline: 'weekly', outcome: 'ok' },
    ]);
    expect([packs, pipelines]).toEqual([[], []]);
  });

  test.each<[what: string, rows: Row[], inputs: Record<string, string> | undefined]>([
    ['the most frequent value', [{ learn: { tone: 'b' } }, { learn: { tone: 'a' } }, { learn: { tone: 'b' } }], { tone: 'b' }],
    ['the smallest of equally frequent values', [{ learn: { tone: 'b' } }, { learn: { tone: 'a' } }], { tone: 'a' }],
    ['each field separately', [{ learn: { tone: 'a', angle: 'x' } }, { learn: { angle: 'x' } }], { angle: 'x', tone: 'a' }],
    ['a value such as constructor', [{ learn: { title: 'constructor' } }], { title: 'constructor' }],
    [
      'nothing from failures',
      [{ learn: { tone: 'b' } }, ...times(3, { outcome: 'internal', learn: { tone: 'a' } })],
      { tone: 'b' },
    ],
    ['nothing from rows without inputs', [{}], undefined],
  ])('learn %s (R-VIEW-02)', async (_what, rows, inputs) => {
    const { packs } = await learned(rows.map((row) => ({ pack: 'a.one', ...row })));
    expect(packs[0]?.common_inputs).toEqual(inputs);
  });

  test('rank by count, then last use, then name (R-VIEW-02)', async () => {
    const { packs } = await learned([
      { pack: 'a.late', at: 9 },
      { pack: 'a.soon', at: 1 },
      { pack: 'a.b', at: 5 },
      { pack: 'a.a', at: 5 },
      ...times(2, { pack: 'a.often', at: 0 }),
    ]);
    expect(packs.map(({ id, calls }) => [id, calls])).toEqual([
      ['a.often', 2],
      ['a.late', 1],
      ['a.a', 1],
      ['a.b', 1],
      ['a.soon', 1],
    ]);
  });

  test('show at most 12 of each, 20 findings and 200 runs (R-VIEW-02, R-VIEW-03)', async () => {
    const defaults = await learned([
      ...Array.from({ length: 14 }, (_, index) => ({ pack: `a.p${index}` })),
      ...Array.from({ length: 14 }, (_, index) => ({ pipeline: `p${index}` })),
      ...times(200, { pack: 'a.p0' }),
      {
        pack: 'a.p0',
        findings: Array.from({ length: 25 }, (_, index) => ({ code: `c${String(index).padStart(2, '0')}`, severity: 'low' })),
      },
    ]);
    expect(defaults.packs).toHaveLength(12);
    expect(defaults.pipelines).toHaveLength(12);
    expect(defaults.recent).toHaveLength(200);
    expect(defaults.common_findings?.map(({ code }) => code)).toEqual(
      Array.from({ length: 20 }, (_, index) => `c${String(index).padStart(2, '0')}`),
    );
  });

  test('count findings of every outcome, the most common first (R-VIEW-03)', async () => {
    const { common_findings: found } = await learned([
      { pack: 'a.one', outcome: 'invalid_output', findings: [{ code: 'b', severity: 'low' }] },
      {
        pack: 'a.one',
        findings: [
          { code: 'b', severity: 'low', file: 'x.ts' },
          { code: 'a', severity: 'low' },
          { code: 'a', severity: 'high' },
        ],
      },
    ]);
    expect(found).toEqual([
      { code: 'b', severity: 'low', count: 2 },
      { code: 'a', severity: 'high', count: 1 },
      { code: 'a', severity: 'low', count: 1 },
    ]);
  });

  test('are those of the caller alone (R-ISO-01)', async () => {
    const memory = await filled([{ pack: 'a.one' }]);
    expect(await memory.as(aCaller({ subject: 'you' }))('myDefaults', {})).toMatchObject({ packs: [], recent: [] });
  });

  test('follow later runs', async () => {
    const memory = await filled([{ pack: 'a.one', findings: [{ code: 'x', severity: 'low' }] }]);
    const ask = () => memory.as(me)('myDefaults', {});
    expect(await ask()).toMatchObject({ packs: [{ calls: 1 }] });
    await filled([{ pack: 'a.two', at: 1 }], memory);
    expect((await ask()).packs.map(({ id }) => id)).toEqual(['a.two', 'a.one']);
    await memory.as(me)('forget', { scope: 'pack:a.one' });
    const left = await ask();
    expect(left.packs.map(({ id }) => id)).toEqual(['a.two']);
    expect(left).not.toHaveProperty('common_findings');
    await memory.as(me)('forget', { scope: 'packs' });
    expect(await ask()).toMatchObject({ recent: [], note: expect.any(String) });
  });

  test('leave out expired rows, swept or not', async () => {
    const memory = await filled([{ pack: 'a.one' }]);
    expect(await memory.as(me)('myDefaults', {})).toMatchObject({ packs: [{ id: 'a.one' }] });
    memory.clock.jump(31 * DAY);
    expect(await memory.as(me)('myDefaults', {})).toMatchObject({ packs: [], recent: [] });
  });

  test('are not shown while the memory is locked', async () => {
    const memory = await filled([{ pack: 'a.one' }]);
    await memory.as(me)('myDefaults', {});
    memory.store.lock();
    await expect(memory.as(me)('myDefaults', {})).rejects.toMatchObject({ code: 'key_unavailable' });
    await memory.store.unlock();
    expect(await memory.as(me)('myDefaults', {})).toMatchObject({ packs: [{ id: 'a.one' }] });
  });

  test('include every row that was written while they were read', async () => {
    const memory = await filled(times(250, { pack: 'a.one' }));
    const asked = memory.as(me)('myDefaults', {});
    await filled(times(3, { pack: 'a.two', at: 9 }), memory);
    await asked;
    const { packs } = await memory.as(me)('myDefaults', {});
    expect(packs.map(({ id, calls }) => [id, calls])).toEqual([
      ['a.one', 250],
      ['a.two', 3],
    ]);
  });
});

test('inputs and findings of packs are learned (R-VIEW-02, R-VIEW-03)', async () => {
  const pack = aPack(({ input }) => {
    const { voice, persona } = input as unknown as { voice?: string; persona?: string };
    if (persona === 'mute') throw new Error('nothing to say');
    return { said: voice ?? '', findings: [{ code: 'too-loud', severity: 'low' }] };
  });
  const memory = await openTestMemory({ packs: { packs: [{ ...pack, input: z.record(z.string(), z.unknown()) }] } });
  const run = (input: Record<string, unknown>) =>
    memory
      .as(me)('runPack', { name: 'test.echo', input })
      .catch(() => undefined);
  await run({ persona: 'pirate', voice: 'low', topic: 'ships' });
  await run({ persona: 'pirate', voice: 'high' });
  await run({ persona: 'mute' });
  await run({ persona: 'mute' });
  await run({ persona: 'mute' });
  const defaults = await memory.as(me)('myDefaults', {});
  expect(defaults).toMatchObject({
    packs: [{ id: 'test.echo', calls: 2, common_inputs: { persona: 'pirate', voice: 'high' } }],
    common_findings: [{ code: 'too-loud', severity: 'low', count: 2 }],
  });
  expect(defaults.recent.map(({ outcome }) => outcome)).toEqual([...Array(3).fill('handler_failed'), 'ok', 'ok']);
});
