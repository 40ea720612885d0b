import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { isEffective, findConfinement, NO_CONFINEMENT } from '../../../src/main/own-packs/confinement.ts';
import { manualClock } from '../../support/clock.ts';
import { startFakeInternet } from '../../support/fake-internet.ts';
import { openMemoryWithOwnPack, packText } from '../../support/own-packs.ts';
import { packProcesses } from '../../support/pack-process.ts';
import { A_KEY } from '../../support/store.ts';

const system = await findConfinement();
const linux = process.platform === 'linux';

describe('the process of an own pack', () => {
  test.skipIf(!linux).each([
    ['without a sandbox of the operating system', NO_CONFINEMENT],
    ['with it', system],
  ])('inherits no open files and no environment variables of the program, %s (R-PACK-10)', async (_how, confined) => {
    vi.stubEnv('HELMDECK_MEMORY_KEY', A_KEY);
    vi.stubEnv('DBUS_SESSION_BUS_ADDRESS', 'unix:path=/run/user/1/bus');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { run, logged, own } = await openMemoryWithOwnPack(
      { handler: `ec.log('runs'); await new Promise(() => undefined);` },
      { findConfinement: () => Promise.resolve(confined) },
    );
    void run().catch(() => undefined);
    await vi.waitUntil(() => logged.length > 0, 10_000);
    const [pid = ''] = packProcesses();
    const open = readdirSync(`/proc/${pid}/fd`).map((name) => [name, readlinkSync(`/proc/${pid}/fd/${name}`)] as const);
    const idOf = (path: string): string => JSON.stringify([statSync(path).dev, statSync(path).ino]);
    const emptied = idOf(`/proc/${pid}/root`) !== idOf('/');
    const files = open
      // Node opens its root folder; in a sandbox that is an empty one.
      .filter(([name, path]) => !(path === '/' && emptied && idOf(`/proc/${pid}/fd/${name}`) === idOf(`/proc/${pid}/root`)))
      .map(([, path]) => path)
      .filter((path) => path.startsWith('/') && !/^\/dev\/(null|urandom)$|^\/proc\/|node$/.test(path));
    expect(files).toEqual([]);
    // Only the channel. The guard shell holds the pipe that closes with the program.
    expect(open.filter(([, path]) => path.startsWith('socket:')).map(([name]) => name)).toEqual(['3']);
    expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).not.toMatch(/HELMDECK|HOME|PATH=|DBUS|XDG/);
    own[Symbol.dispose]();
  });

  test.each([
    ['another file', `import './other.mjs';`],
    ['a file by its path', `import '/etc/passwd';`],
    ['a package', `import 'better-sqlite3';`],
    ['zod by its package name', `import 'zod';`],
    ['a module of Node', `import 'node:crypto';`],
    ['itself', `import 'pack:test.own.mjs';`],
  ])('cannot import %s (R-PACK-34)', async (_what, before) => {
    await expect(openMemoryWithOwnPack(packText({ before }))).rejects.toMatchObject({
      message: expect.stringMatching(/A pack can import only helmdeck-memory\/pack\. A pack must be a single file/) as string,
    });
  });

  // The realm alone stops every escape in escapes.ts, so no escape shows that one of these is missing.
  test.skipIf(!linux)(
    "runs under Node's permission model, frozen, without text as code and without a debugger (R-PACK-34)",
    async () => {
      const { run, logged } = await openMemoryWithOwnPack(
        { handler: `ec.log('runs'); await new Promise(() => undefined);` },
        { findConfinement: () => Promise.resolve(NO_CONFINEMENT) },
      );
      void run().catch(() => undefined);
      await vi.waitUntil(() => logged.length > 0, 10_000);
      const [pid = ''] = packProcesses();
      const options = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      expect(options).toEqual(
        expect.arrayContaining([
          '--permission',
          '--no-experimental-sqlite',
          '--no-addons',
          '--disable-sigusr1',
          '--disallow-code-generation-from-strings',
          '--frozen-intrinsics',
        ]),
      );
      expect(options.filter((option) => option.startsWith('--allow-') && !option.startsWith('--allow-fs-read='))).toEqual([]);
    },
  );
});

describe('the sandbox of the operating system (R-PACK-34)', () => {
  test('is not used if it does not confine the program', async () => {
    expect(await isEffective(NO_CONFINEMENT)).toBe(false);
    expect(await isEffective({ name: 'bubblewrap', wrap: () => ['/bin/true'] })).toBe(false);
  });

  test('is not used if it cannot start a program', async () => {
    expect(await isEffective({ name: 'bubblewrap', wrap: () => ['/nowhere/bwrap'] })).toBe(false);
    expect(await isEffective({ name: 'bubblewrap', wrap: () => ['/bin/false'] })).toBe(false);
  });
});

