import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Failure } from '../../../contract/failure.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import { columns, formatCount } from '../layout.ts';
import { readRecoveryKey, recoveryKeySources } from '../recovery.ts';
import { formatMinute } from '../times.ts';

export const backup = command({
  name: 'backup',
  says: 'Makes a complete sealed copy, and verifies every row of it.',
  options: { list: { says: 'Lists the backups there are, newest first.' } },
  more: [
    'Backups lie in the folder backups beside the memory, the newest 7 of them. A copy elsewhere protects against the loss of the disk; it opens with the same key, or with the recovery key.',
  ],
  async run({ options: { list } }, desk) {
    const memory = await desk.memory();
    if (list) {
      const { backups } = await memory.call('backups', {});
      await desk.printResult({ backups }, () => columns(backups.map(({ at, file }) => [formatMinute(at), file])));
      if (!desk.json && backups.length === 0)
        desk.terminal.printToStderr('There is no backup yet; make one with: helmdeck-memory backup');
      return;
    }
    using progress = desk.terminal.showProgress('Making a backup, and verifying it…');
    const made = await memory.call('backup', {});
    progress[Symbol.dispose]();
    await desk.printResult(made, () => [
      `The backup is made and verified: ${made.file}`,
      ...(made.broken > 0
        ? [`${formatCount(made.broken, 'entry', 'entries')} with a broken seal, in the memory as in its copy.`]
        : []),
    ]);
  },
});

export const verify = command({
  name: 'verify',
  says: 'Opens the seal of every entry, and checks the structure of the file.',
  more: ['The exit code is 1 when damage is found.'],
  async run(_typed, desk) {
    const memory = await desk.memory();
    using progress = desk.terminal.showProgress('Verifying every entry…');
    const found = await memory.call('verify', {});
    progress[Symbol.dispose]();
    const { entries, broken, structure } = found;
    const sound = broken === 0 && structure.length === 0;
    await desk.printResult(found, () => [
      ...(sound
        ? [`All is whole: ${formatCount(entries, 'entry', 'entries')}.`]
        : [`${formatCount(entries, 'entry', 'entries')} verified.`]),
      ...(broken > 0
        ? [`${formatCount(broken, 'entry', 'entries')} with a broken seal; they are left out of every answer.`]
        : []),
      ...structure.map((what) => `The file: ${what}`),
    ]);
    return sound ? exits.done.code : exits.failed.code;
  },
});

export const restore = command({
  name: 'restore',
  says: 'Puts a backup in the place of the memory. The program must be closed.',
  arguments: { file: { says: 'The backup.' } },
  options: {
    yes: { says: 'Does not ask; needed where nobody can be asked.' },
    recovery: { says: 'Opens the backup with the recovery key, which is typed or read from standard input.' },
    file: { says: 'With --recovery: keeps the recovered key in the file memory.key, where there is no keychain.' },
  },
  more: [
    'What was forgotten after the backup was made stays forgotten, and no lifetime gets longer. Tokens, pauses and credentials stay as they are now. The memory that stood here before is put with the backups.',
  ],
  examples: [
    'restore ~/.local/share/helmdeck-memory/backups/memory-1795000000000.db',
    'restore /media/stick/memory.db --recovery',
  ],
  async run({ arguments: { file: backupFile }, options: { yes, recovery, file } }, desk) {
    await desk.requireNoProgram();
    const { folder } = desk.config;
    const path = resolve(backupFile);
    if (!existsSync(path))
      throw new Failure('invalid_input', `There is no file ${path}. List the backups with: helmdeck-memory backup --list`);
    const sources = recoveryKeySources(desk, recovery && file);
    if (!(await desk.confirm(yes, () => 'Put this backup in the place of the present memory, which is kept with the backups?'))) {
      desk.terminal.printToStderr('Nothing was changed.');
      return exits.failed.code;
    }
    const recoveryKey = recovery ? await readRecoveryKey(desk) : undefined;
    const [{ restoreBackup }, { systemClock }] = await Promise.all([
      import('../../../core/upkeep/restore.ts'),
      import('../../../core/time/clock.ts'),
    ]);
    using progress = desk.terminal.showProgress('Restoring…');
    const restored = await restoreBackup({
      folder,
      backup: path,
      clock: systemClock,
      sources,
      ...(recoveryKey !== undefined && { recoveryKey }),
    });
    progress[Symbol.dispose]();
    const {
      entries,
      stillForgotten: keptForgotten,
      broken,
      replacedMemory: before,
      revokedTokens,
      readReplacedMemory: forgottenSince,
    } = restored;
    const answer = {
      entries,
      kept_forgotten: keptForgotten,
      broken,
      before,
      revoked_tokens: revokedTokens,
      forgotten_since: forgottenSince,
    };
    await desk.printResult(answer, () => [
      `Restored ${formatCount(entries, 'entry', 'entries')}.`,
      ...(keptForgotten > 0 ? [`${formatCount(keptForgotten, 'entry', 'entries')} stay forgotten.`] : []),
      ...(broken > 0 ? [`${formatCount(broken, 'entry', 'entries')} have a broken seal.`] : []),
      ...(forgottenSince
        ? []
        : [
            'The memory that stood here could not be read: what was forgotten or revoked after the backup may be back, and tokens made after it are valid but not listed.',
          ]),
      ...(revokedTokens > 0
        ? [
            `${formatCount(revokedTokens, 'token')} made after the backup ${revokedTokens === 1 ? 'was' : 'were'} revoked, because the key of the memory before is not here. Connect those agents again.`,
          ]
        : []),
      ...(before === undefined ? [] : [`What stood here before is ${before}`]),
    ]);
    return exits.done.code;
  },
});
