import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import { ForgetInput } from '../../../src/contract/forget.ts';
import { isRelated } from '../../../src/core/meaning/fuse.ts';
import { MeaningIndex } from '../../../src/core/meaning/meaning-index.ts';
import { RamStore } from '../../../src/core/store/ram-store.ts';
import { selectionOf } from '../../../src/core/store/scope.ts';
import type { MemoryStore, Namespace } from '../../../src/core/store/store.ts';
import { DAY, HOUR, manualClock, MINUTE, SECOND } from '../../support/clock.ts';
import { aDraft, anAuthor, openFileStore } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { WordEmbedder } from '../../support/word-embedder.ts';

const me: Namespace = { subject: 'me' };
const you: Namespace = { subject: 'you' };

interface Scene {
  readonly store: MemoryStore;
  readonly embedder: WordEmbedder;
  readonly index: MeaningIndex;
  readonly put: (key: string, value?: string, namespace?: Namespace) => Promise<unknown>;
  /** Waits until every fact has a vector. */
  readonly idle: () => Promise<void>;
  /** Returns the keys of the nearest facts. */
  readonly ask: (text: string, namespace?: Namespace, limit?: number) => Promise<string[] | undefined>;
}

function sceneOf(store: MemoryStore, embedder = new WordEmbedder(), limits: readonly number[] = []): Scene {
  const index = new MeaningIndex(store, embedder, ...limits);
  onTestFinished(() => index[Symbol.dispose]());
  return {
    store,
    embedder,
    index,
    put: (key, value = key, namespace = me) => store.space(namespace, 'fact').put(aDraft({ key, value, category: 'user_facts' })),
    idle: () =>
      vi.waitFor(
        async () => {
          const { done, total } = await index.progress();
          expect(done).toBe(total);
          // The background job ends a moment after it has stored the last vector.
          await delay(30);
        },
        { timeout: 10_000, interval: 10 },
      ),
    ask: async (text, namespace = me, limit = 3) => {
      let nearest = await index.nearest(namespace, text, { limit });
      // On a busy machine, vectors can take longer to load than a question waits.
      for (let turn = 0; nearest?.partial && turn < 20; turn += 1) {
        await delay(20);
        nearest = await index.nearest(namespace, text, { limit });
      }
      if (!nearest) return undefined;
      const found = await store.vectors.read(
        namespace,
        'no model',
        nearest.rows.map(({ row }) => row),
      );
      const keys = new Map(found.facts.map(({ row, entry }) => [row, entry.key]));
      return nearest.rows.map(({ row }) => keys.get(row) ?? `row ${row}`);
    },
  };
}

/** A memory in RAM whose facts are embedded. */
async function started(): Promise<Scene> {
  const store = new RamStore(manualClock());
  onTestFinished(() => store[Symbol.asyncDispose]());
  const scene = sceneOf(store);
  scene.index.start();
  return scene;
}

async function inFile(folder = tempFolder()): Promise<Scene> {
  return sceneOf(await openFileStore(folder, manualClock()));
}

afterEach(() => vi.useRealTimers());

