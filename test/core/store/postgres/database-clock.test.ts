import { expect, test } from 'vitest';
import { DatabaseClock } from '../../../../src/core/store/postgres/database-clock.ts';
import { DAY, HOUR, manualClock, START } from '../../../support/clock.ts';

test('follows the clock of the server, whatever the clock of this machine says', async () => {
  const machine = manualClock();
  const clock = new DatabaseClock(machine);
  expect(clock.now()).toBe(START);
  clock.observe(START + HOUR);
  expect(clock.now()).toBe(START + HOUR);
  machine.jump(-30 * DAY);
  await machine.advance(1000);
  expect(clock.now()).toBe(START + HOUR + 1000);
  // A reading that was slow to arrive does not set the clock back.
  clock.observe(START + HOUR + 400);
  expect(clock.now()).toBe(START + HOUR + 1000);
  clock.observe(START + HOUR + 1200);
  expect(clock.now()).toBe(START + HOUR + 1200);
  clock.observe(START);
  expect(clock.now()).toBe(START);
});

test('is synchronized only if this machine is, and both agree (R-TIME-03)', async () => {
  const machine = manualClock();
  const clock = new DatabaseClock(machine);
  clock.observe(START + 1000);
  expect(await clock.synchronized()).toBeUndefined();
  machine.synchronizedBy = true;
  expect(await clock.synchronized()).toBe(true);
  clock.observe(START + HOUR);
  expect(await clock.synchronized()).toBe(false);
});
