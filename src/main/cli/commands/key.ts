import { setTimeout as wait } from 'node:timers/promises';
import { withCliCommand } from '../../../contract/cli-command.ts';
import { Failure } from '../../../contract/failure.ts';
import type { KeyState } from '../../../contract/status.ts';
import type { CommandContext } from '../command-context.ts';
import { command } from '../command.ts';
import { exits } from '../exit-codes.ts';
import type { MemoryConnection } from '../memory-connection.ts';
import { readRecoveryKey, recoveryKeySources } from '../recovery.ts';

export const keyInit = command({
  name: 'key init',
  description: 'Creates the key that seals your memory. Needed once, before the first fact.',
  options: { file: { description: 'Stores the key in the file memory.key in the data folder instead of the OS keychain.' } },
  details: [
    'Prefer the OS keychain. Use --file only on machines without a keychain. A key file protects copies of the memory outside the data folder, but not the data folder itself.',
    'Fails if there is already a key, or a memory that was sealed with another key. Create a recovery key afterwards and write it down.',
  ],
  examples: ['key init', 'key init --file'],
  async run({ options: { file } }, context) {
    await context.requireNoProgram();
    const { initKey } = await import('../init-key.ts');
    const { source, path, memory } = await initKey(context.config, context.environment, file);
    await context.printResult({ key: { at: 'ok', source }, ...(path !== undefined && { file: path }), memory }, () => [
      `The key was created in ${source}${path === undefined ? '' : ` (${path})`}.`,
      `The memory is sealed in ${memory}.`,
      'Without the key, the memory cannot be read, not even by you. Create a recovery key now and write it down:',
      withCliCommand('  helmdeck-memory key recovery'),
    ]);
  },
});

export const keyStatus = command({
  name: 'key status',
  description: 'Shows the state of the key, and what to do if the key is unavailable.',
  async run(_typed, context) {
    const { store } = await context.call('status', {});
    await context.printResult({ key: store.key, rotation: store.rotation }, () => [
      ...keyLines(store.key),
      ...(store.rotation.at === 'running' ? [`Key rotation is running: ${formatProgress(store.rotation)}.`] : []),
    ]);
    return keyExit(store.key);
  },
});

export const keyRotate = command({
  name: 'key rotate',
  description: 'Creates a new key, and seals everything again with the new key.',
  details: [
    'The memory stays usable during the rotation. An interrupted rotation loses nothing and resumes at the next start. The recovery key stays valid. Earlier backups still need the old key or the recovery key.',
  ],
  async run(_typed, context) {
    const memory = await context.memory();
    using progress = context.terminal.showProgress('Rotating the key…');
    const show = (text: string): void => progress.update(text);
    // Opening the memory resumes an interrupted rotation. In that case, this command only waits until the rotation is done.
    const resumed = (await memory.call('status', {})).store.rotation.at === 'running';
    const key = resumed ? await untilRotated(memory, show) : await rotate(memory, show);
    progress[Symbol.dispose]();
    await context.printResult({ key }, () => [
      resumed ? 'The interrupted rotation is complete.' : 'The key was rotated. Everything is sealed with the new key.',
    ]);
  },
});

export const keyRecovery = command({
  name: 'key recovery',
  description: 'Creates a recovery key. With --use, restores a lost key from the recovery key.',
  options: {
    use: { description: 'Asks for the recovery key and restores the key. Helmdeck Memory must not be running.' },
    file: { description: 'With --use: stores the key in the file memory.key, for machines without a keychain.' },
  },
  details: [
    'The recovery key is shown once and not stored. Write it down and keep it away from this machine. A new recovery key replaces the old one.',
    'With --use, type the recovery key or pipe it to standard input. The recovery key is never an argument, because other users can see command lines.',
  ],
  examples: ['key recovery', 'key recovery --use'],
  async run({ options: { use, file } }, context) {
    if (use) return useRecoveryKey(context, file);
    const answer = await context.call('makeRecoveryKey', {}).catch(suggestUse);
    await context.printResult(answer, () =>
      context.terminal.outputIsTerminal ? ['', `  ${answer.recovery_key}`, ''] : [answer.recovery_key],
    );
    context.hint('Write the recovery key down now. It is not stored, and older recovery keys no longer work.');
    return exits.done.code;
  },
});

