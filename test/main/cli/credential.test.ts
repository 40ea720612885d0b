import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type CommandResult, runCli } from './run-cli.ts';

/** The tests must not use the keychain of this machine. */
const keychain = vi.hoisted(() => ({ there: true, items: new Map<string, string>() }));

vi.mock('keytar', () => ({
  get default() {
    if (!keychain.there) throw new Error('libsecret is missing');
    const { items } = keychain;
    return {
      getPassword: async (service: string, account: string) => items.get(`${service} ${account}`) ?? null,
      setPassword: async (service: string, account: string, password: string) =>
        void items.set(`${service} ${account}`, password),
      deletePassword: async (service: string, account: string) => items.delete(`${service} ${account}`),
    };
  },
}));

const SECRET = 'a-service-token-41d7';
/** The environment of a session in which a keychain can be reached. */
const DESKTOP = { HELMDECK_MEMORY_KEY: A_KEY, DISPLAY: ':0' };
const PACKS = 'for github.get_issue, github.list_issues';

let folder: string;
const say = (args: readonly string[], over: Parameters<typeof runCli>[1] = {}): Promise<CommandResult> =>
  runCli(args, { folder, environment: DESKTOP, ...over });
const held = (): string[] => [...keychain.items].filter(([name]) => name.includes('credential github')).map(([, text]) => text);

beforeEach(() => {
  keychain.there = true;
  keychain.items.clear();
  folder = join(tempFolder(), 'data');
});

describe('the credentials of packs, in the command line (R-PACK-16)', () => {
  test('are set from a pipe, listed without their secrets, and deleted', async () => {
    expect(await say(['credential', 'list'])).toEqual({ code: 0, out: `github  not set  ${PACKS}\n`, err: '' });
    expect(await say(['credential', 'set', 'github'], { input: `${SECRET}\n` })).toEqual({
      code: 0,
      out: 'The credential github is stored in the OS keychain.\n',
      err: '',
    });
    expect(held()).toEqual([expect.stringContaining(SECRET)]);
    const { out } = await say(['credential', 'list']);
    expect(out).toMatch(new RegExp(`^github  in the keychain since \\S+ \\S+  ${PACKS}\\n$`));
    const json = (await say(['credential', 'list', '--json'])).out;
    expect(JSON.parse(json)).toMatchObject({ credentials: [{ name: 'github', kept_in: 'keychain' }] });
    expect(out + json).not.toContain(SECRET);
    expect(await say(['credential', 'drop', 'github'])).toMatchObject({ code: 0, out: 'The credential github was deleted.\n' });
    expect(held()).toEqual([]);
    expect(await say(['credential', 'drop', 'github'])).toMatchObject({ code: 3 });
  });

  test('are read from a terminal without echo', async () => {
    const { code, out, err } = await say(['credential', 'set', 'github'], { input: `${SECRET}\r`, terminal: true });
    expect({ code, err }).toEqual({ code: 0, err: 'Secret (hidden): \n' });
    expect(out).not.toContain(SECRET);
    expect(held()).toHaveLength(1);
    expect(await say(['credential', 'set', 'github'], { input: '', terminal: true })).toMatchObject({ code: 1 });
  });

  test('are refused as an argument', async () => {
    const { code, out, err } = await say(['credential', 'set', 'github', SECRET]);
    expect(code).toBe(2);
    expect(out + err).not.toContain(SECRET);
    expect(held()).toEqual([]);
  });

  test.each(['', '\n', 'short', 'two words here', 'x'.repeat(9000)])('are refused if invalid: %j', async (input) => {
    expect(await say(['credential', 'set', 'github'], { input })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^secret must have 8 to 1,024 printable/) as string,
    });
    expect(held()).toEqual([]);
  });

  test('are refused under a name that no pack uses', async () => {
    expect(await say(['credential', 'set', 'gitlab'], { input: SECRET })).toMatchObject({
      code: 3,
      err: expect.stringMatching(/^No pack uses a credential with this name/) as string,
    });
  });

  test('need a key and a keychain', async () => {
    const keyless = { environment: {}, input: SECRET };
    keychain.there = false;
    expect(await say(['credential', 'set', 'github'], keyless)).toMatchObject({ code: 4 });
    expect(await say(['credential', 'set', 'github'], { input: SECRET })).toMatchObject({
      code: 4,
      err: expect.stringMatching(/^No OS keychain is available to store the credential/) as string,
    });
  });

  test('can come from the environment, and then cannot be changed by command', async () => {
    const environment = { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_GITHUB_TOKEN: SECRET };
    expect((await say(['credential', 'list'], { environment })).out).toBe(`github  in the settings  ${PACKS}\n`);
    expect(await say(['credential', 'set', 'github'], { environment, input: SECRET })).toMatchObject({ code: 1 });
    for (const text of ['', 'short', 'two words here', 'x'.repeat(1025)]) {
      const { code, err } = await say(['status'], { environment: { ...environment, HELMDECK_GITHUB_TOKEN: text } });
      expect({ code, err }).toEqual({
        code: 78,
        err: expect.stringMatching(/^HELMDECK_GITHUB_TOKEN must contain 8 to/) as string,
      });
    }
  });
});
