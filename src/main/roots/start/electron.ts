import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempDisposableSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the path of the Electron binary, from the package `electron` or from ELECTRON_OVERRIDE_DIST_PATH. Does not import the
 * package, because the import would download a missing binary without a timeout.
 */
export function findElectron(root: string, environment: Environment): string | undefined {
  const folder = join(root, 'node_modules/electron');
  // The installer writes path.txt last, so if the file exists, the installation is complete.
  const written = join(folder, 'path.txt');
  const other = environment['ELECTRON_OVERRIDE_DIST_PATH'];
  const name = existsSync(written) ? readFileSync(written, 'utf8') : 'electron';
  if (other) return ifExists(join(other, name));
  return existsSync(written) ? ifExists(join(folder, 'dist', name)) : undefined;
}

const ifExists = (file: string): string | undefined => (existsSync(file) ? file : undefined);

interface DownloadOptions {
  /** Path of Electron's own installer, which verifies the download with the checksums in its package. */
  readonly installer: string;
  /** Folder into which the installer unpacks the binary. */
  readonly into: string;
  /** Called with the number of bytes that have been downloaded. */
  readonly progress: (bytes: number) => void;
  readonly environment: Environment;
  /** Timeouts in milliseconds: for the first byte, between two bytes, and for the whole download. */
  readonly timeouts?: { readonly first: number; readonly next: number; readonly all: number };
}

const TIMEOUTS = { first: 8000, next: 30_000, all: 15 * 60_000 };
const POLL_MS = 250;

/** Downloads the Electron binary. Returns undefined, or the error message if the download fails or times out. */
export async function fetchElectron(options: DownloadOptions): Promise<string | undefined> {
  const { installer, into, progress, environment, timeouts = TIMEOUTS } = options;
  // Use a separate temporary folder: its size shows the progress, and partial files are deleted with it.
  using temp = mkdtempDisposableSync(join(tmpdir(), 'helmdeck-electron-'));
  const child = spawn(process.execPath, [installer], {
    env: { ...environment, TMPDIR: temp.path, TEMP: temp.path, TMP: temp.path, ELECTRON_GET_NO_PROGRESS: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errorOutput = '';
  child.stderr.on('data', (text: Buffer) => (errorOutput += text.toString()));
  let abortReason: string | undefined;
  const abort = (why: string): void => {
    abortReason = why;
    child.kill('SIGKILL');
  };
  const startedAt = performance.now();
  const bytesBefore = bytesBelow(into);
  let bytes = 0;
  let progressAt = startedAt;
  const watch = setInterval(() => {
    const now = performance.now();
    const there = bytesBelow(temp.path) + bytesBelow(into) - bytesBefore;
    if (there !== bytes) {
      progressAt = now;
      bytes = there;
      progress(bytes);
    }
    const limit = bytes === 0 ? timeouts.first : timeouts.next;
    if (now - progressAt > limit) abort(`no data for ${Math.round(limit / 1000)} seconds`);
    else if (now - startedAt > timeouts.all) abort(`the download took longer than ${Math.round(timeouts.all / 60_000)} minutes`);
  }, POLL_MS);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return abortReason ?? (code === 0 ? undefined : causeIn(errorOutput) || `exit code ${code}`);
  } finally {
    clearInterval(watch);
  }
}

/** Extracts the error message from a stack trace. */
function causeIn(errorOutput: string): string {
  const lines = errorOutput.trim().split('\n');
  const line = lines.find((one) => /^\w*Error: /.test(one)) ?? lines[0] ?? '';
  return line.replace(/^(\w*Error: )+/, '').slice(0, 200);
}

function bytesBelow(folder: string): number {
  const sizes = globSync('**/*', { cwd: folder }).map((path) => {
    // Another process can have deleted the file. Do not count folders, because an empty folder also has a size.
    const found = statSync(join(folder, path), { throwIfNoEntry: false });
    return found?.isFile() ? found.size : 0;
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}
