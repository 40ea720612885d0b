import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcp, type Server as TcpServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Failure } from '../../src/contract/failure.ts';
import type { Caller } from '../../src/core/access/caller.ts';
import { RamStore } from '../../src/core/store/ram-store.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { type ServedMemory, serve } from '../support/listener.ts';
import { aCaller } from '../support/memory.ts';
import { aPack } from '../support/packs.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { measureWait } from '../support/work.ts';

interface Hit {
  readonly corpus: string;
  readonly path: string;
  readonly score: number;
  readonly snippet: string;
  readonly kind: string;
  readonly title?: string;
}

interface Supplement {
  search(question: { query: string; maxResults?: number }): Promise<Hit[]>;
  get(question: { lookup: string; fromLine?: number; lineCount?: number }): Promise<Record<string, unknown> | null>;
}

type Hook = (event: { toolName: string; params: Record<string, unknown> }) => { params: Record<string, unknown> } | undefined;
type Turn = (
  event: { prompt?: unknown; currentUserMessage?: string },
  context?: Record<string, unknown>,
) => Promise<{ prependContext: string } | undefined>;
type Prompt = (question: { availableTools: Set<string> }) => string[];

interface Api {
  pluginConfig?: Record<string, unknown>;
  registerMemoryCorpusSupplement(supplement: Supplement): void;
  registerMemoryPromptSupplement(prompt: Prompt): void;
  on(name: string, hook: Hook | Turn, options: Record<string, unknown>): void;
}

interface Plugin {
  readonly id: string;
  register(api: Api): void;
}

const FOLDER = 'integrations/openclaw';
let plugin: Plugin;
beforeAll(async () => {
  ({ default: plugin } = (await import(pathToFileURL(join(FOLDER, 'index.js')).href)) as { default: Plugin });
});

interface Loaded {
  readonly corpus: Supplement;
  readonly hook: Hook;
  readonly turn: Turn;
  readonly prompt: Prompt;
  /** The options of each hook by its name. */
  readonly options: Record<string, Record<string, unknown>>;
}

/** Loads the plugin as OpenClaw does. */
function load(pluginConfig?: Record<string, unknown>): Loaded {
  const hooks: Record<string, Hook | Turn> = {};
  const loaded: { corpus?: Supplement; prompt?: Prompt; options: Loaded['options'] } = { options: {} };
  plugin.register({
    ...(pluginConfig && { pluginConfig }),
    registerMemoryCorpusSupplement: (corpus) => (loaded.corpus = corpus),
    registerMemoryPromptSupplement: (prompt) => (loaded.prompt = prompt),
    on(name, hook, options) {
      hooks[name] = hook;
      loaded.options[name] = options;
    },
  });
  expect(Object.keys(hooks)).toEqual(['before_tool_call', 'before_prompt_build']);
  return { ...loaded, hook: hooks['before_tool_call'], turn: hooks['before_prompt_build'] } as Loaded;
}

function writeToken(folder: string, token: string, name = 'openclaw.token'): string {
  const file = join(folder, 'clients', name);
  mkdirSync(join(folder, 'clients'), { recursive: true });
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  return file;
}

async function connected(
  over: Parameters<typeof serve>[0] = {},
): Promise<ServedMemory & ReturnType<typeof load> & { tokenFile: string }> {
  const served = await serve(over);
  const tokenFile = writeToken(served.folder, await served.token('me', ['memory:read', 'memory:write'], 'openclaw'));
  return { ...served, ...load({ folder: served.folder, tokenFile }), tokenFile };
}

const remember = (memory: ServedMemory, key: string, value: string): Promise<unknown> =>
  memory.perform(aCaller({ subject: 'me', client: 'another' }), 'remember', { key, value });

