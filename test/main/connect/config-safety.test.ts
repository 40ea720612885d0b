import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as toml from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { claudeCode } from '../../../src/main/connect/claude-code.ts';
import { codex } from '../../../src/main/connect/codex.ts';
import { cachedByFile } from '../../../src/main/connect/config-file.ts';
import type { Connector } from '../../../src/main/connect/connector.ts';
import { geminiCli } from '../../../src/main/connect/gemini-cli.ts';
import { createServedHome } from '../../support/clients.ts';

interface Sample {
  readonly name: string;
  readonly text: string;
}

interface Layout {
  readonly unit: string;
  readonly line: string;
  readonly bom: string;
  readonly end: string;
}

const [LF, CRLF, BOM] = ['\n', '\r\n', '\uFEFF'];

/** File layouts of people, editors and programs. */
const layouts: readonly Layout[] = [
  { unit: '  ', line: LF, bom: '', end: LF },
  { unit: '  ', line: LF, bom: '', end: '' },
  { unit: '  ', line: CRLF, bom: BOM, end: CRLF },
  { unit: '    ', line: LF, bom: '', end: LF + LF },
  { unit: '    ', line: CRLF, bom: '', end: '' },
  { unit: '\t', line: LF, bom: '', end: LF },
  { unit: '\t', line: CRLF, bom: '', end: CRLF },
  { unit: '\t', line: LF, bom: BOM, end: '' },
  { unit: '', line: LF, bom: '', end: LF },
  { unit: ' ', line: CRLF, bom: BOM, end: CRLF + CRLF },
];

/** Each text in every layout; ">" stands for one level of indentation. */
const laidOut = (contents: Readonly<Record<string, string>>): Sample[] =>
  Object.entries(contents).flatMap(([name, text]) =>
    layouts.map(({ unit, line, bom, end }) => ({
      name: `${name}, ${JSON.stringify({ unit, line, bom, end })}`,
      text: bom + text.replaceAll('>', unit).replaceAll('\n', line) + end,
    })),
  );

const jsonSamples = laidOut({
  empty: '{}',
  'empty over lines': '{\n}',
  'other settings': '{\n>"theme": "dark",\n>"unknown": [1, 2.50e3,\n>>-0, null]\n}',
  'another server': '{\n>"mcpServers": {\n>>"other": {\n>>>"command": "x"\n>>}\n>},\n>"z": true\n}',
  'no server yet': '{\n>"mcpServers": {},\n>"z": "{ \\"mcpServers\\": 1 }"\n}',
  comments:
    '// mine\n{ // open\n>/* a, { */ "mcpServers": { // servers\n>>"other": { "command": "x" } // keep\n>>// the end\n>}, // after\n>"a": "// no comment" /* last */\n}\n// bye',
  'a comma too many': '{\n>"mcpServers": {\n>>"other": { "command": "x", },\n>},\n}',
  'one line': '{"a":1,"mcpServers":{"other":{"command":"x","args":["-y"]}},"b":{"c":[]}}',
  'one line, none yet': '{ "a": 1, "mcpServers": { } }',
  'keys twice elsewhere': '{\n>"a": 1,\n>"a": 2,\n>"mcpServers": { "o": { "x": 1, "x": 2 } }\n}',
  'strange names':
    '{\n>"__proto__": { "a": 1 },\n>"constructor": "\\u0041\\n",\n>"mcpServers": { "": {}, "toString": { "command": "é 💡" } }\n}',
});

/** Files that contain hooks of other programs. */
const hookSamples = laidOut({
  'hooks of others':
    '{\n>"hooks": {\n>>"SessionStart": [\n>>>{ "matcher": "clear", "hooks": [ { "type": "command", "command": "one" } ] }, // keep\n>>>{ "hooks": [ { "type": "command", "command": "two", "timeout": 1 } ] }\n>>],\n>>"Stop": [ { "hooks": [ { "type": "command", "command": "three" } ] } ] /* last */\n>},\n>"z": 1\n}',
  'hooks on one line': '{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"one"}]}],"BeforeAgent":[]}}',
  'no hooks yet': '{\n>"hooks": {}\n}',
  'a comma too many':
    '{\n>"hooks": {\n>>"BeforeAgent": [\n>>>{ "hooks": [ { "type": "command", "command": "one" }, ] },\n>>],\n>},\n}',
  'values that are not hooks': '{\n>"hooks": { "SessionStart": [ 1, null, { "hooks": {} } ], "other": "text" }\n}',
});

