import { describe, expect, test } from 'vitest';
import { Timekeeper } from '../../src/core/timekeeper.ts';
import { DAY, handClock, HOUR, MINUTE, START } from '../support/clock.ts';

describe('the time a store goes by', () => {
  test('is the wall clock while that runs as it should', async () => {
    const clock = handClock();
    const time = new Timekeeper(clock, START - HOUR);
    expect(time.now()).toBe(START);
    await clock.pass(5 * DAY);
    expect(time.now()).toBe(START + 5 * DAY);
    expect(time.held()).toBe(0);
  });

  test('never runs behind what was seen, in this run or an earlier one (R-TIME-04)', async () => {
    const clock = handClock();
    const time = new Timekeeper(clock, START + 10 * DAY);
    expect(time.now()).toBe(START + 10 * DAY);
    await clock.pass(HOUR);
    expect(time.now()).toBe(START + 10 * DAY + HOUR);
    clock.jump(-365 * DAY);
    expect(time.now()).toBe(START + 10 * DAY + HOUR);
    await clock.pass(MINUTE);
    expect(time.trusted()).toBe(START + 10 * DAY + HOUR + MINUTE);
  });

  test('goes back to the wall clock when that has caught up', () => {
    const clock = handClock();
    const time = new Timekeeper(clock, START + HOUR);
    clock.jump(2 * HOUR);
    expect(time.now()).toBe(START + 2 * HOUR);
  });

  test('a jump of up to a day is believed at once, a longer one is followed but held (R-TIME-03)', () => {
    const clock = handClock();
    const time = new Timekeeper(clock, START);
    clock.jump(DAY);
    expect(time.held()).toBe(0);
    clock.jump(DAY + 1);
    expect(time.now()).toBe(START + 2 * DAY + 1);
    expect(time.held()).toBe(HOUR);
    // Another run must not take a doubtful moment for a trusted one.
    expect(time.trusted()).toBe(START + DAY);
  });

  test('so is a long pause between two runs (R-TIME-03)', async () => {
    const clock = handClock();
    const time = new Timekeeper(clock, START - 7 * DAY);
    expect(time.held()).toBe(HOUR);
    await clock.pass(HOUR - 1);
    expect(time.held()).toBe(1);
    await clock.pass(1);
    expect(time.held()).toBe(0);
    expect(time.trusted()).toBe(START + HOUR);
  });

  test('a clock that is put right within the hour is as if nothing had been (R-TIME-03)', async () => {
    const clock = handClock();
    const time = new Timekeeper(clock, START);
    clock.jump(365 * DAY);
    expect(time.held()).toBe(HOUR);
    await clock.pass(MINUTE);
    clock.jump(-365 * DAY);
    expect(time.now()).toBe(START + MINUTE);
    expect(time.held()).toBe(0);
    // The next doubt has an hour of its own.
    clock.jump(2 * DAY);
    expect(time.held()).toBe(HOUR);
  });
});
