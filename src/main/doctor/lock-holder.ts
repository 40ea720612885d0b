import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';

/** The process that holds the data folder, in words. Linux tells it, of programs of this machine. */
export function lockHolder(folder: string): string | undefined {
  try {
    const { ino } = statSync(join(folder, 'lock.db'));
    // 1: POSIX  ADVISORY  WRITE 4711 08:01:131072 1073741826 1073742335
    const rows = readFileSync('/proc/locks', 'latin1')
      .split('\n')
      .map((row) => row.trim().split(/\s+/));
    const pid = rows.find((columns) => columns[3] === 'WRITE' && columns[5]?.endsWith(`:${ino}`))?.[4];
    if (pid === undefined || !/^[1-9]\d*$/.test(pid)) return undefined;
    return `${nameOf(pid)} (process ${pid})`;
  } catch {
    return undefined;
  }
}

/** By its file: how it was called may hold anything, a secret too. */
function nameOf(pid: string): string {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)).replace(/[^ -~]/g, '') || 'a program';
  } catch {
    return 'a program';
  }
}
