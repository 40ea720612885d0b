import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { ClientVerification } from '../../contract/client.ts';
import { Failure } from '../../contract/failure.ts';
import type { Entry, LocalMachine } from './connector.ts';
import { ownProgramOf } from './launch.ts';
import { environmentFor } from './programs.ts';

const PATIENCE_MS = 20_000;

interface Answer {
  readonly id?: number;
  readonly result?: {
    readonly serverInfo?: { readonly version?: string };
    readonly tools?: readonly unknown[];
    readonly isError?: boolean;
    readonly content?: readonly { readonly text?: string }[];
  };
  readonly error?: { readonly message?: string };
}

/** What a tool answered: its structured words, or what was refused. */
interface Said {
  readonly refused: boolean;
  readonly error?: string;
  readonly message?: string;
  readonly [more: string]: unknown;
}

interface Talk {
  readonly tools: number;
  readonly call: (tool: string, input: object) => Promise<Said>;
}

/** Starts what a client would start, and asks for something that leaves no trace. */
export async function verify(entry: Entry, machine: LocalMachine, recorded: Entry | undefined): Promise<ClientVerification> {
  let tools = 0;
  try {
    return await withBridge(entry, { machine, recorded }, async (talk) => {
      ({ tools } = talk);
      const { refused, error, message } = await talk.call('memory_recall', { key: 'helmdeck/connected' });
      // That there is no such fact is an answer of the memory as well.
      if (!refused || error === 'not_found') return { works: true, tools };
      return { works: false, why: message ?? 'It did not come through to the memory.', tools };
    });
  } catch (error) {
    return { works: false, why: whyOf(error), tools };
  }
}

/** One sentence. */
export function whyOf(error: unknown): string {
  if (error instanceof Failure) return error.message;
  return `What this client starts does not work: ${error instanceof Error ? error.message : ''}.`;
}

const FOREIGN =
  'The entry in its configuration does not start the bridge of this program, so it was not started. Connect this client again, or look at who wrote that entry.';

/** What our bridge reads. Another variable, such as NODE_OPTIONS, could have it run code of whoever wrote the entry. */
const BRIDGE_SETTINGS = ['HELMDECK_DATA_DIR', 'HELMDECK_CLIENT', 'HELMDECK_TOKEN', 'HELMDECK_TOKEN_FILE'];

/** What Node and the bridge need of our environment. Anything else could hold a secret or change what Node runs. */
const INHERITED =
  /^(PATH|PATHEXT|HOME|USERPROFILE|HOMEDRIVE|HOMEPATH|USER|LOGNAME|USERNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|SystemRoot|SystemDrive|windir|ComSpec|APPDATA|LOCALAPPDATA|ProgramData|XDG_\w+|DBUS_SESSION_BUS_ADDRESS)$/i;

const bridgeEnvironment = (machine: LocalMachine): Entry['env'] =>
  Object.fromEntries(Object.entries(environmentFor(machine)).filter(([name]) => INHERITED.test(name)));

const bridgeSettings = (environment: Entry['env']): Entry['env'] =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => BRIDGE_SETTINGS.includes(name)));

/** What an entry may start: on this machine, with the entry that we wrote for this client, if we did. */
export interface EntryContext {
  readonly machine: LocalMachine;
  readonly recorded: Entry | undefined;
}

/** Starts an entry and speaks MCP with it, as its client would, until `body` is done. */
export async function withBridge<T>(
  entry: Entry,
  { machine, recorded }: EntryContext,
  body: (talk: Talk) => Promise<T>,
): Promise<T> {
  const program = ownProgramOf(entry, machine, recorded);
  if (program === undefined) throw new Failure('handler_failed', FOREIGN);
  const child = spawn(program, [...entry.args], {
    env: { ...bridgeEnvironment(machine), ...bridgeSettings(entry.env) },
    cwd: machine.home(),
    stdio: ['pipe', 'pipe', 'ignore'],
    windowsHide: true,
  });
  const waiting = new Map<number, (answer: Answer) => void>();
  const over = Promise.withResolvers<never>();
  const end = (why: string): void => over.reject(new Error(why));
  const late = setTimeout(() => end('it did not answer in time; try again'), PATIENCE_MS);
  child.once('error', () => end('it cannot be started; connect this client again'));
  child.once('exit', () => end('it ended before it answered; connect this client again'));
  child.stdin.on('error', () => undefined);
  createInterface({ input: child.stdout }).on('line', (line) => {
    const answer = answerIn(line);
    if (answer?.id !== undefined) waiting.get(answer.id)?.(answer);
  });
  const say = (message: object): void => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  let asked = 0;
  const ask = (method: string, params: object): Promise<Answer> => {
    const id = (asked += 1);
    const { promise, resolve } = Promise.withResolvers<Answer>();
    waiting.set(id, resolve);
    say({ id, method, params });
    return Promise.race([promise, over.promise]);
  };
  try {
    const clientInfo = { name: 'helmdeck-memory', version: '1' };
    const greeting = await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
    if (!greeting.result) throw new Failure('handler_failed', greeting.error?.message ?? 'It does not speak MCP.');
    say({ method: 'notifications/initialized' });
    const { result: listed } = await ask('tools/list', {});
    return await body({
      tools: listed?.tools?.length ?? 0,
      async call(name, input) {
        const { result, error } = await ask('tools/call', { name, arguments: input });
        const refused = !result || result.isError === true;
        return {
          ...(error?.message !== undefined && { message: error.message }),
          ...saidBy(result?.content?.[0]?.text),
          refused,
        };
      },
    });
  } finally {
    clearTimeout(late);
    over.promise.catch(() => undefined);
    child.removeAllListeners('exit');
    child.kill();
  }
}

function answerIn(line: string): Answer | undefined {
  try {
    return Object(JSON.parse(line)) as Answer;
  } catch {
    return undefined;
  }
}

const saidBy = (text = ''): object => answerIn(text) ?? {};
