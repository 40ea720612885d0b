import { withProgramCall } from '../contract/program-call.ts';
import { assemble } from './assemble.ts';
import type { BuildInfo } from './build-info.ts';
import { findBuiltPages } from './built-pages.ts';
import { type HostMachine, readConfig } from './config/config.ts';
import { readSettings } from './config/settings-file.ts';
import { packReport, startReport } from './start-report.ts';

interface Serving extends BuildInfo {
  readonly machine: HostMachine;
  /** Hears once what the owner is told when agents can come. */
  readonly ready: (started: ServedProgram) => Promise<void>;
  /** Until when it goes on; asked for when the memory is open, so that a signal before that ends the program as it stands. */
  readonly ended: () => Promise<void>;
}

export interface ServedProgram {
  readonly url: string;
  /** Makes a link that opens the window in a browser, once; undefined where no window was built. */
  readonly makeLink: (() => string | undefined) | undefined;
  readonly folder: string;
  /** How it is kept and how its key stands, in lines for a person. */
  readonly report: readonly string[];
}

/** The whole program without a window. What opens last closes first. */
export async function serve({ machine, version, updates, ready, ended }: Serving): Promise<void> {
  const settings = readSettings(machine);
  const { environment } = settings;
  const config = readConfig({ environment, platform: machine.platform, home: () => machine.home() });
  // A name that comes from outside then reaches no prototype, whatever code of whomever reads it.
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

/** The one line that says where. */
export const readyLine = ({ url }: ServedProgram): string =>
  `Helmdeck Memory is running at ${url}. End it with Ctrl+C or SIGTERM.`;

/**
 * How to open the window without a desktop. The link is printed to a terminal only: it opens the memory with all rights, and a
 * journal or a log file has other readers and keeps it.
 */
export function windowLines({ makeLink }: ServedProgram, toTerminal: boolean): string[] {
  if (!makeLink) return [];
  const link = toTerminal ? makeLink() : undefined;
  return [
    link === undefined
      ? withProgramCall('To open its window in a browser, run: helmdeck-memory window')
      : `Its window, for five minutes and one browser: ${link}`,
  ];
}
