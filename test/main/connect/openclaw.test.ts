import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { installArgs } from '../../../src/main/connect/openclaw/plugin.ts';
import { createServedHome } from '../../support/clients.ts';
import { aHomeWithOpenClaw, CLIENT, CONFIG } from '../../support/openclaw.ts';

const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));

test('R-CLAW-09 R-CLAW-10 connecting OpenClaw adds tools, plugin and QMD search as previewed, without token or address', async () => {
  const { connections, served, config, plugin, mcporter, asked, row } = await aHomeWithOpenClaw();
  expect(await row('openclaw')).toMatchObject({ state: 'not_connected', config });
  const plan = await connections.plan(CLIENT);
  expect(existsSync(plugin)).toBe(false);
  expect(plan.files.map(({ path }) => path)).toEqual([config, mcporter]);
  expect(plan.commands).toMatchObject([{ args: ['plugins', 'install', expect.any(String), '--force', '--accept-capabilities'] }]);

  const done = await connections.connect({ ...CLIENT, basis: plan.basis });
  expect(done.verified).toMatchObject({ works: true });
  expect(asked()).toEqual([expect.stringMatching(/^plugins install \/.*integrations\/openclaw --force --accept-capabilities$/)]);
  expect(await row('openclaw')).toMatchObject({ state: 'connected' });
  const text = readFileSync(config, 'utf8');
  const tokenFile = join(served.folder, 'clients/openclaw.token');
  expect(text).toContain('// mine');
  for (const { text: line } of plan.files.flatMap(({ lines }) => lines.filter(({ sign }) => sign === '+')))
    expect(text + readFileSync(mcporter, 'utf8')).toContain(line);
  expect(JSON.parse(text.replace('// mine', '').replace(/,\s*\}\s*$/, '}'))).toMatchObject({
    gateway: { mode: 'local' },
    memory: { search: { provider: 'none' } },
    mcp: { servers: { helmdeck: { args: [expect.stringContaining(served.folder), '--client', 'openclaw'] } } },
    plugins: {
      allow: ['memory-core', 'helmdeck-memory'],
      entries: {
        'helmdeck-memory': {
          enabled: true,
          hooks: { allowConversationAccess: true, timeouts: { before_prompt_build: 2000 } },
          config: { folder: served.folder, tokenFile },
        },
      },
    },
  });
  expect(read(mcporter)).toMatchObject({
    mcpServers: { helmdeck: { args: [expect.stringContaining(served.folder), '--client', 'openclaw', '--qmd'] } },
  });
  const token = readFileSync(tokenFile, 'utf8').trim();
  for (const said of [text, readFileSync(mcporter, 'utf8'), asked().join(), JSON.stringify(plan)]) {
    expect(said).not.toContain(token);
    expect(said).not.toContain(served.url);
  }
});

test('R-CLAW-17 the permission for briefs is shown, left out on request, and reported if it is missing', async () => {
  const { connections, config, row, served } = await aHomeWithOpenClaw();
  const plan = await connections.plan(CLIENT);
  expect(plan.files[0]?.lines.map(({ text }) => text).join('\n')).toContain('allowConversationAccess');
  await connections.connect(CLIENT);
  expect((await row('openclaw')).hooks).toEqual({ events: ['session', 'prompt'], state: 'on' });
  expect(existsSync(join(served.folder, 'clients/openclaw.hook.token'))).toBe(true);
  writeFileSync(config, readFileSync(config, 'utf8').replace(/("allowConversationAccess": ?)true/, '$1false'));
  expect((await row('openclaw')).hooks).toMatchObject({
    state: 'differs',
    why: expect.stringMatching(/does not let the plugin/),
  });
  await connections.connect({ ...CLIENT, hooks: ['prompt'] });
  expect((await row('openclaw')).hooks).toEqual({ events: ['prompt'], state: 'on' });
  expect(readFileSync(config, 'utf8')).toMatch(/"events":\s*\[\s*"prompt"\s*\]/);
  await connections.connect({ ...CLIENT, hooks: [] });
  expect((await row('openclaw')).hooks).toEqual({ events: [], state: 'off' });
  expect(readFileSync(config, 'utf8')).not.toMatch(/allowConversationAccess|before_prompt_build|"events"/);
  expect(existsSync(join(served.folder, 'clients/openclaw.hook.token'))).toBe(false);
  await connections.disconnect({ client: 'openclaw' });
  expect(readFileSync(config, 'utf8')).toBe(CONFIG);
});

