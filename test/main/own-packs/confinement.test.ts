import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openWithOwn, packText } from '../../support/own-packs.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const linux = process.platform === 'linux';

/** Tries each, and answers with what came of it. */
const trying = (attempts: Record<string, string>): string => `
  const node = (name) => process.getBuiltinModule('node:' + name);
  const attempts = { ${Object.entries(attempts)
    .map(([name, code]) => `${JSON.stringify(name)}: async () => { ${code} }`)
    .join(',')} };
  const came = {};
  for (const [name, attempt] of Object.entries(attempts)) {
    try { came[name] = 'got ' + String(await attempt()).slice(0, 100); } catch (error) { came[name] = 'refused'; }
  }
  return { said: JSON.stringify(came) };`;

async function outcomes(attempts: Record<string, string>, folder = tempFolder()): Promise<Record<string, string>> {
  const { run } = await openWithOwn({ handler: trying(attempts) }, { folder });
  return JSON.parse(((await run()).output as { said: string }).said) as Record<string, string>;
}

const allRefused = (attempts: object): object => Object.fromEntries(Object.keys(attempts).map((name) => [name, 'refused']));

describe("a pack of the owner's own cannot (R-PACK-10)", () => {
  test('read the memory, its key, its tokens or itself, by any way there is in Node', async () => {
    const folder = tempFolder();
    for (const name of ['owner-token', 'memory.key', 'config.json', 'secret.mjs', 'secret.sock.json']) {
      writeFileSync(join(folder, name), name.endsWith('mjs') ? 'export default 1' : '{"secret":1}', { mode: 0o600 });
    }
    const at = (name: string): string => JSON.stringify(join(folder, name));
    const attempts = {
      read: `return node('fs').readFileSync(${at('memory.db')})`,
      key: `return node('fs').readFileSync(${at('memory.key')}, 'utf8')`,
      token: `return await node('fs').promises.readFile(${at('owner-token')}, 'utf8')`,
      bytes: `return node('fs').readFileSync(Buffer.from(${at('owner-token')}), 'utf8')`,
      open: `return node('fs').openSync(${at('memory.db')}, 'r')`,
      blob: `return await (await node('fs').openAsBlob(${at('owner-token')})).text()`,
      list: `return node('fs').readdirSync(${JSON.stringify(folder)})`,
      look: `return node('fs').statSync(${at('memory.db')}).size`,
      own: `return node('fs').readFileSync(${at('packs/test.own.mjs')})`,
      json: `return JSON.stringify((await import(${JSON.stringify(`file://${folder}/config.json`)}, { with: { type: 'json' } })).default)`,
      module: `return (await import(${JSON.stringify(`file://${folder}/secret.mjs`)})).default`,
      require: `return JSON.stringify(node('module').createRequire('file:///x/y.js')(${at('config.json')}))`,
      sqlite: `return new (await import('node:sqlite')).DatabaseSync(${at('memory.db')})`,
      sqliteBuiltin: `return new (node('sqlite').DatabaseSync)(${at('memory.db')})`,
      environment: `process.loadEnvFile(${at('config.json')}); return 'loaded'`,
      watch: `node('fs').watch(${JSON.stringify(folder)}).close(); return 'watched'`,
      parent: `return node('fs').readFileSync('/proc/' + process.ppid + '/environ', 'utf8')`,
      mine: `return node('fs').readFileSync('/proc/self/environ', 'utf8')`,
      descriptors: `return node('fs').readdirSync('/proc/self/fd')`,
      memory: `return node('fs').openSync('/proc/' + process.ppid + '/mem')`,
    };
    expect(await outcomes(attempts, folder)).toEqual(allRefused(attempts));
  });

  test('write anywhere', async () => {
    const folder = tempFolder();
    const at = JSON.stringify(join(folder, 'packs', 'evil.mjs'));
    const attempts = {
      write: `node('fs').writeFileSync(${at}, 'x')`,
      temporary: `return node('fs').mkdtempSync('/tmp/x')`,
      shared: `node('fs').writeFileSync('/dev/shm/x', 'x')`,
      remove: `node('fs').rmSync(${JSON.stringify(folder)}, { recursive: true })`,
      report: `return process.report.writeReport(${at})`,
      heap: `return node('v8').writeHeapSnapshot(${at})`,
      trace: `node('trace_events').createTracing({ categories: ['node'] }).enable()`,
    };
    expect(await outcomes(attempts, folder)).toEqual(allRefused(attempts));
  });

  test('start a program, a worker or native code, or reach for other processes', async () => {
    const attempts = {
      program: `return node('child_process').execSync('id')`,
      fork: `return node('cluster').fork().process.pid`,
      exec: `process.execve('/bin/sh', ['sh'], {})`,
      worker: `return new (node('worker_threads').Worker)('1', { eval: true }).threadId`,
      addon: `process.dlopen({ exports: {} }, '/nowhere.node'); return 'loaded'`,
      binding: `return process.binding('process_wrap')`,
      engine: `node('crypto').setEngine('/nowhere.so'); return 'loaded'`,
      wasi: `return new (node('wasi').WASI)({ version: 'preview1' })`,
      inspector: `node('inspector').open(0); return 'opened'`,
      session: `new (node('inspector').Session)().connect(); return 'connected'`,
      loader: `node('module').register('data:text/javascript,'); return 'registered'`,
      kill: `process.kill(process.ppid, 0); return 'reached'`,
      killImported: `(await import('node:process')).kill(process.ppid, 0); return 'reached'`,
      killBare: `process._kill(process.ppid, 0); return 'reached'`,
      debug: `process._debugProcess(process.ppid); return 'opened'`,
      priority: `node('os').setPriority(process.ppid, node('os').getPriority(process.ppid)); return 'reached'`,
      priorityImported: `(await import('node:os')).setPriority(process.pid, 1); return 'reached'`,
      folder: `process.chdir('/tmp')`,
    };
    expect(await outcomes(attempts)).toEqual(allRefused(attempts));
  });

  test('see anything of our environment', async () => {
    vi.stubEnv('HELMDECK_MEMORY_KEY', A_KEY);
    vi.stubEnv('DBUS_SESSION_BUS_ADDRESS', 'unix:path=/run/user/1/bus');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { run } = await openWithOwn({
      handler: `return { said: JSON.stringify({ names: Object.keys(process.env), cwd: process.cwd(), args: process.argv.length }) };`,
    });
    const said = JSON.parse(((await run()).output as { said: string }).said) as { names: string[]; cwd: string };
    // What a shell adds by itself.
    expect(said.names.filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_', '__CF_USER_TEXT_ENCODING'].includes(name))).toEqual([]);
    expect(said.cwd).toBe('/');
  });

  test.skipIf(!linux)('hold anything that the program has open, as seen from outside', async () => {
    const folder = tempFolder();
    const { run, logged, own } = await openWithOwn(
      { handler: 'ec.log(String(process.pid)); await new Promise(() => undefined);' },
      { folder },
    );
    void run().catch(() => undefined);
    const [pid = ''] = await vi.waitUntil(() => logged.length > 0 && logged, 10_000);
    const open = readdirSync(`/proc/${pid}/fd`).map((name) => [name, readlinkSync(`/proc/${pid}/fd/${name}`)] as const);
    const files = open
      .map(([, path]) => path)
      .filter((path) => path.startsWith('/') && !/^\/dev\/(null|urandom)$|^\/proc\/|node$/.test(path));
    expect(files).toEqual([]);
    // The channel alone; its guard holds the pipe that tells of our end.
    expect(open.filter(([, path]) => path.startsWith('socket:')).map(([name]) => name)).toEqual(['3']);
    expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).not.toMatch(/HELMDECK|HOME|PATH=|DBUS|XDG/);
    own[Symbol.dispose]();
  });

  test.each([
    ['another file', `import './other.mjs';`],
    ['a file by its path', `import '/etc/passwd';`],
    ['a package', `import 'better-sqlite3';`],
    ['our own zod by another name', `import 'zod';`],
  ])('import %s', async (_what, before) => {
    await expect(openWithOwn(packText({ before }))).rejects.toMatchObject({
      message: expect.stringMatching(/A pack is one file; it can import helmdeck-memory\/pack and what is in Node/) as string,
    });
  });
});

