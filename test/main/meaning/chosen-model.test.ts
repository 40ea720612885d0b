import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Caller } from '../../../src/core/access/caller.ts';
import { type HostMachine, readConfig } from '../../../src/main/config/config.ts';
import { readSettings } from '../../../src/main/config/settings-file.ts';
import { launchWithNode } from '../../../src/main/meaning/launch-model.ts';
import type { LaunchModel } from '../../../src/main/meaning/model-messages.ts';
import { openMemory, type OpenOptions } from '../../../src/main/roots/open-memory.ts';
import { settle } from '../../support/clock.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { fakeModel } from './models.ts';

const owner: Caller = {
  subject: 'me',
  client: 'x',
  transport: 'owner',
  token: '',
  scopes: new Set(['admin'] as const),
  owner: true,
};

/** An open memory whose model is a fake. */
async function opened(
  { folder = join(tempFolder(), 'data'), ...environment }: Record<string, string> = {},
  launchModel?: LaunchModel,
) {
  const machine: HostMachine = {
    environment: { HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY, ...environment },
    platform: process.platform,
    home: () => folder,
  };
  const { launch, started } = fakeModel();
  const settings = readSettings(machine);
  const options: OpenOptions = { ...settings, version: '1.2.3', desktop: false, launchModel: launchModel ?? launch };
  const memory = await openMemory(readConfig(settings), options);
  onTestFinished(() => memory[Symbol.asyncDispose]());
  const call = (name: string, input: object = {}): Promise<unknown> => memory.perform(owner, name, input);
  const embed = async (input: string | string[]) => {
    const answer = call('embed', { model: 'minilm-l6-v2', input });
    for (let text = 0; text < [input].flat().length; text += 1) {
      await settle();
      started.at(-1)?.vector();
    }
    return answer;
  };
  return { memory, call, embed, started, folder };
}

describe('the choice of the model (R-MEAN-26)', () => {
  test('is the bundled model by default, which starts nothing until it is needed', async () => {
    const { call, started } = await opened();
    expect(await call('meaning')).toMatchObject({
      state: { at: 'ready', source: 'bundled', model: 'minilm-l6-v2' },
      choice: 'bundled',
      installed: true,
    });
    expect(await call('status')).toMatchObject({ meaning: { at: 'ready' } });
    expect(started).toEqual([]);
  });

  test('takes effect at once, persists, and can be changed by the setting too', async () => {
    const { call, folder, memory, embed, started } = await opened();
    await embed('one');
    expect(await call('setMeaning', { choice: 'off' })).toMatchObject({ state: { at: 'off' }, choice: 'off' });
    expect(started.map(({ killed }) => killed)).toEqual([true]);
    expect(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'))).toEqual({ HELMDECK_MEANING: 'off' });
    await expect(call('embed', { model: 'nomic-embed-text', input: 'two' })).rejects.toMatchObject({
      code: 'embeddings_unavailable',
    });
    await memory[Symbol.asyncDispose]();

    const again = await opened({ folder });
    expect(await again.call('meaning')).toMatchObject({ choice: 'off' });
    expect(await again.call('changeSetting', { name: 'HELMDECK_MEANING', value: 'ollama' })).toMatchObject({
      from: 'file',
      value: 'ollama',
    });
    expect(await again.call('meaning')).toMatchObject({
      choice: 'ollama',
      state: { at: 'failed', source: 'ollama', remedy: expect.stringContaining('embeddings on') },
    });
    const row = await again.call('changeSetting', { name: 'HELMDECK_MEANING' });
    expect(row).toMatchObject({ from: 'nowhere', usual: expect.stringContaining('bundled') });
    expect(row).not.toHaveProperty('next');
    expect(await again.call('meaning')).toMatchObject({ choice: 'bundled' });
  });

  test('that the environment makes can only be changed there, and can still be tried again', async () => {
    const { call } = await opened({ HELMDECK_MEANING: 'off' });
    await expect(call('setMeaning', { choice: 'bundled' })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('environment variable'),
    });
    expect(await call('setMeaning', { choice: 'off' })).toMatchObject({ choice: 'off' });
    await expect(opened({ HELMDECK_MEANING: 'on' })).rejects.toThrow(/HELMDECK_MEANING must be bundled, ollama or off/);
  });

  test('is off without a process, a timer or a connection', async () => {
    const { call, started } = await opened({ HELMDECK_MEANING: 'off' });
    await call('remember', { key: 'a', value: 'a fact' });
    await call('search', { query: 'fact' });
    expect(await call('status')).toMatchObject({ meaning: { at: 'off' } });
    expect(started).toEqual([]);
  });
});

test('locking the memory ends the model (R-MEAN-21)', async () => {
  const { call, embed, started } = await opened();
  await embed('one');
  const pending = call('embed', { model: 'minilm-l6-v2', input: 'two' });
  pending.catch(() => undefined);
  await settle();
  await call('lock');
  await expect(pending).rejects.toMatchObject({ code: 'embeddings_unavailable' });
  expect(started.map(({ killed }) => killed)).toEqual([true]);
});

describe('embeddings for programs with the bundled model (R-MEAN-28)', () => {
  test('have the format of OpenAI and a model name of their own', async () => {
    const { call, embed, started } = await opened();
    expect(await call('status')).toMatchObject({ embeddings: { at: 'ready', model: 'minilm-l6-v2', whose: 'bundled' } });
    expect(await embed(['one', 'two'])).toMatchObject({
      object: 'list',
      data: [{ index: 0 }, { index: 1 }],
      model: 'minilm-l6-v2',
      usage: { prompt_tokens: 2 },
    });
    expect(started[0]?.texts).toEqual(['one', 'two']);
    await expect(call('embed', { model: 'nomic-embed-text', input: 'one' })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('minilm-l6-v2'),
    });
    expect(await call('embeddings')).toMatchObject({ on: false, state: { at: 'ready' }, model: { name: 'minilm-l6-v2' } });
  });

  test('end when Ollama is turned on', async () => {
    const { call } = await opened({ HELMDECK_OLLAMA: '/nowhere/ollama' });
    expect(await call('setEmbeddings', { on: true })).toMatchObject({ state: { at: 'asleep' } });
    await expect(call('embed', { model: 'nomic-embed-text', input: 'one' })).rejects.toMatchObject({
      code: 'embeddings_unavailable',
    });
  });
});

test('the real program makes vectors, finds by meaning, and makes the vectors again on request (R-MEAN-29)', async () => {
  const { memory, call } = await opened({}, launchWithNode);
  const facts = {
    deploys: 'We deploy to production on Tuesdays',
    cat: 'The cat sleeps in the kitchen',
    editor: 'Ada prefers Helix over Vim',
    coffee: 'Two sugars, no milk',
    bike: 'The lock of the bicycle has the code 4711',
    flat: 'The boiler is in the cellar',
  };
  for (const [key, value] of Object.entries(facts)) await call('remember', { key, value });
  memory.startMeaning();
  const progress = async () => ((await call('meaning')) as { facts?: object }).facts;
  await expect.poll(progress).toEqual({ done: 6, total: 6 });
  const found = await call('search', { query: 'when do you ship new versions?', mode: 'meaning' });
  expect(found).toMatchObject({ hits: [{ key: 'deploys' }], meaning: 'complete' });
  expect(await call('rebuildMeaning')).toMatchObject({ facts: { total: 6 } });
  await expect.poll(progress).toEqual({ done: 6, total: 6 });
  await call('lock');
  expect(await call('meaning')).not.toHaveProperty('facts');
  expect(await call('setMeaning', { choice: 'off' })).toMatchObject({ choice: 'off' });
});
