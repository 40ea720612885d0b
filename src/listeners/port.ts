import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import { basename } from 'node:path';
import { Failure } from '../contract/failure.ts';
import { errorCodeOf } from '../core/file/files.ts';
import { formatListenAddress, type ListenAddress } from './address.ts';
import { publisherPid } from './endpoint.ts';

/**
 * Makes the server listen on the address. If the port is in use, the error names the program that uses the port, if possible
 * (R-HTTP-02). `setting` names the address in the error.
 */
export async function listenOn(
  server: Server,
  address: ListenAddress,
  folder: string,
  setting: 'HELMDECK_ADDR' | 'HELMDECK_SERVER_ADDR' = 'HELMDECK_ADDR',
): Promise<void> {
  try {
    server.listen({ ...address, exclusive: true });
    await once(server, 'listening');
  } catch (cause) {
    throw new Failure('unavailable', describeListenError(errorCodeOf(cause), address, folder, setting), { cause });
  }
}

function describeListenError(code: string, address: ListenAddress, folder: string, setting: string): string {
  const text = formatListenAddress(address);
  switch (code) {
    case 'EADDRINUSE':
      return `${text} is in use by ${describePortHolder(address, publisherPid(folder, address.port))}; stop it, or set ${setting} to another port.`;
    case 'EACCES':
      return `This user is not allowed to listen on ${text}; set ${setting} to an address with a port of 1024 or above.`;
    default:
      return `This machine cannot listen on ${text}; set ${setting} to ${setting === 'HELMDECK_ADDR' ? '127.0.0.1' : 'an address of this machine'} with a port.`;
  }
}

/**
 * Describes the program that listens on a port. `publisher` is the running process that `endpoint.json` names for this port. On
 * Linux the listening process itself can be found, but only if it belongs to the same user.
 */
export function describePortHolder({ port }: ListenAddress, publisher: number | undefined): string {
  const holder = process.platform === 'linux' ? findHolderOnLinux(port) : undefined;
  if (publisher !== undefined && (!holder || holder.pid === `${publisher}`)) {
    return `another Helmdeck Memory (process ${publisher})`;
  }
  if (holder) return `${holder.name} (process ${holder.pid})`;
  if (process.platform === 'linux') return 'another program (of another user, so Linux does not show which)';
  const command = process.platform === 'win32' ? `netstat -ano | findstr :${port}` : `lsof -nP -iTCP:${port} -sTCP:LISTEN`;
  return `another program (to find out which, run: ${command})`;
}

function findHolderOnLinux(port: number): { pid: string; name: string } | undefined {
  const sockets = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => listeningSockets(table, port)));
  const pid = listFolder('/proc').find((name) => /^\d+$/.test(name) && hasSocket(name, sockets));
  return pid === undefined ? undefined : { pid, name: programNameOf(pid) };
}

const LISTEN_STATE = '0A';

/** Returns the names of the sockets that listen on the port, from one of the kernel's tables of sockets. */
function listeningSockets(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return orElse('', () => readFileSync(table, 'latin1'))
    .split('\n')
    .slice(1)
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(suffix) && state === LISTEN_STATE)
    .map((columns) => `socket:[${columns[9]}]`);
}

const hasSocket = (pid: string, sockets: ReadonlySet<string>): boolean =>
  listFolder(`/proc/${pid}/fd`).some((fd) => sockets.has(orElse('', () => readlinkSync(`/proc/${pid}/fd/${fd}`))));

const listFolder = (folder: string): string[] => orElse([], () => readdirSync(folder));

/** Returns the name of the executable. Does not return the command line, which could contain a secret. */
const programNameOf = (pid: string): string =>
  basename(orElse('', () => readlinkSync(`/proc/${pid}/exe`))).replace(/[^ -~]/g, '') || 'a program';

/** Returns the result of `read`. Returns the fallback if `read` throws, because a process or table is missing or not readable. */
function orElse<T>(fallback: T, read: () => T): T {
  try {
    return read();
  } catch {
    return fallback;
  }
}
