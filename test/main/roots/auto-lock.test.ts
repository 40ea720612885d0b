import { describe, expect, test } from 'vitest';
import { readConfig } from '../../../src/main/config/config.ts';
import { assemble } from '../../../src/main/roots/assemble.ts';
import { manualClock, MINUTE, settle } from '../../support/clock.ts';
import { aCaller, theOwner } from '../../support/memory.ts';
import { A_KEY } from '../../support/store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

async function program(set: Record<string, string>, ownerIdleMs?: () => number, clock = manualClock()) {
  const folder = tempFolder();
  const environment = {
    HELMDECK_DATA_DIR: folder,
    HELMDECK_ADDR: '127.0.0.1:0',
    HELMDECK_MEANING: 'off',
    HELMDECK_MEMORY_KEY: A_KEY,
    ...set,
  };
  const config = readConfig({ environment, platform: 'linux', home: () => folder });
  const told: string[] = [];
  const running = await assemble(config, {
    environment,
    clock,
    desktop: false,
    version: '0.0.0',
    ...(ownerIdleMs && { ownerIdleMs }),
    onKey: () => told.push(running.store.status().key.at),
  });
  const { store, perform } = running;
  return {
    clock,
    told,
    running,
    at: () => store.status().key.at,
    why: () => store.status().key,
    asOwner: (name: string) => perform(theOwner, name, {}),
    asAgent: () => perform(aCaller(), 'list', {}),
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

const after = (minutes: number) => ({ HELMDECK_LOCK_AFTER: String(minutes) });

describe('on a server, an idle memory locks itself (R-LOCK-01)', () => {
  test('after the configured minutes, and later calls get the reason', async () => {
    await using here = await program(after(10));
    await here.clock.advance(10 * MINUTE - 1);
    expect(here.at()).toBe('ok');
    await here.clock.advance(1);
    expect(here.why()).toMatchObject({ at: 'locked', why: 'the memory was not used for 10 minutes (HELMDECK_LOCK_AFTER)' });
    expect(here.told).toEqual(['locked']);
    await expect(here.asAgent()).rejects.toMatchObject({ code: 'key_unavailable' });
  });

  test('every call counts as use, except status', async () => {
    await using here = await program(after(10));
    await here.clock.advance(9 * MINUTE);
    await here.asAgent();
    await here.clock.advance(9 * MINUTE);
    expect(here.at()).toBe('ok');
    await here.asOwner('status');
    await here.clock.advance(MINUTE);
    expect(here.at()).toBe('locked');
  });

  test('again after an unlock, and no timer runs while it is locked', async () => {
    await using here = await program(after(1));
    const idle = here.clock.pendingTimers;
    await here.clock.advance(MINUTE);
    expect(here.clock.pendingTimers).toBeLessThan(idle);
    await here.asOwner('unlock');
    expect(here.told).toEqual(['locked', 'ok']);
    await here.clock.advance(MINUTE);
    expect(here.why()).toMatchObject({ why: 'the memory was not used for a minute (HELMDECK_LOCK_AFTER)' });
  });

  test('not while a call is running', async () => {
    await using here = await program(after(1));
    const held = Promise.withResolvers<never>();
    const asking = here.running.lockAfter?.trackUse(() => held.promise)(aCaller(), 'list', {});
    await here.clock.advance(5 * MINUTE);
    expect(here.at()).toBe('ok');
    held.reject(new Error('over'));
    await expect(asking).rejects.toThrow('over');
    await here.clock.advance(2 * MINUTE);
    expect(here.at()).toBe('locked');
  });
});

describe('on a desktop, the memory locks while its owner is away (R-LOCK-01)', () => {
  test('even if agents are active, and not earlier', async () => {
    const clock = manualClock();
    let touched = 0;
    await using here = await program(after(10), () => clock.steady() - touched, clock);
    await here.clock.advance(9 * MINUTE);
    touched = here.clock.steady();
    await here.clock.advance(9 * MINUTE);
    expect(here.at()).toBe('ok');
    await here.asAgent();
    await here.clock.advance(MINUTE);
    expect(here.why()).toMatchObject({ at: 'locked', why: 'the owner was away for 10 minutes (HELMDECK_LOCK_AFTER)' });
  });

  test('at once when the screen is locked or the machine sleeps', async () => {
    await using here = await program(after(10), () => 0);
    here.running.lockAfter?.lock('the screen was locked');
    here.running.lockAfter?.lock('the computer went to sleep');
    expect(here.why()).toMatchObject({ why: 'the screen was locked (HELMDECK_LOCK_AFTER)' });
    expect(here.told).toEqual(['locked']);
  });
});

test('without the setting, the memory does not lock itself and no timer runs (R-LOCK-01)', async () => {
  await using without = await program({});
  await using having = await program(after(5));
  await settle();
  expect(without.running.lockAfter).toBeUndefined();
  expect(having.clock.pendingTimers).toBe(without.clock.pendingTimers + 1);
  await without.clock.advance(30 * 24 * 60 * MINUTE);
  expect(without.at()).toBe('ok');
});

test('every surface is notified of a lock or unlock (R-DESK-03)', async () => {
  await using here = await program({});
  await here.asOwner('lock');
  await here.asOwner('status');
  await here.asOwner('unlock');
  expect(here.told).toEqual(['locked', 'ok']);
});
