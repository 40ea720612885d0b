import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { signingKey, signToken } from '../../../src/core/access/jwt.ts';
import { lockFolder } from '../../../src/core/file/folder.ts';
import { openStore } from '../../../src/core/store/open-store.ts';
import { systemClock } from '../../../src/core/time/clock.ts';
import { findOwnerClient } from '../../../src/listeners/endpoint.ts';
import { createAuthority } from '../../support/certificates.ts';
import { packText, writePack } from '../../support/own-packs.ts';
import { BUILT, SERVE, startProgram, UNBUILT } from '../../support/program.ts';
import { A_KEY, aDraft, ANOTHER_KEY, withKey } from '../../support/store.ts';
import { openTls, readToEnd, TEAM_NAME } from '../../support/team.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';

const aFolder = (): string => join(tempFolder(), 'data');
const withAKey = (folder: string): Record<string, string> => ({ HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY });
const names = (folder: string): string[] => filesBelow(folder).map(({ path }) => path.slice(folder.length + 1));
const free = (folder: string) => () => lockFolder(folder)[Symbol.dispose]();

describe.each([UNBUILT, `${UNBUILT} --headless`, BUILT, SERVE])('the program %s', (program) => {
  test('starts with a key file, and closes everything at the end (R-KEY-01, R-DUR-12)', async () => {
    const folder = aFolder();
    const keyFile = join(tempFolder(), 'key');
    writeFileSync(keyFile, `${A_KEY}\n`, { mode: 0o600 });
    const running = await startProgram({ HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY_FILE: keyFile }, program);
    expect(running.output).toMatch(join(folder, 'memory.db'));
    expect(running.output).toMatch('The key was loaded from the environment (HELMDECK_MEMORY_KEY_FILE).');
    expect(free(folder)).toThrow(/Another Helmdeck Memory/);
    expect(running.output).toMatch('\nTo open the window in a browser, run: npx helmdeck-memory window\n');
    expect(running.output.trimEnd().split('\n').at(-1)).toMatch(/is running at http:\S+\. /);
    const { code, output, errorOutput } = await running.end('SIGTERM');
    expect({ code, errorOutput }).toEqual({ code: 0, errorOutput: '' });
    expect(output).not.toMatch(/WARNING/);
    expect(names(folder).toSorted()).toEqual(['lock.db', 'memory.db', 'reserve']);
    expect(free(folder)).not.toThrow();
  });

  test('caches compiled code in its own folder, readable and writable only by the owner', async () => {
    // Other tests write to the folder meanwhile.
    rmSync('out/compiled', { recursive: true, force: true, maxRetries: 10 });
    const running = await startProgram(withAKey(aFolder()), program);
    await running.end('SIGTERM');
    const compiled = readdirSync('out/compiled', { recursive: true, encoding: 'utf8' });
    // Other tests use the same folder, and delete partial files.
    const kept = compiled.flatMap((name) => statSync(join('out/compiled', name), { throwIfNoEntry: false }) ?? []);
    expect(kept.filter((one) => one.isFile()).length).toBeGreaterThan(0);
    for (const { mode } of [statSync('out/compiled'), ...kept]) expect(mode & 0o077).toBe(0);
  });
});

