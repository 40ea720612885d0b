import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostMachine } from '../config/config.ts';
import type { Connector, Look, LocalMachine } from './connector.ts';
import { ENTRY } from './connector.ts';
import { jsonClient } from './json-client.ts';
import { dropValue } from './json-text.ts';
import { applicationData, namesInFolder } from './places.ts';
import { findProgram } from './programs.ts';

const CONFIG = 'claude_desktop_config.json';
const SERVERS = ['mcpServers'];
/** As the manifest of our bundle says. */
const BUNDLE = 'helmdeck-memory';

const byConfig = jsonClient({
  id: 'claude-desktop',
  name: 'Claude Desktop',
  bringsNode: true,
  servers: SERVERS,
  afterwards: 'Quit Claude Desktop, in the menu of its icon too, and start it again: it reads its configuration at the start.',
  async detect(machine) {
    return { installed: isInstalled(machine), config: configOf(machine) };
  },
});

/** By its configuration, or, where our bundle is installed in it, by the token alone: with both it would have every tool twice. */
export const claudeDesktop: Connector = {
  ...byConfig,
  async look(machine): Promise<Look> {
    const look = await byConfig.look(machine);
    if (look.at !== 'absent') return look;
    return bundleIn(machine) ?? look;
  },
  async connect(machine, offer) {
    if (!bundleIn(machine)) return byConfig.connect(machine, offer);
    const edit = (before?: string): string | undefined => before && dropValue(before, [...SERVERS, ENTRY]);
    return [{ does: 'edit', path: configOf(machine), edit }];
  },
};

/** Where it may keep its configuration, the place that it looks at first before the others. */
function foldersOf(machine: HostMachine): readonly [string, ...string[]] {
  const usual = join(applicationData(machine), 'Claude');
  if (machine.platform !== 'win32') return [usual];
  const [first, ...others] = packagesOf(machine).map((folder) => join(folder, 'LocalCache', 'Roaming', 'Claude'));
  return first === undefined ? [usual] : [first, ...others, usual];
}

/**
 * Installed as a package (MSIX), as it is since February 2026, it sees files of its own in the place of those in %APPDATA%, and
 * those only where it has none (anthropics/claude-code issues 25579 and 26073).
 */
const packagesOf = (machine: HostMachine): string[] => {
  const packages = join(localOf(machine), 'Packages');
  return namesInFolder(packages)
    .toSorted()
    .filter((name) => /^Claude_\w+$/.test(name))
    .map((name) => join(packages, name));
};

const localOf = (machine: HostMachine): string => machine.environment['LOCALAPPDATA'] ?? join(machine.home(), 'AppData', 'Local');

function configOf(machine: HostMachine): string {
  const folders = foldersOf(machine);
  return join(folders.find((folder) => existsSync(join(folder, CONFIG))) ?? folders[0], CONFIG);
}

function isInstalled(machine: LocalMachine): boolean {
  if (foldersOf(machine).some((folder) => existsSync(folder))) return true;
  if (machine.platform === 'darwin')
    return ['/Applications', join(machine.home(), 'Applications')].some((folder) => existsSync(join(folder, 'Claude.app')));
  if (machine.platform === 'win32') return packagesOf(machine).length > 0 || existsSync(join(localOf(machine), 'AnthropicClaude'));
  return findProgram(machine, 'claude-desktop') !== undefined;
}

/** How our bundle stands in it; undefined where it is not. */
function bundleIn(machine: HostMachine): Look | undefined {
  for (const folder of foldersOf(machine)) {
    const id = namesInFolder(join(folder, 'Claude Extensions'))
      .toSorted()
      .find((name) => valueIn(join(folder, 'Claude Extensions', name, 'manifest.json'), 'name') === BUNDLE);
    if (id === undefined) continue;
    const off = valueIn(join(folder, 'Claude Extensions Settings', `${id}.json`), 'isEnabled') === false;
    return { at: 'bundled', ...(off && { disabled: true }) };
  }
  return undefined;
}

/** Of files that are none of ours, and may be anything. */
function valueIn(path: string, name: string): unknown {
  try {
    return (Object(JSON.parse(readFileSync(path, 'utf8'))) as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}
