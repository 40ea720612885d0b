import { describe, expect, test } from 'vitest';
import type { EmbeddingsReport } from '../../../src/contract/embeddings.ts';
import { noEmbeddings } from '../../../src/core/operations/embeddings-port.ts';
import { windowCaller } from '../../../src/listeners/window/window-result.ts';
import { desktopConsent, type ConsentQuestion } from '../../../src/main/shell/consent.ts';
import { DAY } from '../../support/clock.ts';
import { aCaller, openTestMemory, theOwner } from '../../support/memory.ts';

const hash = 'a'.repeat(64);

/** Returns the questions shown when the window approves a hash. `ollama` is the one that was found. */
async function approving(ollama: { path: string; sha256?: string } | undefined): Promise<readonly ConsentQuestion[]> {
  const approved: string[] = [];
  const report: EmbeddingsReport = {
    state: { at: 'off' },
    on: true,
    adopt: false,
    adoptable: '',
    model: { name: 'm' },
    free: {},
    log: [],
    ...(ollama && { ollama: { ...ollama, approved: false } }),
  };
  const embeddings = {
    ...noEmbeddings,
    report: async () => report,
    approve: async (sha256: string) => void approved.push(sha256),
  };
  const { perform, clock } = await openTestMemory({ embeddings });
  const asked: ConsentQuestion[] = [];
  const consent = desktopConsent({ perform, clock, askOwner: async (question) => (asked.push(question), true) });
  await perform(windowCaller('me'), 'approveOllama', { hash }, { consent });
  expect(approved).toEqual([hash]);
  return asked;
}

test('the question about an Ollama shows its path and hash, and a path cannot add lines (R-DESK-08, R-EMB-03)', async () => {
  expect(await approving({ path: '/usr/local/bin/ollama', sha256: hash })).toMatchObject([
    {
      message: 'Allow Helmdeck Memory to start this Ollama?',
      detail: `/usr/local/bin/ollama\nSHA-256 ${hash}\n\nOllama runs with your user rights until you turn embeddings off.`,
    },
  ]);
  const [disguised] = await approving({ path: `/home/me/a\nSHA-256 ${'b'.repeat(64)}/${'x'.repeat(400)}`, sha256: hash });
  expect(disguised?.detail.split('\n')).toHaveLength(4);
  expect(disguised?.detail.split('\n')[0]).toHaveLength(300);
});

test('a hash that was not shown cannot be approved (R-DESK-08)', async () => {
  for (const found of [undefined, { path: '/usr/local/bin/ollama', sha256: 'b'.repeat(64) }, { path: '/tmp/ollama' }])
    await expect(approving(found)).rejects.toMatchObject({ code: 'invalid_input' });
});

test('the question about the clock shows the date and the number of facts that expire (R-DESK-08, R-TIME-09)', async () => {
  const { perform, clock, as } = await openTestMemory();
  await as(theOwner)('remember', { key: 'a', value: 'one' });
  clock.jump(400 * DAY);
  const time = new Date(clock.now()).toISOString();
  const asked: ConsentQuestion[] = [];
  const consent = desktopConsent({ perform, clock, askOwner: async (question) => (asked.push(question), false) });
  await expect(perform(windowCaller('me'), 'trustClock', { time }, { consent })).rejects.toMatchObject({ code: 'declined' });
  expect(asked).toMatchObject([
    { message: `Is today ${time.slice(0, 10)}?`, detail: expect.stringContaining('one fact has expired') as string },
  ]);
  expect((await perform(theOwner, 'status', {})).store.clock.at).toBe('ahead');
});

describe('undoing the changes of an agent', () => {
  const since = '2020-01-01T00:00:00Z';
  const pipeline = (id: string) => ({ id, steps: [{ id: 'one', pack: 'helmdeck.route', input: { user_intent: 'remember' } }] });

  /** A window whose owner always declines, and the questions it showed. */
  async function opened() {
    const memory = await openTestMemory();
    const asked: ConsentQuestion[] = [];
    const askOwner = async (question: ConsentQuestion) => (asked.push(question), false);
    const consent = desktopConsent({ perform: memory.perform, clock: memory.clock, askOwner });
    const undo = () => memory.perform(windowCaller('me'), 'undo', { client: 'claude-code', since }, { consent });
    return { ...memory, asked, undo, agent: memory.as(aCaller()), owner: memory.as(theOwner) };
  }

  test('names the pipelines that would be deleted, also if no facts are (R-DESK-08)', async () => {
    const { agent, owner, asked, undo } = await opened();
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await agent('createPipeline', pipeline(id));
    await expect(undo()).rejects.toMatchObject({ code: 'declined' });
    expect(asked).toMatchObject([{ detail: 'Pipelines deleted permanently: g, f, e, d, c, and 2 more.' }]);
    expect((await owner('pipelines', {})).pipelines).toHaveLength(7);
  });

  test('names facts and pipelines (R-DESK-08)', async () => {
    const { agent, asked, undo, owner } = await opened();
    await agent('remember', { key: 'a', value: 'one' });
    await agent('createPipeline', pipeline('new'));
    await expect(undo()).rejects.toMatchObject({ code: 'declined' });
    const [question] = asked;
    expect(question?.detail).toContain('1 will be deleted permanently and 0 will return to their earlier version');
    expect(question?.detail).toContain('Pipelines deleted permanently: new.');
    expect((await owner('list', {})).facts).toHaveLength(1);
  });

  test('needs no consent if it would change nothing (R-DESK-08)', async () => {
    const { owner, asked, undo } = await opened();
    await owner('remember', { key: 'a', value: 'one' });
    expect(await undo()).toMatchObject({ removed: 0, restored: 0 });
    expect(asked).toEqual([]);
  });
});

test('an accepted write needs the consent of the operation that runs, for the client that asked (R-DESK-08, R-INBOX-04)', async () => {
  const memory = await openTestMemory();
  const asked: ConsentQuestion[] = [];
  let answer = false;
  const consent = desktopConsent({ ...memory, askOwner: async (question) => (asked.push(question), answer) });
  const stranger = memory.as(aCaller({ client: 'stranger', quarantined: true }));
  const accept = async (id: string) => memory.perform(windowCaller('me'), 'acceptInbox', { id }, { consent });
  await memory.as(aCaller())('remember', { key: 'k', value: 'v' });
  await stranger('forget', { scope: 'facts' });
  await stranger('createPipeline', { id: 'theirs', steps: [{ id: 'one', pack: 'helmdeck.route', input: { user_intent: 'x' } }] });
  await stranger('remember', { key: 'k', value: 'w' });
  const { items } = await memory.perform(windowCaller('me'), 'inbox', {});
  const [forget = '', pipeline = '', fact = ''] = items.map(({ id }) => id);
  await expect(accept(forget)).rejects.toMatchObject({ code: 'declined' });
  expect(asked).toMatchObject([{ message: 'Forget one entry?' }]);
  expect((await memory.perform(windowCaller('me'), 'inbox', {})).total).toBe(3);
  answer = true;
  await accept(pipeline);
  expect(asked[1]).toMatchObject({ message: 'Save the pipeline theirs of stranger?', yes: 'Save' });
  expect(asked[1]?.detail).toContain("stranger becomes the pipeline's author");
  await accept(fact);
  expect(asked).toHaveLength(2);
  await memory.perform(windowCaller('me'), 'dropInbox', { id: forget }, { consent });
  expect(asked).toHaveLength(2);
  await memory.perform(windowCaller('me'), 'dropInbox', { all: true }, { consent });
  expect(asked[2]).toMatchObject({ message: 'Drop everything in the Inbox?' });
});