describe('embedding facts in the background (R-MEAN-14)', () => {
  test('a stored fact is found by its meaning soon after its write, and the write does not wait', async () => {
    const { embedder, put, idle, ask } = await started();
    const gate = Promise.withResolvers<void>();
    embedder.work = () => gate.promise;
    await put('bikes/garage', 'the bicycle stands in the cellar');
    await put('tea', 'green leaves from Kyoto');
    gate.resolve();
    await idle();
    expect(await ask('where is the bicycle', me, 1)).toEqual(['bikes/garage']);
    expect(embedder.facts.toSorted()).toEqual(['bikes garage: the bicycle stands in the cellar', 'tea: green leaves from Kyoto']);
  });

  test('facts from before the start are embedded, the newest first, and namespaces take turns', async () => {
    const store = new RamStore(manualClock());
    onTestFinished(() => store[Symbol.asyncDispose]());
    const { index, embedder, put, idle } = sceneOf(store);
    for (let at = 0; at < 200; at += 1) await put(`mine/${at}`);
    for (let at = 0; at < 200; at += 1) await put(`yours/${at}`, undefined, you);
    index.start();
    await idle();
    const mine = embedder.facts.filter((text) => text.startsWith('mine')).map((text) => Number(text.split(/[ :]/)[1]));
    expect(mine).toEqual(Array.from({ length: 200 }, (_, at) => 199 - at));
    const owners = embedder.calls.map(({ texts }) => texts[0]?.split(' ')[0]);
    const turns = owners.filter((owner, at) => owner !== owners[at - 1]);
    expect(turns).toEqual(['mine', 'yours', 'mine', 'yours']);
  });

  test('a new fact of another namespace does not wait for an import', async () => {
    const { embedder, put, idle } = await started();
    embedder.work = () => delay(10);
    await Promise.all(Array.from({ length: 200 }, (_, at) => put(`mine/${at}`)));
    await vi.waitFor(() => expect(embedder.calls.length).toBeGreaterThan(2));
    const before = embedder.calls.length;
    await put('yours', 'one fact', you);
    await idle();
    const turn = embedder.calls.findIndex(({ texts }) => texts.includes('yours: one fact'));
    expect(turn - before).toBeLessThanOrEqual(2 * 8);
    expect(embedder.facts).toHaveLength(201);
    expect(new Set(embedder.facts).size).toBe(201);
  });

  test('a new fact goes before the old ones', async () => {
    const store = new RamStore(manualClock());
    onTestFinished(() => store[Symbol.asyncDispose]());
    const { index, embedder, put, idle } = sceneOf(store);
    for (let at = 0; at < 100; at += 1) await put(`old/${at}`);
    embedder.work = () => delay(30);
    index.start();
    await vi.waitFor(() => expect(embedder.calls.length).toBeGreaterThan(1));
    const before = embedder.calls.length;
    await put('new', 'the news');
    await idle();
    const turn = embedder.calls.findIndex(({ texts }) => texts.includes('new: the news'));
    expect(turn - before).toBeLessThanOrEqual(8);
    expect(embedder.calls.length - turn).toBeGreaterThan(40);
  });

  test('a subject that always stores new facts does not stop the old ones of another', async () => {
    const store = new RamStore(manualClock());
    onTestFinished(() => store[Symbol.asyncDispose]());
    const { index, embedder, put, idle } = sceneOf(store);
    for (let at = 0; at < 200; at += 1) await put(`old/${at}`, undefined, you);
    let [old, stored] = [0, 0];
    // Stores a new fact while each new fact is embedded, until all old ones have been.
    embedder.work = async ([text = '']) => {
      if (text.startsWith('old')) old += 1;
      else if (old < 200 && stored < 1000) await put(`new/${(stored += 1)}`);
      await delay(1);
    };
    index.start();
    await put('new/0');
    await idle();
    expect(old).toBe(200);
    expect(stored).toBeGreaterThan(10);
    expect(stored).toBeLessThan(200);
  });

  test('a fact is embedded once, also if it is renewed, and again if it changes', async () => {
    const { store, embedder, put, idle, ask } = await started();
    await put('tea', 'green');
    await idle();
    await put('tea', 'green');
    await store.space(me, 'fact').change('tea', { author: aDraft().author, lifetime: HOUR });
    await delay(60);
    expect(embedder.facts).toEqual(['tea: green']);
    await put('tea', 'black');
    await idle();
    expect(embedder.facts).toEqual(['tea: green', 'tea: black']);
    expect(await ask('black')).toEqual(['tea']);
  });

  test('the best window of a long fact counts', async () => {
    const { put, idle, ask } = await started();
    const filler = Array.from({ length: 120 }, (_, at) => `filler${at}`).join(' ');
    await put('long', `${filler}. The locksmith is called Meinders. ${filler}`);
    await put('short', 'filler5 locksmith');
    await put('other', 'nothing of it');
    await idle();
    expect((await ask('locksmith called Meinders', me, 2))?.toSorted()).toEqual(['long', 'short']);
  });

  test('the work resumes after a restart with the facts that have no vector', async () => {
    const folder = tempFolder();
    const first = await inFile(folder);
    await Promise.all(Array.from({ length: 150 }, (_, at) => first.put(`fact/${at}`)));
    const stop = Promise.withResolvers<void>();
    first.embedder.work = () => (first.embedder.calls.length === 140 ? stop.promise : undefined);
    first.index.start();
    await vi.waitFor(() => expect(first.embedder.calls).toHaveLength(140));
    first.index[Symbol.dispose]();
    stop.resolve();
    await first.store[Symbol.asyncDispose]();
    const again = await inFile(folder);
    expect(await again.index.progress()).toEqual({ done: 128, total: 150 });
    again.index.start();
    await again.idle();
    expect(again.embedder.facts).toHaveLength(22);
    expect(await again.ask('fact 7', me, 1)).toEqual(['fact/7']);
  });

  test('a memory that a version without vectors wrote gets them', async () => {
    const folder = tempFolder();
    copyFileSync(join(import.meta.dirname, '../../fixtures/memory-v2.db'), join(folder, 'memory.db'));
    const { index, idle, ask } = await inFile(folder);
    expect(await ask('Svelte')).toEqual([]);
    index.start();
    await idle();
    expect(await ask('frontend framework Svelte', me, 1)).toEqual(['preferences/frontend-framework']);
  });

  test('without a start, stored vectors answer, and nothing is embedded', async () => {
    const folder = tempFolder();
    const first = await inFile(folder);
    await first.put('tea', 'green');
    first.index.start();
    await first.idle();
    await first.store[Symbol.asyncDispose]();
    const command = await inFile(folder);
    await command.put('coffee', 'green beans');
    expect(await command.ask('green')).toEqual(['tea']);
    await delay(60);
    expect(command.embedder.facts).toEqual([]);
  });
});

