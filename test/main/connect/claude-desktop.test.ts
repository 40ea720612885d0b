import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { claudeDesktop } from '../../../src/main/connect/claude-desktop.ts';
import { codex } from '../../../src/main/connect/codex.ts';
import { entryFor } from '../../../src/main/connect/launch.ts';
import { localMachine } from '../../../src/main/connect/programs.ts';
import { createServedHome as aHomeOfClients } from '../../support/clients.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const CONFIG = 'claude_desktop_config.json';
const PACKAGE = 'AppData/Local/Packages/Claude_pzs8sxrjxfjjc';
const PACKED = `${PACKAGE}/LocalCache/Roaming/Claude`;

/** A home folder with files and, with a trailing slash, folders. */
function aHome(platform: NodeJS.Platform, files: readonly string[] = [], environment: Record<string, string> = {}) {
  const home = tempFolder();
  const put = (path: string, text = '{}'): void => {
    mkdirSync(path.endsWith('/') ? join(home, path) : dirname(join(home, path)), { recursive: true });
    if (!path.endsWith('/')) writeFileSync(join(home, path), text);
  };
  for (const file of files) put(file);
  const windows = { APPDATA: join(home, 'AppData', 'Roaming'), LOCALAPPDATA: join(home, 'AppData', 'Local') };
  const host = localMachine({
    environment: { PATH: '', ...(platform === 'win32' && windows), ...environment },
    platform,
    home: () => home,
  });
  return { home, put, host };
}

const offer: Parameters<typeof claudeDesktop.connect>[1] = {
  client: 'claude-desktop',
  entry: { command: '/usr/bin/node', args: ['/data/bridge.mjs', '--client', 'claude-desktop'], env: {} },
  folder: '/data',
  tokenFile: '/data/clients/claude-desktop.token',
  token: '••••',
  hooks: { commands: {}, trust: false },
};

type Home = ReturnType<typeof aHome>;

async function stepOf({ host }: Home, ask = () => claudeDesktop.connect(host, offer)) {
  const [step] = await ask();
  if (step?.does !== 'edit') throw new Error('It edits nothing.');
  return step;
}

describe('the configuration of Claude Desktop is found (R-BUNDLE-04)', () => {
  test.each([
    ['macOS', 'darwin', ['Library/Application Support/Claude/'], 'Library/Application Support/Claude'],
    ['Linux', 'linux', ['.config/Claude/'], '.config/Claude'],
    ['Windows, without a package', 'win32', ['AppData/Roaming/Claude/'], 'AppData/Roaming/Claude'],
    ['Windows, as a package', 'win32', [`${PACKAGE}/`], PACKED],
    [
      'Windows, with both an installation and a package',
      'win32',
      [`AppData/Roaming/Claude/${CONFIG}`, `${PACKED}/${CONFIG}`],
      PACKED,
    ],
    // A new file in the package would hide the servers in the existing one.
    [
      'Windows, with a package that has no configuration yet',
      'win32',
      [`AppData/Roaming/Claude/${CONFIG}`, `${PACKED}/`],
      'AppData/Roaming/Claude',
    ],
    [
      'Windows, with packages of other publishers',
      'win32',
      ['AppData/Local/Packages/ClaudeNotes_1/', 'AppData/Roaming/Claude/'],
      'AppData/Roaming/Claude',
    ],
  ] as const)('on %s', async (_where, platform, files, folder) => {
    const home = aHome(platform, files);
    expect(await claudeDesktop.detect(home.host)).toEqual({ installed: true, config: join(home.home, folder, CONFIG) });
    expect((await stepOf(home)).path).toBe(join(home.home, folder, CONFIG));
  });

  test('on Linux, in XDG_CONFIG_HOME', async () => {
    const config = tempFolder();
    mkdirSync(join(config, 'Claude'));
    const home = aHome('linux', [], { XDG_CONFIG_HOME: config });
    expect(await claudeDesktop.detect(home.host)).toEqual({ installed: true, config: join(config, 'Claude', CONFIG) });
  });

  test.each([
    ['darwin', 'Applications/Claude.app/'],
    ['win32', 'AppData/Local/AnthropicClaude/'],
  ] as const)('on %s it is known before it was ever started', async (platform, file) => {
    expect(await claudeDesktop.detect(aHome(platform, [file]).host)).toMatchObject({ installed: true });
  });

  test.each(['win32', 'linux'] as const)('on %s, a machine without it is recognised', async (platform) => {
    expect(await claudeDesktop.detect(aHome(platform).host)).toMatchObject({ installed: false });
  });
});

