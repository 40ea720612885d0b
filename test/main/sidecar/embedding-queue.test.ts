import { describe, expect, test } from 'vitest';
import { EmbeddingQueue } from '../../../src/main/sidecar/embedding-queue.ts';

const never = new AbortController().signal;

/** Steps that end on command, and the order in which they started. */
function steps() {
  const begun: string[] = [];
  const open: (() => void)[] = [];
  const step = (name: string) => (): Promise<string> => {
    begun.push(name);
    return new Promise((resolve) => open.push(() => resolve(name)));
  };
  const end = async (): Promise<void> => {
    open.shift()?.();
    await new Promise(setImmediate);
  };
  return { begun, step, end };
}

describe('the embedding queue (R-EMB-02)', () => {
  test('alternates between subjects after each step', async () => {
    const line = new EmbeddingQueue();
    const { begun, step, end } = steps();
    for (const name of ['long 1', 'long 2', 'long 3']) void line.runInTurn('greedy', never, step(name));
    void line.runInTurn('other', never, step('other 1'));
    void line.runInTurn('third', never, step('third 1'));
    void line.runInTurn('other', never, step('other 2'));
    for (let time = 0; time < 6; time += 1) await end();
    expect(begun).toEqual(['long 1', 'long 2', 'other 1', 'third 1', 'long 3', 'other 2']);
    // The queue is empty, so a new step starts immediately.
    void line.runInTurn('late', never, step('late'));
    expect(begun.at(-1)).toBe('late');
  });

  test('removes a cancelled request at once and continues with the next', async () => {
    const line = new EmbeddingQueue();
    const { begun, step, end } = steps();
    const giveUp = new AbortController();
    void line.runInTurn('a', never, step('a'));
    const left = line.runInTurn('b', giveUp.signal, step('b'));
    void line.runInTurn('b', never, step('b again'));
    giveUp.abort(new Error('It took too long.'));
    await expect(left).rejects.toThrow('too long');
    await end();
    expect(begun).toEqual(['a', 'b again']);
    await expect(line.runInTurn('c', giveUp.signal, step('c'))).rejects.toThrow('too long');
    await end();
    await expect(line.runInTurn('d', never, async () => 'd')).resolves.toBe('d');
  });

  test('continues after a failed step', async () => {
    const line = new EmbeddingQueue();
    await expect(line.runInTurn('a', never, () => Promise.reject(new Error('It broke.')))).rejects.toThrow('broke');
    await expect(line.runInTurn('a', never, async () => 'well')).resolves.toBe('well');
  });
});