describe('vectors in RAM (R-MEAN-15)', () => {
  test('a changed or forgotten fact is not found by its earlier meaning, also while vectors are loaded', async () => {
    const { store, embedder, put, idle, ask, index } = await started();
    for (let at = 0; at < 300; at += 1) await put(`fact/${at}`, `matter ${at}`);
    await idle();
    // The vectors are loaded by the first question, and these facts change meanwhile.
    const gate = Promise.withResolvers<void>();
    embedder.work = (texts) => (texts.includes('matter 7') ? gate.promise : undefined);
    const asked = index.nearest(me, 'matter 7', { limit: 300 });
    await store.forget('me', { kinds: ['fact'], key: 'fact/7' });
    await put('fact/8', 'something else');
    gate.resolve();
    const nearest = await asked;
    expect(nearest?.rows).toHaveLength(298);
    await idle();
    expect(await ask('matter 7', me, 300)).not.toContain('fact/7');
    expect(await ask('something else', me, 1)).toEqual(['fact/8']);
    await store.forget('me', { kinds: ['fact'] });
    expect(await ask('matter 9', me, 300)).toEqual([]);
    expect(index.bytes).toBeLessThan(20_000);
  });

  test.each([
    { how: 'all', left: 0 },
    { how: 'facts', left: 0 },
    { how: 'key:area 1/1', left: 499 },
    { how: 'prefix:area 1/', left: 333 },
    { how: 'category:odd', left: 250 },
    { how: 'tag:tag2', left: 400 },
    { how: 'client:client 1', left: 250 },
    { how: 'an expiry', left: 375 },
    { how: 'an undo', left: 400 },
  ])('none of 500 facts stays after $how', async ({ how, left }) => {
    const clock = manualClock();
    const store = await openFileStore(tempFolder(), clock);
    const { index, idle, ask } = sceneOf(store);
    const space = store.space(me, 'fact');
    const client = (at: number): string => (at < 400 ? `client ${at % 2}` : 'undone');
    await Promise.all(
      Array.from({ length: 500 }, (_, at) =>
        space.put(
          aDraft({
            key: `area ${at % 3}/${at}`,
            value: `marker${at}`,
            category: at % 2 ? 'odd' : 'even',
            tags: [`tag${at % 5}`],
            author: { ...anAuthor, client: how === 'an undo' ? client(at) : `client ${at % 2}` },
            lifetime: at % 4 === 0 ? HOUR : 90 * DAY,
          }),
        ),
      ),
    );
    index.start();
    await idle();
    expect(await ask('marker7', me, 500)).toHaveLength(500);
    if (how === 'an expiry') await clock.advance(HOUR + SECOND);
    else if (how === 'an undo') {
      const note = aDraft({ key: 'note', category: 'activity' });
      for (let at = 400; at < 500; at += 1) {
        await space.revert(`area ${at % 3}/${at}`, { client: 'undone', since: 0 }, { ...note, key: `note ${at}` });
      }
    } else await store.forget('me', selectionOf(ForgetInput().parse({ scope: how }).scope));
    expect(await space.count()).toBe(left);
    const found = (await index.nearest(me, 'marker7', { limit: 500 }))?.rows ?? [];
    expect(found).toHaveLength(left);
    const { facts } = await store.vectors.read(
      me,
      'no model',
      found.map(({ row }) => row),
    );
    expect(facts).toHaveLength(left);
  });

  test('a fact that is forgotten while it is embedded leaves no vector', async () => {
    const { store, embedder, put, ask, idle } = await started();
    const gate = Promise.withResolvers<void>();
    embedder.work = () => gate.promise;
    await put('secret', 'the plan');
    await vi.waitFor(() => expect(embedder.calls).toHaveLength(1));
    await store.forget('me', { kinds: ['fact'], key: 'secret' });
    await put('other', 'another plan');
    gate.resolve();
    await idle();
    expect(await ask('the plan')).toEqual(['other']);
    expect(await store.vectors.count(me, 'words-1')).toBe(1);
  });

  test('the text of a fact that is forgotten while it waits is not sent to the model any more', async () => {
    const { store, embedder, put, idle } = await started();
    const gate = Promise.withResolvers<void>();
    embedder.work = () => gate.promise;
    const embed = vi.spyOn(embedder, 'embed');
    await Promise.all([put('runs', 'the plan'), put('waits', 'the plan'), put('changes', 'before'), put('stays')]);
    await vi.waitFor(() => expect(embedder.facts).toEqual(['runs: the plan']));
    await store.forget('me', { kinds: ['fact'], key: 'waits' });
    await put('changes', 'after');
    expect(embed.mock.calls[0]?.[1].signal?.aborted).toBe(false);
    await store.forget('me', { kinds: ['fact'], key: 'runs' });
    // The texts of a long fact that have not reached the model are dropped.
    expect(embed.mock.calls[0]?.[1].signal?.aborted).toBe(true);
    gate.resolve();
    await idle();
    expect(embedder.facts.toSorted()).toEqual(['changes: after', 'runs: the plan', 'stays: stays']);
    expect(await store.vectors.count(me, 'words-1')).toBe(2);
  });

  test('a fact that is forgotten while its stored vector is read has left RAM', async () => {
    const { store, index, put, idle, ask } = await started();
    await put('secret', 'the plan');
    await idle();
    const read = store.vectors.read.bind(store.vectors);
    const wasRead = Promise.withResolvers<void>();
    vi.spyOn(store.vectors, 'read').mockImplementationOnce(async (...query) => {
      const result = await read(...query);
      expect(result.vectors).toHaveLength(1);
      await store.forget('me', { kinds: ['fact'], key: 'secret' });
      wasRead.resolve();
      return result;
    });
    // A renewal, while the vectors are not in RAM.
    await put('secret', 'the plan');
    await index.nearest(me, 'the plan', { limit: 1 });
    await wasRead.promise;
    await delay(20);
    expect(await ask('the plan')).toEqual([]);
  });

  test('the model is warm after an answer, and stays loaded for half an hour after a brief (R-BRIEF-11)', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { index, embedder } = sceneOf(new RamStore(manualClock()));
    const warmed = (): number => embedder.facts.filter((text) => text === 'warm').length;
    expect(index.isWarm).toBe(false);
    index.warm(me);
    await vi.waitFor(() => expect(index.isWarm).toBe(true));
    index.warm(me);
    expect(warmed()).toBe(1);
    await vi.advanceTimersByTimeAsync(20 * MINUTE);
    expect(index.isWarm).toBe(true);
    expect(warmed()).toBe(6);
    index.warm(me);
    await vi.advanceTimersByTimeAsync(29 * MINUTE);
    expect(index.isWarm).toBe(true);
    const asked = warmed();
    await vi.advanceTimersByTimeAsync(60 * MINUTE);
    expect(index.isWarm).toBe(false);
    expect(warmed()).toBeLessThanOrEqual(asked + 1);
    expect(vi.getTimerCount()).toBe(0);
    embedder.work = () => Promise.reject(new Failure('embeddings_unavailable', 'It fails.'));
    index.warm(me);
    await delay(20);
    expect(index.isWarm).toBe(false);
    expect(vi.getTimerCount()).toBe(1);
    embedder.model = undefined;
    expect(vi.getTimerCount()).toBe(0);
    index.warm(me);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a lock drops them, releases the model and ends questions; an unlock continues the work', async () => {
    const { store, index, embedder, put, idle, ask } = await inFile();
    index.start();
    for (let at = 0; at < 20; at += 1) await put(`fact/${at}`);
    await idle();
    expect(await ask('fact 7', me, 1)).toEqual(['fact/7']);
    expect(index.bytes).toBeGreaterThan(1000);
    const nearest = await index.nearest(me, 'fact 7', { limit: 1 });
    const row = nearest?.rows[0]?.row ?? 0;
    expect(nearest?.cosine(row)).toBeGreaterThan(0.9);
    const gate = Promise.withResolvers<void>();
    embedder.work = () => gate.promise;
    const waiting = ask('fact 7');
    store.lock();
    gate.resolve();
    expect(await waiting).toBeUndefined();
    expect([index.bytes, embedder.released, nearest?.cosine(row)]).toEqual([0, 1, undefined]);
    expect(await ask('fact 7')).toBeUndefined();
    await store.unlock();
    await put('after', 'the lock');
    await idle();
    expect(await ask('the lock', me, 1)).toEqual(['after']);
  });

  test('the largest namespaces in use give way, and one that is too large is answered in part', async () => {
    const store = new RamStore(manualClock());
    onTestFinished(() => store[Symbol.asyncDispose]());
    const { index, put, idle, ask } = sceneOf(store, new WordEmbedder(), [40_000]);
    index.start();
    for (let at = 0; at < 210; at += 1) await put(`mine/${at}`);
    for (let at = 0; at < 500; at += 1) await put(`yours/${at}`, undefined, you);
    await idle();
    expect(await ask('mine 7', me, 1)).toEqual(['mine/7']);
    const nearest = await index.nearest(you, 'yours 499', { limit: 500 });
    expect(nearest?.partial).toBe(true);
    expect(nearest?.rows.length).toBeGreaterThanOrEqual(200);
    expect(nearest?.rows.length).toBeLessThan(500);
    // The newest facts are in RAM.
    expect(await ask('yours 499', you, 1)).toEqual(['yours/499']);
    expect(index.bytes).toBeLessThan(70_000);
    expect(await ask('mine 7', me, 1)).toEqual(['mine/7']);
  });

  test('idle namespaces are dropped when the next one is asked', async () => {
    const store = new RamStore(manualClock());
    onTestFinished(() => store[Symbol.asyncDispose]());
    const { index, put, idle, ask } = sceneOf(store, new WordEmbedder(), [1e9, 1]);
    index.start();
    await put('mine');
    await put('yours', undefined, you);
    await idle();
    await ask('mine');
    const one = index.bytes;
    const later = performance.now() + 11 * MINUTE;
    vi.spyOn(performance, 'now').mockReturnValue(later);
    await ask('yours', you);
    vi.restoreAllMocks();
    expect(index.bytes).toBe(one);
  });

  test('all are made again if the owner turns search by meaning off and on at once', async () => {
    const { store, index, embedder, put, idle } = await inFile();
    for (let at = 0; at < 500; at += 1) await put(`fact/${at}`);
    index.start();
    await idle();
    const clear = store.vectors.clear.bind(store.vectors);
    vi.spyOn(store.vectors, 'clear').mockImplementationOnce(async () => {
      // Some vectors are stored again before the last ones are deleted.
      embedder.model = { id: 'words-1', dimensions: 64 };
      await idle();
      await clear();
    });
    embedder.model = undefined;
    await index.turnOff();
    await idle();
    expect(await store.vectors.count(me, 'words-1')).toBe(500);
  });

  test('all are deleted with the setting, and made again when the model is back (R-MEAN-11)', async () => {
    const { store, index, embedder, put, idle, ask } = await started();
    for (let at = 0; at < 20; at += 1) await put(`fact/${at}`);
    await idle();
    await ask('fact 7');
    embedder.model = undefined;
    await index.turnOff();
    expect([index.bytes, await store.vectors.count(me, 'words-1')]).toEqual([0, 0]);
    expect(await ask('fact 7')).toBeUndefined();
    await put('while off', 'the model is off');
    await delay(60);
    expect(await store.vectors.count(me, 'words-1')).toBe(0);
    embedder.model = { id: 'words-1', dimensions: 64 };
    await idle();
    expect(await ask('the model is off', me, 1)).toEqual(['while off']);
    await index.rebuild();
    await idle();
    expect(embedder.facts).toHaveLength(20 + 21 + 21);
  });
});

