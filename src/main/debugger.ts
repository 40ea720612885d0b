import { url } from 'node:inspector';
import { Failure } from '../contract/failure.ts';

/**
 * Any process of this user can send SIGUSR1, on which Node opens a debugger that can read the master key. The launchers pass
 * `--disable-sigusr1`; this covers the ways to start the program without it.
 */
export function ignoreDebuggerSignal(): void {
  if (process.platform !== 'win32') process.on('SIGUSR1', () => undefined);
}

/** The signal can arrive before our first line runs. So look once more right before the key is read. */
export function refuseDebugger(): void {
  const wanted = process.execArgv.some((arg) => arg.startsWith('--inspect'));
  if (url() === undefined || wanted) return;
  throw new Failure(
    'key_unavailable',
    'A debugger was opened on this process, and it could read the key of your memory. Start the program again; if you want a debugger, pass --inspect to node yourself.',
  );
}
