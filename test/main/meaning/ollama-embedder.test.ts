import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/core/time/clock.ts';
import { OllamaEmbedder } from '../../../src/main/meaning/ollama-embedder.ts';
import { LazySidecar } from '../../../src/main/sidecar/lazy-sidecar.ts';
import { manualClock } from '../../support/clock.ts';
import type { StandIn } from '../../support/ollama-program.ts';
import { createStandIn } from '../../support/ollama.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** Ollama with the given model, approved by its owner. */
async function openOllama(ollama: StandIn, { model = 'all-minilm', folder = tempFolder(), clock = systemClock } = {}) {
  const sidecar = new LazySidecar({
    folder,
    clock: systemClock,
    settings: { path: ollama.path, model, url: new URL('http://127.0.0.1:1') },
    machine: { environment: {}, platform: process.platform, home: () => folder },
    timeouts: { ready: 15_000, embed: 15_000, retryDelays: [100], stopGrace: 1000 },
  });
  onTestFinished(() => sidecar[Symbol.asyncDispose]());
  const ids: (string | undefined)[] = [];
  const embedder = new OllamaEmbedder(sidecar, clock, () => void ids.push(embedder.model?.id));
  onTestFinished(() => embedder[Symbol.dispose]());
  await sidecar.wake();
  const turnOn = async (): Promise<void> => {
    await sidecar.configure({ on: true });
    await expect.poll(() => sidecar.state.at).not.toBe('starting');
    if (sidecar.state.at === 'unapproved') await sidecar.approve((await sidecar.report()).ollama?.sha256 ?? '');
    await expect.poll(() => embedder.state.at).toBe('ready');
  };
  return { sidecar, embedder, ids, turnOn, folder };
}

const embed = (embedder: OllamaEmbedder, ...texts: string[]) => embedder.embed(texts, { urgent: true });

