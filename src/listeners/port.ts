import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import type { ListenAddress } from './address.ts';

/**
 * Who listens there, in words for the owner. `ours` is the process that says so in endpoint.json, if one does. Beyond that we
 * know what the system tells: Linux does, about programs of the same user.
 */
export function describePortHolder({ port }: ListenAddress, ours: number | undefined): string {
  const holder = process.platform === 'linux' ? onLinux(port) : undefined;
  if (ours !== undefined && (!holder || holder.pid === `${ours}`)) return `another Helmdeck Memory (process ${ours})`;
  if (holder) return `${holder.name} (process ${holder.pid})`;
  if (process.platform === 'linux') return 'another program (of another user, else Linux would tell us which)';
  const find = process.platform === 'win32' ? `netstat -ano | findstr :${port}` : `lsof -nP -iTCP:${port} -sTCP:LISTEN`;
  return `another program (this system does not tell us which; find it with: ${find})`;
}

function onLinux(port: number): { pid: string; name: string } | undefined {
  const sockets = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => listening(table, port)));
  const pid = namesIn('/proc').find((name) => /^\d+$/.test(name) && holds(name, sockets));
  return pid === undefined ? undefined : { pid, name: nameOf(pid) };
}

const LISTEN = '0A';

/** What the sockets that listen on a port are called, from a table of the kernel. */
function listening(table: string, port: number): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return orElse('', () => readFileSync(table, 'latin1'))
    .split('\n')
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(wanted) && state === LISTEN)
    .map((columns) => `socket:[${columns[9]}]`);
}

const holds = (pid: string, sockets: ReadonlySet<string>): boolean =>
  namesIn(`/proc/${pid}/fd`).some((fd) => sockets.has(orElse('', () => readlinkSync(`/proc/${pid}/fd/${fd}`))));

const namesIn = (folder: string): string[] => orElse([], () => readdirSync(folder));

/** By its file: how it was called may hold anything, a secret too. */
const nameOf = (pid: string): string =>
  basename(orElse('', () => readlinkSync(`/proc/${pid}/exe`))).replace(/[^ -~]/g, '') || 'a program';

/** Programs end while we look, others are not ours to look into, and a kernel may have no such table. */
function orElse<T>(otherwise: T, look: () => T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}
