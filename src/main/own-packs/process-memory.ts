import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const INTERVAL_MS = { linux: 50, other: 500 };

/**
 * Calls `onExceeded` each time that a process is found to use more than `most` bytes of memory. Does nothing on Windows, where
 * only the heap limit applies.
 */
export function watchProcessMemory(pid: number, most: number, onExceeded: () => void): Disposable {
  if (process.platform === 'win32') return { [Symbol.dispose]: () => undefined };
  const readKib = process.platform === 'linux' ? fromProc : fromPs;
  let reading = false;
  const timer = setInterval(
    () => {
      if (reading) return;
      reading = true;
      void readKib(pid)
        .then((kib) => {
          if (kib * 1024 > most) onExceeded();
        })
        // Ignore the error: the process has exited.
        .catch(() => undefined)
        .finally(() => (reading = false));
    },
    process.platform === 'linux' ? INTERVAL_MS.linux : INTERVAL_MS.other,
  );
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/**
 * Returns the memory of the process and all its descendants in KiB. Descendants count, because a confined pack runs as a
 * descendant of the sandbox program.
 */
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