test('R-CLAW-10 disconnecting removes the plugin and restores every file', async () => {
  const { connections, config, plugin, mcporter, asked, home, row } = await aHomeWithOpenClaw();
  await connections.connect(CLIENT);
  await connections.disconnect({ client: 'openclaw' });
  expect(asked().at(-1)).toBe('plugins uninstall helmdeck-memory --force');
  expect(readFileSync(config, 'utf8')).toBe(CONFIG);
  expect(existsSync(plugin)).toBe(false);
  expect(existsSync(mcporter)).toBe(false);
  expect(existsSync(join(home, '.mcporter'))).toBe(false);
  expect(await row('openclaw')).toMatchObject({ state: 'not_connected' });
});

test('R-CLAW-10 disconnecting keeps the changes of other programs and removes everything that we added', async () => {
  const { connections, config, put, mcporter } = await aHomeWithOpenClaw();
  put('.mcporter/mcporter.json', '{ "mcpServers": { "other": { "command": "x" } }, "imports": [] }\n');
  await connections.connect(CLIENT);
  expect(read(mcporter)).toMatchObject({ mcpServers: { other: { command: 'x' }, helmdeck: {} }, imports: [] });
  const changed = readFileSync(config, 'utf8').replace('"local"', '"remote"');
  writeFileSync(config, changed);
  await connections.disconnect({ client: 'openclaw' });
  const rest = readFileSync(config, 'utf8');
  expect(rest).toBe(CONFIG.replace('"local"', '"remote"'));
  expect(readFileSync(mcporter, 'utf8')).toBe('{ "mcpServers": { "other": { "command": "x" } }, "imports": [] }\n');
});

test('R-CLAW-10 a plugin that OpenClaw refuses changes nothing, and the error quotes OpenClaw', async () => {
  const { connections, config, mcporter, put, row } = await aHomeWithOpenClaw();
  put('refuses', '');
  await expect(connections.connect(CLIENT)).rejects.toMatchObject({
    code: 'handler_failed',
    message: expect.stringContaining('no, thanks'),
  });
  expect(readFileSync(config, 'utf8')).toBe(CONFIG);
  expect(existsSync(mcporter)).toBe(false);
  expect(await row('openclaw')).toMatchObject({ state: 'not_connected' });
});

describe('R-CONN-03 an entry of another program with our name', () => {
  const OWN = '"mcp": { "servers": { "helmdeck": { "url": "http://mine" } } }';

  test('without our plugin is recognised and not removed', async () => {
    const text = CONFIG.replace('"memory"', `${OWN},\n  "memory"`);
    const { connections, config, row } = await aHomeWithOpenClaw(text);
    expect(await row('openclaw')).toMatchObject({ state: 'differs' });
    await expect(connections.disconnect(CLIENT)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/was not created by this program, so it was not removed/),
    });
    expect(readFileSync(config, 'utf8')).toBe(text);
    await connections.connect(CLIENT);
    writeFileSync(config, readFileSync(config, 'utf8').replace('"local"', '"remote"'));
    await connections.disconnect(CLIENT);
    expect(readFileSync(config, 'utf8').replaceAll(/\s+/g, ' ')).toBe(
      text.replace('"local"', '"remote"').replaceAll(/\s+/g, ' '),
    );
  });

  test('is kept when our plugin is removed without a record', async () => {
    const settings = '"entries": { "helmdeck-memory": { "enabled": true } }';
    const text = CONFIG.replace('"memory"', `${OWN},\n  "memory"`).replace('"allow"', `${settings}, "allow"`);
    const { connections, config, row } = await aHomeWithOpenClaw(text);
    expect(await row('openclaw')).toMatchObject({ state: 'broken', why: expect.stringMatching(/belongs to another program/) });
    await connections.disconnect(CLIENT);
    expect(readFileSync(config, 'utf8')).toContain(OWN);
    expect(readFileSync(config, 'utf8')).not.toContain('helmdeck-memory');
  });
});

