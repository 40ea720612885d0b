import * as z from 'zod';
import { lazy, type SchemaOutput } from './lazy.ts';
import { inputObject, flag, Time } from './text.ts';
import { ClockStatus } from './views.ts';

/** The owner types the time by hand. If it differs from the clock by more than this, the owner did not read this clock. */
export const CLOCK_TOLERANCE_MS = 3_600_000;

export const TrustClockInput = lazy(() =>
  inputObject(
    {
      time: Time().describe(
        'The correct date and time, as checked by the owner. It must match the clock of this machine within an hour.',
      ),
      dry_run: flag().default(false).describe('true only counts the facts that would be deleted.'),
    },
    {
      title: 'Trust the clock',
      description:
        'Confirms that the clock of this machine is right after it jumped, or if it is behind the time of this memory. Facts that have expired by this clock are deleted permanently.',
    },
  ),
);
export type TrustClockInput = SchemaOutput<typeof TrustClockInput>;

export const TrustClockReceipt = lazy(() =>
  z.object({
    clock: ClockStatus(),
    expired: z
      .int()
      .min(0)
      .describe('Number of facts of all subjects that have expired by this clock and are deleted permanently.'),
  }),
);
export type TrustClockReceipt = SchemaOutput<typeof TrustClockReceipt>;
