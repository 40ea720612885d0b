import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { parse } from 'smol-toml';
import { describe, expect, test } from 'vitest';
import type { ClientRow } from '../../../src/contract/client.ts';
import { CONNECTORS } from '../../../src/main/connect/clients.ts';
import { hookCommand, refreshLaunchers } from '../../../src/main/connect/launch.ts';
import { createServedHome } from '../../support/clients.ts';
import { aCaller } from '../../support/memory.ts';

const CODEX = '# mine\nmodel = "gpt-5"\n';

interface HookFile {
  readonly hooks: Readonly<
    Record<string, readonly { matcher?: string; hooks: readonly { command: string; timeout?: number }[] }[]>
  >;
}

const readHooks = (path: string): HookFile['hooks'] => (JSON.parse(readFileSync(path, 'utf8')) as HookFile).hooks;

/** A home with Codex, which is connected with the given options. */
async function aCodex(options: { hooks?: ('session' | 'prompt')[]; trust_hooks?: boolean } = {}, before?: string) {
  const home = await createServedHome();
  const config = home.put('.codex/config.toml', CODEX);
  const file = join(home.home, '.codex/hooks.json');
  if (before !== undefined) home.put('.codex/hooks.json', before);
  const connect = (more = options) => home.connections.connect({ client: 'codex', subject: 'me', ...more });
  const receipt = await connect();
  const hooksOf = async (): Promise<ClientRow['hooks']> => (await home.row('codex')).hooks;
  return { ...home, config, file, connect, receipt, hooksOf };
}