describe('R-CLAW-15 a connection that fails after its plugin was installed', () => {
  const OFF = CONFIG.replace('"allow"', '"enabled": false, "allow"');

  test.each([
    { why: 'because OpenClaw exits half-way', text: CONFIG, file: 'breaks', says: /out of breath/ },
    { why: 'because plugins are disabled', text: OFF, file: 'nothing', says: /disabled.* its files were restored/ },
    { why: 'and OpenClaw does not uninstall the plugin', text: OFF, file: 'keeps', says: /its files were restored/ },
  ])('$why leaves neither plugin nor a changed file', async ({ text, file, says }) => {
    const { connections, config, plugin, mcporter, put, row } = await aHomeWithOpenClaw(text);
    put(file, '');
    await expect(connections.connect(CLIENT)).rejects.toMatchObject({ message: expect.stringMatching(says) });
    expect(existsSync(plugin)).toBe(false);
    expect(readFileSync(config, 'utf8')).toBe(text);
    expect(existsSync(mcporter)).toBe(false);
    expect(await row('openclaw')).toMatchObject({ state: 'not_connected' });
  });

  test('keeps the plugin of an earlier connection', async () => {
    const { connections, config, plugin, put, asked } = await aHomeWithOpenClaw();
    await connections.connect(CLIENT);
    put('breaks', '');
    const connected = readFileSync(config, 'utf8');
    await expect(connections.connect(CLIENT)).rejects.toMatchObject({ code: 'handler_failed' });
    expect(existsSync(plugin)).toBe(true);
    expect(asked().join()).not.toContain('uninstall');
    expect(readFileSync(config, 'utf8')).toBe(connected);
  });
});

describe('R-CLAW-15 a change of the configuration while the program of OpenClaw runs', () => {
  const MEANWHILE =
    'sed -i.x "s/\\"local\\"/\\"remote\\"/" "$HOME/.openclaw/openclaw.json"; rm "$HOME/.openclaw/openclaw.json.x"\n';

  test('is kept by connecting', async () => {
    const { connections, config, put, row } = await aHomeWithOpenClaw();
    put('meanwhile', MEANWHILE);
    await connections.connect(CLIENT);
    expect(read(config)).toMatchObject({ gateway: { mode: 'remote' }, mcp: { servers: { helmdeck: {} } } });
    expect(await row('openclaw')).toMatchObject({ state: 'connected' });
  });

  test('is kept by a failed connection', async () => {
    const { connections, config, put } = await aHomeWithOpenClaw(CONFIG.replace('"allow"', '"enabled": false, "allow"'));
    put('meanwhile', MEANWHILE);
    await expect(connections.connect(CLIENT)).rejects.toMatchObject({ code: 'handler_failed' });
    expect(read(config)).toMatchObject({ gateway: { mode: 'remote' }, plugins: { enabled: false, allow: ['memory-core'] } });
    expect(readFileSync(config, 'utf8')).not.toMatch(/helmdeck/);
  });

  test('is kept by disconnecting, which removes everything that we added', async () => {
    const { connections, config, plugin, put } = await aHomeWithOpenClaw();
    await connections.connect(CLIENT);
    put('meanwhile', MEANWHILE);
    const { files } = await connections.disconnect({ client: 'openclaw' });
    expect(files[0]).toEqual({ path: config, as_before: false });
    expect(read(config)).toMatchObject({ gateway: { mode: 'remote' }, plugins: { allow: ['memory-core'] } });
    expect(readFileSync(config, 'utf8')).not.toMatch(/helmdeck/);
    expect(existsSync(plugin)).toBe(false);
  });
});

