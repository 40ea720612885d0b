import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import { KNOWN_CLIENTS } from '../../../src/contract/names.ts';
import { claudeCode } from '../../../src/main/connect/claude-code.ts';
import { CONNECTORS } from '../../../src/main/connect/clients.ts';
import { codex } from '../../../src/main/connect/codex.ts';
import { replaceConfigFile } from '../../../src/main/connect/config-file.ts';
import type { EntryState } from '../../../src/main/connect/connector.ts';
import { localMachine } from '../../../src/main/connect/programs.ts';
import { createServedHome } from '../../support/clients.ts';
import { aCaller } from '../../support/memory.ts';

const CLAUDE = '{\n  "theme": "dark",\n  "mcpServers": {\n    "other": { "command": "x" }\n  }\n}\n';
const CODEX = '# mine\nmodel = "gpt-5"   # keep\n\n[projects."/x"]\ntrust_level = "trusted"\n';
const GEMINI = '\uFEFF{\r\n\t// mine\r\n\t"theme": "Default"\r\n}';

const all = [
  { client: 'claude-code', file: '.claude.json', text: CLAUDE, hooks: '.claude/settings.json' },
  { client: 'codex', file: '.codex/config.toml', text: CODEX, hooks: '.codex/hooks.json' },
  { client: 'gemini-cli', file: '.gemini/settings.json', text: GEMINI, hooks: '.gemini/settings.json' },
];

test.each(all)(
  '$client is connected, tested, and disconnected without a trace (R-CONN-02, R-CONN-03, R-CONN-08, R-CONN-10)',
  async ({ client, file, text, hooks }) => {
    const { connections, put, row, served, home } = await createServedHome();
    const path = put(file, text, 0o640);
    const paths = [...new Set([path, join(home, hooks)])];
    expect(await row(client)).toMatchObject({ state: 'not_connected', installed: true, transport: 'stdio', config: path });
    const plan = await connections.plan({ client, subject: 'me' });
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(await served.tokens.list()).toEqual({ tokens: [] });
    const done = await connections.connect({ client, subject: 'me', basis: plan.basis });
    expect(done).toMatchObject({ client, subject: 'me', verified: { works: true } });
    expect(done.verified.tools).toBeGreaterThan(4);
    expect(plan.files.map((one) => one.path)).toEqual(paths);
    for (const { path: changed, lines } of plan.files) {
      expect(lines.some(({ text: line }) => line.includes('helmdeck'))).toBe(true);
      const now = readFileSync(changed, 'utf8').split(/\r?\n/);
      for (const { text: line } of lines.filter(({ sign }) => sign === '+')) expect(now).toContain(line);
    }
    expect(statSync(path).mode & 0o777).toBe(0o640);
    const tokenFile = join(served.folder, 'clients', `${client}.token`);
    const token = readFileSync(tokenFile, 'utf8').trim();
    for (const tokenPath of [tokenFile, join(served.folder, 'clients', `${client}.hook.token`)]) {
      const secret = readFileSync(tokenPath, 'utf8').trim();
      expect(statSync(tokenPath).mode & 0o777).toBe(0o600);
      for (const changed of paths) expect(readFileSync(changed, 'utf8')).not.toContain(secret);
      expect(JSON.stringify(plan)).not.toContain(secret);
    }
    const { token: held, ...connected } = await row(client);
    expect(connected).toMatchObject({ state: 'connected', subject: 'me' });
    expect(held).toMatchObject({ id: done.token, paused: false, last_used_at: expect.any(String) });
    const taken = await connections.disconnect({ client });
    expect(taken).toEqual({ client, files: paths.map((one) => ({ path: one, as_before: true })) });
    expect(readFileSync(path)).toEqual(Buffer.from(text));
    expect(paths.slice(1).some((one) => existsSync(one))).toBe(false);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    await expect(served.tokens.verify(token, 'mcp')).rejects.toMatchObject({ code: 'invalid_token' });
    expect(readdirSync(join(served.folder, 'clients'))).toEqual([]);
    expect(await row(client)).toMatchObject({ state: 'not_connected' });
  },
);

test('every client that can be connected is a known client, which is not quarantined (R-AUTH-06)', () => {
  expect([...KNOWN_CLIENTS].toSorted()).toEqual(CONNECTORS.map(({ id }) => id).toSorted());
});

test('disconnecting deletes files and folders that connecting created', async () => {
  const { connections, program, home } = await createServedHome();
  program('codex', 'exit 1');
  await connections.connect({ client: 'codex', subject: 'me' });
  expect(readFileSync(join(home, '.codex/config.toml'), 'utf8')).toMatch(/^\[mcp_servers\.helmdeck\]\ncommand = /);
  expect(statSync(join(home, '.codex/config.toml')).mode & 0o777).toBe(0o600);
  await connections.disconnect({ client: 'codex' });
  expect(existsSync(join(home, '.codex'))).toBe(false);
});

