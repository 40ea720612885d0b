import { execFileSync, spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dataFolder } from '../../integrations/stdio-bridge/helmdeck-memory-mcp.mjs';
import type { ExecutionContext } from '../../src/core/packs/pack.ts';
import { readConfig } from '../../src/main/config/config.ts';
import { toolResultOf as toolSaid } from '../listeners/mcp/mcp-client.ts';
import { serve, type ServedMemory, EVENTUALLY } from '../support/listener.ts';
import { aCaller } from '../support/memory.ts';
import { aPack } from '../support/packs.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { measureWait } from '../support/work.ts';
import { BRIDGE, INITIALIZE_PARAMS, startBridge, writePrivate } from './bridge.ts';

const aFact = { name: 'memory_store', arguments: { key: 'preferences/editor', value: 'Helix' } };

const environmentOf = async (served: ServedMemory) => ({
  HELMDECK_DATA_DIR: served.folder,
  HELMDECK_TOKEN: await served.token(),
});

/** The message of a tool's failure. */
const refusalIn = ({ result }: { readonly result?: Record<string, unknown> }) => toolSaid(result);

test('an agent over stdio stores, recalls and receives changes (R-MCP-01)', async () => {
  const served = await serve();
  const client = new Client({ name: 'a test', version: '1' });
  const env = await environmentOf(served);
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [BRIDGE], env, stderr: 'inherit' }));
  onTestFinished(() => client.close());
  const heard = Promise.withResolvers<void>();
  client.fallbackNotificationHandler = async ({ method }) =>
    void (method === 'notifications/resources/updated' && heard.resolve());
  await client.subscribeResource({ uri: 'helmdeck://my-memory' });
  expect(toolSaid(await client.callTool(aFact))).toMatchObject({ status: 'created' });
  expect(toolSaid(await client.callTool({ name: 'memory_recall', arguments: { key: 'preferences/editor' } }))).toMatchObject({
    value: 'Helix',
  });
  await heard.promise;
  const unknown = await client.callTool({ name: 'memory_stor', arguments: {} });
  expect(unknown.isError).toBe(true);
  expect(toolSaid(unknown)['message']).toMatch(/Did you mean memory_store\? The tools are memory_search, /);
});

test('a QMD client searches over stdio, and its tool reports a stopped program (R-MCP-01, R-QMD-01)', async () => {
  const served = await serve();
  const environment = await environmentOf(served);
  await served.perform(aCaller(), 'remember', { key: 'preferences/editor', value: 'Helix' });
  const question = { name: 'query', arguments: { query: 'helix', collections: ['memory-root-main'] } };

  const bridge = startBridge(environment, '--qmd');
  expect(await bridge.request('initialize', INITIALIZE_PARAMS)).toMatchObject({
    result: { serverInfo: { title: 'Helmdeck Memory search' } },
  });
  expect(await bridge.request('tools/list')).toMatchObject({ result: { tools: [{ name: 'query' }] } });
  expect(refusalIn(await bridge.request('tools/call', question))).toMatchObject({
    results: [{ docid: 'user_facts/preferences/editor' }],
  });
  await bridge.closeStdin();

  await served.listener.close();
  const alone = startBridge(environment, '--qmd');
  await alone.request('initialize', INITIALIZE_PARAMS);
  expect(await alone.request('tools/list')).toMatchObject({ result: { tools: [{ name: 'query' }] } });
  expect(refusalIn(await alone.request('tools/call', question))).toMatchObject({ error: 'session_unavailable' });
  await alone.closeStdin();
});

