import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { fileSource } from '../../src/core/crypto/keys/file-source.ts';
import { systemClock } from '../../src/core/time/clock.ts';
import { restInputSchema, restTable } from '../../src/listeners/rest-routes.ts';
import { createClientHome } from '../support/clients.ts';
import { manualClock, MINUTE } from '../support/clock.ts';
import { sendRequest, ALL_ROUTES, serve, type ServedMemory, EVENTUALLY } from '../support/listener.ts';
import { aPack } from '../support/packs.ts';
import { openFileStore } from '../support/store.ts';
import { filesBelow, tempFolder } from '../support/temp-folder.ts';
import { MCP, openSession, QMD, openStream } from './mcp/mcp-client.ts';

const as = ({ url }: ServedMemory, token: string) => ({
  get: (path: string) => sendRequest(url, `/api/v1${path}`, { token }),
  post: (path: string, body: object = {}) => sendRequest(url, `/api/v1${path}`, { token, body }),
  patch: (path: string, body: object) => sendRequest(url, `/api/v1${path}`, { method: 'PATCH', token, body }),
  delete: (path: string) => sendRequest(url, `/api/v1${path}`, { method: 'DELETE', token }),
});

async function served() {
  const all = await serve();
  return {
    ...all,
    owner: as(all, all.owner),
    me: as(all, await all.token('me', undefined, 'claude-code')),
    you: as(all, await all.token('you')),
  };
}

const aFact = { key: 'preferences/editor', value: 'Helix', category: 'Preferences', tags: ['editor', 'editor'] };