describe('it can', () => {
  test('learn whether there is something at a path, which docs/packs.md says, and nothing of what it is', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'memory.key'), 'secret', { mode: 0o600 });
    const at = (name: string): string => JSON.stringify(join(folder, name));
    const there = `return node('fs').realpathSync(${at('memory.key')})`;
    const absent = `return node('fs').realpathSync(${at('absent')})`;
    const size = `return node('fs').statSync(${at('memory.key')}).size`;
    const names = `return node('fs').readdirSync(${JSON.stringify(folder)})`;
    expect(await outcomes({ there, absent, size, names }, folder)).toEqual({
      there: expect.stringMatching(/^got /) as string,
      absent: 'refused',
      size: 'refused',
      names: 'refused',
    });
  });

  test('import what is in Node, and compute with it', async () => {
    const { run } = await openWithOwn({
      before: `import { createHash } from 'node:crypto'; import { join } from 'path';`,
      handler: `return { said: join('a', createHash('sha256').update('x').digest('hex').slice(0, 4)) };`,
    });
    expect(await run()).toMatchObject({ output: { said: 'a/2d71' } });
  });

  test('reach the network, as docs/packs.md says', async () => {
    const server = createServer((_request, response) => response.end('weather')).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await vi.waitUntil(() => server.listening);
    const { port } = server.address() as AddressInfo;
    const { run } = await openWithOwn({
      handler: `return { said: await (await fetch('http://127.0.0.1:${port}', { signal: ec.signal })).text() };`,
    });
    expect(await run()).toMatchObject({ output: { said: 'weather' } });
  });
});
