import { describe, expect, onTestFinished, test } from 'vitest';
import { poisoning } from '../core/inbox/sets/poisoning.ts';
import { type HttpRequest, sendRequest } from '../support/listener.ts';
import { type Name, type Outcome, searcher, WIRES } from './wires.ts';
import { openWorld, type Surface, type World } from './world.ts';

// A quarantined client that tries to put text in front of another agent, or to change what the agent reads.

/** A word that occurs in every text of the quarantined client, and nowhere else. */
const WORD = 'zyzzyva';
const SINCE = '2020-01-01T00:00:00Z';

const speaking = (surfaces: Iterable<Surface>, operation: string, input: unknown): Surface[] =>
  [...surfaces].filter(({ name }) => WIRES[name].can(operation, input));

async function opened() {
  const world = await openWorld();
  onTestFinished(() => world[Symbol.asyncDispose]());
  const agents = [...(await world.surfaces()).values()];
  const strangers = [...(await world.surfaces({ quarantine: true })).values()];
  const [agent] = agents.filter(({ name }) => name === 'in process');
  await agent?.ask('remember', { key: 'shared', value: 'by an agent', category: 'tools', tags: ['t'], ttl_seconds: 86_400 });
  await agent?.ask('remember', { key: 'other', value: 'by an agent', category: 'tools' });
  await agent?.ask('createPipeline', {
    id: 'notes',
    inputs: [{ name: 'text' }],
    steps: [
      { id: 'say', pack: 'test.echo', input: { what: '${{ inputs.text }}' } },
      { id: 'keep', pack: 'helmdeck.memory_store', input: { key: '${{ inputs.text }}', value: '${{ inputs.text }}' } },
    ],
  });
  const token = async (client: string, quarantine: boolean): Promise<string> => {
    const scopes = ['memory:read', 'memory:write', 'packs:run'] as const;
    return (await world.tokens.mint({ name: client, client, subject: 'me', scopes: [...scopes], days: 1, quarantine })).token;
  };
  const over = (surfaces: readonly Surface[], wire: Name) => async (operation: string, input: object) => {
    const surface = surfaces.find(({ name }) => name === wire);
    const { answer, refused } = (await surface?.ask(operation, input)) ?? {};
    if (answer) return answer;
    throw new Error(`${operation} over ${wire}: ${refused?.message ?? 'there is no such wire'}`);
  };
  return {
    ...world,
    agents,
    strangers,
    token,
    owner: over(agents, 'the owner route'),
    byAgent: over(agents, 'REST'),
    byStranger: over(strangers, 'REST'),
  };
}

/** Every write that a client can make, on one surface. */
const writes: readonly (readonly [operation: string, input: object])[] = [
  ['remember', { key: `${WORD}/new`, value: WORD, category: WORD, tags: [WORD] }],
  ['remember', { key: 'shared', value: `${WORD} overwrites` }],
  ['remember', { key: 'shared', value: 'by an agent', category: 'tools', tags: ['t'], ttl_seconds: 3600 }],
  ['remember', { key: `${WORD}/superseding`, value: WORD, supersedes: 'shared' }],
  ['remember', { key: `${WORD}/similar`, value: 'by an agent', similar: true }],
  ['patch', { key: 'shared', ttl_seconds: 3600 }],
  ['patch', { key: 'shared', ttl_seconds: 31_536_000 }],
  ['patch', { key: 'shared', category: WORD, tags: [WORD] }],
  ['forget', { scope: 'key:shared' }],
  ['forget', { scope: 'all' }],
  ['forget', { scope: 'client:agent in process' }],
  ['forget', { scope: 'pipelines' }],
  ['undo', { client: 'agent in process', since: SINCE }],
  ['createPipeline', { id: WORD, title: WORD, steps: [{ id: 'one', pack: 'test.echo', input: { what: WORD } }] }],
  ['createPipeline', { id: 'notes', steps: [{ id: 'one', pack: 'test.echo', input: { what: WORD } }] }],
  ['deletePipeline', { id: 'notes' }],
  ['runPack', { name: 'helmdeck.memory_store', input: { key: `${WORD}/pack`, value: WORD } }],
  ['runPack', { name: 'helmdeck.memory_store', input: { key: `${WORD}/session`, value: WORD }, session: WORD }],
  ['runPack', { name: 'helmdeck.memory_forget', input: { scope: 'key:shared' } }],
  ['runPack', { name: 'test.notes', input: { what: WORD } }],
  ['runPack', { name: 'test.notes', input: { what: WORD }, session: 'a-1' }],
  ['runPack', { name: 'test.cached', input: { what: WORD } }],
  ['finishPipeline', { id: 'notes', inputs: { text: WORD } }],
  ['runPipeline', { id: 'notes', inputs: { text: `${WORD} later` } }],
];

