import { url } from 'node:inspector';
import { Failure } from '../../contract/failure.ts';

/**
 * Ignores SIGUSR1, which any process of this user can send. Without this handler, Node would open a debugger, which can read the
 * master key. The launchers pass `--disable-sigusr1`, but the program can also be started without that option.
 */
export function ignoreDebuggerSignal(): void {
  if (process.platform !== 'win32') process.on('SIGUSR1', () => undefined);
}

/**
 * Throws if SIGUSR1 has opened a debugger. Called right before the key is read, because SIGUSR1 can arrive before the program
 * ignores it.
 */
export function refuseDebugger(): void {
  // In Electron, Node's options are part of the program's own arguments.
  const args = 'electron' in process.versions ? process.argv : process.execArgv;
  if (url() === undefined || args.some((arg) => arg.startsWith('--inspect'))) return;
  throw new Failure(
    'key_unavailable',
    'A debugger was opened on this process and could read the key of the memory. Start Helmdeck Memory again. To use a debugger, pass --inspect to node.',
  );
}

/** Chromium switches that let another program read and control the window. Electron cannot turn them off at build time. */
const REMOTE_CONTROL = ['remote-debugging-port', 'remote-debugging-pipe'];

/** Throws in a release if Chromium's debugger is enabled without Node's debugger. Tests of a release enable both. */
export function refuseRemoteControl(app: {
  readonly isPackaged: boolean;
  readonly commandLine: { hasSwitch(name: string): boolean };
}): void {
  const found = REMOTE_CONTROL.find((name) => app.commandLine.hasSwitch(name));
  if (found === undefined || !app.isPackaged || url() !== undefined) return;
  throw new Failure(
    'invalid_input',
    `The switch --${found} lets other programs read the window. Start Helmdeck Memory without it.`,
  );
}