describe('the plugin finds', () => {
  test("R-CLAW-01 facts of all agents, with their own paths and scores on OpenClaw's scale", async () => {
    const memory = await connected();
    await remember(memory, 'preferences/editor', 'Helix is the editor, never Vim');
    await remember(memory, 'project/deploy', 'Deploys to production are closed on Fridays after noon');
    await remember(memory, 'food/allergy', 'The owner is allergic to peanuts');
    const [first, ...rest] = await memory.corpus.search({ query: 'which editor' });
    expect(first).toMatchObject({
      corpus: 'wiki',
      path: 'helmdeck/user_facts/preferences/editor',
      kind: 'fact',
      snippet: expect.stringMatching(
        /^## preferences\/editor\n\nWritten by another, \S+Z\n\nHelix is the editor, never Vim\n\n\(category: user_facts\)$/,
      ),
      startLine: 1,
      endLine: 7,
    });
    expect(rest).toEqual([]);
    const [deploys] = await memory.corpus.search({ query: 'when are deploys closed' });
    expect(deploys?.path).toBe('helmdeck/user_facts/project/deploy');
    for (const { score } of [first, deploys] as Hit[]) {
      expect(score).toBeGreaterThan(0.65);
      expect(score).toBeLessThanOrEqual(1);
    }
  });

  test("R-CLAW-01 at most the requested number of hits, and none below OpenClaw's minimum score", async () => {
    const memory = await connected();
    for (const room of ['blue', 'red', 'green', 'grey']) await remember(memory, `rooms/${room}`, `The ${room} room has a screen`);
    expect(await memory.corpus.search({ query: 'room with a screen', maxResults: 2 })).toHaveLength(2);
    const hits = await memory.corpus.search({ query: 'the blue room' });
    expect(hits[0]?.path).toBe('helmdeck/user_facts/rooms/blue');
    expect(hits.every(({ score }) => score >= 0.35)).toBe(true);
  });

  test('R-CLAW-02 a fact in full, or the requested lines', async () => {
    const memory = await connected();
    await remember(memory, 'lists/books 1', 'one\ntwo\nthree\nfour');
    const lookup = 'helmdeck/user_facts/lists/books 1';
    expect(await memory.corpus.get({ lookup })).toMatchObject({ path: lookup, content: 'one\ntwo\nthree\nfour', lineCount: 4 });
    expect(await memory.corpus.get({ lookup, fromLine: 2, lineCount: 2 })).toMatchObject({
      content: 'two\nthree',
      fromLine: 2,
      lineCount: 2,
    });
    expect(await memory.corpus.get({ lookup: 'helmdeck/user_facts/nothing' })).toBeNull();
    expect(await memory.corpus.get({ lookup: 'MEMORY.md' })).toBeNull();
  });

  test('R-CLAW-02 the complete record of a run', async () => {
    const memory = await connected({ packs: { packs: [aPack(() => ({ said: 'Konflux' }))] } });
    await memory.perform(aCaller({ subject: 'me', client: 'another' }), 'runPack', { name: 'test.echo', input: { what: 'x' } });
    const [hit] = await memory.corpus.search({ query: 'test echo' });
    expect(hit).toMatchObject({ kind: 'record', snippet: expect.stringContaining('## Pack call: test.echo') as string });
    expect(await memory.corpus.get({ lookup: hit?.path ?? '' })).toMatchObject({ content: hit?.snippet });
  });

  test('R-CLAW-03 facts after a change of token and port', async () => {
    const store = new RamStore(systemClock);
    const first = await connected({ store });
    await remember(first, 'preferences/editor', 'Helix');
    expect(await first.corpus.search({ query: 'helix' })).toHaveLength(1);
    await first.listener.close();
    expect(await first.corpus.search({ query: 'helix' })).toEqual([]);
    const second = await serve({ store, folder: first.folder });
    expect(second.port).not.toBe(first.port);
    writeToken(first.folder, await second.token('me', ['memory:read'], 'openclaw'));
    expect(await first.corpus.search({ query: 'helix' })).toHaveLength(1);
  });
});

const NOTHING = { found: [], read: null };

/** The results of a search and of reading a fact. An error fails the test. */
const asked = async ({ corpus }: Pick<ReturnType<typeof load>, 'corpus'>): Promise<object> => ({
  found: await corpus.search({ query: 'helix' }),
  read: await corpus.get({ lookup: 'helmdeck/user_facts/preferences/editor' }),
});

