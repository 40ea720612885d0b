import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Connector } from '../../../src/main/connect/connector.ts';
import { openClawEmbeddings } from '../../../src/main/connect/openclaw/embeddings.ts';
import { createServedHome } from '../../support/clients.ts';
import { sendRequest } from '../../support/listener.ts';

// The default subject, as for any other client.
const CLIENT = { client: 'openclaw-embeddings', subject: 'me' };
const posix = process.platform !== 'win32';
const CONFIG = `{
  // mine
  "gateway": { "mode": "local" },
  "agents": { "defaults": { "workspace": "~/w" } },
}
`;

async function aHomeWithOpenClaw(version: string, text = CONFIG, connectors?: readonly Connector[]) {
  const home = await createServedHome(connectors && { connectors });
  home.put('lib/node_modules/openclaw/package.json', JSON.stringify({ name: 'openclaw', version }));
  home.put('lib/node_modules/openclaw/openclaw', '#!/bin/sh\n', 0o755);
  mkdirSync(`${home.home}/bin`, { recursive: true });
  symlinkSync('../lib/node_modules/openclaw/openclaw', `${home.home}/bin/openclaw`);
  const config = home.put('.openclaw/openclaw.json', text);
  return { ...home, config, text: () => readFileSync(config, 'utf8'), mode: () => (statSync(config).mode & 0o777).toString(8) };
}

