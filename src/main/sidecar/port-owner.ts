import { execFile } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { win32 } from 'node:path';

/** The process that listens on a port: the expected process, another process, or none. */
export type PortOwner = 'expected' | 'another' | 'none';

/**
 * Determines whether the process `pid` listens on a port. Callers must send nothing unless the result is `expected`: another
 * program that took the port would receive the text to embed (R-EMB-05).
 */
export async function ownerOf(port: number, pid: number): Promise<PortOwner> {
  const { platform } = process;
  if (platform === 'linux') return onLinux(port, pid);
  if (platform === 'win32') return among(pidsInNetstat(await outputOf(NETSTAT, ['-ano', '-p', 'TCP']), port), pid);
  return among(pidsInLsof(await outputOf(LSOF, ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fp'])), pid);
}

/**
 * True if every listener on the port belongs to this user, root or Ollama's service user. Text sent to any other listener could
 * reach another local user (R-EMB-07). Always true on Windows, which reports the user only to administrators.
 */
export async function isOwnedByTrustedUser(port: number): Promise<boolean> {
  const { platform } = process;
  if (platform === 'win32') return true;
  const users =
    platform === 'linux'
      ? (await listening(port)).map(({ user }) => user)
      : usersInLsof(await outputOf(LSOF, ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpu']));
  const ours = new Set([0, process.getuid?.(), ...serviceUsers(await readFile('/etc/passwd', 'utf8').catch(() => ''))]);
  return users.length > 0 && users.every((user) => ours.has(user));
}

/** Returns a port that was free a moment ago. Another program can take the port before we use it. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', reject).listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => {
    const address = server.address();
    server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
  });
  return promise;
}

const LSOF = '/usr/sbin/lsof';
const NETSTAT = win32.join(process.env['SystemRoot'] ?? 'C:\\Windows', 'System32', 'NETSTAT.EXE');
const LISTEN = '0A';

async function onLinux(port: number, pid: number): Promise<PortOwner> {
  const sockets = await listening(port);
  if (sockets.length === 0) return 'none';
  const folder = `/proc/${pid}/fd`;
  const held = new Set(
    await Promise.all((await readdir(folder).catch(() => [])).map((fd) => readlink(`${folder}/${fd}`).catch(() => ''))),
  );
  // All listeners on the port must belong to the process, because a connection could reach a listener at another address.
  return sockets.every(({ name }) => held.has(name)) ? 'expected' : 'another';
}

interface ListeningSocket {
  /** The socket's name in /proc/<pid>/fd. */
  readonly name: string;
  readonly user: number;
}

/** Reads the listening sockets of a port from the kernel's tables. */
async function listening(port: number): Promise<ListeningSocket[]> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((table) => readFile(table, 'latin1').catch(() => '')));
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return tables
    .flatMap((table) => table.split('\n').slice(1))
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(wanted) === true && state === LISTEN)
    .map((columns) => ({ name: `socket:[${columns[9]}]`, user: Number(columns[7]) }));
}

function among(pids: readonly number[], pid: number): PortOwner {
  if (pids.length === 0) return 'none';
  return pids.every((one) => one === pid) ? 'expected' : 'another';
}

/**
 * Reads process ids from the output of lsof. Each id is on its own line, after the letter p.
 *
 * @internal
 */
export const pidsInLsof = (text: string): number[] => [...text.matchAll(/^p(\d+)$/gm)].map(([, pid]) => Number(pid));

/**
 * Reads user ids from the output of lsof. Each id is on its own line, after the letter u.
 *
 * @internal
 */
export const usersInLsof = (text: string): number[] => [...text.matchAll(/^u(\d+)$/gm)].map(([, user]) => Number(user));

/**
 * Returns the user id of Ollama's service user in the text of a passwd file.
 *
 * @internal
 */
export const serviceUsers = (passwd: string): number[] =>
  [...passwd.matchAll(/^ollama:[^:\n]*:(\d+):/gm)].map(([, user]) => Number(user));

/**
 * Reads the ids of the processes that listen on a port from the output of netstat. A row without a remote address is a listening
 * socket; the names of states are localized and cannot be compared.
 *
 * @internal
 */
export const pidsInNetstat = (text: string, port: number): number[] =>
  text
    .split('\n')
    .map((row) => row.trim().split(/\s+/))
    .filter(
      ([kind, local, remote]) =>
        kind === 'TCP' && local?.endsWith(`:${port}`) === true && /^(0\.0\.0\.0|\[::\]):0$/.test(remote ?? ''),
    )
    .map((columns) => Number(columns.at(-1)));

function outputOf(program: string, args: readonly string[]): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  // Ignore errors: without output, no listener is known, and the caller then sends no text to the port.
  execFile(program, args, { timeout: 5000, env: {}, windowsHide: true }, (_error, stdout) => resolve(stdout));
  return promise;
}
