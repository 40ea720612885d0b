import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../../contract/failure.ts';
import { UsageError } from '../cli/errors.ts';
import { ROOT } from './installation.ts';
import { refuseStart } from './refuse-start.ts';
import { buildIfStale } from './start/build-if-stale.ts';
import { runDesktop } from './start/desktop.ts';
import { fetchElectron, findElectron } from './start/electron.ts';

/** Entry point of `npm start`. Starts the desktop program. If it cannot start, prints why and starts the headless program. */

const ELECTRON = join(ROOT, 'node_modules/electron');

type Mode = 'desktop' | 'headless' | 'either';

/** The reason why the desktop program cannot start, and how to fix the problem. */
interface NoDesktop {
  readonly why: string;
  readonly remedy: string;
}

function parseMode(args: readonly string[]): Mode {
  if (args.length === 0) return 'either';
  if (args.length === 1 && args[0] === '--desktop') return 'desktop';
  if (args.length === 1 && args[0] === '--headless') return 'headless';
  throw new UsageError(
    'The only valid arguments are --desktop and --headless. Settings come from the environment or from config.json.',
  );
}

/** Runs the desktop program until it exits. Returns a reason if the program could not start. */
async function runDesktopProgram(): Promise<NoDesktop | undefined> {
  const { env: environment, platform } = process;
  if (platform === 'linux' && !environment['WAYLAND_DISPLAY'] && !environment['DISPLAY']) {
    return {
      why: 'This session has no display.',
      remedy: 'Start Helmdeck Memory in a graphical session (DISPLAY or WAYLAND_DISPLAY).',
    };
  }
  if (platform === 'linux' && process.getuid?.() === 0) {
    return { why: 'Electron does not run as root.', remedy: 'Start Helmdeck Memory as a normal user.' };
  }
  const buildError = await buildIfStale(ROOT, console.log);
  if (buildError !== undefined) return { why: 'The window is not built.', remedy: buildError };
  const missing = await fetchIfMissing();
  if (missing) return missing;
  const electron = findElectron(ROOT, environment);
  if (electron === undefined) return { why: `Electron is missing from ${ELECTRON}.`, remedy: 'Run npm ci.' };
  const exit = await runDesktop({ electron, root: ROOT, environment });
  if (exit.at === 'died')
    return { why: `Electron exited during startup (${exit.why}).`, remedy: 'The README lists the system requirements.' };
  process.exitCode = exit.code;
  return undefined;
}

async function fetchIfMissing(): Promise<NoDesktop | undefined> {
  const { env: environment } = process;
  if (findElectron(ROOT, environment) !== undefined || environment['ELECTRON_OVERRIDE_DIST_PATH']) return undefined;
  // The cast is safe, because npm installed this package.json.
  const { version } = JSON.parse(readFileSync(join(ELECTRON, 'package.json'), 'utf8')) as { version: string };
  console.log(`Downloading Electron ${version} (about 110 MB, only once)…`);
  const terminal = process.stdout.isTTY;
  const why = await fetchElectron({
    installer: join(ELECTRON, 'install.js'),
    into: join(ELECTRON, 'dist'),
    environment,
    progress: (bytes) => void (terminal && process.stdout.write(`\r${Math.round(bytes / 1e6)} MB `)),
  });
  if (terminal) process.stdout.write('\r');
  if (why === undefined) return undefined;
  return {
    why: `Electron could not be downloaded (${why}).`,
    remedy: 'To retry, start Helmdeck Memory again, or set ELECTRON_MIRROR to another download server.',
  };
}

async function main(): Promise<void> {
  try {
    const mode = parseMode(process.argv.slice(2));
    if (mode !== 'headless') {
      const problem = await runDesktopProgram();
      if (!problem) return;
      if (mode === 'desktop') throw new Failure('unavailable', `${problem.why} ${problem.remedy}`);
      console.log(`Starting without the desktop window. ${problem.why}\n${problem.remedy}`);
    }
    // Build the window, which the headless program serves to browsers. If the build fails, the program runs without the window.
    const buildError = await buildIfStale(ROOT, console.log);
    if (buildError !== undefined) console.log(`The window of Helmdeck Memory is not available in a browser. ${buildError}`);
  } catch (error) {
    process.exitCode = refuseStart(error);
    return;
  }
  await import('./headless.ts');
}

void main();