describe("OpenClaw's semantic search (R-EMB-10)", () => {
  test('gets the bundled model while Ollama is off, and reports another model (R-MEAN-28)', async () => {
    let model = 'minilm-l6-v2';
    const { connections, host, text, row } = await aHomeWithOpenClaw('2026.9.6');
    Object.assign(host, { embeddingsModel: () => model });
    await connections.connect(CLIENT);
    expect(text()).toContain('"model": "minilm-l6-v2"');
    expect(await row(CLIENT.client)).not.toHaveProperty('why');
    model = 'nomic-embed-text';
    expect(await row(CLIENT.client)).toMatchObject({ state: 'broken', why: expect.stringContaining('another embedding model') });
    await connections.connect(CLIENT);
    expect(text()).toContain('"model": "nomic-embed-text"');
    expect(await row(CLIENT.client)).not.toHaveProperty('why');
    await connections.disconnect(CLIENT);
    expect(text()).toBe(CONFIG);
  });

  test.each([
    ['2026.9.6', /"memory": \{\s*"search"/],
    ['2026.7.35', /"memorySearch": \{/],
  ])(
    '%s gets the address, the model and a token for embeddings as previewed, and disconnecting restores the file',
    async (version, where) => {
      const { connections, served, text } = await aHomeWithOpenClaw(version);
      const plan = await connections.plan(CLIENT);
      expect(plan.commands).toEqual([]);
      expect(text()).toBe(CONFIG);

      const done = await connections.connect({ ...CLIENT, basis: plan.basis });
      expect(done.subject).toBe('embeddings');
      expect(done.verified).toMatchObject({ works: false, why: expect.stringContaining('embeddings') });
      expect(text()).toMatch(where);
      expect(text()).toContain('// mine');
      expect(text().replaceAll(/\s/g, '')).toContain(`"baseUrl":"${served.url}/v1"`);
      const [token = ''] = /eyJ[\w.-]+/.exec(text()) ?? [];
      expect(JSON.stringify(plan)).not.toContain(token);
      // The token allows embeddings and opens no user's memory.
      await served.perform(
        { subject: 'me', client: 'x', transport: 'rest', token: '', scopes: new Set(['memory:write'] as const) },
        'remember',
        { key: 'a', value: 'b' },
      );
      expect((await sendRequest(served.url, '/api/v1/memory/facts', { token })).json['facts']).toEqual([]);
      expect((await sendRequest(served.url, '/api/v1/memory/store', { token, body: { key: 'a', value: 'b' } })).status).toBe(403);

      const again = await connections.plan(CLIENT);
      expect(JSON.stringify(again)).not.toContain(token);
      await connections.connect(CLIENT);
      expect((await sendRequest(served.url, '/api/v1/status', { token })).status).toBe(401);
      await connections.disconnect(CLIENT);
      expect(text()).toBe(CONFIG);
    },
  );

  test.runIf(posix)('a file with the token is readable by its owner only, as the preview shows (R-CONN-08)', async () => {
    const { connections, config, mode } = await aHomeWithOpenClaw('2026.9.6');
    expect((await connections.plan(CLIENT)).files).toMatchObject([{ holds_token: true }]);
    expect(mode()).toBe('644');
    await connections.connect(CLIENT);
    expect(mode()).toBe('600');
    // Another program replaces the file and makes it readable by all users.
    chmodSync(config, 0o640);
    await connections.connect(CLIENT);
    expect(mode()).toBe('600');
    await connections.connect(CLIENT);
    await connections.disconnect(CLIENT);
    expect(mode()).toBe('640');
  });

  test.runIf(posix)('a failed connection restores the mode of the file', async () => {
    const failing: Connector = { ...openClawEmbeddings, look: async () => ({ at: 'absent' }) };
    const { connections, text, mode } = await aHomeWithOpenClaw('2026.9.6', CONFIG, [failing]);
    await expect(connections.connect(CLIENT)).rejects.toThrow('does not show the entry');
    expect([text(), mode()]).toEqual([CONFIG, '644']);
  });

  test('concurrent changes of other programs are kept', async () => {
    const { connections, text, put } = await aHomeWithOpenClaw('2026.9.6');
    await connections.connect(CLIENT);
    put('.openclaw/openclaw.json', text().replace('"mode": "local"', '"mode": "remote"'));
    await connections.disconnect(CLIENT);
    expect(text()).toBe(CONFIG.replace('"mode": "local"', '"mode": "remote"'));
  });

  test('reconnecting after an update of OpenClaw moves the settings to the new path', async () => {
    const { connections, text, put } = await aHomeWithOpenClaw('2026.7.35');
    await connections.connect(CLIENT);
    put('lib/node_modules/openclaw/package.json', JSON.stringify({ name: 'openclaw', version: '2026.9.6' }));
    await connections.connect(CLIENT);
    expect(text()).toMatch(/"memory": \{\s*"search"/);
    expect(text()).not.toContain('memorySearch');

    await connections.disconnect(CLIENT);
    expect(text()).toBe(CONFIG);
    put('lib/node_modules/openclaw/package.json', JSON.stringify({ name: 'openclaw', version: '2026.7.35' }));
    await connections.connect(CLIENT);
    put('lib/node_modules/openclaw/package.json', JSON.stringify({ name: 'openclaw', version: '2026.9.6' }));
    put('.openclaw/openclaw.json', text().replace('"mode": "local"', '"mode": "remote"'));
    await connections.disconnect(CLIENT);
    expect(text()).toBe(CONFIG.replace('"mode": "local"', '"mode": "remote"'));
  });

  test('an outdated address is reported, and reconnecting corrects it', async () => {
    const { connections, row, served, text, put } = await aHomeWithOpenClaw('2026.9.6');
    await connections.connect(CLIENT);
    expect(await row(CLIENT.client)).toMatchObject({ state: 'connected' });
    put('.openclaw/openclaw.json', text().replace(served.url, 'http://127.0.0.1:9'));
    const moved = { why: expect.stringContaining('Connect OpenClaw again') };
    expect(await row(CLIENT.client)).toMatchObject({ state: 'broken', ...moved });
    expect(await connections.verify(CLIENT)).toMatchObject({ works: false, ...moved });
    await connections.connect(CLIENT);
    expect(text()).toContain(`${served.url}/v1`);
    expect(await row(CLIENT.client)).toMatchObject({ state: 'connected' });
  });

  test('the test sends the token only to a server that has proved to be this program (R-HTTP-11)', async () => {
    const { connections, served, text, put } = await aHomeWithOpenClaw('2026.9.6');
    await connections.connect(CLIENT);
    const heard: string[] = [];
    const other = createServer((request, response) => {
      heard.push(`${request.method} ${request.url} ${request.headers.authorization}`);
      response.end('{"status":"ok"}');
    });
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const endpoint = join(served.folder, 'endpoint.json');
    writeFileSync(endpoint, readFileSync(endpoint, 'utf8').replace(served.url, url));
    put('.openclaw/openclaw.json', text().replace(served.url, url));
    expect(await connections.verify(CLIENT)).toMatchObject({ works: false, why: expect.stringContaining('Another program') });
    expect(heard).toEqual([expect.stringMatching(/^GET \/healthz\?challenge=\w+ undefined$/)]);
  });

  test.each([
    ['a search by words only', '{ "memory": { "search": { "provider": "none" } } }', /without embeddings/],
    [
      'a search by words only from an earlier version',
      '{ "agents": { "defaults": { "memorySearch": { "provider": "none" } } } }',
      /memorySearch\.provider is none/,
    ],
    ['a disabled search', '{ "memory": { "search": { "enabled": false } } }', /memory search is disabled/],
    ['another provider', '{ "memory": { "search": { "provider": "voyage" } } }', /another embeddings provider/],
    [
      'another server',
      '{ "memory": { "search": { "remote": { "baseUrl": "http://127.0.0.1:9/v1" } } } }',
      /another embeddings provider/,
    ],
  ])('%s is not replaced', async (_what, config, says) => {
    const { connections, text } = await aHomeWithOpenClaw('2026.9.6', config);
    await expect(connections.plan(CLIENT)).rejects.toThrow(says);
    await expect(connections.connect(CLIENT)).rejects.toThrow(says);
    await expect(connections.disconnect(CLIENT)).rejects.toThrow('not connected');
    expect(text()).toBe(config);
  });
});
