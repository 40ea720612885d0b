import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MINUTE } from '../support/clock.ts';
import { sendRequest as request } from '../support/listener.ts';
import { type Name, NAMES, searcher, WIRES } from './wires.ts';
import { openWorld, type Surface, type World } from './world.ts';

let world: World;
let surfaces: ReadonlyMap<Name, Surface>;

beforeAll(async () => {
  world = await openWorld();
  surfaces = await world.surfaces();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  await at('in process').ask('forget', { scope: 'all' });
  await world.clock.advance(2 * MINUTE);
});

function at(name: Name, among = surfaces): Surface {
  const surface = among.get(name);
  if (!surface) throw new Error(`${name} is not open.`);
  return surface;
}

async function answer(name: Name, operation: string, input: unknown, among = surfaces): Promise<Record<string, unknown>> {
  const outcome = await at(name, among).ask(operation, input);
  if (outcome.answer === undefined) throw new Error(`${name} refused ${operation}: ${outcome.refused?.message}`);
  return outcome.answer;
}

const speaking = (operation: string, input: unknown): Name[] => NAMES.filter((name) => WIRES[name].can(operation, input));
const aRun = { name: 'test.echo', input: { what: 'hello' } };
const RUNNERS = speaking('runPack', aRun);

test('every wire with calls can run packs', () => {
  expect(RUNNERS).toEqual([
    'in process',
    'REST',
    'MCP streamable HTTP',
    'MCP SSE',
    'the stdio bridge',
    'the owner route',
    'the window',
  ]);
});

describe.each(RUNNERS)('%s runs packs like every other wire', (name) => {
  test.each([
    { why: 'with an input', input: aRun, output: { said: 'hello', session: 'none' } },
    { why: 'without one', input: { name: 'test.echo' }, output: { said: 'nothing', session: 'none' } },
    { why: 'in a session', input: { ...aRun, session: 'A.b-9_' }, output: { said: 'hello', session: 'A.b-9_' } },
    {
      why: 'with unusual text',
      input: { name: 'test.echo', input: { what: '日本語 "\\u0041"\n\0${{ inputs.x }} \u{10ffff}' } },
      output: { said: '日本語 "\\u0041"\n\0${{ inputs.x }} \u{10ffff}', session: 'none' },
    },
  ])('$why, and records the caller (R-PACK-06, R-OPS-01)', async ({ input, output }) => {
    const { author, ask } = at(name);
    const session = 'session' in input ? { session_id: input.session } : {};
    const result = { pack: 'test.echo', version: '1.0.0', output, cached: false, duration_ms: 0, ...session };
    expect(await ask('runPack', input)).toEqual({ answer: result });
    const { runs, facts, activity } = await world.state();
    // The expected record assumes an empty memory.
    expect({ facts, activity }).toMatchObject({ facts: [], activity: [{ value: '{"operation":"forget","scope":"all"}' }] });
    expect(runs).toMatchObject([{ author, category: 'pack_history' }]);
    expect(JSON.parse(runs[0]?.value ?? '')).toEqual({
      pack: 'test.echo',
      version: '1.0.0',
      outcome: 'ok',
      at_unix: Math.floor(world.clock.now() / 1000),
      duration_ms: 0,
    });
  });

  test.each([
    ['a pack that failed', { name: 'test.fails' }, 'handler_failed', /^The pack failed with an unexpected error/],
    [
      'a pack with an invalid output',
      { name: 'test.wrong' },
      'invalid_output',
      /^test\.wrong returned output that does not match/,
    ],
  ])('reports %s and records the run (R-PACK-06, R-PACK-08)', async (_what, input, code, says) => {
    const { author, ask } = at(name);
    expect(await ask('runPack', input)).toEqual({ refused: { code, message: expect.stringMatching(says) as string } });
    const { runs } = await world.state();
    expect(runs).toMatchObject([{ author }]);
    expect(JSON.parse(runs[0]?.value ?? '')).toMatchObject({ outcome: code });
  });

  test('returns a result cached by another wire, marked as cached (R-PACK-05)', async () => {
    const asked = { name: 'test.cached', input: { what: name } };
    const next = RUNNERS[(RUNNERS.indexOf(name) + 1) % RUNNERS.length] ?? name;
    expect(await answer(name, 'runPack', asked)).toMatchObject({ cached: false });
    expect(await answer(next, 'runPack', asked)).toMatchObject({
      cached: true,
      cached_until: new Date(world.clock.now() + MINUTE).toISOString(),
      output: { said: name },
    });
  });

  test('shares a session with every other wire of its subject, and ends it for all (R-PACK-07)', async () => {
    const id = `shared-${RUNNERS.indexOf(name)}`;
    const note = (what: string) => ({ name: 'test.notes', input: { what }, session: id });
    const enders = speaking('endSession', { id });
    const ender = enders.includes(name) ? name : 'REST';
    // Only the client that started a session may end it.
    expect(await answer(ender, 'runPack', note('nothing'))).toMatchObject({ output: { said: '' } });
    expect(await answer(name, 'runPack', note('a'))).toMatchObject({ output: { said: 'a' } });
    for (const other of RUNNERS) {
      expect(await answer(other, 'runPack', note('nothing')), other).toMatchObject({ output: { said: 'a' } });
    }
    expect(await answer(name, 'runPack', { name: 'test.notes' })).toMatchObject({ output: { said: '' } });
    expect(await answer(ender, 'endSession', { id })).toEqual({ session_id: id, deleted: 1 });
    expect(await answer(name, 'runPack', note('nothing'))).toMatchObject({ output: { said: '' } });
  });
});

