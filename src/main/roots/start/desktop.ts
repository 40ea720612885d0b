import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** The exit code of the desktop program, or the reason why it exited before it was ready. */
export type DesktopExit = { readonly at: 'ended'; readonly code: number } | { readonly at: 'died'; readonly why: string };

interface DesktopOptions {
  readonly electron: string;
  /** The folder with package.json, where Electron finds the name, version and main script. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Matches log lines of Chromium and GTK that do not help the owner. */
const LIBRARY_NOISE = /^\[\d+[:/]|^Gtk-|^\(electron:|^$/;
const STARTED = /^Helmdeck Memory is (already )?running/;
const REFUSED = /^Helmdeck Memory cannot start/;

/** Runs Electron in this terminal and forwards signals. */
export function runDesktop({ electron, root, environment }: DesktopOptions): Promise<DesktopExit> {
  // Remove ELECTRON_RUN_AS_NODE, which some editors set in their terminals. It would make Electron run as plain Node.
  const { ELECTRON_RUN_AS_NODE: _, ...rest } = environment;
  const child = spawn(electron, [root], { env: rest, stdio: ['inherit', 'pipe', 'pipe'] });
  // True when the desktop has printed that it runs or why it cannot start. A later exit is not a failed start.
  let reported = false;
  let lastError = '';
  createInterface(child.stdout).on('line', (line) => {
    reported ||= STARTED.test(line);
    console.log(line);
  });
  createInterface(child.stderr).on('line', (line) => {
    reported ||= REFUSED.test(line);
    if (line.trim() !== '') lastError = line;
    if (!LIBRARY_NOISE.test(line)) console.error(line);
  });
  const forward = (signal: NodeJS.Signals): void => {
    // On Windows, the child also receives Ctrl+C directly, and `kill` would terminate the child without any cleanup.
    if (process.platform !== 'win32') child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, forward);
  const { promise, resolve } = Promise.withResolvers<DesktopExit>();
  child.once('error', ({ message }) => resolve({ at: 'died', why: message }));
  child.once('close', (code, signal) => {
    if (reported || code === 0) return resolve({ at: 'ended', code: code ?? 1 });
    const cause = signal === null ? `exit code ${code}` : signal;
    resolve({ at: 'died', why: lastError === '' ? cause : `${cause}: ${lastError}` });
  });
  return promise.finally(() => {
    for (const signal of SIGNALS) process.off(signal, forward);
  });
}
