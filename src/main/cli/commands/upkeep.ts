import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { formatCount, formatEntries } from '../layout.ts';
import { readRecoveryKey, recoveryKeySources } from '../recovery.ts';
import { formatMinute } from '../times.ts';
import { given } from '../values.ts';

export const backup = command({
  name: 'backup',
  description: 'Creates a complete sealed copy of the memory, and verifies the copy.',
  options: { list: { description: 'Lists the backups, newest first.' } },
  details: [
    'The 7 newest backups are kept in the backups folder next to the memory. To protect against disk failure, copy a backup to another disk. A backup opens with the same key as the memory, or with the recovery key.',
  ],
  async run({ options: { list } }, context) {
    if (list) {
      const { backups } = await context.call('backups', {});
      const rows = backups.map(({ at, file }) => [formatMinute(at), file]);
      return context.printTable({ backups }, rows, 'There are no backups. Create one with: helmdeck-memory backup');
    }
    using progress = context.terminal.showProgress('Creating and verifying a backup…');
    const made = await context.call('backup', {});
    progress[Symbol.dispose]();
    await context.printResult(made, () => [
      `Backup created and verified: ${made.file}`,
      ...(made.broken > 0 ? [`The seal of ${formatEntries(made.broken)} is broken, in the memory and in the backup.`] : []),
    ]);
  },
});

export const verify = command({
  name: 'verify',
  description: 'Verifies the seal of every entry, and the structure of the file or database.',
  details: ['The exit code is 1 if damage is found.'],
  async run(_typed, context) {
    using progress = context.terminal.showProgress('Verifying every entry…');
    const found = await context.call('verify', {});
    progress[Symbol.dispose]();
    const { entries, broken, structure } = found;
    const sound = broken === 0 && structure.length === 0;
    await context.printResult(found, () => [
      `${formatEntries(entries)} verified${sound ? ', no damage found' : ''}.`,
      ...(broken > 0 ? [`The seal of ${formatEntries(broken)} is broken. Results do not show entries with a broken seal.`] : []),
      ...structure.map((what) => `Damaged structure: ${what}`),
    ]);
    return sound ? exits.done.code : exits.failed.code;
  },
});

export const restore = command({
  name: 'restore',
  description: 'Replaces the memory with a backup. Helmdeck Memory must not be running.',
  arguments: { file: { description: 'The backup file.' } },
  options: {
    yes: { description: 'Skips the confirmation. Required without a terminal.' },
    recovery: { description: 'Opens the backup with the recovery key, which you type or pipe to standard input.' },
    file: { description: 'With --recovery: stores the recovered key in the file memory.key, for machines without a keychain.' },
  },
  details: [
    'Entries that you forgot after the backup stay forgotten. A restore never extends the lifetime of an entry. Tokens and credentials do not change, and paused tokens stay paused. The current memory is moved to the backups folder.',
  ],
  examples: [
    'restore ~/.local/share/helmdeck-memory/backups/memory-1795000000000.db',
    'restore /media/stick/memory.db --recovery',
  ],
  async run({ arguments: { file: backupFile }, options: { yes, recovery, file } }, context) {
    await context.requireNoProgram();
    const { folder, database } = context.config;
    const path = resolve(backupFile);
    if (!existsSync(path))
      throw new Failure('invalid_input', `The file ${path} does not exist. List the backups with: helmdeck-memory backup --list`);
    const sources = recoveryKeySources(context, recovery && file);
    const question = 'Replace the current memory with this backup? The current memory is kept in the backups folder.';
    if (!(await context.confirm(yes, () => question))) return exits.failed.code;
    const recoveryKey = recovery ? await readRecoveryKey(context) : undefined;
    const { systemClock: clock } = await import('../../../core/time/clock.ts');
    using progress = context.terminal.showProgress('Restoring…');
    const options = { folder, backup: path, clock, sources, ...given({ recoveryKey }) };
    const restored = database
      ? await (await import('../../../core/store/postgres/server-restore.ts')).restoreToServer({ ...options, database })
      : await (await import('../../../core/upkeep/restore.ts')).restoreBackup(options);
    progress[Symbol.dispose]();
    const { entries, stillForgotten, broken, replacedMemory, revokedTokens, readReplacedMemory } = restored;
    const result = {
      entries,
      kept_forgotten: stillForgotten,
      broken,
      before: replacedMemory,
      revoked_tokens: revokedTokens,
      forgotten_since: readReplacedMemory,
    };
    await context.printResult(result, () => [
      `Restored ${formatEntries(entries)}.`,
      ...(stillForgotten > 0 ? [`Left out ${formatEntries(stillForgotten)} that you forgot after the backup.`] : []),
      ...(broken > 0 ? [`The seal of ${formatEntries(broken)} is broken.`] : []),
      ...(readReplacedMemory
        ? []
        : [
            'The previous memory could not be read. Entries that you forgot and tokens that you revoked after the backup may have returned. Tokens created after the backup are valid but not listed.',
          ]),
      ...(revokedTokens > 0
        ? [
            `${formatCount(revokedTokens, 'token')} created after the backup ${revokedTokens === 1 ? 'was' : 'were'} revoked, because the key of the previous memory is missing. Connect the agents that used these tokens again.`,
          ]
        : []),
      ...(replacedMemory === undefined ? [] : [`The previous memory was moved to ${replacedMemory}`]),
    ]);
    return exits.done.code;
  },
});