test('the catalogue is the same everywhere (R-OPS-01)', async () => {
  await answer('MCP SSE', 'runPack', aRun);
  for (const [operation, input] of [
    ['packs', {}],
    ['pack', { name: 'test.echo' }],
    ['pipelines', {}],
    ['pipelineRuns', {}],
  ] as const) {
    const wanted = await answer('in process', operation, input);
    const speakers = speaking(operation, input);
    expect(speakers.length, operation).toBeGreaterThan(2);
    for (const name of speakers) expect(await answer(name, operation, input), `${operation} by ${name}`).toEqual(wanted);
  }
});

test('each client sees the defaults of its own runs, and only the owner those of all (R-VIEW-02)', async () => {
  const speakers = speaking('myDefaults', {});
  expect(speakers.length).toBeGreaterThan(2);
  await answer('MCP SSE', 'runPack', aRun);
  const seen = await Promise.all(
    speakers.map(async (name) => ({ name, packs: (await answer(name, 'myDefaults', {}))['packs'] })),
  );
  const sees = seen.filter(({ packs }) => (packs as unknown[]).length > 0).map(({ name }) => name);
  expect(sees).toEqual(speakers.filter((name) => name === 'MCP SSE' || WIRES[name].owner));
});

const NAME = /^name must be a group and a name, separated by a dot/;
const NO_INPUT = /^input must be a JSON object; send .*; if the field is optional, leave it out instead of sending null\.$/;
const INPUT = /^input must be a JSON object; send \{\} if the pack needs no input\.$/;

const refusals: readonly (readonly [why: string, operation: string, input: unknown, code: string, says: RegExp])[] = [
  ['an unknown pack', 'runPack', { name: 'no.such' }, 'not_found', /^There is no such pack; list the packs/],
  ['a pack by another letter case', 'runPack', { name: 'test.Echo' }, 'invalid_input', NAME],
  ['a pack by the name of its tool', 'runPack', { name: 'test_echo' }, 'invalid_input', NAME],
  ['a path for a pack', 'runPack', { name: '../test.echo' }, 'invalid_input', NAME],
  ['a pack with a slash', 'runPack', { name: 'test/echo' }, 'invalid_input', NAME],
  ['a pack encoded', 'runPack', { name: 'test%2Eecho' }, 'invalid_input', NAME],
  ['a pack with a lookalike letter', 'runPack', { name: 'test.e\u0441ho' }, 'invalid_input', NAME],
  ['a pack with a full-width dot', 'runPack', { name: 'test\uff0eecho' }, 'invalid_input', NAME],
  ['a pack with a line feed', 'runPack', { name: 'test.echo\n' }, 'invalid_input', NAME],
  ['a pack with a NUL', 'runPack', { name: 'test.echo\0' }, 'invalid_input', NAME],
  ['the name of a property', 'runPack', { name: '__proto__' }, 'invalid_input', NAME],
  ['10,000 characters', 'runPack', { name: `test.${'e'.repeat(10_000)}` }, 'invalid_input', NAME],
  ['a list for an input', 'runPack', { name: 'test.echo', input: [] }, 'invalid_input', INPUT],
  ['a text for an input', 'runPack', { name: 'test.echo', input: 'hello' }, 'invalid_input', INPUT],
  ['null for an input', 'runPack', { name: 'test.echo', input: null }, 'invalid_input', NO_INPUT],
  ['an invalid input', 'runPack', { name: 'test.echo', input: { what: 7 } }, 'invalid_input', /^what /],
  ['a field unknown to the pack', 'runPack', { name: 'test.echo', input: { how: 'x' } }, 'invalid_input', /how/],
  ...(
    [
      ['a session with a colon', 'a:b'],
      ['a blank session', ''],
      ['a session with ..', '../a'],
      ['a session with a slash', 'a/b'],
      ['a session that begins with a dot', '.a'],
      ['a session with a line feed', 'a\n'],
      ['a session with a NUL', 'a\0b'],
      ['a session in another script', 'сессия'],
      ['a session like a pattern', '%'],
      ['a session of 65 characters', 'x'.repeat(65)],
      ['a number for a session', 7],
      ['a list for a session', ['a']],
      ['an object for a session', { toString: 'a' }],
      ['null for a session', null],
    ] as const
  ).flatMap(([why, session]) => [
    [why, 'runPack', { ...aRun, session }, 'invalid_input', /^session must /] as const,
    ...(typeof session === 'string'
      ? [[`${why}, to end it`, 'endSession', { id: session }, 'invalid_input', /^id must /] as const]
      : []),
  ]),
  ['a subject field', 'runPack', { ...aRun, subject: 'you' }, 'invalid_input', /unknown field/],
  ['an unknown pack, to show', 'pack', { name: 'no.such' }, 'not_found', /^There is no such pack/],
  ['an invalid name, to show', 'pack', { name: '..' }, 'invalid_input', NAME],
  ['a session of another subject', 'endSession', { id: 'a', subject: 'you' }, 'invalid_input', /unknown field/],
];

