import { readdirSync } from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { RESERVED_KEY_PREFIXES } from '../../src/contract/categories.ts';
import { TTL } from '../../src/contract/limits.ts';
import type { OperationName } from '../../src/contract/operations.ts';
import { disguises } from '../support/disguises.ts';
import { sendRequest as request } from '../support/listener.ts';
import { aCaller } from '../support/memory.ts';
import { machineSlowness } from '../support/work.ts';
import { TABLE } from './refusals.ts';
import { type Name, type Outcome, searcher, WIRES } from './wires.ts';
import { openWorld, type Surface, type World } from './world.ts';

// An agent with a valid token that was tricked by a prompt injection.

const spellings = ['pack_history', 'pipeline_history'].flatMap((name) =>
  Object.values(disguises).map((disguise) => disguise(name)),
);

async function served(options: Parameters<typeof openWorld>[0] = {}): Promise<World> {
  const world = await openWorld(options);
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world;
}

/** A memory with all wires open for the subject `me`. */
async function opened(...options: Parameters<typeof served>): Promise<World & { at: (name: Name) => Surface; all: Surface[] }> {
  const world = await served(...options);
  const surfaces = await world.surfaces();
  return { ...world, all: [...surfaces.values()], at: (name) => found(surfaces, name) };
}

function found(surfaces: ReadonlyMap<Name, Surface>, name: Name): Surface {
  const surface = surfaces.get(name);
  if (!surface) throw new Error(`${name} is not open.`);
  return surface;
}

const speakers = (surfaces: Iterable<Surface>, operation: string, input: unknown): Surface[] =>
  [...surfaces].filter(({ name }) => WIRES[name].can(operation, input));

/** Some wires are read-only. */
const writing = (surfaces: Iterable<Surface>): Surface[] => speakers(surfaces, 'remember', { key: 'k', value: 'v' });

test('every row records its author, token and transport (R-ISO-02, R-VIEW-05, R-SEAL-01)', async () => {
  const { all, at, state, clock } = await opened();
  const since = new Date(clock.now()).toISOString();
  for (const turn of [1, 2, 3]) {
    for (const { ask, name } of writing(all)) {
      // The author in an imported line is ignored.
      const claims = name === 'a line of an import' ? { client: 'the owner', created_at: '2020-01-01T00:00:00Z' } : {};
      expect(await ask('remember', { key: `shared`, value: `${name} ${turn}`, ...claims })).toHaveProperty('answer');
      expect(await ask('remember', { key: `own/${name}`, value: `${turn}`, ...claims })).toHaveProperty('answer');
    }
    for (const { ask } of speakers(all, 'patch', { key: 'shared', tags: [] }))
      await ask('patch', { key: 'shared', tags: [`${turn}`] });
  }
  await at('REST').ask('undo', { client: 'agent MCP SSE', since });
  const { facts, activity } = await state();
  const known = new Set(all.map(({ author }) => JSON.stringify(author)));
  const rows = [...facts, ...facts.flatMap(({ versions }) => versions), ...activity];
  const theirs = rows.filter(({ author }) => author.origin !== 'undo');
  expect(rows.length).toBeGreaterThan(70);
  expect(theirs.filter(({ author }) => !known.has(JSON.stringify(author)))).toEqual([]);
  // A restored fact shows its author and that it was restored.
  const clients = new Set(all.map(({ author }) => author.client));
  expect(rows.filter(({ author }) => !clients.has(author.client))).toEqual([]);
  expect(facts.map(({ key }) => key)).not.toContain('own/MCP SSE');
  const own = facts.filter(({ key }) => key.startsWith('own/'));
  expect(own).toHaveLength(writing(all).length - 1);
  for (const { key, author } of own) expect(author).toEqual(at(key.slice('own/'.length) as Name).author);
});

