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
  says: 'Makes the key that seals your memory; once, before the first fact.',
  options: { file: { says: 'Keeps it in a file in the data folder (memory.key) instead of the OS keychain.' } },
  more: [
    'The keychain of the system is the better place. The file is for machines without one: it protects copies of the memory that leave the folder, not the folder itself.',
    'Nothing is made where a key is, or where a memory was sealed with another one. Make a recovery key afterwards, and write it down.',
  ],
  examples: ['key init', 'key init --file'],
  async run({ options: { file } }, desk) {
    await desk.requireNoProgram();
    const { initKey } = await import('../init-key.ts');
    const { source, path, memory } = await initKey(desk.config, desk.environment, file);
    await desk.printResult({ key: { at: 'ok', source }, ...(path !== undefined && { file: path }), memory }, () => [
      `The key is made and kept in ${source}${path === undefined ? '' : ` (${path})`}.`,
      `The memory is ${memory}, sealed.`,
      'Without the key nobody can read it, you included. Make a recovery key now, and write it down:',
      withCliCommand('  helmdeck-memory key recovery'),
    ]);
  },
});

export const keyStatus = command({
  name: 'key status',
  says: 'Says where the key stands, and what to do if it is not at hand.',
  async run(_typed, desk) {
    const { store } = await (await desk.memory()).call('status', {});
    await desk.printResult({ key: store.key, rotation: store.rotation }, () => [
      ...keyLines(store.key),
      ...(store.rotation.at === 'running' ? [`It is being rotated: ${share(store.rotation)}.`] : []),
    ]);
    return keyExit(store.key);
  },
});

export const keyRotate = command({
  name: 'key rotate',
  says: 'Seals everything anew under a new key.',
  more: [
    'The memory stays in use meanwhile. An interrupted rotation loses nothing and is taken up again at the next start. The recovery key stays good; backups made before still need the old key, or the recovery key.',
  ],
  async run(_typed, desk) {
    const memory = await desk.memory();
    using progress = desk.terminal.showProgress('Rotating the key…');
    const show = (text: string): void => progress.update(text);
    // One that was interrupted goes on by itself while the memory is open, and this is what keeps it open.
    const begun = (await memory.call('status', {})).store.rotation.at === 'running';
    const key = begun ? await untilRotated(memory, show) : await rotate(memory, show);
    progress[Symbol.dispose]();
    await desk.printResult({ key }, () => [
      begun ? 'The rotation that had been begun has ended.' : 'The key was rotated: everything is sealed under the new one.',
    ]);
  },
});

export const keyRecovery = command({
  name: 'key recovery',
  says: 'Makes the recovery key; with --use, brings a lost key back from it.',
  options: {
    use: { says: 'Asks for the recovery key and puts the key back into its place. The program must be closed.' },
    file: { says: 'With --use: keeps the key in the file memory.key, where there is no keychain any more.' },
  },
  more: [
    'The recovery key is shown once and kept nowhere: write it down, away from this machine. A newer one makes the older useless.',
    'With --use it is typed, or read from standard input; it is never part of the command line, where others could see it.',
  ],
  examples: ['key recovery', 'key recovery --use'],
  async run({ options: { use, file } }, desk) {
    if (use) return useRecoveryKey(desk, file);
    const answer = await (await desk.memory()).call('makeRecoveryKey', {}).catch(orUseIt);
    await desk.printResult(answer, () =>
      desk.terminal.outputIsTerminal ? ['', `  ${answer.recovery_key}`, ''] : [answer.recovery_key],
    );
    if (!desk.json) desk.terminal.printToStderr('Write it down now: it is kept nowhere, and an older one is of no use any more.');
    return exits.done.code;
  },
});

export const lock = command({
  name: 'lock',
  says: 'Has the running program drop the key until it is unlocked.',
  async run(_typed, desk) {
    const report = await (await programOf(desk)).call('lock', {});
    await desk.printResult(report, () => ['The memory is locked.']);
  },
});

export const unlock = command({
  name: 'unlock',
  says: 'Has the running program ask for the key again.',
  async run(_typed, desk) {
    const report = await (await programOf(desk)).call('unlock', {});
    await desk.printResult(report, () => (report.key.at === 'ok' ? ['The memory is unlocked.'] : keyLines(report.key)));
    return keyExit(report.key);
  },
});

export const keyExit = (key: KeyState): number => (key.at === 'ok' ? exits.done.code : exits.key.code);

export function keyLines(key: KeyState): string[] {
  if (key.at === 'ok') return [`ok, in ${key.source}`];
  return ['why' in key ? `${key.at}: ${key.why}` : key.at, key.remedy];
}

async function programOf(desk: CommandContext): Promise<MemoryConnection> {
  const memory = await desk.memory();
  if (memory.program) return memory;
  throw new Failure('unavailable', 'Helmdeck Memory is not running, so no program holds the key; there is nothing to do.');
}

async function useRecoveryKey(desk: CommandContext, file: boolean): Promise<number> {
  await desk.requireNoProgram();
  const { folder } = desk.config;
  const sources = recoveryKeySources(desk, file);
  const recoveryKey = await readRecoveryKey(desk);
  const [{ recoverKey }, { systemClock }] = await Promise.all([
    import('../../../core/upkeep/restore.ts'),
    import('../../../core/time/clock.ts'),
  ]);
  await recoverKey({ folder, sources, clock: systemClock, recoveryKey });
  const { store } = await (await desk.memory()).call('status', {});
  await desk.printResult({ key: store.key }, () => ['The key is back:', ...keyLines(store.key)]);
  return keyExit(store.key);
}

/** Whoever lost the key and asks for the recovery key wants to use it. */
function orUseIt(error: unknown): never {
  if (!(error instanceof Failure) || error.code !== 'key_unavailable' || error.message.includes('--use')) throw error;
  throw new Failure(error.code, `${error.message} With a recovery key that you have: helmdeck-memory key recovery --use.`, {
    cause: error,
  });
}

const share = ({ done, of }: { done: number; of: number }): string =>
  `${done.toLocaleString('en-US')} of ${of.toLocaleString('en-US')} entries`;

const LOOK_EVERY_MS = 100;

/** The answer comes when all is done; how far it is stands in the status. */
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
    if (rotation.of > 0) show(`Rotating the key… ${share(rotation)}`);
    await wait(LOOK_EVERY_MS);
  }
}
