import * as z from 'zod';
import type { ProgramMessage, PackMessage, PackTask } from '../messages.ts';
import { Controller, Signal } from './abort.ts';
import { fetch } from './fetch.ts';
import { formatLogValues } from './format-log.ts';
import { connectHost, callHost, type Realm } from './host.ts';
import { handleAnswer, requestFromProgram, RequestRefused } from './requests.ts';
import { hideForeignFrames } from './stack.ts';
import { atob, btoa, crypto, Decoder, Encoder } from './text.ts';
import { clearTimer, fire, queueMicrotask, setImmediate, setInterval, setTimeout } from './timers.ts';
import { Address, SearchParams } from './url.ts';

// The JavaScript realm in which a pack runs. It contains the language, zod and the globals below, and nothing of Node. An object
// of the process must never enter the realm: an object gives access to its constructor, and the constructor to everything else.

export { z };
export const definePack = (pack: unknown): unknown => pack;

/**
 * Limits of the messages from a pack. Further messages are dropped here, because the program would stop a pack that sends too
 * many. `logs` is one more than the program accepts, so that the program notices and reports dropped lines.
 */
const MOST = { logs: 501, progress: 1000, logCharacters: 2001, errorCharacters: 2000 };

interface OwnPack extends Record<string, unknown> {
  readonly input: z.ZodType;
  readonly output: z.ZodType;
  readonly handler: (context: object) => unknown;
}

class SchemaMismatch extends Error {
  readonly code: 'invalid_input' | 'invalid_output';

  constructor(code: SchemaMismatch['code'], message: string) {
    super(message);
    this.code = code;
  }
}

const abortRun = new Controller();
let task: PackTask | undefined;

const send = (message: PackMessage): void => void callHost('send', JSON.stringify(message));

export const realm: Realm = {
  start(call, line) {
    connectHost(call);
    task = JSON.parse(line) as PackTask;
    const print = (...parts: unknown[]): void => log(formatLogValues(parts));
    const globals = {
      AbortController: Controller,
      AbortSignal: Signal,
      TextDecoder: Decoder,
      TextEncoder: Encoder,
      URL: Address,
      URLSearchParams: SearchParams,
      atob,
      btoa,
      clearInterval: clearTimer,
      clearTimeout: clearTimer,
      console: { debug: print, error: print, info: print, log: print, warn: print },
      crypto,
      fetch,
      queueMicrotask,
      setImmediate,
      setInterval,
      setTimeout,
    };
    for (const [name, value] of Object.entries(globals)) {
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    }
    Reflect.deleteProperty(globalThis, 'WebAssembly');
    hideForeignFrames();
  },

  packLoaded(pack) {
    if (task) perform(pack, task).catch(fail);
  },

  receive(line) {
    const message = JSON.parse(line) as ProgramMessage;
    if (message.is === 'abort') abortRun.abort();
    else handleAnswer(message);
  },

  fireTimer: fire,
  fail,

  refuseImport() {
    throw new Error("A pack can import only helmdeck-memory/pack. A pack must be a single file and cannot use Node's modules");
  },
};

async function perform(pack: unknown, given: PackTask): Promise<void> {
  if (!isPack(pack)) {
    throw new Error(
      `The file must contain: export default definePack({ … }), with a handler, and with zod schemas as input and output`,
    );
  }
  if (given.to === 'describe') {
    const { handler: _handler, input, output, ...rest } = pack;
    const schemas = { input: schemaOf(input, 'input'), output: schemaOf(output, 'output') };
    send({ is: 'described', pack: { ...rest, ...schemas } });
  } else {
    send({ is: 'done', output: await run(pack, given) });
  }
}

const isPack = (pack: unknown): pack is OwnPack =>
  typeof pack === 'object' &&
  pack !== null &&
  'handler' in pack &&
  typeof pack.handler === 'function' &&
  'input' in pack &&
  pack.input instanceof z.ZodType &&
  'output' in pack &&
  pack.output instanceof z.ZodType;

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Record<string, unknown> {
  try {
    const { $schema: _draft, ...rest } = z.toJSONSchema(schema, { io });
    return rest;
  } catch (error) {
    throw new Error(`The pack's ${io} schema cannot be represented in JSON Schema: ${messageOf(error)}`, { cause: error });
  }
}

async function run(pack: OwnPack, { input: given, caller, session, memory }: Extract<PackTask, { to: 'run' }>): Promise<unknown> {
  const input = await parseWith(pack.input, given, 'invalid_input');
  let progressed = 0;
  const context = {
    input,
    caller,
    ...(session !== undefined && { session }),
    signal: abortRun.signal,
    ...(memory !== undefined && { memory: memoryOf(memory) }),
    progress(done: number, of?: number, saying?: string) {
      if (!Number.isFinite(done) || (progressed += 1) > MOST.progress) return;
      const text = saying === undefined ? {} : { saying: saying.slice(0, 200) };
      send({ is: 'progress', done, ...(Number.isFinite(of) && { of: Number(of) }), ...text });
    },
    log,
    doNotCache: () => send({ is: 'doNotCache' }),
  };
  const output = await parseWith(pack.output, await pack.handler(context), 'invalid_output');
  try {
    if ((JSON.stringify(output) as string | undefined) !== undefined) return output;
  } catch {
    // Ignore the error: like every output that JSON cannot represent, the output is refused below.
  }
  throw new SchemaMismatch('invalid_output', "the pack's output cannot be represented in JSON");
}

async function parseWith(schema: z.ZodType, value: unknown, code: SchemaMismatch['code']): Promise<unknown> {
  const { success, data, error } = await schema.safeParseAsync(value);
  if (success) return data;
  const [first] = error.issues;
  const field = first?.path.map(String).join('.') ?? '';
  throw new SchemaMismatch(code, `${field === '' ? 'The value' : field} is invalid: ${first?.message ?? 'no reason is given'}`);
}

function memoryOf(namespace: string): object {
  return {
    namespace,
    async store(key: string, value: unknown, options: object = {}) {
      // Check the value here, because JSON would silently replace an invalid value in the list of parameters with null.
      if ((JSON.stringify(value) as string | undefined) === undefined) throw new Error('A pack can store only JSON values');
      await requestFromProgram('store', key, value, options);
    },
    recall: (key: string) => requestFromProgram('recall', key),
    list: (prefix = '') => requestFromProgram('list', prefix),
    delete: (key: string) => requestFromProgram('delete', key),
    context: () => requestFromProgram('context'),
  };
}

let logged = 0;

function log(text: unknown): void {
  if ((logged += 1) <= MOST.logs) send({ is: 'log', text: String(text).slice(0, MOST.logCharacters) });
}

function fail(error: unknown): void {
  const code = error instanceof SchemaMismatch ? error.code : 'handler_failed';
  const refused = error instanceof RequestRefused ? { refused: error.id } : {};
  send({ is: 'failed', code, message: messageOf(error).slice(0, MOST.errorCharacters) + lineOf(error), ...refused });
}

const messageOf = (error: unknown): string => String(error instanceof Error ? (error.message as unknown) : error);

/** Returns the line number of the error in the pack's file, if the stack contains that line. */
function lineOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof SchemaMismatch) return '';
  const line = /pack:[\w.]+\.mjs:(\d+)/.exec(error.stack ?? '')?.[1];
  return line === undefined ? '' : ` (line ${line})`;
}