describe('filling the memory (R-FACT-16)', () => {
  test('stops exactly at the limit on every wire, while changing and forgetting still work', async () => {
    const { all, at, state } = await opened({ quota: { facts: 5, bytes: 1_000_000 } });
    for (const { name, ask } of writing(all)) {
      await at('in process').ask('forget', { scope: 'facts' });
      const outcomes: Outcome[] = [];
      for (let n = 0; n < 7; n += 1) outcomes.push(await ask('remember', { key: `k${n}`, value: 'v' }));
      expect(
        outcomes.map((outcome) => 'answer' in outcome),
        name,
      ).toEqual([true, true, true, true, true, false, false]);
      expect((await state()).facts, name).toHaveLength(5);
      expect(await ask('remember', { key: 'k0', value: 'another' }), name).toMatchObject({ answer: { status: 'updated' } });
      expect(await at('REST').ask('forget', { scope: 'key:k0' })).toMatchObject({ answer: { deleted: 1 } });
      expect(await ask('remember', { key: 'k6', value: 'v' }), name).toMatchObject({ answer: { status: 'created' } });
      expect(await ask('remember', { key: 'k7', value: 'v' }), name).toHaveProperty('refused');
    }
  });

  test('concurrently does not exceed the limit, and other subjects are neither refused nor delayed', async () => {
    const world = await opened({ quota: { facts: 40, bytes: 1_000_000 } });
    const flood = writing(world.all).filter(({ name }) => name !== 'the command line');
    const other = found(await world.surfaces({ subject: 'other' }), 'REST');
    const outcomes: Outcome[] = [];
    const flooded = new AbortController();
    // Eight requests of each kind are always in progress.
    const under = flood.flatMap(({ ask, name }) =>
      Array.from({ length: 8 }, async (_, line) => {
        for (let n = 0; !flooded.signal.aborted; n += 1)
          outcomes.push(await ask('remember', { key: `${name} ${line} ${n}`, value: 'v' }));
      }),
    );
    const answered: number[] = [];
    for (let n = 0; n < 20; n += 1) {
      expect(await other.ask('remember', { key: `k${n}`, value: 'v' })).toMatchObject({ answer: { status: 'created' } });
      answered.push(outcomes.length);
    }
    flooded.abort();
    await Promise.all(under);
    const between = answered.map((count, turn) => count - (answered[turn - 1] ?? 0));
    expect(Math.max(...between), between.join(' ')).toBeLessThan(5 * under.length);
    expect(outcomes.filter((outcome) => 'answer' in outcome)).toHaveLength(40);
    expect((await world.state()).facts).toHaveLength(40);
    expect((await world.state('other')).facts).toHaveLength(20);
  });
});

