import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Activity } from '../../../src/contract/history.ts';
import type { OperationOutput } from '../../../src/contract/operations.ts';
import { createCore } from '../../../src/core/operations/create-core.ts';
import { Finder } from '../../../src/core/search/finder.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../../support/clock.ts';
import { aCaller, openTestMemory, type TestMemory, theOwner } from '../../support/memory.ts';

const codex = aCaller({ client: 'codex', token: 'token-2' });
const claude = aCaller({ transport: 'rest' });
const SILENT = { text: '', keys: [] };

type Options = { readonly bytes?: number; readonly receipts?: boolean };

/** Opens the same memory in another process, which begins with empty RAM. */
function restarted(memory: TestMemory, { bytes = 1000, receipts = true }: Options = {}): TestMemory {
  const { store, tokens, clock } = memory;
  const core = createCore({ store, tokens, clock, finder: new Finder(store), brief: { bytes, receipts } });
  onTestFinished(() => core[Symbol.dispose]());
  return { ...memory, perform: core.perform, as: (caller) => (name, input) => core.perform(caller, name, input) };
}

const rowsOf = async ({ as }: TestMemory): Promise<Activity['activity']> => {
  const { activity } = await as(theOwner)('activity', { limit: 200 });
  return activity.filter(({ operation }) => operation === 'brief');
};

/** Rows are written after the answer. */
const eventualRows = (memory: TestMemory, count: number): Promise<Activity['activity']> =>
  vi.waitFor(async () => {
    const rows = await rowsOf(memory);
    expect(rows).toHaveLength(count);
    return rows;
  });

const DEPLOY = 'Deploy the website to the server, please';

/** A memory with a fact for prompts and one for the start of a session. */
async function opened(): Promise<TestMemory> {
  const memory = await openTestMemory();
  await memory.as(codex)('remember', {
    key: 'deploy/host',
    value: 'Deploy the website to the server Zephyr.',
    tags: ['project:x'],
  });
  await memory.as(codex)('remember', { key: 'preferences/editor', value: 'Helix', category: 'preferences' });
  return memory;
}

describe('a session is told a fact once (R-BRIEF-07)', () => {
  test('unless the fact changes, or another session asks', async () => {
    const { as, clock } = await opened();
    const ask = (session: string, prompt?: string) => as(claude)('brief', { session, ...(prompt !== undefined && { prompt }) });
    expect((await ask('one')).keys).toEqual(['preferences/editor']);
    expect((await ask('one', DEPLOY)).keys).toEqual(['deploy/host']);
    expect(await ask('one', `${DEPLOY}!`)).toEqual(SILENT);
    expect((await ask('two', DEPLOY)).keys).toEqual(['deploy/host']);
    expect((await as({ ...claude, client: 'gemini' })('brief', { session: 'one', prompt: DEPLOY })).keys).toEqual([
      'deploy/host',
    ]);
    await clock.advance(SECOND);
    await as(codex)('remember', { key: 'deploy/host', value: 'Deploy the website to the server Boreas.' });
    expect((await ask('one', `${DEPLOY}?`)).text).toContain('Boreas');
    expect(await ask('one')).toEqual(SILENT);
  });

  test('and at the next start only what is new since, as after a resume', async () => {
    const { as, clock } = await openTestMemory();
    for (let n = 0; n < 30; n += 1)
      await as(codex)('remember', { key: `conventions/${n}`, value: 'v'.repeat(99), category: 'conventions' });
    expect((await as(claude)('brief', { session: 's' })).keys.length).toBeGreaterThan(3);
    expect(await as(claude)('brief', { session: 's' })).toEqual(SILENT);
    await clock.advance(HOUR);
    await as(codex)('remember', { key: 'preferences/shell', value: 'fish', category: 'preferences' });
    expect((await as(claude)('brief', { session: 's' })).keys).toEqual(['preferences/shell']);
  });

  test.each([
    { why: 'the start of a session', input: {} },
    { why: 'a prompt', input: { prompt: DEPLOY } },
    { why: 'a session that lost its context', input: { repeat: true } },
  ])('of two hooks that ask at once about $why, one is told', async ({ input }) => {
    const { as } = await opened();
    const asked = [1, 2, 3, 4].map(() => as(claude)('brief', { session: 's', folder: '/home/ada/x', ...input }));
    const answers = await Promise.all(asked);
    expect(answers.filter(({ text }) => text !== '')).toHaveLength(1);
    const silent = answers.filter(({ text }) => text === '');
    expect(silent).toEqual([SILENT, SILENT, SILENT]);
  });

  test('also after a restart of the program', async () => {
    const memory = await opened();
    await memory.as(claude)('brief', { session: 's' });
    await memory.as(claude)('brief', { session: 's', prompt: DEPLOY });
    await eventualRows(memory, 2);
    const { as } = restarted(memory);
    expect(await as(claude)('brief', { session: 's', prompt: DEPLOY })).toEqual(SILENT);
    expect(await as(claude)('brief', { session: 's' })).toEqual(SILENT);
    expect((await as(claude)('brief', { session: 't' })).keys).toEqual(['preferences/editor']);
  });

  test('a hook that gave up was told nothing', async () => {
    const { as, perform } = await opened();
    const gone = perform(claude, 'brief', { session: 's' }, { signal: AbortSignal.abort() });
    await expect(gone).rejects.toMatchObject({ code: 'cancelled' });
    expect((await as(claude)('brief', { session: 's' })).keys).toEqual(['preferences/editor']);
  });

  test('and nothing of it stays in RAM while the memory is locked', async () => {
    const memory = await opened();
    await memory.as(claude)('brief', { session: 's' });
    await eventualRows(memory, 1);
    memory.store.lock();
    await expect(memory.as(claude)('brief', { session: 's' })).rejects.toMatchObject({ code: 'key_unavailable' });
    await memory.store.unlock();
    expect(await memory.as(claude)('brief', { session: 's' })).toEqual(SILENT);
  });
});

