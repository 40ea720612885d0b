import { isBuiltin, registerHooks, syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
import os from 'node:os';
import { format } from 'node:util';
import * as z from 'zod';
import type { Heard, Said, Task } from './messages.ts';

// The process of one run of one pack of the owner's own. It imports nothing of the program: that is what it may not read.

const CHANNEL = 3;
const LIBRARY = 'helmdeck-memory/pack';
/** What is more is left out, so that a talkative pack is not ended as one that floods. */
const MOST = { logs: 500, progress: 1000, characters: 2000 };
/** Questions to the memory under way at once; the next waits for one of them. */
const ASKED = 16;

interface OwnPack extends Record<string, unknown> {
  readonly input: z.ZodType;
  readonly output: z.ZodType;
  readonly handler: (context: object) => unknown;
}

/** The memory refused, and so failed the pack that did not mind it. */
class Refused extends Error {
  readonly id: number;

  constructor(id: number, message: string) {
    super(message);
    this.id = id;
  }
}

class Misfit extends Error {
  readonly code: 'invalid_input' | 'invalid_output';

  constructor(code: Misfit['code'], message: string) {
    super(message);
    this.code = code;
  }
}

const channel = new Socket({ fd: CHANNEL });
const giveUp = new AbortController();
const answers = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
const waiting: (() => void)[] = [];
let asked = 0;
let name = 'The pack';

const say = (message: Said): void => void channel.write(`${JSON.stringify(message)}\n`);

const nothing = (): void => undefined;

/** Whoever started us has gone. */
channel.on('close', () => process.exit()).on('error', nothing);

let heard = '';
channel.setEncoding('utf8').on('data', (text: string) => {
  const lines = (heard + text).split('\n');
  heard = lines.pop() ?? '';
  for (const line of lines) hear(JSON.parse(line) as Task | Heard);
});

function hear(message: Task | Heard): void {
  if ('to' in message) {
    attend(message).catch(fail);
    return;
  }
  if (message.is === 'abort') {
    giveUp.abort();
    return;
  }
  const answer = answers.get(message.id);
  answers.delete(message.id);
  waiting.shift()?.();
  if (message.is === 'answer') answer?.resolve(message.value);
  else answer?.reject(new Refused(message.id, message.message));
}

async function attend(task: Task): Promise<void> {
  ({ name } = task);
  process.on('uncaughtException', fail).on('unhandledRejection', fail);
  disarm();
  hearConsole();
  const pack = await load(task.source);
  if (task.to === 'describe') {
    const { handler: _handler, input, output, ...rest } = pack;
    const schemas = { input: schemaOf(input, 'input'), output: schemaOf(output, 'output') };
    say({ is: 'described', pack: { ...rest, ...schemas } });
  } else {
    say({ is: 'done', output: await run(pack, task) });
  }
}

/**
 * The permission model leaves a process these against others of its user. With them a pack could open the debugger of the
 * program and read the key, or leave the program too little of the processor, from which it could not recover.
 */
function disarm(): void {
  for (const arm of ['kill', '_kill', '_debugProcess', '_debugEnd']) Reflect.deleteProperty(process, arm);
  Reflect.deleteProperty(os, 'setPriority');
  syncBuiltinESMExports();
}

async function load(source: string): Promise<OwnPack> {
  const address = `pack:${name}.mjs`;
  const libraryAddress = 'pack:library';
  // What this process has of it already; from the file system it may read little.
  Object.assign(globalThis, { [LIBRARY]: { z, definePack: (pack: unknown) => pack } });
  const librarySource = `export const { z, definePack } = globalThis[${JSON.stringify(LIBRARY)}];`;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === address) return { url: address, format: 'module', shortCircuit: true };
      if (context.parentURL !== address || isBuiltin(specifier)) return next(specifier, context);
      if (specifier === LIBRARY) return { url: libraryAddress, format: 'module', shortCircuit: true };
      throw new Error(`A pack is one file; it can import ${LIBRARY} and what is in Node, and not ${specifier}`);
    },
    load(url, context, next) {
      if (url === address) return { format: 'module', source, shortCircuit: true };
      if (url === libraryAddress) return { format: 'module', source: librarySource, shortCircuit: true };
      return next(url, context);
    },
  });
  const { default: pack } = await import(address).then(
    (module) => module as { default?: unknown },
    (error: unknown) => {
      // It does not tell where; this does.
      throw error instanceof SyntaxError ? new Error(`${error.message}; run node --check on the file`, { cause: error }) : error;
    },
  );
  if (!isPack(pack)) {
    throw new Error(`The file must say: export default definePack({ … }), with input and output by z, and a handler`);
  }
  return pack;
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
    throw new Error(`The schema of its ${io} says what JSON cannot: ${messageOf(error)}`, { cause: error });
  }
}