test('a deleted entry is reported, and connecting adds it again (R-CONN-04)', async () => {
  const { connections, put, row, served } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  const first = await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] });
  writeFileSync(path, '{"wiped":true}');
  expect(await row('claude-code')).toMatchObject({ state: 'wiped', subject: 'me' });
  expect(await connections.verify({ client: 'claude-code' })).toMatchObject({ works: false });
  const again = await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] });
  expect(again.verified.works).toBe(true);
  expect(await row('claude-code')).toMatchObject({ state: 'connected' });
  expect((await served.tokens.list()).tokens.map(({ id }) => id)).toEqual([again.token]);
  expect(again.token).not.toBe(first.token);
  await connections.disconnect({ client: 'claude-code' });
  expect(readFileSync(path, 'utf8')).toBe('{"wiped":true}');
});

test('disconnecting keeps the changes of other programs (R-CONN-03)', async () => {
  const { connections, put } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] });
  const since = readFileSync(path, 'utf8').replace('"dark"', '"light"');
  writeFileSync(path, since);
  // Connected twice: the stored original must not contain our entry.
  await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] });
  const taken = await connections.disconnect({ client: 'claude-code' });
  expect(taken.files).toEqual([{ path, as_before: true }]);
  expect(readFileSync(path, 'utf8')).toBe(CLAUDE.replace('"dark"', '"light"'));
  await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] });
  writeFileSync(path, readFileSync(path, 'utf8').replace('"light"', '"blue"'));
  expect((await connections.disconnect({ client: 'claude-code' })).files).toEqual([{ path, as_before: false }]);
  expect(readFileSync(path, 'utf8')).toBe(CLAUDE.replace('"dark"', '"blue"'));
});

test('disconnecting does not list a deleted file as changed (R-CONN-03)', async () => {
  const { connections, put } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] });
  rmSync(path);
  expect(await connections.disconnect({ client: 'claude-code' })).toEqual({ client: 'claude-code', files: [] });
  expect(existsSync(path)).toBe(false);
});

test('a plan is refused if its files have changed since the preview (R-CONN-05)', async () => {
  const { connections, put, served } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  const { basis } = await connections.plan({ client: 'claude-code', subject: 'me' });
  writeFileSync(path, '{}');
  await expect(connections.connect({ client: 'claude-code', subject: 'me', basis })).rejects.toMatchObject({
    code: 'invalid_input',
    message: expect.stringMatching(/changed since the preview/),
  });
  expect(readFileSync(path, 'utf8')).toBe('{}');
  expect((await served.tokens.list()).tokens).toEqual([]);
});

test('a concurrent write of another program is not overwritten (R-CONN-05)', async () => {
  const { put } = await createServedHome();
  const path = put('x.json', 'new');
  expect(() => replaceConfigFile(path, 'the digest of what was read before', Buffer.from('ours'))).toThrow(/another program/);
  expect(readFileSync(path, 'utf8')).toBe('new');
});

test('the target of a link is changed, and the link stays (R-CONN-06)', async () => {
  const { connections, put, home } = await createServedHome();
  const real = put('dotfiles/claude.json', CLAUDE, 0o600);
  const link = join(home, '.claude.json');
  symlinkSync('dotfiles/claude.json', link);
  await connections.connect({ client: 'claude-code', subject: 'me' });
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(readFileSync(real, 'utf8')).toContain('"helmdeck"');
  await connections.disconnect({ client: 'claude-code' });
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(readFileSync(real, 'utf8')).toBe(CLAUDE);
  expect(readdirSync(join(home, 'dotfiles'))).toEqual(['claude.json']);
});

test('a file that cannot be changed safely is refused with the reason and not changed (R-CONN-06)', async () => {
  const { connections, put, served, home, row } = await createServedHome();
  const refused = async (why: RegExp): Promise<void> => {
    const held = (): string =>
      existsSync(join(home, '.claude.json')) ? readFileSync(join(home, '.claude.json'), 'hex') : 'nothing';
    const before = held();
    await expect(connections.connect({ client: 'claude-code', subject: 'me' })).rejects.toMatchObject({
      message: expect.stringMatching(why),
    });
    expect(held()).toBe(before);
    expect((await served.tokens.list()).tokens).toEqual([]);
    expect(readdirSync(served.folder)).not.toContain('claude-code.json');
  };
  await refused(/not found on this machine/);
  put('.claude.json', CLAUDE, 0o444);
  await refused(/cannot be written/);
  chmodSync(join(home, '.claude.json'), 0o644);
  put('.claude.json', '{"mcpServers": [');
  await refused(/^\/.*\/\.claude\.json: The file is not valid JSON/);
  expect(await row('claude-code')).toMatchObject({
    state: 'broken',
    why: expect.stringMatching(/\.claude\.json: The file is not valid JSON/),
  });
  put('.claude.json', '{"mcpServers": []}');
  await refused(/is not an object/);
  writeFileSync(join(home, '.claude.json'), Buffer.from([0xff, 0xfe, 0x7b, 0x00]));
  await refused(/not UTF-8 text/);
  rmSync(join(home, '.claude.json'));
  symlinkSync('nowhere', join(home, '.claude.json'));
  put('bin/claude', '#!/bin/sh\nexit 0\n', 0o755);
  await refused(/broken link/);
});

