import { withCliCommand } from '../contract/cli-command.ts';
import { assemble } from './assemble.ts';
import type { BuildInfo } from './build-info.ts';
import { findBuiltPages } from './built-pages.ts';
import { type HostMachine, readConfig } from './config/config.ts';
import { readSettings } from './config/settings-file.ts';
import { packReport, startReport } from './start-report.ts';

interface Serving extends BuildInfo {
  readonly machine: HostMachine;
  /** Called once, when the program accepts connections. */
  readonly ready: (started: ServedProgram) => Promise<void>;
  /** Resolves when the program should stop. Called after the memory is open, so that an earlier signal kills the process. */
  readonly ended: () => Promise<void>;
}

export interface ServedProgram {
  readonly url: string;
  /** Creates a one-time link that opens the window in a browser. Undefined if the window is not built. */
  readonly makeLink: (() => string | undefined) | undefined;
  readonly folder: string;
  /** Lines about the memory file, its key and skipped packs. */
  readonly report: readonly string[];
}

/** Runs the whole program without a window. Closes everything in reverse order. */
export async function serve({ machine, version, updates, ready, ended }: Serving): Promise<void> {
  const settings = readSettings(machine);
  const { environment } = settings;
  const config = readConfig({ environment, platform: machine.platform, home: () => machine.home() });
  // Prevents prototype pollution through `__proto__` in input, also in libraries.
  Reflect.deleteProperty(Object.prototype, '__proto__');
  await using program = await assemble(config, { ...settings, desktop: false, version, updates, pages: findBuiltPages() });
  const { listening } = program;
  await listening.resume();
  const { listener } = listening;
  const over = ended();
  const report = [...startReport(program.store.status(), config.folder), ...packReport(program.packs.skipped)];
  await ready({
    url: listener?.url ?? '',
    makeLink: listener?.windowSessions && (() => listener.windowLink()),
    folder: config.folder,
    report,
  });
  await over;
}

/** The last line of the start output. Scripts wait for it. */
export const readyLine = ({ url }: ServedProgram): string =>
  `Helmdeck Memory is running at ${url}. Stop it with Ctrl+C or SIGTERM.`;

/**
 * How to open the window in a browser. The link gives full access, so it is printed only to a terminal and never to a log.
 */
export function windowLines({ makeLink }: ServedProgram, toTerminal: boolean): string[] {
  if (!makeLink) return [];
  const link = toTerminal ? makeLink() : undefined;
  return [
    link === undefined
      ? withCliCommand('To open the window in a browser, run: helmdeck-memory window')
      : `Open the window in a browser within five minutes (the link works once): ${link}`,
  ];
}