test('the commands of the hooks tell a model what another agent stored (R-HOOK-04)', async () => {
  const { connections, put, served, home, row } = await createServedHome({ folderName: `A da's "höme" $(x) 家` });
  put('.claude.json', '{}');
  await connections.connect({ client: 'claude-code', subject: 'me' });
  expect((await row('claude-code')).hooks).toEqual({ events: ['session', 'prompt'], state: 'on' });
  await served.perform(aCaller({ client: 'codex' }), 'remember', {
    key: 'preferences/editor',
    value: 'Helix, everywhere',
    category: 'preferences',
  });
  const { SessionStart: [session] = [], UserPromptSubmit: [prompt] = [] } = readHooks(join(home, '.claude/settings.json'));
  const hear = (command = '', input: object = {}): Promise<string> => {
    const child = spawn('/bin/sh', ['-c', command], { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin.on('error', () => undefined).end(JSON.stringify(input));
    return readText(child.stdout);
  };
  let asked = {};
  const start = (): Promise<string> => {
    // The hook gives up on a busy machine. A new session gets the whole brief again.
    asked = { session_id: randomUUID(), cwd: home, prompt: 'Open my editor, Helix.' };
    return hear(session?.hooks[0]?.command, { ...asked, source: 'startup' });
  };
  await expect.poll(start).toContain('Helix, everywhere');
  // The session was told, so the hook of the prompt is silent.
  expect(await hear(prompt?.hooks[0]?.command, asked)).toBe('');
  expect(session).toMatchObject({ matcher: 'startup|clear|compact' });
  expect(prompt).not.toHaveProperty('matcher');
});

test('the token of the hooks can only ask for briefs, and is paused and revoked with the token of the client (R-HOOK-05)', async () => {
  const { served, receipt, connections } = await aCodex();
  const token = readFileSync(join(served.folder, 'clients/codex.hook.token'), 'utf8').trim();
  const ask = () => served.tokens.verify(token, 'rest');
  const caller = await ask();
  expect([...caller.scopes]).toEqual(['memory:brief']);
  expect(caller).toMatchObject({ client: 'codex', subject: 'me' });
  await expect(served.perform(caller, 'brief', {})).resolves.toMatchObject({ text: '' });
  for (const operation of ['list', 'status'] as const)
    await expect(served.perform(caller, operation, {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  await served.tokens.pause({ id: receipt.token, paused: true });
  await expect(ask()).rejects.toMatchObject({ message: expect.stringMatching(/is paused/) });
  await served.tokens.pause({ id: receipt.token, paused: false });
  await expect(ask()).resolves.toMatchObject({ client: 'codex' });
  await served.tokens.revoke({ id: receipt.token, unrecorded: false });
  await expect(ask()).rejects.toMatchObject({ message: expect.stringMatching(/been revoked/) });
  expect((await served.tokens.list()).tokens).toEqual([]);
  await connections.disconnect({ client: 'codex' });
  expect(readdirSync(join(served.folder, 'clients'))).toEqual([]);
});

test('the owner chooses the events, and connecting again keeps the choice (R-HOOK-06)', async () => {
  const { connect, hooksOf, file, served, connections } = await aCodex({ hooks: ['prompt'] });
  expect(await hooksOf()).toEqual({ events: ['prompt'], state: 'waits_for_review' });
  expect(Object.keys(readHooks(file))).toEqual(['UserPromptSubmit']);
  await connect({});
  expect((await hooksOf())?.events).toEqual(['prompt']);
  await connect({ hooks: ['session', 'prompt'] });
  expect(Object.keys(readHooks(file)).toSorted()).toEqual(['SessionStart', 'UserPromptSubmit']);
  await connect({ hooks: [] });
  expect(await hooksOf()).toEqual({ events: [], state: 'off' });
  expect(existsSync(join(served.folder, 'clients/codex.hook.token'))).toBe(false);
  expect((await served.tokens.list()).tokens).toHaveLength(1);
  await connect({});
  expect(await hooksOf()).toEqual({ events: [], state: 'off' });
  await connections.disconnect({ client: 'codex' });
  expect(existsSync(file)).toBe(false);
});

test('a connection of an earlier version gets hooks when it is connected again (R-HOOK-06)', async () => {
  const { connect, hooksOf, served, connections, config, file } = await aCodex({ hooks: [] });
  const path = join(served.folder, 'clients/codex.json');
  const { hooks: _, ...record } = JSON.parse(readFileSync(path, 'utf8')) as { hooks?: object };
  writeFileSync(path, JSON.stringify(record), { mode: 0o600 });
  expect(await hooksOf()).toEqual({ events: [], state: 'off' });
  expect((await connections.plan({ client: 'codex', subject: 'me' })).hooks).toEqual(['session', 'prompt']);
  await connect({});
  expect(await hooksOf()).toEqual({ events: ['session', 'prompt'], state: 'waits_for_review' });
  await connections.disconnect({ client: 'codex' });
  expect(readFileSync(config, 'utf8')).toBe(CODEX);
  expect(existsSync(file)).toBe(false);
});

test('a client without hooks is connected without them, and no client gets events that it cannot use', async () => {
  const { connections, put, row } = await createServedHome();
  put('.config/Claude/claude_desktop_config.json', '{}');
  put('.cursor/mcp.json', '{}');
  await connections.connect({ client: 'claude-desktop', subject: 'me', hooks: [] });
  expect(await row('claude-desktop')).not.toHaveProperty('hooks');
  await expect(connections.plan({ client: 'claude-desktop', subject: 'me', hooks: ['session'] })).rejects.toMatchObject({
    code: 'invalid_input',
    message: 'Helmdeck Memory has no hooks for Claude Desktop. Leave the hooks out.',
  });
  await expect(connections.plan({ client: 'cursor', subject: 'me', hooks: ['session', 'prompt'] })).rejects.toMatchObject({
    code: 'invalid_input',
    message: 'Cursor shows its model no text of a hook at the event prompt. Leave prompt out.',
  });
});

describe('hooks that cannot speak are reported, and connecting again repairs them (R-HOOK-07)', () => {
  test.each<[string, RegExp, (home: Awaited<ReturnType<typeof aCodex>>) => void]>([
    ['the hooks were removed', /were changed/, ({ file }) => rmSync(file)],
    [
      'a hook was changed',
      /were changed/,
      ({ file }) => writeFileSync(file, readFileSync(file, 'utf8').replace(' codex session', ' codex prompt')),
    ],
    [
      'the token file is missing',
      /token file of the hooks is missing/,
      ({ served }) => rmSync(join(served.folder, 'clients/codex.hook.token')),
    ],
    [
      'the script was changed',
      /script of the hooks is missing or was changed/,
      ({ served }) => writeFileSync(join(served.folder, 'helmdeck-memory-hook.mjs'), '// mine'),
    ],
  ])('%s', async (_what, why, damage) => {
    const home = await aCodex({ trust_hooks: true });
    expect(await home.hooksOf()).toMatchObject({ state: 'on' });
    damage(home);
    expect(await home.hooksOf()).toMatchObject({ state: 'differs', why: expect.stringMatching(why) });
    await home.connect({ trust_hooks: true });
    expect(await home.hooksOf()).toEqual({ events: ['session', 'prompt'], state: 'on' });
  });

  test('the token of the hooks was revoked', async () => {
    const { served, hooksOf } = await aCodex({ trust_hooks: true });
    const hook = (await served.tokens.list()).tokens.find(({ scopes }) => scopes.includes('memory:brief'));
    await served.tokens.revoke({ id: hook?.id ?? '', unrecorded: false });
    expect(await hooksOf()).toMatchObject({ state: 'differs', why: expect.stringMatching(/was revoked/) });
  });

  test('the file with the hooks cannot be read', async () => {
    const { file, hooksOf, connect, connections } = await aCodex();
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, '{');
    expect(await hooksOf()).toMatchObject({ state: 'differs', why: expect.stringMatching(/not valid JSON/) });
    await expect(connect()).rejects.toThrow(`${file}: The file is not valid JSON`);
    writeFileSync(file, text);
    await connections.disconnect({ client: 'codex' });
    expect(existsSync(file)).toBe(false);
  });

  test.each([
    { client: 'claude-code', config: '.claude.json', file: '.claude/settings.json', off: { disableAllHooks: true } },
    {
      client: 'gemini-cli',
      config: '.gemini/settings.json',
      file: '.gemini/settings.json',
      off: { hooksConfig: { enabled: false } },
    },
  ])('the client has turned all hooks off: $client', async ({ client, config, file, off }) => {
    const { connections, put, row } = await createServedHome();
    put(config, '{}');
    put(file, JSON.stringify(off));
    await connections.connect({ client, subject: 'me' });
    expect((await row(client)).hooks).toMatchObject({ state: 'differs', why: expect.stringMatching(/hooks are turned off/) });
  });

  test('Codex has turned hooks off', async () => {
    const { config, hooksOf } = await aCodex({ trust_hooks: true });
    writeFileSync(config, `${readFileSync(config, 'utf8')}\n[features]\nhooks = false\n`);
    expect(await hooksOf()).toMatchObject({ state: 'differs', why: expect.stringMatching(/turned off in Codex/) });
  });
});

test('the connection test runs the script of the hooks, and reports why it does not work (R-HOOK-07)', async () => {
  const { served, connections } = await aCodex();
  expect(await connections.verify({ client: 'codex' })).toMatchObject({ works: true });
  const hook = (await served.tokens.list()).tokens.find(({ scopes }) => scopes.includes('memory:brief'));
  await served.tokens.pause({ id: hook?.id ?? '', paused: true });
  expect(await connections.verify({ client: 'codex' })).toMatchObject({
    works: false,
    why: expect.stringMatching(/^The hooks do not work: This token is paused/),
  });
  chmodSync(join(served.folder, 'helmdeck-memory-hook.mjs'), 0o666);
  expect(await connections.verify({ client: 'codex' })).toMatchObject({
    works: false,
    why: expect.stringMatching(/script is missing or was changed/),
  });
});

test('each start renews the script in the data folder', async () => {
  const { served } = await aCodex();
  const script = join(served.folder, 'helmdeck-memory-hook.mjs');
  const text = readFileSync(script, 'utf8');
  writeFileSync(script, 'old');
  refreshLaunchers(served.folder);
  expect(readFileSync(script, 'utf8')).toBe(text);
});

describe('the review of hooks in Codex (R-HOOK-08)', () => {
  test('is left to Codex, unless the owner agrees to record it', async () => {
    const { connections, config, receipt, hooksOf, connect } = await aCodex();
    expect(receipt.afterwards).toMatch(/Codex asks you to review the new hooks/);
    expect(readFileSync(config, 'utf8')).not.toContain('trusted_hash');
    expect(await hooksOf()).toMatchObject({ state: 'waits_for_review' });
    const plan = await connections.plan({ client: 'codex', subject: 'me', trust_hooks: true });
    expect(plan.review).toBe('recorded');
    expect(plan.files.flatMap(({ lines }) => lines.filter(({ sign }) => sign === '+')).map(({ text }) => text)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^trusted_hash = "sha256:[0-9a-f]{64}"$/)]),
    );
    // A plan without the record of the review does not permit the record.
    const { basis } = await connections.plan({ client: 'codex', subject: 'me' });
    await expect(connections.connect({ client: 'codex', subject: 'me', basis, trust_hooks: true })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/since the preview/),
    });
    expect(await connect({ trust_hooks: true })).not.toMatchObject({ afterwards: expect.stringMatching(/review/) });
    expect(await hooksOf()).toMatchObject({ state: 'on' });
    // Connecting again does not change the hooks, so Codex still trusts them.
    expect((await connections.plan({ client: 'codex', subject: 'me' })).review).toBeUndefined();
    await connect({});
    expect(await hooksOf()).toMatchObject({ state: 'on' });
    await connections.disconnect({ client: 'codex' });
    expect(readFileSync(config, 'utf8')).toBe(CODEX);
  });

  test('that Codex recorded is removed by disconnecting', async () => {
    const { connections, config, file, connect } = await aCodex({ trust_hooks: true });
    const reviewed = readFileSync(config, 'utf8').slice(readFileSync(config, 'utf8').indexOf('[hooks.state'));
    await connections.disconnect({ client: 'codex' });
    await connect({});
    writeFileSync(config, `${readFileSync(config, 'utf8')}\n${reviewed}`);
    await connections.disconnect({ client: 'codex' });
    expect(readFileSync(config, 'utf8').trim()).toBe(CODEX.trim());
    expect(existsSync(file)).toBe(false);
  });

  test('names the resolved folder, and positions after the hooks of others', async () => {
    const others = '{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"mine"}]}]}}';
    const home = await createServedHome();
    mkdirSync(join(home.home, 'dotfiles/codex'), { recursive: true });
    symlinkSync('dotfiles/codex', join(home.home, '.codex'));
    home.put('.codex/config.toml', CODEX);
    home.put('.codex/hooks.json', others);
    await home.connections.connect({ client: 'codex', subject: 'me', trust_hooks: true });
    const { hooks } = parse(readFileSync(join(home.home, '.codex/config.toml'), 'utf8')) as { hooks: { state: object } };
    const file = join(home.home, 'dotfiles/codex/hooks.json');
    expect(Object.keys(hooks.state)).toEqual([`${file}:session_start:1:0`, `${file}:user_prompt_submit:0:0`]);
    expect((await home.row('codex')).hooks).toMatchObject({ state: 'on' });
  });

  test('of hooks that the owner added after ours stays valid after disconnecting', async () => {
    const { connections, file } = await aCodex();
    const hooks = readHooks(file);
    const mine = { hooks: [{ type: 'command', command: 'mine' }] };
    writeFileSync(file, JSON.stringify({ hooks: { ...hooks, SessionStart: [...(hooks['SessionStart'] ?? []), mine] } }));
    await connections.disconnect({ client: 'codex' });
    // An empty group keeps the position of the group after it.
    expect(readHooks(file)).toEqual({ SessionStart: [{ hooks: [] }, mine] });
  });

  test('hooks are refused if the owner keeps hooks in config.toml, and Codex is connected without them', async () => {
    const { connections, put, row } = await createServedHome();
    const text = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "mine"\n';
    const config = put('.codex/config.toml', text);
    await expect(connections.connect({ client: 'codex', subject: 'me' })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/hooks for Codex are in config\.toml.*--no-hooks/),
    });
    expect(readFileSync(config, 'utf8')).toBe(text);
    await connections.connect({ client: 'codex', subject: 'me', hooks: [] });
    expect(await row('codex')).toMatchObject({ state: 'connected', hooks: { state: 'off' } });
    await connections.disconnect({ client: 'codex' });
    expect(readFileSync(config, 'utf8')).toBe(text);
  });
});

