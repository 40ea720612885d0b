import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readConfig } from '../../../src/main/config/config.ts';
import { assemble, type RunningProgram } from '../../../src/main/roots/assemble.ts';
import { type FakeInternet, startFakeInternet } from '../../support/fake-internet.ts';
import { aCaller } from '../../support/memory.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { measureWait } from '../../support/work.ts';
import { runCli } from '../cli/run-cli.ts';

/** Replaces the keychain of this system. */
const items = vi.hoisted(() => new Map<string, string>());

vi.mock('keytar', () => ({
  default: {
    getPassword: async (service: string, account: string) => items.get(`${service} ${account}`) ?? null,
    setPassword: async (service: string, account: string, password: string) => void items.set(`${service} ${account}`, password),
    deletePassword: async (service: string, account: string) => items.delete(`${service} ${account}`),
  },
}));

let internet: FakeInternet;
let folder: string;

async function start(more: Record<string, string> = {}, network = internet.network): Promise<RunningProgram> {
  const environment = {
    HELMDECK_DATA_DIR: folder,
    HELMDECK_MEMORY_KEY: A_KEY,
    HELMDECK_ADDR: '127.0.0.1:0',
    HELMDECK_MEANING: 'off',
    DISPLAY: ':0',
    ...more,
  };
  const config = readConfig({ environment, platform: process.platform, home: () => '/nowhere' });
  const program = await assemble(config, { environment, desktop: false, version: '1.2.3', network });
  await program.listening.resume();
  onTestFinished(() => program[Symbol.asyncDispose]());
  return program;
}

const run = ({ perform }: RunningProgram, name: string, input: Record<string, unknown>) =>
  perform(aCaller(), 'runPack', { name, input });

beforeEach(async () => {
  items.clear();
  internet = await startFakeInternet();
  folder = join(tempFolder(), 'data');
});

describe('the program with its packs', () => {
  test('has six built-in packs, one of them off until hosts are listed (R-PACK-09)', async () => {
    const program = await start({});
    const { packs } = await program.perform(aCaller(), 'packs', {});
    expect(packs.map(({ name }) => name)).toEqual([
      'github.get_issue',
      'github.list_issues',
      'helmdeck.memory_forget',
      'helmdeck.memory_store',
      'helmdeck.route',
      'http.fetch',
    ]);
    expect(packs.filter(({ unavailable }) => unavailable !== undefined).map(({ name }) => name)).toEqual(['http.fetch']);
  });

  test('contacts no host until a pack is run (R-PACK-14)', async () => {
    const lookups: string[] = [];
    const resolve = (name: string) => {
      lookups.push(name);
      return internet.network.resolve(name);
    };
    const network = { ...internet.network, resolve };
    const program = await start(
      { HELMDECK_FETCH_HOSTS: 'docs.example.com', HELMDECK_GITHUB_TOKEN: 'a-service-token-41d7' },
      network,
    );
    const { packs } = await program.perform(aCaller(), 'packs', {});
    expect(packs.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['github.get_issue', 'github.list_issues', 'http.fetch']),
    );
    await program.perform(aCaller(), 'remember', { key: 'k', value: 'v' });
    await program.perform(aCaller(), 'search', { query: 'v' });
    expect([lookups, internet.connections]).toEqual([[], []]);
    internet.respond('docs.example.com', (_, response) => response.end('hello'));
    expect(await run(program, 'http.fetch', { url: 'https://docs.example.com/' })).toMatchObject({ output: { text: 'hello' } });
    expect(lookups).toEqual(['docs.example.com']);
  });

  test('uses a credential from the command line at once, and deletes its cached outputs when the credential is dropped (R-PACK-16)', async () => {
    const program = await start();
    internet.respond('api.github.com', (_, response) => response.end('[]'));
    const list = () => run(program, 'github.list_issues', { repo: 'octo/demo' });
    const credential = (verb: string) => runCli(['credential', verb, 'github'], { folder, input: 'a-service-token-41d7' });
    const cached = () => program.store.space({ subject: 'me' }, 'cache').count();
    await list();
    expect(await credential('set')).toMatchObject({ code: 0 });
    expect(await list()).toMatchObject({ cached: false });
    expect(await list()).toMatchObject({ cached: true });
    expect(await cached()).toBe(1);
    expect(await credential('drop')).toMatchObject({ code: 0 });
    expect(await cached()).toBe(0);
    expect(await list()).toMatchObject({ cached: false });
    expect(internet.requests.map(({ headers }) => headers.authorization)).toEqual([
      undefined,
      'Bearer a-service-token-41d7',
      undefined,
    ]);
  });

  test('deletes the cached outputs of a credential within a second after GitHub rejects it (R-PACK-16)', async () => {
    const program = await start({ HELMDECK_GITHUB_TOKEN: 'a-service-token-41d7' });
    let status = 200;
    internet.respond('api.github.com', (_, response) => response.writeHead(status).end('[]'));
    await run(program, 'github.list_issues', { repo: 'octo/demo' });
    status = 401;
    const waited = await measureWait(() =>
      expect(run(program, 'github.list_issues', { repo: 'octo/other' })).rejects.toMatchObject({
        code: 'handler_failed',
        message: expect.stringMatching(/rejected the credential.*credential set github/) as string,
      }),
    );
    expect(await program.store.space({ subject: 'me' }, 'cache').count()).toBe(0);
    expect(waited).toBeLessThan(1000);
    await expect(run(program, 'github.list_issues', { repo: 'octo/demo' })).rejects.toMatchObject({ code: 'handler_failed' });
  });
});