describe('the plugin returns nothing', () => {
  test('R-CLAW-04 without a configuration, and without a running program', async () => {
    expect(await asked(load())).toEqual(NOTHING);
    const folder = tempFolder();
    expect(await asked(load({ folder, tokenFile: writeToken(folder, 'a-token') }))).toEqual(NOTHING);
  });

  test('R-CLAW-04 while the memory is locked, and once its token is revoked', async () => {
    let locked = false;
    const memory = await connected({
      wrapPerform: (perform) => async (caller: Caller, name: string, input: unknown) => {
        if (locked && name !== 'status') throw new Failure('key_unavailable', 'It is locked; unlock it.');
        return (await perform(caller, name, input)) as never;
      },
    });
    await remember(memory, 'preferences/editor', 'Helix');
    expect(await memory.corpus.search({ query: 'helix' })).toHaveLength(1);
    locked = true;
    expect(await asked(memory)).toEqual(NOTHING);
    locked = false;
    writeToken(memory.folder, 'not.a.token');
    expect(await asked(memory)).toEqual(NOTHING);
  });

  test.skipIf(process.platform === 'win32')('R-CLAW-05 if other users can read its token or change the address', async () => {
    for (const file of ['endpoint.json', 'clients/openclaw.token']) {
      const memory = await connected();
      await remember(memory, 'preferences/editor', 'Helix');
      chmodSync(join(memory.folder, file), 0o644);
      expect(await asked(memory)).toEqual(NOTHING);
    }
  });

  test('R-CLAW-05 if another program uses the port, which never receives the token', async () => {
    for (const answer of ['{"status":"ok"}', `{"status":"ok","proof":"${'0'.repeat(64)}"}`, 'nonsense'.repeat(900)]) {
      const heard: string[] = [];
      const stranger = createServer((request, response) => {
        heard.push(JSON.stringify([request.url, request.headers]));
        response.end(answer);
      });
      const { folder, tokenFile } = await endpointOf(stranger);
      expect(await asked(load({ folder, tokenFile }))).toEqual(NOTHING);
      expect(heard.length).toBeGreaterThan(0);
      expect(heard.join()).not.toMatch(/authorization|a-token/i);
    }
  });

  test('R-CLAW-04 within three seconds, if the program never responds', async () => {
    const { folder, tokenFile } = await endpointOf(createTcp(() => undefined));
    const { corpus } = load({ folder, tokenFile });
    const waited = await measureWait(async () => expect(await corpus.search({ query: 'helix' })).toEqual([]));
    expect(waited).toBeLessThan(3000);
  });

  test('R-CLAW-04 if the verified program sends invalid responses', async () => {
    const key = 'ab'.repeat(32);
    const answers = ['', '[]', '{"result":{}}', '{"result":{"structuredContent":{"results":[{"docid":1},{"score":7}]}}}', '"'];
    let answer = '';
    const faultyServer = createServer((request, response) => {
      const challenge = new URL(request.url ?? '', 'http://localhost').searchParams.get('challenge');
      const proof = challenge && createHmac('sha256', Buffer.from(key, 'hex')).update(challenge).digest('hex');
      response.end(proof ? `{"status":"ok","proof":"${proof}"}` : answer);
    });
    const { folder, tokenFile } = await endpointOf(faultyServer, key);
    for (answer of answers) expect(await asked(load({ folder, tokenFile }))).toEqual(NOTHING);
  });
});

interface BriefRequest {
  readonly path: string | undefined;
  readonly token: string | undefined;
  readonly body: unknown;
}

/** A program that proves itself and answers every other request with `answer`. Records these requests. */
async function answering(
  answer: () => string | undefined,
  more: object = {},
): Promise<{ plugin: Loaded; requests: BriefRequest[] }> {
  const key = 'ab'.repeat(32);
  const requests: BriefRequest[] = [];
  const server = createServer((request, response) => {
    const challenge = new URL(request.url ?? '', 'http://localhost').searchParams.get('challenge');
    if (challenge) {
      const proof = createHmac('sha256', Buffer.from(key, 'hex')).update(challenge).digest('hex');
      response.end(`{"status":"ok","proof":"${proof}"}`);
      return;
    }
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.once('end', () => {
      requests.push({ path: request.url, token: request.headers.authorization, body: JSON.parse(text) });
      const body = answer();
      if (body !== undefined) response.end(body);
    });
  });
  const { folder, tokenFile } = await endpointOf(server, key);
  writeToken(folder, 'a-hook-token', 'openclaw.hook.token');
  return { plugin: load({ folder, tokenFile, ...more }), requests };
}

