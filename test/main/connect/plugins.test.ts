import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createServedHome } from '../../support/clients.ts';

interface Case {
  readonly client: string;
  readonly config: string;
  readonly settings: string;
  /** The file that shows the plugin, as the client's own program writes it. */
  readonly plugin: Readonly<Record<string, string>>;
  /** The same after the user disabled the plugin. */
  readonly disabled: Readonly<Record<string, string>>;
}

const OWN_SERVER = '{ "mcpServers": { "other": { "command": "x" } } }\n';

/** Files as Claude Code 2.1.326, Codex 0.169.0 and Gemini CLI 0.61.0 write them. `~` is the home folder. */
const CASES: readonly Case[] = [
  {
    client: 'claude-code',
    config: '.claude.json',
    settings: OWN_SERVER,
    plugin: { '.claude/settings.json': '{ "enabledPlugins": { "helmdeck-memory@helmdeck": true, "another@helmdeck": false } }' },
    disabled: { '.claude/settings.json': '{ "enabledPlugins": { "helmdeck-memory@helmdeck": false } }' },
  },
  {
    client: 'codex',
    config: '.codex/config.toml',
    settings: 'model = "x" # mine\n\n[plugins."helmdeck-memory@helmdeck"]\nenabled = true\n',
    plugin: {},
    disabled: { '.codex/config.toml': '[plugins."helmdeck-memory@helmdeck"]\nenabled = false\n' },
  },
  {
    client: 'gemini-cli',
    config: '.gemini/settings.json',
    settings: OWN_SERVER,
    plugin: {
      '.gemini/extensions/another/gemini-extension.json': '{ "name": "another" }',
      '.gemini/extensions/helmdeck-memory/gemini-extension.json': '{ "name": "helmdeck-memory" }',
      '.gemini/extensions/extension-enablement.json': '{ "helmdeck-memory": { "overrides": ["~/*"] } }',
    },
    disabled: { '.gemini/extensions/extension-enablement.json': '{ "helmdeck-memory": { "overrides": ["!~/*"] } }' },
  },
];

async function aHome({ config, settings }: Case) {
  const served = await createServedHome();
  served.program('node', `exec ${process.execPath} "$@"`);
  const write = (files: Readonly<Record<string, string>>): void => {
    for (const [path, text] of Object.entries(files))
      served.put(
        path,
        text.replaceAll('~', () => served.home),
      );
  };
  write({ [config]: settings });
  const read = (path: string): string => readFileSync(join(served.home, path), 'utf8');
  return { ...served, write, read };
}

describe.each(CASES)('R-PLUG-03 $client with the plugin', (one) => {
  const { client, config, settings, plugin, disabled } = one;

  test('gets only the tokens, and its files stay as they are', async () => {
    const { connections, served, row, write, read } = await aHome(one);
    write(plugin);
    expect(await row(client)).toMatchObject({ state: 'not_connected' });
    const plan = await connections.plan({ client, subject: 'me' });
    expect(plan).toMatchObject({ files: [], commands: [] });
    const done = await connections.connect({ client, subject: 'me', basis: plan.basis });
    expect(done.verified).toMatchObject({ works: true });
    expect(read(config)).toBe(settings);
    const tokenFile = join(served.folder, 'clients', `${client}.token`);
    expect(existsSync(tokenFile)).toBe(true);
    expect(await row(client)).toMatchObject({
      state: 'connected',
      hooks: { events: ['session', 'prompt'], state: client === 'codex' ? 'waits_for_review' : 'on' },
    });
    expect(existsSync(join(served.folder, 'clients', `${client}.hook.token`))).toBe(true);
    await connections.connect({ client, subject: 'me', hooks: [] });
    expect((await row(client)).hooks).toEqual({ events: [], state: 'off' });
    expect(existsSync(join(served.folder, 'clients', `${client}.hook.token`))).toBe(false);
    write(disabled);
    expect(await row(client)).toMatchObject({ state: 'broken', why: expect.stringContaining('disabled') });
    await connections.disconnect({ client });
    expect(existsSync(tokenFile)).toBe(false);
  });

  test.runIf(client === 'codex')('waits until its user has reviewed the hooks of the plugin', async () => {
    const { connections, row, write } = await aHome(one);
    await connections.connect({ client, subject: 'me' });
    expect((await row(client)).hooks).toEqual({ events: ['session', 'prompt'], state: 'waits_for_review' });
    const reviewed = ['session_start', 'user_prompt_submit'].map(
      (event) =>
        `[hooks.state."helmdeck-memory@helmdeck:hooks/hooks.json:${event}:0:0"]\ntrusted_hash = "sha256:1"\ntrusted_content_hash = "sha256:2"\n`,
    );
    write({ [config]: settings + reviewed.join('') });
    expect((await row(client)).hooks).toEqual({ events: ['session', 'prompt'], state: 'on' });
  });

  test('loses the entry of an earlier connection, which disconnecting does not bring back', async () => {
    const { connections, row, write, read } = await aHome(one);
    const bare = settings.replace(/\n\[plugins[^]*$/, '');
    write({ [config]: bare });
    // Hooks of Claude Code are in the same file.
    await connections.connect({ client, subject: 'me', hooks: [] });
    expect(read(config)).toContain('--client');
    write({ ...plugin, ...(settings !== bare && { [config]: read(config) + settings.slice(bare.length) }) });
    await connections.connect({ client, subject: 'me' });
    expect(read(config)).not.toContain('--client');
    expect(await row(client)).toMatchObject({ state: 'connected' });
    await connections.disconnect({ client });
    expect(read(config).trimEnd()).toBe(settings.trimEnd());
  });

  test('is connected without the plugin if the file that would show the plugin is broken', async () => {
    const { connections, write, read } = await aHome({ ...one, settings: settings.replace(/\n\[plugins[^]*$/, '') });
    const [path] = Object.keys(plugin).toReversed();
    if (path !== undefined) write({ [path]: '{ broken' });
    // Hooks of Claude Code would be in the same file.
    await connections.connect({ client, subject: 'me', hooks: [] });
    expect(read(config)).toContain('--client');
  });
});
