import { chmodSync, readFileSync, rmSync } from 'node:fs';
import { request as forward } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toolResultOf as toolSaid } from '../listeners/mcp/mcp-client.ts';
import { createAuthority } from '../support/certificates.ts';
import { EVENTUALLY, serve } from '../support/listener.ts';
import { aCaller } from '../support/memory.ts';
import { serveTeam } from '../support/team.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { INITIALIZE_PARAMS, startBridge, writePrivate } from './bridge.ts';

const HOST = '127.0.0.1';
const NAMES = ['DNS:localhost', `IP:${HOST}`];
const STORE = { name: 'memory_store', arguments: { key: 'preferences/editor', value: 'Helix' } };
const RECALL = { name: 'memory_recall', arguments: { key: 'preferences/editor' } };

const serveHere = (options: Parameters<typeof serveTeam>[0] = {}) => serveTeam({ host: HOST, names: NAMES, ...options });

/** A member's data folder, as `connect --server` leaves it. */
function aDesk(token: string, url: string, ca?: string) {
  const folder = tempFolder();
  const tokenFile = writePrivate(join(folder, 'clients/codex.token'), `${token}\n`);
  const serverFile = writePrivate(
    join(folder, 'clients/codex.server.json'),
    JSON.stringify({ url, ...(ca !== undefined && { ca }) }),
  );
  const start = (environment: Record<string, string> = {}) =>
    startBridge({ HELMDECK_DATA_DIR: folder, ...environment }, '--client', 'codex');
  return { folder, tokenFile, serverFile, start };
}

