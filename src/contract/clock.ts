import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { inputObject, flag, Time } from './text.ts';
import { ClockStatus } from './views.ts';

/** The owner has read the clock by hand: one that is further off than this is not the clock that the owner saw. */
export const CLOCK_TOLERANCE_MS = 3_600_000;

export const TrustClockInput = lazy(() =>
  inputObject(
    {
      time: Time().describe('The date and time that the owner has checked; it must match the clock of this machine.'),
      dry_run: flag().default(false).describe('true counts what would be deleted and changes nothing.'),
    },
    {
      title: 'Trust the clock',
      description:
        'Confirms that the clock of this machine is right, after it jumped or when it is behind the time of this memory. Facts that have expired by it are deleted for good.',
    },
  ),
);
export type TrustClockInput = SchemaOutput<typeof TrustClockInput>;

export const TrustClockReceipt = lazy(() =>
  z.object({
    clock: ClockStatus(),
    expired: z.int().min(0).describe('Facts of all callers that have expired by this clock, and are deleted for good.'),
  }),
);
export type TrustClockReceipt = SchemaOutput<typeof TrustClockReceipt>;
