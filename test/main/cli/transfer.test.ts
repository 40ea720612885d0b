import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { Interrupted } from '../../../src/main/cli/errors.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type CommandResult, runCli } from './run-cli.ts';

let folder: string;
let file: string;
const say = (...args: string[]): Promise<CommandResult> => runCli(args, { folder });
const line = (over: Record<string, unknown> = {}): string => JSON.stringify({ key: 'k', value: 'v', ...over });

beforeEach(() => {
  folder = join(tempFolder(), 'data');
  file = join(tempFolder(), 'facts of mine.ndjson');
});

describe('an export', () => {
  test('writes a file that only the owner can read, and an import keeps each remaining lifetime', async () => {
    await say('remember', 'a', 'one\nline', '--category', 'x', '--tag', 't', '--ttl', '30d');
    await say('remember', 'b', '日本 "two"');
    expect(await say('export', file)).toEqual({
      code: 0,
      out: `Exported 2 facts to ${file}. The file is not encrypted.\n`,
      err: '',
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const there = join(tempFolder(), 'other');
    const imported = await runCli(['import', file], { folder: there });
    expect(imported).toEqual({ code: 0, out: 'Imported: 2 new, 0 changed, 0 unchanged.\n', err: '' });
    const facts = async (where: string) =>
      (await runCli(['export'], { folder: where })).out
        .trimEnd()
        .split('\n')
        .map((text) => {
          const { key, value, category, tags, expires_at: end } = JSON.parse(text) as Record<string, string>;
          return { key, value, category, tags, end: Math.round(Date.parse(end ?? '') / 1000) };
        });
    const [here, elsewhere] = [await facts(folder), await facts(there)];
    expect(elsewhere).toEqual(here.map((fact) => ({ ...fact, end: expect.closeTo(fact.end, -1) as number })));
    expect((await runCli(['import', file], { folder: there })).out).toBe('Imported: 0 new, 0 changed, 2 unchanged.\n');
  });

  test('writes one line per fact to standard output, for any number of facts', async () => {
    const lines = Array.from({ length: 620 }, (_, index) => line({ key: `k${index}` }));
    await runCli(['import', '-'], { folder, input: lines.join('\n') });
    const { out } = await say('export', '-');
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((text) => (JSON.parse(text) as { key: string }).key),
    ).toEqual(lines.map((text) => (JSON.parse(text) as { key: string }).key));
    expect((await say('export', file, '--json')).out).toBe(`${JSON.stringify({ file, facts: 620 })}\n`);
  });

  test('never overwrites a file, and leaves no partial file behind', async () => {
    writeFileSync(file, 'mine');
    expect(await say('export', file)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^This file already exists/) as string,
    });
    expect(readFileSync(file, 'utf8')).toBe('mine');
    await say('remember', 'a', 'one');
    const other = `${file}.2`;
    expect(await runCli(['export', other], { folder, environment: { HELMDECK_MEMORY_KEY: 'c4'.repeat(32) } })).toMatchObject({
      code: 4,
    });
    expect(existsSync(other)).toBe(false);
  });
});