describe.runIf(existsSync('/usr/bin/script'))('in a terminal', () => {
  // Standard input and output are terminals here, as with `docker run -t`, where the container's log records them.
  test.each([UNBUILT, BUILT, SERVE])(
    '%s prints no link to the window, only the command that makes one (R-WIN-45)',
    async (program) => {
      const folder = aFolder();
      const command = `exec ${process.execPath} ${program}`;
      const child = spawn('/usr/bin/script', ['-qfec', command, '/dev/null'], {
        env: {
          PATH: process.env['PATH'],
          HOME: tempFolder(),
          HELMDECK_ADDR: '127.0.0.1:0',
          HELMDECK_MEANING: 'off',
          ...withAKey(folder),
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGTERM'));
      let output = '';
      child.stdout.on('data', (text: Buffer) => (output += text.toString()));
      await expect.poll(() => output, { timeout: 20_000 }).toMatch(/is running/);
      expect(output).not.toMatch('#link=');
      expect(output).toMatch('\nTo open the window in a browser, run: npx helmdeck-memory window\r\n');
      const environment = { PATH: process.env['PATH'], HOME: tempFolder(), HELMDECK_DATA_DIR: folder };
      const link = execFileSync(process.execPath, ['bin/helmdeck-memory.js', 'window'], { env: environment, encoding: 'utf8' });
      expect(link).toMatch(/^http\S+\/#link=\S+\n$/);
      expect(await (await fetch(link)).text()).toMatch('<div id="window">');
    },
  );
});

describe.each([UNBUILT, BUILT])('packs of the owner in %s', (program) => {
  test('run, and a broken pack is reported as skipped (R-PACK-10, R-PACK-18)', async () => {
    const folder = aFolder();
    mkdirSync(folder, { mode: 0o700 });
    writePack(folder, packText({ handler: `ec.log('heard'); return { said: input.what };` }));
    writePack(folder, 'broken', 'test.broken');
    const running = await startProgram({ ...withAKey(folder), HELMDECK_PACKS: 'test.broken, test.own' }, program);
    expect(running.output).toMatch(/^WARNING: THE PACK test\.broken WAS SKIPPED\. test\.broken: /m);
    using owner = await findOwnerClient(folder);
    expect(await owner?.call('runPack', { name: 'test.own', input: { what: 'hello' } })).toMatchObject({
      output: { said: 'hello' },
    });
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0, errorOutput: 'test.own: heard\n' });
  });
});

describe('the program', () => {
  test('listens on the configured address, prints it, and deletes endpoint.json at the end (R-HTTP-01, R-HTTP-03)', async () => {
    const folder = aFolder();
    const running = await startProgram(withAKey(folder));
    const url = /is running at (http:\/\/127\.0\.0\.1:\d+)\./.exec(running.output)?.[1];
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok' });
    expect(names(folder)).toContain('endpoint.json');
    const taken = await startProgram({ ...withAKey(aFolder()), HELMDECK_ADDR: String(url).slice('http://'.length) });
    expect(await taken.end()).toMatchObject({ code: 5, errorOutput: expect.stringMatching(/is in use by/) });
    await running.end('SIGTERM');
    expect(names(folder)).not.toContain('endpoint.json');
  });

  test.skipIf(process.platform !== 'linux')('sleeps while there are no connections', async () => {
    const running = await startProgram(withAKey(aFolder()));
    const url = /is running at (http:\/\/127\.0\.0\.1:\d+)\./.exec(running.output)?.[1];
    const threads = `/proc/${running.pid}/task`;
    const wakeUps = (): string =>
      readdirSync(threads)
        .map((thread) => {
          const status = readFileSync(`${threads}/${thread}/status`, 'utf8');
          return /^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1];
        })
        .join();
    const ask = async (): Promise<void> => {
      const [answer] = (await once(get(`${url}/healthz`, { agent: false }), 'response')) as [IncomingMessage];
      await once(answer.resume(), 'close');
    };
    await ask();
    let [woken, since] = ['', performance.now()];
    const asleep = (): number => {
      const now = wakeUps();
      if (now !== woken) [woken, since] = [now, performance.now()];
      return performance.now() - since;
    };
    // Background work of the start ends within 2 s, and V8 checks its memory every 8 s. A timer with a shorter period would
    // prevent such a pause in some thread. A busy machine delays timers, but adds none.
    await expect.poll(asleep, { interval: 100 }).toBeGreaterThan(4000);
    await ask();
    expect(asleep()).toBeLessThan(4000);
    await running.end('SIGTERM');
  });

  test('reads settings and keys from config.json (R-HTTP-12)', async () => {
    const folder = aFolder();
    mkdirSync(folder, { mode: 0o700 });
    const settings = {
      HELMDECK_MEMORY_KEY: A_KEY,
      HELMDECK_ALLOWED_HOSTS: ['memory.example'],
      HELMDECK_JWT_SECRET: 's'.repeat(32),
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(settings), { mode: 0o600 });
    const running = await startProgram({ HELMDECK_DATA_DIR: folder });
    const url = /is running at (\S+)\./.exec(running.output)?.[1];
    expect(running.output).toMatch('The key was loaded from the environment (HELMDECK_MEMORY_KEY).');
    const status = async (host: string): Promise<number | undefined> => {
      const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
      get(`${url}/healthz`, { headers: { host } }, ({ statusCode }) => resolve(statusCode)).on('error', reject);
      return promise;
    };
    expect([await status('memory.example'), await status('other.example')]).toEqual([200, 403]);
    const claims = { iss: 'helmdeck' as const, sub: 'me', exp: Math.ceil(Date.now() / 1000) + 60, client: 'a test' };
    const token = signToken({ ...claims, scopes: ['memory:read'] }, signingKey('s'.repeat(32)));
    const answer = await fetch(`${url}/api/v1/memory`, { headers: { Authorization: `Bearer ${token}` } });
    expect(await answer.json()).toMatchObject({ scope: 'caller=me' });
    await running.end('SIGTERM');
  });

  test('serves other machines with TLS, and closes that server too (R-TEAM-01)', async () => {
    const authority = createAuthority();
    const files = authority.issue([`DNS:${TEAM_NAME}`]);
    const tls = { HELMDECK_TLS_CERT_FILE: files.certificateFile, HELMDECK_TLS_KEY_FILE: files.keyFile };
    const running = await startProgram({ ...withAKey(aFolder()), HELMDECK_SERVER_ADDR: '127.0.0.2:0', ...tls }, SERVE);
    const port = Number(/Other machines connect at https:\/\/memory\.test:(\d+)\.\n/.exec(running.output)?.[1]);
    const open = await openTls(port, { host: '127.0.0.2', ca: authority.ca });
    open.write(`GET /healthz HTTP/1.1\r\nHost: ${TEAM_NAME}\r\n\r\n`);
    const received = readToEnd(open);
    await expect.poll(() => open.bytesRead).toBeGreaterThan(0);
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0, errorOutput: '' });
    expect(await received).toMatch(/^HTTP\/1\.1 200 /);
  });

  describe('and SIGUSR1, which opens a debugger, before the first line of the program runs', () => {
    const early = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent("process.kill(process.pid,'SIGUSR1')")}` };

    test.each([UNBUILT, BUILT, SERVE, 'bin/helmdeck-memory.js key status'])(
      'stops %s before it reads the key (R-KEY-14)',
      async (program) => {
        const { code, output, errorOutput } = await (await startProgram({ ...withAKey(aFolder()), ...early }, program)).end();
        expect(errorOutput).toMatch('Debugger listening');
        expect(errorOutput).toMatch('A debugger was opened on this process and could read the key of the memory.');
        expect({ code: code === 0, output }).toEqual({ code: false, output: '' });
      },
    );

    test('opens no debugger if the launcher disables the signal (R-KEY-14)', async () => {
      const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: { start: string } };
      const launched = scripts.start.replace(/^node /, '');
      const running = await startProgram({ ...withAKey(aFolder()), ...early }, `${launched} --headless`);
      expect(running.output).toMatch('is running');
      expect(await running.end('SIGTERM')).toMatchObject({ code: 0, errorOutput: '' });
      expect(readFileSync('bin/helmdeck-memory.js', 'utf8')).toMatch("const args = ['--disable-sigusr1',");
    });
  });

  test('opens no debugger on SIGUSR1 while it runs (R-KEY-14)', async () => {
    const running = await startProgram(withAKey(aFolder()));
    process.kill(Number(running.pid), 'SIGUSR1');
    await wait(500);
    // Node would print the address of the debugger to standard error.
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0, errorOutput: '' });
  });

  test.each([UNBUILT, BUILT, SERVE])('removes __proto__, which input could use to change prototypes: %s', async (program) => {
    const told = `process.on('exit',()=>console.log('a way to prototypes:','__proto__'in{}))`;
    const environment = { ...withAKey(aFolder()), NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(told)}` };
    const { output } = await (await startProgram(environment, program)).end('SIGTERM');
    expect(output).toMatch(/a way to prototypes: false/);
  });

  test('prints one JSON line with --json, and stops when its terminal closes', async () => {
    const folder = aFolder();
    const running = await startProgram(withAKey(folder), `${SERVE} --json`);
    expect(JSON.parse(running.output)).toEqual({
      url: expect.stringMatching(/^http:\/\/127/) as string,
      pid: running.pid,
      folder,
    });
    expect(await running.end('SIGHUP')).toMatchObject({ code: 0, errorOutput: '' });
    expect(names(folder)).not.toContain('endpoint.json');
  });

  test('keeps stored facts', async () => {
    const folder = aFolder();
    const open = () => openStore({ folder, clock: systemClock, sources: withKey() });
    {
      await using store = await open();
      await store.space({ subject: 'me' }, 'fact').put(aDraft());
    }
    await (await startProgram(withAKey(folder))).end('SIGINT');
    await using store = await open();
    expect(await store.space({ subject: 'me' }, 'fact').get(aDraft().key)).toMatchObject({ value: aDraft().value });
  });

  test('creates files and folders that only the owner can read, with any umask (R-STORE-03)', async () => {
    const folder = aFolder();
    const running = await startProgram(withAKey(folder));
    const modes = Object.fromEntries(filesBelow(folder).map(({ path }) => [path, statSync(path).mode & 0o777]));
    expect(Object.keys(modes)).toContain(join(folder, 'memory.db-wal'));
    expect(new Set(Object.values(modes))).toEqual(new Set([0o600]));
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    await running.end('SIGTERM');
  });

  test.runIf(process.getuid?.() === 0)('denies access to other users of the machine (R-STORE-03, R-HTTP-08)', async () => {
    const open = tempFolder();
    chmodSync(open, 0o755);
    const folder = join(open, 'data');
    const running = await startProgram(withAKey(folder));
    const another = (line: string) =>
      spawnSync('/bin/sh', ['-c', line, folder], { uid: 65_534, gid: 65_534, cwd: '/', env: {}, encoding: 'utf8' });
    expect(another('ls -d "$0"')).toMatchObject({ status: 0, stdout: `${folder}\n` });
    for (const line of [
      'ls "$0"',
      'cat "$0/memory.db"',
      'cat "$0/memory.db-wal"',
      'cat "$0/endpoint.json"',
      'cat "$0/owner-token"',
    ]) {
      const { status, stdout, stderr } = another(line);
      expect({ status: status === 0, stdout }, line).toEqual({ status: false, stdout: '' });
      expect(stderr).toMatch(/denied/i);
    }
    const { url } = JSON.parse(readFileSync(join(folder, 'endpoint.json'), 'utf8')) as { url: string };
    expect((await fetch(`${url}/api/v1/memory/defaults`)).status).toBe(401);
    await running.end('SIGTERM');
  });

  test.runIf(process.platform === 'linux')('does not expose the owner token in the process list (R-AUTH-08)', async () => {
    const folder = aFolder();
    const running = await startProgram(withAKey(folder));
    const token = readFileSync(join(folder, 'owner-token'), 'utf8').trim();
    expect(token.length).toBeGreaterThan(100);
    for (const what of ['cmdline', 'environ'])
      expect(readFileSync(`/proc/${running.pid}/${what}`, 'utf8'), what).not.toContain(token.slice(-20));
    expect(readFileSync(`/proc/${running.pid}/task/${running.pid}/children`, 'utf8')).toBe('');
    const { output, errorOutput } = await running.end('SIGTERM');
    expect(output + errorOutput).not.toContain(token.slice(-20));
  });

  test('stops cleanly when a signal arrives more than once', async () => {
    const folder = aFolder();
    const running = await startProgram(withAKey(folder));
    expect(await running.end('SIGINT', 'SIGINT', 'SIGTERM')).toMatchObject({ code: 0, errorOutput: '' });
    expect(names(folder)).not.toContain('memory.db-wal');
  });

  test('starts after an earlier process was killed (R-DUR-12)', async () => {
    const folder = aFolder();
    expect(await (await startProgram(withAKey(folder))).end('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
    const next = await startProgram(withAKey(folder));
    expect(next.output).toMatch('The key was loaded');
    expect(await next.end('SIGTERM')).toMatchObject({ code: 0 });
  });

  test('warns that nothing is saved without a key, and saves nothing (R-KEY-03)', async () => {
    const folder = aFolder();
    const running = await startProgram({ HELMDECK_DATA_DIR: folder });
    expect(running.output).toMatch(/^WARNING: THERE IS NO KEY, SO NOTHING IS SAVED\./);
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0, errorOutput: '' });
    expect(names(folder)).toEqual(['lock.db']);
  });

  test('finds the key file that the suggested command created (R-KEY-01, R-KEY-03)', async () => {
    const folder = join(tempFolder(), "o'hara's $data");
    const first = await startProgram({ HELMDECK_DATA_DIR: folder });
    const command = /^ {2}(?:npx )?helmdeck-memory (.*)$/m.exec(first.output)?.[1] ?? '';
    await first.end('SIGTERM');
    const environment = { PATH: process.env['PATH'], HOME: tempFolder(), HELMDECK_DATA_DIR: folder };
    execFileSync(process.execPath, ['bin/helmdeck-memory.js', ...command.split(' ')], { env: environment });
    const second = await startProgram({ HELMDECK_DATA_DIR: folder });
    expect(second.output).toMatch('The key was loaded from the key file.');
    await second.end('SIGTERM');
  });

  test('reports a wrong key with the remedy, and leaves the memory unchanged (R-KEY-04, R-KEY-07)', async () => {
    const folder = aFolder();
    await (await startProgram(withAKey(folder))).end('SIGTERM');
    const before = readFileSync(join(folder, 'memory.db'));
    const running = await startProgram({ ...withAKey(folder), HELMDECK_MEMORY_KEY: ANOTHER_KEY });
    expect(running.output).toMatch(/WARNING: THE KEY IS MISMATCH: .*\nProvide the key that was stored in/);
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder, 'memory.db')).equals(before)).toBe(true);
  });
});

