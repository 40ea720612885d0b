import { url } from 'node:inspector';
import { Failure } from '../../contract/failure.ts';

/**
 * Any process of this user can send SIGUSR1. Node then opens a debugger, which can read the master key. The launchers pass
 * `--disable-sigusr1`; this handler protects a program that was started without that option.
 */
export function ignoreDebuggerSignal(): void {
  if (process.platform !== 'win32') process.on('SIGUSR1', () => undefined);
}

/** The signal can arrive before the first line of this program runs. So this checks again right before the key is read. */
export function refuseDebugger(): void {
  // Electron takes Node's options among its own arguments.
  const args = 'electron' in process.versions ? process.argv : process.execArgv;
  if (url() === undefined || args.some((arg) => arg.startsWith('--inspect'))) return;
  throw new Failure(
    'key_unavailable',
    'A debugger was opened on this process and could read the key of the memory. Start the program again. To use a debugger, pass --inspect to node.',
  );
}

/** Chromium switches that let another program read and control the window. No fuse of Electron turns them off. */
const REMOTE_CONTROL = ['remote-debugging-port', 'remote-debugging-pipe'];

/** A release refuses Chromium's debugger. Test builds allow it: their fuses enable Node's debugger. */
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