test('nothing is created in or below a read-only folder (R-CONN-06)', async () => {
  const { connections, home, program, served } = await createServedHome();
  program('codex', 'exit 1');
  program('claude', 'exit 1');
  chmodSync(home, 0o555);
  for (const client of ['codex', 'claude-code'])
    await expect(connections.connect({ client, subject: 'me' })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/cannot be written/),
    });
  chmodSync(home, 0o755);
  expect(readdirSync(home)).toEqual(['bin']);
  expect((await served.tokens.list()).tokens).toEqual([]);
});

test("the client's command creates the first configuration, without our environment variables (R-CONN-07)", async () => {
  const { connections, program, home } = await createServedHome();
  const path = join(home, '.claude.json');
  program(
    'claude',
    `echo "$@" > "$HOME/asked"; env > "$HOME/env"
     printf '{"userID":"made","mcpServers":{"helmdeck":{"command":"%s","args":["%s","--client","claude-code"],"env":{"%s":"%s"}}}}' \\
       "\${9}" "\${10}" "\${7%%=*}" "\${7#*=}" > "${path}"`,
  );
  const { commands } = await connections.plan({ client: 'claude-code', subject: 'me' });
  expect(commands).toMatchObject([
    {
      program: join(home, 'bin/claude'),
      args: [
        'mcp',
        'add',
        '--scope',
        'user',
        'helmdeck',
        '-e',
        expect.any(String),
        '--',
        expect.any(String),
        expect.any(String),
        '--client',
        'claude-code',
      ],
    },
  ]);
  const done = await connections.connect({ client: 'claude-code', subject: 'me' });
  expect(done.verified.works).toBe(true);
  expect(readFileSync(join(home, 'asked'), 'utf8')).toMatch(/^mcp add --scope user helmdeck/);
  expect(readFileSync(join(home, 'env'), 'utf8')).not.toMatch(/HELMDECK_|a key of ours/);
  expect(readFileSync(path, 'utf8')).toContain('"userID":"made"');
  await connections.disconnect({ client: 'claude-code' });
  expect(existsSync(path)).toBe(false);
});

test("the client's command is not run if there is a configuration, because it could lose concurrent writes (R-CONN-07)", async () => {
  const { connections, put, program, home } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  program('claude', 'touch "$HOME/ran"');
  expect((await connections.plan({ client: 'claude-code', subject: 'me' })).commands).toEqual([]);
  await connections.connect({ client: 'claude-code', subject: 'me' });
  expect(existsSync(join(home, 'ran'))).toBe(false);
  expect(readFileSync(path, 'utf8')).toContain('    "other": { "command": "x" },\n    "helmdeck": {');
});

test('a program that other users can change is not run (R-CONN-07)', async () => {
  const { connections, program, home } = await createServedHome();
  program('claude', 'touch "$HOME/ran"', 0o777);
  await expect(connections.connect({ client: 'claude-code', subject: 'me' })).rejects.toMatchObject({
    code: 'not_found',
    message: expect.stringMatching(/was not found on this machine/),
  });
  expect(existsSync(join(home, 'ran'))).toBe(false);
});

test('an entry of another program with our name is recognised, and restored by disconnecting (R-CONN-04)', async () => {
  const { connections, put, row } = await createServedHome();
  const text = '{ "mcpServers": { "helmdeck": { "url": "http://127.0.0.1:7345/api/v1/mcp" } } }';
  const path = put('.claude.json', text);
  expect(await row('claude-code')).toMatchObject({ state: 'differs' });
  await connections.connect({ client: 'claude-code', subject: 'me' });
  expect(await row('claude-code')).toMatchObject({ state: 'connected' });
  await connections.disconnect({ client: 'claude-code' });
  expect(readFileSync(path, 'utf8')).toBe(text);
});

test.each([
  {
    client: 'claude-code',
    file: '.claude.json',
    text: '{"mcpServers":{"helmdeck":{"url":"http://mine"}},"theme":"a"}',
    kept: '"http://mine"',
  },
  {
    client: 'codex',
    file: '.codex/config.toml',
    text: 'theme = "a"\n\n[mcp_servers.helmdeck]\nurl = "http://mine" # mine\ntool_timeout_sec = 60\n\n[mcp_servers.helmdeck.tools.x]\nmode = "a"\n',
    kept: '"http://mine" # mine\n',
  },
])('a replaced entry is restored, even if other programs have changed the file since: $file (R-CONN-03)', async (sample) => {
  const { client, file, text, kept } = sample;
  const { connections, put, row } = await createServedHome();
  const path = put(file, text);
  await connections.connect({ client, subject: 'me', hooks: [] });
  const changed = (from: string, to: string): void => {
    const now = readFileSync(path, 'utf8');
    expect(now).not.toContain('http://mine');
    writeFileSync(path, now.replace(`"${from}"`, `"${to}"`));
  };
  changed('a', 'b');
  // Connected twice: the stored original must still contain the replaced entry.
  await connections.connect({ client, subject: 'me', hooks: [] });
  changed('b', 'c');
  expect((await connections.disconnect({ client })).files).toEqual([{ path, as_before: false }]);
  const read = (said: string): unknown => (file.endsWith('toml') ? parse(said) : JSON.parse(said));
  expect(read(readFileSync(path, 'utf8'))).toEqual(read(text.replace('"a"', '"c"')));
  expect(readFileSync(path, 'utf8')).toContain(kept);
  expect(await row(client)).toMatchObject({ state: 'differs' });
});

