import * as z from 'zod';
import { lazy } from './lazy.ts';
import { inputObject, Time } from './text.ts';
import { KeyStatus } from './views.ts';

/** What only the owner asks: keeping the memory safe, beside using it. */
const nothing = (title: string, description: string) => inputObject({}, { title, description });
const count = (what: string) => z.int().min(0).describe(what);

const file = lazy(() => z.string().describe('Where it lies.'));
const at = lazy(() => Time().describe('When it was made.'));

export const LockInput = lazy(() =>
  nothing('Lock the memory', 'Drops the key and everything opened with it, until it is unlocked.'),
);
export const UnlockInput = lazy(() => nothing('Unlock the memory', 'Asks the place of the key again.'));
export const KeyReport = lazy(() => z.object({ key: KeyStatus() }));

export const RotateKeyInput = lazy(() =>
  nothing('Rotate the key', 'Seals everything anew under a new master key. The memory stays in use meanwhile.'),
);
export const RotateKeyReceipt = lazy(() => z.object({ key: KeyStatus() }));

export const RecoveryKeyInput = lazy(() =>
  nothing(
    'Make a recovery key',
    'Makes the key that opens this memory when its own is lost. It is shown once; a newer one makes the older useless.',
  ),
);
export const RecoveryKey = lazy(() => z.object({ recovery_key: z.string().describe('To be written down; it is kept nowhere.') }));

export const BackupInput = lazy(() => nothing('Make a backup', 'Writes a complete sealed copy and verifies every row of it.'));
export const BackupReceipt = lazy(() =>
  z.object({
    file: file(),
    at: at(),
    broken: count('Entries whose seal is broken, in the memory as in its copy.'),
  }),
);

export const BackupsInput = lazy(() =>
  nothing('List backups', 'The backups there are, newest first, and whether a recovery key was made.'),
);
export const BackupList = lazy(() =>
  z.object({
    backups: z.array(z.object({ file: file(), at: at() })).describe('Newest first.'),
    recovery_key: z.boolean().describe('Whether a recovery key was made that opens this memory.'),
  }),
);

export const VerifyInput = lazy(() =>
  nothing('Verify the memory', 'Opens the seal of every entry, and checks the structure and the schema of the file.'),
);
export const VerifyReport = lazy(() =>
  z.object({
    entries: count('Entries whose seal is whole.'),
    broken: count('Entries, tokens and secrets whose seal is broken; they are left out of every answer.'),
    structure: z.array(z.string()).describe('What is wrong with the structure of the file; empty when it is sound.'),
  }),
);
