import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { findConfinement } from '../../../src/main/own-packs/confinement.ts';
import { packText, writePack } from '../../support/own-packs.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { measureWait } from '../../support/work.ts';
import { runCli } from './run-cli.ts';

let folder: string;
const say = (...args: string[]) => runCli(args, { folder });
const file = (name: string): string => join(folder, 'packs', `${name}.mjs`);
const settings = (): unknown => JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));

beforeEach(() => {
  folder = join(tempFolder(), 'data of mine');
});

describe('a new pack', () => {
  test('works unchanged, and so do the suggested commands (R-PACK-21)', async () => {
    const made = await say('pack', 'new', 'greet.hello');
    expect(made).toMatchObject({ code: 0, err: '' });
    expect(statSync(file('greet.hello')).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'packs')).mode & 0o777).toBe(0o700);
    // Runs the suggested next commands.
    const [test1 = '', enable = ''] = [...made.out.matchAll(/: +helmdeck-memory (.*)$/gm)].map(([, line = '']) => line);
    const words = (line: string): string[] =>
      [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
    const tested = await say(...words(test1));
    expect(tested).toMatchObject({ code: 0, out: expect.stringContaining('"greeting": "Hello, Ada."') as string });
    expect(tested.err).toMatch(
      /progress {2}0 of 2 .*\nprogress {2}1 of 2 .*\nlog {7}1 so far\nTook \d+ ms\.\n(?:progress.*\n){2}log {7}2 so far\nTook/,
    );
    expect(await say(...words(enable))).toMatchObject({ code: 0 });
    const run = async () =>
      JSON.parse((await say('pack', 'run', 'greet.hello', '--input', '{"who":"Ada"}', '--json')).out) as unknown;
    expect(await run()).toMatchObject({ output: { greeting: 'Hello, Ada.', times: 1 }, cached: false });
    expect(await run()).toMatchObject({ output: { times: 2 }, cached: false });
  });

  test('does not overwrite a pack or take a reserved name', async () => {
    await say('pack', 'new', 'greet.hello');
    writeFileSync(file('greet.hello'), 'mine');
    expect(await say('pack', 'new', 'greet.hello')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/already exists/) as string,
    });
    expect(readFileSync(file('greet.hello'), 'utf8')).toBe('mine');
    for (const name of ['greet', '../../greet.hello', 'helmdeck.greet'])
      expect(await say('pack', 'new', name)).toMatchObject({ code: 1 });
  });
});

describe('pack test', () => {
  test('runs any file, opens no memory and writes nothing', async () => {
    const elsewhere = tempFolder();
    const path = writePack(elsewhere);
    const { code, out } = await say('pack', 'test', path, '--input', '{"what":"x"}', '--json');
    expect({ code, results: JSON.parse(out) as unknown }).toMatchObject({
      code: 0,
      results: { results: [{ output: { said: 'x' } }] },
    });
    expect(existsSync(folder)).toBe(false);
  });

  test.each([
    ['what it threw', packText({ handler: `throw new Error('no such city');` }), 1, /^test\.own: no such city \(line 12\)\n$/],
    ['an answer that does not fit', packText({ handler: 'return 5;' }), 1, /is invalid/],
    ['a file that is no pack', 'export default', 1, /^test\.own: Unexpected/],
    ['that it takes too long', packText({ more: 'seconds: 1,', handler: 'await 1; for (;;);' }), 5, /time limit of 1 s/],
  ])('reports %s with the right exit code', async (_what, text, code, says) => {
    writePack(folder, text);
    chmodSync(folder, 0o700);
    expect(await say('pack', 'test', 'test.own')).toMatchObject({ code, out: '', err: expect.stringMatching(says) as string });
  });

  test('escapes control characters', async () => {
    mkdirSync(folder, { mode: 0o700 });
    writePack(folder, packText({ handler: `ec.log('\\u001b[2J'); return { said: '\\u009b2J' };` }));
    const { out, err } = await say('pack', 'test', 'test.own');
    expect(out).toBe(`{\n  "said": "${String.raw`\u009b2J`}"\n}\n`);
    expect(err).toContain(String.raw`log       \u{1b}[2J`);
  });

  test('indents the further lines of a log message', async () => {
    mkdirSync(folder, { mode: 0o700 });
    writePack(folder, packText({ handler: `ec.log('one\\nlog       two'); return { said: '' };` }));
    expect((await say('pack', 'test', 'test.own')).err).toContain('log       one\n          log       two\n');
  });

  test('reads its input as JSON, also from standard input', async () => {
    mkdirSync(folder, { mode: 0o700 });
    writePack(folder);
    const { out } = await runCli(['pack', 'test', 'test.own', '--input', '-'], { folder, input: '{"what":"piped"}' });
    expect(JSON.parse(out)).toEqual({ said: 'piped' });
    for (const input of ['hello', '5', '[]'])
      expect(await say('pack', 'test', 'test.own', '--input', input)).toMatchObject({ code: 2 });
  });
});