test.each([
  {
    client: 'claude-code',
    file: '.claude.json',
    text: '{"mcpServers":{"helmdeck":{"command":"helmdeck-memory","args":["mcp","--client","claude-code"]}}}',
  },
  {
    client: 'codex',
    file: '.codex/config.toml',
    text: '[mcp_servers.helmdeck]\ncommand = "helmdeck-memory"\nargs = ["mcp", "--client", "codex"]\n',
  },
])(
  '$client, connected by hand as in the README, is recognised, and its token is restored (R-CONN-03, R-CONN-04)',
  async (sample) => {
    const { client, file, text } = sample;
    const { connections, put, row, served } = await createServedHome();
    const path = put(file, text);
    expect(await row(client)).toMatchObject({ state: 'broken', why: expect.stringMatching(/token file is missing/) });
    const own = await served.tokens.mint({ name: client, client, subject: 'work', days: 30, scopes: ['memory:read'] });
    const tokenFile = join(served.folder, 'clients', `${client}.token`);
    mkdirSync(dirname(tokenFile), { recursive: true });
    writeFileSync(tokenFile, `${own.token}\n`, { mode: 0o600 });
    expect(await row(client)).toMatchObject({ state: 'connected', token: { id: own.id } });
    // Connected twice, the client uses our token.
    for (const _ of [1, 2]) await connections.connect({ client, subject: 'me' });
    expect(readFileSync(tokenFile, 'utf8')).not.toContain(own.token);
    await connections.disconnect({ client });
    expect(readFileSync(path, 'utf8')).toBe(text);
    expect(readFileSync(tokenFile, 'utf8')).toBe(`${own.token}\n`);
    expect(readdirSync(join(served.folder, 'clients'))).toEqual([`${client}.token`]);
    expect(await row(client)).toMatchObject({ state: 'connected', token: { id: own.id } });
    // Disconnecting removes everything.
    await connections.disconnect({ client });
    expect(await row(client)).toMatchObject({ state: 'not_connected' });
    expect(existsSync(tokenFile)).toBe(false);
    expect((await served.tokens.list()).tokens).toEqual([]);
  },
);

test.each(['{ "command": "mine", "args": ["precious"] }', '{ "url": "http://127.0.0.1:7345/api/v1/mcp" }'])(
  'an entry with our name that connecting did not replace is not removed: %s (R-CONN-03)',
  async (entry) => {
    const { connections, put } = await createServedHome();
    const text = `{ "mcpServers": { "helmdeck": ${entry} } }`;
    const path = put('.claude.json', text);
    await expect(connections.disconnect({ client: 'claude-code' })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/was not created by this program, so it was not removed/),
    });
    expect(readFileSync(path, 'utf8')).toBe(text);
  },
);

test('our entry is removed by disconnecting, even without a record (R-CONN-03)', async () => {
  const { connections, put, served } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  await connections.connect({ client: 'claude-code', subject: 'me' });
  rmSync(join(served.folder, 'clients'), { recursive: true });
  await connections.disconnect({ client: 'claude-code' });
  expect(readFileSync(path, 'utf8')).toBe(CLAUDE);
});

test('a file that a program replaces keeps its mode (R-CONN-01, R-CONN-07)', async () => {
  const { connections, put, program } = await createServedHome();
  const path = put('.codex/config.toml', CODEX, 0o640);
  program('codex', `cp "${path}" "${path}.new" && chmod 600 "${path}.new" && mv "${path}.new" "${path}"`);
  await connections.connect({ client: 'codex', subject: 'me' });
  expect(statSync(path).mode & 0o777).toBe(0o640);
  program('codex', `chmod 666 "${path}"; exit 1`);
  await connections.connect({ client: 'codex', subject: 'me' });
  expect(statSync(path).mode & 0o777).toBe(0o640);
});

test('a relative folder in an environment variable is ignored', async () => {
  const { host, put, home } = await createServedHome();
  put('.codex/config.toml', CODEX);
  for (const folder of ['', 'relative'])
    for (const [connector, name, file] of [
      [codex, 'CODEX_HOME', '.codex/config.toml'],
      [claudeCode, 'CLAUDE_CONFIG_DIR', '.claude.json'],
    ] as const) {
      const { config } = await connector.detect({ ...host, environment: { ...host.environment, [name]: folder } });
      expect(config).toBe(join(home, file));
    }
});

