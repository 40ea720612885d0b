import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Traces three warm calls through the program and lists the files of `src` that each one passes through, in the order in which it
 * first enters them. The files come from V8's precise coverage. The order comes from the inspector: a breakpoint at the start of every
 * covered function whose condition records the function and never pauses.
 */

const ROOT = join(import.meta.dirname, '../..');
const SOURCES = `${pathToFileURL(join(ROOT, 'src')).href}/`;
/** Calls before the trace, so that caches are filled and everything loaded lazily is loaded. */
const WARM_UP = 200;
/** Only functions that run in all of these calls count. The others belong to timers. */
const TRACES = 5;

interface Walk {
  readonly name: string;
  readonly files: readonly string[];
  readonly returns: number;
}

/** One entry into a function, and the nearest file on the stack that called into this one. */
interface FunctionEntry {
  readonly file: string;
  readonly caller: string | undefined;
}

interface FunctionStart {
  readonly file: string;
  readonly scriptId: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

class Tracer implements Disposable {
  readonly #session = new Session();

  static async start(): Promise<Tracer> {
    const tracer = new Tracer();
    tracer.#session.connect();
    await tracer.#session.post('Debugger.enable');
    await tracer.#session.post('Profiler.enable');
    await tracer.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    return tracer;
  }

  async walk(name: string, call: () => Promise<void>): Promise<Walk> {
    for (let n = 0; n < WARM_UP; n += 1) await call();
    let functions: Map<string, FunctionStart> | undefined;
    for (let n = 0; n < TRACES; n += 1) {
      await this.#session.post('Profiler.takePreciseCoverage');
      await call();
      const covered = await this.#covered();
      functions = functions ? new Map([...functions].filter(([id]) => covered.has(id))) : covered;
    }
    const entered = await this.#trace([...(functions?.values() ?? [])], call);
    return { name, files: [...new Set(entered.map(({ file }) => file))], returns: returnsIn(entered) };
  }

  async #covered(): Promise<Map<string, FunctionStart>> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    const covered = new Map<string, FunctionStart>();
    for (const { url, scriptId, functions } of result) {
      if (!url.startsWith(SOURCES)) continue;
      const file = url.slice(SOURCES.length);
      const text = readFileSync(join(ROOT, 'src', file), 'utf8');
      for (const { ranges } of functions) {
        const [range] = ranges;
        // The first function of a script is the module itself.
        if (!range || range.count === 0 || (range.startOffset === 0 && range.endOffset >= text.length)) continue;
        const lines = text.slice(0, range.startOffset).split('\n');
        const place = { file, scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 };
        covered.set(`${file}:${range.startOffset}`, place);
      }
    }
    return covered;
  }

  async #trace(places: readonly FunctionStart[], call: () => Promise<void>): Promise<FunctionEntry[]> {
    const trace: [index: number, stack: string][] = [];
    Object.assign(globalThis, { helmdeckTrace: trace });
    Error.stackTraceLimit = 200;
    const breakpoints: string[] = [];
    for (const [index, { scriptId, lineNumber, columnNumber }] of places.entries()) {
      const start = { scriptId, lineNumber, columnNumber };
      const { locations } = await this.#session.post('Debugger.getPossibleBreakpoints', { start, restrictToFunction: true });
      const [location] = locations;
      if (!location) continue;
      const condition = `globalThis.helmdeckTrace.push([${index}, new Error().stack]), false`;
      // Two functions can start at the same place. The existing breakpoint records both.
      const set = await this.#session.post('Debugger.setBreakpoint', { location, condition }).catch(() => undefined);
      if (set) breakpoints.push(set.breakpointId);
    }
    await call();
    for (const breakpointId of breakpoints) await this.#session.post('Debugger.removeBreakpoint', { breakpointId });
    return trace.map(([index, stack]) => {
      const { file = '' } = places[index] ?? {};
      return { file, caller: callersIn(stack).find((path) => path !== file) };
    });
  }

  [Symbol.dispose](): void {
    this.#session.disconnect();
  }
}

/** Files of `src` on a stack, innermost first. An awaiting frame is not a caller: it has already left its file. */
const callersIn = (stack: string): string[] =>
  stack
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('at async '))
    .flatMap((line) => /\/src\/([\w./-]+\.tsx?)/.exec(line)?.[1] ?? []);

/**
 * How often a reader who follows the call has to return to an earlier file. A step is a file that calls into another file. A step
 * is a return if its caller is not the step before it.
 */
function returnsIn(entered: readonly FunctionEntry[]): number {
  const callers = new Map<string, string | undefined>();
  for (const { file, caller } of entered) if (!callers.has(file)) callers.set(file, caller);
  const leading = new Set(callers.values());
  const steps = [...callers.keys()].filter((file) => leading.has(file));
  return steps.filter((file, index) => index > 0 && callers.get(file) !== undefined && callers.get(file) !== steps[index - 1])
    .length;
}

