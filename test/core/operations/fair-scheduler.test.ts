import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { FairScheduler } from '../../../src/core/operations/fair-scheduler.ts';

/** Blocks the thread. */
function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

function handSetClock(): { now: number } {
  const clock = { now: 1000 };
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now);
  return clock;
}

/** Makes calls of several steps, and records which subject ran each step. */
function createCaller(scheduler: FairScheduler, served: string[]) {
  return async (subject: string, steps = 1, ms = 10): Promise<void> => {
    const turn = scheduler.acquire(subject);
    if (turn) await turn;
    for (let step = 0; step < steps; step += 1) {
      if (step > 0) await scheduler.yieldTurn(subject);
      work(ms);
      served.push(subject);
    }
  };
}

describe('a call (R-HTTP-14)', () => {
  test('runs at once while the program is idle', async () => {
    const scheduler = new FairScheduler();
    const time = vi.spyOn(performance, 'now').mockReturnValue(1000);
    for (let turn = 0; turn < 3; turn += 1) {
      for (let n = 0; n < 50; n += 1) expect(scheduler.acquire('me')).toBeUndefined();
      await nextTurn();
      time.mockReturnValue(2000 + turn);
    }
  });

  test('of the same requester runs at once until another requester calls', async () => {
    handSetClock();
    const scheduler = new FairScheduler();
    const [one, other] = [{}, {}];
    await scheduler.acquire('me', one);
    for (let n = 0; n < 5; n += 1) expect(scheduler.acquire('me', one)).toBeUndefined();
    expect(scheduler.acquire('me', other)).toBeInstanceOf(Promise);
    // A call is waiting now.
    expect(scheduler.acquire('me', other)).toBeInstanceOf(Promise);
  });

  test('runs its steps in alternation with the other calls of its turn', async () => {
    const scheduler = new FairScheduler();
    const steps: string[] = [];
    const call = async (name: string): Promise<void> => {
      await scheduler.acquire('me', {});
      for (const step of [1, 2, 3]) {
        steps.push(`${name}${step}`);
        // The next step follows in a microtask, as within an operation.
        await Promise.resolve();
      }
    };
    await Promise.all(['a', 'b', 'c'].map(call));
    expect(steps).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2', 'a3', 'b3', 'c3']);
  });

  test('shares its turn with fewer calls while turns take long, and with more calls afterwards', async () => {
    const clock = handSetClock();
    const scheduler = new FairScheduler();
    let ms = 3;
    let served = 0;
    const many = (count: number): Promise<void>[] =>
      Array.from({ length: count }, async () => {
        await scheduler.acquire('me', {});
        clock.now += ms;
        served += 1;
      });
    const perTurn = async (): Promise<number> => {
      const before = served;
      await nextTurn();
      return served - before;
    };
    const heavy = many(30);
    expect(await perTurn()).toBe(8);
    // They took 24 ms; a turn should take 1 ms.
    expect(await perTurn()).toBe(1);
    await Promise.all(heavy);
    ms = 0;
    const light = many(200);
    const counts: number[] = [];
    for (let turn = 0; turn < 60; turn += 1) counts.push(await perTurn());
    await Promise.all(light);
    expect(Math.max(...counts)).toBe(8);
  });

  test('runs alone while light and heavy calls alternate', async () => {
    const clock = handSetClock();
    const scheduler = new FairScheduler();
    let served = 0;
    const many = Array.from({ length: 120 }, async (_, place) => {
      await scheduler.acquire('me', {});
      clock.now += place < 8 || place % 2 === 0 ? 10 : 0;
      served += 1;
    });
    await nextTurn();
    // The first turn runs eight calls, because no duration has been measured yet.
    expect(served).toBe(8);
    for (let turn = 0; turn < 100; turn += 1) {
      const before = served;
      await nextTurn();
      expect(served - before).toBe(1);
    }
    await Promise.all(many);
  });

  test('of a busy subject waits for those of other subjects', async () => {
    const scheduler = new FairScheduler();
    const served: string[] = [];
    const call = createCaller(scheduler, served);
    const all = Array.from({ length: 20 }, () => call('greedy'));
    await nextTurn();
    all.push(call('modest'), call('another'));
    await Promise.all(all);
    expect(served).toHaveLength(22);
    expect(served.indexOf('modest')).toBeLessThanOrEqual(4);
    expect(served.indexOf('another')).toBeLessThanOrEqual(5);
  });

  test('of a modest subject waits for few steps of a flood, however often it calls', async () => {
    const clock = handSetClock();
    const scheduler = new FairScheduler();
    const over = new AbortController();
    let [asked, heavy] = [0, 0];
    // Light calls among the heavy ones must not make the load look small.
    const greedy = async (): Promise<void> => {
      while (!over.signal.aborted) {
        await scheduler.acquire('greedy', {});
        asked += 1;
        if (asked % 16 >= 8) {
          clock.now += 10;
          heavy += 1;
        }
        await nextTurn();
      }
    };
    const flood = Array.from({ length: 16 }, greedy);
    const waited: number[] = [];
    for (let n = 0; n < 30; n += 1) {
      const before = heavy;
      const due = clock.now + 3;
      for (; clock.now < due; clock.now += 0.1) await nextTurn();
      await scheduler.acquire('modest', {});
      waited.push(heavy - before);
    }
    over.abort();
    await Promise.all(flood);
    // One heavy call may be running, and one may run first. The first turns do not count, because the load is not measured yet.
    expect(Math.max(...waited.slice(5))).toBeLessThanOrEqual(3);
  });

  test('of many steps yields between them, so that others need not wait for the last', async () => {
    const scheduler = new FairScheduler();
    const served: string[] = [];
    const call = createCaller(scheduler, served);
    const all = Array.from({ length: 5 }, () => call('greedy', 10));
    await nextTurn();
    all.push(call('modest', 3));
    await Promise.all(all);
    expect(served).toHaveLength(53);
    expect(served.lastIndexOf('modest')).toBeLessThanOrEqual(12);
  });

  test('runs after the earlier calls of its subject', async () => {
    const scheduler = new FairScheduler();
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 10 }, async (_, n) => {
        const turn = scheduler.acquire('me');
        if (turn) await turn;
        work(5);
        order.push(n);
      }),
    );
    expect(order).toEqual(Array.from({ length: 10 }, (_, n) => n));
  });

  test('leaves no timer behind once all have run', async () => {
    const scheduler = new FairScheduler();
    await createCaller(scheduler, [])('me');
    await nextTurn();
    await nextTurn();
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Immediate')).toEqual([]);
  });
});
