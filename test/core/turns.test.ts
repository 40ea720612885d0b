import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { Turns } from '../../src/core/turns.ts';

/** Work that leaves nobody else a moment. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Asks as a program does, and works when it is its turn. */
function asker(turns: Turns, served: string[]) {
  return async (subject: string, steps = 1, ms = 10): Promise<void> => {
    const turn = turns.begin(subject);
    if (turn) await turn;
    for (let step = 0; step < steps; step += 1) {
      if (step > 0) await turns.next(subject);
      work(ms);
      served.push(subject);
    }
  };
}

describe('whoever asks (R-HTTP-14)', () => {
  test('goes on at once while there is little to do', async () => {
    const turns = new Turns();
    const time = vi.spyOn(performance, 'now').mockReturnValue(1000);
    for (let turn = 0; turn < 3; turn += 1) {
      for (let n = 0; n < 50; n += 1) expect(turns.begin('me')).toBeUndefined();
      await nextTurn();
      time.mockReturnValue(2000 + turn);
    }
  });

  test('often waits for those who ask once', async () => {
    const turns = new Turns();
    const served: string[] = [];
    const ask = asker(turns, served);
    const all = Array.from({ length: 20 }, () => ask('greedy'));
    await nextTurn();
    all.push(ask('modest'), ask('another'));
    await Promise.all(all);
    expect(served).toHaveLength(22);
    expect(served.indexOf('modest')).toBeLessThanOrEqual(4);
    expect(served.indexOf('another')).toBeLessThanOrEqual(5);
  });

  test('for much waits between its steps, and others do not wait for the last of them', async () => {
    const turns = new Turns();
    const served: string[] = [];
    const ask = asker(turns, served);
    const all = Array.from({ length: 5 }, () => ask('greedy', 10));
    await nextTurn();
    all.push(ask('modest', 3));
    await Promise.all(all);
    expect(served).toHaveLength(53);
    expect(served.lastIndexOf('modest')).toBeLessThanOrEqual(12);
  });

  test('is served in the order of its own questions', async () => {
    const turns = new Turns();
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const turn = turns.begin('me');
        if (turn) await turn;
        work(5);
        order.push(n);
      }),
    );
    expect(order).toEqual(Array.from({ length: 10 }, (_, n) => n));
  });

  test('wakes nothing once all are served', async () => {
    const turns = new Turns();
    await asker(turns, [])('me');
    await nextTurn();
    await nextTurn();
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Immediate')).toEqual([]);
  });
});
