import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempDisposableSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Electron's binary, where its package puts it, or another one that its own setting names. The package itself cannot be asked:
 * it would fetch the binary, for as long as that takes.
 */
export function findElectron(root: string, environment: Environment): string | undefined {
  const folder = join(root, 'node_modules/electron');
  // Its installer writes this file last.
  const written = join(folder, 'path.txt');
  const other = environment['ELECTRON_OVERRIDE_DIST_PATH'];
  const name = existsSync(written) ? readFileSync(written, 'utf8') : 'electron';
  if (other) return present(join(other, name));
  return existsSync(written) ? present(join(folder, 'dist', name)) : undefined;
}

const present = (file: string): string | undefined => (existsSync(file) ? file : undefined);

interface Fetching {
  /** Electron's own: it compares what came with the hashes in its package. */
  readonly installer: string;
  /** Where it unpacks to. */
  readonly into: string;
  /** Hears how many bytes there are by now. */
  readonly progress: (bytes: number) => void;
  readonly environment: Environment;
  /** Milliseconds: until the first byte, between two, and in all. */
  readonly timeouts?: { readonly first: number; readonly next: number; readonly all: number };
}

const PATIENCE = { first: 8000, next: 30_000, all: 15 * 60_000 };
const LOOK_MS = 250;

/** Fetches the binary. The result says why that could not be; a host that cannot be reached is given up within seconds. */
export async function fetchElectron(fetching: Fetching): Promise<string | undefined> {
  const { installer, into, progress, environment, timeouts: patience = PATIENCE } = fetching;
  // What is under way lies in a folder of its own: there one sees how much came, and nothing is left behind.
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
    if (now - moved > limit) giveUp(`nothing came for ${Math.round(limit / 1000)} seconds`);
    else if (now - begun > patience.all) giveUp(`it took longer than ${Math.round(patience.all / 60_000)} minutes`);
  }, LOOK_MS);
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    return gaveUp ?? (code === 0 ? undefined : causeIn(complaint) || `exit code ${code}`);
  } finally {
    clearInterval(watch);
  }
}

/** What went wrong, out of what a program says when it does: around it stands where in its own files that was. */
function causeIn(complaint: string): string {
  const lines = complaint.trim().split('\n');
  const line = lines.find((one) => /^\w*Error: /.test(one)) ?? lines[0] ?? '';
  return line.replace(/^(\w*Error: )+/, '').slice(0, 200);
}

function bytesBelow(folder: string): number {
  const sizes = globSync('**/*', { cwd: folder }).map((path) => {
    // What was there a moment ago may have been moved since; a folder has a size too, and is made before anything came.
    const found = statSync(join(folder, path), { throwIfNoEntry: false });
    return found?.isFile() ? found.size : 0;
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}