/** A server that is not Helmdeck Memory. Counts the requests that it gets. */
async function aStranger(issued: { certificateFile: string; keyFile: string }) {
  const heard: string[] = [];
  const files = { cert: readFileSync(issued.certificateFile), key: readFileSync(issued.keyFile) };
  const server = createHttps(files, (request, response) => {
    heard.push(String(request.headers.authorization));
    response.end('{}');
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  return { heard, url: `https://localhost:${(server.address() as AddressInfo).port}` };
}

describe('the bridge of a member (R-TEAM-10)', () => {
  test('stores and recalls in the memory of the token, and follows a restart of the server', async () => {
    const team = await serveHere();
    const token = await team.token('ada', undefined, 'codex');
    const { start } = aDesk(token, `https://localhost:${team.teamPort}`, team.authority.ca);
    const bridge = start();
    await bridge.request('initialize', INITIALIZE_PARAMS);
    bridge.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    expect(toolSaid((await bridge.request('tools/call', STORE)).result)).toMatchObject({ status: 'created' });
    expect(await team.perform(aCaller({ subject: 'ada' }), 'recall', { key: 'preferences/editor' })).toMatchObject({
      value: 'Helix',
      client: 'codex',
    });
    await team.listener.close();
    const away = toolSaid((await bridge.request('tools/call', RECALL)).result);
    expect(away).toMatchObject({
      error: 'session_unavailable',
      message: expect.stringMatching(
        /^The server of Helmdeck Memory at localhost:\d+ cannot be reached \(the connection was refused\), so no fact/,
      ),
    });
    const { store, tokens, authority, files, teamPort } = team;
    await serveHere({ store, tokens, authority, team: { certificate: files, address: { host: HOST, port: teamPort } } });
    await expect
      .poll(async () => toolSaid((await bridge.request('tools/call', RECALL)).result), EVENTUALLY)
      .toMatchObject({ value: 'Helix' });
    expect(bridge.stderr()).toBe('');
  });

  test('works through a proxy that provides TLS, with streams (R-TEAM-05)', async () => {
    const proxies = ['127.0.0.3'];
    const hosts = ['localhost'];
    const team = await serveHere({ team: { certificate: undefined, hosts, proxies } });
    const { files } = team;
    const tls = { cert: readFileSync(files.certificateFile), key: readFileSync(files.keyFile) };
    const proxy = createHttps(tls, (incoming, response) => {
      const target = { host: HOST, port: team.teamPort, localAddress: '127.0.0.3', path: incoming.url, method: incoming.method };
      const headers = { ...incoming.headers, host: 'localhost', 'x-forwarded-for': '10.0.0.1', 'x-forwarded-proto': 'https' };
      const sent = forward({ ...target, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        // Send the headers of a stream at once.
        response.flushHeaders();
        answer.pipe(response);
      });
      sent.on('error', () => response.destroy());
      response.once('close', () => sent.destroy());
      incoming.pipe(sent);
    });
    onTestFinished(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    await new Promise<void>((resolve) => proxy.listen(0, HOST, resolve));
    const url = `https://localhost:${(proxy.address() as AddressInfo).port}`;
    const bridge = aDesk(await team.token('ada'), url, team.authority.ca).start();
    await bridge.request('initialize', INITIALIZE_PARAMS);
    bridge.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    await bridge.request('resources/subscribe', { uri: 'helmdeck://my-memory' });
    expect(toolSaid((await bridge.request('tools/call', STORE)).result)).toMatchObject({ status: 'created' });
    await bridge.waitFor(({ method }) => method === 'notifications/resources/updated');
    expect(toolSaid((await bridge.request('tools/call', RECALL)).result)).toMatchObject({ value: 'Helix' });
  });

  test('trusts the authorities of the system', async () => {
    const team = await serveHere();
    const { start } = aDesk(await team.token('ada'), `https://localhost:${team.teamPort}`);
    const trusting = start({ SSL_CERT_FILE: team.authority.caFile });
    await trusting.request('initialize', INITIALIZE_PARAMS);
    expect(toolSaid((await trusting.request('tools/call', STORE)).result)).toMatchObject({ status: 'created' });
    const other = start();
    await other.request('initialize', INITIALIZE_PARAMS);
    expect(toolSaid((await other.request('tools/call', STORE)).result)).toMatchObject({ error: 'untrusted' });
  });

  test('sends no token to a server whose certificate it cannot verify, whatever the environment says', async () => {
    const authority = createAuthority();
    const team = await serveHere({ authority });
    const token = await team.token('ada');
    const bad = [
      createAuthority().issue(NAMES),
      authority.issue(['DNS:other.test']),
      authority.issue(NAMES, { from: -9, until: -2 }),
    ];
    for (const issued of bad) {
      const { heard, url } = await aStranger(issued);
      const bridge = aDesk(token, url, authority.ca).start({ NODE_TLS_REJECT_UNAUTHORIZED: '0' });
      const opened = await bridge.request('initialize', INITIALIZE_PARAMS);
      expect(String(opened.result?.['instructions'])).toMatch(/The certificate of the server at localhost:\d+ cannot be trusted/);
      expect(toolSaid((await bridge.request('tools/call', STORE)).result)).toMatchObject({ error: 'untrusted' });
      expect(heard).toEqual([]);
    }
  });

  test('follows no redirect, and never uses the memory on this machine instead', async () => {
    const local = await serve();
    const token = await local.token();
    const bridge = (text: string, mode?: number) => {
      writePrivate(join(local.folder, 'clients/codex.token'), token);
      const file = writePrivate(join(local.folder, 'clients/codex.server.json'), text);
      if (mode !== undefined) chmodSync(file, mode);
      const started = startBridge({ HELMDECK_DATA_DIR: local.folder }, '--client', 'codex');
      return async () => {
        await started.request('initialize', INITIALIZE_PARAMS);
        const answer = toolSaid((await started.request('tools/call', STORE)).result);
        rmSync(file);
        return answer;
      };
    };
    for (const text of ['', '{', '{}', `{"url":"${local.url}"}`, '{"url":"https://"}'])
      expect(await bridge(text)()).toMatchObject({
        error: 'session_unavailable',
        message: expect.stringMatching(/server\.json in the data folder .* is damaged/),
      });
    const damaged = JSON.stringify({ url: 'https://localhost:1', ca: 'no certificate' });
    expect(await bridge(damaged)()).toMatchObject({ message: expect.stringMatching(/cannot be (trusted|reached)/) });
    expect(await bridge('{"url":"https://localhost:1"}', 0o644)()).toMatchObject({ message: expect.stringMatching(/chmod 600/) });
    expect(await local.perform(aCaller(), 'list', {})).toMatchObject({ facts: [] });
  });

  test('tells its client when the token was revoked', async () => {
    const team = await serveHere();
    const { start } = aDesk(await team.token('ada'), `https://localhost:${team.teamPort}`, team.authority.ca);
    const bridge = start();
    await bridge.request('initialize', INITIALIZE_PARAMS);
    const { tokens } = await team.tokens.list();
    await team.tokens.revoke({ id: tokens[0]?.id ?? '', unrecorded: false });
    expect(toolSaid((await bridge.request('tools/call', STORE)).result)).toMatchObject({ error: 'invalid_token' });
  });
});

interface Supplement {
  search(question: { query: string }): Promise<{ snippet: string; path: string }[]>;
  get(question: { lookup: string }): Promise<{ content: string } | null>;
}

async function loadPlugin(pluginConfig: Record<string, string>) {
  const { default: plugin } = (await import(pathToFileURL('integrations/openclaw/index.js').href)) as {
    default: { register(api: object): void };
  };
  let corpus: Supplement | undefined;
  let prompt: ((question: { availableTools: Set<string> }) => string[]) | undefined;
  plugin.register({
    pluginConfig,
    registerMemoryCorpusSupplement: (one: Supplement) => (corpus = one),
    registerMemoryPromptSupplement: (one: typeof prompt) => (prompt = one),
    on: () => undefined,
  });
  if (!corpus || !prompt) throw new Error('The plugin registered nothing.');
  return { corpus, lines: () => prompt?.({ availableTools: new Set(['memory_search']) }) ?? [] };
}

describe("OpenClaw's plugin of a member (R-TEAM-10)", () => {
  test('finds and reads facts on the server', async () => {
    const team = await serveHere();
    await team.perform(aCaller({ subject: 'ada' }), 'remember', { key: 'preferences/editor', value: 'Helix is the editor' });
    const { folder, tokenFile } = aDesk(await team.token('ada'), `https://localhost:${team.teamPort}`, team.authority.ca);
    const { corpus, lines } = await loadPlugin({ folder, tokenFile });
    const [hit] = await corpus.search({ query: 'which editor' });
    expect(hit?.snippet).toContain('Helix is the editor');
    expect(await corpus.get({ lookup: hit?.path ?? '' })).toMatchObject({ content: 'Helix is the editor' });
    expect(lines()).not.toEqual([]);
  });

  test('sends nothing to a server whose certificate it cannot verify, and finds nothing', async () => {
    const authority = createAuthority();
    for (const issued of [createAuthority().issue(NAMES), authority.issue(['DNS:other.test'])]) {
      const { heard, url } = await aStranger(issued);
      const { folder, tokenFile } = aDesk('token', url, authority.ca);
      const { corpus } = await loadPlugin({ folder, tokenFile });
      expect(await corpus.search({ query: 'editor' })).toEqual([]);
      expect(heard).toEqual([]);
    }
  });
});