const sayable = (name: Name) => refusals.filter(([, operation, input]) => WIRES[name].can(operation, input));

describe.each(NAMES.filter((name) => sayable(name).length > 0))('%s refuses with the same message, and nothing runs', (name) => {
  const table = sayable(name);

  test.each(table)('%s', async (_why, operation, input, code, says) => {
    const before = await world.state();
    const wanted = await at('in process').ask(operation, input);
    expect(wanted.refused).toMatchObject({ code, message: expect.stringMatching(says) as string });
    const outcome = await at(name).ask(operation, input);
    const told = (one: typeof outcome) => one.refused?.message.replace(/; send (?:only|it with) .*\.$/, '');
    expect({ code: outcome.refused?.code, message: told(outcome) }).toEqual({ code, message: told(wanted) });
    expect(await world.state()).toEqual(before);
  });
});

test('several wires make each of these refusals', () => {
  const rare = refusals.filter(([, operation, input]) => speaking(operation, input).length < 2);
  expect(rare).toEqual([]);
});

describe('a token', () => {
  test.each([
    ['runPack', aRun],
    ['runPack', { name: 'no.such', input: 7 }],
    ['endSession', { id: 'a' }],
    ['endSession', { id: '' }],
    ['createPipeline', { id: 'p', steps: [] }],
    ['runPipeline', { id: 'p' }],
    ['deletePipeline', { id: 'p' }],
  ])('without packs:run is refused everywhere before the input is checked: %s (R-OPS-11)', async (operation, input) => {
    const limited = await world.surfaces({ scopes: ['memory:read', 'memory:write'] });
    for (const { name, ask } of limited.values()) {
      if (!WIRES[name].can(operation, input)) continue;
      expect(await ask(operation, input), name).toEqual({
        refused: {
          code: 'insufficient_scope',
          message: 'This operation needs a token with the scope packs:run; ask the owner of this memory for one.',
        },
      });
    }
    expect((await world.state()).runs).toEqual([]);
  });

  test.each([
    ['helmdeck.memory_forget', { scope: 'all' }],
    ['helmdeck.memory_store', { key: 'planted', value: 'v' }],
  ])('needs the same scope for %s as a pack and as a tool (R-OPS-11)', async (pack, input) => {
    await answer('REST', 'remember', { key: 'there', value: 'v' });
    const before = await world.state();
    const limited = await world.surfaces({ scopes: ['memory:read', 'packs:run'] });
    const refused = { code: 'insufficient_scope', message: expect.stringMatching(/memory:write/) as string };
    for (const { name, ask } of limited.values()) {
      if (!WIRES[name].can('runPack', { name: pack, input })) continue;
      expect(await ask('runPack', { name: pack, input }), name).toEqual({ refused });
    }
    // A pipeline does not extend the rights either.
    const step = { id: 'one', pack, input };
    await answer('REST', 'createPipeline', { id: 'sneaky', steps: [step] }, limited);
    const { run_id: id } = await answer('REST', 'runPipeline', { id: 'sneaky' }, limited);
    const shown = () => answer('REST', 'pipelineRun', { run_id: id }, limited);
    await expect.poll(shown).toMatchObject({ status: 'failed', failure: { error: 'insufficient_scope' } });
    const { facts } = await world.state();
    expect(facts).toEqual(before.facts);
  });
});