test('no wire gives access to the memory of another subject (R-ISO-01, R-ISO-02, R-REST-04)', async () => {
  const world = await opened();
  const [ada, bob] = [await world.surfaces({ subject: 'ada' }), await world.surfaces({ subject: 'bob' })];
  const secret = 'adas-own-words';
  await found(ada, 'REST').ask('remember', { key: 'diary', value: `${secret} one`, tags: [secret], category: secret });
  await found(ada, 'MCP SSE').ask('remember', { key: 'diary', value: `${secret} two`, tags: [secret], category: secret });
  await found(ada, 'REST').ask('remember', { key: `${secret}/x`, value: secret });
  await found(ada, 'REST').ask('remember', { key: 'third', value: secret });
  const page = (await found(ada, 'REST').ask('list', { limit: 1 })).answer;
  const cursor = String(page?.['next_cursor']);
  await found(bob, 'REST').ask('remember', { key: 'mine', value: 'of bob' });
  const before = await world.state('ada');

  const names = [
    'diary',
    'ada:diary',
    'ada/diary',
    'ada\u001fdiary',
    '../ada/diary',
    'fact/ada/diary',
    '%',
    '_____',
    '*',
    `${secret}/x`,
  ];
  const chosen = { subject: 'ada', namespace: 'ada', session: 'ada', caller: 'ada', sub: 'ada' };
  const attempts: (readonly [string, object])[] = [
    ...names.flatMap((key): (readonly [string, object])[] => [
      ['recall', { key }],
      ['history', { key }],
      ['patch', { key, ttl_seconds: 3600 }],
      ['patch', { key, tags: ['bob'] }],
      ['forget', { scope: `key:${key}` }],
      ['forget', { scope: `prefix:${key}` }],
    ]),
    ...Object.entries(chosen).flatMap(([field, value]): (readonly [string, object])[] => [
      ['recall', { key: 'diary', [field]: value }],
      ['forget', { scope: 'all', [field]: value }],
      ['remember', { key: 'diary', value: 'x', [field]: value }],
      ['search', { query: secret, [field]: value }],
      ['list', { values: true, [field]: value }],
      ['query', { query: secret, [field]: value }],
    ]),
    ['search', { query: secret }],
    ['search', { query: '' }],
    ['search', { query: 'subject:ada diary', category: secret }],
    ['query', {}],
    ['query', { query: secret, limit: 100 }],
    ['query', { query: 'diary', collections: [`helmdeck-${secret}`] }],
    ['query', { searches: [{ type: 'lex', query: 'subject:ada diary' }], collections: ['helmdeck-ada', 'ada'] }],
    ['list', { values: true }],
    ['list', { values: true, prefix: 'd' }],
    ['list', { values: true, category: secret }],
    ['list', { values: true, tag: secret }],
    ['list', { values: true, client: 'agent REST', limit: 200 }],
    ['list', { values: true, cursor }],
    ['list', { values: true, cursor, sort: 'updated', limit: 200 }],
    ['activity', {}],
    ['activity', { all: true }],
    ['activity', { cursor }],
    ['callers', {}],
    ['export', {}],
    ['myMemory', {}],
    ['context', {}],
    ['undo', { client: 'agent REST', since: '2000-01-01T00:00:00Z', dry_run: true }],
    ['forget', { scope: `tag:${secret}` }],
    ['forget', { scope: `category:${secret}` }],
    ['forget', { scope: 'client:agent MCP SSE' }],
    ['undo', { client: 'agent REST', since: '2000-01-01T00:00:00Z' }],
    ['forget', { scope: 'all' }],
    ['remember', { key: 'diary', value: 'of bob' }],
    ['remember', { key: `${secret}/x`, value: 'of bob', category: 'mine' }],
  ];
  let tried = 0;
  for (const [operation, input] of attempts) {
    for (const { name, ask } of speakers(bob.values(), operation, input)) {
      tried += 1;
      const outcome = await ask(operation, input);
      // Bob may see his own key of that name, but nothing of Ada's.
      const heard = JSON.stringify(outcome.answer ?? {}).replaceAll(JSON.stringify(`${secret}/x`).slice(1, -1), '');
      const scope = (input as { scope?: string }).scope ?? '';
      expect(heard.replaceAll(scope, ''), `${name}: ${operation} ${JSON.stringify(input)}`).not.toContain(secret);
    }
  }
  expect(tried).toBeGreaterThan(400);
  for (const { name, ask } of speakers(bob.values(), 'callers', {}))
    expect(await ask('callers', {}), name).toEqual({ answer: { callers: [{ namespace: 'bob', count: 2 }] } });
  const bobs = (await world.tokens.mint({ name: 'q', client: 'q', subject: 'bob', scopes: ['memory:read'], days: 1 })).token;
  const search = await searcher(world.url, bobs);
  onTestFinished(search.close);
  for (const query of [secret, '', 'diary', 'ada'])
    expect(
      JSON.stringify(await search.query({ query, collections: [`helmdeck-${secret}`, 'helmdeck-user_facts'], limit: 100 })),
    ).not.toContain(`${secret} `);
  expect(await world.state('ada')).toEqual(before);
  const owner = await world.at('the owner route').ask('callers', {});
  expect(owner).toMatchObject({
    answer: {
      callers: [
        { namespace: 'ada', count: 3 },
        { namespace: 'bob', count: 2 },
      ],
    },
  });
});