const tomlSamples = laidOut({
  empty: '',
  'a comment alone': '# mine',
  settings: 'model = "gpt-5"   # keep\nnumber = 1_000\nwhen = 1979-05-27T07:32:00Z\nlarge = 9_007_199_254_740_993',
  'another server':
    '[mcp_servers.other]\n>command = "x"\n>args = [ "a", # first\n>>"]" ]\n\n# about projects\n[projects."/a.b"]\n>trust_level = "trusted"',
  'texts over lines':
    'a = """\n[mcp_servers.helmdeck]\n"" \\" """\nb = \'\'\'\n[x]\n#\'\'\'\n[t]\n>c = "[no] # \\" header"\n>d = \'[no]\'',
  'tables in all spellings':
    'mcp_servers.dotted.command = "x"\n[[list]]\n>a = { b = [ { c = 1 } ] }\n[[list]]\n[ "quoted" . \'too\' ]\n>x.y = 1',
  'a table with subtables': '[mcp_servers.other]\ncommand = "x"\n[mcp_servers.other.env]\n>A = "b"\n[tui]\nnotifications = true',
});

/** Independent of the tested reader: removes comments and trailing commas with regular expressions. */
const readJson = (text: string): unknown =>
  JSON.parse(
    text
      .replace(/^\uFEFF/, '')
      .replace(/("(?:[^"\\]|\\.)*")|\/\/[^\r\n]*|\/\*[^]*?\*\//g, (_all, kept?: string) => kept ?? '')
      .replace(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_all, kept?: string) => kept ?? ''),
  );

const readToml = (text: string): unknown => toml.parse(text.replace(/^\uFEFF/, ''), { integersAsBigInt: true });

/** Only checks that the entry is present. Other tests cover the command that it starts. */
const presenceOnly = (connector: Connector): Connector => ({
  ...connector,
  look: async () => ({ at: 'present', entry: { command: 'node', args: ['helmdeck-memory-mcp.mjs'], env: {} } }),
});

/** Whether `after` is `before` with one insertion, and at most one comma added before it. */
function hasOneInsertion(before: string, after: string): boolean {
  const at = firstDifference(before, after);
  return isInserted(before, after) || (after[at] === ',' && isInserted(before, after.slice(0, at) + after.slice(at + 1)));
}

function isInserted(before: string, after: string): boolean {
  const at = firstDifference(before, after);
  return after.length > before.length && after.endsWith(before.slice(at));
}

