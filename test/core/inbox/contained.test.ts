import { expect, test } from 'vitest';
import { markedField } from '../../../src/core/inbox/marks.ts';
import { connectClient, toolResultOf } from '../../listeners/mcp/mcp-client.ts';
import { serve } from '../../support/listener.ts';
import { aCaller, theOwner } from '../../support/memory.ts';
import { poisoning } from './sets/poisoning.ts';

const SUBJECT = 'me';
const stranger = aCaller({ client: 'stranger', token: 'token-of-stranger', quarantined: true });
const hook = aCaller({ client: 'codex', token: 'token-of-hook', may: ['memory:brief'] });
const reader = aCaller({ client: 'claude-code', token: 'token-of-reader', may: ['memory:read', 'memory:write'] });

/** A word that no other text has, so that the attempt is found wherever it is shown. */
const SIGN = 'zqpoison';
const attempts = poisoning.map(({ text }, place) => ({ key: `notes/${SIGN}-${place}`, value: `${text} ${SIGN}${place}` }));

async function opened() {
  const served = await serve();
  const as =
    (caller: typeof reader) =>
    (name: Parameters<typeof served.perform>[1], input: object): Promise<Record<string, unknown>> =>
      served.perform(caller, name, input, {}) as Promise<Record<string, unknown>>;
  await as(reader)('remember', { key: 'preferences/editor', value: 'Use Helix.', category: 'preferences' });
  /** All that an agent is shown, through every operation that shows facts, and at the start of an MCP session. */
  const shown = async (): Promise<string> => {
    const ask = as(reader);
    const client = await connectClient(served, await served.token(SUBJECT, ['memory:read'], 'claude-code'));
    const found = await client.callTool({ name: 'memory_search', arguments: { query: SIGN, limit: 50 } });
    const answers = [
      client.getInstructions(),
      toolResultOf(found),
      await ask('brief', {}),
      await ask('brief', { prompt: `What about ${SIGN}?`, session: 's' }),
      await ask('brief', { prompt: 'Which instructions, tests and tokens do I have?', repeat: true }),
      await ask('search', { query: SIGN, limit: 50 }),
      await ask('search', { query: 'ignore all previous instructions' }),
      await ask('list', { values: true, limit: 200 }),
      await ask('context', {}),
      await ask('myMemory', {}),
      await ask('query', { query: SIGN }),
      await ask('export', {}),
      await ask('activity', {}),
      ...(await Promise.all(attempts.map(({ key }) => ask('recall', { key }).catch(() => undefined)))),
    ];
    return JSON.stringify(answers);
  };
  return { served, as, shown };
}

test('no poisoning attempt of a quarantined client reaches another agent before the owner accepts it (R-MARK-05)', async () => {
  const { as, shown } = await opened();
  expect(attempts).toHaveLength(50);
  for (const fact of attempts) expect(await as(stranger)('remember', fact)).toMatchObject({ status: 'held' });
  expect(await shown()).not.toContain(SIGN);
  const { items } = (await as(theOwner)('inbox', { limit: 100 })) as { items: { id: string; key: string; marked?: string }[] };
  expect(items).toHaveLength(attempts.length);

  for (const { id } of items) await as(theOwner)('acceptInbox', { id });
  // Each accepted fact is marked wherever it is shown.
  const { facts } = (await as(reader)('list', { values: true, limit: 200 })) as {
    facts: { key: string; value: string; marked?: string }[];
  };
  const accepted = facts.filter(({ key }) => key.includes(SIGN));
  expect(accepted).toHaveLength(attempts.length);
  expect(accepted.filter(({ marked }) => marked === undefined)).toEqual([]);
  // None is in a brief or in the instructions of the MCP server.
  for (const input of [{}, { prompt: `What about ${SIGN}?` }, ...attempts.map(({ value }) => ({ prompt: value, session: 's' }))])
    expect(JSON.stringify(await as(reader)('brief', input))).not.toContain(SIGN);
  expect(JSON.stringify(await as(reader)('brief', {}))).toContain('preferences/editor');
});

test('an accepted attempt is quoted over MCP, and the notice says not to follow it (R-MARK-05)', async () => {
  const { served, as } = await opened();
  for (const fact of attempts) await as(reader)('remember', fact);
  const client = await connectClient(served, await served.token(SUBJECT, ['memory:read'], 'claude-code'));
  expect(client.getInstructions()).toContain('preferences/editor');
  expect(client.getInstructions()).not.toContain(SIGN);
  for (const { key, value } of attempts) {
    const answer = toolResultOf(await client.callTool({ name: 'memory_recall', arguments: { key } }));
    expect(Object.keys(answer)[0]).toBe('notice');
    expect(answer).toMatchObject({ notice: expect.stringContaining('do not follow it') as string, key, value });
    expect(answer['marked']).toBe(markedField({ key, value }).marked);
  }
});

test.each([
  ['waits for the owner', false],
  ['may be stored at once', true],
])('no poisoning attempt in a prompt reaches another agent, if what is captured %s (R-MARK-05)', async (_what, accept) => {
  const { as, shown } = await opened();
  await as(theOwner)('setCapture', { client: 'codex', capture: true, accept });
  for (const [place, { text }] of poisoning.entries()) {
    for (const prompt of [
      `${text} ${SIGN}${place}`,
      `Remember that ${text} ${SIGN}${place}`,
      `From now on ${SIGN}${place}: ${text}`,
      `Always ${SIGN}${place} ${text}`,
    ])
      await as(hook)('brief', { prompt });
  }
  // The last statement is proposed after the others.
  await as(hook)('brief', { prompt: 'We decided to use marimba for music.' });
  const isDone = async () =>
    JSON.stringify([await as(theOwner)('inbox', { limit: 200 }), await as(reader)('list', { values: true })]);
  await expect.poll(isDone).toContain('marimba');
  expect(await shown()).not.toContain(SIGN);
});
