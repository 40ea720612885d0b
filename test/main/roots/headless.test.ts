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
import { packText, writePack } from '../../support/own-packs.ts';
import { A_KEY, aDraft, ANOTHER_KEY, withKey } from '../../support/store.ts';
import { filesBelow, tempFolder } from '../../support/temp-folder.ts';

const UNBUILT = 'src/main/roots/headless.ts';
const BUILT = 'out/main/headless.cjs';
const SERVE = 'bin/helmdeck-memory.js serve';

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly said: string;
  readonly complained: string;
}

interface Started {
  readonly pid: number | undefined;
  /** What it has said by now. */
  readonly said: string;
  end(...signals: readonly NodeJS.Signals[]): Promise<Ended>;
}

/** Starts the real program in a home of its own, where no keychain is; fulfils when it runs or has ended. */
async function start(environment: Record<string, string>, program = UNBUILT): Promise<Started> {
  // The program, not its caller, must see to it that nobody else can read what it writes.
  const child = spawn('/bin/sh', ['-c', 'umask 0; exec "$0" "$@"', process.execPath, ...program.split(' ')], {
    env: { PATH: process.env['PATH'], HOME: tempFolder(), HELMDECK_ADDR: '127.0.0.1:0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  let complained = '';
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, said, complained }));
  child.stderr.on('data', (text: Buffer) => (complained += text.toString()));
  const running = new Promise<void>((resolve) => {
    child.stdout.on('data', (text: Buffer) => {
      said += text.toString();
      if (/is running|^\{.*\}\n/.test(said)) resolve();
    });
  });
  await Promise.race([running, ended]);
  return {
    pid: child.pid,
    get said() {
      return said;
    },
    end(...signals) {
      for (const signal of signals) child.kill(signal);
      return ended;
    },
  };
}

const aFolder = (): string => join(tempFolder(), 'data');
const withAKey = (folder: string): Record<string, string> => ({ HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY });
const names = (folder: string): string[] => filesBelow(folder).map(({ path }) => path.slice(folder.length + 1));
const free = (folder: string) => () => lockFolder(folder)[Symbol.dispose]();

describe.each([UNBUILT, `${UNBUILT} --headless`, BUILT, SERVE])('the program %s', (program) => {
  test('starts with a key file of its owner, and ends without leaving anything open (R-KEY-01, R-DUR-12)', async () => {
    const folder = aFolder();
    const keyFile = join(tempFolder(), 'key');
    writeFileSync(keyFile, `${A_KEY}\n`, { mode: 0o600 });
    const running = await start({ HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY_FILE: keyFile }, program);
    expect(running.said).toMatch(join(folder, 'memory.db'));
    expect(running.said).toMatch('The key was loaded from the environment (HELMDECK_MEMORY_KEY_FILE).');
    expect(free(folder)).toThrow(/Another Helmdeck Memory/);
    expect(running.said).toMatch('\nTo open the window in a browser, run: npx helmdeck-memory window\n');
    expect(running.said.trimEnd().split('\n').at(-1)).toMatch(/is running at http:\S+\. /);
    const { code, said, complained } = await running.end('SIGTERM');
    expect({ code, complained }).toEqual({ code: 0, complained: '' });
    expect(said).not.toMatch(/WARNING/);
    expect(names(folder).toSorted()).toEqual(['lock.db', 'memory.db', 'reserve']);
    expect(free(folder)).not.toThrow();
  });

  test('runs what was compiled at an earlier start from where the program lies, and only its owner can have put it there', async () => {
    rmSync('out/compiled', { recursive: true, force: true });
    const running = await start(withAKey(aFolder()), program);
    await running.end('SIGTERM');
    const compiled = readdirSync('out/compiled', { recursive: true, encoding: 'utf8' });
    // Programs of other tests compile there too, and take away what is half written.
    const kept = compiled.flatMap((name) => statSync(join('out/compiled', name), { throwIfNoEntry: false }) ?? []);
    expect(kept.filter((one) => one.isFile()).length).toBeGreaterThan(0);
    for (const { mode } of [statSync('out/compiled'), ...kept]) expect(mode & 0o077).toBe(0);
  });
});