test('clients share one memory unless a client has its own subject (R-CONN-08)', async () => {
  const { connections, put, served, row } = await createServedHome();
  put('.claude.json', CLAUDE);
  put('.codex/config.toml', CODEX);
  put('.gemini/settings.json', GEMINI);
  await connections.connect({ client: 'claude-code', subject: 'me' });
  await connections.connect({ client: 'codex', subject: 'me' });
  await connections.connect({ client: 'gemini-cli', subject: 'work' });
  const callers = new Map<string, Awaited<ReturnType<typeof served.tokens.verify>>>();
  for (const { client } of all) {
    const token = readFileSync(join(served.folder, 'clients', `${client}.token`), 'utf8').trim();
    callers.set(client, await served.tokens.verify(token, 'mcp'));
  }
  expect([...callers].map(([client, caller]) => [client, caller.client, caller.subject])).toEqual([
    ['claude-code', 'claude-code', 'me'],
    ['codex', 'codex', 'me'],
    ['gemini-cli', 'gemini-cli', 'work'],
  ]);
  await served.perform(callers.get('claude-code') ?? aCaller(), 'remember', { key: 'k', value: 'v' });
  await expect(served.perform(callers.get('codex') ?? aCaller(), 'recall', { key: 'k' })).resolves.toMatchObject({
    client: 'claude-code',
  });
  await expect(served.perform(callers.get('gemini-cli') ?? aCaller(), 'recall', { key: 'k' })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(await row('gemini-cli')).toMatchObject({ subject: 'work' });
});

test('a paused client is refused until it is resumed, and a revoked client permanently (R-CONN-09)', async () => {
  const { connections, put, served, row } = await createServedHome();
  put('.claude.json', CLAUDE);
  const { token } = await connections.connect({ client: 'claude-code', subject: 'me' });
  await served.tokens.pause({ id: token, paused: true });
  expect(await row('claude-code')).toMatchObject({ state: 'connected', token: { paused: true } });
  expect(await connections.verify({ client: 'claude-code' })).toMatchObject({
    works: false,
    why: expect.stringMatching(/paused/),
  });
  await served.tokens.pause({ id: token, paused: false });
  expect(await connections.verify({ client: 'claude-code' })).toMatchObject({ works: true });
  await served.tokens.revoke({ id: token, unrecorded: false });
  expect(await row('claude-code')).toMatchObject({ state: 'no_token' });
  expect(await connections.verify({ client: 'claude-code' })).toMatchObject({ works: false });
  expect((await connections.connect({ client: 'claude-code', subject: 'me' })).verified.works).toBe(true);
});

test('testing an entry starts only our bridge, without variables that others added (R-CONN-10)', async () => {
  const { connections, put, served, home } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  const proof = join(home, 'it-ran');
  await connections.connect({ client: 'claude-code', subject: 'me' });
  type Server = { command: string; args: string[]; env: Record<string, string> };
  const ours = (JSON.parse(readFileSync(path, 'utf8')) as { mcpServers: { helmdeck: Server } }).mcpServers.helmdeck;
  const tried = async (entry: Server) => {
    writeFileSync(path, JSON.stringify({ mcpServers: { helmdeck: entry } }));
    return await connections.verify({ client: 'claude-code' });
  };
  const planted = put(
    'elsewhere/helmdeck-memory-mcp.mjs',
    `import fs from 'node:fs'; fs.writeFileSync(${JSON.stringify(proof)}, '')`,
  );
  const script = put('elsewhere/helmdeck-memory', `#!/bin/sh\ntouch ${proof}\n`, 0o755);
  const shell = put('elsewhere/node', `#!/bin/sh\ntouch ${proof}\n`, 0o777);
  // Any program can be called node, even one that only the owner can write.
  const named = put('elsewhere/safe/node', `#!/bin/sh\nenv > ${proof}\n`, 0o755);
  const client = ['--client', 'claude-code'];
  for (const foreign of [
    { command: '/bin/sh', args: ['-c', `touch ${proof}`] },
    { command: ours.command, args: ['-e', `require('fs').writeFileSync(${JSON.stringify(proof)}, '')`] },
    { command: ours.command, args: [planted, ...client] },
    { command: script, args: ['mcp', ...client] },
    { command: shell, args: ours.args },
    { command: named, args: ours.args },
    { command: '/bin/sh', args: [planted, ...client] },
  ]) {
    expect(await tried({ ...foreign, env: ours.env }), JSON.stringify(foreign)).toMatchObject({
      works: false,
      why: expect.stringMatching(/does not start the bridge of Helmdeck Memory, so its command was not run/),
    });
  }
  const required = put('elsewhere/required.cjs', `require('fs').writeFileSync(${JSON.stringify(proof)}, '')`);
  expect(await tried({ ...ours, env: { ...ours.env, NODE_OPTIONS: `--require=${required}` } })).toMatchObject({ works: true });
  expect(existsSync(proof)).toBe(false);
  expect(served.folder).toBe(ours.env['HELMDECK_DATA_DIR']);
});

test('a missing command or bridge is reported (R-CONN-04)', async () => {
  const { connections, put, served, row } = await createServedHome();
  put('.claude.json', CLAUDE);
  await connections.connect({ client: 'claude-code', subject: 'me' });
  rmSync(join(served.folder, 'helmdeck-memory-mcp.mjs'));
  expect(await row('claude-code')).toMatchObject({
    state: 'broken',
    why: expect.stringMatching(/is missing.*Connect the client again/),
  });
  expect(await connections.verify({ client: 'claude-code' })).toMatchObject({ works: false });
  await connections.connect({ client: 'claude-code', subject: 'me' });
  expect(await row('claude-code')).toMatchObject({ state: 'connected' });
});

test('a deleted token file is reported, and connecting creates a new one (R-CONN-04)', async () => {
  const { connections, put, served, row } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  const { token } = await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] });
  const file = join(served.folder, 'clients', 'claude-code.token');
  rmSync(file);
  expect(await row('claude-code')).toMatchObject({
    state: 'broken',
    why: expect.stringMatching(/token file is missing.*Connect the client again/),
  });
  put('.claude.json', CLAUDE.replace('"mcpServers"', '"mcpServers": 1, "mcpServers"'));
  await expect(connections.connect({ client: 'claude-code', subject: 'me', hooks: [] })).rejects.toThrow(/twice/);
  put('.claude.json', CLAUDE);
  expect((await served.tokens.list()).tokens.map(({ id }) => id)).toEqual([token]);
  expect((await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] })).verified.works).toBe(true);
  expect(existsSync(file)).toBe(true);
  await connections.disconnect({ client: 'claude-code' });
  expect((await served.tokens.list()).tokens).toEqual([]);
  expect(readFileSync(path, 'utf8')).toBe(CLAUDE);
});

