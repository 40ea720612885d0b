import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const BETWEEN_MS = { linux: 50, other: 500 };

/** Tells once when a process has more than `most` bytes in memory. Of Windows it knows nothing; there the bound of the heap is all. */
export function watchProcessMemory(pid: number, most: number, tell: () => void): Disposable {
  if (process.platform === 'win32') return { [Symbol.dispose]: () => undefined };
  const look = process.platform === 'linux' ? fromProc : fromPs;
  let looking = false;
  const timer = setInterval(
    () => {
      if (looking) return;
      looking = true;
      void look(pid)
        .then((kib) => {
          if (kib * 1024 > most) tell();
        })
        // It has ended.
        .catch(() => undefined)
        .finally(() => (looking = false));
    },
    process.platform === 'linux' ? BETWEEN_MS.linux : BETWEEN_MS.other,
  );
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Its own and that of all below it: confined, it runs below the program that confines it. */
async function fromProc(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'latin1').catch(() => '');
  const below = await Promise.all(
    children
      .split(' ')
      .filter((child) => child !== '')
      .map((child) => fromProc(Number(child))),
  );
  const status = await readFile(`/proc/${pid}/status`, 'latin1').catch(() => '');
  return below.reduce((sum, size) => sum + size, residentOf(status));
}

const residentOf = (status: string): number => Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0);

async function fromPs(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('/bin/ps', ['-o', 'rss=', '-p', String(pid)], { env: {} });
  return Number(stdout.trim());
}