describe('an import', () => {
  test('reports invalid lines by number, and imports the others', async () => {
    const lines = [
      line({ key: 'good' }),
      '',
      'no JSON',
      line({ key: '' }),
      line({ key: 'soon', expires_at: new Date(Date.now() + 60_000).toISOString() }),
      line({ key: 'long', value: 'x'.repeat(70_000) }),
      'y'.repeat(600_000),
      Buffer.from([0xff]).toString('latin1'),
      line({ key: 'last' }),
    ];
    const input = Buffer.from(lines.join('\n'), 'latin1');
    const { code, out, err } = await runCli(['import', '-'], { folder, input });
    expect({ code, out }).toEqual({
      code: 1,
      out: 'Imported: 2 new, 0 changed, 0 unchanged, 1 skipped because they would expire in less than an hour, 5 lines rejected.\n',
    });
    expect(
      err
        .trimEnd()
        .split('\n')
        .map((text) => text.slice(0, 12)),
    ).toEqual(['Line 3: The ', 'Line 4: key ', 'Line 6: valu', 'Line 7: The ', 'Line 8: The ']);
    const asJson = await runCli(['import', '-', '--json'], { folder, input });
    expect(JSON.parse(asJson.out)).toMatchObject({
      created: 0,
      unchanged: 2,
      dropped: 1,
      errors: [{ line: 3 }, { line: 4 }, { line: 6 }, { line: 7 }, { line: 8 }],
    });
    expect((await say('list')).out).toMatch(/^last .*\ngood .*\n$/);
  });

  test('prints the first errors, and the number of further errors', async () => {
    const { err } = await runCli(['import', '-'], { folder, input: 'wrong\n'.repeat(1000) });
    expect(err.trimEnd().split('\n')).toHaveLength(21);
    expect(err).toMatch(/and 980 more lines; use --json to see all of them\.\n$/);
  });

  test('changes nothing with --dry-run', async () => {
    const { code, out } = await runCli(['import', '-', '--dry-run'], { folder, input: line() });
    expect({ code, out }).toEqual({ code: 0, out: 'Would import: 1 new, 0 changed, 0 unchanged.\n' });
    expect(await say('recall', 'k')).toMatchObject({ code: 3 });
  });

  test('accepts facts of the maximum size with any content', async () => {
    const lines = Array.from({ length: 30 }, (_, index) => line({ key: `k${index}`, value: `a${'\u0001'.repeat(65_000)}b` }));
    expect(await runCli(['import', '-'], { folder, input: lines.join('\n') })).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Imported: 30 new/) as string,
    });
  });

  test('of a missing file is refused in one sentence', async () => {
    expect(await say('import', file)).toEqual({
      code: 1,
      out: '',
      err: 'The file cannot be read. Check its path and permissions.\n',
    });
  });

  describe.skipIf(process.platform === 'win32')('from a named pipe (R-BRING-10)', () => {
    beforeEach(() => void execFileSync('sh', ['-c', 'mkfifo "$1"', 'sh', file]));

    test('reads data that arrives late', async () => {
      const writer = spawn('sh', ['-c', 'sleep 0.2; exec 3>"$1"; sleep 0.2; cat >&3', 'sh', file]);
      writer.stdin.end(`${line()}\n${line({ key: 'another' })}\n`);
      expect(await say('import', file)).toMatchObject({ code: 0, out: 'Imported: 2 new, 0 changed, 0 unchanged.\n' });
    });

    test('is refused within seconds if no process writes to it', async () => {
      expect(await say('import', file)).toEqual({
        code: 1,
        out: '',
        err: 'No process is writing to this pipe. Start the writer and import again, or name a file.\n',
      });
    });

    test('can be interrupted while it waits for a writer', async () => {
      const interruption = new AbortController();
      const saying = runCli(['import', file], { folder, interrupted: interruption.signal });
      interruption.abort(new Interrupted(130));
      expect((await saying).code).toBe(130);
    });
  });

  test('that is interrupted keeps the imported lines, says so, and continues when run again', async () => {
    const interruption = new AbortController();
    const lines = Array.from({ length: 1200 }, (_, index) => line({ key: `k${index}` }));
    const { promise: halfway, resolve } = Promise.withResolvers<void>();
    const input = (async function* () {
      yield Buffer.from(`${lines.slice(0, 1001).join('\n')}\n`);
      await halfway;
      interruption.abort(new Interrupted(130));
      yield Buffer.from(lines.slice(1001).join('\n'));
    })();
    const onStderr = (err: string): void => {
      if (err.includes('Importing… 1,000 lines')) resolve();
    };
    const { code, out, err } = await runCli(['import', '-'], {
      folder,
      input,
      terminal: true,
      onStderr,
      interrupted: interruption.signal,
    });
    expect({ code, out }).toEqual({ code: 130, out: '' });
    expect(err).toContain('The import stopped after 1,000 lines. Import the same file again to continue.\n');
    expect((await runCli(['import', '-'], { folder, input: lines.join('\n') })).out).toBe(
      'Imported: 200 new, 0 changed, 1000 unchanged.\n',
    );
  });
});