function firstDifference(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

const ours = {
  command: expect.any(String),
  args: expect.arrayContaining(['--client']),
  env: { HELMDECK_DATA_DIR: expect.any(String) },
};

describe.each([
  {
    kind: 'JSON',
    connector: geminiCli,
    file: '.gemini/settings.json',
    samples: jsonSamples,
    servers: 'mcpServers',
    read: readJson,
  },
  { kind: 'TOML', connector: codex, file: '.codex/config.toml', samples: tomlSamples, servers: 'mcp_servers', read: readToml },
])('configurations in $kind', ({ connector, file, samples, servers, read }) => {
  test(`are edited minimally and restored byte for byte: ${samples.length} samples (R-CONN-01, R-CONN-03)`, async () => {
    const { connections, home } = await createServedHome({ connectors: [presenceOnly(connector)] });
    const path = join(home, file);
    mkdirSync(dirname(path));
    const client = connector.id;
    expect(samples.length).toBeGreaterThan(65);
    for (const { name, text } of samples) {
      const bytes = Buffer.from(text);
      writeFileSync(path, bytes);
      await connections.connect({ client, subject: 'me', hooks: [] });
      const after = readFileSync(path, 'utf8');
      const was = Object(text.replace(/^\uFEFF/, '').trim() === '' ? {} : read(text)) as Record<string, object>;
      const meant = { ...was, [servers]: { ...was[servers], helmdeck: ours } };
      expect(read(after), name).toEqual(meant);
      expect(hasOneInsertion(text, after), `${name}\n${after}`).toBe(true);
      expect(after.includes('\r\n'), name).toBe(text.includes('\r\n'));
      expect(after.startsWith('\uFEFF'), name).toBe(text.startsWith('\uFEFF'));
      await connections.disconnect({ client });
      expect(readFileSync(path).equals(bytes), name).toBe(true);
      // After a change by another program, only our entry is removed.
      const touched = after + (file.endsWith('toml') ? '\n# later\n' : '\n');
      writeFileSync(path, touched);
      await connections.disconnect({ client });
      const left = Object(read(readFileSync(path, 'utf8'))) as Record<string, object>;
      expect({ ...left, [servers]: left[servers] ?? {} }, name).toEqual({ ...was, [servers]: was[servers] ?? {} });
    }
  });
});

interface Settings {
  readonly hooks?: Readonly<Record<string, readonly unknown[]>>;
  readonly mcpServers?: object;
}

const ourGroup = {
  hooks: [expect.objectContaining({ type: 'command', command: expect.stringContaining('helmdeck-memory-hook.mjs') })],
};

describe.each([
  { connector: claudeCode, file: '.claude/settings.json', config: '.claude.json', events: ['SessionStart', 'UserPromptSubmit'] },
  { connector: codex, file: '.codex/hooks.json', config: '.codex/config.toml', events: ['SessionStart', 'UserPromptSubmit'] },
  { connector: geminiCli, file: '.gemini/settings.json', config: undefined, events: ['SessionStart', 'BeforeAgent'] },
])('hooks in $file', ({ connector, file, config, events }) => {
  const client = connector.id;
  const samples = [...jsonSamples, ...hookSamples];

  test(`are added after other hooks, and removed byte for byte: ${samples.length} samples (R-CONN-01, R-CONN-03)`, async () => {
    const { connections, home, put } = await createServedHome({ connectors: [presenceOnly(connector)] });
    if (config !== undefined) put(config, '');
    const path = join(home, file);
    mkdirSync(dirname(path), { recursive: true });
    for (const { name, text } of samples) {
      const bytes = Buffer.from(text);
      writeFileSync(path, bytes);
      await connections.connect({ client, subject: 'me' });
      const after = readFileSync(path, 'utf8');
      const was = Object(readJson(text)) as Settings;
      const added = events.map((event) => [event, [...(was.hooks?.[event] ?? []), expect.objectContaining(ourGroup)]]);
      expect(readJson(after), name).toEqual({
        ...was,
        ...(config === undefined && { mcpServers: { ...was.mcpServers, helmdeck: ours } }),
        hooks: { ...was.hooks, ...Object.fromEntries(added) },
      });
      expect(isSubsequence(text, after), `${name}\n${after}`).toBe(true);
      expect(after.includes('\r\n'), name).toBe(text.includes('\r\n'));
      await connections.disconnect({ client });
      expect(readFileSync(path).equals(bytes), name).toBe(true);
      // After a change by another program, only our hooks are removed.
      await connections.connect({ client, subject: 'me' });
      writeFileSync(path, `${after}\n`);
      await connections.disconnect({ client });
      const left = Object(readJson(readFileSync(path, 'utf8'))) as Settings;
      expect({ mcpServers: {}, ...left }, name).toEqual({ mcpServers: {}, ...was });
    }
  });
});

function isSubsequence(part: string, text: string): boolean {
  let at = -1;
  return part.split('').every((char) => (at = text.indexOf(char, at + 1)) !== -1);
}

const deep = '['.repeat(5000) + ']'.repeat(5000);

describe.each([
  {
    kind: 'JSON',
    connector: geminiCli,
    file: '.gemini/settings.json',
    broken: [
      '{',
      '{]',
      '{"a"}',
      '{"a" 1}',
      '{"a":}',
      '{"a":1 "b":2}',
      '{,}',
      '[]',
      '"text"',
      '42',
      'null',
      'nul',
      '{"a":01}',
      '{"a":+1}',
      '{"a":"\u0001"}',
      '{"a":"\\x"}',
      '{"a":"unended}',
      "{'a':1}",
      '{a:1}',
      '{"a":1}}',
      '{"a":1} {"b":2}',
      '{"a":NaN}',
      '/* {}',
      '{"mcpServers":[]}',
      '{"mcpServers":null}',
      '{"mcpServers":"x"}',
      '{"mcpServers":{},"mcpServers":{}}',
      '{"mcpServers":{"helmdeck":{},"helmdeck":{}}}',
      `{"a":${deep}}`,
      '<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> x',
      '{"a":1,,"b":2}',
    ],
  },
  {
    kind: 'TOML',
    connector: codex,
    file: '.codex/config.toml',
    broken: [
      '[',
      '[a',
      '[a]]',
      'a',
      'a =',
      'a = b',
      'a = 1 b = 2',
      '= 1',
      'a = "x',
      "a = '",
      'a = """x',
      'a = [1',
      'a = {b = 1',
      'a = 01',
      '[a]\n[a]',
      'a = 1\na = 2',
      'a = 1\n[a]',
      '[a]\nb = 1\n[a.b]',
      'a = 1979-99-99',
      'a = "\\x"',
      '"a" b = 1',
      '[a.]',
      '[[a]\n',
      'mcp_servers = {}',
      'mcp_servers = "x"',
      'mcp_servers = { other = { command = "x" } }',
      '[[mcp_servers]]\nx = 1',
      'mcp_servers.helmdeck = { command = "x" }',
      '[mcp_servers]\nhelmdeck.command = "x"',
      '<<<<<<< HEAD',
      '{"json": true}',
    ],
  },
])('configurations in $kind that cannot be changed safely', ({ connector, file, broken }) => {
  test(`are refused with a reason and not changed: ${broken.length} samples (R-CONN-06)`, async () => {
    const { connections, home, served } = await createServedHome({ connectors: [presenceOnly(connector)] });
    const path = join(home, file);
    mkdirSync(dirname(path));
    for (const text of broken) {
      writeFileSync(path, text);
      await expect(connections.connect({ client: connector.id, subject: 'me' }), text).rejects.toMatchObject({
        code: 'invalid_input',
        message: expect.stringMatching(/^.{10,200}, so the file was not changed\. Correct the file and try again\.$/),
      });
      expect(readFileSync(path, 'utf8'), text).toBe(text);
    }
    expect(existsSync(join(served.folder, 'clients', `${connector.id}.json`))).toBe(false);
    expect((await served.tokens.list()).tokens).toEqual([]);
  });
});

test('a large configuration is edited, and one above the size limit is refused (R-CONN-06)', async () => {
  const { connections, put } = await createServedHome({ connectors: [presenceOnly(geminiCli)] });
  const large = `{\n${Array.from({ length: 60_000 }, (_, index) => `  "setting ${index}": { "value": ${index} },`).join('\n')}\n  "z": 1\n}\n`;
  const path = put('.gemini/settings.json', large);
  await connections.connect({ client: 'gemini-cli', subject: 'me' });
  await connections.disconnect({ client: 'gemini-cli' });
  expect(readFileSync(path, 'utf8')).toBe(large);
  const long = put('.gemini/settings.json', `{"a":"${'x'.repeat(12 * 1024 * 1024)}"}`);
  const { files } = await connections.plan({ client: 'gemini-cli', subject: 'me' });
  expect(files).toMatchObject([{ path: long }]);
  put('.gemini/settings.json', `{"a":"${'x'.repeat(17 * 1024 * 1024)}"}`);
  await expect(connections.plan({ client: 'gemini-cli', subject: 'me' })).rejects.toMatchObject({
    message: expect.stringMatching(/larger than 16 MiB/),
  });
});

test('a configuration is read again only after a change (R-CONN-04)', async () => {
  const { put, home } = await createServedHome();
  let read = 0;
  const lengthOf = cachedByFile((text) => {
    read += 1;
    if (text === 'broken') throw new Error('It is broken.');
    return text?.length;
  });
  const path = join(home, 'x.json');
  expect(lengthOf(path)).toBeUndefined();
  put('x.json', 'four');
  for (const _ of [1, 2]) expect(lengthOf(path)).toBe(4);
  put('x.json', 'also');
  expect(lengthOf(path)).toBe(4);
  put('x.json', 'broken');
  for (const _ of [1, 2]) expect(() => lengthOf(path)).toThrow('It is broken.');
  expect(read).toBe(4);
});

test('circular links, and folders in place of a file, are refused (R-CONN-06)', async () => {
  const { connections, home } = await createServedHome({ connectors: [presenceOnly(geminiCli)] });
  const ask = () => connections.plan({ client: 'gemini-cli', subject: 'me' });
  mkdirSync(join(home, '.gemini/settings.json'), { recursive: true });
  await expect(ask()).rejects.toMatchObject({ code: 'invalid_input', message: expect.stringMatching(/not a regular file/) });
  const other = await createServedHome({ connectors: [presenceOnly(codex)] });
  mkdirSync(join(other.home, '.codex'));
  symlinkSync('config.toml', join(other.home, '.codex/config.toml'));
  other.program('codex', 'exit 0');
  await expect(other.connections.plan({ client: 'codex', subject: 'me' })).rejects.toMatchObject({ code: 'invalid_input' });
});