test('no wire accepts any spelling of a reserved name (R-FACT-04, R-FACT-07)', async () => {
  const { all, at, state } = await opened();
  await at('REST').ask('remember', { key: 'there', value: 'v' });
  const before = await state();
  expect(spellings).toHaveLength(38);
  const prefixes = [...RESERVED_KEY_PREFIXES, 'pack_history／'];
  const attempts: (readonly [string, object])[] = [
    ...spellings.flatMap((name): (readonly [string, object])[] => [
      ['remember', { key: 'k', value: 'v', category: name }],
      ['remember', { key: `${name}/x`, value: 'v' }],
      ['patch', { key: 'there', category: name }],
    ]),
    ...prefixes.flatMap((prefix): (readonly [string, object])[] => [
      ['remember', { key: prefix, value: 'v' }],
      ['remember', { key: `${prefix}github.list_issues/00000000000000000001`, value: '{"outcome":"ok"}' }],
    ]),
  ];
  let tried = 0;
  for (const [operation, input] of attempts) {
    for (const { name, ask } of speakers(all, operation, input)) {
      tried += 1;
      const { refused } = await ask(operation, input);
      expect(refused?.message, `${name}: ${JSON.stringify(input)}`).toMatch(/^(?:key|category) /);
    }
  }
  expect(tried).toBeGreaterThan(38 * (2 * 8 + 4));
  expect(await state()).toEqual(before);
});

