import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** The exit code of the desktop program, or why it died before it started. */
export type DesktopExit = { readonly at: 'ended'; readonly code: number } | { readonly at: 'died'; readonly why: string };

interface Running {
  readonly electron: string;
  /** The folder with package.json, where Electron finds the name, version and main script. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Log lines of Chromium and GTK, which are of no use to the owner. */
const CHROMIUMS = /^\[\d+[:/]|^Gtk-|^\(electron:|^$/;
const STARTED = /^Helmdeck Memory is (already )?running/;
const REFUSED = /^Helmdeck Memory cannot start/;

/** Runs Electron in this terminal and forwards signals. */
export function runDesktop({ electron, root, environment }: Running): Promise<DesktopExit> {
  // Some editors set this variable in their terminals. It makes Electron run as plain Node.
  const { ELECTRON_RUN_AS_NODE: _, ...rest } = environment;
  const child = spawn(electron, [root], { env: rest, stdio: ['inherit', 'pipe', 'pipe'] });
  // After either line, an exit is no longer a failed start.
  let spoke = false;
  let last = '';
  createInterface(child.stdout).on('line', (line) => {
    spoke ||= STARTED.test(line);
    console.log(line);
  });
  createInterface(child.stderr).on('line', (line) => {
    spoke ||= REFUSED.test(line);
    if (line.trim() !== '') last = line;
    if (!CHROMIUMS.test(line)) console.error(line);
  });
  const pass = (signal: NodeJS.Signals): void => {
    // Windows signals both processes itself, and `kill` would end the child at once.
    if (process.platform !== 'win32') child.kill(signal);
  };
  for (const signal of SIGNALS) process.on(signal, pass);
  const { promise, resolve } = Promise.withResolvers<DesktopExit>();
  child.once('error', ({ message }) => resolve({ at: 'died', why: message }));
  child.once('close', (code, signal) => {
    const how = signal === null ? `exit code ${code}` : signal;
    resolve(spoke || code === 0 ? { at: 'ended', code: code ?? 1 } : { at: 'died', why: last === '' ? how : `${how}: ${last}` });
  });
  return promise.finally(() => {
    for (const signal of SIGNALS) process.off(signal, pass);
  });
}
