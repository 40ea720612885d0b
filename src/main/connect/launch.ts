import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { writeDurableFile } from '../../core/file/files.ts';
import type { Connector, Entry, LocalMachine } from './connector.ts';
import { findProgram, isSafe, isTrustedFile } from './programs.ts';

/** The oldest Node that runs the bridge. */
const MIN_NODE = 18;

const BRIDGE = 'helmdeck-memory-mcp.mjs';

/** fnm creates links to Node in a folder with this name and deletes them when the shell exits. */
const TEMPORARY_LINKS = 'fnm_multishells';

const NO_NODE = `Clients need Node ${MIN_NODE} or newer, in a folder that only you and root can write to. None was found. Install it from https://nodejs.org and try again.`;

/** The entry for a client. It stays valid if this program is moved or updated, because the bridge is in the data folder. */
export function entryFor(
  machine: LocalMachine,
  folder: string,
  { id: client, bringsNode }: Pick<Connector, 'id' | 'bringsNode'>,
): Entry {
  const command = nodeFor(machine) ?? (bringsNode ? 'node' : undefined);
  if (command === undefined) throw new Failure('unavailable', NO_NODE);
  // Always set: the client may run with an environment that has another default folder.
  return { command, args: [join(folder, BRIDGE), '--client', client], env: { HELMDECK_DATA_DIR: folder } };
}

/** Our command, which starts the bridge in entries that users write by hand. */
export const COMMAND = 'helmdeck-memory';

/** Whether an entry starts our bridge: written by this program, also for another data folder, or by hand as documented. */
export const startsBridge = ({ command, args }: Entry): boolean =>
  basename(args[0] ?? '') === BRIDGE || (basename(command).split('.')[0] === COMMAND && args.includes('mcp'));

/** Whether the entry uses the token stored for this client. */
export const startsBridgeFor = (entry: Entry, client: string): boolean =>
  startsBridge(entry) && entry.args[entry.args.indexOf('--client') + 1] === client;

/**
 * The program that testing an entry may start: our command, or our bridge with a Node that we would write or have written to the
 * entry. Undefined for everything else: other programs write these files too, and "Test" must not run their commands.
 */
export function ownProgramOf(
  { command, args: [first = ''] }: Entry,
  machine: LocalMachine,
  recorded: Entry | undefined,
): string | undefined {
  const own = findProgram(machine, COMMAND);
  if (command === COMMAND || command === own) return first === 'mcp' ? own : undefined;
  const isOurs = command === recorded?.command || command === process.execPath || command === nodeFor(machine);
  return isOurs && isSafe(command) && isOurBridge(first) ? command : undefined;
}

const isOurBridge = (path: string): boolean =>
  basename(path) === BRIDGE && isTrustedFile(path) && readFileSync(path, 'utf8') === bridgeText();

/** Copies the bridge to the data folder, where the entries of all clients expect it. */
export function installBridge(folder: string): void {
  const bridge = bridgeText();
  const path = join(folder, BRIDGE);
  if (!existsSync(path) || readFileSync(path, 'utf8') !== bridge) writeDurableFile(path, bridge);
}

const bridgeText = (): string => readFileSync(bundled('stdio-bridge', BRIDGE), 'utf8');

/** Updates an installed bridge to the version of this program. */
export function refreshBridge(folder: string): void {
  if (existsSync(join(folder, BRIDGE))) installBridge(folder);
}

/** Finds a file of `integrations`, from the sources, the built program or one of its chunks. */
export function bundled(...parts: readonly string[]): string {
  const candidates = ['../../..', '../..'].map((up) => join(import.meta.dirname, up, 'integrations', ...parts));
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Failure('unavailable', 'The files for clients are missing from this installation. Reinstall Helmdeck Memory.');
}

/** Prefers the Node installed on the machine, which remains if this program is removed. */
function nodeFor(machine: LocalMachine): string | undefined {
  const found = findProgram(machine, 'node', [], (path) => !path.includes(`${sep}node_modules${sep}`) && isNewEnough(path));
  if (found !== undefined) return found.includes(TEMPORARY_LINKS) ? realpathSync(found) : found;
  const inElectron = 'electron' in process.versions;
  return !inElectron && isSafe(process.execPath) ? process.execPath : undefined;
}

/** Version checks by path and modification time. */
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