async function run(pack: OwnPack, { input: given, caller, session, memory }: Extract<Task, { to: 'run' }>): Promise<unknown> {
  const input = await fitting(pack.input, given, 'invalid_input');
  const counts = { logs: 0, progress: 0 };
  const context = {
    input,
    caller,
    ...(session !== undefined && { session }),
    signal: giveUp.signal,
    ...(memory !== undefined && { memory: memoryOf(memory) }),
    progress(done: number, of?: number, saying?: string) {
      if (!Number.isFinite(done) || (counts.progress += 1) > MOST.progress) return;
      const told = saying === undefined ? {} : { saying: saying.slice(0, 200) };
      say({ is: 'progress', done, ...(Number.isFinite(of) && { of: Number(of) }), ...told });
    },
    log,
    doNotCache: () => say({ is: 'doNotCache' }),
  };
  const output = await fitting(pack.output, await pack.handler(context), 'invalid_output');
  try {
    if ((JSON.stringify(output) as string | undefined) !== undefined) return output;
  } catch {
    // Told in one way below.
  }
  throw new Misfit('invalid_output', 'it answered what JSON cannot hold');
}

async function fitting(schema: z.ZodType, value: unknown, code: Misfit['code']): Promise<unknown> {
  const { success, data, error } = await schema.safeParseAsync(value);
  if (success) return data;
  const [first] = error.issues;
  const field = first?.path.map(String).join('.') ?? '';
  throw new Misfit(code, `${field === '' ? 'The whole' : field} does not fit: ${first?.message ?? 'no reason is given'}`);
}

function memoryOf(namespace: string): object {
  return {
    namespace,
    async store(key: string, value: unknown, options: object = {}) {
      // In a list JSON writes null for what it cannot hold.
      if ((JSON.stringify(value) as string | undefined) === undefined) throw new Error('A pack can remember what is JSON');
      await ask('store', key, value, options);
    },
    recall: (key: string) => ask('recall', key),
    list: (prefix = '') => ask('list', prefix),
    delete: (key: string) => ask('delete', key),
    context: () => ask('context'),
  };
}

async function ask(what: string, ...given: unknown[]): Promise<unknown> {
  while (answers.size >= ASKED) await new Promise<void>((resolve) => waiting.push(resolve));
  const id = asked;
  asked += 1;
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  answers.set(id, { resolve, reject });
  say({ is: 'ask', id, what, with: given });
  return await promise;
}

let logged = 0;

function log(text: unknown): void {
  if ((logged += 1) <= MOST.logs) say({ is: 'log', text: String(text).slice(0, MOST.characters) });
}

/** Where a pack's author looks first; nobody sees what a process without a terminal prints. */
function hearConsole(): void {
  const print = (...parts: unknown[]): void => log(format(...parts));
  for (const way of ['log', 'info', 'warn', 'error', 'debug'] as const) console[way] = print;
}

function fail(error: unknown): void {
  const code = error instanceof Misfit ? error.code : 'handler_failed';
  const refused = error instanceof Refused ? { refused: error.id } : {};
  say({ is: 'failed', code, message: messageOf(error).slice(0, MOST.characters) + lineOf(error), ...refused });
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && error.code === 'ERR_ACCESS_DENIED') return 'A pack may use no files, programs or workers';
  const { message, cause } = error;
  // What a failed fetch says by itself tells nothing.
  return cause instanceof Error && message === 'fetch failed' ? `${message}: ${cause.message}` : message;
}

/** Where in the file it went wrong, as far as the stack tells. */
function lineOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof Misfit) return '';
  const line = /pack:[\w.]+\.mjs:(\d+)/.exec(error.stack ?? '')?.[1];
  return line === undefined ? '' : ` (line ${line})`;
}
