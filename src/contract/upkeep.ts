import * as z from 'zod';
import { count, flag, inputObject, lazy, noInput, type SchemaOutput, Time } from './schema.ts';
import { ClockStatus, KeyStatus } from './views.ts';

const file = lazy(() => z.string().describe('Path of the backup file.'));
const at = lazy(() => Time().describe('When the backup was made.'));

export const LockInput = lazy(() =>
  noInput('Lock the memory', 'Removes the key and all unsealed data from RAM, until the memory is unlocked.'),
);
export const UnlockInput = lazy(() => noInput('Unlock the memory', 'Reads the key again from where it is stored.'));
export const KeyReport = lazy(() => z.object({ key: KeyStatus() }));

export const RotateKeyInput = lazy(() =>
  noInput('Rotate the key', 'Seals all entries again with a new master key. The memory can be used during the rotation.'),
);
export const RotateKeyReceipt = lazy(() => z.object({ key: KeyStatus() }));

export const RecoveryKeyInput = lazy(() =>
  noInput(
    'Create a recovery key',
    'Creates a key that opens this memory if the master key is lost. It is shown once. A new recovery key replaces the previous one.',
  ),
);
export const RecoveryKey = lazy(() =>
  z.object({ recovery_key: z.string().describe('The recovery key. Write it down: it is not stored.') }),
);

export const BackupInput = lazy(() =>
  noInput('Make a backup', 'Writes a complete sealed copy of the memory and verifies every row of the copy.'),
);
export const BackupReceipt = lazy(() =>
  z.object({
    file: file(),
    at: at(),
    broken: count('Number of entries whose seal is broken, in the memory and in the backup.'),
  }),
);

export const BackupsInput = lazy(() =>
  noInput('List backups', 'Lists the backups, newest first, and whether a recovery key exists.'),
);
export const BackupList = lazy(() =>
  z.object({
    backups: z.array(z.object({ file: file(), at: at() })).describe('Backups, newest first.'),
    recovery_key: z.boolean().describe('Whether a recovery key for this memory exists.'),
  }),
);

export const VerifyInput = lazy(() =>
  noInput('Verify the memory', 'Checks the seal of every entry, and the structure and schema of the database file.'),
);
export const VerifyReport = lazy(() =>
  z.object({
    entries: count('Number of entries with a valid seal.'),
    broken: count('Number of entries, tokens and secrets with a broken seal. No response includes them.'),
    structure: z.array(z.string()).describe('Errors in the structure of the file. Empty if there are none.'),
  }),
);

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
    expired: count('Number of facts of all subjects that have expired by this clock and are deleted permanently.'),
  }),
);
export type TrustClockReceipt = SchemaOutput<typeof TrustClockReceipt>;