test("the owner's settings in our hook are kept, and its position too (R-CONN-01)", async () => {
  const { connections, file, connect, served } = await aCodex({ hooks: ['session'] });
  const hooks = readHooks(file);
  const ours = hooks['SessionStart']?.[0];
  const mine = { hooks: [{ type: 'command', command: 'mine' }] };
  const changed = {
    ...ours,
    hooks: [{ ...ours?.hooks[0], timeout: 9, command: '/gone/node helmdeck-memory-hook.mjs codex session' }],
  };
  writeFileSync(file, JSON.stringify({ hooks: { SessionStart: [mine, changed, mine] } }));
  await connect({});
  expect(readHooks(file)['SessionStart']).toEqual([mine, { ...changed, hooks: [{ ...ours?.hooks[0], timeout: 9 }] }, mine]);
  // A data folder that was moved: the hooks are still recognized as ours.
  renameSync(join(served.folder, 'clients'), join(served.folder, 'lost'));
  await connections.disconnect({ client: 'codex' });
  expect(readHooks(file)['SessionStart']).toEqual([mine, { hooks: [] }, mine]);
});

test('the command of a hook is quoted for the shell of each system', () => {
  const target = { folder: '/data', client: 'codex', windowsShell: undefined };
  expect(hookCommand('/usr/bin/node', { ...target, platform: 'linux' }, 'session')).toBe(
    '/usr/bin/node /data/helmdeck-memory-hook.mjs codex session',
  );
  expect(hookCommand("/it's here/node", { ...target, platform: 'darwin' }, 'prompt')).toBe(
    String.raw`'/it'\''s here/node' /data/helmdeck-memory-hook.mjs codex prompt`,
  );
  const node = String.raw`C:\Program Files\nodejs\node.exe`;
  expect(hookCommand(node, { ...target, platform: 'win32' }, 'session')).toBe(
    `"${node}" "/data/helmdeck-memory-hook.mjs" codex session`,
  );
  // PowerShell would expand `$(…)` between double quotation marks.
  const folder = '/it’s $(here)';
  expect(hookCommand(node, { ...target, folder, platform: 'win32', windowsShell: 'powershell' }, 'session')).toBe(
    `& '${node}' '/it’’s $(here)/helmdeck-memory-hook.mjs' codex session`,
  );
});

test('the clients with hooks are those that the documentation names', () => {
  const page = readFileSync('docs/connect.md', 'utf8');
  const named = [...page.matchAll(/\| `([a-z-]+)` \|.*\| (?:yes|after a review|at the start) \|/g)].map(([, id]) => id);
  expect(new Set(CONNECTORS.flatMap(({ id, hooks }) => (hooks ? [id] : [])))).toEqual(new Set(named));
});
