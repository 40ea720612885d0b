import { expect, test } from 'vitest';
import { systemClock } from '../../../src/core/time/clock.ts';
import type { OllamaClient, PullStep } from '../../../src/main/sidecar/ollama-client.ts';
import { pullModel } from '../../../src/main/sidecar/pull-model.ts';

const TIMEOUT_MS = 60_000;

/** Runs a pull whose steps arrive one second apart. Returns the number of steps read. */
async function pullSteps(stepAt: (second: number) => Partial<PullStep>): Promise<number> {
  let second = 0;
  const clock = { ...systemClock, steady: () => second * 1000 };
  const client = {
    async *pull() {
      for (; second < 10_000; second += 1) yield { status: '', total: 0, completed: 0, ...stepAt(second) };
    },
  } as unknown as OllamaClient;
  const cancel = new AbortController().signal;
  for await (const _ of pullModel(client, { model: 'm', clock, timeoutMs: TIMEOUT_MS, cancel }));
  return second;
}

const layer = { status: 'pulling', digest: 'sha256:1', total: 1_000_000 };

test('a pull that repeats its steps without progress ends at the timeout (R-EMB-06, R-EMB-08)', async () => {
  let read = 0;
  const stuck = pullSteps((second) => {
    read = second;
    return { ...layer, completed: 5 };
  });
  await expect(stuck).rejects.toMatchObject({ code: 'pull_failed' });
  expect(read).toBe(TIMEOUT_MS / 1000 + 1);
});

test('a slow pull continues for as long as it makes progress (R-EMB-06)', async () => {
  const steps = await pullSteps((second) => (second === 5000 ? { status: 'success' } : { ...layer, completed: second }));
  expect(steps).toBe(5000);
});
