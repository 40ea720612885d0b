import * as z from 'zod';
import { later } from './later.ts';
import { KeyStatus } from './projection.ts';
import { ask, Time } from './text.ts';

/** What only the owner asks: keeping the memory safe, beside using it. */
const nothing = (title: string, description: string) => ask({}, { title, description });
const count = (what: string) => z.int().min(0).describe(what);

const file = later(() => z.string().describe('Where it lies.'));
const at = later(() => Time().describe('When it was made.'));

export const LockInput = later(() =>
  nothing('Lock the memory', 'Drops the key and everything opened with it, until it is unlocked.'),
);
export const UnlockInput = later(() => nothing('Unlock the memory', 'Asks the place of the key again.'));
export const KeyReport = later(() => z.object({ key: KeyStatus() }));

export const RotateKeyInput = later(() =>
  nothing('Rotate the key', 'Seals everything anew under a new master key. The memory stays in use meanwhile.'),
);
export const RotatedKey = later(() => z.object({ key: KeyStatus() }));

export const RecoveryKeyInput = later(() =>
  nothing(
    'Make a recovery key',
    'Makes the key that opens this memory when its own is lost. It is shown once; a newer one makes the older useless.',
  ),
);
export const RecoveryKey = later(() =>
  z.object({ recovery_key: z.string().describe('To be written down; it is kept nowhere.') }),
);

export const BackupInput = later(() => nothing('Make a backup', 'Writes a complete sealed copy and verifies every row of it.'));
export const BackupReceipt = later(() =>
  z.object({
    file: file(),
    at: at(),
    broken: count('Entries whose seal is broken, in the memory as in its copy.'),
  }),
);

export const BackupsInput = later(() =>
  nothing('List backups', 'The backups there are, newest first, and whether a recovery key was made.'),
);
export const Backups = later(() =>
  z.object({
    backups: z.array(z.object({ file: file(), at: at() })).describe('Newest first.'),
    recovery_key: z.boolean().describe('Whether a recovery key was made that opens this memory.'),
  }),
);

export const VerifyInput = later(() =>
  nothing('Verify the memory', 'Opens the seal of every entry, and checks the structure and the schema of the file.'),
);
export const Verified = later(() =>
  z.object({
    entries: count('Entries whose seal is whole.'),
    broken: count('Entries, tokens and secrets whose seal is broken; they are left out of every answer.'),
    structure: z.array(z.string()).describe('What is wrong with the structure of the file; empty when it is sound.'),
  }),
);