describe('facts', () => {
  test('are stored, and the receipt shows the stored form (R-REST-01)', async () => {
    const { me } = await served();
    const { status, json } = await me.post('/memory/store', aFact);
    expect(status).toBe(200);
    expect(json).toMatchObject({ key: 'preferences/editor', category: 'preferences', tags: ['editor'], status: 'created' });
    expect(Date.parse(String(json['expires_at']))).toBeGreaterThan(Date.now());
    expect((await me.post('/memory/store', { ...aFact, value: 'Vim' })).json['status']).toBe('updated');
    expect((await me.post('/memory/store', { ...aFact, value: 'Vim' })).json['status']).toBe('unchanged');
  });

  test('are forgotten by scope, and counted with dry_run (R-REST-02)', async () => {
    const { me, you } = await served();
    await me.post('/memory/store', aFact);
    await you.post('/memory/store', aFact);
    expect((await me.post('/memory/forget', { scope: 'facts', dry_run: true })).json).toMatchObject({
      deleted: 1,
      dry_run: true,
    });
    expect((await me.post('/memory/forget', { scope: 'key:preferences/editor' })).json).toEqual({
      scope: 'key:preferences/editor',
      deleted: 1,
      purged: true,
      older_backups: 0,
    });
    expect((await me.get('/memory/fact?key=preferences/editor')).status).toBe(404);
    expect((await you.get('/memory/fact?key=preferences/editor')).status).toBe(200);
  });

  test('are found by their words, with the reason (R-REST-08)', async () => {
    const { me, you } = await served();
    await me.post('/memory/store', aFact);
    expect((await me.get('/memory/search?q=which+editor%3F&limit=5')).json).toEqual({
      hits: [
        {
          key: 'preferences/editor',
          category: 'preferences',
          tags: ['editor'],
          client: 'claude-code',
          updated_at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
          score: expect.any(Number) as number,
          probability: expect.any(Number) as number,
          snippet: 'Helix',
          value: 'Helix',
          expires_at: expect.any(String) as string,
          why: expect.stringMatching(/editor/) as string,
        },
      ],
    });
    expect((await me.get('/memory/search?q=emacs')).json).toEqual({ hits: [] });
    // Also by the full name, which error messages use.
    expect((await me.get('/memory/search?query=emacs')).json).toEqual({ hits: [] });
    expect((await me.get('/memory/search?query=editor')).json).toMatchObject({ hits: [{ key: 'preferences/editor' }] });
    expect((await you.get('/memory/search?q=editor')).json).toEqual({ hits: [] });
    expect((await me.get('/memory/search')).status).toBe(400);
  });

  test('are listed in pages (R-REST-05)', async () => {
    const { me } = await served();
    for (let fact = 0; fact < 5; fact += 1)
      await me.post('/memory/store', { key: `k/${fact}`, value: 'v', tags: [`t${fact % 2}`] });
    const first = await me.get('/memory/facts?limit=2');
    const keys = (json: object) => (json as { facts: { key: string }[] }).facts.map(({ key }) => key);
    expect(keys(first.json)).toEqual(['k/4', 'k/3']);
    expect(JSON.stringify(first.json)).not.toContain('value');
    const second = await me.get(`/memory/facts?limit=3&values=1&cursor=${String(first.json['next_cursor'])}`);
    expect(keys(second.json)).toEqual(['k/2', 'k/1', 'k/0']);
    expect(second.json['next_cursor']).toBeUndefined();
    expect(second.text).toContain('"value":"v"');
    expect(keys((await me.get('/memory/facts?tag=t1&sort=expires&client=claude-code&prefix=k%2F')).json)).toEqual(['k/1', 'k/3']);
    expect(keys((await me.get('/memory/facts?category=other')).json)).toEqual([]);
    expect(keys((await me.get('/memory/facts?expiring_within=3600')).json)).toEqual([]);
  });

  test('are read and changed individually (R-REST-06)', async () => {
    const { me } = await served();
    await me.post('/memory/store', aFact);
    expect((await me.get('/memory/fact?key=preferences%2Feditor')).json).toMatchObject({ value: 'Helix', client: 'claude-code' });
    const changed = await me.patch('/memory/fact', { key: aFact.key, ttl_seconds: 3600, tags: ['vim'] });
    expect(changed.json).toMatchObject({ key: aFact.key, tags: ['vim'], category: 'preferences' });
    expect(changed.json).not.toHaveProperty('value');
    for (const answer of [await me.get('/memory/fact?key=x'), await me.patch('/memory/fact', { key: 'x', ttl_seconds: 0 })]) {
      expect([answer.status, answer.json.error]).toEqual([404, 'not_found']);
    }
    expect((await me.get('/memory/fact')).json).toMatchObject({
      error: 'invalid_input',
      message: expect.stringContaining('key'),
    });
  });

  test('have a history (R-REST-07)', async () => {
    const { me } = await served();
    for (const value of ['one', 'two', 'three']) await me.post('/memory/store', { key: 'a', value });
    const { json } = await me.get('/memory/history?key=a');
    expect((json as unknown as { versions: { value: string }[] }).versions.map(({ value }) => value)).toEqual(['two', 'one']);
    expect((await me.get('/memory/history?key=b')).status).toBe(404);
  });

  test('that a client wrote can be undone (R-REST-10)', async () => {
    const { me, owner } = await served();
    await owner.post('/memory/store', { key: 'a', value: 'mine' });
    const since = new Date(Date.now() + 5).toISOString();
    await new Promise((resolve) => setTimeout(resolve, 10));
    await me.post('/memory/store', { key: 'a', value: 'overwritten' });
    await me.post('/memory/store', { key: 'b', value: 'made' });
    const { json } = await owner.post('/memory/undo', { client: 'claude-code', since });
    expect(json).toMatchObject({ removed: 1, restored: 1, skipped: [] });
    expect((await owner.get('/memory/fact?key=a')).json['value']).toBe('mine');
  });
});

