import { withCliCommand } from '../../contract/cli-command.ts';
import { type HostMachine, readConfig, requireValidAddress } from '../config/config.ts';
import { readSettings } from '../config/settings-file.ts';
import { assemble } from './assemble.ts';
import { type BuildInfo, findWindowFolder } from './installation.ts';
import { packReport, startReport } from './start-report.ts';

interface Serving extends BuildInfo {
  readonly machine: HostMachine;
  /** Called once, when the program accepts connections. */
  readonly ready: (started: ServedProgram) => Promise<void>;
  /** Resolves when the program should stop. Called after the memory is open, so that an earlier signal kills the process. */
  readonly ended: () => Promise<void>;
}

interface ServedProgram {
  readonly url: string;
  readonly folder: string;
  /** The lines to print: where the memory is, the state of its key, how to open the window, and last the address. */
  readonly report: readonly string[];
}

/** Runs the whole program without a window. Closes everything in reverse order. */
export async function serve({ machine, version, updates, ready, ended }: Serving): Promise<void> {
  const settings = readSettings(machine);
  requireValidAddress(settings);
  const config = readConfig(settings);
  // Prevents prototype pollution through `__proto__` in input, also in libraries.
  Reflect.deleteProperty(Object.prototype, '__proto__');
  await using program = await assemble(config, { ...settings, desktop: false, version, updates, pages: findWindowFolder() });
  const { listening } = program;
  await listening.resume();
  const { listener } = listening;
  const stopped = ended();
  const url = listener?.url ?? '';
  await ready({
    url,
    folder: config.folder,
    report: [
      ...startReport(program.store.status(), config.folder),
      ...packReport(program.packs.skipped),
      ...(listener?.windowSessions ? [withCliCommand(OPEN_WINDOW)] : []),
      // The last line. Scripts wait for it.
      `Helmdeck Memory is running at ${url}. Stop it with Ctrl+C or SIGTERM.`,
    ],
  });
  await stopped;
}

/**
 * The link itself grants all rights, and a start cannot know who reads its output: a container's log also records a terminal
 * (`docker run -t`). So only the command that prints a link is shown (R-WIN-45).
 */
const OPEN_WINDOW = 'To open the window in a browser, run: helmdeck-memory window';