test('concurrent connections do not overwrite each other, and the second of two plans for one file is refused (R-CONN-05)', async () => {
  const { connections, put, row, served } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  put('.codex/config.toml', CODEX);
  const { basis } = await connections.plan({ client: 'claude-code', subject: 'me', hooks: [] });
  const wanted = { client: 'claude-code', subject: 'me', hooks: [], basis };
  const asked = [
    connections.connect(wanted),
    connections.connect({ client: 'codex', subject: 'me', hooks: [] }),
    connections.connect(wanted),
  ];
  const [first, second, third] = await Promise.allSettled(asked);
  expect([first?.status, second?.status, third?.status]).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  for (const client of ['claude-code', 'codex']) expect(await row(client)).toMatchObject({ state: 'connected' });
  expect((await served.tokens.list()).tokens).toHaveLength(2);
  await Promise.all([connections.disconnect({ client: 'claude-code' }), connections.disconnect({ client: 'codex' })]);
  expect(readFileSync(path, 'utf8')).toBe(CLAUDE);
});

test('our entry is reported if it was modified, and is removed by disconnecting (R-CONN-03, R-CONN-04)', async () => {
  const { connections, put, row } = await createServedHome();
  const path = put('.claude.json', CLAUDE);
  await connections.connect({ client: 'claude-code', subject: 'me', hooks: [] });
  put('.claude.json', readFileSync(path, 'utf8').replace('"--client"', '"--client", "x"'));
  expect(await row('claude-code')).toMatchObject({ state: 'differs' });
  expect((await connections.disconnect({ client: 'claude-code' })).files).toEqual([{ path, as_before: true }]);
  expect(readFileSync(path, 'utf8')).toBe(CLAUDE);
});

test('disconnecting names a file that has become invalid (R-CONN-06)', async () => {
  const { connections, put } = await createServedHome();
  put('.codex/config.toml', CODEX);
  await connections.connect({ client: 'codex', subject: 'me' });
  const path = put('.codex/config.toml', '[');
  await expect(connections.disconnect({ client: 'codex' })).rejects.toThrow(`${path}: The file is not valid TOML`);
});

test('reconnecting keeps settings that the owner added to our entry (R-CONN-01)', async () => {
  const { connections, put, row } = await createServedHome();
  const gemini = put('.gemini/settings.json', '{}');
  const toml = put('.codex/config.toml', CODEX);
  for (const client of ['gemini-cli', 'codex']) await connections.connect({ client, subject: 'me' });
  const own = {
    gemini: readFileSync(gemini, 'utf8').replace('"command"', '"trust": true, // mine\n      "command"'),
    toml: `${readFileSync(toml, 'utf8')}\n[mcp_servers.helmdeck.tools.memory_store]\napproval_mode = "approve" # mine\n`,
  };
  writeFileSync(gemini, own.gemini.replace(/"command": "[^"]*"/, '"command": "/gone/node"'));
  writeFileSync(toml, own.toml);
  for (const client of ['gemini-cli', 'codex']) {
    await connections.connect({ client, subject: 'me' });
    expect(await row(client)).toMatchObject({ state: 'connected' });
  }
  expect(readFileSync(gemini, 'utf8')).toBe(own.gemini);
  expect(readFileSync(toml, 'utf8')).toBe(own.toml);
  for (const client of ['gemini-cli', 'codex']) await connections.disconnect({ client });
  expect(JSON.parse(readFileSync(gemini, 'utf8'))).toEqual({ mcpServers: {} });
  expect(readFileSync(toml, 'utf8')).toBe(CODEX);
});

test.each([
  {
    client: 'gemini-cli',
    file: '.gemini/settings.json',
    of: '"HELMDECK_DATA_DIR"',
    add: '"MINE": "a", ',
    command: /"command": "[^"]*"/,
    gone: '"command": "/gone/node"',
  },
  {
    client: 'codex',
    file: '.codex/config.toml',
    of: 'HELMDECK_DATA_DIR',
    add: 'MINE = "a" # mine\n',
    command: /command = "[^"]*"/,
    gone: 'startup_timeout_sec = 30 # mine\ncommand = "/gone/node" # theirs',
  },
])(
  'settings that the owner added to our entry are kept, and the entry still counts as ours: $client (R-CONN-01)',
  async (one) => {
    const { client, file, of, add, command, gone } = one;
    const { connections, put, row } = await createServedHome();
    const path = put(file, '');
    await connections.connect({ client, subject: 'me' });
    const own = readFileSync(path, 'utf8').replace(of, add + of);
    writeFileSync(path, own);
    expect(await row(client)).toMatchObject({ state: 'connected' });
    const [ours = ''] = command.exec(own) ?? [];
    writeFileSync(path, own.replace(ours, gone));
    expect(await row(client)).toMatchObject({ state: 'differs' });
    await connections.connect({ client, subject: 'me' });
    expect(await row(client)).toMatchObject({ state: 'connected' });
    expect(readFileSync(path, 'utf8')).toBe(
      own.replace(
        ours,
        gone.replace(command, () => ours),
      ),
    );
  },
);

