import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operations } from '../../src/contract/operations.ts';
import { receiptOf } from '../../src/core/operations/activity.ts';
import { isOnServer } from '../support/chosen-store.ts';
import { sendRequest as request } from '../support/listener.ts';
import { type Refusal, TABLE } from './refusals.ts';
import { type Name, NAMES, type Outcome, WIRES } from './wires.ts';
import { openWorld, type Surface, type World } from './world.ts';

let world: World;
let surfaces: ReadonlyMap<Name, Surface>;

beforeAll(async () => {
  world = await openWorld();
  surfaces = await world.surfaces();
  const { ask } = at('in process');
  await ask('remember', { key: 'there', value: 'first', tags: ['t'] });
  await ask('remember', { key: 'there', value: 'second', tags: ['t'] });
});
afterAll(() => world[Symbol.asyncDispose]());

/** Some wires are read-only. */
const WRITERS = NAMES.filter((name) => WIRES[name].can('remember', { key: 'k', value: 'v' }));
const writing = (all: ReadonlyMap<Name, Surface>): Surface[] => [...all.values()].filter(({ name }) => WRITERS.includes(name));

function at(name: Name, among = surfaces): Surface {
  const surface = among.get(name);
  if (!surface) throw new Error(`${name} is not open.`);
  return surface;
}

/** The message without the list of fields, which differs between wires. */
function told({ refused }: Outcome, { lists }: Pick<Refusal, 'lists'> = {}): Outcome['refused'] {
  return refused && lists ? { ...refused, message: refused.message.replace(/; send (?:only|it with) .*\.$/, '') } : refused;
}

/** An error in a line of an import has no code, because the import as a whole succeeded. */
function expectAlike(name: Name, outcome: Outcome, wanted: Outcome, refusal: Pick<Refusal, 'lists'> = {}): void {
  const { code, message = '' } = told(wanted, refusal) ?? {};
  expect(told(outcome, refusal), name).toEqual(name === 'a line of an import' ? { message } : { code, message });
}

const OPTION = /^--[a-z-]+ must be (?:between|a whole number) /;

/** The command line describes its options in its own units, such as 30m. */
const namesAnOption = (name: Name, { refused }: Outcome): boolean =>
  name === 'the command line' && refused?.code === 'invalid_input' && OPTION.test(refused.message);

const GROUPS = Object.keys(TABLE) as (keyof typeof TABLE)[];
const title: Readonly<Record<keyof typeof TABLE, string>> = {
  keys: 'a key (R-FACT-01, R-FACT-02, R-FACT-03, R-FACT-04, R-FACT-11)',
  values: 'a value (R-FACT-05, R-FACT-11)',
  categories: 'a category (R-FACT-06, R-FACT-07)',
  tags: 'tags (R-FACT-08)',
  lifetimes: 'a lifetime (R-FACT-09)',
  wholes: 'what it does not know (R-FACT-10, R-ISO-02)',
  secrets: 'credentials (R-FACT-18)',
  others: 'what asks for something else than there is (R-OPS-03, R-OPS-05, R-REST-06, R-REST-07)',
  questions: 'a question of a program that only searches (R-QMD-02)',
  scopes: 'a scope that is none (R-FORGET-01, R-FORGET-03)',
};

/** The groups of the table, limited to inputs that this wire can express. */
const sayable = (name: Name): { title: string; table: Refusal[] }[] =>
  GROUPS.map((group) => ({
    title: title[group],
    table: TABLE[group].filter(({ operation, input }) => WIRES[name].can(operation, input)),
  })).filter(({ table }) => table.length > 0);

describe.each(NAMES)('%s refuses like every other wire and changes nothing', (name) => {
  describe.each(sayable(name))('$title', ({ table }) => {
    test.each(table)('$why', async (refusal) => {
      const { operation, input, code, says } = refusal;
      const before = await world.state();
      const outcome = await at(name).ask(operation, input);
      const wanted = await at('in process').ask(operation, input);
      expect(wanted.refused).toMatchObject({ code });
      expect(outcome.refused?.message).toMatch(namesAnOption(name, outcome) ? OPTION : says);
      expectAlike(name, namesAnOption(name, outcome) ? wanted : outcome, wanted, refusal);
      expect(await world.state()).toEqual(before);
    });
  });
});