test('a key is never used as a path, pattern, markup or address (R-STORE-08, R-QMD-04)', async () => {
  const { all, at, state, folder, tokens, url } = await opened();
  const keys = [
    '..',
    '.',
    '../../../etc/passwd',
    '/etc/passwd',
    'C:\\Windows',
    '%',
    '_',
    '*',
    '.*',
    '$(id)',
    '`id`',
    "'; DROP TABLE entry; --",
  ];
  const odd = [
    ...keys,
    '<b>x</b>',
    '%2e%2e%2f',
    'a?b#c',
    'a\\b',
    'file:///x',
    '[x](javascript:y)',
    '{{x}}',
    '${x}',
    'x%',
    'x_..*',
  ];
  const writers = writing(all);
  for (const [index, key] of odd.entries()) {
    const writer = writers[index % writers.length];
    expect(await writer?.ask('remember', { key, value: `about ${index}` }), key).toHaveProperty('answer');
  }
  expect(new Set((await state()).facts.map(({ key }) => key))).toEqual(new Set(odd));
  for (const [index, key] of odd.entries()) {
    for (const { name, ask } of speakers(all, 'recall', { key }))
      expect(await ask('recall', { key }), `${name} ${key}`).toMatchObject({ answer: { key, value: `about ${index}` } });
  }
  const { token } = await tokens.mint({ name: 'q', client: 'q', subject: 'me', scopes: ['memory:read'], days: 1 });
  const search = await searcher(url, token);
  onTestFinished(search.close);
  const { results } = await search.query({ limit: 100 });
  expect(results).toHaveLength(odd.length);
  for (const { file, snippet } of results) {
    expect(file).toMatch(/^facts\/[\w%.!~*'()-]+$/);
    expect(file.slice('facts/'.length)).not.toMatch(/^\.{1,2}$/);
    expect(odd).toContain(decodeURIComponent(file.slice('facts/'.length)));
    expect(snippet.match(/^## /gm)).toHaveLength(1);
  }
  // Keys are compared literally.
  for (const [prefix, count] of Object.entries({
    '%': 2,
    _: 1,
    '*': 1,
    '.': 4,
    '..': 2,
    '.*': 1,
    'C:': 1,
    'c:': 0,
    'x%': 1,
    X: 0,
  })) {
    const scope = `prefix:${prefix}`;
    for (const { name, ask } of speakers(all, 'forget', { scope, dry_run: true }))
      expect(await ask('forget', { scope, dry_run: true }), `${name} ${scope}`).toMatchObject({ answer: { deleted: count } });
    for (const { name, ask } of speakers(all, 'list', { prefix }))
      expect(await ask('list', { prefix }), `${name} ${prefix}`).toMatchObject({ answer: { facts: { length: count } } });
  }
  expect(await at('REST').ask('forget', { scope: 'key:%' })).toMatchObject({ answer: { deleted: 1 } });
  expect((await state()).facts).toHaveLength(odd.length - 1);
  // No key became a file.
  expect(
    readdirSync(folder).filter(
      (name) => !/^(?:memory\.db(?:-wal|-shm)?|lock\.db.*|endpoint\.json|owner-token|reserve.*|backups)$/.test(name),
    ),
  ).toEqual([]);
});

test('no input makes a fact live longer than a year from now (R-TIME-02, R-OPS-07)', async () => {
  const { all, at, state, clock, tokens, url } = await opened();
  const latest = async (): Promise<number> => Math.max(...(await state()).facts.map(({ expiresAt }) => expiresAt - clock.now()));
  const year = TTL.max * 1000;
  for (const { name, ask } of writing(all)) {
    for (let turn = 0; turn < 3; turn += 1) {
      await ask('remember', { key: name, value: `${turn % 2}`, ttl_seconds: TTL.max });
      if (WIRES[name].can('patch', { key: name, ttl_seconds: TTL.max })) await ask('patch', { key: name, ttl_seconds: TTL.max });
      expect(await latest(), name).toBe(year);
      await clock.advance(60_000);
    }
  }
  const { token } = await tokens.mint({ name: 'i', client: 'i', subject: 'me', scopes: ['memory:write'], days: 1 });
  const ends = ['9999-12-31T23:59:59Z', '2500-01-01T00:00:00.000Z'];
  const lines = ends.map((end, n) => JSON.stringify({ key: `far ${n}`, value: 'v', expires_at: end, ttl_seconds: TTL.max }));
  const wrong = ['+275760-09-13T00:00:00Z', '1e400', 'never', 0, null, '2026-02-30T00:00:00Z'];
  lines.push(...wrong.map((end, n) => JSON.stringify({ key: `wrong ${n}`, value: 'v', expires_at: end })));
  const headers = ['Content-Type', 'application/x-ndjson'];
  const { json } = await request(url, '/api/v1/memory/import', { token, headers, body: lines.join('\n') });
  expect(json).toMatchObject({ created: 2, errors: { length: wrong.length } });
  expect(await latest()).toBe(year);
  await at('REST').ask('undo', { client: 'agent REST', since: '2000-01-01T00:00:00Z' });
  expect(await latest()).toBeLessThanOrEqual(year);
});

test('no query may repeat a field, also not under both of its names (R-FACT-10)', async () => {
  const { tokens, url } = await served();
  const { token } = await tokens.mint({ name: 'p', client: 'p', subject: 'me', scopes: ['memory:read'], days: 1 });
  for (const query of ['q=a&q=b', 'q=a&query=b', 'query=b&q=a', 'limit=1&limit=2', 'q=a&limit=1&li%6Dit=2']) {
    expect(await request(url, `/api/v1/memory/search?${query}`, { token }), query).toMatchObject({
      status: 400,
      json: { error: 'invalid_input' },
    });
  }
});

describe('prototypes (R-ISO-05, R-FACT-10)', () => {
  const before = Object.getOwnPropertyNames(Object.prototype);
  const expectThemClean = (): void => {
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  };

  const evil = '{"polluted":true,"admin":true,"scopes":["admin"]}';

  test.each([
    ['POST', '/memory/store', `{"key":"k","value":"v","__proto__":${evil}}`],
    ['POST', '/memory/store', `{"key":"k","value":"v","constructor":{"prototype":${evil}}}`],
    ['POST', '/memory/store', `{"__proto__":{"key":"k","value":"v"}}`],
    ['POST', '/memory/store', `{"key":"k","value":"v","tags":{"__proto__":["a"],"length":1,"0":"a"}}`],
    ['POST', '/memory/store', `{"key":{"__proto__":"k","toString":"x"},"value":"v"}`],
    ['PATCH', '/memory/fact', `{"key":"there","__proto__":${evil}}`],
    ['POST', '/memory/forget', `{"__proto__":{"scope":"all"}}`],
    ['POST', '/memory/forget', `{"scope":{"__proto__":{"kind":"all"}}}`],
    ['POST', '/memory/undo', `{"client":"x","since":"2000-01-01T00:00:00Z","__proto__":${evil}}`],
    ['GET', `/memory/fact?key=there&__proto__=x`, undefined],
    ['GET', `/memory/facts?__proto__[polluted]=1`, undefined],
    ['GET', `/memory/facts?constructor.prototype.polluted=1`, undefined],
    ['GET', `/memory/search?q=x&__proto__=polluted`, undefined],
  ])('%s %s with %s is refused', async (method, path, body) => {
    const { perform, state, tokens, url } = await served();
    await perform(aCaller(), 'remember', { key: 'there', value: 'v' });
    const kept = await state();
    const { token } = await tokens.mint({
      name: 'p',
      client: 'p',
      subject: 'me',
      scopes: ['memory:read', 'memory:write'],
      days: 1,
    });
    const answer = await request(url, `/api/v1${path}`, { method, token, ...(body !== undefined && { body }) });
    expect([answer.status, answer.json.error], answer.text).toEqual([400, 'invalid_input']);
    expect(await state()).toEqual(kept);
    expectThemClean();
  });

  test('cannot be reached by MCP or import lines either', async () => {
    const { state, tokens, url } = await served();
    const { token } = await tokens.mint({
      name: 'p',
      client: 'p',
      subject: 'me',
      scopes: ['memory:read', 'memory:write'],
      days: 1,
    });
    const post = (body: string, headers: string[] = []) => request(url, '/api/v1/mcp', { token, body, headers });
    const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"__proto__":${evil}},"clientInfo":{"name":"x","version":"1","__proto__":${evil}}}}`;
    const session = ['Mcp-Session-Id', String((await post(hello)).headers['mcp-session-id'])];
    const call = (params: string) =>
      post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":${params},"__proto__":${evil}}`, session);
    for (const params of [
      `{"name":"memory_store","arguments":{"key":"k","value":"v","__proto__":${evil}}}`,
      `{"name":"memory_store","arguments":{"__proto__":{"key":"k","value":"v"}}}`,
      `{"name":"memory_forget","arguments":{"__proto__":{"scope":"all"}}}`,
      `{"name":"__proto__","arguments":{}}`,
      `{"name":"constructor","arguments":{}}`,
      `{"__proto__":{"name":"memory_store","arguments":{"key":"k","value":"v"}}}`,
    ]) {
      expect((await call(params)).text, params).toMatch(/"isError":true|"code":-32602/);
    }
    const line = `{"key":"k","value":"v","__proto__":${evil}}`;
    const headers = ['Content-Type', 'application/x-ndjson'];
    expect((await request(url, '/api/v1/memory/import', { token, headers, body: line })).json).toMatchObject({
      created: 0,
      errors: [{ line: 1 }],
    });
    expect((await state()).facts).toEqual([]);
    for (const method of ['__proto__', 'constructor', 'toString', 'tools/__proto__']) {
      expect((await post(`{"jsonrpc":"2.0","id":3,"method":"${method}"}`, session)).text).toMatch(/-32601/);
    }
    expectThemClean();
  });

  test('are not operations of the owner route', async () => {
    const { url, tokens } = await served();
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '%5F_proto__', 'remember%00'])
      expect(await request(url, `/api/v1/owner/${name}`, { token: tokens.ownerToken(), body: {} })).toMatchObject({
        status: 404,
      });
  });
});

