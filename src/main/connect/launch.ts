import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import type { HookEvent } from '../../contract/client.ts';
import { Failure } from '../../contract/failure.ts';
import { writeDurableFile } from '../../core/file/files.ts';
import type { Connector, ClientEntry, LocalMachine } from './connector.ts';
import { findProgram, isSafe, isTrustedFile } from './programs.ts';

/** Oldest major version of Node that can run the bridge. */
const MIN_NODE = 18;

const BRIDGE = 'helmdeck-memory-mcp.mjs';
export const HOOK_FILE = 'helmdeck-memory-hook.mjs';

/** Name of a folder in which fnm creates links to Node. fnm deletes the links when the shell exits. */
const TEMPORARY_LINKS = 'fnm_multishells';

const NO_NODE = `Clients need Node ${MIN_NODE} or newer, in a folder that only you and root can write to, but no such Node was found. Install Node from https://nodejs.org and try again.`;

/**
 * Returns the entry for a client. The entry stays valid if this program is moved or updated, because the entry starts a copy of
 * the bridge in the data folder.
 */
export function entryFor(
  machine: LocalMachine,
  folder: string,
  { id: client, bringsNode }: Pick<Connector, 'id' | 'bringsNode'>,
): ClientEntry {
  const command = nodeFor(machine) ?? (bringsNode ? 'node' : undefined);
  if (command === undefined) throw new Failure('unavailable', NO_NODE);
  // Always set HELMDECK_DATA_DIR, because the client's environment can have a different default data folder.
  return { command, args: [join(folder, BRIDGE), '--client', client], env: { HELMDECK_DATA_DIR: folder } };
}

/** The name of our command, which starts the bridge in entries that users write by hand. */
export const COMMAND = 'helmdeck-memory';

/**
 * True if an entry starts our bridge. Recognizes entries that this program wrote for any data folder, and entries that users
 * wrote by hand as documented.
 */
export const startsBridge = ({ command, args }: ClientEntry): boolean =>
  basename(args[0] ?? '') === BRIDGE || (basename(command).split('.')[0] === COMMAND && args.includes('mcp'));

/** True if the entry starts our bridge with the token of this client. */
export const startsBridgeFor = (entry: ClientEntry, client: string): boolean =>
  startsBridge(entry) && entry.args[entry.args.indexOf('--client') + 1] === client;

/**
 * Returns the program that a connection test is allowed to start for an entry: our own command, or a Node that runs our bridge.
 * That Node must be the recorded Node of the entry, or a Node that we would write to the entry. Otherwise returns undefined:
 * other programs can write entries too, and a test must not run their commands.
 */
export function ownProgramOf(
  { command, args: [first = ''] }: ClientEntry,
  machine: LocalMachine,
  recorded: ClientEntry | undefined,
): string | undefined {
  const own = findProgram(machine, COMMAND);
  if (command === COMMAND || command === own) return first === 'mcp' ? own : undefined;
  const isOurs = command === recorded?.command || command === process.execPath || command === nodeFor(machine);
  return isOurs && isSafe(command) && isOurBridge(first) ? command : undefined;
}

const isOurBridge = (path: string): boolean => isOurFile(path, BRIDGE);

const isOurFile = (path: string, name: keyof typeof SOURCES): boolean =>
  basename(path) === name && isTrustedFile(path) && readFileSync(path, 'utf8') === sourceOf(name);

/** Folders of the files that clients start. */
const SOURCES = { [BRIDGE]: 'stdio-bridge', [HOOK_FILE]: 'hook' } as const;

const sourceOf = (name: keyof typeof SOURCES): string => readFileSync(bundled(SOURCES[name], name), 'utf8');

/** Copies the bridge and the hook to the data folder. The entries and hooks of all clients start them from there. */
export function installLaunchers(folder: string): void {
  for (const name of [BRIDGE, HOOK_FILE] as const) {
    const path = join(folder, name);
    const source = sourceOf(name);
    if (!existsSync(path) || readFileSync(path, 'utf8') !== source) writeDurableFile(path, source);
  }
}

/** Updates an installed bridge and hook to the version of this program. */
export function refreshLaunchers(folder: string): void {
  if (existsSync(join(folder, BRIDGE))) installLaunchers(folder);
}

/** Returns the path of the hook in the data folder. Undefined if the file is missing or is not our hook. */
export function hookFile(folder: string): string | undefined {
  const path = join(folder, HOOK_FILE);
  return existsSync(path) && isOurFile(path, HOOK_FILE) ? path : undefined;
}

/** True for a hook that runs our script, for any client and data folder. */
export const isOurHook = (handler: unknown): boolean => {
  const { command } = Object(handler) as { command?: unknown };
  return typeof command === 'string' && command.includes(HOOK_FILE);
};

interface HookTarget {
  readonly folder: string;
  readonly client: string;
  readonly platform: NodeJS.Platform;
  readonly windowsShell: 'powershell' | undefined;
}

/** Returns the shell command that a client runs at an event. */
export function hookCommand(node: string, { folder, client, platform, windowsShell }: HookTarget, event: HookEvent): string {
  const shell = platform === 'win32' ? (windowsShell ?? 'cmd') : 'sh';
  const command = [node, join(folder, HOOK_FILE), client, event].map(QUOTED[shell]).join(' ');
  return shell === 'powershell' ? `& ${command}` : command;
}

/** Quotes a part of a command for a shell. */
const QUOTED = {
  sh: (part: string): string => (/^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", String.raw`'\''`)}'`),
  cmd: (part: string): string => (/^[\w.-]+$/.test(part) ? part : `"${part}"`),
  // PowerShell expands `$` and backticks between double quotation marks. It reads typographic apostrophes as apostrophes.
  powershell: (part: string): string => (/^[\w.-]+$/.test(part) ? part : `'${part.replaceAll(/['\u2018-\u201b]/g, '$&$&')}'`),
};

/** Returns the path of a file in `integrations`. Works from the sources and from the built program. */
export function bundled(...parts: readonly string[]): string {
  const candidates = ['../../..', '../..'].map((up) => join(import.meta.dirname, up, 'integrations', ...parts));
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Failure('unavailable', 'Files that connect clients are missing from this installation. Reinstall Helmdeck Memory.');
}

/**
 * Returns the path of a Node that can run the bridge. Prefers a Node that is installed on the machine, because that Node remains
 * if this program is removed.
 */
function nodeFor(machine: LocalMachine): string | undefined {
  const found = findProgram(machine, 'node', [], (path) => !path.includes(`${sep}node_modules${sep}`) && isNewEnough(path));
  if (found !== undefined) return found.includes(TEMPORARY_LINKS) ? realpathSync(found) : found;
  const inElectron = 'electron' in process.versions;
  return !inElectron && isSafe(process.execPath) ? process.execPath : undefined;
}

/** Results of version checks, by path and modification time. */
const checked = new Map<string, boolean>();

function isNewEnough(node: string): boolean {
  const name = `${node} ${statSync(node).mtimeMs}`;
  const result = checked.get(name) ?? hasMinVersion(node);
  checked.set(name, result);
  return result;
}

function hasMinVersion(node: string): boolean {
  const { stdout } = spawnSync(node, ['--version'], { env: {}, encoding: 'utf8', timeout: 5000, windowsHide: true });
  return Number(/^v(\d+)\./.exec(stdout ?? '')?.[1] ?? 0) >= MIN_NODE;
}