describe('enabling a pack', () => {
  beforeEach(() => {
    mkdirSync(folder, { mode: 0o700 });
    writePack(folder);
  });

  test('leaves all other settings unchanged', async () => {
    writeFileSync(join(folder, 'config.json'), '{"HELMDECK_SECRETS":"warn","HELMDECK_PACKS":["a.b"],"HELMDECK_QUOTA_FACTS":7}', {
      mode: 0o600,
    });
    expect(await say('pack', 'enable', 'test.own')).toMatchObject({ code: 0 });
    expect(await say('pack', 'enable', 'test.own')).toMatchObject({ code: 0 });
    expect(Object.entries(settings() as object)).toEqual([
      ['HELMDECK_SECRETS', 'warn'],
      ['HELMDECK_PACKS', ['a.b', 'test.own']],
      ['HELMDECK_QUOTA_FACTS', 7],
    ]);
    expect(statSync(join(folder, 'config.json')).mode & 0o777).toBe(0o600);
    expect(await say('pack', 'disable', 'test.own')).toMatchObject({ code: 0 });
    expect(settings()).toMatchObject({ HELMDECK_PACKS: ['a.b'] });
    expect(await say('pack', 'disable', 'test.own')).toMatchObject({ code: 3 });
  });

  test('is refused if the pack cannot run, or if the environment sets HELMDECK_PACKS', async () => {
    writePack(folder, 'broken', 'test.broken');
    expect(await say('pack', 'enable', 'test.broken')).toMatchObject({ code: 1 });
    const environment = { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_PACKS: 'a.b' };
    expect(await runCli(['pack', 'enable', 'test.own'], { folder, environment })).toMatchObject({
      code: 1,
      err: expect.stringMatching(/HELMDECK_PACKS is set in the environment/) as string,
    });
    expect(existsSync(join(folder, 'config.json'))).toBe(false);
  });

  test.each([
    ['test.own', 'memory: { cache: true },', /without a valid memory\.ttl; set it to a whole number of seconds from 1 to 86400/],
    [
      'test.own',
      'memory: { cache: true, ttl: 86_401 },',
      /without a valid memory\.ttl; set it to a whole number of seconds from 1 to 86400/,
    ],
    ['http.fetch', '', /http\.fetch has the same name or tool name as http\.fetch/],
    ['te.st_own', '', /te\.st_own has the same name or tool name as te_st\.own/],
    ['pipeline.run', '', /The group pipeline is reserved/],
  ])(
    'is refused where the next start would skip it, and the doctor says so too: %s with %j (R-PACK-03, R-PACK-18)',
    async (name, more, why) => {
      writePack(folder, packText(), 'te_st.own');
      writePack(folder, packText({ more }), name);
      writeFileSync(join(folder, 'config.json'), '{"HELMDECK_PACKS":["te_st.own"]}', { mode: 0o600 });
      expect(await say('pack', 'enable', name)).toMatchObject({ code: 1, err: expect.stringMatching(why) as string });
      expect(settings()).toEqual({ HELMDECK_PACKS: ['te_st.own'] });
      const environment = { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_PACKS: `te_st.own,${name}` };
      const { code, out } = await runCli(['doctor', '--json'], { folder, environment });
      expect(code).toBe(1);
      const { findings } = JSON.parse(out) as { findings: { check: string; state: string; says: string }[] };
      expect(findings.filter(({ check, state }) => check === 'packs' && state === 'bad').map(({ says }) => says)).toEqual([
        expect.stringMatching(why) as string,
      ]);
      expect(findings.map(({ says }) => says)).not.toContain(`${name} 1.0.0 can be run.`);
    },
  );

  test('shows the allowed hosts, and the doctor names the confinement (R-PACK-34)', async () => {
    writePack(folder, packText({ more: `hosts: ['api.example.com', '*.example.org'],` }));
    expect((await say('pack', 'enable', 'test.own')).out).toMatch(
      /can send GET requests to api\.example\.com, \*\.example\.org\./,
    );
    const environment = { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_PACKS: 'test.own' };
    const { out } = await runCli(['doctor', '--json'], { folder, environment });
    const { findings } = JSON.parse(out) as { findings: { check: string; says: string }[] };
    const { name } = await findConfinement();
    const [says] = findings.filter(({ check }) => check === 'packs').map((finding) => finding.says);
    expect(says).toBe(
      name === 'none'
        ? 'Your own packs are sandboxed only by the permission model of Node.'
        : `Your own packs are sandboxed by ${name} and by the permission model of Node.`,
    );
  });

  test('is listed as on only if it can run', async () => {
    const environment = { HELMDECK_MEMORY_KEY: A_KEY };
    const { out } = await runCli(['pack', 'list', '--json'], { folder, environment });
    const { packs } = JSON.parse(out) as { packs: { name: string; state: string; why?: string }[] };
    expect(packs.find(({ name }) => name === 'http.fetch')).toMatchObject({
      state: 'off',
      why: expect.stringMatching(/HELMDECK_FETCH_HOSTS/),
    });
    expect(packs.find(({ name }) => name === 'github.get_issue')).toMatchObject({ state: 'on' });
  });

  test('appears in pack list, status and doctor, which report a broken pack as skipped (R-PACK-18)', async () => {
    writePack(folder, 'broken', 'test.broken');
    writePack(folder, packText(), 'test.off');
    const environment = { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_PACKS: 'test.own,test.broken' };
    const ask = async (...args: string[]) =>
      JSON.parse((await runCli([...args, '--json'], { folder, environment })).out) as unknown;
    expect(await ask('pack', 'list')).toMatchObject({
      packs: expect.arrayContaining([
        { name: 'test.own', version: '1.0.0', state: 'on' },
        { name: 'test.broken', state: 'skipped', why: expect.stringMatching(/^test\.broken: /) as string },
        { name: 'test.off', state: 'off', why: 'helmdeck-memory pack enable test.off' },
      ]) as unknown,
    });
    expect(await ask('status')).toMatchObject({ packs: ['test.own'], skipped: [{ name: 'test.broken' }] });
    expect(await ask('doctor')).toMatchObject({
      ok: false,
      findings: expect.arrayContaining([
        { check: 'packs', state: 'ok', says: 'test.own 1.0.0 can be run.' },
        expect.objectContaining({
          check: 'packs',
          state: 'bad',
          says: expect.stringMatching(/^test\.broken is skipped/) as string,
        }),
      ]) as unknown,
    });
    const listed = await runCli(['pack', 'list'], { folder, environment });
    expect(listed.out).toMatch(/^test\.own +1\.0\.0 +on$/m);
    expect((await runCli(['status'], { folder, environment })).out).toMatch(/^packs +test\.broken was skipped: /m);
  });

  test('does not slow down commands that use no packs', async () => {
    writePack(folder, packText({ before: 'for (;;);' }));
    const environment = { HELMDECK_MEMORY_KEY: A_KEY, HELMDECK_PACKS: 'test.own' };
    const waited = await measureWait(async () =>
      expect(await runCli(['remember', 'a', 'one'], { folder, environment })).toMatchObject({ code: 0 }),
    );
    expect(waited).toBeLessThan(5000);
  });
});