describe('views', () => {
  test('show the own namespace, and all namespaces to an admin (R-REST-04)', async () => {
    const { me, you, owner } = await served();
    await me.post('/memory/store', aFact);
    await you.post('/memory/store', { key: 'a', value: 'b' });
    expect((await me.get('/memory')).json).toMatchObject({
      scope: 'caller=me',
      categories: [{ name: 'preferences', count: 1, recent_keys: ['preferences/editor'] }],
    });
    expect((await you.get('/memory/context')).text).toContain('"value":"b"');
    expect((await you.get('/memory/callers')).json).toEqual({ callers: [{ namespace: 'you', count: 1 }] });
    expect((await owner.get('/memory/callers')).json['callers']).toHaveLength(2);
  });

  test('list who did what, and with which client (R-REST-12)', async () => {
    const { me } = await served();
    await me.post('/memory/store', aFact);
    await me.post('/memory/forget', { scope: 'category:preferences' });
    const first = await me.get('/activity?limit=1');
    expect(first.json['activity']).toMatchObject([{ operation: 'forget', client: 'claude-code', scope: 'category:preferences' }]);
    const second = await me.get(`/activity?cursor=${String(first.json['next_cursor'])}`);
    expect(second.json['activity']).toMatchObject([{ operation: 'remember', key: 'preferences/editor' }]);
  });

  test('show version and state, and no secret (R-REST-14)', async () => {
    const all = await served();
    const { me, url } = all;
    expect((await me.get('/version')).json).toEqual({ version: '1.2.3' });
    await me.post('/memory/store', aFact);
    const { json, text } = await me.get('/status');
    expect(json).toMatchObject({
      versions: { program: '1.2.3', node: process.versions.node },
      listener: { at: 'listening', url },
      store: { kept: 'memory', key: { at: 'ephemeral' }, file: { at: 'open' } },
      embeddings: { at: 'off' },
      facts: 1,
      expiring_soon: 0,
    });
    for (const secret of [all.tokens.ownerToken(), aFact.key, aFact.value, all.folder]) expect(text).not.toContain(secret);
  });
});

describe('admin operations', () => {
  test('are refused without an admin token (R-REST-13)', async () => {
    const { me } = await served();
    const answers = await Promise.all([
      me.get('/tokens'),
      me.get('/clients'),
      me.post('/tokens', { name: 'x' }),
      me.delete('/tokens/abc'),
      me.get('/window-sessions'),
      me.delete('/window-sessions/abcdefabcdef'),
      ...['/lock', '/unlock', '/key/rotate', '/backup', '/updates'].map((path) => me.post(path)),
    ]);
    expect(answers.map(({ status, json }) => [status, json.error])).toEqual(answers.map(() => [403, 'insufficient_scope']));
  });

  test('list connected programs', async () => {
    const all = await serve();
    expect((await as(all, all.owner).get('/clients')).json).toEqual({ clients: [] });
  });

  test('create, list and revoke tokens', async () => {
    const all = await serve();
    const owner = as(all, all.owner);
    const made = await owner.post('/tokens', { name: 'OpenClaw', client: 'openclaw', subject: 'you', scopes: ['memory:read'] });
    const [id, token] = [String(made.json['id']), String(made.json['token'])];
    const program = as(all, token);
    expect((await program.get('/memory')).json['scope']).toBe('caller=you');
    expect((await owner.get('/tokens')).json['tokens']).toMatchObject([
      { id, name: 'OpenClaw', client: 'openclaw', subject: 'you' },
    ]);
    expect((await owner.get('/tokens')).text).not.toContain(token);
    expect((await owner.delete(`/tokens/${id}`)).json).toEqual({ id });
    expect((await program.get('/memory')).status).toBe(401);
    expect((await owner.delete('/tokens/nobodys')).status).toBe(404);
    expect((await owner.delete('/tokens/nobodys?unrecorded=true')).json).toEqual({ id: 'nobodys' });
    expect((await owner.delete('/tokens/nobodys?id=other')).json.error).toBe('invalid_input');
    expect((await owner.delete('/tokens/a%20b')).json.error).toBe('invalid_input');
    expect((await owner.delete('/tokens/%2B+')).json.error).toBe('not_found');
  });

  test('lock, unlock, rotate and back up', async () => {
    const folder = tempFolder();
    const key = fileSource(folder);
    await key.save('current', randomBytes(32));
    const store = await openFileStore(folder, systemClock, () => [key]);
    const all = await serve({ store, folder });
    const owner = as(all, all.owner);
    await owner.post('/memory/store', aFact);
    expect((await owner.post('/key/rotate')).json).toMatchObject({ key: { at: 'ok' } });
    expect((await owner.post('/backup')).json).toMatchObject({ broken: 0, file: expect.any(String) });
    expect((await owner.post('/memory/forget', { scope: 'facts', dry_run: true })).json).toMatchObject({ older_backups: 1 });
    expect((await owner.post('/lock')).json).toMatchObject({ key: { at: 'locked' } });
    const locked = await owner.get('/memory/fact?key=preferences/editor');
    expect([locked.status, locked.json.error]).toEqual([503, 'key_unavailable']);
    expect((await owner.post('/unlock')).json).toMatchObject({ key: { at: 'ok' } });
    expect((await owner.get('/memory/fact?key=preferences/editor')).json['value']).toBe('Helix');
    expect((await owner.post('/backup', { more: 1 })).json.error).toBe('invalid_input');
  });
});