test('several wires make every refusal, and every wire makes many', () => {
  const all = Object.values(TABLE).flat();
  const said = (names: readonly Name[]) =>
    names.map((name) => all.filter(({ operation, input }) => WIRES[name].can(operation, input)).length);
  expect(Math.min(...said(WRITERS))).toBeGreaterThan(60);
  expect(Math.min(...said(NAMES))).toBeGreaterThan(20);
  const rare = all.filter(({ operation, input }) => NAMES.filter((name) => WIRES[name].can(operation, input)).length < 2);
  expect(rare).toEqual([]);
});

test('the owner gets the same refusals in the window and on the owner route (R-WIN-05)', async () => {
  const before = await world.state();
  for (const operation of Object.keys(operations)) {
    for (const input of [{ nonsense: true }, [], 'x', null, 7]) {
      // Search clients send additional fields.
      if (operation === 'query' && 'nonsense' in Object(input)) continue;
      const wanted = await at('the owner route').ask(operation, input);
      const what = `${operation} ${JSON.stringify(input)}`;
      expect(wanted.refused, what).toMatchObject({ code: 'invalid_input' });
      expect(await at('the window').ask(operation, input), what).toEqual(wanted);
    }
  }
  expect(await world.state()).toEqual(before);
});

describe('a token without the scope (R-OPS-11)', () => {
  const wrong = [
    ['remember', { key: 7 }],
    ['remember', { key: 'k', value: 'v' }],
    ['patch', { nonsense: true }],
    ['forget', { scope: 'all' }],
    ['recall', { key: 'there' }],
    ['recall', { key: '' }],
    ['history', { key: 'there' }],
    ['search', { query: '' }],
    ['query', { query: 'second' }],
    ['query', { query: 7 }],
    ['list', { prefix: '' }],
    ['undo', { client: 'x' }],
    ['activity', {}],
    ['export', {}],
  ] as const;
  const reads = new Set(['recall', 'history', 'search', 'query', 'list', 'activity', 'export']);

  test.each([
    { may: ['memory:read'] as const, refused: (operation: string) => !reads.has(operation) },
    { may: ['memory:write'] as const, refused: (operation: string) => reads.has(operation) },
    { may: ['packs:run'] as const, refused: () => true },
  ])('$may is refused on every wire before the input is checked', async ({ may, refused }) => {
    // An MCP session of a token that can read begins with a brief, which leaves a row.
    const state = async () => {
      const { activity, ...kept } = await world.state();
      return { ...kept, activity: activity.filter((row) => receiptOf(row) === undefined) };
    };
    const before = await state();
    const limited = await world.surfaces({ scopes: may });
    for (const [operation, input] of wrong.filter(([one]) => refused(one))) {
      const scope = reads.has(operation) ? 'memory:read' : 'memory:write';
      for (const surface of limited.values()) {
        if (!WIRES[surface.name].can(operation, input)) continue;
        expect(await surface.ask(operation, input), `${surface.name}: ${operation}`).toEqual({
          refused: {
            code: 'insufficient_scope',
            message: `This operation needs a token with the scope ${scope}; ask the owner of this memory for one.`,
          },
        });
      }
    }
    expect(await state()).toEqual(before);
  });
});

