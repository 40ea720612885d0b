import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { openStore } from '../../../src/core/store/open-store.ts';
import { readConfig } from '../../../src/main/config/config.ts';
import { assemble } from '../../../src/main/roots/assemble.ts';
import { manualClock } from '../../support/clock.ts';
import { theOwner } from '../../support/memory.ts';
import { aPack } from '../../support/packs.ts';
import { A_KEY, aDraft, ANOTHER_KEY, withKey } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

describe('a start', () => {
  /** The state that a killed program leaves behind: the memory of a session, and an unfinished run. */
  async function leftBehind(): Promise<string> {
    const folder = tempFolder();
    await using store = await openStore({ folder, clock: manualClock(Date.now()), sources: withKey() });
    await store.space({ subject: 'me', session: 's' }, 'pack').put(aDraft({ key: 'a.pack/a' }));
    const run = {
      run_id: crypto.randomUUID(),
      pipeline: 'greet',
      status: 'running',
      started_at: new Date().toISOString(),
      steps: [],
    };
    const draft = { key: `pipeline-runs/${run.run_id}`, value: JSON.stringify({ run }), category: 'pipeline:running' };
    await store.space({ subject: 'me' }, 'pack').put(aDraft(draft));
    return folder;
  }

  const started = async (folder: string, key: Record<string, string>) => {
    const environment = { HELMDECK_DATA_DIR: folder, HELMDECK_ADDR: '127.0.0.1:0', HELMDECK_MEANING: 'off', ...key };
    const config = readConfig({ environment, platform: 'linux', home: () => folder });
    return await assemble(config, { environment, desktop: false, version: '0.0.0' });
  };

  test('deletes the leftovers of an earlier run in the background (R-PACK-07, R-PACK-12)', async () => {
    await using program = await started(await leftBehind(), { HELMDECK_MEMORY_KEY: A_KEY });
    const { store } = program;
    await expect.poll(() => store.space({ subject: 'me', session: 's' }, 'pack').count()).toBe(0);
    await expect.poll(() => store.space({ subject: 'me' }, 'audit').count()).toBe(1);
    expect(await store.space({ subject: 'me' }, 'pack').count('pipeline:running')).toBe(0);
  });

  test('reports whether agents can connect (R-REST-14)', async () => {
    await using program = await started(tempFolder(), { HELMDECK_MEMORY_KEY: A_KEY });
    const { perform, listening } = program;
    const listener = async () => (await perform(theOwner, 'status', {})).listener;
    expect(await listener()).toEqual({ at: 'paused' });
    await listening.resume();
    expect(await listener()).toEqual({ at: 'listening', url: listening.listener?.url });
    await listening.pause();
    expect(await listener()).toEqual({ at: 'paused' });
  });

  test('logs where an error occurred that no caller receives, and not its text', async () => {
    await using program = await started(tempFolder(), { HELMDECK_MEMORY_KEY: A_KEY });
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const breakAuditRow = () => {
      vi.spyOn(program.store, 'space').mockImplementationOnce(() => {
        throw new Error('private');
      });
      return { said: 'done' };
    };
    program.packs.engine.catalogue.add(aPack(breakAuditRow));
    expect(await program.perform(theOwner, 'runPack', { name: 'test.echo', input: {} })).toMatchObject({
      output: { said: 'done' },
    });
    expect(log.mock.calls).toEqual([['Internal error in a hook of test.echo.']]);
  });

  test('reports the state of agents whenever it is read, and after connecting one (R-DESK-44)', async () => {
    const [folder, home] = [tempFolder(), tempFolder()];
    writeFileSync(join(home, '.claude.json'), '{}');
    const environment = {
      HELMDECK_DATA_DIR: folder,
      HELMDECK_ADDR: '127.0.0.1:0',
      HELMDECK_MEANING: 'off',
      HELMDECK_MEMORY_KEY: A_KEY,
      PATH: '',
      HOME: home,
      USERPROFILE: home,
    };
    const config = readConfig({ environment, platform: 'linux', home: () => folder });
    const heard: (string | undefined)[] = [];
    await using program = await assemble(config, {
      environment,
      desktop: true,
      version: '0.0.0',
      onClients: (clients) => heard.push(clients.find(({ id }) => id === 'claude-code')?.state),
    });
    const { perform } = program;
    expect(heard).toEqual([]);
    await perform(theOwner, 'clients', {});
    expect(heard).toEqual(['not_connected']);
    await perform(theOwner, 'connectClient', { client: 'claude-code' });
    await expect.poll(() => heard).toEqual(['not_connected', 'connected']);
    writeFileSync(join(home, '.claude.json'), '{}');
    await perform(theOwner, 'clients', {});
    expect(heard.at(-1)).toBe('wiped');
    await perform(theOwner, 'disconnectClient', { client: 'claude-code' });
    await expect.poll(() => heard.at(-1)).toBe('not_connected');
  });

  test('updates the bridge of connected clients, and creates none without a client (R-CONN-12)', async () => {
    const [used, unused] = [tempFolder(), tempFolder()];
    const bridge = 'helmdeck-memory-mcp.mjs';
    writeFileSync(join(used, bridge), '// of an older version');
    await using _one = await started(used, { HELMDECK_MEMORY_KEY: A_KEY });
    await using _other = await started(unused, { HELMDECK_MEMORY_KEY: A_KEY });
    const own = readFileSync(join('integrations/stdio-bridge', bridge), 'utf8');
    await expect.poll(() => readFileSync(join(used, bridge), 'utf8')).toBe(own);
    expect(existsSync(join(unused, bridge))).toBe(false);
  });

  test('without the key succeeds, and deletes leftovers when the key becomes available', async () => {
    const keyFile = join(tempFolder(), 'key');
    writeFileSync(keyFile, ANOTHER_KEY, { mode: 0o600 });
    await using program = await started(await leftBehind(), { HELMDECK_MEMORY_KEY_FILE: keyFile });
    const { store, perform } = program;
    expect(store.status().key.at).toBe('mismatch');
    await expect.poll(() => store.namespaces('pack')).toHaveLength(1);
    writeFileSync(keyFile, A_KEY);
    expect(await perform(theOwner, 'unlock', {})).toMatchObject({ key: { at: 'ok' } });
    await expect.poll(() => store.space({ subject: 'me' }, 'audit').count()).toBe(1);
  });
});
