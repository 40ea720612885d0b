import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readConfig } from '../../../src/main/config/config.ts';
import { OwnPacks } from '../../../src/main/own-packs/own-packs.ts';
import { openMemory } from '../../../src/main/roots/open-memory.ts';
import { manualClock, SECOND } from '../../support/clock.ts';
import { theOwner } from '../../support/memory.ts';
import { OWN_PACK, packText, writePack } from '../../support/own-packs.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

let folder: string;

beforeEach(() => {
  folder = join(tempFolder(), 'data');
  mkdirSync(folder, { mode: 0o700 });
});

const why = async (name = OWN_PACK): Promise<string | undefined> => {
  using own = new OwnPacks();
  const { packs, skipped } = await own.load(folder, [name]);
  expect(packs.length + skipped.length).toBe(1);
  return skipped[0]?.why;
};

describe('an invalid pack file is skipped with the reason', () => {
  test.each([
    ['is not JavaScript', 'export default {', /^test\.own: Unexpected .*; run `node --check`/],
    [
      'has a syntax error in a later line',
      packText().replace("title: 'Own',", "title: 'Own'"),
      /^test\.own: Unexpected .*; run `node --check` on the file to see the line$/,
    ],
    ['throws while loading', packText({ before: `throw new Error('no luck');` }), /^test\.own: no luck \(line 2\)$/],
    ['exports nothing', 'export const pack = 1;', /must contain: export default definePack/],
    ['exports no schema', packText().replace(/output: .*/, 'output: {},'), /must contain: export default definePack/],
    ['has no version', packText().replace(/version: .*/, ''), /^test\.own: version: /],
    ['has an invalid version', packText().replace('1.0.0', '1.0'), /^test\.own: version: must be three numbers/],
    ['has no description', packText().replace(/description: .*/, `description: ' ',`), /^test\.own: description: /],
    ['misspells a field', packText({ more: `tittle: 'x',` }), /^test\.own: .*tittle/],
    ['gives itself a name', packText({ more: `name: 'github.list_issues',` }), /^test\.own: .*name/],
    ['claims to be unaudited', packText({ more: 'unaudited: true,' }), /^test\.own: .*unaudited/],
    ['declares a credential', packText({ more: `credential: 'github',` }), /^test\.own: .*credential/],
    ['declares too long a time limit', packText({ more: 'seconds: 86400,' }), /^test\.own: seconds: /],
    [
      'declares a cache without a ttl',
      packText({ more: 'memory: { cache: true },' }),
      /without a valid memory\.ttl; set it to a whole number of seconds from 1 to 86400/,
    ],
    [
      'caches outputs for too long',
      packText({ more: 'memory: { cache: true, ttl: 100_000 },' }),
      /without a valid memory\.ttl; set it to a whole number of seconds from 1 to 86400/,
    ],
    ['declares a ttl of more than a year', packText({ more: 'memory: { ttl: 31_536_001 },' }), /^test\.own: memory\.ttl: /],
    ['declares an invalid category', packText({ more: `memory: { category: 'x y' },` }), /^test\.own: memory\.category: /],
    [
      'has an input that JSON cannot represent',
      packText({ input: 'when: z.date()' }),
      /input schema cannot be represented in JSON Schema/,
    ],
    [
      'has an output that JSON cannot represent',
      packText({ output: 'z.string().transform((text) => text)' }),
      /output schema cannot be represented in JSON Schema/,
    ],
    ['has an input that is not an object', packText().replace(/input: .*/, 'input: z.string(),'), /`input` must be z\.object/],
    [
      'declares an invalid host',
      packText({ more: `hosts: ['https://api.example.com'],` }),
      /`hosts` must contain host names, such as/,
    ],
    ['uses Node', packText({ before: 'process.exit(0);' }), /^test\.own: process is not defined \(line 2\)$/],
    ['is too large', packText({ before: `// ${'x'.repeat(1024 * 1024)}` }), /larger than 1024 KiB/],
  ])('because it %s', async (_what, text, says) => {
    writePack(folder, text);
    // The catalogue, not the loader, checks the lifetime.
    const core = await openMemory(
      readConfig({
        environment: { HELMDECK_DATA_DIR: folder, HELMDECK_PACKS: OWN_PACK, HELMDECK_MEANING: 'off' },
        platform: process.platform,
        home: () => '/nowhere',
      }),
      { environment: { HELMDECK_MEMORY_KEY: A_KEY }, version: '1.2.3', desktop: false },
    );
    await core.loadPacks();
    const { packs, skipped = [] } = await core.perform(theOwner, 'packs', {});
    await core[Symbol.asyncDispose]();
    expect(packs.map(({ name }) => name)).not.toContain(OWN_PACK);
    expect(skipped).toEqual([{ name: OWN_PACK, why: expect.stringMatching(says) as string }]);
  });

  test('because it never finishes loading', async () => {
    writePack(folder, packText({ before: 'for (;;);' }));
    const clock = manualClock();
    using own = new OwnPacks({ clock });
    const loaded = own.load(folder, [OWN_PACK]);
    await vi.waitUntil(() => clock.pendingTimers > 0);
    await clock.advance(10 * SECOND);
    expect((await loaded).skipped).toMatchObject([{ why: expect.stringContaining('took too long to load') as string }]);
  });

  test.each([
    ['missing', () => undefined, /The data folder has no `packs` folder/],
    ['a link', () => moved('packs', () => symlinkSync(elsewhere(), join(folder, 'packs'))), /is a link or a file/],
    ['a file', () => writeFileSync(join(folder, 'packs'), ''), /is a link or a file/],
    ['writable by others', () => chmodSync(join(inPlace(), '..'), 0o770), /The `packs` folder must belong to you/],
  ])('because its folder is %s (R-PACK-18)', async (_what, make, says) => {
    make();
    expect(await why()).toMatch(says);
  });

  test.each([
    ['missing', (path: string) => rmSync(path), /folder has no file test\.own\.mjs/],
    [
      'a link',
      (path: string) => {
        renameSync(path, join(elsewhere(), 'x'));
        symlinkSync(join(elsewhere(), 'x'), path);
      },
      /is a link/,
    ],
    [
      'a folder',
      (path: string) => {
        rmSync(path);
        mkdirSync(path);
      },
      /is not a regular file/,
    ],
    ['writable by its group', (path: string) => chmodSync(path, 0o620), /other users must not be able to write to it/],
    ['writable by all users', (path: string) => chmodSync(path, 0o602), /other users must not be able to write to it/],
  ])('because it is %s (R-PACK-18)', async (_what, spoil, says) => {
    spoil(inPlace());
    expect(await why()).toMatch(says);
  });

  test.each(['../config', 'weather', 'weather.Today', 'a.b.c', 'helmdeck.mine', 'memory.store', ''])(
    'because %j is not a valid name',
    async (name) => {
      inPlace();
      expect(await why(name)).toMatch(/must be a group and a name|is reserved for Helmdeck Memory/);
    },
  );
});