describe('a pack can use', () => {
  test('the globals that docs/packs.md lists', async () => {
    const { run } = await openMemoryWithOwnPack({
      handler: `
        const address = new URL('/find?q=a%20b#top', 'https://example.com:8443');
        address.searchParams.append('page', 2);
        address.hash = '';
        const bytes = new TextEncoder().encode('grün');
        const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
        const order = [];
        await new Promise((done) => {
          const timer = setInterval(() => { order.push('interval'); if (order.length > 1) { clearInterval(timer); done(); } }, 1);
          clearTimeout(setTimeout(() => order.push('cleared'), 1));
          queueMicrotask(() => order.push('microtask'));
        });
        const giveUp = new AbortController();
        giveUp.signal.addEventListener('abort', () => order.push(giveUp.signal.reason));
        giveUp.abort('because');
        return { said: JSON.stringify({
          address, host: address.hostname, query: Object.fromEntries(address.searchParams), wrong: URL.canParse('no address'),
          text: new TextDecoder().decode(bytes), digest: Array.from(digest.slice(0, 2)), base64: atob(btoa('ab')),
          random: crypto.getRandomValues(new Uint8Array(4)).length, uuid: crypto.randomUUID().length, order,
        }) };`,
    });
    expect(JSON.parse(((await run()).output as { said: string }).said)).toEqual({
      address: 'https://example.com:8443/find?q=a+b&page=2',
      host: 'example.com',
      query: { q: 'a b', page: '2' },
      wrong: false,
      text: 'grün',
      digest: [...createHash('sha256').update('grün').digest().subarray(0, 2)],
      base64: 'ab',
      random: 4,
      uuid: 36,
      order: ['microtask', 'interval', 'because'],
    });
  });

  test('schemas that need an address or base64', async () => {
    const { run } = await openMemoryWithOwnPack({
      input: `what: z.url().default('https://example.com/'), coded: z.base64().default('YQ==')`,
      handler: 'return { said: input.what + input.coded };',
    });
    expect(await run()).toMatchObject({ output: { said: 'https://example.com/YQ==' } });
    await expect(run({ what: 'no address' })).rejects.toMatchObject({ code: 'invalid_input' });
  });
});

describe('fetch of a pack', () => {
  const fetching = `const answer = await fetch(input.what, { signal: ec.signal, headers: { Authorization: 'Bearer of-the-pack' } });
    return { said: JSON.stringify([answer.ok, answer.status, answer.headers.get('Content-Type'), answer.headers.get('set-cookie'), await answer.text()]) };`;
  const hosts = `hosts: ['api.example.com'],`;

  test('reaches only the hosts that the pack declares (R-PACK-14, R-PACK-34)', async () => {
    const internet = await startFakeInternet();
    const { egress, requests: asked } = internet;
    internet.respond('api.example.com', (_request, response) => response.setHeader('content-type', 'text/plain').end('weather'));
    internet.respond('other.example.com', (_request, response) => response.end('other'));
    const { run } = await openMemoryWithOwnPack({ more: hosts, handler: fetching }, { egress });
    expect(await run({ what: 'https://api.example.com/today' })).toMatchObject({
      output: { said: '[true,200,"text/plain",null,"weather"]' },
    });
    for (const what of ['https://other.example.com/', 'http://api.example.com/', 'https://127.0.0.1/', 'file:///etc/passwd']) {
      await expect(run({ what })).rejects.toMatchObject({ code: 'invalid_input' });
    }
    expect(asked.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['https://api.example.com/today', 'Bearer of-the-pack'],
    ]);
  });

  test('is refused without hosts, with another method, and with reserved headers', async () => {
    const { egress, requests: asked } = await startFakeInternet();
    const none = await openMemoryWithOwnPack({ handler: fetching }, { egress });
    await expect(none.run({ what: 'https://api.example.com/' })).rejects.toMatchObject({
      message: expect.stringMatching(/not an allowed host; add it to `hosts` in test\.own\.mjs/) as string,
    });
    for (const options of [
      `{ method: 'POST' }`,
      `{ body: 'x' }`,
      `{ headers: { Host: 'x' } }`,
      `{ headers: { 'X-A': 'a\\r\\nb' } }`,
    ]) {
      const { run } = await openMemoryWithOwnPack(
        { more: hosts, handler: `await fetch('https://api.example.com/', ${options}); return { said: '' };` },
        { egress },
      );
      await expect(run()).rejects.toMatchObject({
        message: expect.stringMatching(/only GET requests|header that is not allowed/) as string,
      });
    }
    expect(asked).toEqual([]);
  });

  test.each([
    ['sets a cookie', 'set-cookie', 'session=1'],
    ['is marked private', 'cache-control', 'private, max-age=60'],
  ])('prevents caching of the output if the response %s (R-PACK-04)', async (_what, name, value) => {
    const internet = await startFakeInternet();
    const { egress } = internet;
    internet.respond('api.example.com', (request, response) => {
      if (request.url === '/marked') response.setHeader(name, value);
      response.end('page');
    });
    const more = `${hosts} memory: { cache: true, ttl: 60 },`;
    const { run } = await openMemoryWithOwnPack({ more, handler: fetching }, { egress, clock: manualClock() });
    await run({ what: 'https://api.example.com/plain' });
    expect(await run({ what: 'https://api.example.com/plain' })).toMatchObject({ cached: true });
    await run({ what: 'https://api.example.com/marked' });
    expect(await run({ what: 'https://api.example.com/marked' })).toMatchObject({ cached: false });
  });
});
