import { onTestFinished } from 'vitest';
import type { SidecarState } from '../../src/contract/status.ts';
import { type Clock, systemClock } from '../../src/core/time/clock.ts';
import { Sidecar } from '../../src/main/sidecar/sidecar.ts';
import type { SidecarTimeouts } from '../../src/main/sidecar/timeouts.ts';
import { type Behaviour, putStandIn, type StandIn } from './ollama-program.ts';
import { tempFolder } from './temp-folder.ts';

/** A program that behaves like Ollama, until the test ends. */
export const createStandIn = (behaviour: Partial<Behaviour> = {}): StandIn => putStandIn(tempFolder(), behaviour);

interface Setting {
  readonly path?: string | undefined;
  readonly folder?: string;
  readonly model?: string;
  readonly url?: string;
  readonly environment?: Record<string, string>;
  readonly times?: Partial<SidecarTimeouts>;
  readonly port?: () => Promise<number>;
  readonly clock?: Clock;
}

/** Short enough for a test, long enough for a busy machine. */
const TIMES: Partial<SidecarTimeouts> = { ready: 15_000, embed: 15_000, retryDelays: [100], stopGrace: 1000 };

/** A sidecar that is disposed with the test. */
export function openSidecar({
  path,
  folder = tempFolder(),
  model = 'all-minilm',
  url = 'http://127.0.0.1:1',
  environment = {},
  times,
  port,
  clock = systemClock,
}: Setting) {
  const states: SidecarState[] = [];
  const sidecar = new Sidecar({
    folder,
    clock,
    settings: { path, model, url: new URL(url) },
    machine: { environment, platform: process.platform, home: () => folder },
    onStateChange: (state) => void states.push(state),
    timeouts: { ...TIMES, ...times },
    ...(port && { choosePort: port }),
  });
  onTestFinished(() => sidecar[Symbol.asyncDispose]());
  return { sidecar, states, folder };
}

/** Waits for a state. */
export async function waitForState<At extends SidecarState['at']>(
  sidecar: Sidecar,
  at: At,
  is: (state: Extract<SidecarState, { at: At }>) => boolean = () => true,
): Promise<Extract<SidecarState, { at: At }>> {
  const fits = (state: SidecarState): state is Extract<SidecarState, { at: At }> => state.at === at;
  for (let tries = 0; tries < 1500; tries += 1) {
    const { state } = sidecar;
    if (fits(state) && is(state)) return state;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`It stays at ${JSON.stringify(sidecar.state)}.`);
}

/** Turns embeddings on and approves the program, as the owner would. */
export async function turnOn(sidecar: Sidecar): Promise<void> {
  sidecar.wake();
  await sidecar.configure({ on: true });
  await waitForState(sidecar, 'unapproved');
  const { ollama } = await sidecar.report();
  await sidecar.approve(ollama?.sha256 ?? '');
}
