import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** How the desktop program ended, or why there was none. */
export type DesktopExit = { readonly at: 'ended'; readonly code: number } | { readonly at: 'died'; readonly why: string };

interface Running {
  readonly electron: string;
  /** The folder with package.json: from there Electron takes name, version and main. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** How Chromium begins what it says to its developers. */
const CHROMIUMS = /^\[\d+[:/]|^Gtk-|^\(electron:|^$/;
const STARTED = /^Helmdeck Memory (is running|runs already)/;
const REFUSED = /^Helmdeck Memory cannot start/;

/** The same terminal; what ends this process ends the program, and the other way round. */
export function runDesktop({ electron, root, environment }: Running): Promise<DesktopExit> {
  // Some editors set it in their terminals; Electron would be a bare Node.
  const { ELECTRON_RUN_AS_NODE: _, ...rest } = environment;
  const child = spawn(electron, [root], { env: rest, stdio: ['inherit', 'pipe', 'pipe'] });
  // Once it has said either, how it ends is its own affair.
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
    // Windows tells both itself, and to send a signal there is to end a process at once.
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