describe('questions', () => {
  test('compare facts with the question and with each other (R-MEAN-16)', async () => {
    const { index, put, idle } = await started();
    await put('a', 'the red door');
    await put('b', 'the red door');
    await put('c', 'tax forms of 2025');
    await idle();
    const nearest = await index.nearest(me, '  a the red door ', { limit: 2 });
    const [first, second] = nearest?.rows ?? [];
    expect(nearest).toMatchObject({ partial: false, rows: [{}, {}] });
    expect(first?.cosine).toBeCloseTo(1, 1);
    expect(nearest?.cosine(first?.row ?? 0)).toBeCloseTo(first?.cosine ?? NaN, 5);
    expect(nearest?.similarity(first?.row ?? 0, second?.row ?? 0)).toBeGreaterThan(0.6);
    expect([nearest?.cosine(12_345), nearest?.similarity(12_345, first?.row ?? 0)]).toEqual([undefined, undefined]);
  });

  test('are answered in part while facts wait for their vectors', async () => {
    const { index, embedder, put, idle } = await started();
    await put('a', 'the red door');
    await idle();
    const gate = Promise.withResolvers<void>();
    embedder.work = (texts) => (texts[0]?.startsWith('b:') ? gate.promise : undefined);
    await put('b', 'the blue door');
    expect(await index.nearest(me, 'door', { limit: 5 })).toMatchObject({ partial: true, rows: [{}] });
    gate.resolve();
    await idle();
    expect(await index.nearest(me, 'door', { limit: 5 })).toMatchObject({ partial: false, rows: [{}, {}] });
  });

  test('are not asked without a text, and see only their namespace', async () => {
    const { index, put, idle, ask, embedder } = await started();
    await put('a', 'the red door');
    await idle();
    expect(await index.nearest(me, ' \n', { limit: 5 })).toBeUndefined();
    expect(await ask('the red door', you)).toEqual([]);
    expect(await ask('the red door', { subject: 'me', session: 's' })).toEqual([]);
    await ask('x'.repeat(100_000));
    expect(embedder.calls.at(-1)?.texts[0]).toHaveLength(600);
  });

  test('find the only fact of a memory', async () => {
    const { index, put, idle } = await started();
    await put('bikes', 'the bicycle stands in the cellar');
    await idle();
    const nearest = await index.nearest(me, 'where stands the bicycle', { limit: 5 });
    const [only] = nearest?.rows ?? [];
    expect(only?.cosine).toBeGreaterThan(0.3);
    expect(isRelated(only?.cosine, nearest?.background ?? 1)).toBe(true);
  });

  test('of one subject do not delay those of another, and words answer those that are too many (R-MEAN-46)', async () => {
    const { index, embedder, put, idle } = await started();
    await put('a');
    await put('b', undefined, you);
    await idle();
    const gate = Promise.withResolvers<void>();
    embedder.work = () => gate.promise;
    const asked = (text: string, namespace: Namespace) => index.nearest(namespace, text, { limit: 1 });
    const mine = Array.from({ length: 100 }, (_, at) => asked(`mine ${at}`, at % 2 ? me : { subject: 'me', session: `${at}` }));
    const yours = asked('yours', you);
    await vi.waitFor(() => expect(embedder.calls.at(-1)?.texts).toEqual(['yours']));
    expect(embedder.calls.filter(({ urgent }) => urgent)).toHaveLength(3);
    gate.resolve();
    expect(await yours).toBeDefined();
    const answers = await Promise.all(mine);
    expect(answers.filter((answer) => answer !== undefined)).toHaveLength(2 + 16);
    // All places are free again.
    const again = await Promise.all(Array.from({ length: 18 }, (_, at) => asked(`again ${at}`, me)));
    expect(again.filter((answer) => answer === undefined)).toEqual([]);
  });

  test('that wait for a turn end when they are cancelled, and leave their place', async () => {
    const { index, embedder, put, idle } = await started();
    await put('a');
    await idle();
    const gate = Promise.withResolvers<void>();
    embedder.work = () => gate.promise;
    const cancel = new AbortController();
    const [running, waiting] = [undefined, cancel.signal].map((signal) =>
      Array.from({ length: 2 }, () => index.nearest(me, 'a', { limit: 1, ...(signal && { signal }) })),
    );
    const last = index.nearest(me, 'last', { limit: 1 });
    await vi.waitFor(() => expect(embedder.calls.filter(({ urgent }) => urgent)).toHaveLength(2));
    cancel.abort(new Error('cancelled by the client'));
    for (const one of waiting ?? []) expect(await one.catch(() => undefined)).toBeUndefined();
    gate.resolve();
    for (const one of [...(running ?? []), last]) expect(await one).toBeDefined();
    expect(embedder.calls.filter(({ urgent }) => urgent).map(({ texts }) => texts[0])).toEqual(['a', 'a', 'last']);
  });

  test('that the client cancelled end with its reason', async () => {
    const { index, embedder, put, idle } = await started();
    await put('a');
    await idle();
    const cancel = new AbortController();
    embedder.work = () => cancel.abort(new Error('cancelled by the client'));
    await expect(index.nearest(me, 'a', { limit: 1, signal: cancel.signal })).rejects.toThrow('cancelled by the client');
  });
});

