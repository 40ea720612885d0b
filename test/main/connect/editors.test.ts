import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cursor } from '../../../src/main/connect/cursor.ts';
import { localMachine } from '../../../src/main/connect/programs.ts';
import { vscode } from '../../../src/main/connect/vscode.ts';
import { createServedHome } from '../../support/clients.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const CODE = '.config/Code/User/mcp.json';
const BEFORE = '{\n\t// mine\n\t"inputs": [],\n\t"servers": {},\n\t"mcpServers": { "b": {} }\n}\n';

describe.each([
  { client: 'cursor', file: '.cursor/mcp.json', servers: 'mcpServers' },
  { client: 'vscode', file: CODE, servers: 'servers' },
])('$client (R-BUNDLE-06)', ({ client, file, servers }) => {
  test('is connected by its file, tested, and disconnected without a trace', async () => {
    const { connections, put, row } = await createServedHome();
    const path = put(file, BEFORE);
    expect(await row(client)).toMatchObject({ state: 'not_connected', config: path });
    const done = await connections.connect({ client, subject: 'me' });
    expect(done.verified).toMatchObject({ works: true });
    expect(JSON.parse(readFileSync(path, 'utf8').replace('// mine', ''))).toMatchObject({
      [servers]: { helmdeck: { args: [expect.stringMatching(/\.mjs$/), '--client', client] } },
    });
    expect(await row(client)).toMatchObject({ state: 'connected' });
    await connections.disconnect({ client });
    expect(readFileSync(path, 'utf8')).toBe(BEFORE);
  });

  test('is detected by its folder, and connecting creates the file', async () => {
    const { connections, home, put, row } = await createServedHome();
    mkdirSync(join(home, file, '..'), { recursive: true });
    put('elsewhere', '');
    expect(await row(client)).toMatchObject({ state: 'not_connected' });
    await connections.connect({ client, subject: 'me' });
    expect(Object.keys(JSON.parse(readFileSync(join(home, file), 'utf8')) as object)).toEqual([servers]);
  });

  test('has a link that adds the same entry to another profile, without a token', async () => {
    const { connections, put, served } = await createServedHome();
    put(file, BEFORE);
    const { link = '' } = await connections.plan({ client, subject: 'me' });
    await connections.connect({ client, subject: 'me' });
    const token = readFileSync(join(served.folder, 'clients', `${client}.token`), 'utf8').trim();
    const entry = {
      command: expect.any(String),
      args: expect.arrayContaining(['--client', client]),
      env: { HELMDECK_DATA_DIR: served.folder },
    };
    const { protocol, searchParams, search } = new URL(link);
    const said =
      protocol === 'cursor:'
        ? Buffer.from(searchParams.get('config') ?? '', 'base64').toString()
        : decodeURIComponent(search.slice(1));
    expect(JSON.parse(said)).toMatchObject(entry);
    expect(link).toMatch(
      /^(cursor:\/\/anysphere\.cursor-deeplink\/mcp\/install\?name=helmdeck&config=|vscode:mcp\/install\?)[\w%.~-]+$/,
    );
    expect(said).not.toContain(token);
  });
});

/** Files as the documentation of the editors describes them. */
const HOOKS = [
  {
    client: 'cursor',
    settings: '.cursor/mcp.json',
    file: '.cursor/hooks.json',
    hooks: { version: 1, hooks: { sessionStart: [{ command: expect.stringMatching(/ cursor session$/), timeout: 5 }] } },
  },
  {
    client: 'vscode',
    settings: CODE,
    file: '.copilot/hooks/helmdeck-memory.json',
    hooks: { hooks: { SessionStart: [{ type: 'command', command: expect.stringMatching(/ vscode session$/), timeout: 5 }] } },
  },
];

