import { afterAll, beforeAll, expect, test } from 'vitest';
import { operations } from '../../src/contract/operations.ts';
import { sendRequest } from '../support/listener.ts';
import { NAMES, WIRES } from './wires.ts';
import { openWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
  const all = await world.surfaces();
  await all.get('REST')?.ask('remember', { key: 'preferences/editor', value: 'Helix', category: 'preferences' });
});
afterAll(() => world[Symbol.asyncDispose]());

/** Inputs that are valid, or would be with an existing id. */
const INPUTS: Readonly<Record<string, object>> = {
  remember: { key: 'k', value: 'v' },
  recall: { key: 'preferences/editor' },
  patch: { key: 'preferences/editor', tags: [] },
  forget: { scope: 'all' },
  history: { key: 'preferences/editor' },
  search: { query: 'editor' },
  query: { query: 'editor' },
  runPack: { name: 'test.echo' },
  endSession: { id: 'x' },
};

test('every wire with calls briefs a caller that can read (R-BRIEF-03, R-OPS-01)', async () => {
  const speakers = NAMES.filter((name) => WIRES[name].can('brief', {}));
  expect(speakers).toEqual(['in process', 'REST', 'the owner route', 'the command line', 'the window']);
  const surfaces = await world.surfaces();
  for (const name of speakers) {
    const outcome = await surfaces.get(name)?.ask('brief', {});
    expect(outcome?.answer, name).toMatchObject({ keys: ['preferences/editor'] });
    expect(outcome?.answer?.['text'], name).toContain('- preferences/editor (agent REST, just now): "Helix"');
  }
});

test('a token with only memory:brief can do nothing else on any wire (R-BRIEF-05)', async () => {
  const before = await world.state();
  const surfaces = await world.surfaces({ scopes: ['memory:brief'] });
  let refusals = 0;
  for (const [name, { ask }] of surfaces) {
    if (!WIRES[name].can('brief', {})) continue;
    expect(await ask('brief', {}), name).toMatchObject({ answer: { keys: ['preferences/editor'] } });
  }
  for (const operation of Object.keys(operations).filter((each) => each !== 'brief')) {
    const input = INPUTS[operation] ?? {};
    for (const [name, { ask }] of surfaces) {
      if (!WIRES[name].can(operation, input)) continue;
      // The resources of MCP refuse with a protocol error.
      const outcome = await ask(operation, input).catch((error: Error) => ({ refused: { message: error.message } }));
      expect(outcome, `${operation} on ${name}`).toMatchObject({
        refused: { message: expect.stringMatching(/scope|owner/) as string },
      });
      refusals += 1;
    }
  }
  expect(refusals).toBeGreaterThan(100);
  const after = await world.state();
  expect(after.facts).toEqual(before.facts);
  expect(after.runs).toEqual(before.runs);
});

test('a token with only memory:brief gets nothing from the other routes (R-BRIEF-05)', async () => {
  const { token } = await world.tokens.mint({ name: 'hook', client: 'codex', subject: 'me', scopes: ['memory:brief'], days: 1 });
  for (const [method, path, body] of [
    ['POST', '/api/v1/owner/list', '{}'],
    ['POST', '/api/v1/owner/brief', '{}'],
    ['GET', '/api/v1/events', undefined],
    ['GET', '/api/v1/memory/export', undefined],
    ['POST', '/v1/embeddings', '{"model":"m","input":"x"}'],
    ['POST', '/api/v1/window', undefined],
    ['POST', '/api/v1/mcp/qmd', '{}'],
  ] as const) {
    const answer = await sendRequest(world.url, path, { method, token, ...(body !== undefined && { body }) });
    expect(answer.status, path).toBe(403);
    expect(answer.text, path).toContain('insufficient_scope');
  }
  await expect(world.tokens.grants('me')).resolves.not.toContainEqual(expect.objectContaining({ client: 'codex' }));
});