describe('a refused start prints one line', () => {
  const refused = async (expected: number, environment: Record<string, string>, program = UNBUILT): Promise<string> => {
    const { code, output, errorOutput } = await (await startProgram(environment, program)).end();
    expect({ code, output }).toEqual({ code: expected, output: '' });
    expect(errorOutput).toMatch(/^Helmdeck Memory cannot start: .*\n$/);
    return errorOutput;
  };

  test('because the program is already running (R-DUR-12)', async () => {
    const folder = aFolder();
    const first = await startProgram(withAKey(folder));
    expect(await refused(5, withAKey(folder))).toMatch(/Another Helmdeck Memory process is using this data folder/);
    expect(await first.end('SIGTERM')).toMatchObject({ code: 0, errorOutput: '' });
  });

  test('for all but one of twenty simultaneous starts (R-DUR-12)', async () => {
    const folder = aFolder();
    const starts = await Promise.all(Array.from({ length: 20 }, () => startProgram(withAKey(folder), BUILT)));
    const [first, ...more] = starts.filter(({ output }) => output !== '');
    expect(more).toEqual([]);
    for (const other of starts.filter((one) => one !== first)) {
      const { code, errorOutput } = await other.end();
      expect(code).toBe(5);
      expect(errorOutput).toMatch(
        /^Helmdeck Memory cannot start: Another Helmdeck Memory process is using this data folder.*\n$/,
      );
    }
    using owner = await findOwnerClient(folder);
    expect(await owner?.call('status', {})).toMatchObject({ store: { kept: 'file', file: { at: 'open' } } });
    expect(await first?.end('SIGTERM')).toMatchObject({ code: 0, errorOutput: '' });
  });

  test('because the key is malformed, without showing it (R-KEY-02)', async () => {
    const folder = aFolder();
    const message = await refused(78, { HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: 'not-a-key-5e5e' });
    expect(message).toMatch('HELMDECK_MEMORY_KEY must contain');
    expect(message).not.toMatch('5e5e');
    expect(existsSync(join(folder, 'memory.db'))).toBe(false);
  });

  test('because the key file cannot be read (R-KEY-02)', async () => {
    const message = await refused(78, { HELMDECK_DATA_DIR: aFolder(), HELMDECK_MEMORY_KEY_FILE: '/nowhere/key' });
    expect(message).toMatch('HELMDECK_MEMORY_KEY_FILE');
  });

  test.each([
    { HELMDECK_DATA_DIR: 'data' },
    { HELMDECK_DATA_DIR: '/etc/passwd' },
    { HELMDECK_DATA_DIR: '/proc/nowhere' },
    { HELMDECK_CONFIG: '/nowhere/config.json' },
    { HELMDECK_ADDR: '0.0.0.0:7345' },
    { HELMDECK_ALLOWED_HOSTS: '*' },
    { HELMDECK_SERVER_ADDR: '0.0.0.0:7443' },
    { HELMDECK_TRUSTED_PROXY: '127.0.0.1' },
    { HELMDECK_QUOTA_FACTS: 'abc' },
    { HELMDECK_OPENCLAW_QMD: 'yes' },
    { HELMDECK_MEMORY_KEY: 'abc' },
    { HELMDECK_MEMORY_KEY_FILE: '/nowhere/key' },
    { HELMDECK_JWT_SECRET: 'short' },
    { HELMDECK_GITHUB_TOKEN_FILE: '/nowhere/token' },
  ])('because of a setting, with exit code 78, and so does every command: %o (R-OPS-13)', async (setting) => {
    const environment = { HELMDECK_DATA_DIR: aFolder(), ...setting };
    const why = await refused(78, environment);
    expect(why).toMatch(/HELMDECK_\w+|data folder/);
    expect(await refused(78, environment, SERVE)).toBe(why);
    const { code, output, errorOutput } = await (await startProgram(environment, 'bin/helmdeck-memory.js status')).end();
    expect({ code, output, errorOutput }).toEqual({
      code: 78,
      output: '',
      errorOutput: why.replace('Helmdeck Memory cannot start: ', ''),
    });
  });

  test('because the certificate cannot be used, before anything is written (R-TEAM-02)', async () => {
    const folder = aFolder();
    const files = createAuthority().issue(['DNS:memory.test'], { from: -9, until: -2 });
    const tls = { HELMDECK_TLS_CERT_FILE: files.certificateFile, HELMDECK_TLS_KEY_FILE: files.keyFile };
    const message = await refused(78, { ...withAKey(folder), HELMDECK_SERVER_ADDR: '127.0.0.2:0', ...tls });
    expect(message).toMatch(/^Helmdeck Memory cannot start: The certificate in HELMDECK_TLS_CERT_FILE expired on /);
    expect(existsSync(folder)).toBe(false);
  });

  test('because of an unknown argument', async () => {
    const { code, output, errorOutput } = await (await startProgram({}, `${UNBUILT} --desktop`)).end();
    expect({ code, output }).toEqual({ code: 2, output: '' });
    expect(errorOutput).toMatch(/^Helmdeck Memory cannot start: The only valid argument is --headless.*\n$/);
    expect(await (await startProgram({}, `${UNBUILT} --port`)).end()).toMatchObject({ code: 2, output: '' });
  });

  test('because the memory is damaged, and leaves it unchanged (R-DUR-05)', async () => {
    const folder = aFolder();
    await (await startProgram(withAKey(folder))).end('SIGTERM');
    writeFileSync(join(folder, 'memory.db'), 'not a database');
    expect(await refused(5, withAKey(folder))).toMatch(/memory\.db is damaged/);
    expect(readFileSync(join(folder, 'memory.db'), 'utf8')).toBe('not a database');
  });
});