describe.each(HOOKS)('R-PLUG-04 a hook of $client', ({ client, settings, file, hooks }) => {
  test('is shown, added, left out on request, and removed without a trace', async () => {
    const { connections, home, put, row } = await createServedHome();
    put(settings, BEFORE);
    const path = join(home, file);
    const plan = await connections.plan({ client, subject: 'me' });
    expect(plan).toMatchObject({ hooks: ['session'], files: [{}, { path, created: true }] });
    const done = await connections.connect({ client, subject: 'me', basis: plan.basis });
    expect(done.verified).toMatchObject({ works: true });
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(hooks);
    expect((await row(client)).hooks).toEqual({ events: ['session'], state: 'on' });
    await connections.connect({ client, subject: 'me', hooks: [] });
    expect((await row(client)).hooks).toEqual({ events: [], state: 'off' });
    await connections.connect({ client, subject: 'me', hooks: ['session'] });
    await connections.disconnect({ client });
    expect(existsSync(path)).toBe(false);
    expect(existsSync(join(home, '.copilot'))).toBe(false);
  });

  test('is repaired by connecting again after it was changed', async () => {
    const { connections, home, put, row } = await createServedHome();
    put(settings, BEFORE);
    await connections.connect({ client, subject: 'me' });
    const path = join(home, file);
    writeFileSync(path, readFileSync(path, 'utf8').replace(' session', ' prompt'));
    expect((await row(client)).hooks).toMatchObject({ state: 'differs' });
    await connections.connect({ client, subject: 'me' });
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(hooks);
    expect((await row(client)).hooks).toMatchObject({ state: 'on' });
  });

  test('does not touch the hooks of others in the same file', async () => {
    const { connections, put } = await createServedHome();
    put(settings, BEFORE);
    const others = `{\n  "version": 1,\n  "hooks": {\n    "sessionStart": [{ "command": "mine" }],\n    "SessionStart": [{ "command": "x" }]\n  }\n}\n`;
    const path = put(file, others);
    await connections.connect({ client, subject: 'me' });
    const connected = readFileSync(path, 'utf8');
    expect(connected.match(/helmdeck-memory-hook/g)).toHaveLength(1);
    expect(connected).toMatch(/"command": "mine"[^]*"command": "x"/);
    writeFileSync(path, connected.replace('"mine"', '"changed"'));
    await connections.disconnect({ client });
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(JSON.parse(others.replace('"mine"', '"changed"')));
  });
});

test('the command of Visual Studio Code creates a missing file (R-BUNDLE-06)', async () => {
  const { connections, home, program } = await createServedHome();
  const path = join(home, CODE);
  mkdirSync(dirname(path), { recursive: true });
  program(
    'code',
    `printf '%s\\n' "$@" > ${home}/asked; echo '{"servers":{"helmdeck":{"command":"/bin/true","args":[]}}}' > ${path}`,
  );
  const plan = await connections.plan({ client: 'vscode', subject: 'me' });
  expect(plan.commands).toEqual([{ program: join(home, 'bin/code'), args: ['--add-mcp', expect.any(String)] }]);
  await connections.connect({ client: 'vscode', subject: 'me' });
  const [option, added = ''] = readFileSync(join(home, 'asked'), 'utf8').split('\n');
  expect(option).toBe('--add-mcp');
  expect(JSON.parse(added)).toMatchObject({ name: 'helmdeck', type: 'stdio', env: { HELMDECK_DATA_DIR: expect.any(String) } });
  await connections.disconnect({ client: 'vscode' });
  expect(existsSync(path)).toBe(false);
});

test.each([
  ['darwin', 'Library/Application Support/Code/User/mcp.json'],
  ['win32', 'AppData/Roaming/Code/User/mcp.json'],
  ['linux', CODE],
] as const)('on %s their files are where they read them (R-BUNDLE-06)', async (platform, file) => {
  const home = tempFolder();
  const host = localMachine({ environment: { PATH: '' }, platform, home: () => home });
  expect(await vscode.detect(host)).toMatchObject({ config: join(home, file) });
  expect(await cursor.detect(host)).toMatchObject({ installed: false, config: join(home, '.cursor/mcp.json') });
});
