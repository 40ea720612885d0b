import type { ClockState } from '../../contract/status.ts';
import { formatTime } from './format-time.ts';
import type { ClockReading } from './timekeeper.ts';

/** Without the key the time of the last run cannot be read, so there is nothing to compare the clock with. */
export const CLOCK_UNCHECKED: ClockState = { at: 'unchecked' };

/** How the clock stands, in words for the owner. */
export function clockStateOf(reading: ClockReading): ClockState {
  if (reading.at === 'ok') return reading;
  const machine = formatTime(reading.wall);
  if (reading.at === 'behind') {
    const memory = formatTime(reading.trusted);
    return {
      at: 'behind',
      machine,
      memory,
      why: `the clock of this machine says ${dayOf(machine)}, but this memory has already seen ${dayOf(memory)}`,
      remedy: `If the clock is wrong, set it. If it is right, ${confirm}.`,
    };
  }
  const { trusted, atStart, reviewIn } = reading;
  // A kept time that could not be read counts as 1970.
  const memory = trusted < YEAR_2000 ? undefined : formatTime(trusted);
  return {
    at: 'ahead',
    machine,
    ...(memory !== undefined && { memory }),
    why: whyAhead(machine, memory, atStart),
    remedy:
      reviewIn === undefined
        ? `If the clock is wrong, set it. If it is right, ${confirm}.`
        : `If the clock is wrong, set it. If it is right, ${confirm}, or leave it: a clock that the system reports as synchronized is accepted after an hour.`,
    ...(reviewIn !== undefined && { review_in_seconds: Math.ceil(reviewIn / 1000) }),
  };
}

const YEAR_2000 = Date.UTC(2000);

const confirm = 'confirm it in the window, or with: helmdeck-memory clock trust';

const dayOf = (at: string): string => at.slice(0, 10);

function whyAhead(machine: string, memory: string | undefined, atStart: boolean): string {
  const says = `the clock of this machine says ${dayOf(machine)}`;
  if (memory === undefined) return `${says}, and the time that this memory kept cannot be read`;
  const last = atStart
    ? `this memory was last used on ${dayOf(memory)}`
    : `by the time that has passed it should be ${dayOf(memory)}`;
  return `${says}, but ${last}. Until that is settled, expired facts are hidden and none is deleted`;
}