describe('a pack called over stdio (R-MCP-01, R-PACK-27)', () => {
  async function opened(handler: (context: ExecutionContext) => unknown) {
    const served = await serve({ packs: { packs: [aPack(handler)] } });
    const token = await served.token('me', ['memory:read', 'packs:run']);
    const client = new Client({ name: 'a test', version: '1' });
    const env = { HELMDECK_DATA_DIR: served.folder, HELMDECK_TOKEN: token };
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [BRIDGE], env, stderr: 'inherit' }));
    onTestFinished(() => client.close());
    return { served, client };
  }

  test('reports progress before its result', async () => {
    const go = Promise.withResolvers<void>();
    const { client } = await opened(async ({ progress, session = '' }) => {
      progress(1, 2, 'half');
      await go.promise;
      return { said: session };
    });
    const told: object[] = [];
    const call = { name: 'test_echo', arguments: {}, _meta: { session: 'a-1' } };
    const result = client.callTool(call, undefined, { onprogress: (progress) => void told.push(progress) });
    await expect.poll(() => told, EVENTUALLY).toEqual([{ progress: 1, total: 2, message: 'half' }]);
    go.resolve();
    expect(toolSaid(await result)).toMatchObject({ output: { said: 'a-1' }, session_id: 'a-1' });
  });

  test.each(['before any progress', 'after progress'])('is cancelled %s', async (when) => {
    const started = Promise.withResolvers<AbortSignal>();
    const { client } = await opened(({ progress, signal }) => {
      if (when.includes('told')) progress(1);
      started.resolve(signal);
      return new Promise(() => undefined);
    });
    const controller = new AbortController();
    const options = { signal: controller.signal, onprogress: () => undefined };
    const result = client.callTool({ name: 'test_echo' }, undefined, options).catch((error: unknown) => error);
    const signal = await started.promise;
    controller.abort('enough');
    expect(await result).toBeInstanceOf(Error);
    await expect.poll(() => signal.aborted, EVENTUALLY).toBe(true);
    expect(await client.ping()).toEqual({});
  });

  test('ends when its client disconnects', async () => {
    const started = Promise.withResolvers<AbortSignal>();
    const { client } = await opened(({ signal }) => {
      started.resolve(signal);
      return new Promise(() => undefined);
    });
    void client.callTool({ name: 'test_echo' }).catch(() => undefined);
    const signal = await started.promise;
    await client.close();
    await expect.poll(() => signal.aborted, EVENTUALLY).toBe(true);
  });
});

describe('while the program is stopped', () => {
  test('a client can start, and a tool says what to do (R-MCP-12)', async () => {
    const bridge = startBridge({ HELMDECK_DATA_DIR: tempFolder(), HELMDECK_TOKEN: 'a.b.c' });
    const { result } = await bridge.request('initialize', INITIALIZE_PARAMS);
    expect(result).toMatchObject({
      protocolVersion: '2025-11-25',
      serverInfo: { name: 'helmdeck' },
      capabilities: { tools: {} },
    });
    expect((await bridge.request('tools/list')).result).toMatchObject({ tools: { length: 6 } });
    expect((await bridge.request('resources/list')).result).toEqual({ resources: [] });
    expect(refusalIn(await bridge.request('tools/call', aFact))).toEqual({
      error: 'session_unavailable',
      message: expect.stringMatching(/is not running on this machine.*start Helmdeck Memory/),
    });
    expect((await bridge.request('ping')).result).toEqual({});
    expect((await bridge.request('resources/read', { uri: 'helmdeck://context' })).error).toMatchObject({ code: -32603 });
  });

  test('the bridge connects as soon as the program starts, and announces its tools (R-MCP-12)', async () => {
    const folder = tempFolder();
    const first = await serve({ folder });
    const token = await first.token();
    await first.listener.close();
    const bridge = startBridge({ HELMDECK_DATA_DIR: folder, HELMDECK_TOKEN: token });
    await bridge.request('initialize', INITIALIZE_PARAMS);
    await bridge.request('tools/list');
    bridge.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    await serve({ folder, store: first.store, tokens: first.tokens });
    await bridge.waitFor(({ method }) => method === 'notifications/tools/list_changed');
    expect(refusalIn(await bridge.request('tools/call', aFact))).toMatchObject({ status: 'created' });
  });
});

test('after a restart of the program the client only receives notifications (R-MCP-12)', async () => {
  const first = await serve();
  const bridge = startBridge(await environmentOf(first));
  await bridge.request('initialize', INITIALIZE_PARAMS);
  bridge.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  await bridge.request('resources/subscribe', { uri: 'helmdeck://context' });
  expect(refusalIn(await bridge.request('tools/call', aFact))).toMatchObject({ status: 'created' });
  await first.listener.close();
  const waiting = bridge.request('tools/call', aFact);
  await serve({ folder: first.folder, store: first.store, tokens: first.tokens });
  expect(refusalIn(await waiting)).toMatchObject({ status: 'unchanged' });
  await bridge.waitFor(({ method }) => method === 'notifications/resources/updated');
});

test('a lost session is replaced transparently', async () => {
  const served = await serve();
  const env = await environmentOf(served);
  const bridge = startBridge(env);
  await bridge.request('initialize', INITIALIZE_PARAMS);
  await bridge.request('tools/call', aFact);
  // The second listener has the same port and proof key, but not the sessions of the first.
  await served.listener.close();
  const again = await serve({
    folder: served.folder,
    store: served.store,
    tokens: served.tokens,
    address: `127.0.0.1:${served.port}`,
  });
  expect(again.port).toBe(served.port);
  expect(refusalIn(await bridge.request('tools/call', aFact))).toMatchObject({ status: 'unchanged' });
});