const NO_BRIEF = JSON.stringify({ text: '', keys: [] });
const A_BRIEF = JSON.stringify({ text: 'From Helmdeck Memory: x', keys: ['x'] });
const ROOT = '/home/ada/work/konflux';

describe('the plugin asks for a brief at each turn', () => {
  test('R-CLAW-16 and gets the facts of other agents again and again, with a token for briefs only', async () => {
    const memory = await connected();
    const hookToken = await memory.token('me', ['memory:brief'], 'openclaw');
    writeToken(memory.folder, hookToken, 'openclaw.hook.token');
    await remember(memory, 'preferences/editor', 'Helix is the editor, never Vim');
    const context = { sessionId: 's1', workspaceDir: ROOT };
    for (const prompt of ['Hello', 'Which editor?', 'Which editor?']) {
      const { prependContext = '' } = (await memory.turn({ prompt }, context)) ?? {};
      expect(prependContext.split('Helix is the editor, never Vim')).toHaveLength(2);
    }
    writeToken(memory.folder, 'not.a.token', 'openclaw.hook.token');
    expect(await memory.turn({ prompt: 'Which editor?' }, context)).toBeUndefined();
  });

  test.each([
    [
      'the prompt, folder and session',
      { prompt: 'Deploy it' },
      { sessionId: 's1', workspaceDir: ROOT, trigger: 'user' },
      'Deploy it',
    ],
    [
      'the message of the turn, without the history',
      { prompt: 'old\nDeploy it', currentUserMessage: 'Deploy it' },
      {},
      'Deploy it',
    ],
    ['at most 8,000 characters', { prompt: 'x'.repeat(9000) }, {}, 'x'.repeat(8000)],
    ['no prompt for an image', { prompt: 'old', currentUserMessage: '' }, {}, undefined],
    ['no prompt at a heartbeat', { prompt: 'Read HEARTBEAT.md' }, { trigger: 'heartbeat' }, undefined],
    ['no prompt of another agent', { prompt: 'x' }, { trigger: 'user', inputProvenance: { kind: 'inter_session' } }, undefined],
    ["not OpenClaw's own workspace as a project", { prompt: 'x' }, { workspaceDir: '/home/ada/.openclaw/workspace' }, 'x'],
  ])('R-CLAW-16 with %s, and always repeats', async (_what, event, context, prompt) => {
    const { plugin: loaded, requests } = await answering(() => A_BRIEF);
    expect(await loaded.turn(event, context)).toEqual({ prependContext: 'From Helmdeck Memory: x' });
    const body = {
      ...(prompt !== undefined && { prompt }),
      ...('sessionId' in context && { folder: ROOT, session: 's1' }),
      repeat: true,
    };
    expect(requests).toEqual([{ path: '/api/v1/brief', token: 'Bearer a-hook-token', body }]);
  });

  test.each([
    { events: ['session'], body: { folder: ROOT, session: 's1', repeat: true } },
    { events: ['prompt'], body: { prompt: 'Deploy it', folder: ROOT } },
    { events: [], body: undefined },
  ])('R-CLAW-16 only for the chosen events $events', async ({ events, body }) => {
    const { plugin: loaded, requests } = await answering(() => A_BRIEF, { events });
    const said = await loaded.turn({ prompt: 'Deploy it' }, { sessionId: 's1', workspaceDir: ROOT });
    expect(said).toEqual(body && { prependContext: 'From Helmdeck Memory: x' });
    expect(requests.map((request) => request.body)).toEqual(body === undefined ? [] : [body]);
  });

  test('R-CLAW-16 and is silent if there is nothing to say, or if it cannot ask', async () => {
    const answers = [NO_BRIEF, '{}', '[]', '"', '{"text":7}'];
    let answer: string | undefined = '';
    const { plugin: loaded } = await answering(() => answer);
    for (answer of answers) expect(await loaded.turn({ prompt: 'x' })).toBeUndefined();
    const folder = tempFolder();
    const tokenFile = writeToken(folder, 'a-token');
    for (const config of [undefined, { folder, tokenFile }]) expect(await load(config).turn({ prompt: 'x' })).toBeUndefined();
  });

  test('R-CLAW-16 and gives up within 300 ms, if the program hangs', async () => {
    const { plugin: loaded } = await answering(() => undefined);
    const mute = await endpointOf(createTcp(() => undefined));
    writeToken(mute.folder, 'a-hook-token', 'openclaw.hook.token');
    for (const { turn, options } of [loaded, load(mute)]) {
      const waited = await measureWait(async () => expect(await turn({ prompt: 'x' })).toBeUndefined());
      expect(waited).toBeLessThan(300);
      expect(options['before_prompt_build']).toEqual({ timeoutMs: 2000 });
    }
  });
});

