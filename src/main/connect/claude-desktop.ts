import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostMachine } from '../config/config.ts';
import { type Connector, ENTRY, type LocalMachine, type EntryState } from './connector.ts';
import { jsonClient } from './json-client.ts';
import { dropValue } from './json-text.ts';
import { applicationData, namesInFolder } from './places.ts';
import { findProgram } from './programs.ts';

const CONFIG = 'claude_desktop_config.json';
const SERVERS = ['mcpServers'];
/** The name of our extension bundle, from the bundle's manifest. */
const BUNDLE = 'helmdeck-memory';

const byConfig = jsonClient({
  id: 'claude-desktop',
  name: 'Claude Desktop',
  bringsNode: true,
  servers: SERVERS,
  afterwards: 'Quit Claude Desktop completely, including its tray icon. Then start Claude Desktop again.',
  async detect(machine) {
    return { installed: isInstalled(machine), config: configOf(machine) };
  },
});

/**
 * Adds our entry to Claude Desktop's configuration. If our extension bundle is installed, removes the entry instead, because with
 * both, every tool would be listed twice. The bundle needs only the token.
 */
export const claudeDesktop: Connector = {
  ...byConfig,
  async look(machine): Promise<EntryState> {
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

/** Returns the folders in which Claude Desktop looks for its configuration, in search order. */
function foldersOf(machine: HostMachine): readonly [string, ...string[]] {
  const usual = join(applicationData(machine), 'Claude');
  if (machine.platform !== 'win32') return [usual];
  const [first, ...others] = packagesOf(machine).map((folder) => join(folder, 'LocalCache', 'Roaming', 'Claude'));
  return first === undefined ? [usual] : [first, ...others, usual];
}

/**
 * Returns the folders of Claude Desktop's MSIX package, the default installer since February 2026. The package reads its own copy
 * of a file in %APPDATA%, and the original only if there is no copy (anthropics/claude-code issues 25579 and 26073).
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
  if (machine.platform === 'win32')
    return packagesOf(machine).length > 0 || existsSync(join(localOf(machine), 'AnthropicClaude'));
  return findProgram(machine, 'claude-desktop') !== undefined;
}

/** Returns the state of our extension bundle, or undefined if the bundle is not installed. */
function bundleIn(machine: HostMachine): EntryState | undefined {
  for (const folder of foldersOf(machine)) {
    const id = namesInFolder(join(folder, 'Claude Extensions'))
      .toSorted()
      .find((name) => valueIn(join(folder, 'Claude Extensions', name, 'manifest.json'), 'name') === BUNDLE);
    if (id === undefined) continue;
    const disabled = valueIn(join(folder, 'Claude Extensions Settings', `${id}.json`), 'isEnabled') === false;
    return { at: 'bundled', ...(disabled && { disabled }) };
  }
  return undefined;
}

/** Reads one field from another program's JSON file. Returns undefined if the file cannot be read or is not JSON. */
function valueIn(path: string, name: string): unknown {
  try {
    return (Object(JSON.parse(readFileSync(path, 'utf8'))) as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}