describe.runIf(existsSync('/usr/bin/script'))('in a terminal', () => {
  // Everything here is a terminal, as under `docker run -t`, whose terminal ends in the log of the container.
  test.each([UNBUILT, BUILT, SERVE])(
    '%s prints no link to the window, only the command that makes one (R-WIN-45)',
    async (program) => {
      const folder = aFolder();
      const command = `exec ${process.execPath} ${program}`;
      const child = spawn('/usr/bin/script', ['-qfec', command, '/dev/null'], {
        env: { PATH: process.env['PATH'], HOME: tempFolder(), HELMDECK_ADDR: '127.0.0.1:0', ...withAKey(folder) },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGTERM'));
      let said = '';
      child.stdout.on('data', (text: Buffer) => (said += text.toString()));
      await expect.poll(() => said, { timeout: 20_000 }).toMatch(/is running/);
      expect(said).not.toMatch('#link=');
      expect(said).toMatch('\nTo open the window in a browser, run: npx helmdeck-memory window\r\n');
      const environment = { PATH: process.env['PATH'], HOME: tempFolder(), HELMDECK_DATA_DIR: folder };
      const link = execFileSync(process.execPath, ['bin/helmdeck-memory.js', 'window'], { env: environment, encoding: 'utf8' });
      expect(link).toMatch(/^http\S+\/#link=\S+\n$/);
      expect(await (await fetch(link)).text()).toMatch('<div id="window">');
    },
  );
});

describe.each([UNBUILT, BUILT])('packs of the owner in %s', (program) => {
  test('run, and one that is broken is said to be skipped (R-PACK-10, R-PACK-18)', async () => {
    const folder = aFolder();
    mkdirSync(folder, { mode: 0o700 });
    writePack(folder, packText({ handler: `ec.log('heard'); return { said: input.what };` }));
    writePack(folder, 'broken', 'test.broken');
    const running = await start({ ...withAKey(folder), HELMDECK_PACKS: 'test.broken, test.own' }, program);
    expect(running.said).toMatch(/^WARNING: THE PACK test\.broken WAS SKIPPED\. test\.broken: /m);
    using owner = await findOwnerClient(folder);
    expect(await owner?.call('runPack', { name: 'test.own', input: { what: 'hello' } })).toMatchObject({
      output: { said: 'hello' },
    });
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0, complained: 'test.own: heard\n' });
  });
});

describe('the program', () => {
  test('listens where it is told, says where, and leaves nothing that points there when it ends (R-HTTP-01, R-HTTP-03)', async () => {
    const folder = aFolder();
    const running = await start(withAKey(folder));
    const url = /is running at (http:\/\/127\.0\.0\.1:\d+)\./.exec(running.said)?.[1];
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: 'ok' });
    expect(names(folder)).toContain('endpoint.json');
    const taken = await start({ ...withAKey(aFolder()), HELMDECK_ADDR: String(url).slice('http://'.length) });
    expect(await taken.end()).toMatchObject({ code: 5, complained: expect.stringMatching(/is taken by/) });
    await running.end('SIGTERM');
    expect(names(folder)).not.toContain('endpoint.json');
  });

  test.skipIf(process.platform !== 'linux')('sleeps while nobody is connected', async () => {
    const running = await start(withAKey(aFolder()));
    const url = /is running at (http:\/\/127\.0\.0\.1:\d+)\./.exec(running.said)?.[1];
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
    // What a start leaves for later is over in 2 s, and V8 looks at its memory every 8 s. Whatever comes again sooner than after
    // this long leaves no such rest, in whichever thread; a busy machine makes it come later, and adds nothing to it.
    await expect.poll(asleep, { interval: 100 }).toBeGreaterThan(4000);
    await ask();
    expect(asleep()).toBeLessThan(4000);
    await running.end('SIGTERM');
  });

  test('takes settings from the file in its folder, its keys too (R-HTTP-12)', async () => {
    const folder = aFolder();
    mkdirSync(folder, { mode: 0o700 });
    const settings = {
      HELMDECK_MEMORY_KEY: A_KEY,
      HELMDECK_ALLOWED_HOSTS: ['memory.example'],
      HELMDECK_JWT_SECRET: 's'.repeat(32),
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(settings), { mode: 0o600 });
    const running = await start({ HELMDECK_DATA_DIR: folder });
    const url = /is running at (\S+)\./.exec(running.said)?.[1];
    expect(running.said).toMatch('The key was loaded from the environment (HELMDECK_MEMORY_KEY).');
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

  describe('and a signal that asks Node for a debugger before our first line runs', () => {
    const early = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent("process.kill(process.pid,'SIGUSR1')")}` };

    test.each([UNBUILT, BUILT, SERVE, 'bin/helmdeck-memory.js key status'])(
      'ends %s before it reads the key (R-KEY-14)',
      async (program) => {
        const { code, said, complained } = await (await start({ ...withAKey(aFolder()), ...early }, program)).end();
        expect(complained).toMatch('Debugger listening');
        expect(complained).toMatch('A debugger was opened on this process and could read the key of the memory.');
        expect({ code: code === 0, said }).toEqual({ code: false, said: '' });
      },
    );

    test('opens none where the launcher turns the signal off (R-KEY-14)', async () => {
      const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: { start: string } };
      const launched = scripts.start.replace(/^node /, '');
      const running = await start({ ...withAKey(aFolder()), ...early }, `${launched} --headless`);
      expect(running.said).toMatch('is running');
      expect(await running.end('SIGTERM')).toMatchObject({ code: 0, complained: '' });
      expect(readFileSync('bin/helmdeck-memory.js', 'utf8')).toMatch("const args = ['--disable-sigusr1',");
    });
  });

  test('opens no debugger for a signal while it runs (R-KEY-14)', async () => {
    const running = await start(withAKey(aFolder()));
    process.kill(Number(running.pid), 'SIGUSR1');
    await wait(500);
    // Node would say there where it listens.
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0, complained: '' });
  });

  test.each([UNBUILT, BUILT, SERVE])(
    'serves without the way to a prototype that a name from outside could take: %s',
    async (program) => {
      const told = `process.on('exit',()=>console.log('a way to prototypes:','__proto__'in{}))`;
      const environment = { ...withAKey(aFolder()), NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(told)}` };
      const { said } = await (await start(environment, program)).end('SIGTERM');
      expect(said).toMatch(/a way to prototypes: false/);
    },
  );

  test('says it in one line for a script, and takes the end of its terminal for its own', async () => {
    const folder = aFolder();
    const running = await start(withAKey(folder), `${SERVE} --json`);
    expect(JSON.parse(running.said)).toEqual({ url: expect.stringMatching(/^http:\/\/127/) as string, pid: running.pid, folder });
    expect(await running.end('SIGHUP')).toMatchObject({ code: 0, complained: '' });
    expect(names(folder)).not.toContain('endpoint.json');
  });

  test('opens what was remembered before, and leaves it there', async () => {
    const folder = aFolder();
    const open = () => openStore({ folder, clock: systemClock, sources: withKey() });
    {
      await using store = await open();
      await store.space({ subject: 'me' }, 'fact').put(aDraft());
    }
    await (await start(withAKey(folder))).end('SIGINT');
    await using store = await open();
    expect(await store.space({ subject: 'me' }, 'fact').get(aDraft().key)).toMatchObject({ value: aDraft().value });
  });

  test('makes files and folders that only its owner can read, whatever the umask (R-STORE-03)', async () => {
    const folder = aFolder();
    const running = await start(withAKey(folder));
    const modes = Object.fromEntries(filesBelow(folder).map(({ path }) => [path, statSync(path).mode & 0o777]));
    expect(Object.keys(modes)).toContain(join(folder, 'memory.db-wal'));
    expect(new Set(Object.values(modes))).toEqual(new Set([0o600]));
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    await running.end('SIGTERM');
  });

  test.runIf(process.getuid?.() === 0)('shows another user of this machine nothing (R-STORE-03, R-HTTP-08)', async () => {
    const open = tempFolder();
    chmodSync(open, 0o755);
    const folder = join(open, 'data');
    const running = await start(withAKey(folder));
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

  test.runIf(process.platform === 'linux')('shows the token of its owner to nobody who lists processes (R-AUTH-08)', async () => {
    const folder = aFolder();
    const running = await start(withAKey(folder));
    const token = readFileSync(join(folder, 'owner-token'), 'utf8').trim();
    expect(token.length).toBeGreaterThan(100);
    for (const what of ['cmdline', 'environ'])
      expect(readFileSync(`/proc/${running.pid}/${what}`, 'utf8'), what).not.toContain(token.slice(-20));
    expect(readFileSync(`/proc/${running.pid}/task/${running.pid}/children`, 'utf8')).toBe('');
    const { said, complained } = await running.end('SIGTERM');
    expect(said + complained).not.toContain(token.slice(-20));
  });

  test('ends well when a signal comes more than once', async () => {
    const folder = aFolder();
    const running = await start(withAKey(folder));
    expect(await running.end('SIGINT', 'SIGINT', 'SIGTERM')).toMatchObject({ code: 0, complained: '' });
    expect(names(folder)).not.toContain('memory.db-wal');
  });

  test('is not kept from starting by one that was killed (R-DUR-12)', async () => {
    const folder = aFolder();
    expect(await (await start(withAKey(folder))).end('SIGKILL')).toMatchObject({ signal: 'SIGKILL' });
    const next = await start(withAKey(folder));
    expect(next.said).toMatch('The key was loaded');
    expect(await next.end('SIGTERM')).toMatchObject({ code: 0 });
  });

  test('says loudly that without a key it keeps nothing, and keeps nothing (R-KEY-03)', async () => {
    const folder = aFolder();
    const running = await start({ HELMDECK_DATA_DIR: folder });
    expect(running.said).toMatch(/^WARNING: THERE IS NO KEY, SO NOTHING IS SAVED\./);
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0, complained: '' });
    expect(names(folder)).toEqual(['lock.db']);
  });

  test('finds the key file that it told its owner to make (R-KEY-01, R-KEY-03)', async () => {
    const folder = join(tempFolder(), "o'hara's $data");
    const first = await start({ HELMDECK_DATA_DIR: folder });
    const command = /^ {2}(?:npx )?helmdeck-memory (.*)$/m.exec(first.said)?.[1] ?? '';
    await first.end('SIGTERM');
    const environment = { PATH: process.env['PATH'], HOME: tempFolder(), HELMDECK_DATA_DIR: folder };
    execFileSync(process.execPath, ['bin/helmdeck-memory.js', ...command.split(' ')], { env: environment });
    const second = await start({ HELMDECK_DATA_DIR: folder });
    expect(second.said).toMatch('The key was loaded from the key file.');
    await second.end('SIGTERM');
  });

  test('says when the key is another, with the remedy, and leaves the memory as it was (R-KEY-04, R-KEY-07)', async () => {
    const folder = aFolder();
    await (await start(withAKey(folder))).end('SIGTERM');
    const before = readFileSync(join(folder, 'memory.db'));
    const running = await start({ ...withAKey(folder), HELMDECK_MEMORY_KEY: ANOTHER_KEY });
    expect(running.said).toMatch(/WARNING: THE KEY IS MISMATCH: .*\nProvide the key that was kept in/);
    expect(await running.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder, 'memory.db')).equals(before)).toBe(true);
  });
});

