/**
 * Ways a malicious pack could try to break out. The code is the body of an async function. It must succeed in plain Node, which
 * a test checks.
 */
export interface Escape {
  readonly name: string;
  /**
   * The code receives `target`, a path to write to; `port`, a TCP and UDP port on 127.0.0.1; `parent`, the program's process
   * id; `secret`, a file to read. It succeeds by creating a file, opening a connection, or returning text that starts with
   * "reached".
   */
  readonly code: string;
  /** Reaches only its own process, which the operating system's sandbox permits. */
  readonly within?: true;
  /** Why plain Node cannot show that the code works. */
  readonly unshown?: string;
  /** Also runs in the unit tests; the soak lane runs every escape. */
  readonly always?: true;
}

const node = (name: string): string => `process.getBuiltinModule('node:${name}')`;

/**
 * Explores everything reachable from a value. `breach` describes the first object that does not belong to this realm, even if the
 * object has no harmful effect. Uses stored functions, because the escapes replace the built-in ones.
 */
export const REACH = `
let breach;
const realmRoot = Object.prototype;
const { hasOwn } = Object;
const { getPrototypeOf } = Reflect;
const isForeign = (value) => {
  let root = value;
  for (let next = getPrototypeOf(root); next !== null; next = getPrototypeOf(root)) root = next;
  return root !== realmRoot && hasOwn(root, 'isPrototypeOf');
};
const reach = (value, target, most = 5000) => {
  const seen = new Set();
  const waiting = [value];
  while (waiting.length > 0 && seen.size < most) {
    const one = waiting.shift();
    if ((typeof one !== 'object' && typeof one !== 'function') || one === null || seen.has(one)) continue;
    seen.add(one);
    if (isForeign(one)) breach ??= 'reached an object of another realm: ' + (one.constructor?.name ?? typeof one);
    try {
      const code = one.constructor?.constructor;
      if (typeof code === 'function') code('target', "process.getBuiltinModule('fs').writeFileSync(target, 'x')")(target);
    } catch {}
    // A getter may have started something that fails.
    if (one instanceof Promise) one.catch(() => undefined);
    try {
      // A realm that can be modified exposes the values passing through it.
      if (one.getBuiltinModule) one.getBuiltinModule('fs').writeFileSync(target, 'x');
      if (one.connect && one.constructor?.name === 'Socket') one.constructor.prototype.reached = true;
    } catch {}
    for (const key of Reflect.ownKeys(one)) {
      try { waiting.push(one[key]); } catch {}
      const { get, set } = Reflect.getOwnPropertyDescriptor(one, key) ?? {};
      waiting.push(get, set);
    }
    waiting.push(getPrototypeOf(one));
  }
};
const deep = (act) => {
  let caught;
  const down = () => { try { down(); } catch (error) { caught ??= error; try { act(); } catch (other) { reach(other, deep.target); } } };
  down();
  return caught;
};
`;