describe('a token', () => {
  const call = async (served: ServedMemory, environment: Record<string, string>, ...args: string[]) => {
    const bridge = startBridge({ HELMDECK_DATA_DIR: served.folder, ...environment }, ...args);
    await bridge.request('initialize', INITIALIZE_PARAMS);
    return refusalIn(await bridge.request('tools/call', aFact));
  };

  test('is read from the environment, a private file, or the token file of a client', async () => {
    const served = await serve();
    const token = await served.token();
    const file = writePrivate(join(tempFolder(), 'token'), `${token}\n`);
    writePrivate(join(served.folder, 'clients', 'Claude Code.token'), token);
    expect(await call(served, { HELMDECK_TOKEN: token })).toMatchObject({ status: 'created' });
    expect(await call(served, { HELMDECK_TOKEN_FILE: file })).toMatchObject({ status: 'unchanged' });
    expect(await call(served, {}, '--client', 'Claude Code')).toMatchObject({ status: 'unchanged' });
    expect(await call(served, { HELMDECK_CLIENT: 'Claude Code' })).toMatchObject({ status: 'unchanged' });
  });

  test("that other users can read is refused, a missing token is reported, and the owner's is never used", async () => {
    const served = await serve();
    const open = writePrivate(join(tempFolder(), 'token'), await served.token(), 0o644);
    expect(await call(served, { HELMDECK_TOKEN_FILE: open })).toMatchObject({ message: expect.stringMatching(/chmod 600/) });
    expect(await call(served, {})).toMatchObject({
      error: 'missing_bearer',
      message: expect.stringMatching(/HELMDECK_TOKEN_FILE/),
    });
    expect(await call(served, {}, '--client', 'nobody')).toMatchObject({ error: 'missing_bearer' });
  });

  test('that is missing can be made by a command that works here', async () => {
    const served = await serve();
    const file = join(process.cwd(), 'bin', 'helmdeck-memory.js');
    const command = /^[\w/.-]+$/.test(file) ? file : JSON.stringify(file);
    const without = await call(served, { PATH: '/nowhere' }, '--client', 'codex');
    expect(without['message']).toMatch(`or to run: node ${command} connect codex.`);
    const folder = tempFolder();
    writeFileSync(join(folder, process.platform === 'win32' ? 'helmdeck-memory.cmd' : 'helmdeck-memory'), '');
    const withPath = await call(served, { PATH: folder }, '--client', 'codex');
    expect(withPath['message']).toMatch('or to run: helmdeck-memory connect codex.');
  });

  test.runIf(process.platform !== 'win32')('is not read from a named pipe', async () => {
    const served = await serve();
    const pipe = join(tempFolder(), 'token');
    execFileSync('mkfifo', ['-m', '600', pipe]);
    expect(await call(served, { HELMDECK_TOKEN_FILE: pipe })).toMatchObject({ message: expect.stringMatching(/chmod 600/) });
  });

  test('that is refused is reported with the message of the memory', async () => {
    const served = await serve();
    expect(await call(served, { HELMDECK_TOKEN: 'a.b.c' })).toMatchObject({ error: 'invalid_token' });
  });

  test.each(['../owner-token', '..', 'a/b', '', '.hidden'])('is not read for a client named %j', async (name) => {
    const bridge = startBridge({ HELMDECK_DATA_DIR: tempFolder() }, '--client', name);
    expect((await bridge.closeStdin()).code).toBe(2);
    expect(bridge.stderr()).toMatch(/--client must be/);
    expect(bridge.messages).toEqual([]);
  });

  test('is not read if the client name is missing, which is reported', async () => {
    const bridge = startBridge({ HELMDECK_DATA_DIR: tempFolder(), HELMDECK_CLIENT: 'other' }, '--qmd', '--client');
    expect((await bridge.closeStdin()).code).toBe(2);
    expect(bridge.stderr()).toMatch(/--client must be/);
  });

  test('is found despite unknown options, which are reported and ignored', async () => {
    const bridge = startBridge({ HELMDECK_DATA_DIR: tempFolder() }, '--nope', '--client', 'codex', '--qmd');
    expect((await bridge.request('ping')).result).toEqual({});
    expect((await bridge.closeStdin()).code).toBe(0);
    expect(bridge.stderr()).toBe('Ignored unknown options: --nope. The options are --client and --qmd.\n');
  });
});