describe('failures (R-MEAN-17)', () => {
  test('a failing model fails no question', async () => {
    const { embedder, put, idle, ask } = await started();
    await put('a');
    await idle();
    embedder.work = () => {
      throw new Failure('embeddings_unavailable', 'The model crashed.');
    };
    expect(await ask('a')).toBeUndefined();
  });

  test('work that failed is tried again after a minute, or when the model changes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { store, embedder, put, index } = await started();
    const count = (): Promise<number> => store.vectors.count(me, embedder.model?.id ?? 'words-1');
    const settle = async (): Promise<void> => {
      for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    };
    let fails = true;
    embedder.work = () => {
      if (fails) throw new Failure('embeddings_unavailable', 'The model crashed.');
    };
    await put('a');
    vi.advanceTimersByTime(30);
    await settle();
    for (const key of ['b', 'c', 'd']) await put(key);
    vi.advanceTimersByTime(30);
    await settle();
    // After three failures in a row, nothing is tried for a minute.
    fails = false;
    await put('e');
    vi.advanceTimersByTime(50_000);
    await settle();
    expect([embedder.calls.length, await count()]).toEqual([3, 0]);
    vi.advanceTimersByTime(11_000);
    await settle();
    vi.advanceTimersByTime(1);
    await settle();
    expect(await count()).toBe(5);
    fails = true;
    await put('f');
    vi.advanceTimersByTime(30);
    await settle();
    fails = false;
    embedder.model = { id: 'words-2', dimensions: 32 };
    await settle();
    vi.advanceTimersByTime(1);
    await settle();
    expect(await count()).toBe(6);
    expect(index.bytes).toBe(0);
  });

  test('a text that crashes the model is skipped after two attempts, and the other facts are embedded', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { store, embedder, put } = await started();
    embedder.work = (texts) => {
      if (texts.some((text) => text.includes('poison'))) throw new Failure('embeddings_unavailable', 'The model crashed.');
    };
    for (let at = 0; at < 20; at += 1) await put(at === 13 ? 'poison' : `fact/${at}`);
    vi.advanceTimersByTime(30);
    for (let turn = 0; turn < 400; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    // The other facts do not wait for the next attempt.
    expect(await store.vectors.count(me, 'words-1')).toBe(19);
    for (let minute = 0; minute < 6; minute += 1) {
      vi.advanceTimersByTime(61_000);
      for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(1);
      for (let turn = 0; turn < 400; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await store.vectors.count(me, 'words-1')).toBe(19);
    const attempts = (): number => embedder.facts.filter((text) => text.includes('poison')).length;
    expect(attempts()).toBe(2);
    // When the same model is back, the text is not tried again, until it changes.
    embedder.model = undefined;
    embedder.model = { id: 'words-1', dimensions: 64 };
    vi.advanceTimersByTime(1);
    for (let turn = 0; turn < 400; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(attempts()).toBe(2);
    await put('poison', 'changed');
    vi.advanceTimersByTime(30);
    for (let turn = 0; turn < 400; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(attempts()).toBeGreaterThan(2);
  });

  test('a model that is busy with other clients says nothing about a fact', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { store, embedder, put } = await started();
    embedder.work = () => {
      if (embedder.calls.length <= 4) throw new Failure('rate_limited', 'Too many requests.');
    };
    await put('a');
    for (let minute = 0; minute < 5; minute += 1) {
      vi.advanceTimersByTime(61_000);
      for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(1);
      for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    }
    expect([embedder.calls.length, await store.vectors.count(me, 'words-1')]).toEqual([5, 1]);
  });

  test('a text that makes the model unavailable does so twice', async () => {
    const { store, embedder, put } = await started();
    let crashes = 0;
    embedder.work = ([text = '']) => {
      if (!text.includes('poison')) return;
      crashes += 1;
      const failure = new Failure('embeddings_unavailable', 'The model crashed.');
      queueMicrotask(() => (embedder.model = undefined));
      setTimeout(() => (embedder.model = { id: 'words-1', dimensions: 64 }), 20);
      throw failure;
    };
    for (let at = 0; at < 20; at += 1) await put(at === 13 ? 'poison' : `fact/${at}`);
    await vi.waitFor(async () => expect(await store.vectors.count(me, 'words-1')).toBe(19), { timeout: 5000 });
    await delay(200);
    expect(crashes).toBe(2);
    await put('after');
    await vi.waitFor(async () => expect(await store.vectors.count(me, 'words-1')).toBe(20));
  });

  test('vectors of another length are not stored', async () => {
    const { store, embedder, put } = await started();
    const embed = vi.spyOn(embedder, 'embed');
    embed.mockImplementation((texts) => Promise.resolve(texts.map(() => new Float32Array(7))));
    await put('a');
    await delay(100);
    expect(await store.vectors.count(me, 'words-1')).toBe(0);
    expect(embed).toHaveBeenCalled();
  });

  test('two models of different dimensions, switched back and forth, are never mixed', async () => {
    const { store, embedder, put, idle, ask } = await started();
    for (let at = 0; at < 20; at += 1) await put(`fact/${at}`);
    await idle();
    for (const model of [
      { id: 'words-2', dimensions: 32 },
      { id: 'words-1', dimensions: 64 },
      { id: 'words-2', dimensions: 32 },
    ]) {
      embedder.model = model;
      await idle();
      expect(await ask('fact 7', me, 1)).toEqual(['fact/7']);
      expect(await store.vectors.count(me, model.id)).toBe(20);
    }
  });
});
