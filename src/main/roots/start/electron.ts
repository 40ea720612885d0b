import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempDisposableSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The path of the Electron binary, from its package or from ELECTRON_OVERRIDE_DIST_PATH. Importing the package instead would
 * download a missing binary without a timeout.
 */
export function findElectron(root: string, environment: Environment): string | undefined {
  const folder = join(root, 'node_modules/electron');
  // The installer writes this file last.
  const written = join(folder, 'path.txt');
  const other = environment['ELECTRON_OVERRIDE_DIST_PATH'];
  const name = existsSync(written) ? readFileSync(written, 'utf8') : 'electron';
  if (other) return present(join(other, name));
  return existsSync(written) ? present(join(folder, 'dist', name)) : undefined;
}

const present = (file: string): string | undefined => (existsSync(file) ? file : undefined);

interface Fetching {
  /** Electron's own installer, which verifies the download by the hashes in its package. */
  readonly installer: string;
  /** The folder that it unpacks to. */
  readonly into: string;
  /** Called with the number of bytes so far. */
  readonly progress: (bytes: number) => void;
  readonly environment: Environment;
  /** In milliseconds: until the first byte, between bytes, and overall. */
  readonly timeouts?: { readonly first: number; readonly next: number; readonly all: number };
}

const PATIENCE = { first: 8000, next: 30_000, all: 15 * 60_000 };
const LOOK_MS = 250;

/** Downloads the binary. Returns the reason if that fails; gives up on an unreachable host within seconds. */
export async function fetchElectron(fetching: Fetching): Promise<string | undefined> {
  const { installer, into, progress, environment, timeouts: patience = PATIENCE } = fetching;
  // A separate temporary folder shows the progress, and leaves no partial files behind.
  using temp = mkdtempDisposableSync(join(tmpdir(), 'helmdeck-electron-'));
  const child = spawn(process.execPath, [installer], {
    env: { ...environment, TMPDIR: temp.path, TEMP: temp.path, TMP: temp.path, ELECTRON_GET_NO_PROGRESS: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let complaint = '';
  child.stderr.on('data', (text: Buffer) => (complaint += text.toString()));
  let gaveUp: string | undefined;
  const giveUp = (why: string): void => {
    gaveUp = why;
    child.kill('SIGKILL');
  };
  const begun = performance.now();
  const before = bytesBelow(into);
  let bytes = 0;
  let moved = begun;
  const watch = setInterval(() => {
    const now = performance.now();
    const there = bytesBelow(temp.path) + bytesBelow(into) - before;
    if (there !== bytes) {
      moved = now;
      bytes = there;
      progress(bytes);
    }
    const limit = bytes === 0 ? patience.first : patience.next;
    if (now - moved > limit) giveUp(`no data for ${Math.round(limit / 1000)} seconds`);
    else if (now - begun > patience.all) giveUp(`the download took longer than ${Math.round(patience.all / 60_000)} minutes`);
  }, LOOK_MS);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return gaveUp ?? (code === 0 ? undefined : causeIn(complaint) || `exit code ${code}`);
  } finally {
    clearInterval(watch);
  }
}

/** Extracts the error message from a stack trace. */
function causeIn(complaint: string): string {
  const lines = complaint.trim().split('\n');
  const line = lines.find((one) => /^\w*Error: /.test(one)) ?? lines[0] ?? '';
  return line.replace(/^(\w*Error: )+/, '').slice(0, 200);
}

function bytesBelow(folder: string): number {
  const sizes = globSync('**/*', { cwd: folder }).map((path) => {
    // The file can be gone by now. Folders are not counted, because they have a size before any data arrives.
    const found = statSync(join(folder, path), { throwIfNoEntry: false });
    return found?.isFile() ? found.size : 0;
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}