describe('another program on the port of the memory', () => {
  test.each([
    ['returns a wrong proof', (respond: (body: string) => void) => respond('{"status":"ok","proof":"' + '0'.repeat(64) + '"}')],
    ['closes the connection', undefined],
  ])('that %s gets no token (R-HTTP-11, R-MCP-12)', async (_what, answer) => {
    const served = await serve();
    const env = await environmentOf(served);
    const endpoint = JSON.parse(readFileSync(join(served.folder, 'endpoint.json'), 'utf8')) as Record<string, unknown>;
    await served.listener.close();
    const heard: string[] = [];
    const otherProgram = createServer(({ headers, url }, response) => {
      heard.push(`${url} ${headers.authorization ?? ''}`);
      if (answer) answer((body) => void response.end(body));
      else response.destroy();
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void otherProgram.close());
    await new Promise((resolve) => otherProgram.once('listening', resolve));
    const { port } = otherProgram.address() as AddressInfo;
    writePrivate(join(served.folder, 'endpoint.json'), JSON.stringify({ ...endpoint, url: `http://127.0.0.1:${port}` }));
    const bridge = startBridge(env);
    await bridge.request('initialize', INITIALIZE_PARAMS);
    expect(refusalIn(await bridge.request('tools/call', aFact))).toMatchObject({
      message: expect.stringMatching(/no request was sent/),
    });
    expect(heard.length).toBeGreaterThan(0);
    expect(heard.every((line) => /^\/healthz\?challenge=\w+ $/.test(line))).toBe(true);
  });
});

describe('a connection that closes during a tool call', () => {
  const key = 'ab'.repeat(32);

  /** A server that proves itself and closes the connection on the first tool call. `heard` contains the names of the called tools. */
  async function startClosingServer(folder: string): Promise<{ readonly heard: readonly string[] }> {
    const heard: string[] = [];
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const say = (body: object): void => {
        const text = JSON.stringify(body);
        const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), 'mcp-session-id': 's' };
        response.writeHead(200, headers).end(text);
      };
      const challenge = new URL(`http://x${request.url}`).searchParams.get('challenge');
      if (challenge !== null) {
        return say({ status: 'ok', proof: createHmac('sha256', Buffer.from(key, 'hex')).update(challenge).digest('hex') });
      }
      const body = await readText(request);
      if (body === '') return void response.writeHead(405, { 'content-length': 0 }).end();
      const { id, method, params } = JSON.parse(body) as { id?: unknown; method: string; params: { name: string } };
      if (id === undefined) return void response.writeHead(202, { 'content-length': 0 }).end();
      const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } };
      if (method === 'initialize') return say({ jsonrpc: '2.0', id, result });
      heard.push(params.name);
      if (heard.length === 1) return void request.socket.resetAndDestroy();
      say({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: '{"said":"done"}' }] } });
    };
    const standIn = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
    onTestFinished(() => void standIn.close());
    await once(standIn, 'listening');
    const { port } = standIn.address() as AddressInfo;
    const endpoint = { url: `http://127.0.0.1:${port}`, pid: process.pid, proof_key: key, instance: 'a' };
    writePrivate(join(folder, 'endpoint.json'), JSON.stringify(endpoint));
    return { heard };
  }

  test.each(['memory_recall', 'helmdeck.memory_store', 'helmdeck__memory_forget'])(
    'makes the bridge repeat %s, which is safe to run twice (R-MCP-12)',
    async (name) => {
      const folder = tempFolder();
      const { heard } = await startClosingServer(folder);
      const bridge = startBridge({ HELMDECK_DATA_DIR: folder, HELMDECK_TOKEN: 'a.b.c' });
      await bridge.request('initialize', INITIALIZE_PARAMS);
      expect(refusalIn(await bridge.request('tools/call', { name, arguments: {} }))).toEqual({ said: 'done' });
      expect(heard).toEqual([name, name]);
    },
  );

  test.each(['github_list_issues', 'helmdeck.memory_helper', 'query', 'toString'])(
    'is reported, and %s does not run twice (R-MCP-12)',
    async (name) => {
      const folder = tempFolder();
      const { heard } = await startClosingServer(folder);
      const bridge = startBridge({ HELMDECK_DATA_DIR: folder, HELMDECK_TOKEN: 'a.b.c' });
      await bridge.request('initialize', INITIALIZE_PARAMS);
      expect(refusalIn(await bridge.request('tools/call', { name, arguments: {} }))).toMatchObject({
        error: 'session_unavailable',
      });
      await bridge.closeStdin();
      expect(heard).toEqual([name]);
    },
  );
});

