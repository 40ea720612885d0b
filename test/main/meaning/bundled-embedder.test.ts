import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { manualClock, MINUTE, SECOND, settle } from '../../support/clock.ts';
import { copyModel, fakeModel, openBundled } from './models.ts';

const QUESTION = 'how do I get into the building at night?';
const ANSWER = 'After-hours entry at HQ is through the loading dock';

const cosine = (one: ArrayLike<number> = [], other: ArrayLike<number> = []): number =>
  Array.from(one).reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);

describe('the real model', () => {
  test('brings texts with one meaning close together, without a shared word (R-MEAN-20)', async () => {
    const { embedder } = openBundled();
    expect(embedder.model).toEqual({ id: 'bundled:minilm-l6-v2', dimensions: 384 });
    const [question, answer, other] = await embedder.embed([QUESTION, ANSWER, 'The cat sleeps in the kitchen'], { urgent: true });
    expect(question).toHaveLength(384);
    expect(cosine(question, question)).toBeCloseTo(1, 5);
    expect(cosine(question, answer)).toBeGreaterThan(cosine(question, other) + 0.15);
  });

  test('embeds every text: empty, broken Unicode, 64 KiB (R-MEAN-20)', async () => {
    const { embedder } = openBundled();
    const texts = ['', '\u{d800} half', 'word and more '.repeat(4600), '漢字'.repeat(10_000), '\0'];
    const vectors = await embedder.embed(texts, { urgent: false });
    expect(vectors.map((vector) => Math.hypot(...vector).toFixed(4))).toEqual(texts.map(() => '1.0000'));
    expect(await embedder.embed([], { urgent: true })).toEqual([]);
  });

  test.for([
    ['weights', 'truncated', 'model.fp16.safetensors'],
    ['tokenizer', 'replaced', 'tokenizer.json'],
    ['wasm', 'truncated', 'engine_bg.wasm'],
    ['engine', 'replaced', 'engine.cjs'],
  ] as const)('is not loaded if its file %s is %s (R-MEAN-24)', async ([file, damage, name]) => {
    const { embedder, changes } = openBundled({ files: copyModel({ [file]: damage }) });
    await expect(embedder.embed([QUESTION], { urgent: true })).rejects.toMatchObject({
      code: 'embeddings_unavailable',
      message: expect.stringMatching(new RegExp(`${name}.*Install Helmdeck Memory again`)),
    });
    expect(embedder.state).toMatchObject({ at: 'failed', trouble: 'damaged', remedy: expect.stringContaining('meaning on') });
    expect(embedder.model).toBeUndefined();
    expect(changes).toEqual([undefined]);
    // Nothing is tried again by itself.
    await expect(embedder.embed([QUESTION], { urgent: true })).rejects.toMatchObject({ code: 'embeddings_unavailable' });
  });

  test('gives its memory back when it is released, and loads again (R-MEAN-21)', async () => {
    const { embedder } = openBundled();
    await embedder.embed([QUESTION], { urgent: true });
    embedder.release();
    const before = process.memoryUsage.rss();
    await embedder.embed([QUESTION, ANSWER], { urgent: true });
    embedder.release();
    await wait(100);
    expect(process.memoryUsage.rss() - before).toBeLessThan(10_000_000);
  });
});

describe('the order of texts (R-MEAN-22)', () => {
  test('puts a question before the texts of facts, which take turns', async () => {
    const { launch, started } = fakeModel();
    const { embedder } = openBundled({ launch, clock: manualClock() });
    const facts = embedder.embed(['a1', 'a2', 'a3'], { urgent: false });
    const others = embedder.embed(['b1', 'b2'], { urgent: false });
    await settle();
    const question = embedder.embed(['question'], { urgent: true });
    for (let texts = 0; texts < 6; texts += 1) {
      started[0]?.vector();
      await settle();
    }
    await Promise.all([facts, others, question]);
    expect(started[0]?.texts).toEqual(['a1', 'question', 'a2', 'b1', 'a3', 'b2']);
  });

  test('drops the texts of a cancelled call', async () => {
    const { launch, started } = fakeModel();
    const { embedder } = openBundled({ launch, clock: manualClock() });
    const cancel = new AbortController();
    const cancelled = embedder.embed(['a1', 'a2', 'a3'], { urgent: false, signal: cancel.signal });
    const other = embedder.embed(['b1'], { urgent: false });
    await settle();
    cancel.abort(new Error('enough'));
    await expect(cancelled).rejects.toThrow('enough');
    started[0]?.vector();
    await settle();
    started[0]?.vector();
    await other;
    expect(started[0]?.texts).toEqual(['a1', 'b1']);
    await expect(embedder.embed(['c'], { urgent: true, signal: cancel.signal })).rejects.toThrow('enough');
  });
});