describe('a session that lost its context is told again (R-BRIEF-07)', () => {
  test('first what it was told, last told first, then the brief for a start', async () => {
    const { as, clock } = await opened();
    await as(claude)('brief', { session: 's' });
    await as(claude)('brief', { session: 's', prompt: DEPLOY });
    await clock.advance(MINUTE);
    await as(codex)('remember', { key: 'conventions/new', value: 'v', category: 'conventions' });
    const repeated = await as(claude)('brief', { session: 's', repeat: true, folder: '/x/shop' });
    expect(repeated.keys).toEqual(['deploy/host', 'preferences/editor', 'conventions/new']);
    expect(repeated.text).toMatch(/Tag facts about this repository project:shop\.$/);
    expect(await as(claude)('brief', { session: 's', prompt: DEPLOY })).toEqual(SILENT);
    await clock.advance(MINUTE);
    expect((await as(claude)('brief', { session: 's', repeat: true })).keys).toEqual(
      repeated.keys.toSorted((one, other) => order(one, other, repeated)),
    );
  });

  test('not about facts that were forgotten, and counted from the last time after a restart', async () => {
    const memory = await opened();
    const { as, clock } = memory;
    await as(claude)('brief', { session: 's' });
    await as(claude)('brief', { session: 's', prompt: DEPLOY });
    await as(theOwner)('forget', { scope: 'key:deploy/host' });
    await clock.advance(SECOND);
    expect((await as(claude)('brief', { session: 's', repeat: true })).keys).toEqual(['preferences/editor']);
    await as(codex)('remember', { key: 'deploy/host', value: 'Deploy the website to the server Zephyr.' });
    await eventualRows(memory, 3);
    const again = restarted(memory).as(claude);
    expect((await again('brief', { session: 's', prompt: DEPLOY })).keys).toEqual(['deploy/host']);
    expect(await again('brief', { session: 's' })).toEqual(SILENT);
  });

  test('at each turn, if the client keeps no brief, and it is counted once', async () => {
    const memory = await opened();
    const turn = (prompt: string) => memory.as(claude)('brief', { session: 's', prompt, repeat: true });
    for (const prompt of [DEPLOY, DEPLOY, 'Thanks!']) {
      const expected = prompt === DEPLOY ? ['deploy/host', 'preferences/editor'] : ['preferences/editor'];
      expect((await turn(prompt)).keys).toEqual(expected);
    }
    expect((await memory.as(claude)('brief', { session: 's', prompt: DEPLOY })).keys).toEqual(['deploy/host']);
    const rows = await eventualRows(memory, 2);
    expect(rows).toMatchObject([
      { moment: 'prompt', keys: ['deploy/host'] },
      { moment: 'turn', keys: ['deploy/host', 'preferences/editor'] },
    ]);
  });
});