describe('one subject', () => {
  test.each(RUNNERS.filter((name) => !WIRES[name].owner))(
    'by %s can neither read nor end a session of another subject, with any id (R-ISO-03, R-ISO-04)',
    async (name) => {
      const others = await world.surfaces({ subject: 'you' });
      const note = (what: string, session: string) => ({ name: 'test.notes', input: { what }, session });
      const ender = WIRES[name].can('endSession', { id: 'a-1' }) ? name : 'REST';
      await answer('REST', 'runPack', note('mine', 'a-1'));
      // Only the client that started a session may end it.
      await answer(ender, 'runPack', note('nothing', 'a-1'), others);
      expect(await answer(name, 'runPack', note('nothing', 'a-1'), others)).toMatchObject({ output: { said: '' } });
      await answer(name, 'runPack', note('theirs', 'a-1'), others);
      expect(await answer(ender, 'endSession', { id: 'a-1' }, others)).toEqual({ session_id: 'a-1', deleted: 1 });
      expect(await answer('REST', 'runPack', note('nothing', 'a-1'))).toMatchObject({ output: { said: 'mine' } });
      expect((await world.state('you')).runs).toHaveLength(3);
      expect((await world.state()).runs).toHaveLength(2);
      await answer('REST', 'endSession', { id: 'a-1' });
      await at(name, others).ask('forget', { scope: 'all' });
    },
  );

  test('does not get a cached result of another subject (R-PACK-03)', async () => {
    const asked = { name: 'test.cached', input: { what: 'the same' } };
    const others = await world.surfaces({ subject: 'you' });
    await answer('REST', 'runPack', asked);
    for (const name of others.keys()) {
      if (!WIRES[name].can('runPack', asked)) continue;
      await at(name, others).ask('forget', { scope: 'all' });
      expect(await answer(name, 'runPack', asked, others), name).toMatchObject({ cached: false });
      if (WIRES[name].can('forget', { scope: 'all' })) await answer(name, 'forget', { scope: 'all' }, others);
    }
  });
});

describe('a fact', () => {
  const digest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

  test.each(speaking('remember', { key: 'k', value: 'v' }))(
    'by %s is never used as a cached result or a record of a run (R-PACK-03, R-PACK-06)',
    async (name) => {
      const row = { pack: 'test.echo', version: '1.0.0', outcome: 'ok', at_unix: 1, duration_ms: 1 };
      for (const [key, category, value] of [
        [`test.cached/${digest}`, 'answers', { output: { said: 'planted' } }],
        ['pack-history/test.echo/00000000000000000001', 'pack-history', row],
        ['x/pack_history/test.echo/00000000000000000001', 'pack_history.x', row],
        ['pipelines/p', 'pipeline.definition', { id: 'p', steps: [{ id: 'a', pack: 'test.echo', input: {} }] }],
      ] as const) {
        await answer(name, 'remember', { key, category, value: JSON.stringify(value) });
      }
      const refused = await at(name).ask('remember', { key: 'pack_history/test.echo/1', value: JSON.stringify(row) });
      expect(refused).toHaveProperty('refused');
      expect(await answer('REST', 'runPack', { name: 'test.cached', input: { what: 'x' } })).toMatchObject({ cached: false });
      expect(await answer('REST', 'myDefaults', {})).toMatchObject({ packs: [{ id: 'test.cached', calls: 1 }] });
      expect((await world.state()).runs).toHaveLength(1);
      expect(await at('REST').ask('pipeline', { id: 'p' })).toMatchObject({ refused: { code: 'not_found' } });
      const { token } = await world.tokens.mint({ name: 't', client: 's', subject: 'me', scopes: ['memory:read'], days: 1 });
      const { query, close } = await searcher(world.url, token);
      const { results } = await query({ query: 'test echo planted' });
      await close();
      const headings = results.filter(({ snippet }) => snippet.startsWith('## Pack call:'));
      expect(headings.map(({ file }) => file)).toEqual(['audit/pack/test.cached']);
    },
  );
});

test('a pack always runs in the memory of the subject of the token (R-ISO-02)', async () => {
  const { token } = await world.tokens.mint({ name: 't', client: 'c', subject: 'you', scopes: ['packs:run'], days: 1 });
  const path = '/api/v1/packs/test.echo';
  for (const [headers, more] of [
    [['X-Subject', 'me'], ''],
    [['X-Helmdeck-Session', 'a-1'], ''],
  ] as const) {
    const answered = await request(world.url, path + more, { token, headers, body: {} });
    expect(answered.json).toMatchObject({ output: { said: 'nothing', session: 'none' } });
  }
  expect((await world.state()).runs).toEqual([]);
  expect((await world.state('you')).runs.length).toBeGreaterThanOrEqual(2);
});
