import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { writeDurableFile } from '../../core/file/files.ts';
import type { Connector, Entry, LocalMachine } from './connector.ts';
import { findProgram, isSafe, isTrustedFile } from './programs.ts';

/** What the bridge needs. */
const LEAST_NODE = 18;

const BRIDGE = 'helmdeck-memory-mcp.mjs';

/** In the folder of such a name fnm links a Node for one shell, and takes the link away with it. */
const OF_A_SHELL = 'fnm_multishells';

const NO_NODE = `Clients start the bridge with Node ${LEAST_NODE} or newer, and none was found on this machine that only you and root can write; get it from https://nodejs.org, and try again.`;

/** What a client is to start. It stays what it is when we are moved, updated, or packed into one file: the bridge lies with the data. */
export function entryFor(
  machine: LocalMachine,
  folder: string,
  { id: client, bringsNode }: Pick<Connector, 'id' | 'bringsNode'>,
): Entry {
  const command = nodeFor(machine) ?? (bringsNode ? 'node' : undefined);
  if (command === undefined) throw new Failure('unavailable', NO_NODE);
  // Said even where it is the usual one: who starts a client may have another idea of what is usual.
  return { command, args: [join(folder, BRIDGE), '--client', client], env: { HELMDECK_DATA_DIR: folder } };
}

/** Our own command, by which the bridge is started where an agent is connected by hand. */
export const COMMAND = 'helmdeck-memory';

/** Whether an entry is one that this program makes, be it for another data folder or from another time, or README says to make. */
export const startsBridge = ({ command, args }: Entry): boolean =>
  basename(args[0] ?? '') === BRIDGE || (basename(command).split('.')[0] === COMMAND && args.includes('mcp'));

/** Whether it takes the token that is kept for this client. */
export const startsBridgeFor = (entry: Entry, client: string): boolean =>
  startsBridge(entry) && entry.args[entry.args.indexOf('--client') + 1] === client;

/**
 * The program that a test of an entry starts: our own command, or our bridge on a Node that we would write, or did write, into the
 * entry ourselves. Undefined for anything else, because any program can be called node, and other programs write these
 * configurations too. What they put there must not run because the owner pressed "Test".
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

/** Puts the bridge that came with this program where the entries of all clients look for it. */
export function installBridge(folder: string): void {
  const bridge = bridgeText();
  const place = join(folder, BRIDGE);
  if (!existsSync(place) || readFileSync(place, 'utf8') !== bridge) writeDurableFile(place, bridge);
}

const bridgeText = (): string => readFileSync(bundled('stdio-bridge', BRIDGE), 'utf8');

/** After an update, what connected clients start is of the same version as the program. */
export function refreshBridge(folder: string): void {
  if (existsSync(join(folder, BRIDGE))) installBridge(folder);
}

/** From the sources, from the built program, and from one of its chunks. */
export function bundled(...parts: readonly string[]): string {
  const up = ['../../..', '../..'].map((way) => join(import.meta.dirname, way, 'integrations', ...parts));
  const found = up.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Failure('unavailable', 'What clients need of us is missing from this installation; install it anew.');
}

/** The machine's own before ours: it is still there when we are not. */
function nodeFor(machine: LocalMachine): string | undefined {
  const found = findProgram(machine, 'node', [], (path) => !path.includes(`${sep}node_modules${sep}`) && isNewEnough(path));
  if (found !== undefined) return found.includes(OF_A_SHELL) ? realpathSync(found) : found;
  const inElectron = 'electron' in process.versions;
  return !inElectron && isSafe(process.execPath) ? process.execPath : undefined;
}

/** What was asked before, by path and time of its last change. */
const known = new Map<string, boolean>();

function isNewEnough(node: string): boolean {
  const name = `${node} ${statSync(node).mtimeMs}`;
  const answer = known.get(name) ?? asked(node);
  known.set(name, answer);
  return answer;
}

function asked(node: string): boolean {
  const { stdout } = spawnSync(node, ['--version'], { env: {}, encoding: 'utf8', timeout: 5000, windowsHide: true });
  return Number(/^v(\d+)\./.exec(stdout ?? '')?.[1] ?? 0) >= LEAST_NODE;
}