describe('a start that is refused says so in one line', () => {
  const refused = async (expected: number, environment: Record<string, string>, program = UNBUILT): Promise<string> => {
    const { code, said, complained } = await (await start(environment, program)).end();
    expect({ code, said }).toEqual({ code: expected, said: '' });
    expect(complained).toMatch(/^Helmdeck Memory cannot start: .*\n$/);
    return complained;
  };

  test('because another one is running, which goes on (R-DUR-12)', async () => {
    const folder = aFolder();
    const first = await start(withAKey(folder));
    expect(await refused(5, withAKey(folder))).toMatch(/Another Helmdeck Memory is using this data folder/);
    expect(await first.end('SIGTERM')).toMatchObject({ code: 0, complained: '' });
  });

  test('because another one of twenty at once was first, whichever that is (R-DUR-12)', async () => {
    const folder = aFolder();
    const starts = await Promise.all(Array.from({ length: 20 }, () => start(withAKey(folder), BUILT)));
    const [first, ...more] = starts.filter(({ said }) => said !== '');
    expect(more).toEqual([]);
    for (const other of starts.filter((one) => one !== first)) {
      const { code, complained } = await other.end();
      expect(code).toBe(5);
      expect(complained).toMatch(/^Helmdeck Memory cannot start: Another Helmdeck Memory is using this data folder.*\n$/);
    }
    using owner = await findOwnerClient(folder);
    expect(await owner?.call('status', {})).toMatchObject({ store: { kept: 'file', file: { at: 'open' } } });
    expect(await first?.end('SIGTERM')).toMatchObject({ code: 0, complained: '' });
  });

  test('because the key is malformed, without what it holds (R-KEY-02)', async () => {
    const folder = aFolder();
    const complaint = await refused(78, { HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: 'not-a-key-5e5e' });
    expect(complaint).toMatch('HELMDECK_MEMORY_KEY must hold');
    expect(complaint).not.toMatch('5e5e');
    expect(existsSync(join(folder, 'memory.db'))).toBe(false);
  });

  test('because a file of the environment cannot be read (R-KEY-02)', async () => {
    const complaint = await refused(78, { HELMDECK_DATA_DIR: aFolder(), HELMDECK_MEMORY_KEY_FILE: '/nowhere/key' });
    expect(complaint).toMatch('HELMDECK_MEMORY_KEY_FILE');
  });

  test.each([
    { HELMDECK_DATA_DIR: 'data' },
    { HELMDECK_DATA_DIR: '/etc/passwd' },
    { HELMDECK_DATA_DIR: '/proc/nowhere' },
    { HELMDECK_CONFIG: '/nowhere/config.json' },
    { HELMDECK_ADDR: '0.0.0.0:7345' },
    { HELMDECK_ALLOWED_HOSTS: '*' },
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
    const { code, said, complained } = await (await start(environment, 'bin/helmdeck-memory.js status')).end();
    expect({ code, said, complained }).toEqual({
      code: 78,
      said: '',
      complained: why.replace('Helmdeck Memory cannot start: ', ''),
    });
  });

  test('because it was asked for what it does not have', async () => {
    const { code, said, complained } = await (await start({}, `${UNBUILT} --desktop`)).end();
    expect({ code, said }).toEqual({ code: 2, said: '' });
    expect(complained).toMatch(/^Helmdeck Memory cannot start: The only argument is --headless.*\n$/);
    expect(await (await start({}, `${UNBUILT} --port`)).end()).toMatchObject({ code: 2, said: '' });
  });

  test('because the memory is damaged, which stays as it was (R-DUR-05)', async () => {
    const folder = aFolder();
    await (await start(withAKey(folder))).end('SIGTERM');
    writeFileSync(join(folder, 'memory.db'), 'not a database');
    expect(await refused(5, withAKey(folder))).toMatch(/memory\.db is damaged/);
    expect(readFileSync(join(folder, 'memory.db'), 'utf8')).toBe('not a database');
  });
});
