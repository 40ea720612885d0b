import { describe, expect, test } from 'vitest';
import { Timekeeper } from '../../../src/core/time/timekeeper.ts';
import { DAY, manualClock, HOUR, MINUTE, START } from '../../support/clock.ts';

describe('the time of a store', () => {
  test('is the wall clock if that never jumps', async () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START - HOUR);
    expect(time.update()).toBe(START);
    await clock.advance(5 * DAY);
    expect(time.update()).toBe(START + 5 * DAY);
    expect(time.checkDoubt()).toBe(false);
  });

  test('never runs behind the latest time of this run or an earlier one (R-TIME-04)', async () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START + 10 * DAY);
    expect(time.update()).toBe(START + 10 * DAY);
    await clock.advance(HOUR);
    expect(time.update()).toBe(START + 10 * DAY + HOUR);
    clock.jump(-365 * DAY);
    expect(time.update()).toBe(START + 10 * DAY + HOUR);
    await clock.advance(MINUTE);
    expect(time.trusted()).toBe(START + 10 * DAY + HOUR + MINUTE);
  });

  test('follows the wall clock again when that has caught up', () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START + HOUR);
    clock.jump(2 * HOUR);
    expect(time.update()).toBe(START + 2 * HOUR);
  });

  test('a jump of up to a day is accepted at once, a longer one is in doubt (R-TIME-03)', () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START);
    clock.jump(DAY);
    expect(time.checkDoubt()).toBe(false);
    clock.jump(DAY + 1);
    expect(time.update()).toBe(START + 2 * DAY + 1);
    expect(time.checkDoubt()).toBe(true);
    // The next run must not trust a time in doubt.
    expect(time.trusted()).toBe(START + DAY);
  });

  test('in doubt, the trusted time advances by elapsed time (R-TIME-03)', async () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START);
    clock.jump(400 * DAY);
    time.update();
    await clock.advance(3 * HOUR);
    expect(time.trusted()).toBe(START + 3 * HOUR);
    clock.jump(-400 * DAY);
    expect(time.checkDoubt()).toBe(false);
    expect(time.update()).toBe(START + 3 * HOUR);
  });

  test.each([
    { what: 'the system reports nothing', synchronized: undefined, ends: false },
    { what: 'the system reports synchronization', synchronized: true, ends: true },
    { what: 'the system reports no synchronization', synchronized: false, ends: false },
  ])('an absence of 30 days, if $what (R-TIME-08)', async ({ synchronized, ends }) => {
    const clock = manualClock();
    clock.synchronizedBy = synchronized;
    const time = new Timekeeper(clock, START - 30 * DAY);
    expect(time.read()).toMatchObject({ at: 'ahead', atStart: true, reviewIn: HOUR });
    await clock.advance(HOUR - 1);
    await time.review();
    expect(time.checkDoubt()).toBe(true);
    await clock.advance(1);
    await time.review();
    expect(time.checkDoubt()).toBe(!ends);
  });

  test.each([
    { what: 'the system reports nothing', synchronized: undefined, ends: false },
    { what: 'the system reports synchronization', synchronized: true, ends: true },
    { what: 'the system reports no synchronization', synchronized: false, ends: false },
  ])('a jump of 30 days during a run, if $what (R-TIME-08)', async ({ synchronized, ends }) => {
    const clock = manualClock();
    clock.synchronizedBy = synchronized;
    const time = new Timekeeper(clock, START);
    clock.jump(30 * DAY);
    expect(time.read()).toMatchObject({ at: 'ahead', atStart: false, reviewIn: HOUR });
    await clock.advance(HOUR);
    await time.review();
    expect(time.checkDoubt()).toBe(!ends);
  });

  test.each([true, false])(
    'only the owner ends a doubt of more than 30 days (R-TIME-08), found at the start: %s',
    async (atStart) => {
      const clock = manualClock();
      clock.synchronizedBy = true;
      const time = new Timekeeper(clock, atStart ? START - 31 * DAY : START);
      if (!atStart) clock.jump(31 * DAY);
      expect(time.read()).toMatchObject({ at: 'ahead', atStart, reviewIn: undefined });
      for (let day = 0; day < 40; day += 1) {
        await clock.advance(DAY);
        await time.review();
      }
      expect(time.checkDoubt()).toBe(true);
      time.trustWall();
      expect(time.read()).toEqual({ at: 'ok' });
      expect(time.trusted()).toBe(clock.now());
    },
  );

  test('steps of less than a day add up to a jump (R-TIME-08)', async () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START);
    for (let step = 0; step < 40; step += 1) {
      clock.jump(23.9 * HOUR);
      time.update();
      await clock.advance(MINUTE);
    }
    expect(time.read()).toMatchObject({ at: 'ahead', reviewIn: undefined });
    expect(time.trusted()).toBeLessThan(START + DAY + HOUR);
    clock.jump(-39 * 23.9 * HOUR);
    expect(time.checkDoubt()).toBe(false);
  });

  test('a program that is started once a day is never in doubt (R-TIME-08)', () => {
    const clock = manualClock();
    let trusted = START;
    for (let day = 0; day < 40; day += 1) {
      clock.jump(23.9 * HOUR);
      const time = new Timekeeper(clock, trusted);
      expect(time.checkDoubt()).toBe(false);
      trusted = time.trusted();
    }
  });

  test('a sleep needs no confirmation (R-TIME-08)', async () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START);
    clock.sleep(30 * DAY);
    expect(time.checkDoubt()).toBe(false);
    expect(time.trusted()).toBe(START + 30 * DAY);
    // A jump during a sleep is longer than the sleep.
    clock.sleep(8 * HOUR);
    clock.jump(400 * DAY);
    expect(time.checkDoubt()).toBe(true);
    expect(time.trusted()).toBe(START + 30 * DAY + 8 * HOUR);
  });

  test('a sleep counts once and does not explain a later jump (R-TIME-08)', async () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START);
    for (let night = 0; night < 100; night += 1) {
      clock.sleep(8 * HOUR);
      time.update();
      await clock.advance(16 * HOUR);
      time.update();
    }
    expect(time.update()).toBe(clock.now());
    clock.jump(20 * DAY);
    expect(time.checkDoubt()).toBe(true);
  });

  test('another jump restarts the hour (R-TIME-08)', async () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START - 5 * DAY);
    expect(time.checkDoubt()).toBe(true);
    await clock.advance(HOUR - MINUTE);
    clock.jump(10 * MINUTE);
    await clock.advance(MINUTE);
    await time.review();
    expect(time.read()).toMatchObject({ at: 'ahead', reviewIn: HOUR });
    // A jump by days while the program runs is no absence.
    clock.jump(3 * DAY);
    expect(time.read()).toMatchObject({ at: 'ahead', atStart: false });
  });

  test('a trusted time that ran ahead is reported, and set back when the owner confirms the clock (R-TIME-09)', () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START + 400 * DAY);
    expect(time.read()).toEqual({ at: 'behind', wall: START, trusted: START + 400 * DAY });
    time.trustWall();
    expect(time.update()).toBe(START);
    expect(time.read()).toEqual({ at: 'ok' });
  });

  test('an earlier time that is loaded late counts as an absence (R-TIME-08)', () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, 0);
    expect(time.checkDoubt()).toBe(true);
    time.restore({ trusted: START - 5 * DAY });
    expect(time.read()).toMatchObject({ at: 'ahead', atStart: true, trusted: START - 5 * DAY });
    time.restore({ trusted: START - HOUR });
    expect(time.read()).toEqual({ at: 'ok' });
  });
});