test.each([
  [
    '[mcp_servers.helmdeck]',
    'command = "old"',
    'args = [',
    '  "/x/helmdeck-memory-mcp.mjs", # bridge',
    ']',
    'env = { MINE = "a" } # b',
  ],
  ['[mcp_servers.helmdeck]', "'command' = 'old'", 'args = ["/x/helmdeck-memory-mcp.mjs"]', 'enabled = true'],
  [
    '[mcp_servers.helmdeck]',
    'command = "old"',
    'args = ["/x/helmdeck-memory-mcp.mjs"]',
    '[mcp_servers.helmdeck.env]',
    'MINE = "a"',
  ],
])('our entry in TOML is updated in any spelling: %s %s %s (R-CONN-01)', async (...lines) => {
  const { connections, put, row } = await createServedHome();
  const path = put('.codex/config.toml', `${lines.join('\n')}\n\n[tui]\nx = 1`);
  await connections.connect({ client: 'codex', subject: 'me' });
  expect(await row('codex')).toMatchObject({ state: 'connected' });
  const was = parse(`${lines.join('\n')}\n\n[tui]\nx = 1`) as { mcp_servers: { helmdeck: { env?: object } } };
  const now = parse(readFileSync(path, 'utf8')) as typeof was;
  const { helmdeck } = was.mcp_servers;
  const env = { ...helmdeck.env, HELMDECK_DATA_DIR: expect.any(String) };
  expect(now).toMatchObject({
    tui: { x: 1 },
    mcp_servers: { helmdeck: { ...helmdeck, command: expect.any(String), args: expect.any(Array), env } },
  });
});

test('clients can be connected and disconnected in a home folder of any name (R-CONN-03, R-CONN-10)', async () => {
  const { connections, put, program, home } = await createServedHome({ folderName: `A da's "höme" $(x) \`y\` 家 \\n` });
  put('.claude.json', CLAUDE);
  put('.codex/config.toml', CODEX);
  put('.cursor/mcp.json', '{}');
  program('gemini', 'printf "%s|" "$@" > "$HOME/asked"');
  for (const client of ['claude-code', 'codex', 'cursor', 'gemini-cli']) {
    const { verified } = await connections.connect({ client, subject: 'me' });
    expect(verified).toMatchObject({ works: true });
    await connections.disconnect({ client });
  }
  expect(readFileSync(join(home, '.codex/config.toml'), 'utf8')).toBe(CODEX);
  expect(readFileSync(join(home, 'asked'), 'utf8')).toContain('|--|');
  expect(existsSync(join(home, '.gemini'))).toBe(false);
});

test('a file in place of the folder of Node versions does not prevent the client list', async () => {
  const { put } = await createServedHome();
  const home = dirname(put('.nvm/versions/node', 'a file'));
  const machine = { environment: {}, platform: process.platform, home: () => join(home, '../..') };
  expect(localMachine(machine).places()).toContain('/usr/bin');
});

test('an unreadable record is reported, and the other clients are still listed (R-CONN-04)', async () => {
  const { connections, put, served, row } = await createServedHome();
  put('.claude.json', CLAUDE);
  const path = put('.codex/config.toml', CODEX);
  await connections.connect({ client: 'codex', subject: 'me' });
  const record = join(served.folder, 'clients', 'codex.json');
  chmodSync(record, 0o644);
  expect(await row('codex')).toMatchObject({ state: 'broken', why: expect.stringMatching(/codex\.json must be .* chmod 600/) });
  expect(await row('claude-code')).toMatchObject({ state: 'not_connected' });
  const left = readFileSync(path, 'utf8');
  await expect(connections.disconnect({ client: 'codex' })).rejects.toMatchObject({ code: 'invalid_config' });
  expect(readFileSync(path, 'utf8')).toBe(left);
  chmodSync(record, 0o600);
  const text = readFileSync(record, 'utf8');
  writeFileSync(record, '{');
  expect(await row('codex')).toMatchObject({ state: 'broken', why: expect.stringMatching(/Delete clients\/codex\.json/) });
  writeFileSync(record, text);
  await connections.disconnect({ client: 'codex' });
  expect(readFileSync(path, 'utf8')).toBe(CODEX);
});