test('a turn has the brief of the session and the brief of the prompt under one header, each within its limit (R-BRIEF-01)', async () => {
  const { as } = await opened();
  for (let n = 0; n < 30; n += 1)
    await as(codex)('remember', { key: `conventions/${n}`, value: 'v'.repeat(99), category: 'conventions' });
  const [start, prompt, turn] = await Promise.all([
    as(claude)('brief', { session: 'a' }),
    as(claude)('brief', { session: 'b', prompt: DEPLOY }),
    as(claude)('brief', { session: 'c', prompt: DEPLOY, repeat: true }),
  ]);
  expect(prompt.keys).toEqual(['deploy/host']);
  expect(turn.keys).toEqual([...prompt.keys, ...start.keys]);
  expect(turn.text.split('From Helmdeck Memory')).toHaveLength(2);
  expect(Buffer.byteLength(turn.text)).toBeLessThan(2000);
});

/** After a repetition, all facts were told at once, so they come last first. */
const order = (one: string, other: string, { keys }: OperationOutput<'brief'>): number => keys.indexOf(other) - keys.indexOf(one);

describe('receipts (R-BRIEF-08)', () => {
  test('say what was put before which agent, and nothing about empty briefs', async () => {
    const memory = await opened();
    await memory.as(claude)('brief', { session: 'my session' });
    await memory.as(claude)('brief', { session: 'my session', prompt: 'What is 3 plus 4?' });
    await memory.as(claude)('brief', { prompt: DEPLOY });
    const rows = await eventualRows(memory, 2);
    expect(rows).toEqual([
      {
        id: expect.any(String),
        at: expect.any(String),
        operation: 'brief',
        client: 'claude-code',
        keys: ['deploy/host'],
        moment: 'prompt',
      },
      {
        id: expect.any(String),
        at: expect.any(String),
        operation: 'brief',
        client: 'claude-code',
        keys: ['preferences/editor'],
        moment: 'start',
        session: expect.stringMatching(/^[0-9a-f]{8}$/),
      },
    ]);
  });

  test('count in the answer to a recall, for 30 days, from the creation of the fact', async () => {
    const memory = await opened();
    const { as, clock, store } = memory;
    const shown = async (key: string) => (await as(codex)('recall', { key })).shown;
    expect(await shown('preferences/editor')).toBeUndefined();
    await as(claude)('brief', { session: 'one' });
    await clock.advance(20 * DAY);
    await as({ ...codex, client: 'gemini' })('brief', { session: 'two' });
    await eventualRows(memory, 2);
    const last = new Date(clock.now()).toISOString();
    expect(await shown('preferences/editor')).toEqual({ count: 2, last_client: 'gemini', last_at: last });
    expect(await shown('deploy/host')).toBeUndefined();
    expect((await restarted(memory).as(codex)('recall', { key: 'preferences/editor' })).shown?.count).toBe(2);
    await clock.advance(10 * DAY + HOUR);
    await store.sweep(100);
    expect(await shown('preferences/editor')).toMatchObject({ count: 1, last_client: 'gemini' });
    await as(theOwner)('forget', { scope: 'key:preferences/editor' });
    await clock.advance(SECOND);
    await as(codex)('remember', { key: 'preferences/editor', value: 'Zed' });
    expect(await shown('preferences/editor')).toBeUndefined();
    const { facts } = await as(codex)('list', { values: true });
    expect(facts.filter((fact) => 'shown' in fact)).toEqual([]);
  });

  test('are forgotten with all', async () => {
    const memory = await opened();
    await memory.as(claude)('brief', { session: 's' });
    await eventualRows(memory, 1);
    await memory.as(theOwner)('forget', { scope: 'all' });
    expect(await rowsOf(memory)).toEqual([]);
    await memory.as(codex)('remember', { key: 'preferences/editor', value: 'Helix', category: 'preferences' });
    expect((await memory.as(claude)('brief', { session: 'other' })).keys).toEqual(['preferences/editor']);
    expect((await memory.as(codex)('recall', { key: 'preferences/editor' })).shown).toBeUndefined();
  });

  test('are not written with HELMDECK_RECEIPTS=off, and a session is still told once', async () => {
    const memory = restarted(await opened(), { receipts: false });
    expect((await memory.as(claude)('brief', { session: 's' })).keys).toEqual(['preferences/editor']);
    expect(await memory.as(claude)('brief', { session: 's' })).toEqual(SILENT);
    expect(await rowsOf(memory)).toEqual([]);
    expect((await memory.as(codex)('recall', { key: 'preferences/editor' })).shown).toBeUndefined();
  });

  test('a subject sees its own only, and undo of a client ignores them', async () => {
    const memory = await opened();
    await memory.as(claude)('brief', { session: 's' });
    await eventualRows(memory, 1);
    const bob = { ...codex, subject: 'bob' };
    expect((await memory.as(bob)('activity', {})).activity).toEqual([]);
    await memory.as(bob)('remember', { key: 'preferences/editor', value: 'of bob' });
    expect((await memory.as(bob)('recall', { key: 'preferences/editor' })).shown).toBeUndefined();
    const undone = await memory.as(theOwner)('undo', { client: 'claude-code', since: '2026-01-01T00:00:00Z' });
    expect(undone).toMatchObject({ removed: 0, restored: 0, skipped: [] });
  });
});