describe('the uptime as evidence of an absence (R-TIME-10)', () => {
  const storedBy = (clock: ReturnType<typeof manualClock>) => new Timekeeper(clock, START).toStore();

  test.each([
    { what: 'an absence within one boot needs no confirmation', days: 20, off: 0, at: 'ok', trusted: START + 20 * DAY },
    { what: 'a longer one than 30 days does', days: 31, off: 0, at: 'ahead', trusted: START },
    { what: 'a clock that was set forward meanwhile is in doubt', days: 5, off: 10, at: 'ahead', trusted: START + 5 * DAY },
    { what: 'a clock that was set back meanwhile is behind', days: 5, off: -20, at: 'behind', trusted: START },
  ])('$what', ({ days, off, at, trusted }) => {
    const clock = manualClock();
    clock.boot = 'boot';
    const stored = storedBy(clock);
    clock.sleep(days * DAY);
    clock.jump(off * DAY);
    const time = new Timekeeper(clock, 0);
    time.restore(stored);
    expect(time.read().at).toBe(at);
    expect(time.trusted()).toBe(trusted);
  });

  test.each([
    { what: 'another boot', change: (clock: ReturnType<typeof manualClock>) => clock.reboot(5 * DAY) },
    {
      what: 'an unknown boot',
      change: (clock: ReturnType<typeof manualClock>) => {
        clock.boot = undefined;
        clock.sleep(5 * DAY);
      },
    },
  ])('$what proves nothing', async ({ change }) => {
    const clock = manualClock();
    clock.boot = 'boot';
    const stored = storedBy(clock);
    change(clock);
    await clock.advance(0);
    const time = new Timekeeper(clock, 0);
    time.restore(stored);
    expect(time.checkDoubt()).toBe(true);
    expect(time.trusted()).toBe(START);
  });

  test('a boot under the same origin proves no more than its own uptime', async () => {
    const clock = manualClock();
    clock.boot = 'installation';
    await clock.advance(DAY);
    const stored = new Timekeeper(clock, START).toStore();
    clock.reboot(5 * DAY);
    clock.boot = 'installation';
    await clock.advance(3 * DAY);
    const time = new Timekeeper(clock, 0);
    time.restore(stored);
    expect(time.checkDoubt()).toBe(true);
    expect(time.trusted()).toBe(START + DAY + 2 * DAY);
  });

  test('a sleep of more than 30 days must be confirmed', () => {
    const clock = manualClock();
    const time = new Timekeeper(clock, START);
    clock.sleep(30 * DAY);
    expect(time.checkDoubt()).toBe(false);
    clock.sleep(31 * DAY);
    expect(time.read()).toMatchObject({ at: 'ahead', reviewIn: undefined });
  });
});