export const escapes: readonly Escape[] = [
  // Files.
  { name: 'fs from process', code: `${node('fs')}.writeFileSync(target, 'x');` },
  { name: 'fs from import()', code: `(await import('node:fs')).writeFileSync(target, 'x');` },
  { name: 'fs from import() without its scheme', code: `(await import('fs/promises')).default.writeFile(target, 'x');` },
  {
    name: 'a module in a data: URL',
    code: `await import('data:text/javascript,' + encodeURIComponent("import fs from 'node:fs'; fs.writeFileSync(" + JSON.stringify(target) + ", 'x')"));`,
  },
  { name: 'a new file descriptor', code: `const fs = ${node('fs')}; fs.writeSync(fs.openSync(target, 'w'), 'x');` },
  { name: 'a symbolic link', code: `${node('fs')}.symlinkSync(secret, target);` },
  { name: 'a hard link', code: `${node('fs')}.linkSync(secret, target);` },
  { name: 'a stream', code: `await new Promise((done) => ${node('fs')}.createWriteStream(target).end('x', done));` },
  {
    name: 'createRequire',
    code: `${node('module')}.createRequire('file:///x.js')('fs').writeFileSync(target, 'x');`,
  },
  {
    name: 'V8 flags: the compiler traces into a file',
    always: true,
    code: `const v8 = ${node('v8')};
      v8.setFlagsFromString('--trace-turbo-cfg-file=' + target);
      v8.setFlagsFromString('--trace-turbo');
      v8.setFlagsFromString('--trace-turbo-path=' + target.replace(/[^/]*$/, ''));
      v8.setFlagsFromString('--no-lazy-feedback-allocation');
      const hot = (n) => { let sum = 0; for (let at = 0; at < n; at += 1) sum += at % 7; return sum; };
      for (let n = 0; n < 3000; n += 1) hot(3000);
      await new Promise((done) => setTimeout(done, 100));`,
  },
  {
    name: 'V8 flags: a log',
    code: `const v8 = ${node('v8')};
      v8.setFlagsFromString('--logfile=' + target);
      v8.setFlagsFromString('--no-logfile-per-isolate');
      v8.setFlagsFromString('--log-function-events');
      v8.setFlagsFromString('--prof');
      v8.setFlagsFromString('--redirect-code-traces-to=' + target);
      v8.setFlagsFromString('--redirect-code-traces');
      v8.setFlagsFromString('--print-opt-code');
      v8.setFlagsFromString('--trace-opt');
      v8.setFlagsFromString('--trace-deopt');
      const hot = (n) => { let sum = 0; for (let at = 0; at < n; at += 1) sum += at % 7; return sum; };
      for (let n = 0; n < 3000; n += 1) hot(3000);
      await new Promise((done) => setTimeout(done, 100));`,
    unshown: 'this build of V8 accepts these flags only at its start, another may not',
  },
  { name: 'a heap snapshot', code: `${node('v8')}.writeHeapSnapshot(target);` },
  { name: 'a diagnostic report', code: `process.report.writeReport(target);` },
  {
    name: 'coverage',
    code: `process.env.NODE_V8_COVERAGE = target; ${node('v8')}.takeCoverage(); await new Promise((done) => setTimeout(done, 50));`,
    unshown: 'Node reads the variable at its start only',
  },
  {
    name: 'a CPU profile by the inspector',
    code: `const { Session } = ${node('inspector')};
      const session = new Session(); session.connect();
      session.post('Runtime.evaluate', { expression: "process.getBuiltinModule('fs').writeFileSync(" + JSON.stringify(target) + ", 'x')" });`,
  },
  { name: 'SQLite', code: `new (${node('sqlite')}.DatabaseSync)(target).exec('create table t (x)');` },
  {
    name: 'a worker',
    code: `const { Worker } = ${node('worker_threads')};
      await new Promise((done) => new Worker("require('fs').writeFileSync(" + JSON.stringify(target) + ", 'x')", { eval: true }).on('exit', done));`,
  },
  {
    name: 'another program',
    always: true,
    code: `${node('child_process')}.execFileSync('/bin/sh', ['-c', 'echo x > "$0"', target]);`,
  },
  {
    name: 'another Node',
    code: `${node('child_process')}.spawnSync(process.execPath, ['-e', 'require("fs").writeFileSync(' + JSON.stringify(target) + ', "x")']);`,
  },
  {
    name: 'another program in place of this process',
    code: `process.execve('/bin/sh', ['sh', '-c', 'echo x > "$0"', target], {});`,
  },
  {
    name: 'native code',
    within: true,
    code: `process.dlopen({ exports: {} }, secret + '.node'); return 'reached';`,
    unshown: 'there is no library',
  },
  {
    name: 'process.binding',
    within: true,
    code: `return process.binding('fs').internalModuleStat ? 'reached' : 'reached, in part';`,
  },
  { name: 'the binding of pipes', within: true, code: `return 'reached ' + Object.keys(process.binding('pipe_wrap'));` },
  {
    name: 'WASI',
    within: true,
    code: `const { WASI } = ${node('wasi')}; new WASI({ version: 'preview1', preopens: { '/': '/' } }); return 'reached';`,
  },
  {
    name: 'WebAssembly',
    within: true,
    code: `new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])); return 'reached';`,
  },
  { name: 'eval', within: true, code: `return eval("'reached'");` },
  { name: 'the Function constructor', within: true, code: `return new Function("return 'reached'")();` },
  {
    name: 'the AsyncFunction constructor',
    within: true,
    code: `return await (async () => {}).constructor("return 'reached'")();`,
  },
  { name: 'another vm context', within: true, code: `return ${node('vm')}.runInNewContext("'reached'");` },
  {
    name: 'a shadow realm',
    within: true,
    code: `return new ShadowRealm().evaluate("'reached'");`,
    unshown: 'Node has it behind a flag',
  },
  {
    name: 'web storage',
    within: true,
    code: `localStorage.setItem('x', 'x'); return 'reached';`,
    unshown: 'Node has it behind a flag',
  },

  // Sockets.
  {
    name: 'net',
    always: true,
    code: `await new Promise((done) => ${node('net')}.connect(port, '127.0.0.1').on('connect', done).on('error', done));`,
  },
  { name: 'http', code: `await new Promise((done) => ${node('http')}.get({ port, host: '127.0.0.1' }).on('error', done));` },
  { name: 'https', code: `await new Promise((done) => ${node('https')}.get({ port, host: '127.0.0.1' }).on('error', done));` },
  {
    name: 'http2',
    code: `await new Promise((done) => ${node('http2')}.connect('http://127.0.0.1:' + port).on('connect', done).on('error', done).on('close', done));`,
  },
  {
    name: 'dgram',
    code: `await new Promise((done) => ${node('dgram')}.createSocket('udp4').send('x', port, '127.0.0.1', done));`,
  },
  {
    name: 'another name server',
    code: `const resolver = new (${node('dns')}.promises.Resolver)({ timeout: 300, tries: 1 });
      resolver.setServers(['127.0.0.1:' + port]);
      await resolver.resolve4('secret.example').catch(() => undefined);`,
  },
  { name: 'fetch', code: `await fetch('http://127.0.0.1:' + port).catch(() => undefined);` },
  {
    name: 'fetch with another method',
    code: `await fetch('http://127.0.0.1:' + port, { method: 'POST', body: 'x' }).catch(() => undefined);`,
  },
  {
    name: 'WebSocket',
    code: `await new Promise((done) => { const socket = new WebSocket('ws://127.0.0.1:' + port); socket.onerror = done; socket.onopen = done; });`,
  },
  {
    name: 'EventSource',
    code: `new EventSource('http://127.0.0.1:' + port); await new Promise((done) => setTimeout(done, 100));`,
    unshown: 'Node has it behind a flag',
  },
  {
    name: 'the dispatcher that fetch leaves behind',
    code: `await fetch('http://127.0.0.1:1').catch(() => undefined);
      const dispatcher = globalThis[Symbol.for('undici.globalDispatcher.1')];
      await dispatcher.request({ origin: 'http://127.0.0.1:' + port, path: '/', method: 'GET' }).catch(() => undefined);`,
  },
  {
    name: 'a listening debugger',
    within: true,
    code: `const inspector = ${node('inspector')}; inspector.open(0, '127.0.0.1'); const url = inspector.url(); inspector.close(); return url ? 'reached' : 'closed';`,
  },
  {
    name: 'a local socket',
    code: `const server = ${node('net')}.createServer(); await new Promise((done, fail) => server.on('error', fail).listen(target, done));
      return ${node('fs')}.existsSync(target) ? 'reached' : 'no';`,
  },
  {
    name: 'listening on a port',
    within: true,
    code: `await new Promise((done, fail) => ${node('net')}.createServer().on('error', fail).listen(0, done)); return 'reached';`,
  },

  // The program's process.
  {
    name: 'the environment of the program',
    code: `return 'reached ' + ${node('fs')}.readFileSync('/proc/' + parent + '/environ').length;`,
  },
  { name: 'its own environment in /proc', code: `return 'reached ' + ${node('fs')}.readFileSync('/proc/self/environ').length;` },
  { name: 'the memory of the program', code: `${node('fs')}.openSync('/proc/' + parent + '/mem', 'r'); return 'reached';` },
  { name: 'its descriptors in /proc', code: `return 'reached ' + ${node('fs')}.readdirSync('/proc/self/fd');` },
  { name: 'a file of the owner', code: `return 'reached ' + ${node('fs')}.readFileSync(secret, 'utf8');` },
  {
    name: 'a file of the owner through /proc/self/root',
    code: `return 'reached ' + ${node('fs')}.readFileSync('/proc/self/root' + secret, 'utf8');`,
  },
  { name: 'the existence of a file', code: `${node('fs')}.realpathSync(secret); return 'reached';` },
  { name: 'a signal to the program', code: `process.kill(parent, 0); return 'reached';` },
  {
    name: 'its debugger',
    within: true,
    code: `if (typeof process._debugProcess !== 'function') throw new Error('gone'); return 'reached';`,
  },
  { name: 'its priority', code: `const os = ${node('os')}; os.setPriority(parent, os.getPriority(parent)); return 'reached';` },
  { name: 'its own command line', within: true, code: `return 'reached ' + process.argv.length;` },

  // From the pack's realm into the process's realm.
  { name: 'the constructor of its context', code: `reach(ec, target);` },
  { name: 'the constructor of the global object', code: `reach(globalThis, target);` },
  { name: 'the constructor of a timer', code: `reach(setTimeout(() => undefined, 1), target);` },
  { name: 'the constructor of console', code: `reach(console, target);` },
  { name: 'the constructor of a URL', code: `reach(new URL('https://example.com/?a=1').searchParams, target);` },
  { name: 'the constructor of an encoder', code: `reach(new TextEncoder().encode('x'), target); reach(crypto, target);` },
  { name: 'import.meta', code: `reach(import.meta, target);` },
  { name: 'the error of import()', code: `await import('node:nothing').catch((error) => reach(error, target));` },
  {
    name: 'the error of import() with attributes',
    code: `await import('x', { with: { type: 'odd' } }).catch((error) => reach(error, target));`,
  },
  {
    name: 'the promise of import()',
    code: `const given = import('node:nothing'); reach(given, target); given.catch(() => undefined);`,
  },
  { name: 'the error of an invalid URL', code: `try { new URL('no address'); } catch (error) { reach(error, target); }` },
  {
    name: 'the error of a wrong argument',
    code: `try { atob('é'); } catch (error) { reach(error, target); } try { setTimeout('x'); } catch (error) { reach(error, target); }`,
  },
  {
    name: 'a stack overflow in each global',
    code: `deep.target = target;
      for (const act of [() => console.log({}), () => new URL('https://example.com'), () => setTimeout(() => undefined), () => btoa('x'), () => crypto.randomUUID(),
        () => ec.log('x'), () => new Error('x').stack, () => structuredClone({}), () => import('x').catch((error) => reach(error, target))]) reach(deep(act), target);
      await new Promise((done) => setTimeout(done, 20));`,
  },
  {
    name: 'a stack overflow while a stack is written',
    code: `deep.target = target;
      Error.prepareStackTrace = undefined;
      reach(deep(() => { const error = new Error('x'); Object.defineProperty(error, 'name', { get() { return deep(() => error.stack); } }); return error.stack; }), target);`,
  },
  {
    name: 'Error.prepareStackTrace',
    code: `Error.prepareStackTrace = (error, sites) => { reach(sites, target); for (const site of sites) { reach(site.getThis(), target); reach(site.getFunction(), target); } return sites; };
      const tell = () => { new Error('x').stack; };
      tell(); setTimeout(tell, 1); queueMicrotask(tell); try { new URL('no address'); } catch (error) { error.stack; }
      await new Promise((done) => setTimeout(done, 20));
      delete Error.prepareStackTrace;`,
  },
  {
    name: 'prototypes that intercept values',
    always: true,
    code: `for (const name of ['_handle', 'fd', 'domain', 'reader', 'callback', 'onabort', 'signal', 'then', 'stack', 'code', 'writableState', 'parent', 'context']) {
        Object.defineProperty(Object.prototype, name, { configurable: true, set(value) { reach(this, target); reach(value, target); }, get() { reach(this, target); } });
      }
      console.log('x'); ec.log('y'); await new Promise((done) => setTimeout(done, 20));
      for (const name of Object.getOwnPropertyNames(Object.prototype)) if (!name.startsWith('__')) try { if (Object.getOwnPropertyDescriptor(Object.prototype, name).set) delete Object.prototype[name]; } catch {}`,
  },
  {
    name: 'replaced built-in methods',
    code: `const { then } = Promise.prototype;
      Promise.prototype.then = function (...given) { reach(this, target); reach(given, target); return then.apply(this, given); };
      const { get } = Map.prototype;
      Map.prototype.get = function (...given) { reach(this, target); return get.apply(this, given); };
      const { call } = Function.prototype;
      Function.prototype.call = function (...given) { reach(this, target); reach(given, target); return Reflect.apply(this, given[0], given.slice(1)); };
      ec.log('x'); Promise.resolve().then(() => undefined); await new Promise((done) => setTimeout(done, 20));
      Promise.prototype.then = then; Map.prototype.get = get; Function.prototype.call = call;`,
  },
  {
    name: 'a proxy as a callback',
    code: `const trap = new Proxy(function () {}, { apply(_target, self, given) { reach(self, target); reach(given, target); }, get(one, name, receiver) { reach(receiver, target); return Reflect.get(one, name); } });
      setTimeout(trap, 1); queueMicrotask(trap); ec.signal.addEventListener('abort', trap); Promise.resolve().then(trap);
      await new Promise((done) => setTimeout(done, 20));`,
  },
  {
    name: 'a printed object with hooks',
    code: `const looking = { [Symbol.for('nodejs.util.inspect.custom')](depth, options, inspect) { reach(options, target); reach(inspect, target); return 'x'; }, get message() { reach(this, target); return 'x'; }, toString() { return 'x'; }, toJSON(...given) { reach(given, target); return 'x'; } };
      console.log(looking); console.error(looking, [looking]); ec.log(looking);
      Promise.reject(looking).catch(() => undefined);`,
  },
  {
    name: 'the caller of a function',
    code: `function sloppy() { try { return sloppy.caller ?? sloppy.arguments; } catch (error) { return error; } }
      reach(sloppy(), target); reach((function () { return this; })(), target);`,
  },
  {
    name: 'a garbage-collected object',
    code: `new FinalizationRegistry((...given) => reach(given, target)).register({}, {}); reach(new WeakRef(ec), target);`,
  },
  {
    name: 'shared memory',
    code: `reach(new SharedArrayBuffer(8), target); reach(Atomics, target); reach(Intl, target);`,
  },
];