/** The longest time in milliseconds for which `run` blocks the thread, on an idle machine. */
async function blocked(run: () => Promise<unknown>): Promise<number> {
  let over = false;
  let longest = 0;
  let last = process.threadCpuUsage();
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, (user + system) / 1000);
    last = process.threadCpuUsage();
    if (!over) setImmediate(look);
  };
  setImmediate(look);
  await run();
  await new Promise((resolve) => setImmediate(resolve));
  over = true;
  return longest;
}

describe('100 kB of anything (R-FACT-13)', () => {
  const KB = 1000;
  const times = (text: string, most: number): string => text.repeat(Math.ceil(most / text.length)).slice(0, most);
  /** Texts that make careless patterns, case folding, parsers and counters slow. */
  const baits: Readonly<Record<string, string>> = {
    letters: 'a',
    blanks: ' ',
    'line feeds': '\n',
    'marks upon a letter': '\u0301',
    'ligatures that expand': '\ufdfa',
    'letters that expand when folded': 'ΐ',
    'invisible characters': '\u200b',
    'half pairs': '\ud800',
    slashes: '/',
    brackets: '[({',
    'quotes and backslashes': '\\"',
    'beginnings of secrets': 'ghp_AKIA-----BEGIN PRIVATE KEY-----xoxb-eyJ',
    'names of passwords': 'password= : "',
    'one password after another': 'pass pwd key: secret=',
    'an address with a user': 'https://a:b@',
    'mail addresses': 'a@a.',
    'different words': 'w1 x2 y3 z4 q5 ',
    ideographs: '日本語',
    headings: '\n## ',
    wildcards: '%_*?.+',
  };

  const questions = (text: string): (readonly [OperationName, unknown])[] => [
    ['remember', { key: text, value: 'v' }],
    ['remember', { key: `k${text}`, value: 'v' }],
    ['remember', { key: 'k', value: text }],
    ['remember', { key: 'k', value: 'v', category: text }],
    ['remember', { key: 'k', value: 'v', tags: [text] }],
    ['remember', { key: 'k', value: 'v', tags: Array.from(text.slice(0, 33 * KB)) }],
    ['remember', { key: 'k', value: 'v', [text]: 1 }],
    ['patch', { key: 'there', tags: [text] }],
    ['forget', { scope: text, dry_run: true }],
    ['forget', { scope: `prefix:${text}`, dry_run: true }],
    ['forget', { scope: `pack:${text}`, dry_run: true }],
    ['list', { prefix: text }],
    ['list', { tag: text }],
    ['list', { client: text }],
    ['list', { category: text }],
    ['list', { cursor: text }],
    ['search', { query: text }],
    ['query', { query: text }],
    ['query', { searches: Array.from({ length: 32 }, () => ({ type: 'lex', query: text.slice(0, 3 * KB) })) }],
    ['undo', { client: text, since: text }],
    ['undo', { client: text, since: '2026-01-01T00:00:00Z' }],
    ['activity', { cursor: text }],
    ['import', { lines: [text] }],
    // Accepted text also passes through the secret guard and the search index.
    ['remember', { key: 'k', value: Buffer.from(text).toString('utf8', 0, 64 * KB) }],
    ['search', { query: text.slice(0, 1000) }],
    ['query', { query: text.slice(0, 1000) }],
  ];

  test.each(Object.entries(baits))('of %s block no other request for 50 ms', async (_what, bait) => {
    const { perform } = await served();
    const me = aCaller();
    for (let n = 0; n < 50; n += 1)
      await perform(me, 'remember', { key: `there${n}`, value: `a fact of a few words, ${n}`, tags: ['t'] });
    const text = times(bait, 100 * KB);
    const slow: string[] = [];
    for (const [operation, input] of questions(text)) {
      const run = () => blocked(() => perform(me, operation, input).catch(() => undefined));
      // Repeated up to five times, because other work of the machine can delay a run.
      let least = await run();
      for (let turn = 0; turn < 4 && least >= 50; turn += 1) least = Math.min(least, await run());
      if (least >= 50) least /= machineSlowness();
      if (least >= 50) slow.push(`${operation} ${JSON.stringify(input).slice(0, 60)}: ${least.toFixed(0)} ms`);
    }
    expect(slow).toEqual([]);
  });

  test('block no other HTTP request either', async () => {
    const { url, tokens } = await served();
    const { token } = await tokens.mint({
      name: 'p',
      client: 'p',
      subject: 'me',
      scopes: ['memory:read', 'memory:write'],
      days: 1,
    });
    const bodies = ['[', '{"a":', '"', '\\u0000', '1', '{"key":"k","value":"v","tags":[', ' '].map((bait) =>
      times(bait, 100 * KB),
    );
    for (const body of [...bodies, `{"key":"k","value":"${'\\u0061'.repeat(16 * KB)}"}`]) {
      let least = Infinity;
      for (let turn = 0; turn < 5 && least >= 50; turn += 1) {
        least = Math.min(least, await blocked(() => request(url, '/api/v1/memory/store', { token, body })));
        least = Math.min(least, await blocked(() => request(url, '/api/v1/mcp', { token, body })));
      }
      expect(least < 50 ? least : least / machineSlowness(), body.slice(0, 20)).toBeLessThan(50);
    }
  });
});