/** Writes whose answer is that of the pack, which runs, although nothing that it stores reaches another client. */
const RUNS: ReadonlySet<unknown> = new Set(['test.notes', 'test.cached']);

/** Every way to read the memory, of a client that does not know what to ask for, and of one that does. */
const reads: readonly (readonly [operation: string, input: object])[] = [
  ['recall', { key: `${WORD}/new` }],
  ['recall', { key: 'shared' }],
  ['history', { key: 'shared' }],
  ['list', { values: true }],
  ['list', { values: true, tag: WORD }],
  ['list', { values: true, prefix: WORD }],
  ['search', { query: WORD }],
  ['search', { query: '' }],
  ['query', { query: WORD }],
  ['query', { collections: ['helmdeck-pack_history', 'helmdeck-pipeline_history'], limit: 100 }],
  ['context', {}],
  ['myMemory', {}],
  ['myDefaults', {}],
  ['brief', {}],
  ['brief', { prompt: `What about ${WORD}?` }],
  ['callers', {}],
  ['export', {}],
  ['activity', {}],
  ['status', {}],
  ['pipelines', {}],
  ['pipeline', { id: 'notes' }],
  ['pipelineRuns', {}],
  ['forget', { scope: `prefix:${WORD}`, dry_run: true }],
  ['runPack', { name: 'test.notes', input: {} }],
  ['runPack', { name: 'test.notes', input: {}, session: 'a-1' }],
  ['runPack', { name: 'helmdeck.route', input: { user_intent: 'take notes' } }],
];

const heldIn = (answer: Outcome['answer']): unknown => {
  const { output, steps, held, status } = (answer ?? {}) as {
    output?: { status?: string };
    steps?: { id: string; output?: { status?: string } }[];
    held?: unknown[];
    status?: string;
  };
  return output?.status ?? steps?.find(({ id }) => id === 'keep')?.output?.status ?? (held ? 'held' : status);
};

/** What clients can read of the facts, the pipelines and the record, without the runs. */
const kept = async ({ state, store }: World) => {
  const { facts, activity } = await state();
  const { entries } = await store
    .space({ subject: 'me' }, 'pack')
    .page({ sort: 'oldest', limit: 100, category: 'pipeline:definition' });
  return { facts, activity, pipelines: entries };
};

test('nothing that it writes over any wire is readable for a client, or changes what is (R-INBOX-01, R-INBOX-02)', async () => {
  const world = await opened();
  const { agents, strangers, owner, token } = world;
  const before = await kept(world);
  let tried = 0;
  for (const [operation, input] of writes) {
    for (const { name, author, ask } of speaking(strangers, operation, input)) {
      // A line of an import has neither field, and the tool of MCP always looks for similar facts.
      const isImport = name === 'a line of an import';
      if ((isImport && 'supersedes' in input) || ('similar' in input && (isImport || author.origin === 'mcp'))) continue;
      tried += 1;
      const { answer, refused } = await ask(operation, input);
      expect(refused, `${name}: ${operation} ${JSON.stringify(input)}`).toBeUndefined();
      if (RUNS.has((input as { name?: string }).name) || operation === 'runPipeline' || isImport) continue;
      expect(heldIn(answer), `${name}: ${operation} ${JSON.stringify(input)}`).toBe('held');
      // A model reads first what happened and what to do, also in the output of a pack or of a step.
      expect(JSON.stringify(answer)).toMatch(
        /"status":"held","note":"This request waits for the approval of the owner[^"]*Do not send it again\./,
      );
    }
  }
  expect(tried).toBeGreaterThan(80);
  const runs = async () => (await owner('pipelineRuns', { limit: 200 }))['runs'] as { run_id: string; status: string }[];
  await expect.poll(async () => (await runs()).filter(({ status }) => status === 'running')).toEqual([]);
  const { total } = await owner('inbox', {});
  expect(total).toBeGreaterThan(60);
  expect(await kept(world)).toEqual(before);

  const listeners = [...agents.filter(({ author }) => author.client.startsWith('agent')), ...strangers];
  const records = (await runs()).map(({ run_id: id }): [string, object] => ['pipelineRun', { run_id: id }]);
  expect(records).toHaveLength(3);
  let asked = 0;
  for (const [operation, input] of [...reads, ...records]) {
    for (const { name, author, ask } of speaking(listeners, operation, input)) {
      const isOwn = author.client.startsWith('stranger');
      // A client reads the runs that it started itself, and what its own packs remember.
      if (isOwn && ['pipelineRun', 'runPack'].includes(operation)) continue;
      asked += 1;
      const { answer = {} } = await ask(operation, input);
      expect(JSON.stringify({ ...answer, scope: '' }), `${name}: ${operation} ${JSON.stringify(input)}`).not.toContain(WORD);
    }
  }
  expect(asked).toBeGreaterThan(150);
  const search = await searcher(world.url, await token('a searcher', false));
  onTestFinished(search.close);
  expect(JSON.stringify(await search.query({ limit: 100 }))).not.toContain(WORD);
});

