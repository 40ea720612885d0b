import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeSync } from 'node:fs';
import { stripTypeScriptTypes, syncBuiltinESMExports } from 'node:module';
import { Socket } from 'node:net';
import os from 'node:os';
import { dirname, join } from 'node:path';
import v8 from 'node:v8';
import vm from 'node:vm';
import type { PackMessage, PackTask } from './messages.ts';
import type { Realm } from './realm/host.ts';

// Main script of the process that runs one of the owner's packs once. The script imports no modules of the program, because the
// process is not allowed to read the program's files. The pack runs in a separate realm, and the two realms exchange only
// strings. The pack therefore cannot reach `process`, `require` or Node's modules. As a second line of defence, the process's own
// realm is frozen, cannot compile text, and has no dangerous functions. This limits the damage if an error object of this realm,
// such as a stack overflow inside Node, leaks into the pack's realm.

const CHANNEL = 3;
const LIBRARY = 'helmdeck-memory/pack';

const channel = new Socket({ fd: CHANNEL });

// Exit when the channel closes, because the main program has then exited.
channel.on('close', () => process.exit()).on('error', () => undefined);

const context = vm.createContext(vm.constants.DONT_CONTEXTIFY, { codeGeneration: { strings: false, wasm: false } });

/** Our code inside the pack's realm. A single file in a build; otherwise the source files. */
const library = await loadLibrary();
const { realm } = library.namespace as unknown as { realm: Realm };
// Read these functions before the pack runs, because the pack can change its own realm.
const { start, packLoaded, receive, fireTimer, fail, refuseImport } = realm;

let buffered = '';
let started = false;
channel.setEncoding('utf8').on('data', (text: string) => {
  const lines = (buffered + text).split('\n');
  buffered = lines.pop() ?? '';
  for (const line of lines) {
    if (started) receive(line);
    else void runPack(line);
    started = true;
  }
});