interface ClientRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly port: number;
}

/** The client runs in a separate process, so that it is not traced. */
function answerParent(): void {
  process.on('message', ({ port, path, headers, body }: ClientRequest) => {
    const sent = request({ host: '127.0.0.1', port, path, headers, method: body === undefined ? 'GET' : 'POST' }, (response) => {
      const { statusCode, headers: received } = response;
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => process.send?.({ status: statusCode, session: received['mcp-session-id'], text }));
    });
    sent.end(body);
  });
}

interface ClientResponse {
  readonly status: number;
  readonly session?: string;
  readonly text: string;
}

async function send(client: ChildProcess, sent: ClientRequest): Promise<ClientResponse> {
  client.send(sent);
  const [received] = (await once(client, 'message')) as [ClientResponse];
  if (received.status >= 300) throw new Error(`The traced call failed: ${received.status} ${received.text}`);
  return received;
}

async function walks(): Promise<readonly Walk[]> {
  const { assemble } = await import('../../src/main/roots/assemble.ts');
  const { readConfig } = await import('../../src/main/config/config.ts');
  const { createWindowCalls } = await import('../../src/main/shell/window-calls.ts');
  using folder = mkdtempDisposableSync(join(tmpdir(), 'helmdeck-walk-'));
  const environment = {
    HELMDECK_DATA_DIR: join(folder.path, 'data'),
    HELMDECK_MEMORY_KEY: 'ab'.repeat(32),
    HELMDECK_ADDR: '127.0.0.1:0',
    HELMDECK_MEANING: 'off',
  };
  const config = readConfig({ environment, platform: process.platform, home: () => folder.path });
  await using program = await assemble(config, { environment, desktop: false, version: 'walk' });
  await program.listening.resume();
  const port = Number(new URL(program.listening.listener?.url ?? '').port);
  const { token } = await program.tokens.mint({
    name: 'walk',
    client: 'walk',
    subject: 'me',
    scopes: ['memory:read', 'memory:write'],
    days: 1,
  });
  const client = fork(import.meta.filename, ['client']);
  const authorized = { Authorization: `Bearer ${token}` };
  const mcp = { ...authorized, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const rpc = (method: string, params: object, id?: number): string => JSON.stringify({ jsonrpc: '2.0', id, method, params });
  const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'walk', version: '1' } };
  const path = '/api/v1/mcp';
  const { session = '' } = await send(client, { port, path, headers: mcp, body: rpc('initialize', hello, 1) });
  const opened = { ...mcp, 'Mcp-Session-Id': session };
  await send(client, { port, path, headers: opened, body: rpc('notifications/initialized', {}) });
  let facts = 0;
  const store = async (): Promise<void> => {
    const fact = { key: `notes/${(facts += 1)}`, value: `The editor of project ${facts} is Helix.` };
    await send(client, {
      port,
      path,
      headers: opened,
      body: rpc('tools/call', { name: 'memory_store', arguments: fact }, facts),
    });
  };
  const search = async (): Promise<void> => {
    await send(client, { port, path: '/api/v1/memory/search?q=editor', headers: authorized });
  };
  const calls = createWindowCalls({
    perform: program.perform,
    desktop: { listening: unused, resumeListening: unused, showBundle: unused, atLogin: unused },
    chooseAtLogin: () => ({ hidden: false }),
    setUnsaved: () => undefined,
    askOwner: unused,
  });
  const edit = async (): Promise<void> => void (await calls('me', 'patch', { key: 'notes/1', ttl_seconds: 30 * 86_400 }));
  using tracer = await Tracer.start();
  try {
    return [
      await tracer.walk('`memory_store` over MCP', store),
      await tracer.walk('a search over REST', search),
      await tracer.walk('a lifetime edit over IPC', edit),
    ];
  } finally {
    client.disconnect();
  }
}

const unused = (): Promise<never> => Promise.reject(new Error('The traced calls do not use the desktop.'));

const formatWalk = ({ name, files, returns }: Walk): string =>
  [`### ${name}: ${files.length} files, ${returns} returns`, '', ...files.map((file, index) => `${index + 1}. \`${file}\``)].join(
    '\n',
  );

if (process.argv[2] === 'client') answerParent();
else if (import.meta.main) {
  const all = await walks();
  for (const one of all) console.log(`${one.files.length} files, ${one.returns} returns: ${one.name}`);
  const file = join(ROOT, 'docs/architecture.md');
  const marked = /(?<=<!-- walk.*-->\n).*(?=<!-- end of walk -->)/s;
  const text = readFileSync(file, 'utf8');
  if (process.argv[2] === '--print' || !marked.test(text)) console.log(all.map(formatWalk).join('\n\n'));
  else
    writeFileSync(
      file,
      text.replace(marked, () => `\n${all.map(formatWalk).join('\n\n')}\n\n`),
    );
  process.exit(0);
}