describe('limits', () => {
  const more = { key: 'one more', value: 'v' };

  test.each([
    { what: 'facts', quota: { facts: 3, bytes: 1_000_000 }, says: /^This memory has reached its limit of 3 facts\. Forget/ },
    {
      what: 'bytes',
      quota: { facts: 99, bytes: 900 },
      says: /^This memory has reached its limit of 900 bytes, including earlier versions/,
    },
  ])(
    'an exceeded quota of $what has the same message everywhere, and affects no other subject (R-FACT-16)',
    async ({ quota, says }) => {
      await using small = await openWorld({ quota });
      const all = await small.surfaces();
      const fill = at('REST', all);
      for (let n = 1; n <= 3; n += 1)
        expect(await fill.ask('remember', { key: `k${n}`, value: 'v'.repeat(150) })).toHaveProperty('answer');
      const before = await small.state();
      const wanted = await at('in process', all).ask('remember', { ...more, value: 'v'.repeat(300) });
      expect(wanted.refused).toMatchObject({ code: 'quota_exceeded', message: expect.stringMatching(says) as string });
      for (const { name, ask } of writing(all)) {
        const outcome = await ask('remember', { ...more, value: 'v'.repeat(300) });
        expectAlike(name, outcome, wanted);
      }
      expect(await small.state()).toEqual(before);
      for (const { name, ask } of writing(await small.surfaces({ subject: 'other' }))) {
        expect(await ask('remember', { ...more, value: 'v' }), name).toHaveProperty('answer');
      }
    },
  );

  test('an exceeded write limit too; it applies per token (R-FACT-17)', async () => {
    await using slow = await openWorld({ writesPerMinute: 2 });
    const all = await slow.surfaces();
    for (const { name, ask } of writing(all)) {
      // The window and the owner route share the owner's limit.
      if (name === 'the command line') continue;
      for (const turn of [1, 2])
        expect(await ask('remember', { ...more, key: `${name} ${turn}` }), name).toHaveProperty('answer');
    }
    const before = await slow.state();
    for (const { name, ask } of writing(all)) {
      expect(await ask('remember', more), name).toEqual({
        refused: {
          code: 'rate_limited',
          message: 'This token has reached its limit of 2 writes a minute (HELMDECK_WRITES_PER_MINUTE); try again in 60 s.',
        },
      });
    }
    expect(await slow.state()).toEqual(before);
    await slow.clock.advance(60_000);
    for (const { name, ask } of writing(all)) {
      expect(await ask('remember', { ...more, value: name }), name).toHaveProperty('answer');
    }
  });
});

describe('a locked memory', () => {
  const questions = [
    ['remember', { key: 'k', value: 'v' }],
    ['recall', { key: 'there' }],
    ['history', { key: 'there' }],
    ['patch', { key: 'there', ttl_seconds: 3600 }],
    ['search', { query: 'second' }],
    ['query', { query: 'second' }],
    ['list', {}],
    ['myMemory', {}],
    ['context', {}],
    ['forget', { scope: 'key:there' }],
    ['forget', { scope: 'tag:t' }],
  ] as const;

  test('has the same message everywhere, and scopes without key can still be forgotten (R-KEY-04, R-FORGET-11)', async () => {
    await using locked = await openWorld();
    const all = await locked.surfaces();
    await at('REST', all).ask('remember', { key: 'there', value: 'second', tags: ['t'] });
    const before = await locked.state();
    // Open sessions are refused as well.
    for (const { name, ask } of all.values()) if (WIRES[name].transport === 'qmd') await ask('query', {});
    locked.store.lock();
    for (const [operation, input] of questions) {
      const wanted = await at('in process', all).ask(operation, input);
      expect(wanted.refused).toMatchObject({ code: 'key_unavailable' });
      for (const { name, ask } of all.values()) {
        if (!WIRES[name].can(operation, input)) continue;
        const outcome = await ask(operation, input).catch(asResource);
        expect(outcome, `${name}: ${operation}`).toEqual(WIRES[name].transport === 'qmd' ? unsearchable : wanted);
      }
    }
    for (const { name, ask } of all.values()) {
      if (!WIRES[name].can('forget', {})) continue;
      expect(await ask('forget', { scope: 'category:nothing' }), name).toMatchObject({
        answer: { deleted: 0, purged: !isOnServer },
      });
    }
    await locked.store.unlock();
    expect((await locked.state()).facts).toEqual(before.facts);
  });

  test('has a complete message for search clients (R-QMD-01)', async () => {
    await using locked = await openWorld();
    const { token } = await locked.tokens.mint({ name: 'q', client: 'q', subject: 'me', scopes: ['memory:read'], days: 1 });
    locked.store.lock();
    const { json } = await request(locked.url, '/api/v1/mcp/qmd', { token, body: {} });
    expect(json.message).toMatch(
      /^The memory cannot be searched now\. [A-Z].*the owner locked it\. Unlock the memory in the window/,
    );
  });
});

/** A search client falls back to its own memory, so it gets the reason and the remedy (R-QMD-01). */
const unsearchable: Outcome = {
  refused: {
    code: 'qmd_unavailable',
    message: expect.stringMatching(
      /^The memory cannot be searched now\. .* Unlock the memory in the window, or with: /,
    ) as string,
  },
};

/** A resource that cannot be read is a JSON-RPC error (R-ERR-01). */
function asResource(error: unknown): Outcome {
  const { code, message, data } = error as { code: number; message: string; data: { error: string } };
  expect(code).toBe(-32603);
  return { refused: { code: data.error, message: message.replace(/^MCP error -32603: /, '') } };
}
