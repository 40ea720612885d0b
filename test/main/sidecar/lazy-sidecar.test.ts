import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { SidecarState } from '../../../src/contract/status.ts';
import { systemClock } from '../../../src/core/time/clock.ts';
import { saveChoice } from '../../../src/main/sidecar/choice.ts';
import { LazySidecar } from '../../../src/main/sidecar/lazy-sidecar.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/** A path without an Ollama. */
function opened(folder = tempFolder()) {
  const heard: SidecarState[] = [];
  const sidecar = new LazySidecar({
    folder,
    clock: systemClock,
    settings: { path: join(folder, 'no-ollama'), model: 'all-minilm', url: new URL('http://127.0.0.1:1') },
    machine: { environment: {}, platform: process.platform, home: () => folder },
    onStateChange: (state) => void heard.push(state),
  });
  onTestFinished(() => sidecar[Symbol.asyncDispose]());
  return { sidecar, heard, folder };
}

describe('a sidecar on demand', () => {
  test('is off until the owner turns it on, also while the program runs (R-EMB-11)', async () => {
    const { sidecar, heard } = opened();
    expect(sidecar.state).toEqual({ at: 'off' });
    expect(sidecar.model).toBe('all-minilm');
    await sidecar.wake();
    expect(sidecar.state).toEqual({ at: 'off' });
    expect(heard).toEqual([]);
  });

  test('refuses texts and says how to turn it on', async () => {
    const { sidecar } = opened();
    await expect(sidecar.embed('me', ['text'])).rejects.toMatchObject({
      code: 'embeddings_unavailable',
      message: expect.stringContaining('helmdeck-memory embeddings on'),
    });
    await expect(sidecar.report()).resolves.toMatchObject({ on: false, state: { at: 'off' } });
  });

  test('that is on sleeps until the program starts, and then searches for Ollama (R-EMB-07)', async () => {
    const { folder } = opened();
    saveChoice(folder, { on: true, adopt: false });
    const { sidecar, heard } = opened(folder);
    expect(sidecar.state).toMatchObject({ at: 'asleep' });
    await sidecar.wake();
    expect(heard[0]).toEqual({ at: 'starting' });
  });

  test('that is turned on before the program starts begins with it', async () => {
    const { sidecar, heard } = opened();
    await sidecar.configure({ on: true });
    expect(sidecar.state).toMatchObject({ at: 'asleep' });
    await sidecar.wake();
    expect(heard.map(({ at }) => at)).toContain('starting');
    await sidecar.configure({ on: false });
    expect(sidecar.state).toEqual({ at: 'off' });
  });
});
