import { expect, onTestFinished, test, vi } from 'vitest';
import { LazySidecar } from '../../../src/main/sidecar/lazy-sidecar.ts';
import { manualClock } from '../../support/clock.ts';
import { serve } from '../../support/listener.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const loads = vi.hoisted(() => ({ times: 0 }));
vi.mock(import('../../../src/main/sidecar/ollama-client.ts'), async (original) => {
  loads.times += 1;
  return original();
});

test('while embeddings are off, no module is loaded and no timer runs (R-EMB-04)', async () => {
  const clock = manualClock();
  const folder = tempFolder();
  const sidecar = new LazySidecar({
    folder,
    clock,
    settings: { path: undefined, model: 'all-minilm', url: new URL('http://127.0.0.1:1') },
    machine: { environment: {}, platform: process.platform, home: () => folder },
  });
  onTestFinished(() => sidecar[Symbol.asyncDispose]());
  await sidecar.wake();
  const { perform } = await serve({ embeddings: sidecar });
  const owner = { subject: 'me', client: 'x', transport: 'owner', token: '', scopes: new Set(['admin'] as const) } as const;
  expect(await perform(owner, 'status', {})).toMatchObject({ embeddings: { at: 'off' } });
  expect(loads.times).toBe(0);
  expect(clock.pendingTimers).toBe(0);
  // Load the modules, so that the count above is proved to detect them.
  await sidecar.report();
  expect(loads.times).toBe(1);
});