test('R-CLAW-10 disconnecting deletes a plugin that OpenClaw does not uninstall, also without OpenClaw', async () => {
  for (const without of ['keeps', 'no program']) {
    const { connections, config, plugin, put, home } = await aHomeWithOpenClaw();
    await connections.connect(CLIENT);
    if (without === 'keeps') put('keeps', '');
    else rmSync(join(home, 'bin/openclaw'));
    await connections.disconnect({ client: 'openclaw' });
    expect(existsSync(plugin)).toBe(false);
    expect(readFileSync(config, 'utf8')).toBe(CONFIG);
  }
});

test('R-CONN-01 reconnecting keeps settings that the owner added to our server', async () => {
  const { connections, config, row } = await aHomeWithOpenClaw();
  await connections.connect(CLIENT);
  const own = readFileSync(config, 'utf8').replace('"HELMDECK_DATA_DIR"', '"MINE": "a", "HELMDECK_DATA_DIR"');
  writeFileSync(config, own.replace(/"command": "[^"]*"/, '"command": "/gone/node"'));
  await connections.connect(CLIENT);
  expect(readFileSync(config, 'utf8')).toContain('"MINE": "a", "HELMDECK_DATA_DIR"');
  expect(await row('openclaw')).toMatchObject({ state: 'connected' });
});

test('R-CLAW-10 missing, outdated and disabled parts are reported, and reconnecting repairs them', async () => {
  const { connections, config, plugin, row } = await aHomeWithOpenClaw();
  await connections.connect(CLIENT);
  const connected = readFileSync(config, 'utf8');
  writeFileSync(join(plugin, 'index.js'), 'export default {};\n');
  expect(await row('openclaw')).toMatchObject({ state: 'broken', why: expect.stringContaining('from another version') });
  rmSync(plugin, { recursive: true });
  expect(await row('openclaw')).toMatchObject({
    state: 'broken',
    why: expect.stringContaining('plugin of Helmdeck Memory is missing'),
  });
  await connections.connect(CLIENT);
  expect(await row('openclaw')).toMatchObject({ state: 'connected' });
  for (const [on, off] of [
    ['"enabled":true', '"enabled":false'],
    ['"memory-core",', '"memory-core", "x"], "deny": ['],
    ['"allow"', '"enabled": false, "allow"'],
  ] as const) {
    expect(connected).toContain(on);
    writeFileSync(config, connected.replace(on, off));
    expect(await row('openclaw')).toMatchObject({ state: 'broken', why: expect.stringContaining('disabled') });
  }
  writeFileSync(config, CONFIG);
  expect(await row('openclaw')).toMatchObject({ state: 'wiped' });
});

test('R-CLAW-11 OPENCLAW_QMD_ENABLED disables the QMD search, and the configuration that mcporter reads is edited', async () => {
  const { connections, mcporter, host, put } = await aHomeWithOpenClaw();
  const environment = host.environment as Record<string, string>;
  environment['HELMDECK_OPENCLAW_QMD'] = 'off';
  await connections.connect(CLIENT);
  expect(existsSync(mcporter)).toBe(false);
  delete environment['HELMDECK_OPENCLAW_QMD'];
  environment['OPENCLAW_QMD_ENABLED'] = 'false';
  await connections.connect(CLIENT);
  expect(existsSync(mcporter)).toBe(false);
  delete environment['OPENCLAW_QMD_ENABLED'];
  const own = put('.mcporter/mcporter.jsonc', '{\n  // mine\n}\n');
  await connections.connect(CLIENT);
  expect(existsSync(mcporter)).toBe(false);
  expect(readFileSync(own, 'utf8')).toMatch(/\/\/ mine[^]*"--qmd"/);
  const again = readFileSync(own, 'utf8');
  await connections.connect(CLIENT);
  expect(readFileSync(own, 'utf8')).toBe(again);
});

test("R-CLAW-11 an entry of another program with our name in mcporter's file is kept", async () => {
  const { connections, mcporter, host, put } = await aHomeWithOpenClaw();
  const own = '{ "mcpServers": { "helmdeck": { "url": "http://mine" } } }\n';
  put('.mcporter/mcporter.json', own);
  const environment = host.environment as Record<string, string>;
  environment['OPENCLAW_QMD_ENABLED'] = 'false';
  await connections.connect(CLIENT);
  await connections.disconnect(CLIENT);
  expect(readFileSync(mcporter, 'utf8')).toBe(own);
  delete environment['OPENCLAW_QMD_ENABLED'];
  await connections.connect(CLIENT);
  expect(readFileSync(mcporter, 'utf8')).toContain('--qmd');
  writeFileSync(mcporter, readFileSync(mcporter, 'utf8').replace(/\n$/, ' // later\n'));
  await connections.disconnect(CLIENT);
  expect(readFileSync(mcporter, 'utf8')).toContain('"url": "http://mine"');
});

test('R-CLAW-12 a missing or unreadable configuration is not written', async () => {
  const { connections, config, asked } = await aHomeWithOpenClaw('{ broken');
  await expect(connections.connect(CLIENT)).rejects.toMatchObject({ code: 'invalid_input' });
  expect(readFileSync(config, 'utf8')).toBe('{ broken');
  rmSync(config);
  await expect(connections.connect(CLIENT)).rejects.toMatchObject({ message: expect.stringContaining('openclaw onboard') });
  expect(existsSync(config)).toBe(false);
  expect(asked).toThrow(/ENOENT/);
});

test('R-CLAW-14 a handwritten JSON5 configuration gets only our entry', async () => {
  const text = "// mine\n{\n  gateway: { mode: 'local', },\n  plugins: { allow: [\n    'memory-core', // theirs\n  ] },\n}\n";
  const { connections, config, row } = await aHomeWithOpenClaw(text);
  const done = await connections.connect(CLIENT);
  expect(done.verified).toMatchObject({ works: true });
  expect(await row('openclaw')).toMatchObject({ state: 'connected' });
  const after = readFileSync(config, 'utf8');
  for (const kept of ["gateway: { mode: 'local', }", '    \'memory-core\', // theirs\n    "helmdeck-memory",\n'])
    expect(after).toContain(kept);
  writeFileSync(config, after.replace("'local'", "'remote'"));
  await connections.disconnect({ client: 'openclaw' });
  expect(readFileSync(config, 'utf8')).toBe(text.replace("'local'", "'remote'"));
});

test("R-CLAW-12 OpenClaw's own memory settings are never changed", async () => {
  const memory = '"memory": { "backend": "builtin", "search": { "provider": "ollama" } }';
  const { connections, config } = await aHomeWithOpenClaw(`{\n  ${memory}\n}\n`);
  await connections.connect(CLIENT);
  expect(readFileSync(config, 'utf8')).toContain(memory);
  expect(readFileSync(config, 'utf8')).not.toMatch(/qmd/i);
});

test('R-CLAW-10 OpenClaw is found through its environment variables, and gets the options that its version supports', async () => {
  const { host, home, put, row } = await createServedHome();
  const environment = host.environment as Record<string, string>;
  expect(await row('openclaw')).toMatchObject({ installed: false });
  environment['OPENCLAW_STATE_DIR'] = join(home, 'elsewhere');
  const config = put('elsewhere/openclaw.json', '{}');
  expect(await row('openclaw')).toMatchObject({ installed: true, config });
  environment['OPENCLAW_CONFIG_PATH'] = '~/claw.json';
  expect(await row('openclaw')).toMatchObject({ config: join(home, 'claw.json') });
  mkdirSync(join(home, 'elsewhere/bin'), { recursive: true });
  for (const [version, knows] of [
    ['2026.7.35', false],
    ['2026.8.1', true],
    ['2027.1.0', true],
    [undefined, true],
  ] as const)
    expect(installArgs(version).includes('--accept-capabilities')).toBe(knows);
});
