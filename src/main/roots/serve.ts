import { withCliCommand } from '../../contract/cli-command.ts';
import { checkCertificate } from '../../listeners/team/certificate.ts';
import { type HostMachine, readConfig, requireValidAddress } from '../config/config.ts';
import { readSettings } from '../config/settings-file.ts';
import { assemble } from './assemble.ts';
import { type BuildInfo, findWindowFolder } from './installation.ts';
import { packReport, startReport } from './start-report.ts';

interface ServeOptions extends BuildInfo {
  readonly machine: HostMachine;
  /** Called once, when the server accepts connections. */
  readonly ready: (started: ServedProgram) => Promise<void>;
  /** Resolves when the program should stop. Called after the memory is open: a signal before that kills the process. */
  readonly ended: () => Promise<void>;
}

interface ServedProgram {
  readonly url: string;
  readonly folder: string;
  /** Lines to print: the path of the memory, the state of its key, how to open the window, and the address in the last line. */
  readonly report: readonly string[];
}

/** Runs the program without a desktop window, until `ended` resolves. */
export async function serve({ machine, version, updates, ready, ended }: ServeOptions): Promise<void> {
  const settings = readSettings(machine);
  requireValidAddress(settings);
  const config = readConfig(settings);
  // Before the memory is opened, so that nothing is written if the certificate cannot be used.
  if (config.team?.certificate) checkCertificate(config.team.certificate, Date.now());
  // Delete `__proto__`, so that input cannot change the prototype of all objects (prototype pollution), even in libraries.
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
      ...startReport(program.store.status(), config),
      ...packReport(program.packs.skipped),
      ...(listener?.windowSessions ? [withCliCommand(OPEN_WINDOW)] : []),
      ...(listener?.serverUrl === undefined ? [] : [`Other machines connect at ${listener.serverUrl}.`]),
      // Print this line last, because scripts wait for it.
      `Helmdeck Memory is running at ${url}. Stop it with Ctrl+C or SIGTERM.`,
    ],
  });
  await stopped;
}

/**
 * Startup line that names the command for a link, instead of the link itself (R-WIN-45). A link gives full access to the memory,
 * and other people can read this output in a container log, even with `docker run -t`.
 */
const OPEN_WINDOW = 'To open the window in a browser, run: helmdeck-memory window';