test('no refusal, log or terminal output quotes a fact (R-FACT-11, R-ERR-03)', async () => {
  const written: string[] = [];
  const listen = (chunk: unknown): boolean => written.push(String(chunk)) > 0;
  vi.spyOn(process.stdout, 'write').mockImplementation(listen);
  vi.spyOn(process.stderr, 'write').mockImplementation(listen);
  for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const)
    vi.spyOn(console, method).mockImplementation((...all: unknown[]) => listen(all));
  const canary = 'kanarienvogel';
  const { all, at, log, store } = await opened();
  await at('REST').ask('remember', { key: canary, value: canary, tags: [canary], category: canary });
  const marked = (value: unknown): unknown => {
    if (typeof value === 'string') return value.trim() === '' ? value : `${value}${canary}`;
    if (Array.isArray(value)) return value.map(marked);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, marked(one)]));
  };
  const said: string[] = [];
  const tell = async ({ ask, name }: Surface, operation: string, input: unknown): Promise<void> => {
    if (!WIRES[name].can(operation, input)) return;
    const { refused } = await ask(operation, input);
    if (refused) said.push(`${name}: ${refused.message}`);
  };
  for (const { operation, input } of Object.values(TABLE).flat()) {
    const spoken = marked(input);
    for (const surface of all) {
      await tell(surface, operation, spoken);
      await tell(surface, operation, typeof spoken === 'object' ? { ...spoken, [canary]: canary } : spoken);
    }
  }
  // Also for unexpected errors.
  vi.spyOn(store, 'space').mockImplementation(() => {
    throw new Error(`${canary} in /home/me`);
  });
  for (const surface of all) {
    await tell(surface, 'remember', { key: canary, value: canary });
    await tell(surface, 'recall', { key: canary });
    await tell(surface, 'query', { query: canary });
  }
  vi.restoreAllMocks();
  expect(said.length).toBeGreaterThan(900);
  expect(said.filter((sentence) => sentence.includes(canary))).toEqual([]);
  // A search succeeds, because it uses only the index.
  const broken = [...speakers(all, 'remember', { key: canary, value: canary }), ...speakers(all, 'recall', { key: canary })]
    .length;
  expect(said.filter((sentence) => sentence.includes('had an internal error'))).toHaveLength(broken);
  expect(log.length).toBeGreaterThan(5);
  expect(JSON.stringify(log)).not.toContain(canary);
  expect(written.join('\n')).not.toContain(canary);
});