describe('where a hook and the MCP server both speak, one is silent (R-BRIEF-09)', () => {
  const mcp = (client: string) => aCaller({ client, transport: 'mcp' });

  /** A hook of a client, with a token of this memory. */
  async function hookOf({ tokens }: TestMemory, client: string) {
    const minted = await tokens.mint({ name: 'hook', client, subject: 'me', scopes: ['memory:brief'], days: 30 });
    return { id: minted.id, caller: await tokens.verify(minted.token, 'rest') };
  }

  test('the server, from the first brief of a hook that named its session, for seven days', async () => {
    const memory = await opened();
    const { as, clock, tokens } = memory;
    const { id, caller: hook } = await hookOf(memory, 'claude-code');
    const greets = async (client = 'claude-code'): Promise<boolean> => (await as(mcp(client))('brief', {})).text !== '';
    expect(await greets()).toBe(true);
    await clock.advance(MINUTE);
    await as(hook)('brief', {});
    await as(hook)('brief', { session: 's', prompt: DEPLOY });
    expect(await greets()).toBe(true);
    await as(hook)('brief', { session: 's' });
    await vi.waitFor(async () => expect(await greets()).toBe(false));
    expect(await greets('gemini-cli')).toBe(true);
    expect(await greets('codex')).toBe(false);
    expect((await restarted(memory).as(mcp('claude-code'))('brief', {})).text).toBe('');
    await clock.advance(6 * DAY);
    expect(await greets()).toBe(false);
    await as(hook)('brief', { session: 's2' });
    await clock.advance(6 * DAY);
    await vi.waitFor(async () => expect(await greets()).toBe(false));
    await clock.advance(DAY + MINUTE);
    expect(await greets()).toBe(true);
    await as(hook)('brief', { session: 's3', prompt: DEPLOY, repeat: true });
    await vi.waitFor(async () => expect(await greets()).toBe(false));
    await tokens.pause({ id, paused: true });
    expect(await greets()).toBe(true);
    await tokens.pause({ id, paused: false });
    expect(await greets()).toBe(false);
    await tokens.revoke({ id, unrecorded: false });
    expect(await greets()).toBe(true);
  });

  test('the first hook, about what the server said less than 30 s ago', async () => {
    const memory = await opened();
    const { as, clock } = memory;
    const { caller: hook } = await hookOf(memory, 'claude-code');
    expect((await as(mcp('claude-code'))('brief', {})).keys).toEqual(['preferences/editor']);
    await clock.advance(29 * SECOND);
    expect(await as(hook)('brief', { session: 'one' })).toEqual(SILENT);
    expect((await as(hook)('brief', { session: 'two' })).keys).toEqual(['preferences/editor']);
    await as(mcp('gemini'))('brief', {});
    await clock.advance(31 * SECOND);
    const { caller: other } = await hookOf(memory, 'gemini');
    expect((await as(other)('brief', { session: 'one' })).keys).toEqual(['preferences/editor']);
  });

  test('but not after the test of a connection, which no model reads', async () => {
    const memory = await opened();
    const { caller: hook } = await hookOf(memory, 'claude-code');
    await memory.as(mcp('claude-code'))('brief', {});
    await memory.as(hook)('brief', { prompt: '-' });
    expect((await memory.as(hook)('brief', { session: 'one' })).keys).toEqual(['preferences/editor']);
  });
});