test('disconnecting a client that is not connected, or unknown, is refused', async () => {
  const { connections, put } = await createServedHome();
  put('.claude.json', CLAUDE);
  await expect(connections.disconnect({ client: 'claude-code' })).rejects.toMatchObject({ code: 'not_found' });
  await expect(connections.plan({ client: 'nobody', subject: 'me' })).rejects.toMatchObject({ code: 'not_found' });
});

describe('a connection that fails half-way', () => {
  /** A client with two files and a program that can fail. */
  const both = async (look: () => EntryState) => {
    const home = await createServedHome({
      connectors: [
        {
          id: 'both',
          name: 'Both',
          transport: 'stdio',
          detect: async () => ({ installed: true, config: join(home.home, 'one.json') }),
          look: async () => look(),
          connect: async () => [
            { does: 'edit', path: join(home.home, 'one.json'), edit: () => 'ours' },
            { does: 'edit', path: join(home.home, 'new', 'folder', 'two.json'), edit: () => 'ours' },
            { does: 'run', program: join(home.home, 'bin/both'), args: ['add'], touches: [join(home.home, 'three.json')] },
          ],
          disconnect: async () => [{ does: 'edit', path: join(home.home, 'one.json'), edit: () => 'without ours' }],
        },
      ],
    });
    home.put('one.json', 'before');
    home.put('three.json', 'before');
    return home;
  };
  const connectBoth = ({ connections }: Awaited<ReturnType<typeof both>>) =>
    connections.connect({ client: 'both', subject: 'me' });

  test.each([
    {
      why: 'its program fails',
      script: 'echo half > "$HOME/three.json"; echo "not today" >&2; exit 1',
      says: /could not be connected.*not today/,
    },
    { why: 'its entry is missing afterwards', script: 'echo half > "$HOME/three.json"', says: /does not show the entry/ },
  ])('because $why leaves nothing behind (R-CONN-13)', async ({ script, says }) => {
    const home = await both(() => ({ at: 'absent' }));
    home.program('both', script);
    await expect(connectBoth(home)).rejects.toMatchObject({ code: 'handler_failed', message: expect.stringMatching(says) });
    for (const file of ['one.json', 'three.json']) expect(readFileSync(join(home.home, file), 'utf8')).toBe('before');
    expect(existsSync(join(home.home, 'new'))).toBe(false);
    expect((await home.served.tokens.list()).tokens).toEqual([]);
    expect(readdirSync(join(home.served.folder, 'clients'))).toEqual([]);
  });

  test('keeps the earlier connection unchanged (R-CONN-13)', async () => {
    let look: EntryState = { at: 'present' };
    const home = await both(() => look);
    home.program('both', 'echo ours > "$HOME/three.json"');
    const first = await connectBoth(home);
    const tokenFile = join(home.served.folder, 'clients', 'both.token');
    const token = readFileSync(tokenFile, 'utf8');
    look = { at: 'broken', why: 'It does not load.' };
    await expect(connectBoth(home)).rejects.toMatchObject({ code: 'handler_failed' });
    expect(readFileSync(tokenFile, 'utf8')).toBe(token);
    expect((await home.served.tokens.list()).tokens.map(({ id }) => id)).toEqual([first.token]);
    expect(await home.row('both')).toMatchObject({ state: 'broken', why: 'It does not load.' });
    expect((await home.connections.disconnect({ client: 'both' })).files.every((file) => file.as_before)).toBe(true);
    for (const file of ['one.json', 'three.json']) expect(readFileSync(join(home.home, file), 'utf8')).toBe('before');
    expect(existsSync(join(home.home, 'new'))).toBe(false);
  });

  test('because the program was killed can be undone by disconnecting (R-CONN-13)', async () => {
    const home = await both(() => ({ at: 'present' }));
    home.program('both', 'true');
    await connectBoth(home);
    // The record as it is before the last step, without the digests of the changed files.
    const file = join(home.served.folder, 'clients', 'both.json');
    const record = JSON.parse(readFileSync(file, 'utf8')) as { files: object[] };
    const begun = { ...record, files: record.files.map((one) => ({ ...one, after: undefined })) };
    writeFileSync(file, JSON.stringify(begun), { mode: 0o600 });
    expect((await home.connections.disconnect({ client: 'both' })).files).toEqual([
      { path: join(home.home, 'one.json'), as_before: false },
    ]);
    expect(readFileSync(join(home.home, 'one.json'), 'utf8')).toBe('without ours');
    expect((await home.served.tokens.list()).tokens).toEqual([]);
  });
});
