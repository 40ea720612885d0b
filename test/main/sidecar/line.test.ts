import { describe, expect, test } from 'vitest';
import { Line } from '../../../src/main/sidecar/line.ts';

const never = new AbortController().signal;

/** Steps that end when they are told to, and the order in which they began. */
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

describe('the line before Ollama (R-EMB-02)', () => {
  test('lets subjects take turns after each step, however many steps one of them has', async () => {
    const line = new Line();
    const { begun, step, end } = steps();
    for (const name of ['long 1', 'long 2', 'long 3']) void line.inTurn('greedy', never, step(name));
    void line.inTurn('other', never, step('other 1'));
    void line.inTurn('third', never, step('third 1'));
    void line.inTurn('other', never, step('other 2'));
    for (let time = 0; time < 6; time += 1) await end();
    expect(begun).toEqual(['long 1', 'long 2', 'other 1', 'third 1', 'long 3', 'other 2']);
    // Nobody waits any more, so who comes is there at once.
    void line.inTurn('late', never, step('late'));
    expect(begun.at(-1)).toBe('late');
  });

  test('is left by who gives up, at once, and goes on behind them', async () => {
    const line = new Line();
    const { begun, step, end } = steps();
    const giveUp = new AbortController();
    void line.inTurn('a', never, step('a'));
    const left = line.inTurn('b', giveUp.signal, step('b'));
    void line.inTurn('b', never, step('b again'));
    giveUp.abort(new Error('It took too long.'));
    await expect(left).rejects.toThrow('too long');
    await end();
    expect(begun).toEqual(['a', 'b again']);
    await expect(line.inTurn('c', giveUp.signal, step('c'))).rejects.toThrow('too long');
    await end();
    await expect(line.inTurn('d', never, async () => 'd')).resolves.toBe('d');
  });

  test('goes on after a step that failed', async () => {
    const line = new Line();
    await expect(line.inTurn('a', never, () => Promise.reject(new Error('It broke.')))).rejects.toThrow('broke');
    await expect(line.inTurn('a', never, async () => 'well')).resolves.toBe('well');
  });
});
