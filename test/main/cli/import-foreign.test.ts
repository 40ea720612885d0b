import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { CHATGPT, GRAPH, INSTRUCTIONS, NOTE } from '../../support/brought.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { type CommandResult, runCli } from './run-cli.ts';

let folder: string;
let files: string;
const say = (...args: string[]): Promise<CommandResult> => runCli(args, { folder });
const written = (name: string, text: string | Buffer): string => {
  const file = join(files, name);
  writeFileSync(file, text);
  return file;
};
const values = async (): Promise<string[]> =>
  (await say('export')).out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { value: string }).value);

beforeEach(() => {
  folder = join(tempFolder(), 'data');
  files = join(tempFolder(), 'from elsewhere');
  mkdirSync(files);
});

describe('facts from another memory are imported (R-BRING-08)', () => {
  test('after a preview that changes nothing', async () => {
    const file = written('memory.jsonl', GRAPH);
    const looked = await say('import', file, '--dry-run');
    expect(looked).toMatchObject({ code: 0, err: expect.stringMatching(/^Line 4: The entity has no observations\. \(/) });
    expect(looked.out).toMatch(
      /^mcp-memory\/mira-okafor\/bakes-sourdough-on-saturdays-[0-9a-f]{8} {2}person mira-okafor\n {2}Mira_Okafor: Bakes/,
    );
    expect(looked.out).toMatch(/\nWould import 4 facts from mcp-memory for 90 days, and skip 1\.\n$/);
    expect(await values()).toEqual([]);
  });

  test('with category and lifetime, without duplicates, and reverted by the suggested undo command', async () => {
    const file = written('memory.jsonl', GRAPH);
    const { code, out, err } = await say('import', file, '--category', 'People', '--ttl', '30d');
    expect({ code, out }).toEqual({ code: 0, out: 'Imported: 4 new, 0 changed, 0 unchanged, 1 skipped.\n' });
    expect(JSON.parse((await say('list', '--category', 'people', '--json')).out)).toMatchObject({ facts: { length: 4 } });
    const again = await say('import', file);
    expect(again).toMatchObject({ code: 0, out: 'Imported: 0 new, 0 changed, 0 unchanged, 5 skipped.\n' });
    expect(again.err).toMatch(/Line 1: The same text is already stored, as mcp-memory\//);
    expect(again.err).not.toMatch(/take all of it back/);
    await say('remember', 'mine', 'written since');
    const undo = /helmdeck-memory (undo .*)$/m.exec(err)?.[1]?.split(' ') ?? [];
    expect((await say(...undo, '--yes')).out).toBe('Forgot 4 facts, and restored 0.\n');
    expect(await values()).toEqual(['written since']);
  });

  test.each([
    ['CLAUDE.md', INSTRUCTIONS, 6],
    ['tide-tables.md', NOTE, 6],
    ['memories.txt', CHATGPT, 3],
  ])('with the source detected from the file: %s', async (name, text, count) => {
    expect(await say('import', written(name, text))).toMatchObject({
      code: 0,
      out: expect.stringMatching(`^Imported: ${count} new`),
    });
  });

  test('from standard input, with --from', async () => {
    expect(await runCli(['import', '-', '--from', 'claude'], { folder, input: 'Likes rain.\n\nLikes snow.' })).toMatchObject({
      out: expect.stringMatching(/^Imported: 2 new/),
    });
    expect(await values()).toEqual(['Likes rain.', 'Likes snow.']);
  });

  test('but an export is recognized under any file name', async () => {
    await say('remember', 'a', 'one');
    const { out } = await say('export');
    expect((await say('import', written('facts.txt', out))).out).toBe('Imported: 0 new, 0 changed, 1 unchanged.\n');
  });
});

describe('an entry that cannot be imported', () => {
  test('makes the command fail, but the others are imported', async () => {
    const secret = ['ghp', 'wYq2Rk9sTz4Lm7Vb1Nx8Hc5Jd3Fg6Pa0Ue2S'].join('_');
    const file = written('m.txt', `Likes rain.\nThe token is ${secret}\n`);
    const { code, out, err } = await say('import', file);
    expect({ code, out }).toEqual({ code: 1, out: 'Imported: 1 new, 0 changed, 0 unchanged, 1 skipped.\n' });
    expect(err).toMatch(/^Line 2: (?:key|value) looks like a GitHub token; [^(]*\n/);
    const asJson = JSON.parse((await say('import', file, '--json')).out) as object;
    expect(asJson).toMatchObject({
      from: 'chatgpt',
      left_out: [
        { line: 1, why: 'known' },
        { line: 2, why: 'secret' },
      ],
    });
    expect(JSON.stringify(asJson)).not.toContain('wYq2');
  });

  test('is reported by its line in the file, even if only the import rejects it', async () => {
    const small = { HELMDECK_MEMORY_KEY: 'a1'.repeat(32), HELMDECK_QUOTA_FACTS: '1' };
    const input = '\n\nLikes rain.\n\nLikes snow.';
    const { code, err } = await runCli(['import', '-', '--from', 'chatgpt'], { folder, environment: small, input });
    expect(code).toBe(1);
    expect(err).toMatch(/^Line [35]: /m);
  });

  test.each([
    {
      why: 'a file that is not UTF-8',
      args: ['--from', 'chatgpt'],
      text: Buffer.from([0xff, 0xfe]),
      says: /^The file is not UTF-8 text/,
      code: 1,
    },
    {
      why: 'a file that is too large',
      args: ['--from', 'chatgpt'],
      text: 'a'.repeat(2_000_000),
      says: /^The text is larger than 512 KiB; split the text/,
      code: 1,
    },
    { why: 'an unknown source', args: ['--from', 'nobody'], text: '', says: /^--from must be one of mcp-memory, /, code: 2 },
    {
      why: 'a lifetime for an export',
      args: ['--ttl', '1d'],
      text: '{"key":"a","value":"b"}',
      says: /Facts from an export keep/,
      code: 2,
    },
  ])('is refused in a sentence: $why', async ({ args, text, says, code }) => {
    const said = await say('import', written('it', text), ...args);
    expect(said).toMatchObject({ code, out: '', err: expect.stringMatching(says) });
  });
});

test('a graph larger than one request is previewed in parts, with line numbers and duplicates', async () => {
  const lines = Array.from({ length: 3000 }, (_, index) =>
    JSON.stringify({ type: 'entity', name: `Buoy ${index}`, entityType: 'buoy', observations: [`Rings ${'ding '.repeat(40)}`] }),
  );
  const file = written('memory.jsonl', [...lines, lines[7], 'half a rec'].join('\n'));
  const { facts, left_out: left } = JSON.parse((await say('import', file, '--dry-run', '--json')).out) as {
    facts: { line: number }[];
    left_out: { line: number; why: string; message: string }[];
  };
  expect(facts.map(({ line }) => line)).toEqual(lines.map((_, index) => index + 1));
  expect(left).toEqual([
    expect.objectContaining({ line: 3001, why: 'repeated', message: 'Same as line 8.' }),
    expect.objectContaining({ line: 3002, why: 'no_fact' }),
  ]);
});