describe('listed packs', () => {
  test('are each loaded once, also if one of them is invalid', async () => {
    for (const name of ['a.one', 'a.two', 'a.three']) writePack(folder, packText(), name);
    writePack(folder, 'broken', 'a.two');
    using own = new OwnPacks();
    const { packs, skipped } = await own.load(folder, ['a.three', 'a.two', 'a.one', 'a.one']);
    expect(packs.map(({ name }) => name)).toEqual(['a.three', 'a.one']);
    expect(skipped.map(({ name }) => name)).toEqual(['a.two']);
  });

  test('are loaded a few at a time', async () => {
    const names = Array.from({ length: 9 }, (_, n) => `a.p${n}`);
    for (const name of names) writePack(folder, packText(), name);
    using own = new OwnPacks();
    let most = 0;
    const look = setInterval(() => (most = Math.max(most, started())));
    expect((await own.load(folder, names)).packs).toHaveLength(9);
    clearInterval(look);
    expect(most).toBeLessThanOrEqual(4);
    expect(most).toBeGreaterThan(process.platform === 'linux' ? 0 : -1);
  });

  test('are not loaded while the program is stopping', async () => {
    writePack(folder);
    const own = new OwnPacks();
    own[Symbol.dispose]();
    expect(await own.load(folder, [OWN_PACK])).toMatchObject({ packs: [], skipped: [{ name: OWN_PACK }] });
  });

  test('cannot replace the tool of another pack', async () => {
    for (const name of ['a_b.c', 'a.b_c']) writePack(folder, packText(), name);
    const environment = { HELMDECK_DATA_DIR: folder, HELMDECK_PACKS: 'a_b.c,a.b_c', HELMDECK_MEANING: 'off' };
    await using core = await openMemory(readConfig({ environment, platform: process.platform, home: () => '/nowhere' }), {
      environment: { HELMDECK_MEMORY_KEY: A_KEY },
      version: '1.2.3',
      desktop: false,
    });
    await core.loadPacks();
    expect(core.packs.skipped).toMatchObject([
      { name: 'a.b_c', why: expect.stringMatching(/the same name or tool name/) as string },
    ]);
  });

  test('are the only packs: a file that is not listed is not loaded (R-PACK-18)', async () => {
    writePack(folder, packText({ before: `throw new Error('was run')` }));
    using own = new OwnPacks();
    expect(await own.load(folder, [])).toEqual({ packs: [], skipped: [] });
  });

  test('can be copied under another name, as another pack', async () => {
    linkSync(writePack(folder), join(folder, 'packs', 'test.other.mjs'));
    using own = new OwnPacks();
    expect((await own.load(folder, [OWN_PACK, 'test.other'])).packs).toHaveLength(2);
  });
});

/** Child processes of this one except guard shells; Linux only. */
const started = (): number =>
  process.platform === 'linux'
    ? readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1').split(' ').filter(Boolean).length
    : 0;

const inPlace = (): string => writePack(folder);

const elsewhere = (): string => {
  const path = join(folder, '..', 'elsewhere');
  mkdirSync(path, { recursive: true });
  return path;
};

function moved(name: string, then: () => void): void {
  inPlace();
  rmSync(elsewhere(), { recursive: true });
  renameSync(join(folder, name), join(folder, '..', 'elsewhere'));
  then();
}
