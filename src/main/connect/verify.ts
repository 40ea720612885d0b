import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import type { ClientVerification } from '../../contract/client.ts';
import { Failure } from '../../contract/failure.ts';
import type { ClientEntry, LocalMachine } from './connector.ts';
import { ownProgramOf } from './launch.ts';
import { environmentFor, isSafe } from './programs.ts';

const TIMEOUT_MS = 20_000;

interface Response {
  readonly id?: number;
  readonly result?: {
    readonly serverInfo?: { readonly version?: string };
    readonly tools?: readonly unknown[];
    readonly isError?: boolean;
    readonly content?: readonly { readonly text?: string }[];
  };
  readonly error?: { readonly message?: string };
}

/** A tool's structured result, or the error with which the tool failed. */
interface ToolResult {
  readonly refused: boolean;
  readonly error?: string;
  readonly message?: string;
  readonly [more: string]: unknown;
}

interface BridgeSession {
  readonly tools: number;
  readonly call: (tool: string, input: object) => Promise<ToolResult>;
}

/** Tests an entry: starts its command and calls a tool that changes nothing. */
export async function verify(
  entry: ClientEntry,
  machine: LocalMachine,
  recorded: ClientEntry | undefined,
): Promise<ClientVerification> {
  let tools = 0;
  try {
    return await withBridge(entry, { machine, recorded }, async (session) => {
      ({ tools } = session);
      const { refused, error, message } = await session.call('memory_recall', { key: 'helmdeck/connected' });
      // The connection works even if the requested fact does not exist, because the memory has responded.
      if (!refused || error === 'not_found') return { works: true, tools };
      return { works: false, why: message ?? 'The memory did not respond.', tools };
    });
  } catch (error) {
    return { works: false, why: whyOf(error), tools };
  }
}

export function whyOf(error: unknown): string {
  if (error instanceof Failure) return error.message;
  return `The client's command does not work: ${error instanceof Error ? error.message : ''}.`;
}

const FOREIGN =
  "The entry in the client's configuration does not start the bridge of Helmdeck Memory, so its command was not run. Find out which program wrote the entry, or connect the client again.";

/**
 * Environment variables that our bridge reads. Other variables of an entry are not passed on: a variable such as NODE_OPTIONS
 * could make the bridge run code of the program that wrote the entry.
 */
const BRIDGE_SETTINGS = ['HELMDECK_DATA_DIR', 'HELMDECK_CLIENT', 'HELMDECK_TOKEN', 'HELMDECK_TOKEN_FILE'];

/**
 * Environment variables that Node and the bridge inherit from us. All others are withheld, because they could contain secrets or
 * change what Node runs.
 */
const INHERITED =
  /^(PATH|PATHEXT|HOME|USERPROFILE|HOMEDRIVE|HOMEPATH|USER|LOGNAME|USERNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|SystemRoot|SystemDrive|windir|ComSpec|APPDATA|LOCALAPPDATA|ProgramData|XDG_\w+|DBUS_SESSION_BUS_ADDRESS)$/i;

const bridgeEnvironment = (machine: LocalMachine): ClientEntry['env'] =>
  Object.fromEntries(Object.entries(environmentFor(machine)).filter(([name]) => INHERITED.test(name)));

const bridgeSettings = (environment: ClientEntry['env']): ClientEntry['env'] =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => BRIDGE_SETTINGS.includes(name)));

/** The information that decides which program an entry starts. `recorded` is the entry that we wrote for this client. */
export interface EntryContext {
  readonly machine: LocalMachine;
  readonly recorded: ClientEntry | undefined;
}

/**
 * Starts an entry's command, opens an MCP session as the client would, and calls `body` with the session. Stops the command
 * afterwards.
 */
export async function withBridge<T>(
  entry: ClientEntry,
  { machine, recorded }: EntryContext,
  body: (session: BridgeSession) => Promise<T>,
): Promise<T> {
  const program = ownProgramOf(entry, machine, recorded);
  if (program === undefined) throw new Failure('handler_failed', FOREIGN);
  const child = spawn(program, [...entry.args], {
    env: { ...bridgeEnvironment(machine), ...bridgeSettings(entry.env) },
    cwd: machine.home(),
    stdio: ['pipe', 'pipe', 'ignore'],
    windowsHide: true,
  });
  const waiting = new Map<number, (response: Response) => void>();
  const ended = Promise.withResolvers<never>();
  const end = (why: string): void => ended.reject(new Error(why));
  const timeout = setTimeout(() => end('it did not respond in time; try again'), TIMEOUT_MS);
  child.once('error', () => end('it cannot be started; connect this client again'));
  child.once('exit', () => end('it exited before it responded; connect this client again'));
  child.stdin.on('error', () => undefined);
  createInterface({ input: child.stdout }).on('line', (line) => {
    const response = responseIn(line);
    if (response?.id !== undefined) waiting.get(response.id)?.(response);
  });
  const send = (message: object): void => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let lastId = 0;
  const request = (method: string, params: object): Promise<Response> => {
    const id = (lastId += 1);
    const { promise, resolve } = Promise.withResolvers<Response>();
    waiting.set(id, resolve);
    send({ id, method, params });
    return Promise.race([promise, ended.promise]);
  };
  try {
    const clientInfo = { name: 'helmdeck-memory', version: '1' };
    const initialized = await request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    if (!initialized.result)
      throw new Failure('handler_failed', initialized.error?.message ?? 'The program does not support MCP.');
    send({ method: 'notifications/initialized' });
    const { result: listed } = await request('tools/list', {});
    return await body({
      tools: listed?.tools?.length ?? 0,
      async call(name, input) {
        const { result, error } = await request('tools/call', { name, arguments: input });
        const refused = !result || result.isError === true;
        return {
          ...(error?.message !== undefined && { message: error.message }),
          ...structuredResult(result?.content?.[0]?.text),
          refused,
        };
      },
    });
  } finally {
    clearTimeout(timeout);
    ended.promise.catch(() => undefined);
    child.removeAllListeners('exit');
    child.kill();
  }
}

function responseIn(line: string): Response | undefined {
  try {
    return Object(JSON.parse(line)) as Response;
  } catch {
    return undefined;
  }
}

const structuredResult = (text = ''): object => responseIn(text) ?? {};

interface HookProgram {
  readonly node: string;
  /** The script in the data folder. Undefined if it is missing or was changed. */
  readonly file: string | undefined;
  readonly client: string;
}

/** Tests the hooks: runs their script, which reports whether the memory responded. Returns the problem, if there is one. */
export async function verifyHook({ node, file, client }: HookProgram, machine: LocalMachine): Promise<string | undefined> {
  if (file === undefined) return 'their script is missing or was changed; connect this client again';
  if (!isSafe(node)) return 'their Node is missing, or other users can change it; connect this client again';
  const child = spawn(node, [file, client, 'check'], {
    env: bridgeEnvironment(machine),
    cwd: machine.home(),
    stdio: ['ignore', 'pipe', 'ignore'],
    windowsHide: true,
    timeout: TIMEOUT_MS,
  });
  child.once('error', () => undefined);
  const { works, why } = Object(responseIn(await readText(child.stdout))) as { works?: unknown; why?: unknown };
  if (works === true) return undefined;
  return typeof why === 'string' ? why : 'their script did not respond; connect this client again';
}
