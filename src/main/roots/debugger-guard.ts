import { url } from 'node:inspector';
import { Failure } from '../../contract/failure.ts';

/**
 * Any process of this user can send SIGUSR1, on which Node opens a debugger that can read the master key. The launchers pass
 * `--disable-sigusr1`; this covers the ways to start the program without it.
 */
export function ignoreDebuggerSignal(): void {
  if (process.platform !== 'win32') process.on('SIGUSR1', () => undefined);
}

/** The signal can arrive before our first line runs. So look once more right before the key is read. */
export function refuseDebugger(): void {
  // Electron takes Node's options among its own arguments.
  const given = 'electron' in process.versions ? process.argv : process.execArgv;
  const wanted = given.some((arg) => arg.startsWith('--inspect'));
  if (url() === undefined || wanted) return;
  throw new Failure(
    'key_unavailable',
    'A debugger was opened on this process, and it could read the key of your memory. Start the program again; if you want a debugger, pass --inspect to node yourself.',
  );
}

/** Chromium's switches that let another program read and drive the window, and that no fuse of Electron turns off. */
const REMOTE_CONTROL = ['remote-debugging-port', 'remote-debugging-pipe'];

/** A release hears no debugger, and Chromium's is one. A build whose fuses allow Node's debugger is a test's. */
export function refuseRemoteControl(app: {
  readonly isPackaged: boolean;
  readonly commandLine: { hasSwitch(name: string): boolean };
}): void {
  const asked = REMOTE_CONTROL.find((name) => app.commandLine.hasSwitch(name));
  if (asked === undefined || !app.isPackaged || url() !== undefined) return;
  throw new Failure(
    'invalid_input',
    `It was started with --${asked}, by which other programs could read its window. Start it without.`,
  );
}