async function endpointOf(server: Server | TcpServer, key = 'cd'.repeat(32)): Promise<{ folder: string; tokenFile: string }> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const folder = tempFolder();
  const endpoint = { url: `http://127.0.0.1:${port}`, pid: process.pid, instance: 'x', proof_key: key };
  writeFileSync(join(folder, 'endpoint.json'), JSON.stringify(endpoint), { mode: 0o600 });
  return { folder, tokenFile: writeToken(folder, 'a-token') };
}

describe('the plugin changes tool calls', () => {
  test('R-CLAW-06 memory_search without a corpus searches all of them, and one with a corpus is unchanged', () => {
    const { hook, options } = load();
    expect(options['before_tool_call']).toEqual({ matcher: ['memory_search', 'memory_get'] });
    expect(hook({ toolName: 'memory_search', params: { query: 'x', maxResults: 3 } })).toEqual({
      params: { query: 'x', maxResults: 3, corpus: 'all' },
    });
    for (const corpus of ['memory', 'wiki', 'all', 'sessions'])
      expect(hook({ toolName: 'memory_search', params: { query: 'x', corpus } })).toBeUndefined();
    expect(hook({ toolName: 'exec', params: {} })).toBeUndefined();
  });

  test('R-CLAW-06 memory_get of our paths uses the plugin, and other paths are unchanged', () => {
    const { hook } = load();
    const path = 'helmdeck/user_facts/preferences/editor';
    expect(hook({ toolName: 'memory_get', params: { path, corpus: 'memory' } })).toEqual({ params: { path, corpus: 'wiki' } });
    for (const params of [{ path: 'MEMORY.md' }, { path: 'memory/2026-01-01.md' }, { path: 7 }, {}])
      expect(hook({ toolName: 'memory_get', params })).toBeUndefined();
  });
});

test('R-CLAW-07 the prompt mentions the memory only while it runs, and storing only if the tool is available', async () => {
  const memory = await connected();
  const both = new Set(['memory_search', 'helmdeck__memory_store']);
  expect(memory.prompt({ availableTools: both }).join('\n')).toMatch(/`memory_search` also finds[^]*helmdeck__memory_store/);
  const hidden = new Set(['memory_search', 'tool_search']);
  expect(memory.prompt({ availableTools: hidden }).join('\n')).toMatch(/helmdeck__memory_store`, which `tool_search` finds/);
  expect(memory.prompt({ availableTools: new Set(['memory_search']) }).join('\n')).not.toContain('memory_store');
  expect(memory.prompt({ availableTools: new Set(['exec']) })).toEqual([]);
  await memory.listener.close();
  expect(memory.prompt({ availableTools: both })).toEqual([]);
});

test('R-CLAW-08 the plugin matches its manifest, needs only Node, and replaces no other memory', () => {
  const manifest = JSON.parse(readFileSync(join(FOLDER, 'openclaw.plugin.json'), 'utf8')) as Record<string, unknown>;
  const described = JSON.parse(readFileSync(join(FOLDER, 'package.json'), 'utf8')) as Record<string, unknown>;
  expect([manifest['id'], described['name'], plugin.id]).toEqual(Array(3).fill('helmdeck-memory'));
  expect(manifest['version']).toBe(described['version']);
  // The exclusive slot, which would replace the user's own memory.
  expect(manifest).not.toHaveProperty('kind');
  expect(described).not.toHaveProperty('dependencies');
  const imported = readFileSync(join(FOLDER, 'index.js'), 'utf8').matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g);
  expect([...imported].map(([, name]) => name).filter((name) => !name?.startsWith('node:'))).toEqual([]);
});