test('our entry is added and removed, and the owner is asked to restart Claude Desktop (R-BUNDLE-04)', async () => {
  const home = aHome('linux');
  const before = '{\n\t"globalShortcut": "",\n\t"mcpServers": {\n\t\t"files": { "command": "x" }\n\t}\n}\n';
  home.put(`.config/Claude/${CONFIG}`, before);
  const { path, edit } = await stepOf(home);
  const after = edit(before) ?? '';
  expect(JSON.parse(after)).toMatchObject({
    globalShortcut: '',
    mcpServers: { files: { command: 'x' }, helmdeck: { command: '/usr/bin/node' } },
  });
  writeFileSync(path, after);
  expect(await claudeDesktop.look(home.host)).toEqual({ at: 'present', entry: offer.entry });
  const undo = await stepOf(home, () => claudeDesktop.disconnect(home.host, new Map()));
  expect(undo.edit(readFileSync(path, 'utf8'))).toBe(before);
  expect(claudeDesktop.afterwards).toMatch(/Quit Claude Desktop/);
});

describe('if our bundle is installed (R-BUNDLE-05)', () => {
  const withBundle = (): Home => {
    const home = aHome('darwin');
    const folder = 'Library/Application Support/Claude/Claude Extensions';
    home.put(`${folder}/another/manifest.json`, '{"name": "another"}');
    home.put(`${folder}/broken/manifest.json`, 'null');
    home.put(`${folder}/local.mcpb.helmdeck/manifest.json`, readFileSync('integrations/claude-desktop/manifest.json', 'utf8'));
    return home;
  };

  test('connecting adds no second server, and removes an existing one', async () => {
    const home = withBundle();
    expect(await claudeDesktop.look(home.host)).toEqual({ at: 'bundled' });
    const { edit } = await stepOf(home);
    expect(edit(undefined)).toBeUndefined();
    expect(edit('{"theme": "dark"}\n')).toBe('{"theme": "dark"}\n');
    expect(edit('{"mcpServers": {"helmdeck": {"command": "x"}, "b": {}}}')).toBe('{"mcpServers": { "b": {}}}');
  });

  test('a disabled bundle is reported', async () => {
    const home = withBundle();
    home.put('Library/Application Support/Claude/Claude Extensions Settings/local.mcpb.helmdeck.json', '{"isEnabled": false}');
    expect(await claudeDesktop.look(home.host)).toEqual({ at: 'bundled', disabled: true });
  });

  const EXTENSION = 'Claude Extensions/local.mcpb.helmdeck/manifest.json';
  const FOLDER = process.platform === 'darwin' ? 'Library/Application Support/Claude' : '.config/Claude';

  test('it gets only a token, and its removal is noticed', async () => {
    const { connections, home, put, row, served } = await aHomeOfClients({ connectors: [claudeDesktop] });
    put(join(FOLDER, EXTENSION), readFileSync('integrations/claude-desktop/manifest.json', 'utf8'));
    expect(await row('claude-desktop')).toMatchObject({ state: 'not_connected' });
    const done = await connections.connect({ client: 'claude-desktop', subject: 'me' });
    expect(done.verified).toMatchObject({ works: true });
    expect(existsSync(join(home, FOLDER, CONFIG))).toBe(false);
    expect(existsSync(join(served.folder, 'clients', 'claude-desktop.token'))).toBe(true);
    expect(await row('claude-desktop')).toMatchObject({ state: 'connected' });
    rmSync(join(home, FOLDER, EXTENSION));
    expect(await row('claude-desktop')).toMatchObject({ state: 'wiped' });
    await connections.disconnect({ client: 'claude-desktop' });
    expect(await served.tokens.list()).toEqual({ tokens: [] });
  });
});

test('a bridge that needs the Node of Claude Desktop is not tested, with the reason (R-BUNDLE-05)', async () => {
  const { connections, put, row } = await aHomeOfClients({ connectors: [claudeDesktop] });
  const folder = process.platform === 'darwin' ? 'Library/Application Support/Claude' : '.config/Claude';
  put(join(folder, CONFIG), '{"mcpServers": {"helmdeck": {"command": "node", "args": ["x.mjs"]}}}');
  expect(await row('claude-desktop')).toMatchObject({ state: 'differs' });
  expect(await connections.verify({ client: 'claude-desktop' })).toMatchObject({
    works: false,
    why: expect.stringMatching(/client starts the bridge with its own Node/),
  });
});

test('without another Node, the Node of Claude Desktop starts the bridge (R-BUNDLE-05)', () => {
  const { host } = aHome('win32', ['AppData/Roaming/Claude/']);
  vi.stubGlobal('process', { ...process, versions: { ...process.versions, electron: '45' } });
  onTestFinished(() => void vi.unstubAllGlobals());
  expect(entryFor(host, '/data', claudeDesktop).command).toBe('node');
  expect(() => entryFor(host, '/data', codex)).toThrow(/Node 18 or newer/);
});
