import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Caller } from '../../../src/core/access/caller.ts';
import type { Embedder } from '../../../src/core/meaning/embedder.ts';
import { MeaningIndex } from '../../../src/core/meaning/meaning-index.ts';
import type { MemoryStore } from '../../../src/core/store/store.ts';
import { type HostMachine, readConfig } from '../../../src/main/config/config.ts';
import { readSettings } from '../../../src/main/config/settings-file.ts';
import { openMemory } from '../../../src/main/roots/open-memory.ts';
import { manualClock } from '../../support/clock.ts';
import { A_KEY, aDraft, openFileStore } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openBundled } from './models.ts';

const me = { subject: 'me' };

/** Facts, each with a question that shares no word with it. */
const FACTS: readonly (readonly [key: string, value: string, question: string])[] = [
  ['office/hq', 'After-hours entry at HQ is through the loading dock', 'how do I get into the building at night?'],
  ['household/boiler', 'The combi stands in the airing cupboard on the landing', 'where is the heating unit?'],
  ['pets/otto', 'Otto must not eat grapes or raisins', 'which food is dangerous for the dog?'],
  ['travel/lisbon', 'Flight TP543 leaves on the ninth of May', 'when do we go on holiday?'],
];

async function opened() {
  const store = await openFileStore(tempFolder(), manualClock());
  const { embedder } = openBundled();
  const model: Embedder = {
    model: embedder.model,
    embed: (texts, options) => embedder.embed(texts, options),
    onChange: () => ({ [Symbol.dispose]: () => undefined }),
    release: () => embedder.release(),
  };
  const index = new MeaningIndex(store, model);
  onTestFinished(() => index[Symbol.dispose]());
  for (const [key, value] of FACTS) await store.space(me, 'fact').put(aDraft({ key, value, category: 'user_facts' }));
  index.start();
  const idle = (): Promise<void> =>
    vi.waitFor(async () => expect(await index.progress()).toMatchObject({ done: (await index.progress()).total }), {
      timeout: 60_000,
      interval: 50,
    });
  return { store, index, idle };
}

async function best(store: MemoryStore, index: MeaningIndex, question: string): Promise<string | undefined> {
  const nearest = await index.nearest(me, question, { limit: 1 });
  const { facts } = await store.vectors.read(me, 'no model', nearest?.rows.map(({ row }) => row) ?? []);
  return facts[0]?.entry.key;
}

describe('with the real model', () => {
  test('facts are found by questions that share no word with them, also after a lock (R-MEAN-14, R-MEAN-15)', async () => {
    const { store, index, idle } = await opened();
    await idle();
    for (const [key, , question] of FACTS) expect(await best(store, index, question)).toBe(key);
    store.lock();
    expect([index.bytes, await index.nearest(me, 'when do we go on holiday?', { limit: 1 })]).toEqual([0, undefined]);
    await store.unlock();
    await store.space(me, 'fact').put(aDraft({ key: 'car', value: 'The Volvo is parked on level 3', category: 'user_facts' }));
    await idle();
    expect(await best(store, index, 'where did I leave my vehicle?')).toBe('car');
    expect(await best(store, index, 'when do we go on holiday?')).toBe('travel/lisbon');
  });

  test('a matter in the middle of a long fact is found (R-MEAN-14)', async () => {
    const { store, index, idle } = await opened();
    const filler = (topic: string): string =>
      `The committee discussed ${topic} at length and agreed to continue next month. `.repeat(8);
    const shed = `The spare key of the garden shed hangs behind the bee hives. Members fetch it when they need spades, rakes or the
      wheelbarrow, and hang it back before dark. Nobody takes it home. If it is lost, the locksmith needs a week.`;
    // The model would read only the first part of the whole text.
    const value = `${filler('the budget for printing')}${filler('the summer fair')}${shed} ${filler('new chairs')}`;
    await store.space(me, 'fact').put(aDraft({ key: 'minutes/2026-05', value, category: 'user_facts' }));
    await idle();
    expect(await best(store, index, 'how can I open the hut with the gardening tools?')).toBe('minutes/2026-05');
  });
});

describe('the setting', () => {
  test('turned off deletes all vectors at once, and again at each start (R-MEAN-11, R-MEAN-26)', async () => {
    const folder = join(tempFolder(), 'data');
    const open = async (environment: Record<string, string> = {}) => {
      const machine: HostMachine = {
        environment: { HELMDECK_DATA_DIR: folder, HELMDECK_MEMORY_KEY: A_KEY, ...environment },
        platform: process.platform,
        home: () => folder,
      };
      const settings = readSettings(machine);
      return openMemory(readConfig(settings), { ...settings, version: '1.2.3', desktop: false });
    };
    const count = (store: MemoryStore): Promise<number> => store.vectors.count(me, 'bundled:minilm-l6-v2');
    const owner: Caller = { subject: 'me', client: 'x', transport: 'owner', token: '', scopes: new Set(['admin']), owner: true };
    {
      await using memory = await open();
      const facts = memory.store.space(me, 'fact');
      for (const [key, value] of FACTS) await facts.put(aDraft({ key, value }));
      memory.startMeaning();
      const embedded = (): Promise<void> =>
        vi.waitFor(async () => expect(await count(memory.store)).toBe(FACTS.length), { timeout: 60_000, interval: 50 });
      await embedded();
      await memory.perform(owner, 'setMeaning', { choice: 'off' });
      await vi.waitFor(async () => expect(await count(memory.store)).toBe(0));
      await memory.perform(owner, 'setMeaning', { choice: 'bundled' });
      await embedded();
    }
    await using again = await open({ HELMDECK_MEANING: 'off' });
    expect(await count(again.store)).toBe(FACTS.length);
    again.startMeaning();
    await vi.waitFor(async () => expect(await count(again.store)).toBe(0));
  });
});