describe('the process of the model', () => {
  test('starts on first use, and ends after five idle minutes (R-MEAN-21)', async () => {
    const clock = manualClock();
    const { launch, started } = fakeModel();
    const { embedder } = openBundled({ launch, clock });
    expect([started.length, clock.pendingTimers]).toEqual([0, 0]);
    const first = embedder.embed(['one'], { urgent: true });
    await settle();
    started[0]?.vector();
    await first;
    await clock.advance(4 * MINUTE);
    const second = embedder.embed(['two'], { urgent: true });
    await settle();
    started[0]?.vector();
    await second;
    await clock.advance(5 * MINUTE - SECOND);
    expect(started.map(({ killed }) => killed)).toEqual([false]);
    await clock.advance(SECOND);
    expect(started.map(({ killed }) => killed)).toEqual([true]);
    expect(clock.pendingTimers).toBe(0);
    expect(embedder.model).toBeDefined();
  });

  test('is killed by a release, which rejects the waiting calls (R-MEAN-21)', async () => {
    const { launch, started } = fakeModel();
    const clock = manualClock();
    const { embedder } = openBundled({ launch, clock });
    const pending = [embedder.embed(['one'], { urgent: true }), embedder.embed(['two'], { urgent: false })];
    await settle();
    embedder.release();
    for (const call of pending) {
      await expect(call).rejects.toMatchObject({ code: 'embeddings_unavailable', message: expect.stringContaining('unloaded') });
    }
    expect(started[0]?.killed).toBe(true);
    const next = embedder.embed(['three'], { urgent: true });
    await settle();
    started[1]?.vector();
    expect(await next).toHaveLength(1);
  });

  test('is started again after a crash, and the text is tried once more (R-MEAN-23)', async () => {
    const { launch, started } = fakeModel();
    const { embedder, changes } = openBundled({ launch, clock: manualClock() });
    const pending = Promise.all([embedder.embed(['one'], { urgent: false }), embedder.embed(['two'], { urgent: false })]);
    await settle();
    started[0]?.exit();
    await settle();
    started[1]?.vector();
    await settle();
    started[1]?.vector();
    await pending;
    expect(started[1]?.texts).toEqual(['one', 'two']);
    expect(changes).toEqual([]);
  });

  test('is not sent the text of a cancelled call again after a crash', async () => {
    const { launch, started } = fakeModel();
    const { embedder } = openBundled({ launch, clock: manualClock() });
    const cancel = new AbortController();
    const forgotten = embedder.embed(['forgotten'], { urgent: false, signal: cancel.signal });
    const other = embedder.embed(['other'], { urgent: false });
    await settle();
    cancel.abort(new Error('enough'));
    await expect(forgotten).rejects.toThrow('enough');
    started[0]?.exit();
    await settle();
    started[1]?.vector();
    expect(await other).toHaveLength(1);
    expect(started.map(({ texts }) => texts)).toEqual([['forgotten'], ['other']]);
  });

  test('fails clearly after two crashes in a row, and is tried again later and later (R-MEAN-23)', async () => {
    const clock = manualClock();
    const { launch, started } = fakeModel();
    const { embedder, changes } = openBundled({ launch, clock });
    const crash = async (starts: number): Promise<void> => {
      const pending = embedder.embed(['one'], { urgent: true });
      pending.catch(() => undefined);
      for (let time = 0; time < starts; time += 1) {
        await settle();
        started.at(-1)?.exit();
      }
      await expect(pending).rejects.toMatchObject({
        code: 'embeddings_unavailable',
        message: expect.stringContaining('started again automatically'),
        retryAfter: expect.any(Number),
      });
    };
    await crash(2);
    expect(embedder.state).toMatchObject({ at: 'failed', trouble: 'crashed', retry_at: expect.any(String) });
    expect(embedder.model).toBeUndefined();
    // While it waits, it does not start, and calls fail at once.
    await expect(embedder.embed(['two'], { urgent: true })).rejects.toMatchObject({ retryAfter: 5 });
    expect(started).toHaveLength(2);
    await clock.advance(5 * SECOND);
    expect(embedder.model).toBeDefined();
    await crash(1);
    await clock.advance(29 * SECOND);
    expect(embedder.model).toBeUndefined();
    await clock.advance(SECOND);
    expect(changes.map((id) => id !== undefined)).toEqual([false, true, false, true]);
    const works = embedder.embed(['one'], { urgent: true });
    await settle();
    started.at(-1)?.vector();
    await works;
  });

  test('that does not answer for a minute is killed (R-MEAN-23)', async () => {
    const clock = manualClock();
    const { launch, started } = fakeModel();
    const { embedder } = openBundled({ launch, clock });
    const pending = embedder.embed(['one'], { urgent: true });
    pending.catch(() => undefined);
    await settle();
    await clock.advance(MINUTE);
    await clock.advance(MINUTE);
    await expect(pending).rejects.toMatchObject({ message: expect.stringContaining('does not respond') });
    expect(started.map(({ killed }) => killed)).toEqual([true, true]);
  });

  test('that is not installed is named with a remedy (R-MEAN-24)', async () => {
    const { embedder } = openBundled({ files: undefined });
    expect(embedder.state).toMatchObject({ at: 'failed', trouble: 'not_installed', remedy: expect.stringContaining('--ollama') });
    await expect(embedder.embed(['one'], { urgent: true })).rejects.toMatchObject({ code: 'embeddings_unavailable' });
  });
});