test('a rate-limited client gets Retry-After (R-ERR-06)', async () => {
  const { url, token } = await serve({ writesPerMinute: 1 });
  const mine = await token();
  const store = () => sendRequest(url, '/api/v1/memory/store', { token: mine, body: { key: 'a', value: 'b' } });
  await store();
  const { status, json, headers } = await store();
  expect([status, json.error]).toEqual([429, 'rate_limited']);
  expect(Number(headers['retry-after'])).toBeGreaterThan(0);
});

test('missing and invalid query fields are refused in terms of the query (R-FACT-11)', async () => {
  const { owner } = await served();
  const saying = async (path: string) => (await owner.get(path)).json.message;
  expect(await saying('/memory/fact')).toBe('key is missing; send it as text.');
  expect(await saying('/memory/search')).toBe('query is missing; send it as text.');
  expect(await saying('/memory/facts?limit=0')).toBe('limit must be a whole number from 1 to 200; send it as a number.');
  let refused = 0;
  for (const { path, operation } of restTable.filter(({ method, inputIn: from }) => method === 'GET' && from === 'query')) {
    for (const field of Object.keys(restInputSchema(operation).properties ?? {})) {
      const { status, json } = await owner.get(`${path.replace(/\{\w+\}/, 'x')}?${field}=no`);
      if (status !== 400) continue;
      refused += 1;
      expect(json.message, `${path} ${field}`).not.toMatch(/JSON/);
    }
  }
  expect(refused).toBeGreaterThan(8);
});

