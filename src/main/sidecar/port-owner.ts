import { execFile } from 'node:child_process';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { win32 } from 'node:path';

/** Which process listens on a port: the given one, another, or none. */
export type PortOwner = 'it' | 'another' | 'nobody';

/**
 * Finds who listens on a port. Another program that took the port would receive the text to embed, so nothing is sent unless
 * this returns `it` (R-EMB-05).
 */
export async function ownerOf(port: number, pid: number): Promise<PortOwner> {
  const { platform } = process;
  if (platform === 'linux') return onLinux(port, pid);
  if (platform === 'win32') return among(pidsInNetstat(await outputOf(NETSTAT, ['-ano', '-p', 'TCP']), port), pid);
  return among(pidsInLsof(await outputOf(LSOF, ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fp'])), pid);
}

/**
 * Whether every listener on the port belongs to this user, root or Ollama's service user, so that no other local user receives
 * the text (R-EMB-07). Windows reveals this only to administrators, so it is not checked there.
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

/** A port that was free a moment ago. */
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
  if (sockets.length === 0) return 'nobody';
  const folder = `/proc/${pid}/fd`;
  const held = new Set(
    await Promise.all((await readdir(folder).catch(() => [])).map((fd) => readlink(`${folder}/${fd}`).catch(() => ''))),
  );
  // A second listener, on the same port of another address, might be reached instead.
  return sockets.every(({ name }) => held.has(name)) ? 'it' : 'another';
}

interface Listening {
  /** As listed in /proc/<pid>/fd. */
  readonly name: string;
  readonly user: number;
}

/** Listening sockets on a port, from the kernel's tables. */
async function listening(port: number): Promise<Listening[]> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map((table) => readFile(table, 'latin1').catch(() => '')));
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return tables
    .flatMap((table) => table.split('\n').slice(1))
    .map((row) => row.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(wanted) === true && state === LISTEN)
    .map((columns) => ({ name: `socket:[${columns[9]}]`, user: Number(columns[7]) }));
}

function among(pids: readonly number[], pid: number): PortOwner {
  if (pids.length === 0) return 'nobody';
  return pids.every((one) => one === pid) ? 'it' : 'another';
}

/**
 * One process per line, prefixed with p.
 * @internal
 */
export const pidsInLsof = (text: string): number[] => [...text.matchAll(/^p(\d+)$/gm)].map(([, pid]) => Number(pid));

/**
 * User ids, prefixed with u.
 * @internal
 */
export const usersInLsof = (text: string): number[] => [...text.matchAll(/^u(\d+)$/gm)].map(([, user]) => Number(user));

/**
 * The uid of Ollama's service user in a passwd file.
 * @internal
 */
export const serviceUsers = (passwd: string): number[] =>
  [...passwd.matchAll(/^ollama:[^:\n]*:(\d+):/gm)].map(([, user]) => Number(user));

/**
 * Reads columns, because state names are localized. A listening socket has no remote address.
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
  // Without output no process is known to listen, so nothing is sent.
  execFile(program, args, { timeout: 5000, env: {}, windowsHide: true }, (_error, stdout) => resolve(stdout));
  return promise;
}