export const lock = command({
  name: 'lock',
  description: 'Locks the memory: the running program drops the key until you run unlock.',
  async run(_typed, context) {
    const report = await (await runningProgram(context)).call('lock', {});
    await context.printResult(report, () => ['The memory is locked.']);
  },
});

export const unlock = command({
  name: 'unlock',
  description: 'Unlocks the memory: the running program loads the key again.',
  async run(_typed, context) {
    const report = await (await runningProgram(context)).call('unlock', {});
    await context.printResult(report, () => (report.key.at === 'ok' ? ['The memory is unlocked.'] : keyLines(report.key)));
    return keyExit(report.key);
  },
});

export const keyExit = (key: KeyState): number => (key.at === 'ok' ? exits.done.code : exits.key.code);

export function keyLines(key: KeyState): string[] {
  if (key.at === 'ok') return [`ok, in ${key.source}`];
  if (key.at === 'ephemeral') return ['none', key.remedy];
  return ['why' in key ? `${key.at}: ${key.why}` : key.at, key.remedy];
}

async function runningProgram(context: CommandContext): Promise<MemoryConnection> {
  const memory = await context.memory();
  if (memory.program) return memory;
  throw new Failure('unavailable', 'Helmdeck Memory is not running, so there is nothing to lock or unlock.');
}

async function useRecoveryKey(context: CommandContext, file: boolean): Promise<number> {
  await context.requireNoProgram();
  const { folder, database } = context.config;
  const sources = recoveryKeySources(context, file);
  const recoveryKey = await readRecoveryKey(context);
  const { systemClock: clock } = await import('../../../core/time/clock.ts');
  if (database) {
    const { recoverServerKey } = await import('../../../core/store/postgres/recover-key.ts');
    await recoverServerKey({ database, sources, clock, recoveryKey });
  } else {
    const { recoverKey } = await import('../../../core/upkeep/restore.ts');
    await recoverKey({ folder, sources, clock, recoveryKey });
  }
  const { store } = await context.call('status', {});
  await context.printResult({ key: store.key }, () => ['The key was restored:', ...keyLines(store.key)]);
  return keyExit(store.key);
}

/** Rethrows the error. If the key is lost or locked, adds a hint to restore the key with a recovery key. */
function suggestUse(error: unknown): never {
  if (!(error instanceof Failure) || error.code !== 'key_unavailable' || /--use|key init/.test(error.message)) throw error;
  throw new Failure(error.code, `${error.message} If you have a recovery key, run: helmdeck-memory key recovery --use`, {
    cause: error,
  });
}

const formatProgress = ({ done, of }: { done: number; of: number }): string =>
  `${done.toLocaleString('en-US')} of ${of.toLocaleString('en-US')} entries`;

const POLL_MS = 100;

/** Rotates the key and shows the progress. Polls `status`, because `rotateKey` responds only when the rotation is done. */
async function rotate(memory: MemoryConnection, show: (text: string) => void): Promise<KeyState> {
  const rotated = memory.call('rotateKey', {});
  let ended = false;
  const watching = watchRotation(memory, show, () => ended).catch(() => undefined);
  const { key } = await rotated.finally(() => (ended = true));
  await watching;
  return key;
}

async function untilRotated(memory: MemoryConnection, show: (text: string) => void): Promise<KeyState> {
  await watchRotation(memory, show, () => false);
  return (await memory.call('status', {})).store.key;
}

async function watchRotation(memory: MemoryConnection, show: (text: string) => void, ended: () => boolean): Promise<void> {
  while (!ended()) {
    const { rotation } = (await memory.call('status', {})).store;
    if (rotation.at === 'none') return;
    if (rotation.of > 0) show(`Rotating the key… ${formatProgress(rotation)}`);
    await wait(POLL_MS);
  }
}