describe('no GET changes anything', () => {
  /** A memory with entries of every kind, and a snapshot of everything stored. */
  async function filled() {
    const folder = tempFolder();
    const clock = manualClock();
    const store = await openFileStore(folder, clock);
    const { home, clients, put } = createClientHome();
    put('.cursor/mcp.json', '{"mcpServers":{}}');
    const packs = { packs: [aPack(({ input: { what } }) => ({ said: what }))] };
    // A POST opens a session of MCP. It records that the session begins with a brief, so there are no briefs here.
    const brief = { bytes: 0, receipts: true };
    const all = await serve({ store, folder, clock, packs, clients, brief, windowFolder: 'out/renderer' });
    const agent = await all.token('me', ['memory:read', 'memory:write', 'packs:run'], 'claude-code');
    const me = as(all, agent);
    for (const value of ['Vim', 'Helix']) await me.post('/memory/store', { ...aFact, value });
    await me.post('/packs/test.echo', { what: 'hello' });
    await me.post('/pipelines', { id: 'shout', title: 'Shout', steps: [{ id: 'first', pack: 'test.echo', input: {} }] });
    const run = String((await me.post('/pipelines/shout/run')).json['run_id']);
    await expect.poll(async () => (await me.get(`/pipeline-runs/${run}`)).json['status'], EVENTUALLY).toBe('succeeded');
    await clock.advance(MINUTE);
    // The last use of a token is recorded to the minute. This clock does not move, so it is recorded only now.
    await me.get('/version');
    const { tokens } = await all.tokens.list();

    const everything = () => {
      const db = new Sqlite(join(folder, 'memory.db'), { readonly: true });
      const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all() as string[];
      const rows = tables.map((table) => [table, db.prepare(`SELECT * FROM ${table}`).raw().all()]);
      db.close();
      const files = filesBelow(folder).map(({ path }) => path);
      return { rows, files, clients: filesBelow(home), status: store.status() };
    };
    /** Routes with their own parameters. */
    const filledIn = (path: string): string =>
      path
        .replace('pipelines/one', 'pipelines/shout')
        .replace('pipeline-runs/one', `pipeline-runs/${run}`)
        .replace('tokens/one', `tokens/${tokens[0]?.id}`);
    return { ...all, clock, agent, everything, filledIn };
  }

  const QUERIES: Readonly<Record<string, string>> = {
    '/api/v1/memory/facts': 'prefix=pref&category=preferences&tag=editor&client=claude-code&sort=expires&limit=1&values=true',
    '/api/v1/memory/fact': 'key=preferences/editor',
    '/api/v1/memory/history': 'key=preferences/editor',
    '/api/v1/memory/search': 'q=helix&limit=1&category=preferences',
    '/api/v1/activity': 'limit=1&all=true',
    '/api/v1/pipeline-runs': 'limit=1',
    '/healthz': 'challenge=0123456789abcdef',
  };
  const STREAMS = ['/api/v1/events', MCP, `${MCP}/sse`, QMD, `${QMD}/sse`];
  /** Requests that change something if sent with the right method. */
  const WRITES: readonly (readonly [method: string, path: string, body?: Record<string, string>])[] = [
    ['POST', '/api/v1/memory/store', { key: 'a', value: 'b' }],
    ['PATCH', '/api/v1/memory/fact', { key: aFact.key, category: 'other' }],
    ['POST', '/api/v1/memory/forget', { scope: `key:${aFact.key}` }],
    ['POST', '/api/v1/packs/test.echo', { what: 'x' }],
    ['DELETE', '/api/v1/pipelines/one'],
    ['POST', '/api/v1/tokens', { name: 'x' }],
    ['DELETE', '/api/v1/tokens/one'],
    ['POST', '/api/v1/backup', {}],
    ['POST', '/api/v1/lock', {}],
  ];

  test('for every path, sent by the owner and by an agent', async () => {
    const { clock, agent, everything, filledIn, ...all } = await filled();
    const { url, owner } = all;
    const known = ['/', '/healthz', ...ALL_ROUTES.filter(([method]) => method === 'GET').map(([, path]) => path)];
    const paths = [...new Set([...known, ...ALL_ROUTES.map(([, path]) => path)])].filter((path) => !STREAMS.includes(path));
    // The POST request that opens an MCP session leaves a row about its brief.
    const sessions = new Map<string, string>();
    for (const token of [owner, agent])
      for (const path of STREAMS) {
        const { session } = await openSession(all, token, undefined, path.startsWith(QMD) ? QMD : MCP);
        sessions.set(token + path, session);
      }
    const briefs = async (): Promise<number> => {
      const { json } = await as(all, owner).get('/activity');
      return (json['activity'] as { operation: string }[]).filter(({ operation }) => operation === 'brief').length;
    };
    await expect.poll(briefs, EVENTUALLY).toBe(6);
    const before = everything();
    for (const token of [owner, agent]) {
      for (const path of paths) {
        const at = filledIn(path);
        const { status, text } = await sendRequest(url, QUERIES[path] === undefined ? at : `${at}?${QUERIES[path]}`, { token });
        // A refused request proves little, and agents are refused more often.
        const wanted = !known.includes(path) ? [405] : token === owner ? [200] : [200, 403];
        expect(wanted, `${path} ${status} ${text}`).toContain(status);
      }
      // Try to override the method, or to send the body's fields in the query.
      for (const [method, path, body] of WRITES) {
        const at = filledIn(path);
        const query = new URLSearchParams(body).toString();
        const headers = ['X-HTTP-Method-Override', method, 'X-HTTP-Method', method, 'X-Method-Override', method];
        await sendRequest(url, at, { method: 'GET', token, headers, ...(body && { body }) });
        for (const more of [query, `_method=${method}`]) await sendRequest(url, `${at}?${more}`, { token });
      }
      for (const path of STREAMS) {
        const line = await openStream(all, token, path, ['Mcp-Session-Id', sessions.get(token + path) ?? '']);
        await line.waitFor(/^HTTP\/1\.1 200 /);
        line.socket.destroy();
      }
    }
    // Deferred work has run.
    await clock.advance(MINUTE);
    expect(everything()).toEqual(before);
  });

  test('and the requests that change something do so with the right method', async () => {
    const { url, everything, filledIn, owner } = await filled();
    for (const [method, path, body] of WRITES) {
      const before = everything();
      const { status, text } = await sendRequest(url, filledIn(path), { method, token: owner, ...(body && { body }) });
      expect(status, `${path} ${text}`).toBe(200);
      expect(everything(), path).not.toEqual(before);
    }
  });
});