describe('search by meaning with Ollama (R-MEAN-27)', () => {
  test('waits for the owner, and then embeds with the approved Ollama', async () => {
    const ollama = createStandIn({ digest: `sha256:${'1'.repeat(64)}` });
    const { embedder, turnOn, ids } = await openOllama(ollama);
    expect(embedder.model).toBeUndefined();
    expect(embedder.state).toMatchObject({ at: 'failed', trouble: 'ollama', remedy: expect.stringContaining('embeddings on') });
    await expect(embed(embedder, 'a')).rejects.toMatchObject({ code: 'embeddings_unavailable' });
    await turnOn();
    expect(embedder.model).toEqual({ id: `ollama:all-minilm:${'1'.repeat(16)}:384`, dimensions: 384 });
    const [vector, other] = await embed(embedder, 'one', 'the other');
    expect([vector, other].map((each = new Float32Array()) => [each.length, Math.hypot(...each).toFixed(4)])).toEqual([
      [384, '1.0000'],
      [384, '1.0000'],
    ]);
    expect(ids).toEqual([embedder.model?.id]);
  });

  test('names every model by its digest and dimensions, also when two take turns', async () => {
    const ollama = createStandIn({ models: ['all-minilm', 'nomic-embed-text'] });
    const folder = tempFolder();
    const ids: (string | undefined)[] = [];
    for (const model of ['all-minilm', 'nomic-embed-text', 'all-minilm', 'nomic-embed-text']) {
      const { embedder, turnOn, sidecar } = await openOllama(ollama, { folder, model });
      await turnOn();
      const [vector] = await embed(embedder, 'a text');
      ids.push(embedder.model?.id);
      expect(vector).toHaveLength(embedder.model?.dimensions ?? 0);
      await sidecar[Symbol.asyncDispose]();
    }
    expect(ids).toEqual([ids[0], ids[1], ids[0], ids[1]]);
    expect(ids.slice(0, 2)).toEqual([expect.stringMatching(/:384$/), expect.stringMatching(/:768$/)]);
  });

  test('learns the dimensions of an unknown model, and sees another version and another length as new models', async () => {
    const ollama = createStandIn({ models: ['their-own'], digest: 'sha256:aa' });
    const { embedder, turnOn, sidecar } = await openOllama(ollama, { model: 'their-own' });
    await turnOn();
    expect(embedder.model).toEqual({ id: 'ollama:their-own:aa:384', dimensions: 384 });

    ollama.behave({ models: ['their-own'], digest: 'sha256:bb', fault: 'other-dimension' });
    await expect(embed(embedder, 'a text')).rejects.toMatchObject({ code: 'embeddings_unavailable' });
    expect(embedder.model).toBeUndefined();
    expect(embedder.state).toMatchObject({ at: 'failed', why: expect.stringContaining('different length') });
    await sidecar.configure({ on: true });
    await turnOn();
    expect(embedder.model).toEqual({ id: 'ollama:their-own:bb:383', dimensions: 383 });
    expect(await embed(embedder, 'a text')).toMatchObject([{ length: 383 }]);
  });

  test('learns the dimensions also if the memory is locked or the response fails meanwhile', async () => {
    const ollama = createStandIn({ models: ['their-own'], slowMs: 300 });
    const clock = manualClock();
    const { embedder, turnOn, sidecar } = await openOllama(ollama, { model: 'their-own', clock });
    const on = turnOn();
    await expect.poll(() => sidecar.state.at).toBe('ready');
    embedder.release();
    await on;
    expect(embedder.model?.dimensions).toBe(384);

    ollama.behave({ models: ['their-own'], fault: '500' });
    await sidecar.configure({ on: false });
    await sidecar.configure({ on: true });
    await expect.poll(() => ollama.requests().filter((each) => each.includes('/api/embed')).length).toBeGreaterThan(1);
    expect([sidecar.state.at, embedder.state.at]).toEqual(['ready', 'starting']);
    ollama.behave({ models: ['their-own'] });
    await expect
      .poll(async () => {
        await clock.advance(31_000);
        return embedder.state.at;
      })
      .toBe('ready');
  });

  test('does not use a model with vectors that are too long, and says so', async () => {
    const ollama = createStandIn({ models: ['their-own'], fault: 'long-vectors' });
    const { embedder, sidecar } = await openOllama(ollama, { model: 'their-own' });
    await sidecar.configure({ on: true });
    await expect.poll(() => sidecar.state.at).toBe('unapproved');
    await sidecar.approve((await sidecar.report()).ollama?.sha256 ?? '');
    await expect
      .poll(() => embedder.state)
      .toMatchObject({ at: 'failed', why: expect.stringContaining('8192'), remedy: expect.stringContaining('meaning on') });
    expect(embedder.model).toBeUndefined();
    await expect(embed(embedder, 'a text')).rejects.toMatchObject({ code: 'embeddings_unavailable' });
  });

  test('is not delayed by a client whose subject is called like this part of the program', async () => {
    const ollama = createStandIn({ slowMs: 100 });
    const { embedder, sidecar, turnOn } = await openOllama(ollama);
    await turnOn();
    const flood = Array.from({ length: 16 }, () => sidecar.embed('meaning', ['text']));
    expect(await embed(embedder, 'a text')).toHaveLength(1);
    await Promise.allSettled(flood);
  });

  test('names the reason while Ollama is gone, and comes back with it', async () => {
    const ollama = createStandIn();
    const { embedder, turnOn } = await openOllama(ollama);
    await turnOn();
    const { id } = embedder.model ?? {};
    ollama.behave({ fault: 'crashes' });
    await expect(embed(embedder, 'a text')).rejects.toMatchObject({
      code: 'embeddings_unavailable',
      message: expect.stringContaining('Ollama'),
    });
    expect(embedder.model).toBeUndefined();
    ollama.behave({});
    await expect.poll(() => embedder.state.at).toBe('ready');
    expect(embedder.model?.id).toBe(id);
    expect(await embed(embedder, 'a text')).toHaveLength(1);
  });

  test('puts a question before facts, and a release drops all of them', async () => {
    const ollama = createStandIn({ slowMs: 30 });
    const { embedder, turnOn } = await openOllama(ollama);
    await turnOn();
    const done: string[] = [];
    const facts = embedder.embed(['a', 'b', 'c', 'd'], { urgent: false }).then(() => done.push('facts'));
    const question = embed(embedder, 'question').then(() => done.push('question'));
    await Promise.all([facts, question]);
    expect(done).toEqual(['question', 'facts']);
    const dropped = embedder.embed(['a', 'b'], { urgent: false });
    embedder.release();
    await expect(dropped).rejects.toMatchObject({ message: expect.stringContaining('unloaded') });
    expect(await embed(embedder, 'a text')).toHaveLength(1);
  });
});