describe('the input of a client', () => {
  test('can be split anywhere', async () => {
    const served = await serve();
    const bridge = startBridge(await environmentOf(served));
    await bridge.request('initialize', INITIALIZE_PARAMS);
    const line = Buffer.from(
      `${JSON.stringify({ jsonrpc: '2.0', id: 'cut', method: 'tools/call', params: { ...aFact, arguments: { key: 'größe', value: '🜁' } } })}\n`,
    );
    for (const byte of line) {
      bridge.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(refusalIn(await bridge.waitFor(({ id }) => id === 'cut'))).toMatchObject({ key: 'größe', status: 'created' });
  });

  test('gets a response for lines that are too long, invalid or not text, and the next line works', async () => {
    const served = await serve();
    const bridge = startBridge(await environmentOf(served));
    await bridge.request('initialize', INITIALIZE_PARAMS);
    bridge.write('{"jsonrpc":"2.0",\n');
    await bridge.waitFor(({ error }) => error?.code === -32700);
    bridge.write(Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]));
    await expect.poll(() => bridge.messages.filter(({ error }) => error?.code === -32700).length).toBe(2);
    const long = await bridge.request('tools/call', {
      name: 'memory_store',
      arguments: { key: 'a', value: 'x'.repeat(10 * 1024 * 1024) },
    });
    expect(refusalIn(long)).toMatchObject({ error: 'payload_too_large' });
    bridge.write('x'.repeat(40 * 1024 * 1024));
    bridge.write('\n7\n\n');
    await bridge.waitFor(({ error }) => error?.code === -32600 && error.message.includes('32 MiB'));
    expect(refusalIn(await bridge.request('tools/call', aFact))).toMatchObject({ status: 'created' });
    expect(bridge.stderr()).toBe('');
  });
});

describe('the bridge ends', () => {
  test('within 2 s of the end of stdin (R-MCP-12)', async () => {
    const served = await serve();
    const bridge = startBridge(await environmentOf(served));
    await bridge.request('initialize', INITIALIZE_PARAMS);
    const { code, ms } = await bridge.closeStdin();
    expect(code).toBe(0);
    expect(ms).toBeLessThan(2000);
  });

  test('within 2 s while the program is stopped', async () => {
    const bridge = startBridge({ HELMDECK_DATA_DIR: tempFolder(), HELMDECK_TOKEN: 'a.b.c' });
    await bridge.request('initialize', INITIALIZE_PARAMS);
    expect((await bridge.closeStdin()).ms).toBeLessThan(2000);
  });

  test('within 2 s after its parent exits, although stdin stays open', async () => {
    const script = `
      const { spawn } = require('node:child_process');
      const bridge = spawn(process.execPath, ['${BRIDGE}'], { stdio: ['inherit', 'inherit', 'ignore'], env: { HELMDECK_DATA_DIR: '/nowhere' } });
      process.stderr.write(String(bridge.pid));`;
    const parent = spawn(process.execPath, ['-e', script], { stdio: 'pipe' });
    const pid = once(parent.stderr, 'data').then(([chunk]) => Number(String(chunk)));
    // A response shows that the bridge has started.
    parent.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: INITIALIZE_PARAMS })}\n`);
    await once(parent.stdout, 'data');
    const ended = once(parent, 'exit');
    parent.kill('SIGKILL');
    await ended;
    const bridge = await pid;
    const gone = async (): Promise<void> => await expect.poll(() => alive(bridge)).toBe(false);
    expect(await measureWait(gone)).toBeLessThan(2000);
    parent.stdin.destroy();
  });

  /** A zombie process counts as ended. */
  const alive = (pid: number): boolean => {
    try {
      return process.platform === 'linux'
        ? !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
        : process.kill(pid, 0);
    } catch {
      return false;
    }
  };
});

test('the bridge uses the data folder of the program (R-STORE-03)', () => {
  const folder = fc.constantFrom(undefined, '', '/data', '/with space/x', 'C:\\data');
  const environment = fc.record({
    HELMDECK_DATA_DIR: fc.constantFrom(undefined, '/data/x'),
    XDG_DATA_HOME: folder,
    APPDATA: folder,
  });
  const platform = fc.constantFrom('linux', 'darwin', 'win32', 'freebsd') as fc.Arbitrary<NodeJS.Platform>;
  fc.assert(
    fc.property(environment, platform, (given, on) => {
      const home = () => (on === 'win32' ? 'C:\\Users\\me' : '/home/me');
      const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      let wanted: string;
      try {
        wanted = readConfig({ environment: known, platform: on, home }).folder;
      } catch {
        // A folder with which the program refuses to start.
        return;
      }
      expect(dataFolder(known, on, home)).toBe(wanted);
    }),
  );
});