async function runPack(line: string): Promise<void> {
  const { name, source } = JSON.parse(line) as PackTask;
  // Do not pass `fail` itself: an event emitter would call it with the process as `this`.
  const failed = (error: unknown): void => fail(error);
  process.on('uncaughtException', failed).on('unhandledRejection', failed);
  removeDangerousFunctions();
  freezeRealm();
  start(call, line);
  let pack: vm.SourceTextModule;
  try {
    pack = new vm.SourceTextModule(source, {
      context,
      identifier: `pack:${name}.mjs`,
      importModuleDynamically: () => refuseImport(),
    });
    await pack.link((specifier) => {
      if (specifier === LIBRARY) return library;
      throw new Error(
        `A pack can import only ${LIBRARY}. A pack must be a single file and cannot use Node's modules: ${specifier}`,
      );
    });
  } catch (error) {
    // The pack has not run yet, so the error comes from Node. A syntax error contains no line number here, but `node --check`
    // shows the line.
    const { message } = error as Error;
    const text =
      error instanceof Error && error.name !== 'SyntaxError'
        ? message
        : `${message}; run \`node --check\` on the file to see the line`;
    write(JSON.stringify({ is: 'failed', code: 'handler_failed', message: text } satisfies PackMessage));
    return;
  }
  // Do not inspect the result or the error in this realm: a getter would run the pack's code with objects of this realm.
  pack.evaluate().then(() => packLoaded((pack.namespace as { default?: unknown }).default), fail);
}

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Writes a line and blocks while the channel is full. Otherwise a pack that writes in a loop would fill this process's memory. */
function write(line: string): void {
  if (process.platform === 'win32') {
    channel.write(`${line}\n`);
    return;
  }
  for (let rest = Buffer.from(`${line}\n`); rest.length > 0;) {
    try {
      rest = rest.subarray(writeSync(CHANNEL, rest));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}

const timers = new Map<string, NodeJS.Timeout>();

const services = new Map<string, (text: string) => string>([
  ['send', (line) => (write(line), '')],
  ['timeout', (text) => startTimer(text, setTimeout)],
  ['interval', (text) => startTimer(text, setInterval)],
  ['clear', (id) => (clearTimeout(timers.get(id)), timers.delete(id), '')],
  ['encode', (text) => Buffer.from(text, 'utf8').toString('latin1')],
  ['decode', (letters) => new TextDecoder().decode(Buffer.from(letters, 'latin1'))],
  ['atob', decodeBase64],
  ['btoa', (letters) => btoa(letters)],
  ['uuid', () => randomUUID()],
  ['random', (count) => randomBytes(Number(count)).toString('latin1')],
  ...['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512'].map(
    (name) => [name, (letters: string) => createHash(name).update(letters, 'latin1').digest().toString('latin1')] as const,
  ),
  ['url', parseUrl],
  ['pairs', (text) => JSON.stringify([...new URLSearchParams(text)])],
  ['query', (text) => new URLSearchParams(JSON.parse(text) as [string, string][]).toString()],
]);

function call(operation: string, text: string): string {
  if (typeof operation !== 'string' || typeof text !== 'string') return '';
  return services.get(operation)?.(text) ?? '';
}

function startTimer(text: string, schedule: typeof setTimeout | typeof setInterval): string {
  const [id, ms] = JSON.parse(text) as [number, number];
  const run = (): void => {
    if (schedule === setTimeout) timers.delete(String(id));
    fireTimer(id);
  };
  timers.set(String(id), schedule(run, ms));
  return '';
}

function decodeBase64(text: string): string {
  try {
    return `+${atob(text)}`;
  } catch {
    return '-';
  }
}

const FIELDS = ['protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'] as const;

function parseUrl(text: string): string {
  const { text: address, base, field, value } = JSON.parse(text) as Record<'text' | 'base' | 'field' | 'value', string>;
  const url = URL.parse(address, base);
  if (!url) return '';
  const changed = FIELDS.find((one) => one === field);
  if (changed) url[changed] = value;
  const parts = Object.fromEntries([...FIELDS, 'href' as const, 'origin' as const].map((one) => [one, url[one]]));
  return JSON.stringify(parts);
}

/**
 * Removes dangerous functions that the permission model allows. They could set V8 flags that write files, or signal the user's
 * other processes.
 */
function removeDangerousFunctions(): void {
  for (const name of ['kill', '_kill', '_debugProcess', '_debugEnd', 'binding', '_linkedBinding', 'dlopen', 'execve', 'report']) {
    Reflect.deleteProperty(process, name);
  }
  Reflect.deleteProperty(os, 'setPriority');
  for (const name of Object.keys(v8)) Reflect.deleteProperty(v8, name);
  syncBuiltinESMExports();
}

/** Freezes the global objects that `--frozen-intrinsics` leaves writable. */
function freezeRealm(): void {
  const names = vm.runInContext('Object.getOwnPropertyNames(globalThis)', vm.createContext(vm.constants.DONT_CONTEXTIFY));
  const seen = new Set<unknown>([globalThis, console]);
  const waiting = (names as string[]).map((name) => (globalThis as Record<string, unknown>)[name]);
  while (waiting.length > 0) {
    const value = waiting.pop();
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) continue;
    seen.add(value);
    Object.freeze(value);
    waiting.push(Object.getPrototypeOf(value));
    for (const key of Reflect.ownKeys(value)) {
      const { value: child, get, set } = Reflect.getOwnPropertyDescriptor(value, key) ?? {};
      waiting.push(child, get, set);
    }
  }
}

async function loadLibrary(): Promise<vm.SourceTextModule> {
  const modules = new Map<string, vm.SourceTextModule>();
  const load = (path: string): vm.SourceTextModule => {
    const known = modules.get(path);
    if (known) return known;
    const text = readFileSync(path, 'utf8');
    const source = path.endsWith('.ts') ? stripTypeScriptTypes(text) : text;
    const module = new vm.SourceTextModule(source, { context, identifier: path });
    modules.set(path, module);
    return module;
  };
  const [, , realmFile = '', zodFile = ''] = process.argv;
  const main = load(realmFile);
  await main.link((specifier, { identifier }) => load(specifier === 'zod' ? zodFile : join(dirname(identifier), specifier)));
  await main.evaluate();
  return main;
}
