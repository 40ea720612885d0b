import * as z from 'zod';
import { count, flag, inputObject, lazy, noInput, type SchemaOutput, Time } from './schema.ts';
import { ClockStatus, KeyStatus } from './views.ts';

const file = lazy(() => z.string().describe('Path of the backup file.'));
const at = lazy(() => Time().describe('When the backup was made.'));

export const LockInput = lazy(() =>
  noInput(
    'Lock the memory',
    'Removes the master key and all unsealed data from RAM. Facts cannot be read or written until the memory is unlocked.',
  ),
);
export const UnlockInput = lazy(() =>
  noInput('Unlock the memory', 'Loads the master key again from where it is stored, so that facts can be read and written.'),
);
export const KeyReport = lazy(() => z.object({ key: KeyStatus() }));

export const RotateKeyInput = lazy(() =>
  noInput(
    'Rotate the key',
    'Creates a new master key and seals all entries again with it. The memory can be used during the rotation.',
  ),
);
export const RotateKeyReceipt = lazy(() => z.object({ key: KeyStatus() }));

export const RecoveryKeyInput = lazy(() =>
  noInput(
    'Create a recovery key',
    'Creates a recovery key, which opens this memory if the master key is lost. The recovery key is shown only once. It replaces the previous recovery key.',
  ),
);
export const RecoveryKey = lazy(() =>
  z.object({ recovery_key: z.string().describe('The recovery key. Write it down, because it is not stored.') }),
);

export const BackupInput = lazy(() =>
  noInput('Make a backup', 'Writes a complete, sealed copy of the memory, and verifies every entry in the copy.'),
);
export const BackupReceipt = lazy(() =>
  z.object({
    file: file(),
    at: at(),
    broken: count('Number of entries with a broken seal. They are in both the memory and the backup.'),
  }),
);

export const BackupsInput = lazy(() =>
  noInput('List backups', 'Lists the backups, newest first, and shows whether a recovery key exists.'),
);
export const BackupList = lazy(() =>
  z.object({
    backups: z.array(z.object({ file: file(), at: at() })).describe('Backups, newest first.'),
    recovery_key: z.boolean().describe('Whether a recovery key for this memory exists.'),
  }),
);

export const VerifyInput = lazy(() =>
  noInput(
    'Verify the memory',
    'Checks the seal of every entry, and checks the structure and the schema of the file or the database.',
  ),
);
export const VerifyReport = lazy(() =>
  z.object({
    entries: count('Number of entries with a valid seal.'),
    broken: count('Number of entries, tokens and secrets with a broken seal. They are left out of all responses.'),
    structure: z
      .array(z.string())
      .describe('Errors in the structure of the file or the database. Empty if the structure is valid.'),
  }),
);

/**
 * Maximum difference, in milliseconds, between this machine's clock and the time that the owner enters to confirm the clock. A
 * larger difference means that the clock is wrong or the owner mistyped.
 */
export const CLOCK_TOLERANCE_MS = 3_600_000;

export const TrustClockInput = lazy(() =>
  inputObject(
    {
      time: Time().describe(
        'The current date and time, checked by the owner on another clock. It must be within an hour of the clock of this machine.',
      ),
      dry_run: flag().default(false).describe('If `true`, only counts the facts that would be deleted. Nothing is changed.'),
    },
    {
      title: 'Trust the clock',
      description:
        'Confirms that the clock of this machine is right. Needed after the clock jumped forward, or if it is behind the time that this memory has recorded. Facts that have expired according to this clock are deleted permanently.',
    },
  ),
);
export type TrustClockInput = SchemaOutput<typeof TrustClockInput>;

export const TrustClockReceipt = lazy(() =>
  z.object({
    clock: ClockStatus(),
    expired: count(
      'Number of facts of all subjects that have expired according to this clock. They are deleted permanently, except in a dry run.',
    ),
  }),
);
export type TrustClockReceipt = SchemaOutput<typeof TrustClockReceipt>;