test('a pack caches and remembers nothing of it for another client (R-INBOX-01)', async () => {
  const { byAgent, byStranger } = await opened();
  const cached = { name: 'test.cached', input: { what: 'the same' } };
  expect(await byStranger('runPack', cached)).toMatchObject({ cached: false });
  expect(await byStranger('runPack', cached)).toMatchObject({ cached: true });
  expect(await byAgent('runPack', cached)).toMatchObject({ cached: false });
  await byStranger('runPack', { name: 'test.notes', input: { what: WORD } });
  expect(await byStranger('runPack', { name: 'test.notes', input: {} })).toMatchObject({ output: { said: WORD } });
  expect(await byAgent('runPack', { name: 'test.notes', input: {} })).toMatchObject({ output: { said: '' } });
});

test('a flood neither reaches another client nor takes its place (R-INBOX-06)', async () => {
  const { url, token, owner, byStranger } = await opened();
  const flooding = await token('flooder', true);
  const body = (n: number): HttpRequest => ({ token: flooding, body: { key: `k${n}`, value: 'v'.repeat(1000) } });
  const answers = await Promise.all(Array.from({ length: 150 }, (_, n) => sendRequest(url, '/api/v1/memory/store', body(n))));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(100);
  for (const { json } of answers.filter(({ status }) => status !== 200)) {
    expect(json).toMatchObject({
      error: 'quota_exceeded',
      message: expect.stringContaining('do not send more writes') as string,
    });
  }
  expect(await byStranger('remember', { key: 'k', value: 'v' })).toMatchObject({ status: 'held' });
  expect(await owner('inbox', { limit: 1 })).toMatchObject({ total: 101 });
});

test('an import of many batches waits as a few items, and reports the lines that are invalid (R-INBOX-01)', async () => {
  const world = await opened();
  const lines = Array.from({ length: 1100 }, (_, n) => (n === 700 ? '{"key":""}' : JSON.stringify({ key: `k${n}`, value: 'v' })));
  const { status, json } = await sendRequest(world.url, '/api/v1/memory/import', {
    token: await token(world),
    headers: ['Content-Type', 'application/x-ndjson'],
    body: lines.join('\n'),
  });
  expect({ status, json }).toMatchObject({
    status: 200,
    json: {
      created: 0,
      note: expect.stringMatching(/^This request waits/) as string,
      errors: [{ line: 701 }],
      held: [{ lines: 500 }, { lines: 499 }, { lines: 100 }],
    },
  });
  const { items } = (await world.owner('inbox', {})) as { items: { id: string }[] };
  for (const { id } of items) await world.owner('acceptInbox', { id });
  expect((await world.state()).facts.filter(({ author }) => author.client === 'importer')).toHaveLength(1099);
});

const token = (world: { token: (client: string, quarantine: boolean) => Promise<string> }): Promise<string> =>
  world.token('importer', true);

describe('poisoning through a quarantined client (R-INBOX-01, R-MARK-04)', () => {
  test('reaches no other client before it is accepted, and is quoted, marked and in no brief after that', async () => {
    const { byAgent, byStranger, owner } = await opened();
    expect(poisoning).toHaveLength(50);
    const read = async () => [await byAgent('list', { values: true, limit: 200 }), await byAgent('brief', {})];
    const before = await read();
    for (const [place, { text }] of poisoning.entries())
      expect(await byStranger('remember', { key: `notes/${place}`, value: text })).toMatchObject({ status: 'held' });
    expect(await read()).toEqual(before);
    const { items } = (await owner('inbox', { limit: 200 })) as { items: { id: string; marked?: string }[] };
    expect(items.filter(({ marked }) => marked !== undefined)).toHaveLength(50);
    for (const { id } of items) await owner('acceptInbox', { id });
    const { facts } = (await byAgent('list', { prefix: 'notes/', values: true, limit: 200 })) as { facts: { marked?: string }[] };
    expect(facts.filter(({ marked }) => marked === undefined)).toEqual([]);
    expect(facts).toHaveLength(50);
    for (const { text } of poisoning) {
      const { keys } = (await byAgent('brief', { prompt: text.slice(0, 500) })) as { keys: string[] };
      expect(keys.filter((key) => key.startsWith('notes/'))).toEqual([]);
    }
  });
});
