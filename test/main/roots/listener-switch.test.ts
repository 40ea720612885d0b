import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/contract/failure.ts';
import type { ListeningState } from '../../../src/contract/status.ts';
import type { Listener } from '../../../src/listeners/listener.ts';
import { ListenerSwitch } from '../../../src/main/roots/listener-switch.ts';
import { serve } from '../../support/listener.ts';

const answers = (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );

/** Real listeners, each on the next port. */
async function aListening(fails = 0) {
  let starts = 0;
  const heard: ListeningState[] = [];
  const start = async (): Promise<Listener> => {
    starts += 1;
    if (starts <= fails) throw new Failure('unavailable', 'The port is taken; end it.');
    return (await serve()).listener;
  };
  const listening = new ListenerSwitch(start, (state) => heard.push(state));
  return { listening, heard, starts: () => starts };
}

describe('pausing and resuming the listener (R-DESK-03, R-DESK-07)', () => {
  test('starts paused, and reports when agents can connect', async () => {
    const { listening, heard } = await aListening();
    expect(listening.state).toEqual({ at: 'paused' });
    await listening.resume();
    const { state } = listening;
    expect(heard).toEqual([state]);
    expect(state).toMatchObject({ at: 'listening' });
    expect(await answers(state.at === 'listening' ? state.url : '')).toBe(true);
  });

  test('refuses connections while paused, and accepts them after resuming', async () => {
    const { listening } = await aListening();
    await listening.resume();
    const { url = '' } = listening.listener ?? {};
    await listening.pause();
    expect([listening.state, listening.listener, await answers(url)]).toEqual([{ at: 'paused' }, undefined, false]);
    await listening.resume();
    expect(await answers(listening.listener?.url ?? '')).toBe(true);
  });

  test('reports a failed start with the reason, and can retry', async () => {
    const { listening, heard } = await aListening(1);
    await expect(listening.resume()).rejects.toMatchObject({ message: 'The port is taken; end it.' });
    expect(listening.state).toEqual({ at: 'failed', why: 'The port is taken; end it.' });
    await listening.resume();
    expect(heard.map(({ at }) => at)).toEqual(['failed', 'listening']);
  });

  test('runs pause and resume one after another, and starts only once', async () => {
    const { listening, starts } = await aListening();
    await Promise.all([listening.resume(), listening.resume(), listening.pause(), listening.resume()]);
    expect(listening.state.at).toBe('listening');
    expect(starts()).toBe(2);
  });

  test('closes the listener when disposed', async () => {
    const { listening } = await aListening();
    await listening.resume();
    const { url = '' } = listening.listener ?? {};
    await listening[Symbol.asyncDispose]();
    expect(await answers(url)).toBe(false);
  });
});
