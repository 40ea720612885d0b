import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '../contract/failure.ts';
import { buildIfStale } from './start/build-if-stale.ts';
import { runDesktop } from './start/desktop.ts';
import { fetchElectron, findElectron } from './start/electron.ts';

/** What `npm start` runs: the desktop where there can be one, else the same without a window, and it says why. */

const ROOT = join(import.meta.dirname, '../..');
const ELECTRON = join(ROOT, 'node_modules/electron');

type Wish = 'desktop' | 'headless' | 'either';

/** What keeps the window away, and what brings it. */
interface NoWindow {
  readonly why: string;
  readonly remedy: string;
}

function wishIn(args: readonly string[]): Wish {
  if (args.length === 0) return 'either';
  if (args.length === 1 && args[0] === '--desktop') return 'desktop';
  if (args.length === 1 && args[0] === '--headless') return 'headless';
  throw new Failure(
    'invalid_input',
    'it takes --desktop or --headless and nothing else; settings stand in the environment or in config.json.',
  );
}

/** Fulfils when the desktop has ended, or with what keeps it from starting. */
async function desktop(): Promise<NoWindow | undefined> {
  const { env: environment, platform } = process;
  if (platform === 'linux' && !environment['WAYLAND_DISPLAY'] && !environment['DISPLAY']) {
    return { why: 'this session has no screen.', remedy: 'Start it in a session with one (DISPLAY or WAYLAND_DISPLAY).' };
  }
  if (platform === 'linux' && process.getuid?.() === 0) {
    return { why: 'Electron does not run as root.', remedy: 'Start it as an ordinary user.' };
  }
  const unbuilt = await buildIfStale(ROOT, console.log);
  if (unbuilt !== undefined) return { why: 'it is not built.', remedy: unbuilt };
  const missing = await fetchIfMissing();
  if (missing) return missing;
  const electron = findElectron(ROOT, environment);
  if (electron === undefined) return { why: `Electron is not in ${ELECTRON}.`, remedy: 'Run npm ci.' };
  const ran = await runDesktop({ electron, root: ROOT, environment });
  if (ran.at === 'died')
    return { why: `Electron ended while it started (${ran.why}).`, remedy: 'The README says what it needs of the system.' };
  process.exitCode = ran.code;
  return undefined;
}

async function fetchIfMissing(): Promise<NoWindow | undefined> {
  const { env: environment } = process;
  if (findElectron(ROOT, environment) !== undefined || environment['ELECTRON_OVERRIDE_DIST_PATH']) return undefined;
  // npm's own file; its shape is its promise.
  const { version } = JSON.parse(readFileSync(join(ELECTRON, 'package.json'), 'utf8')) as { version: string };
  console.log(`Fetching Electron ${version}, some 110 MB, this one time…`);
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
    why: `Electron could not be fetched (${why}).`,
    remedy: 'The next start tries again; ELECTRON_MIRROR may name another place to fetch it from.',
  };
}

async function main(): Promise<void> {
  try {
    const wish = wishIn(process.argv.slice(2));
    if (wish !== 'headless') {
      const none = await desktop();
      if (!none) return;
      if (wish === 'desktop') throw new Failure('unavailable', `${none.why} ${none.remedy}`);
      console.log(`No window of its own: ${none.why}\n${none.remedy} Until then it runs without.`);
    }
    // A browser may show the same window; where it cannot be built, the rest runs all the same.
    const unbuilt = await buildIfStale(ROOT, console.log);
    if (unbuilt !== undefined) console.log(`No window in a browser either. ${unbuilt}`);
  } catch (error) {
    // What was not foreseen keeps its stack, for whoever has to find out.
    if (!(error instanceof Failure)) throw error;
    console.error(`Helmdeck Memory cannot start: ${error.message}`);
    process.exitCode = 1;
    return;
  }
  await import('./headless.ts');
}

void main();
